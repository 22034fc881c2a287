"""A verdict for every published number, by one rule that was fixed in advance.

``docs/explanation/comparison.md`` explains it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy  # which loads scipy.special when it is used
from numpy.typing import ArrayLike, NDArray

from mdpu.pipeline.evaluate.published import IMPLIED, STATED, TRIALS, published_cells
from mdpu.pipeline.files import read_csv, write_csv, write_json
from mdpu.pipeline.plan import CELL, Plan, cell_name

VERDICTS = ("reproduced", "close", "inconclusive", "differs", "not run")
REPRODUCED, CLOSE, INCONCLUSIVE, DIFFERS, NOT_RUN = VERDICTS
JUDGED = VERDICTS[:4]  # those on a number that was run

# Why a verdict was given; the rule's cases in the order in which they are tried.
ALL_DIVERGED = "every trial diverged"
NO_INTERVAL = "fewer than two trials: no interval"
TOO_WIDE = "the interval holds zero and more than twice the wider margin"
BEYOND = "beyond the wider margin, and the interval excludes zero"
INSIDE = "whole interval within the margin"
WITHIN = "within the margin, and the interval holds zero"
WIDER = "within the wider margin"
SOME_DIVERGED = "a trial diverged"

FEWEST_TRIALS = 5  # of ours, for the prediction interval and the equivalence test

TOTALS = ("reading", "method", "dataset", "prior", "table")

# Columns of a comparison: both cells, what ours measured, and what the paper prints.
COMPARED = (
    "table",
    "tuple_size",
    "n",
    "prior",
    "published_dataset",
    "dataset",
    "reading",
    "method",
)
COUNTED = ("trials", "diverged", "first_epoch", "last_epoch")
MEASURED = ("mean", "std", *COUNTED, "precision")
PUBLISHED = ("published_mean", "published_std", "published_bold")

Array = NDArray[np.float64]


class Trials(NamedTuple):
    """Samples of trials, elementwise: their mean, deviation (ddof = 1) and number."""

    mean: ArrayLike
    std: ArrayLike
    number: ArrayLike


class Judgement(NamedTuple):
    """What `judge_trials` says of ours minus the paper's, elementwise."""

    difference: Array
    low: Array  # ends of the interval of the difference
    high: Array
    verdict: NDArray[np.object_]
    reason: NDArray[np.object_]


def welch_interval(ours: Trials, theirs: Trials, level: float) -> tuple[Array, Array]:
    """Return the ends of Welch's interval for the mean of `ours` minus that of `theirs`,
    elementwise.

    Both are missing where a sample has fewer than two trials, and both are the difference where
    neither varies.
    """
    difference, error, freedom = _welch(ours, theirs)
    half = np.where(error == 0, 0.0, student_quantile(freedom, level) * error)
    return difference - half, difference + half


def _welch(ours: Trials, theirs: Trials) -> tuple[Array, Array, Array]:
    """Return the difference of two means, its standard error, and Welch and Satterthwaite's degrees
    of freedom.
    """
    difference = np.asarray(ours.mean, float) - np.asarray(theirs.mean, float)
    first, first_freedom = _variance_of_mean(ours)
    second, second_freedom = _variance_of_mean(theirs)
    variance = first + second
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = variance**2 / (first**2 / first_freedom + second**2 / second_freedom)
    return difference, np.sqrt(variance), freedom


def _variance_of_mean(sample: Trials) -> tuple[Array, Array]:
    """Return the variance of a mean, missing where there are fewer than two trials, and its degrees
    of freedom.
    """
    std = np.asarray(sample.std, float)
    number = np.asarray(sample.number, float)
    return np.where(number > 1, std**2 / number, np.nan), number - 1


def student_quantile(freedom: Any, level: float) -> Array:
    """Return how many standard errors an interval at `level` reaches to each side, elementwise."""
    quantile: Array = scipy.special.stdtrit(freedom, (1 + level) / 2)
    return quantile


