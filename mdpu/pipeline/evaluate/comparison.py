"""A verdict for every published number, by one rule that was fixed in advance.

``docs/explanation/comparison.md`` explains it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special  # scipy.stats, which calls it, takes half a second to load

from mdpu.pipeline.evaluate.published import TRIALS, published_cells
from mdpu.pipeline.files import provenance, read_csv, write_csv, write_json
from mdpu.pipeline.plan import CELL, DOMINANT, Plan, cell_name

VERDICTS = ("reproduced", "close", "inconclusive", "differs", "not run")
REPRODUCED, CLOSE, INCONCLUSIVE, DIFFERS, NOT_RUN = VERDICTS

# Why a verdict was given; the rule's cases in the order in which they are tried.
ALL_DIVERGED = "every trial diverged"
NO_INTERVAL = "fewer than two trials: no interval"
TOO_WIDE = "the interval holds zero and more than twice the wider margin"
BEYOND = "beyond the wider margin, and the interval excludes zero"
INSIDE = "whole interval within the margin"
NEAR = "within the margin, and the interval holds zero"
WIDER = "within the wider margin"
SOME_DIVERGED = "a trial diverged"

FEWEST_TRIALS = 5  # of ours, for the prediction interval and the equivalence test

STATED, IMPLIED = "as stated", "as the numbers imply"  # readings of a published dataset

TOTALS = ("reading", "method", "dataset", "prior", "table")


def welch_interval(
    mean: ArrayLike,
    std: ArrayLike,
    trials: ArrayLike,
    other_mean: ArrayLike,
    other_std: ArrayLike,
    other_trials: ArrayLike,
    level: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of Welch's interval for `mean` minus `other_mean`, elementwise.

    Parameters
    ----------
    mean, other_mean : array_like
        Sample means, in points.
    std, other_std : array_like
        Sample standard deviations (ddof = 1).
    trials, other_trials : array_like
        Sample sizes.
    level : float
        Coverage, e.g. 0.95.

    Returns
    -------
    low, high : ndarray
        Degrees of freedom are Welch and Satterthwaite's. Both are missing where a sample has fewer than two
        trials or no deviation, and both are the difference itself where neither sample varies.
    """
    difference, error, freedom = _welch(mean, std, trials, other_mean, other_std, other_trials)
    half = np.where(error == 0, 0.0, special.stdtrit(freedom, (1 + level) / 2) * error)
    return difference - half, difference + half


