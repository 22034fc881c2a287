"""A verdict for every published number, by one rule that was fixed in advance.

``docs/explanation/comparison.md`` explains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy  # which loads scipy.special when it is used
from numpy.typing import ArrayLike, NDArray

from mdpu.pipeline.evaluate.published import IMPLIED, STATED, TRIALS, published_cells
from mdpu.pipeline.files import read_csv, write_csv, write_json
from mdpu.pipeline.plan import CELL, Plan, cell_name

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

TOTALS = ("reading", "method", "dataset", "prior", "table")

Array = NDArray[np.float64]


class Trials(NamedTuple):
    """Samples of trials, elementwise: their mean, deviation (ddof = 1) and number."""

    mean: ArrayLike
    std: ArrayLike
    number: ArrayLike


def welch_interval(ours: Trials, theirs: Trials, level: float) -> tuple[Array, Array]:
    """Return the ends of Welch's interval for the mean of `ours` minus that of `theirs`, elementwise.

    Both are missing where a sample has fewer than two trials, and both are the difference where neither varies.
    """
    difference, error, freedom = _welch(ours, theirs)
    half = np.where(error == 0, 0.0, scipy.special.stdtrit(freedom, (1 + level) / 2) * error)
    return difference - half, difference + half


def _welch(ours: Trials, theirs: Trials) -> tuple[Array, Array, Array]:
    """Return the difference of two means, its standard error, and Welch and Satterthwaite's degrees of freedom."""
    mean, std, n, other_mean, other_std, m = (np.asarray(values, float) for values in (*ours, *theirs))
    first, second = np.where(n > 1, std**2 / n, np.nan), np.where(m > 1, other_std**2 / m, np.nan)
    variance = first + second
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = variance**2 / (first**2 / (n - 1) + second**2 / (m - 1))
    return mean - other_mean, np.sqrt(variance), freedom


def prediction_interval(ours: Trials, further: int, level: float) -> tuple[Array, Array]:
    """Return the ends of the interval that holds the mean of `further` trials of the same normal law, elementwise."""
    mean, std, trials = (np.asarray(values, float) for values in ours)
    trials = np.where(trials > 1, trials, np.nan)
    half = scipy.special.stdtrit(trials - 1, (1 + level) / 2) * std * np.sqrt(1 / trials + 1 / further)
    return mean - half, mean + half


def equivalence_p(ours: Trials, theirs: Trials, margin: float) -> Array:
    """Return the p-value that two means differ by less than `margin`, elementwise: two one-sided Welch tests.

    It is the larger of the two (Schuirmann, 1987), and missing where a sample has fewer than two trials.
    """
    difference, error, freedom = _welch(ours, theirs)
    with np.errstate(invalid="ignore", divide="ignore"):
        not_below = scipy.special.stdtr(freedom, -(difference + margin) / error)
        not_above = scipy.special.stdtr(freedom, (difference - margin) / error)
    without_noise = np.where(np.abs(difference) < margin, 0.0, 1.0)
    return np.where(error == 0, without_noise, np.maximum(not_below, not_above))


def share_interval(holding: ArrayLike, cases: ArrayLike, level: float) -> tuple[float, float]:
    """Return the interval of a share by clusters of cases, after Korn and Graubard (1998).

    The cases of a cluster may depend on one another in any way, but clusters are independent. The dependence is
    estimated from the differences between clusters: the effective number of cases is that of independent cases with the
    same variance. The interval is Clopper and Pearson's for this number. It is missing if fewer than two clusters have
    cases. If all cases hold, or none, the clusters do not differ, and each counts as one case.
    """
    all_cases = np.asarray(cases, float)
    count = all_cases[all_cases > 0]
    hold = np.asarray(holding, float)[all_cases > 0]
    clusters, total = len(count), count.sum()
    if clusters < 2:
        return np.nan, np.nan
    share = hold.sum() / total
    if share in (0, 1):
        effective = float(clusters)
    else:
        variance = clusters / (clusters - 1) * np.sum((hold - share * count) ** 2) / total**2
        few = scipy.special.stdtrit(total - 1, (1 + level) / 2) / scipy.special.stdtrit(clusters - 1, (1 + level) / 2)
        effective = min(total, share * (1 - share) / variance * few**2 if variance > 0 else total * few**2)
    tail = (1 - level) / 2
    held, failed = effective * share, effective * (1 - share)
    low = scipy.special.betaincinv(held, failed + 1, tail) if held else 0.0
    high = scipy.special.betaincinv(held + 1, failed, 1 - tail) if failed else 1.0
    return float(low), float(high)


