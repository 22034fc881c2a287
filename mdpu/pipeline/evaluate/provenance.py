"""Each run beside what it comes from: the configuration and the reading that ask for it, key,
device, date and file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.pipeline.config import Config
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.collect import collect, find_runs, run_accuracies, summarize
from mdpu.pipeline.files import REPOSITORY, write_csv, write_table
from mdpu.pipeline.plan import AXES, Plan, Run
from mdpu.pipeline.store import Stored

PROVENANCE = ("device", "precision", "date")  # of a run's training


def write_collection(
    plan: Plan,
    files: Iterable[Path],
    metrics: Path,
    summary: Path,
    runs: Path,
) -> None:
    """Write the histories of a plan's runs as one tidy table (Parquet), and their results per cell
    and per run (CSV).

    `files` are the files of the cells, and the shipped files that hold some of their runs. Raises
    `UserError` that names the first run that is in none of them under its key.
    """
    stored_runs = find_runs(plan, files)
    collected = collect(stored_runs)
    described = describe_runs(plan, collected, stored_runs)
    write_table(collected, metrics)
    write_csv(summarize(described), summary)
    write_csv(described, runs)


def describe_runs(
    plan: Plan,
    metrics: pd.DataFrame,
    stored_runs: Mapping[Run, tuple[Stored, Path]],
) -> pd.DataFrame:
    """Return one row per run: its results, and what they come from.

    ``selection`` is the name of the configuration. ``reading`` says where the run's training
    departs from the protocol (`mdpu.pipeline.evaluate.choices`), and is empty if no reading of the
    paper asks for it. ``risk`` is that of the last epoch, missing for a run that diverged or
    estimates none; ``file`` holds the run under its ``key``.
    """
    names = reading_names(stored_runs.values(), plan.config)
    origins = []
    for run, (stored, file) in stored_runs.items():
        origin = {**_origin(run, stored), "selection": plan.config["name"], "file": _short(file)}
        origins.append({**origin, "reading": names[stored.key]})
    accuracies = run_accuracies(metrics, plan.protocol.reporting)
    last = metrics.sort_values("epoch").drop_duplicates(list(AXES), keep="last")
    reached = accuracies.merge(last[[*AXES, "risk"]], on=list(AXES), validate="one_to_one")
    described = reached.merge(pd.DataFrame(origins), on=list(AXES), validate="one_to_one")
    columns = [
        "selection",
        *AXES,
        "run",
        "reading",
        "accuracy",
        "first_epoch",
        "last_epoch",
        "risk",
        "key",
        *PROVENANCE,
        "file",
    ]
    return described[columns]


def _origin(run: Run, stored: Stored) -> dict[str, Any]:
    """Return the axes of a run, its name and key, and its `PROVENANCE`."""
    return {
        **vars(run),
        "run": run.name,
        "key": stored.key,
        "device": stored.about.get("device", ""),
        "precision": stored.precision,
        "date": stored.about.get("date", ""),
    }


def reading_names(runs: Iterable[tuple[Stored, Path]], config: Config) -> dict[str, str]:
    """Return the name of the reading that asks for each run, by its key; nothing where no reading
    does.
    """
    if not {"choices", "readings"} <= config["definitions"].keys():
        return {stored.key: "" for stored, _ in runs}
    readings = Readings(config)
    return {stored.key: readings.named_run(stored.about["asked"]) for stored, _ in runs}


def _short(file: Path) -> str:
    """Return the path of a file, relative to the repository if it is there, because tables are
    passed on.
    """
    if file.is_relative_to(REPOSITORY):
        file = file.relative_to(REPOSITORY)
    return str(file)
