"""The claims of the paper's prose, and what reviewers ask about the paper's methods."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import special

from mdpu.pipeline.evaluate.claims.claim import (
    ABOVE,
    AT_LEAST,
    AT_MOST,
    BELOW,
    Check,
    against_baselines,
    fact,
    interval_of_difference,
    loss_from_best,
    make_cases,
    margin,
    means,
    of_methods,
    pairs_of,
    proposed,
    runs,
    significantly,
    step_up,
    steps,
)
from mdpu.pipeline.evaluate.evidence import Evidence
from mdpu.pipeline.evaluate.published import CORRECTED
from mdpu.pipeline.plan import CELL

CORRECTED_CELLS = of_methods(CORRECTED, "ure")


def averaged(axis: str) -> Check:
    """Compare averages over the cells of each value of `axis`; one with a cell that diverged does not hold."""

    def pairs(evidence: Evidence) -> pd.DataFrame:
        by = CORRECTED_CELLS(evidence).groupby([axis, "method"], as_index=False)
        return by[["mean", "mean_right"]].mean(skipna=False)

    return means(pairs)


def triple_emnist_digits(evidence: Evidence) -> pd.DataFrame:
    """Return the corrected methods' cells on triples of EMNIST-Digits at prior 0.5, each with the URE's."""
    return CORRECTED_CELLS(evidence).query("dataset == 'emnist-digits' and tuple_size == 3 and prior == '0.5'")


def correlated(*methods: str, compare: np.ufunc) -> Check:
    """Compare the correlation of risk and accuracy of each run that has one with zero."""
    return runs(methods, fact("risk_and_accuracy"), 0.0, compare, lambda found: found["risk_and_accuracy"].notna())


def varies_less(evidence: Evidence) -> pd.DataFrame:
    """Compare the corrected methods' deviations with the URE's."""
    pairs = CORRECTED_CELLS(evidence)
    pairs = pairs[pairs["std"].notna() & pairs["std_right"].notna()]
    return make_cases(pairs, pairs["std"], pairs["std_right"], BELOW)


def larger_decay(evidence: Evidence) -> pd.DataFrame | None:
    """Compare how far URE runs with a larger weight decay lie below their best with the margin."""
    if evidence.runs is None:
        return None
    found = evidence.variant_rows(evidence.runs, evidence.larger_decay)
    found = found[found["method"] == "ure"]
    return make_cases(found, loss_from_best(found, evidence), evidence.rule["margin"])


def steadier_over_n(evidence: Evidence) -> pd.DataFrame:
    """Compare the corrected methods' largest fall from one n to the next with the URE's."""
    found = step_up(proposed(evidence.base_cells), "n")
    keys = [key for key in CELL if key != "n"]
    fall = found[keys].assign(fall=(found["mean_right"] - found["mean"]).clip(lower=0))
    falls = fall.groupby(keys, as_index=False)["fall"].agg(lambda values: values.max(skipna=False))
    shared = [key for key in keys if key != "method"]
    ure = falls.loc[falls["method"] == "ure", [*shared, "fall"]]
    pairs = falls[falls["method"].isin(CORRECTED)].merge(ure, on=shared, suffixes=("", "_right"))
    return make_cases(pairs, pairs["fall"], pairs["fall_right"], AT_MOST)


def steeper(evidence: Evidence) -> pd.DataFrame:
    """Compare the corrected methods' slopes with the URE's."""
    slopes = _slopes(evidence)
    return make_cases(slopes, slopes["slope"], slopes["slope_right"])


def significantly_steeper(evidence: Evidence) -> pd.DataFrame:
    """Compare the lower end of the interval of the slopes' difference with zero."""
    slopes = _slopes(evidence)
    slopes = slopes[slopes["variance"].notna() & slopes["variance_right"].notna()]
    variance = slopes["variance"] + slopes["variance_right"]
    freedom = variance**2 / (slopes["quartic"] + slopes["quartic_right"])  # Welch and Satterthwaite's
    reach = special.stdtrit(freedom, (1 + evidence.rule["level"]) / 2) * np.sqrt(variance)
    return make_cases(slopes, slopes["slope"] - slopes["slope_right"] - reach, 0.0)


def _slopes(evidence: Evidence) -> pd.DataFrame:
    """Return least-squares slopes of the mean against n, in points per 1,000 tuples, over the n that both methods have.

    Returns
    -------
    DataFrame
        A row per corrected method and what else a cell has but n: ``slope``, its ``variance`` by the deviations over
        trials and ``quartic``, the sum of the squared parts of the variance, each by its degrees of freedom; the same
        of the URE with the suffix ``_right``. The last two are missing where a cell has one trial.
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


def last_step_on_hard_data(evidence: Evidence) -> pd.DataFrame:
    """Return the corrected methods' cells at the largest n of CIFAR-10 and SVHN, beside the n before."""
    cells = evidence.base_cells
    found = step_up(cells[cells["dataset"].isin(["cifar-10", "svhn"]) & cells["method"].isin(CORRECTED)], "n")
    return found[~found.duplicated([key for key in CELL if key != "n"], keep="last")]


