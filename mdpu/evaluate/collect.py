"""From histories to one tidy table, to one accuracy per run, to mean and deviation per cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mdpu.errors import UserError
from mdpu.experiment import AXES, CELL, Plan, Run, run_columns
from mdpu.files import read_table
from mdpu.learn.methods import load_method


def collect(paths: Iterable[Path], runs: Iterable[Run]) -> pd.DataFrame:
    """Return the histories of `runs`, one row per run and epoch, in order of run and epoch.

    Raises
    ------
    UserError
        If a file is missing or broken, or a run has no history in any of them.
    """
    histories = pd.concat([read_table(path) for path in paths], ignore_index=True)
    wanted = pd.DataFrame(list(runs), columns=list(AXES))
    found = wanted.merge(histories, on=list(AXES), how="left", validate="one_to_many")
    missing = found.loc[found["epoch"].isna(), list(AXES)]
    if len(missing):
        first = Run(*missing.iloc[0]).name
        raise UserError(f"no history of {len(missing)} runs, the first of them {first}; train them")
    return found.astype({"epoch": "int64"}).sort_values([*AXES, "epoch"], ignore_index=True)


def run_accuracies(metrics: pd.DataFrame, reporting: Mapping[str, Any]) -> pd.DataFrame:
    """Return the reported accuracy of each run.

    Parameters
    ----------
    metrics : DataFrame
        As `collect` returns it.
    reporting : mapping
        ``average_last``, the number of last epochs averaged, or ``all``, or ``best`` for the epoch with
        the highest accuracy, which is chosen by the test set's labels; and ``test_prior``: ``natural``
        for the test set as it is, ``matched`` for a test set reweighted to the training prior.

    Returns
    -------
    DataFrame
        The key columns and ``accuracy`` in percent (missing for a run that diverged), with
        ``first_epoch`` and ``last_epoch`` saying what was averaged.
    """
    accuracy = metrics["accuracy"]
    if reporting["test_prior"] == "matched":
        prior = metrics["prior"].astype(float)
        accuracy = prior * metrics["true_positive_rate"] + (1 - prior) * metrics["true_negative_rate"]
        unnamed = metrics["method"].map(lambda name: load_method(name).unnamed)
        accuracy = accuracy.mask(unnamed, np.maximum(accuracy, 1 - accuracy))
    shown = metrics.assign(accuracy=100 * accuracy)
    average = reporting["average_last"]
    if average == "best":
        rows = shown.sort_values(["accuracy", "epoch"], ascending=[False, True]).drop_duplicates(list(AXES))
    elif average == "all":
        rows = shown
    else:
        rows = shown[shown["epoch"] > shown.groupby(list(AXES))["epoch"].transform("max") - average]
    grouped = rows.groupby(list(AXES), as_index=False)
    return grouped.agg(
        accuracy=("accuracy", lambda values: values.mean(skipna=False)),
        first_epoch=("epoch", "min"),
        last_epoch=("epoch", "max"),
    )


def describe_runs(metrics: pd.DataFrame, accuracies: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Return one row per run: what it reached and the files that it came from.

    Returns
    -------
    DataFrame
        The key columns; ``run``, its name; ``accuracy`` in percent and the epochs that it is the mean over; ``risk`` of
        the last epoch (missing for a run that diverged or estimates none); ``cohort``; ``history`` and ``split``, paths
        in the folder of results.
    """
    last = metrics.groupby(list(AXES), as_index=False)["epoch"].max().merge(metrics, on=[*AXES, "epoch"])
    places = [
        {
            **run_columns(run),
            "run": run.name,
            "cohort": cohort.name,
            "history": str(plan.history(cohort.name).relative_to(plan.results)),
            "split": str(plan.split(run.split).relative_to(plan.results)),
        }
        for cohort in plan.cohorts.values()
        for run in cohort.runs
    ]
    found = accuracies.merge(last[[*AXES, "risk"]], on=list(AXES), validate="one_to_one")
    columns = [*AXES, "run", "accuracy", "first_epoch", "last_epoch", "risk", "cohort", "history", "split"]
    return found.merge(pd.DataFrame(places), on=list(AXES), validate="one_to_one")[columns]


def summarize(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell: ``mean`` and ``std`` (ddof = 1) in percent, ``trials`` and ``diverged``.

    A cell's mean and deviation are over the trials that did not diverge; ``better_mean`` is the mean over
    the same trials of the better of accuracy and 100 - accuracy.
    """
    grouped = accuracies.groupby(list(CELL), as_index=False)
    return grouped.agg(
        mean=("accuracy", "mean"),
        std=("accuracy", "std"),
        better_mean=("accuracy", lambda values: np.maximum(values, 100 - values).mean()),
        trials=("accuracy", "size"),
        diverged=("accuracy", lambda values: int(np.isnan(values).sum())),
        first_epoch=("first_epoch", "min"),
        last_epoch=("last_epoch", "max"),
    )