def prediction_interval(ours: Trials, further: int, level: float) -> tuple[Array, Array]:
    """Return the ends of the interval that holds the mean of `further` trials of the same normal
    law, elementwise.
    """
    mean = np.asarray(ours.mean, float)
    std = np.asarray(ours.std, float)
    number = np.asarray(ours.number, float)
    trials = np.where(number > 1, number, np.nan)
    wider = np.sqrt(1 / trials + 1 / further)
    half = student_quantile(trials - 1, level) * std * wider
    return mean - half, mean + half


def equivalence_p(ours: Trials, theirs: Trials, margin: float) -> Array:
    """Return the p-value that two means differ by less than `margin`, elementwise: two one-sided
    Welch tests.

    It is the larger of the two (Schuirmann, 1987), and missing where a sample has fewer than two
    trials.
    """
    difference, error, freedom = _welch(ours, theirs)
    with np.errstate(invalid="ignore", divide="ignore"):
        above_lower = -(difference + margin) / error
        below_upper = (difference - margin) / error
    not_below = scipy.special.stdtr(freedom, above_lower)
    not_above = scipy.special.stdtr(freedom, below_upper)
    p_value = np.maximum(not_below, not_above)
    without_noise = np.where(np.abs(difference) < margin, 0.0, 1.0)
    return np.where(error == 0, without_noise, p_value)


def share_interval(holding: ArrayLike, cases: ArrayLike, level: float) -> tuple[float, float]:
    """Return the interval of a share by clusters of cases, after Korn and Graubard (1998).

    The cases of a cluster may depend on one another in any way, but clusters are independent. The
    dependence is estimated from the differences between clusters: the effective number of cases is
    that of independent cases with the same variance. The interval is Clopper and Pearson's for this
    number. It is missing if fewer than two clusters have cases. If all cases hold, or none, the
    clusters do not differ, and each counts as one case.
    """
    all_cases = np.asarray(cases, float)
    count = all_cases[all_cases > 0]
    hold = np.asarray(holding, float)[all_cases > 0]
    if len(count) < 2:
        return np.nan, np.nan

    share = hold.sum() / count.sum()
    effective = _effective_cases(hold, count, level)
    positive = effective * share
    negative = effective * (1 - share)
    tail = (1 - level) / 2
    low = scipy.special.betaincinv(positive, negative + 1, tail) if positive else 0.0
    high = scipy.special.betaincinv(positive + 1, negative, 1 - tail) if negative else 1.0
    return float(low), float(high)


def _effective_cases(hold: Array, count: Array, level: float) -> float:
    """Return how many independent cases have the variance of those in clusters: `hold` of `count`
    in each.
    """
    clusters = len(count)
    total = count.sum()
    share = hold.sum() / total
    if share in (0, 1):
        return float(clusters)

    variance = clusters / (clusters - 1) * np.sum((hold - share * count) ** 2) / total**2
    if variance == 0:
        return float(total)
    few = student_quantile(total - 1, level) / student_quantile(clusters - 1, level)
    return float(min(total, share * (1 - share) / variance * few**2))


