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
from mdpu.pipeline.plan import AXES, CELL, Plan, Run


def finished_runs(plan: Plan) -> dict[Run, Finished]:
    """Return a plan's finished runs, in their order; raise `UserError` if a manifest or a run is missing or broken."""
    fingerprints: dict[str, str] = {}
    for name in plan.jobs:
        fingerprints |= read_json(plan.layout.manifest(name, identity(plan, name)))["runs"]
    if missing := [run.name for run in plan.runs if run.name not in fingerprints]:
        raise UserError(f"no history of {len(missing)} runs, the first of them {missing[0]}; train them")
    finished = cache_of(plan).load(fingerprints[run.name] for run in plan.runs)
    return {run: finished[fingerprints[run.name]] for run in plan.runs}


def collect(plan: Plan) -> pd.DataFrame:
    """Return the histories of a plan's runs, one row per run and epoch, in order of run and epoch."""
    histories = [finished.history for finished in finished_runs(plan).values()]
    keys = pd.DataFrame(list(plan.runs)).loc[np.repeat(np.arange(len(histories)), [len(one) for one in histories])]
    rows = pd.concat(histories, ignore_index=True)
    collected = pd.concat([keys.reset_index(drop=True), rows], axis=1)
    return collected.sort_values([*AXES, "epoch"], ignore_index=True)


def read_histories(runs: Iterable[Run], metrics: Path) -> pd.DataFrame:
    """Return the histories of `runs` from the metrics that `write_collection` wrote, in order of the runs."""
    keys = pd.DataFrame(list(runs))
    near = read_table(metrics, among={axis: set(keys[axis]) for axis in AXES})
    return keys.merge(near, on=list(AXES))


# What `reported_accuracy` reads of the metrics, beside the axes.
REPORTED = ("accuracy", "true_positive_rate", "true_negative_rate")


def reported_accuracy(metrics: pd.DataFrame, test_prior: str) -> pd.Series:
    """Return the accuracy of every row of the metrics in percent.

    `test_prior` is ``natural`` for the test set as it is, ``matched`` for the test set reweighted to the training
    prior.
    """
    accuracy = metrics["accuracy"]
    if test_prior == "matched":
        prior = metrics["prior"].astype(float)
        accuracy = prior * metrics["true_positive_rate"] + (1 - prior) * metrics["true_negative_rate"]
        is_unnamed = {name: load_method(name).unnamed for name in metrics["method"].unique()}
        accuracy = accuracy.mask(metrics["method"].map(is_unnamed), np.maximum(accuracy, 1 - accuracy))
    return 100 * accuracy


def run_accuracies(metrics: pd.DataFrame, reporting: Mapping[str, Any]) -> pd.DataFrame:
    """Return the reported accuracy of each run in percent, missing if it diverged, and the epochs that it averages.

    `reporting` has ``average_last``, the number of last epochs to average, or ``all``, or ``best`` for the epoch with
    the highest accuracy, a choice that uses the test labels; and ``test_prior``, as for `reported_accuracy`.
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

    ``risk`` is that of the last epoch, missing for a run that diverged or estimates none. ``history``, the manifest of
    its finished runs, and ``split`` are paths in the folder of results.
    """
    last = metrics.sort_values("epoch").drop_duplicates(list(AXES), keep="last")
    layout, places = plan.layout, []
    for job in plan.jobs.values():
        manifest = str(layout.manifest(job.name, identity(plan, job.name)).relative_to(layout.results))
        for run in job.runs:
            split = str(layout.split(run.split).relative_to(layout.results))
            places.append({**vars(run), "run": run.name, "job": job.name, "history": manifest, "split": split})
    reached = accuracies.merge(last[[*AXES, "risk"]], on=list(AXES), validate="one_to_one")
    columns = [*AXES, "run", "accuracy", "first_epoch", "last_epoch", "risk", "job", "history", "split"]
    return reached.merge(pd.DataFrame(places), on=list(AXES), validate="one_to_one")[columns]


def summarize(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return ``mean`` and ``std`` (ddof = 1) in percent of each cell's trials that did not diverge.

    ``better_mean`` is the mean of the better of accuracy and 100 - accuracy. ``trials`` counts those that diverged too.
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


def write_collection(plan: Plan) -> None:
    """Write the histories of a plan as one tidy table (Parquet), and their results per cell and per run (CSV)."""
    collected = collect(plan)
    write_table(collected, plan.layout.metrics)
    accuracies = run_accuracies(collected, plan.protocol.reporting())
    write_csv(summarize(accuracies), plan.layout.summary)
    write_csv(describe_runs(collected, accuracies, plan), plan.layout.runs)