def judge(
    difference: ArrayLike, low: ArrayLike, high: ArrayLike, margin: float, wider_margin: float
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Return verdict and reason of measured differences from the paper, elementwise, in points; ends may be missing.

    *inconclusive*: the interval holds zero and reaches beyond twice the wider margin, or there is none. *differs*:
    beyond the wider margin, with an interval that excludes zero. *reproduced*: within the margin with an interval that
    holds zero, or the whole interval within the margin. *close*: the rest. It is within the wider margin: an interval
    that holds zero and a difference beyond the wider margin reaches as far again beyond that difference.
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
        (np.full(size.shape, fill_value=True), CLOSE, WIDER),
    ]
    conditions, verdicts, reasons = zip(*cases, strict=True)
    first = np.argmax(conditions, axis=0)  # the first case that is true
    return np.array(verdicts, dtype=object)[first], np.array(reasons, dtype=object)[first]


def judge_trials(
    ours: Trials, diverged: ArrayLike, paper: Trials, rule: Mapping[str, float]
) -> tuple[Array, Array, Array, NDArray[np.object_], NDArray[np.object_]]:
    """Return difference from the paper, both ends of its interval, verdict and reason of our trials, elementwise.

    `ours` are the trials that did not diverge, `diverged` the number of those that did; `rule` is the configuration's
    ``comparison``. Where no trial is left, the verdict is *differs*, and where one diverged it is *close* at best.
    """
    low, high = welch_interval(ours, paper, rule["level"])
    difference = np.asarray(ours.mean, float) - np.asarray(paper.mean, float)
    verdict, reason = judge(difference, low, high, rule["margin"], rule["wider_margin"])
    lost, valid = np.asarray(diverged), np.asarray(ours.number)
    some = (verdict == REPRODUCED) & (lost > 0)  # only the trials that converged agree
    verdict, reason = np.where(some, CLOSE, verdict), np.where(some, SOME_DIVERGED, reason)
    every = (valid == 0) & (lost > 0)
    verdict, reason = np.where(every, DIFFERS, verdict), np.where(every, ALL_DIVERGED, reason)
    return difference, low, high, verdict, reason


