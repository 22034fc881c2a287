"""A verdict for every published number, from one rule that was fixed beforehand; docs/comparison.md explains it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mdpu.evaluate.published import TRIALS, published_cells
from mdpu.files import provenance, read_csv, write_csv, write_json
from mdpu.study.grid import CELL, cell_name
from mdpu.study.plan import Plan

REPRODUCED, CLOSE, DIFFERS, NOT_RUN = VERDICTS = ("reproduced", "close", "differs", "not run")

# Why a verdict was given; the rule's cases in the order in which they are tried.
ALL_DIVERGED = "every trial diverged"
NO_INTERVAL = "no interval: by the margins alone"
INSIDE = "whole interval within the margin"
NEAR = "within the margin, and the interval holds zero"
WIDER = "within the wider margin"
TOO_NOISY = "beyond the wider margin, but the interval holds zero: too noisy to tell"
BEYOND = "beyond the wider margin, and the interval excludes zero"
SOME_DIVERGED = "a trial diverged"

STATED, IMPLIED = "as stated", "as the numbers imply"  # readings of a dataset

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
    first, second = (
        np.where(np.asarray(n) > 1, np.square(np.asarray(s, float)) / n, np.nan)
        for s, n in ((std, trials), (other_std, other_trials))
    )
    difference = np.asarray(mean, float) - np.asarray(other_mean, float)
    variance = first + second
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = variance**2 / (first**2 / (np.asarray(trials) - 1.0) + second**2 / (np.asarray(other_trials) - 1.0))
        half = stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(variance)
    half = np.where(variance == 0, 0.0, half)
    return difference - half, difference + half


def judge(
    difference: ArrayLike, low: ArrayLike, high: ArrayLike, margin: float, wider_margin: float
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Return verdict and reason of differences that were measured, elementwise.

    Parameters
    ----------
    difference, low, high : array_like
        Ours minus the paper's, and the ends of its interval, in points; ends may be missing.
    margin, wider_margin : float
        In points.

    Returns
    -------
    verdict, reason : ndarray of str
        *reproduced*: within the margin, and the interval holds zero or lies within the margin.
        *close*: else within the wider margin, or beyond it with an interval that holds zero.
        *differs*: beyond the wider margin with an interval that excludes zero. Where there is no interval
        the two margins decide alone.
    """
    difference, low, high = (np.asarray(values, float) for values in (difference, low, high))
    size = np.abs(difference)
    no_interval = np.isnan(low)
    holds_zero = (low <= 0) & (high >= 0)
    cases = [
        (no_interval & (size <= margin), REPRODUCED, NO_INTERVAL),
        (no_interval & (size <= wider_margin), CLOSE, NO_INTERVAL),
        (no_interval, DIFFERS, NO_INTERVAL),
        ((low >= -margin) & (high <= margin), REPRODUCED, INSIDE),
        ((size <= margin) & holds_zero, REPRODUCED, NEAR),
        (size <= wider_margin, CLOSE, WIDER),
        (holds_zero, CLOSE, TOO_NOISY),
    ]
    conditions = [case[0] for case in cases]
    verdict = np.select(conditions, [np.full(size.shape, case[1], dtype=object) for case in cases], DIFFERS)
    reason = np.select(conditions, [np.full(size.shape, case[2], dtype=object) for case in cases], BEYOND)
    return verdict, reason