def judge(
    difference: ArrayLike, low: ArrayLike, high: ArrayLike, margin: float, wider_margin: float
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Return verdict and reason of measured differences from the paper, elementwise, in points;
    ends may be missing.

    *inconclusive*: the interval holds zero and reaches beyond twice the wider margin, or there is
    none. *differs*: beyond the wider margin, with an interval that excludes zero. *reproduced*:
    within the margin with an interval that holds zero, or the whole interval within the margin.
    *close*: the rest. It
    is within the wider margin: an interval that holds zero and a difference beyond the wider margin
    reaches as far again beyond that difference.
    """
    low = np.asarray(low, float)
    high = np.asarray(high, float)
    size = np.abs(np.asarray(difference, float))
    holds_zero = (low <= 0) & (high >= 0)
    cases = [
        (np.isnan(low), INCONCLUSIVE, NO_INTERVAL),
        (holds_zero & (np.maximum(-low, high) > 2 * wider_margin), INCONCLUSIVE, TOO_WIDE),
        ((size > wider_margin) & ~holds_zero, DIFFERS, BEYOND),
        ((low >= -margin) & (high <= margin), REPRODUCED, INSIDE),
        ((size <= margin) & holds_zero, REPRODUCED, WITHIN),
        (np.full(size.shape, fill_value=True), CLOSE, WIDER),
    ]
    conditions, verdicts, reasons = zip(*cases, strict=True)
    first = np.argmax(conditions, axis=0)  # the first case that is true
    return np.array(verdicts, dtype=object)[first], np.array(reasons, dtype=object)[first]


def judge_trials(
    ours: Trials,
    diverged: ArrayLike,
    paper: Trials,
    rule: Mapping[str, float],
) -> Judgement:
    """Return difference from the paper, both ends of its interval, verdict and reason of our
    trials, elementwise.

    `ours` are the trials that did not diverge, `diverged` the number of those that did; `rule` is
    the configuration's ``comparison``. Where no trial is left, the verdict is *differs*, and where
    one diverged it is *close* at best.
    """
    low, high = welch_interval(ours, paper, rule["level"])
    difference = np.asarray(ours.mean, float) - np.asarray(paper.mean, float)
    verdict, reason = judge(difference, low, high, rule["margin"], rule["wider_margin"])

    some_lost = np.asarray(diverged) > 0
    some = (verdict == REPRODUCED) & some_lost  # only the trials that converged agree
    verdict = np.where(some, CLOSE, verdict)
    reason = np.where(some, SOME_DIVERGED, reason)

    every = (np.asarray(ours.number) == 0) & some_lost
    verdict = np.where(every, DIFFERS, verdict)
    reason = np.where(every, ALL_DIVERGED, reason)
    return Judgement(difference, low, high, verdict, reason)


def compare(
    summary: pd.DataFrame,
    published_names: Mapping[str, str],
    rule: Mapping[str, float],
    readings: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Compare each of the 504 published cells with ours, in every reading of its dataset, and give
    a verdict.

    `summary` is as `mdpu.pipeline.evaluate.collect.summarize` returns it; variant ``base`` and the
    logistic loss count. `published_names` maps each defined dataset to the published row to compare
    it with; `rule` is the configuration's ``comparison``. `readings` names those of datasets that
    are neither the stated nor the implied one.

    A row is a published cell in one reading. Where at least `FEWEST_TRIALS` of ours count, it has
    ``prediction_low`` and ``prediction_high``, in which the mean of the paper's three trials lies
    if they are of our law, and ``predicted``, whether it does; ``equivalence_p`` of two one-sided
    tests that the difference is within the margin, and ``equivalent``, whether that is below 1 -
    level. ``cell`` is the name of ours.
    """
    compared = _beside_published(summary, published_names, readings or {})
    measured = [column for column in MEASURED if column in compared]
    diverged = compared["diverged"].fillna(0).to_numpy(int)
    valid = compared["trials"].fillna(0).to_numpy(int) - diverged
    paper = Trials(compared["published_mean"], compared["published_std"], TRIALS)
    ours = Trials(compared["mean"], compared["std"], valid)
    judged = judge_trials(ours, diverged, paper, rule)
    run = compared["trials"].notna().to_numpy()

    enough = np.where(valid >= FEWEST_TRIALS, valid, np.nan)
    tested = ours._replace(number=enough)
    lower, upper = prediction_interval(tested, TRIALS, rule["level"])
    predicted = compared["published_mean"].between(lower, upper)
    p_value = equivalence_p(tested, paper, rule["margin"])
    equivalent = pd.Series(p_value < 1 - rule["level"])

    return compared[[*COMPARED, *measured, *PUBLISHED]].assign(
        difference=judged.difference,
        interval_low=judged.low,
        interval_high=judged.high,
        verdict=np.where(run, judged.verdict, NOT_RUN),
        reason=np.where(run, judged.reason, ""),
        prediction_low=lower,
        prediction_high=upper,
        equivalence_p=p_value,
        predicted=predicted.astype("boolean").mask(np.isnan(enough)),
        equivalent=equivalent.astype("boolean").mask(np.isnan(enough)),
        cell=[cell_name(key) for key in compared[list(CELL)].to_dict("records")],
    )


def _beside_published(
    summary: pd.DataFrame, published_names: Mapping[str, str], readings: Mapping[str, str]
) -> pd.DataFrame:
    """Return the published cells in each reading of their dataset, with ours beside them where it
    was run.
    """
    cells = published_cells().rename(columns={"dataset": "published_dataset"})
    columns = ["dataset", "published_dataset"]
    names = pd.DataFrame(published_names.items(), columns=columns)
    compared = cells.merge(names, on="published_dataset", how="left")
    published = compared["published_dataset"]
    compared["dataset"] = compared["dataset"].fillna(published)

    same = compared["dataset"] == published
    usual = pd.Series(np.where(same, STATED, IMPLIED))
    compared["reading"] = compared["dataset"].map(readings).astype(object).fillna(usual)

    measured = [column for column in MEASURED if column in summary]
    ours = summary[[*CELL, *measured]]
    merged = compared.merge(ours, on=list(CELL), how="left", validate="one_to_one")
    return merged.astype(dict.fromkeys(COUNTED, "Int64"))


def spreads(comparison: pd.DataFrame) -> pd.DataFrame:
    """Compare the deviations over trials, about which the verdicts on means say nothing, by method.

    There is no interval, because it is unknown whether the paper's cells share trials. Cells with
    two trials count, in the reading ``as stated``: ``larger``, in how many of them our deviation is
    the larger one; ``ours`` and ``paper``, root mean squares in points; their ``ratio``.
    """
    as_stated = comparison[comparison["reading"] == STATED]
    counted = as_stated[as_stated["std"].notna()]
    rows = []
    for method, cells in counted.groupby("method", sort=False):
        ours = _root_mean_square(cells["std"])
        paper = _root_mean_square(cells["published_std"])
        larger = int((cells["std"] > cells["published_std"]).sum())
        rows.append((method, len(cells), larger, ours, paper, ours / paper))
    return pd.DataFrame(rows, columns=["method", "cells", "larger", "ours", "paper", "ratio"])


def _root_mean_square(values: pd.Series) -> float:
    return float(np.sqrt((values**2).mean()))


def totals(comparison: pd.DataFrame) -> pd.DataFrame:
    """Count verdicts, predicted and equivalent cells: in all comparisons, then by each of
    `TOTALS`.
    """
    rows = [{"by": "all", "value": "all", **_total(comparison)}]
    for by in TOTALS:
        for value, group in comparison.groupby(by, sort=False):
            rows.append({"by": by, "value": value, **_total(group)})
    return pd.DataFrame(rows)


def _total(comparison: pd.DataFrame) -> dict[str, int]:
    """Return how many comparisons have each verdict, were tested, and are predicted and
    equivalent.
    """
    return {
        **count_verdicts(comparison["verdict"], VERDICTS),
        "tested": int(comparison["predicted"].notna().sum()),
        "predicted": int(comparison["predicted"].sum()),
        "equivalent": int(comparison["equivalent"].sum()),
    }


def count_verdicts(verdicts: Any, counted: Sequence[str]) -> dict[str, int]:
    """Return how many of some verdicts are each of those counted."""
    return {verdict: int((verdicts == verdict).sum()) for verdict in counted}


def write_comparison(plan: Plan, summary: Path, csv: Path, json: Path) -> None:
    """Compare a plan's summary with the paper, and write the verdicts (CSV), and totals and spreads
    (JSON).
    """
    rule = plan.config["comparison"]
    comparison = compare(read_csv(summary), plan.published_names, rule, plan.readings)
    write_csv(comparison, csv)
    facts = {
        "totals": totals(comparison).to_dict("records"),
        "spreads": spreads(comparison).to_dict("records"),
        "rule": rule,
    }
    write_json(json, facts)
