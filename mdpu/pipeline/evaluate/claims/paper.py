"""The claims of the paper's prose, and what reviewers ask about the paper's methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.claims.claim import (
    AT_LEAST,
    AT_MOST,
    BELOW,
    Check,
    Found,
    against_baselines,
    compares,
    interval,
    loss_from_best,
    margin,
    of_methods,
    of_runs,
    pairs_of,
    proposed,
    significantly,
    step_up,
)
from mdpu.pipeline.evaluate.evidence import Evidence
from mdpu.pipeline.evaluate.published import CORRECTED
from mdpu.pipeline.plan import CELL

# Variants of the configuration that differ from its protocol in this alone.
LARGER_DECAY = ("decay-6e-4", "decay-7e-4", "decay-2e-3")
MORE_UNLABELED = ("unlabeled-2n", "unlabeled-3n")
CORRECTED_CELLS = of_methods(CORRECTED, "ure")


def averaged(axis: str) -> Check:
    """Compare averages over the cells of each value of `axis`; one with a cell that diverged does not hold."""

    def pairs(evidence: Evidence) -> pd.DataFrame:
        by = CORRECTED_CELLS(evidence).groupby([axis, "method"], as_index=False)
        return by[["mean", "mean_right"]].mean(skipna=False)

    return compares(pairs)


def falls_over_n(evidence: Evidence) -> pd.DataFrame:
    """Return the corrected methods' largest ``fall`` from one n to the next, beside the URE's."""
    found = step_up(proposed(evidence.base_cells), "n")
    keys = [key for key in CELL if key != "n"]
    fall = found[keys].assign(fall=(found["mean_right"] - found["mean"]).clip(lower=0))
    falls = fall.groupby(keys, as_index=False)["fall"].agg(lambda values: values.max(skipna=False))
    shared = [key for key in keys if key != "method"]
    ure = falls.loc[falls["method"] == "ure", [*shared, "fall"]]
    return falls[falls["method"].isin(CORRECTED)].merge(ure, on=shared, suffixes=("", "_right"))


def slopes(evidence: Evidence) -> pd.DataFrame:
    """Return least-squares slopes of the mean against n, in points per 1,000 tuples, over the n that both methods have.

    A row is a corrected method and what else a cell has but n: ``slope``, its ``variance`` by the deviations over
    trials, and ``quartic``, the sum of the squared parts of the variance, each by its degrees of freedom; the same of
    the URE with the suffix ``_right``. The last two are missing where a cell has one trial.
    """
    pairs = pairs_of(evidence.base_cells, "method", CORRECTED, "ure").dropna(subset=["mean", "mean_right"])
    keys = [key for key in CELL if key != "n"]
    centred = pairs["n"] - pairs.groupby(keys)["n"].transform("mean")
    square = (centred**2).groupby([pairs[key] for key in keys]).transform("sum")
    weight = 1000 * centred / square.where(square > 0)
    terms = pairs[keys].copy()
    for side in ("", "_right"):
        trials = pairs[f"trials{side}"]
        part = weight**2 * pairs[f"std{side}"] ** 2 / trials
        terms[f"slope{side}"] = weight * pairs[f"mean{side}"]
        terms[f"variance{side}"] = part
        terms[f"quartic{side}"] = part**2 / (trials - 1).where(trials > 1)
    sums = terms.groupby(keys, as_index=False).sum(skipna=False)
    return sums[sums["slope"].notna()]


def least_gap(found: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the lower end of the interval of the slopes' difference, by Welch and Satterthwaite's freedom."""
    variance = found["variance"] + found["variance_right"]
    freedom = variance**2 / (found["quartic"] + found["quartic_right"])
    reach = special.stdtrit(freedom, (1 + evidence.rule["level"]) / 2) * np.sqrt(variance)
    return found["slope"] - found["slope_right"] - reach


def last_step_on_hard_data(evidence: Evidence) -> pd.DataFrame:
    """Return the corrected methods' cells at the largest n of CIFAR-10 and SVHN, beside the n before."""
    cells = evidence.base_cells
    found = step_up(cells[cells["dataset"].isin(["cifar-10", "svhn"]) & cells["method"].isin(CORRECTED)], "n")
    return found[~found.duplicated([key for key in CELL if key != "n"], keep="last")]


