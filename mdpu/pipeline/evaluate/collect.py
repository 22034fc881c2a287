"""From histories to one tidy table, then to one accuracy per run, then to mean and deviation per
cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mdpu.errors import UserError
from mdpu.methods import load_method
from mdpu.pipeline.files import read_table
from mdpu.pipeline.job import MEASURES
from mdpu.pipeline.plan import AXES, CELL, Plan, Run
from mdpu.pipeline.store import Stored, read_runs

# Columns of the metrics that `reported_accuracy` reads, beside the axes.
REPORTED = ("accuracy", "true_positive_rate", "true_negative_rate")
POINTS = 20  # of a curve that a page shows
MIXED = "mixed precisions"  # the precision of a cell whose runs differ in it


def find_runs(plan: Plan, files: Iterable[Path]) -> dict[Run, tuple[Stored, Path]]:
    """Return each run of a plan, in its order, as it is stored, and the file that holds it.

    If two files hold it, a cell's own file counts, and of packed files the one with the longer
    name: ``mnist-2`` has later runs than ``mnist``.
    """
    keys = {run: str(plan.key(run)) for run in plan.runs}
    wanted = set(keys.values())
    stored: dict[str, tuple[Stored, Path]] = {}
    for file in sorted(set(map(Path, files)), key=_precedence, reverse=True):
        missing = wanted - stored.keys()
        if missing:
            stored |= {key: (run, file) for key, run in read_runs(file, missing).items()}

    absent = [run for run, key in keys.items() if key not in stored]
    if absent:
        first = absent[0]
        raise UserError(
            f"no file holds {len(absent)} of {len(keys)} runs, the first of them {first.name} "
            f"(key {keys[first]}); train them: ask Snakemake for {plan.layout.run_file(first.cell)}"
        )
    return {run: stored[key] for run, key in keys.items()}


def _precedence(file: Path) -> tuple[bool, str]:
    """Return what orders files: of two that hold a run, the later one counts."""
    is_packed = file.with_suffix(".keys").exists()
    return not is_packed, file.stem


def collect(stored_runs: Mapping[Run, tuple[Stored, Path]]) -> pd.DataFrame:
    """Return the histories of runs, one row per run and epoch, in order of run and epoch."""
    histories = [stored.history for stored, _ in stored_runs.values()]
    metrics = join_histories(pd.DataFrame(list(stored_runs)), histories)
    for name in (*MEASURES, "risk"):
        if name not in metrics:
            metrics[name] = np.nan  # as of baselines, none of which has it
    return metrics.sort_values([*AXES, "epoch"], ignore_index=True)


def join_histories(keys: pd.DataFrame, histories: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return histories of runs as one table, each with its run's row of `keys` beside it."""
    places = np.repeat(np.arange(len(keys)), [len(history) for history in histories])
    rows = pd.concat(histories, ignore_index=True)
    return pd.concat([keys.iloc[places].reset_index(drop=True), rows], axis=1)


def read_histories(runs: Iterable[Run], metrics: Path) -> pd.DataFrame:
    """Return the histories of `runs` from the metrics that `write_collection` wrote, in order of
    the runs.
    """
    return pd.DataFrame(list(runs)).merge(read_table(metrics), on=list(AXES))


def reported_accuracy(metrics: pd.DataFrame, test_prior: str) -> pd.Series:
    """Return the accuracy of every row of the metrics in percent.

    `test_prior` is ``natural`` for the test set as it is, ``matched`` for the test set reweighted
    to the training prior. The name of a method may have its loss: ``ure.hinge``.
    """
    accuracy = metrics["accuracy"]
    if test_prior == "matched":
        prior = metrics["prior"].astype(float)
        positive = prior * metrics["true_positive_rate"]
        accuracy = positive + (1 - prior) * metrics["true_negative_rate"]
        methods = metrics["method"].str.split(".").str[0]
        is_unnamed = {name: load_method(name).unnamed for name in methods.unique()}
        better = np.maximum(accuracy, 1 - accuracy)
        accuracy = accuracy.mask(methods.map(is_unnamed), better)
    return 100 * accuracy


