"""From histories to one tidy table, then to one accuracy per run, then to mean and deviation per cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mdpu.errors import UserError
from mdpu.learn.methods import load_method
from mdpu.pipeline.cache import Finished, cache_of, identity
from mdpu.pipeline.files import read_json, read_table, write_csv, write_table
from mdpu.pipeline.plan import AXES, CELL, Plan, Run, run_columns


def finished_runs(plan: Plan) -> dict[Run, Finished]:
    """Return a plan's finished runs, in their order.

    Raises
    ------
    UserError
        If a manifest is missing or broken, or a run that it names is.
    """
    fingerprints: dict[str, str] = {}
    for name in plan.cohorts:
        fingerprints |= read_json(plan.layout.manifest(name, identity(plan, name)))["runs"]
    if missing := [run.name for run in plan.runs if run.name not in fingerprints]:
        raise UserError(f"no history of {len(missing)} runs, the first of them {missing[0]}; train them")
    finished = cache_of(plan).load(fingerprints[run.name] for run in plan.runs)
    return {run: finished[fingerprints[run.name]] for run in plan.runs}


def collect(plan: Plan) -> pd.DataFrame:
    """Return the histories of a plan's runs, one row per run and epoch, in order of run and epoch.

    Errors are those of `finished_runs`.
    """
    histories = [finished.history for finished in finished_runs(plan).values()]
    keys = pd.DataFrame(list(plan.runs)).loc[np.repeat(np.arange(len(histories)), [len(one) for one in histories])]
    rows = pd.concat(histories, ignore_index=True)
    collected = pd.concat([keys.reset_index(drop=True), rows], axis=1)
    return collected.sort_values([*AXES, "epoch"], ignore_index=True)


def read_histories(runs: Iterable[Run], metrics: Path) -> pd.DataFrame:
    """Return the histories of `runs` from the metrics that `write_collection` wrote, in order of the runs.

    Raises
    ------
    UserError
        If the file is missing or broken.
    """
    keys = pd.DataFrame(list(runs))
    near = read_table(metrics, among={axis: set(keys[axis]) for axis in AXES})
    return keys.merge(near, on=list(AXES))


# What `reported_accuracy` reads of the metrics, beside the axes.
REPORTED = ("accuracy", "true_positive_rate", "true_negative_rate")


def reported_accuracy(metrics: pd.DataFrame, test_prior: str) -> pd.Series:
    """Return the accuracy of every row of `metrics` in percent.

    Parameters
    ----------
    metrics : DataFrame
        As `collect` returns it.
    test_prior : str
        ``natural`` for the test set as it is, ``matched`` for the test set reweighted to the training prior.
    """
    accuracy = metrics["accuracy"]
    if test_prior == "matched":
        prior = metrics["prior"].astype(float)
        accuracy = prior * metrics["true_positive_rate"] + (1 - prior) * metrics["true_negative_rate"]
        is_unnamed = {name: load_method(name).unnamed for name in metrics["method"].unique()}
        accuracy = accuracy.mask(metrics["method"].map(is_unnamed), np.maximum(accuracy, 1 - accuracy))
    return 100 * accuracy


def run_accuracies(metrics: pd.DataFrame, reporting: Mapping[str, Any]) -> pd.DataFrame:
    """Return the reported accuracy of each run.

    Parameters
    ----------
    metrics : DataFrame
        As `collect` returns it.
    reporting : mapping
        ``average_last``: the number of last epochs to average, or ``all``, or ``best`` for the epoch with
        the highest accuracy, a choice that uses the test labels. ``test_prior``: as for `reported_accuracy`.

    Returns
    -------
    DataFrame
        The key columns and ``accuracy`` in percent (missing for a run that diverged), with
        ``first_epoch`` and ``last_epoch`` saying what was averaged.
    """
    shown = metrics[[*AXES, "epoch"]].assign(accuracy=reported_accuracy(metrics, reporting["test_prior"]))
    average = reporting["average_last"]
    if average == "best":
        rows = shown.sort_values(["accuracy", "epoch"], ascending=[False, True]).drop_duplicates(list(AXES))
    elif average == "all":
        rows = shown
    else:
        rows = shown[shown["epoch"] > shown.groupby(list(AXES))["epoch"].transform("max") - average]
    averages = rows.groupby(list(AXES), as_index=False).agg(
        accuracy=("accuracy", "mean"),
        measured=("accuracy", "count"),
        epochs=("accuracy", "size"),
        first_epoch=("epoch", "min"),
        last_epoch=("epoch", "max"),
    )
    # An average over fewer epochs would hide that the run diverged.
    averages["accuracy"] = averages["accuracy"].where(averages["measured"] == averages["epochs"])
    return averages.drop(columns=["measured", "epochs"])


def describe_runs(metrics: pd.DataFrame, accuracies: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Return one row per run: its results and the files that they come from.

    Returns
    -------
    DataFrame
        The key columns; ``run``, its name; ``accuracy`` in percent and the epochs that it is the mean over; ``risk`` of
        the last epoch (missing for a run that diverged or estimates none); ``cohort``; ``history``, the manifest of its
        finished runs, and ``split``, paths in the folder of results.
    """
    last = metrics.groupby(list(AXES), as_index=False)["epoch"].max().merge(metrics, on=[*AXES, "epoch"])
    places = [
        {
            **run_columns(run),
            "run": run.name,
            "cohort": cohort.name,
            "history": str(plan.layout.manifest(cohort.name, made).relative_to(plan.layout.results)),
            "split": str(plan.layout.split(run.split).relative_to(plan.layout.results)),
        }
        for cohort in plan.cohorts.values()
        for made in [identity(plan, cohort.name)]
        for run in cohort.runs
    ]
    reached = accuracies.merge(last[[*AXES, "risk"]], on=list(AXES), validate="one_to_one")
    columns = [*AXES, "run", "accuracy", "first_epoch", "last_epoch", "risk", "cohort", "history", "split"]
    return reached.merge(pd.DataFrame(places), on=list(AXES), validate="one_to_one")[columns]


def summarize(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell: ``mean`` and ``std`` (ddof = 1) in percent, ``trials`` and ``diverged``.

    A cell's mean and deviation are over the trials that did not diverge; ``better_mean`` is the mean over
    the same trials of the better of accuracy and 100 - accuracy.
    """
    accuracy = accuracies["accuracy"]
    facts = accuracies.assign(better=np.maximum(accuracy, 100 - accuracy), diverged=accuracy.isna())
    return facts.groupby(list(CELL), as_index=False).agg(
        mean=("accuracy", "mean"),
        std=("accuracy", "std"),
        better_mean=("better", "mean"),
        trials=("accuracy", "size"),
        diverged=("diverged", "sum"),
        first_epoch=("first_epoch", "min"),
        last_epoch=("last_epoch", "max"),
    )


def write_collection(plan: Plan, metrics: Path, summary: Path, runs: Path) -> None:
    """Gather the histories of a plan into one tidy table, and summarize it per cell and per run.

    Parameters
    ----------
    plan : Plan
    metrics : Path
        Parquet file to write, as `collect` returns it.
    summary, runs : Path
        CSV files to write, as `summarize` and `describe_runs` return them.

    Raises
    ------
    UserError
        If a manifest or a finished run is missing or broken.
    """
    collected = collect(plan)
    write_table(collected, metrics)
    accuracies = run_accuracies(collected, plan.protocol.reporting())
    write_csv(summarize(accuracies), summary)
    write_csv(describe_runs(collected, accuracies, plan), runs)