def compare(summary: pd.DataFrame, published_names: Mapping[str, str], rule: Mapping[str, float]) -> pd.DataFrame:
    """Put each of the 504 published cells beside ours, in every reading of its dataset, with a verdict.

    Parameters
    ----------
    summary : DataFrame
        As `mdpu.evaluate.collect.summarize` returns it; variant ``base`` and the logistic loss count.
    published_names : mapping
        Of every defined dataset to the published row that it is compared with.
    rule : mapping
        ``level``, ``margin`` and ``wider_margin``, the configuration's ``comparison``.

    Returns
    -------
    DataFrame
        One row per published cell and reading: table, tuple_size, n, prior, published_dataset, dataset,
        reading (``as stated`` or ``as the numbers imply``), method; ours (mean, std, trials, diverged,
        first_epoch, last_epoch), the paper's, difference, interval_low, interval_high, verdict and reason;
        ``cell``, the name of ours.
    """
    cells = published_cells().rename(columns={"dataset": "published_dataset"})
    names = [(theirs, ours) for ours, theirs in published_names.items() if theirs in set(cells["published_dataset"])]
    readings = pd.DataFrame(names, columns=["published_dataset", "dataset"])
    wanted = cells.merge(readings, on="published_dataset", how="left").assign(variant="base", loss="logistic")
    wanted["dataset"] = wanted["dataset"].fillna(wanted["published_dataset"])
    stated = wanted["dataset"] == wanted["published_dataset"]
    wanted["reading"] = np.where(stated, STATED, IMPLIED)
    ours = ["mean", "std", "trials", "diverged", "first_epoch", "last_epoch"]
    found = wanted.merge(summary[[*CELL, *ours]], on=list(CELL), how="left", validate="one_to_one")
    counts = ["trials", "diverged", "first_epoch", "last_epoch"]
    found = found.astype(dict.fromkeys(counts, "Int64"))
    run = found["trials"].notna().to_numpy()
    diverged = found["diverged"].fillna(0).to_numpy(int)
    valid = found["trials"].fillna(0).to_numpy(int) - diverged
    found["difference"] = found["mean"] - found["published_mean"]
    found["interval_low"], found["interval_high"] = welch_interval(
        found["mean"],
        found["std"],
        valid,
        found["published_mean"],
        found["published_std"],
        TRIALS,
        rule["level"],
    )
    verdict, reason = judge(
        found["difference"], found["interval_low"], found["interval_high"], rule["margin"], rule["wider_margin"]
    )
    lucky = (verdict == REPRODUCED) & (diverged > 0)  # only the trials that went well agree
    verdict[lucky], reason[lucky] = CLOSE, SOME_DIVERGED
    lost = run & (valid == 0)
    verdict[lost], reason[lost] = DIFFERS, ALL_DIVERGED
    verdict[~run], reason[~run] = NOT_RUN, ""
    columns = ["table", "tuple_size", "n", "prior", "published_dataset", "dataset", "reading", "method", *ours]
    columns += ["published_mean", "published_std", "published_bold", "difference", "interval_low", "interval_high"]
    keys = found[list(CELL)].to_dict("records")
    return found[columns].assign(verdict=verdict, reason=reason, cell=[cell_name(key) for key in keys])


def spreads(comparison: pd.DataFrame, level: float) -> pd.DataFrame:
    """Compare the deviations over trials, which the verdicts on means say nothing of.

    Parameters
    ----------
    comparison : DataFrame
        As `compare` returns it; cells with at least two trials count, in the reading ``as stated``.
    level : float
        Coverage of the interval.

    Returns
    -------
    DataFrame
        One row per method with such cells: ``cells``; ``ours`` and ``paper``, the deviations pooled over them, in
        points; their ``ratio``, and its interval ``low``, ``high`` by the F law of a ratio of variances.
    """
    trials = (comparison["trials"] - comparison["diverged"]).fillna(0).astype(int)
    counted = comparison.assign(valid=trials)[(trials > 1) & (comparison["reading"] == STATED)]
    rows = []
    for method, cells in counted.groupby("method", sort=False):
        ours, paper = (cells["valid"] - 1).to_numpy(), np.full(len(cells), TRIALS - 1)
        pooled = [
            math.sqrt(np.average(cells[name].to_numpy() ** 2, weights=freedom))
            for name, freedom in (("std", ours), ("published_std", paper))
        ]
        ratio = pooled[0] / pooled[1]
        ends = stats.f.ppf([(1 + level) / 2, (1 - level) / 2], ours.sum(), paper.sum())
        low, high = ratio / np.sqrt(ends)
        rows.append((method, len(cells), *pooled, ratio, low, high))
    return pd.DataFrame(rows, columns=["method", "cells", "ours", "paper", "ratio", "low", "high"])


def totals(comparison: pd.DataFrame) -> pd.DataFrame:
    """Count verdicts: one row for all comparisons, then one per reading, method, dataset, prior and table.

    Returns
    -------
    DataFrame
        by, value, one column per verdict, and ``too_noisy``, how many of the close ones are so only because
        their interval holds zero.
    """
    groups: list[tuple[str, object, pd.DataFrame]] = [("all", "all", comparison)]
    groups += [(by, value, group) for by in TOTALS for value, group in comparison.groupby(by, sort=False)]
    return pd.DataFrame(
        [
            {
                "by": by,
                "value": value,
                **{verdict: int((group["verdict"] == verdict).sum()) for verdict in VERDICTS},
                "too_noisy": int((group["reason"] == TOO_NOISY).sum()),
            }
            for by, value, group in groups
        ]
    )


def write_comparison(plan: Plan, summary: Path, out: Path) -> None:
    """Compare the cells of a summary with the paper's, and write the verdicts as CSV with totals (.json) beside them.

    Raises
    ------
    UserError
        If the summary, as `mdpu.evaluate.collect.write_collection` writes it, is missing or broken.
    """
    started = time.perf_counter()
    rule = plan.config["comparison"]
    verdicts = compare(read_csv(summary), plan.published_names, rule)
    write_csv(verdicts, out)
    facts = {
        "totals": totals(verdicts).to_dict("records"),
        "spreads": spreads(verdicts, rule["level"]).to_dict("records"),
    }
    write_json(out.with_suffix(".json"), {**facts, **provenance(started, [summary], rule=rule)})