def number_of_trials(counts: Iterable[float]) -> str:
    """Return numbers of trials in words: ``3 trials``, or ``3 to 5 trials``."""
    numbers = sorted(set(map(int, counts)))
    trials = "trial" if numbers == [1] else "trials"
    return f"{span_of(numbers)} {trials}"


def span_of(numbers: Sequence[int]) -> str:
    """Return the least and the most of some numbers: ``3``, or ``3 to 5``."""
    least = min(numbers)
    most = max(numbers)
    return str(most) if least == most else f"{least} to {most}"


def run_accuracies(metrics: pd.DataFrame, reporting: Mapping[str, Any]) -> pd.DataFrame:
    """Return the reported accuracy of each run in percent, missing if it diverged, and the epochs
    that it averages.

    `reporting` has ``average_last``, the number of last epochs to average, or ``all``, or ``best``
    for the epoch with the highest accuracy, a choice that uses the test labels; and ``test_prior``,
    as for `reported_accuracy`.
    """
    accuracy = reported_accuracy(metrics, reporting["test_prior"])
    epochs = metrics[[*AXES, "epoch"]].assign(accuracy=accuracy, diverged=accuracy.isna())
    epochs["diverged"] = epochs.groupby(list(AXES))["diverged"].transform("any")
    averages = (
        _averaged_epochs(epochs, reporting["average_last"])
        .groupby(list(AXES), as_index=False)
        .agg(
            accuracy=("accuracy", "mean"),
            diverged=("diverged", "any"),
            first_epoch=("epoch", "min"),
            last_epoch=("epoch", "max"),
        )
    )
    # An average over fewer epochs, or the best of them, would hide that the run diverged.
    averages["accuracy"] = averages["accuracy"].mask(averages["diverged"])
    return averages.drop(columns="diverged")


def _averaged_epochs(epochs: pd.DataFrame, average_last: Any) -> pd.DataFrame:
    """Return the epochs of each run that its reported accuracy averages."""
    if average_last == "all":
        return epochs
    if average_last == "best":
        ranked = epochs.sort_values(["accuracy", "epoch"], ascending=[False, True])
        return ranked.drop_duplicates(list(AXES))
    last = epochs.groupby(list(AXES))["epoch"].transform("max")
    return epochs[epochs["epoch"] > last - average_last]


def spread_evenly(count: int) -> NDArray[np.int_]:
    """Return up to `POINTS` of so many places, from the first to the last."""
    return np.unique(np.linspace(0, count - 1, POINTS).round().astype(int))


def epochs_in_words(rows: pd.DataFrame, average_last: object) -> str:
    """Return which epochs the accuracies of runs or cells average, by `average_last` of the
    reporting.
    """
    if average_last == "best":
        return "at its epoch of highest test accuracy, which is chosen by the test labels"
    return f"averaged over epochs {rows['first_epoch'].min():.0f} to {rows['last_epoch'].max():.0f}"


def cells_of(runs: Iterable[Run], described: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of some runs alone, in their order, as `summarize` does; `described` may
    have further trials of them.
    """
    keys = pd.DataFrame(list(runs))
    cells = summarize(described.merge(keys, on=list(AXES)))
    in_order = keys.drop(columns="seed").drop_duplicates()
    return in_order.merge(cells, on=list(CELL), how="left", validate="one_to_one")


def summarize(accuracies: pd.DataFrame, keys: Sequence[str] = CELL) -> pd.DataFrame:
    """Return ``mean`` and ``std`` (ddof = 1) in percent of each cell's trials that did not diverge,
    by its keys.

    ``trials`` counts those that diverged too. ``precision``, if the runs have it, is theirs or
    `MIXED`.
    """
    columns: dict[str, Any] = {
        "mean": ("accuracy", "mean"),
        "std": ("accuracy", "std"),
        "trials": ("accuracy", "size"),
        "diverged": ("accuracy", lambda values: values.isna().sum()),
        "first_epoch": ("first_epoch", "min"),
        "last_epoch": ("last_epoch", "max"),
    }
    if "precision" in accuracies:
        columns["precision"] = ("precision", _common_precision)
    return accuracies.groupby(list(keys), as_index=False).agg(**columns)


def _common_precision(precisions: pd.Series) -> str:
    """Return the precision of a cell's runs, or `MIXED`."""
    if precisions.nunique() == 1:
        return str(precisions.iloc[0])
    return MIXED