def span_of_losses(evidence: Evidence) -> pd.DataFrame | None:
    """Compare how far the means of a cell span over the losses with the wider margin."""
    if evidence.runs is None:
        return None
    cells = proposed(evidence.every_loss)
    spans = cells.groupby([key for key in CELL if key != "loss"])["mean"].agg(["max", "min", "count", "size"])
    spans = spans.reset_index()
    spans = spans[spans["size"] > 1]
    span = (spans["max"] - spans["min"]).where(spans["count"] == spans["size"])  # a diverged loss matters
    return make_cases(spans, span, evidence.rule["wider_margin"], AT_MOST)


def more_unlabeled(evidence: Evidence) -> pd.DataFrame | None:
    """Return the proposed methods' cells with more unlabeled images, beside the protocol's own."""
    if evidence.runs is None:
        return None
    more = proposed(evidence.variant_rows(evidence.cells, evidence.more_unlabeled))
    base = evidence.cells[evidence.cells["variant"] == "base"]
    both = pd.concat([more, base])
    return pairs_of(both, "variant", list(set(more["variant"])), "base")


def not_below_chance(evidence: Evidence) -> pd.DataFrame:
    """Compare the upper end of Welch's interval against chance, or the difference itself if it is higher, with zero."""
    pairs = of_methods(_weak(evidence), "chance")(evidence)
    _, high = interval_of_difference(pairs, evidence.rule["level"])
    return make_cases(pairs, np.fmax(pairs["mean"] - pairs["mean_right"], high), 0.0, AT_LEAST)


def ceiling(evidence: Evidence) -> pd.DataFrame:
    """Compare the mean with true labels with every other method's."""
    pairs = of_methods(_weak(evidence), "supervised")(evidence)
    return make_cases(pairs, pairs["mean_right"], pairs["mean"])


def _weak(evidence: Evidence) -> list[str]:
    """Return the methods that learn without true labels."""
    return list(set(evidence.cells["method"]) - {"supervised", "chance"})


def part_against_whole(evidence: Evidence) -> pd.DataFrame:
    """Compare relu-part with ReLU and ABS of the same cell, whatever the loss."""
    pairs = pairs_of(evidence.every_loss, "method", CORRECTED, "relu-part")
    return make_cases(pairs, pairs["mean_right"], pairs["mean"])


CHECKS: dict[str, Check] = {
    "corrected-beats-ure": means(CORRECTED_CELLS),
    "corrected-beats-ure-significantly": significantly(CORRECTED_CELLS),
    "corrected-beats-ure-on-datasets": averaged("dataset"),
    "corrected-beats-ure-at-priors": averaged("prior"),
    "corrected-beats-ure-on-triple-emnist-digits": means(triple_emnist_digits),
    "proposed-beat-baselines": means(against_baselines(lambda evidence: evidence.table)),
    "ure-risk-goes-negative": runs(["ure"], fact("lowest_risk"), 0.0, BELOW),
    "ure-accuracy-falls-with-its-risk": correlated("ure", compare=ABOVE),
    "ure-overfits": runs(["ure"], loss_from_best, margin, where=lambda found: found["lowest_risk"] < 0),
    "corrected-objective-stays-non-negative": runs(CORRECTED, fact("lowest_objective"), 0.0, AT_LEAST),
    "corrected-risk-stays-non-negative": runs(CORRECTED, fact("lowest_risk"), 0.0, AT_LEAST),
    "corrected-accuracy-does-not-fall-with-its-risk": correlated(*CORRECTED, compare=AT_MOST),
    "corrected-accuracy-holds": runs(CORRECTED, loss_from_best, margin, AT_MOST),
    "corrected-varies-less": varies_less,
    "weight-decay-does-not-help": larger_decay,
    "accuracy-grows-with-n": steps(lambda evidence: evidence.base_cells, "n"),
    "corrected-is-steadier-over-n": steadier_over_n,
    "corrected-grows-more-steeply": steeper,
    "corrected-grows-significantly-more-steeply": significantly_steeper,
    "no-saturation-on-hard-data": means(last_step_on_hard_data),
    "loss-hardly-matters": span_of_losses,
    "every-loss-beats-the-baselines": means(
        against_baselines(lambda evidence: None if evidence.runs is None else evidence.every_loss)
    ),
    "more-unlabeled-images-help": means(more_unlabeled),
    "triples-beat-pairs": means(lambda evidence: pairs_of(proposed(evidence.table), "tuple_size", (3,), 2)),
    "lower-prior-is-easier": steps(lambda evidence: evidence.table, "prior", BELOW),
    "supervision-is-the-ceiling": ceiling,
    "no-method-is-below-chance": not_below_chance,
    "relu-part-beats-the-published-corrections": part_against_whole,
}