def _welch(
    mean: ArrayLike,
    std: ArrayLike,
    trials: ArrayLike,
    other_mean: ArrayLike,
    other_std: ArrayLike,
    other_trials: ArrayLike,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the difference of two means, its standard error and its degrees of freedom, elementwise.

    Error and freedom are missing where a sample has fewer than two trials or no deviation, and the freedom alone
    where neither sample varies.
    """
    counts = np.asarray(trials, float), np.asarray(other_trials, float)
    first, second = (
        np.where(n > 1, np.square(np.asarray(s, float)) / n, np.nan)
        for s, n in zip((std, other_std), counts, strict=True)
    )
    difference = np.asarray(mean, float) - np.asarray(other_mean, float)
    variance = first + second
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = variance**2 / (first**2 / (counts[0] - 1) + second**2 / (counts[1] - 1))
    return difference, np.sqrt(variance), freedom


def prediction_interval(
    mean: ArrayLike, std: ArrayLike, trials: ArrayLike, other_trials: ArrayLike, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the interval in which the mean of `other_trials` further trials lies, elementwise.

    Parameters
    ----------
    mean, std : array_like
        Sample mean and standard deviation (ddof = 1) of the known trials, in points.
    trials : array_like
        Number of known trials.
    other_trials : array_like
        Number of further trials from the same normal law.
    level : float
        Probability, e.g. 0.95.

    Returns
    -------
    low, high : ndarray
        Missing where there are fewer than two trials.
    """
    mean, std, trials, further = (np.asarray(values, float) for values in (mean, std, trials, other_trials))
    trials = np.where(trials > 1, trials, np.nan)
    half = special.stdtrit(trials - 1, (1 + level) / 2) * std * np.sqrt(1 / trials + 1 / further)
    return mean - half, mean + half


def equivalence_p(
    mean: ArrayLike,
    std: ArrayLike,
    trials: ArrayLike,
    other_mean: ArrayLike,
    other_std: ArrayLike,
    other_trials: ArrayLike,
    margin: float,
) -> NDArray[np.float64]:
    """Return the p-value of two one-sided Welch tests that two means differ by less than `margin`, elementwise.

    Parameters
    ----------
    mean, std, trials, other_mean, other_std, other_trials
        As for `welch_interval`.
    margin : float
        In points.

    Returns
    -------
    ndarray
        The larger p-value of the two tests (Schuirmann, 1987), missing where a sample has fewer than two trials.
    """
    difference, error, freedom = _welch(mean, std, trials, other_mean, other_std, other_trials)
    with np.errstate(invalid="ignore", divide="ignore"):
        not_below = special.stdtr(freedom, -(difference + margin) / error)
        not_above = special.stdtr(freedom, (difference - margin) / error)
    without_noise = np.where(np.abs(difference) < margin, 0.0, 1.0)
    return np.where(error == 0, without_noise, np.maximum(not_below, not_above))


def judge(
    difference: ArrayLike, low: ArrayLike, high: ArrayLike, margin: float, wider_margin: float
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Return verdict and reason of measured differences, elementwise.

    Parameters
    ----------
    difference, low, high : array_like
        Ours minus the paper's, and the ends of its interval, in points; ends may be missing.
    margin, wider_margin : float
        In points.

    Returns
    -------
    verdict, reason : ndarray of str
        *inconclusive*: the interval holds zero and reaches beyond twice the wider margin, or there is none.
        *differs*: beyond the wider margin, with an interval that excludes zero.
        *reproduced*: within the margin with an interval that holds zero, or the whole interval within the margin.
        *close*: the rest. It is within the wider margin: an interval that holds zero and a difference beyond the
        wider margin reaches as far again beyond that difference.
    """
    difference, low, high = (np.asarray(values, float) for values in (difference, low, high))
    size = np.abs(difference)
    holds_zero = (low <= 0) & (high >= 0)
    cases = [
        (np.isnan(low), INCONCLUSIVE, NO_INTERVAL),
        (holds_zero & (np.maximum(-low, high) > 2 * wider_margin), INCONCLUSIVE, TOO_WIDE),
        ((size > wider_margin) & ~holds_zero, DIFFERS, BEYOND),
        ((low >= -margin) & (high <= margin), REPRODUCED, INSIDE),
        ((size <= margin) & holds_zero, REPRODUCED, NEAR),
    ]
    conditions = [case[0] for case in cases]
    verdict = np.select(conditions, [np.full(size.shape, case[1], dtype=object) for case in cases], CLOSE)
    reason = np.select(conditions, [np.full(size.shape, case[2], dtype=object) for case in cases], WIDER)
    return verdict, reason


def compare(summary: pd.DataFrame, published_names: Mapping[str, str], rule: Mapping[str, float]) -> pd.DataFrame:
    """Compare each of the 504 published cells with ours, in every reading of its dataset, and give a verdict.

    Parameters
    ----------
    summary : DataFrame
        As `mdpu.pipeline.evaluate.collect.summarize` returns it; variant ``base`` and the logistic loss count.
    published_names : mapping
        From every defined dataset to the published row to compare it with.
    rule : mapping
        ``level``, ``margin`` and ``wider_margin``, the configuration's ``comparison``.

    Returns
    -------
    DataFrame
        One row per published cell and reading: table, tuple_size, n, prior, published_dataset, dataset,
        reading (``as stated`` or ``as the numbers imply``), method; ours (mean, std, trials, diverged,
        first_epoch, last_epoch), the paper's, difference, interval_low, interval_high, verdict and reason;
        ``cell``, the name of ours. Where at least `FEWEST_TRIALS` of ours count, else missing:
        ``prediction_low`` and ``prediction_high``, in which the mean of the paper's three trials lies if they are of
        our law; ``predicted``, whether it does; ``equivalence_p`` of two one-sided tests that the difference is
        within the margin, and ``equivalent``, whether that is below 1 - level.
    """
    cells = published_cells().rename(columns={"dataset": "published_dataset"})
    names = [(theirs, ours) for ours, theirs in published_names.items() if theirs in set(cells["published_dataset"])]
    readings = pd.DataFrame(names, columns=["published_dataset", "dataset"])
    pairs = cells.merge(readings, on="published_dataset", how="left")
    pairs = pairs.assign(variant="base", loss="logistic", law=DOMINANT)
    pairs["dataset"] = pairs["dataset"].fillna(pairs["published_dataset"])
    stated = pairs["dataset"] == pairs["published_dataset"]
    pairs["reading"] = np.where(stated, STATED, IMPLIED)
    ours = ["mean", "std", "trials", "diverged", "first_epoch", "last_epoch"]
    compared = pairs.merge(summary[[*CELL, *ours]], on=list(CELL), how="left", validate="one_to_one")
    counts = ["trials", "diverged", "first_epoch", "last_epoch"]
    compared = compared.astype(dict.fromkeys(counts, "Int64"))
    was_run = compared["trials"].notna().to_numpy()
    diverged = compared["diverged"].fillna(0).to_numpy(int)
    valid = compared["trials"].fillna(0).to_numpy(int) - diverged
    compared["difference"] = compared["mean"] - compared["published_mean"]
    compared["interval_low"], compared["interval_high"] = welch_interval(
        compared["mean"],
        compared["std"],
        valid,
        compared["published_mean"],
        compared["published_std"],
        TRIALS,
        rule["level"],
    )
    verdict, reason = judge(
        compared["difference"],
        compared["interval_low"],
        compared["interval_high"],
        rule["margin"],
        rule["wider_margin"],
    )
    some_diverged = (verdict == REPRODUCED) & (diverged > 0)  # only the trials that converged agree
    verdict[some_diverged], reason[some_diverged] = CLOSE, SOME_DIVERGED
    all_diverged = was_run & (valid == 0)
    verdict[all_diverged], reason[all_diverged] = DIFFERS, ALL_DIVERGED
    verdict[~was_run], reason[~was_run] = NOT_RUN, ""
    columns = ["table", "tuple_size", "n", "prior", "published_dataset", "dataset", "reading", "method", *ours]
    columns += ["published_mean", "published_std", "published_bold", "difference", "interval_low", "interval_high"]
    keys = compared[list(CELL)].to_dict("records")
    judged = compared[columns].assign(
        verdict=verdict, reason=reason, **_prediction_and_equivalence(compared, valid, rule)
    )
    return judged.assign(cell=[cell_name(key) for key in keys])


def _prediction_and_equivalence(
    cells: pd.DataFrame, valid: NDArray[np.int_], rule: Mapping[str, float]
) -> dict[str, Any]:
    """Return the columns of the prediction interval and of the equivalence test; `valid` trials did not diverge."""
    trials = np.where(valid >= FEWEST_TRIALS, valid, np.nan)
    paper = cells["published_mean"].to_numpy(float)
    low, high = prediction_interval(cells["mean"], cells["std"], trials, TRIALS, rule["level"])
    sample = cells["mean"], cells["std"], trials, paper, cells["published_std"], TRIALS
    p_value = equivalence_p(*sample, rule["margin"])
    answers = {"predicted": (low <= paper) & (paper <= high), "equivalent": p_value < 1 - rule["level"]}
    columns = {"prediction_low": low, "prediction_high": high, "equivalence_p": p_value}
    return columns | {name: pd.arrays.BooleanArray(answer, np.isnan(trials)) for name, answer in answers.items()}


def spreads(comparison: pd.DataFrame) -> pd.DataFrame:
    """Compare the deviations over trials, about which the verdicts on means say nothing.

    There is no interval, because it is unknown whether the paper's cells share trials, and the F law of a ratio of
    variances holds only for independent cells with equal variance.

    Parameters
    ----------
    comparison : DataFrame
        As `compare` returns it; cells with at least two trials count, in the reading ``as stated``.

    Returns
    -------
    DataFrame
        One row per method with such cells: ``cells``; ``larger``, in how many of them our deviation is the larger
        one; ``ours`` and ``paper``, the root mean squares of the deviations, in points; their ``ratio``.
    """
    counted = comparison[comparison["std"].notna() & (comparison["reading"] == STATED)]
    rows = []
    for method, cells in counted.groupby("method", sort=False):
        ours, paper = (float(np.sqrt((cells[name] ** 2).mean())) for name in ("std", "published_std"))
        larger = int((cells["std"] > cells["published_std"]).sum())
        rows.append((method, len(cells), larger, ours, paper, ours / paper))
    return pd.DataFrame(rows, columns=["method", "cells", "larger", "ours", "paper", "ratio"])


def totals(comparison: pd.DataFrame) -> pd.DataFrame:
    """Count verdicts: one row for all comparisons, then one per reading, method, dataset, prior and table.

    Returns
    -------
    DataFrame
        by, value, one column per verdict; of the cells that have enough trials, ``tested``, how many are
        ``predicted`` and how many ``equivalent``.
    """
    groups: list[tuple[str, object, pd.DataFrame]] = [("all", "all", comparison)]
    groups += [(by, value, group) for by in TOTALS for value, group in comparison.groupby(by, sort=False)]
    return pd.DataFrame(
        [
            {
                "by": by,
                "value": value,
                **{verdict: int((group["verdict"] == verdict).sum()) for verdict in VERDICTS},
                "tested": int(group["predicted"].notna().sum()),
                **{name: int(group[name].sum()) for name in ("predicted", "equivalent")},
            }
            for by, value, group in groups
        ]
    )


def write_comparison(plan: Plan, summary: Path, out: Path) -> None:
    """Compare the cells of a summary with the paper's, and write the verdicts as CSV with totals (.json) beside them.

    Raises
    ------
    UserError
        If the summary, as `mdpu.pipeline.evaluate.collect.write_collection` writes it, is missing or broken.
    """
    started = time.perf_counter()
    rule = plan.config["comparison"]
    verdicts = compare(read_csv(summary), plan.published_names, rule)
    write_csv(verdicts, out)
    facts = {
        "totals": totals(verdicts).to_dict("records"),
        "spreads": spreads(verdicts).to_dict("records"),
    }
    write_json(out.with_suffix(".json"), {**facts, **provenance(started, [summary], rule=rule)})