def spans_of_losses(evidence: Evidence) -> pd.DataFrame:
    """Return the ``span`` of the proposed methods' means over the losses, for each cell of several losses."""
    by_cell = proposed(evidence.every_loss).groupby([key for key in CELL if key != "loss"])["mean"]
    spans = by_cell.agg(["max", "min", "count", "size"]).reset_index().query("size > 1")
    # A diverged loss matters.
    return spans.assign(span=(spans["max"] - spans["min"]).where(spans["count"] == spans["size"]))


def without_labels(control: str) -> Found:
    """Pair the cells of every method that learns without true labels with a control's."""
    return lambda of: of_methods(list(set(of.cells["method"]) - {"supervised", "chance"}), control)(of)


def not_below(pairs: pd.DataFrame, evidence: Evidence) -> Any:
    """Return the difference of each pair, or the upper end of its interval if that is higher."""
    return np.fmax(pairs["mean"] - pairs["mean_right"], interval(pairs, evidence)[1])


HAS_CORRELATION = "risk_and_accuracy == risk_and_accuracy"
CHECKS: dict[str, Check] = {
    "corrected-beats-ure": compares(CORRECTED_CELLS),
    "corrected-beats-ure-significantly": significantly(CORRECTED_CELLS),
    "corrected-beats-ure-on-datasets": averaged("dataset"),
    "corrected-beats-ure-at-priors": averaged("prior"),
    "corrected-beats-ure-on-triple-emnist-digits": compares(
        lambda of: CORRECTED_CELLS(of).query("dataset == 'emnist-digits' and tuple_size == 3 and prior == '0.5'")
    ),
    "proposed-beat-baselines": compares(against_baselines(lambda of: of.table)),
    "ure-risk-goes-negative": compares(of_runs("ure"), "lowest_risk", 0.0, BELOW),
    "ure-accuracy-falls-with-its-risk": compares(of_runs("ure", where=HAS_CORRELATION), "risk_and_accuracy", 0.0),
    "ure-overfits": compares(of_runs("ure", where="lowest_risk < 0"), loss_from_best, margin),
    "corrected-objective-stays-non-negative": compares(of_runs(*CORRECTED), "lowest_objective", 0.0, AT_LEAST),
    "corrected-risk-stays-non-negative": compares(of_runs(*CORRECTED), "lowest_risk", 0.0, AT_LEAST),
    "corrected-accuracy-does-not-fall-with-its-risk": compares(
        of_runs(*CORRECTED, where=HAS_CORRELATION), "risk_and_accuracy", 0.0, AT_MOST
    ),
    "corrected-accuracy-holds": compares(of_runs(*CORRECTED), loss_from_best, margin, AT_MOST),
    "corrected-varies-less": compares(
        lambda of: CORRECTED_CELLS(of).dropna(subset=["std", "std_right"]), "std", "std_right", BELOW
    ),
    "weight-decay-does-not-help": compares(of_runs("ure", variants=LARGER_DECAY), loss_from_best, margin),
    "accuracy-grows-with-n": compares(lambda of: step_up(proposed(of.base_cells), "n")),
    "corrected-is-steadier-over-n": compares(falls_over_n, "fall", "fall_right", AT_MOST),
    "corrected-grows-more-steeply": compares(slopes, "slope", "slope_right"),
    "corrected-grows-significantly-more-steeply": compares(
        lambda of: slopes(of).dropna(subset=["variance", "variance_right"]), least_gap, 0.0
    ),
    "no-saturation-on-hard-data": compares(last_step_on_hard_data),
    "loss-hardly-matters": compares(spans_of_losses, "span", lambda _, of: of.rule["wider_margin"], AT_MOST),
    "every-loss-beats-the-baselines": compares(against_baselines(lambda of: of.every_loss)),
    "more-unlabeled-images-help": compares(lambda of: pairs_of(proposed(of.cells), "variant", MORE_UNLABELED, BASE)),
    "triples-beat-pairs": compares(lambda of: pairs_of(proposed(of.table), "tuple_size", (3,), 2)),
    "lower-prior-is-easier": compares(lambda of: step_up(proposed(of.table), "prior"), compare=BELOW),
    "supervision-is-the-ceiling": compares(without_labels("supervised"), "mean_right", "mean"),
    "no-method-is-below-chance": compares(without_labels("chance"), not_below, 0.0, AT_LEAST),
    "relu-part-beats-the-published-corrections": compares(
        lambda of: pairs_of(of.every_loss, "method", CORRECTED, "relu-part"), "mean_right", "mean"
    ),
}