def compare(
    summary: pd.DataFrame,
    published_names: Mapping[str, str],
    rule: Mapping[str, float],
    readings: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Compare each of the 504 published cells with ours, in every reading of its dataset, and give a verdict.

    `summary` is as `mdpu.pipeline.evaluate.collect.summarize` returns it; variant ``base`` and the logistic loss count.
    `published_names` maps each defined dataset to the published row to compare it with; `rule` is the configuration's
    ``comparison``. `readings` names those of datasets that are neither the stated nor the implied one.

    A row is a published cell in one reading. Where at least `FEWEST_TRIALS` of ours count, it has ``prediction_low``
    and ``prediction_high``, in which the mean of the paper's three trials lies if they are of our law, and
    ``predicted``, whether it does; ``equivalence_p`` of two one-sided tests that the difference is within the margin,
    and ``equivalent``, whether that is below 1 - level. ``cell`` is the name of ours.
    """
    cells = published_cells().rename(columns={"dataset": "published_dataset"})
    names = pd.DataFrame(published_names.items(), columns=["dataset", "published_dataset"])
    compared = cells.merge(names, on="published_dataset", how="left")
    compared["dataset"] = compared["dataset"].fillna(compared["published_dataset"])
    usual = np.where(compared["dataset"] == compared["published_dataset"], STATED, IMPLIED)
    compared["reading"] = compared["dataset"].map(readings or {}).astype(object).fillna(pd.Series(usual))
    counts = ["trials", "diverged", "first_epoch", "last_epoch"]
    ours = ["mean", "std", *counts, *(["precision"] if "precision" in summary else [])]
    compared = compared.merge(summary[[*CELL, *ours]], on=list(CELL), how="left", validate="one_to_one")
    compared = compared.astype(dict.fromkeys(counts, "Int64"))

    diverged = compared["diverged"].fillna(0).to_numpy(int)
    valid = compared["trials"].fillna(0).to_numpy(int) - diverged
    paper = Trials(compared["published_mean"], compared["published_std"], TRIALS)
    ours_valid = Trials(compared["mean"], compared["std"], valid)
    difference, low, high, verdict, reason = judge_trials(ours_valid, diverged, paper, rule)
    run = compared["trials"].notna().to_numpy()

    enough = np.where(valid >= FEWEST_TRIALS, valid, np.nan)
    tested = Trials(compared["mean"], compared["std"], enough)
    lower, upper = prediction_interval(tested, TRIALS, rule["level"])
    p_value = equivalence_p(tested, paper, rule["margin"])
    known = {"predicted": compared["published_mean"].between(lower, upper), "equivalent": p_value < 1 - rule["level"]}
    columns = ["table", "tuple_size", "n", "prior", "published_dataset", "dataset", "reading", "method", *ours]
    columns += ["published_mean", "published_std", "published_bold"]
    return compared[columns].assign(
        difference=difference,
        interval_low=low,
        interval_high=high,
        verdict=np.where(run, verdict, NOT_RUN),
        reason=np.where(run, reason, ""),
        prediction_low=lower,
        prediction_high=upper,
        equivalence_p=p_value,
        **{name: pd.Series(answers, dtype="boolean").mask(np.isnan(enough)) for name, answers in known.items()},
        cell=[cell_name(key) for key in compared[list(CELL)].to_dict("records")],
    )


def spreads(comparison: pd.DataFrame) -> pd.DataFrame:
    """Compare the deviations over trials, about which the verdicts on means say nothing, by method.

    There is no interval, because it is unknown whether the paper's cells share trials. Cells with two trials count, in
    the reading ``as stated``: ``larger``, in how many of them our deviation is the larger one; ``ours`` and ``paper``,
    root mean squares in points; their ``ratio``.
    """
    counted = comparison[comparison["std"].notna() & (comparison["reading"] == STATED)]
    rows = []
    for method, cells in counted.groupby("method", sort=False):
        ours, paper = (float(np.sqrt((cells[name] ** 2).mean())) for name in ("std", "published_std"))
        larger = int((cells["std"] > cells["published_std"]).sum())
        rows.append((method, len(cells), larger, ours, paper, ours / paper))
    return pd.DataFrame(rows, columns=["method", "cells", "larger", "ours", "paper", "ratio"])


def totals(comparison: pd.DataFrame) -> pd.DataFrame:
    """Count verdicts, predicted and equivalent cells: in all comparisons, then by each of `TOTALS`."""
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


def write_comparison(plan: Plan, summary: Path, csv: Path, json: Path) -> None:
    """Compare a plan's summary with the paper, and write the verdicts (CSV), and totals and spreads (JSON)."""
    rule = plan.config["comparison"]
    verdicts = compare(read_csv(summary), plan.published_names, rule, plan.readings)
    write_csv(verdicts, csv)
    facts = {name: count(verdicts).to_dict("records") for name, count in (("totals", totals), ("spreads", spreads))}
    write_json(json, {**facts, "rule": rule})
