"""Each run beside what it comes from: the configuration and the reading that ask for it, key, device, date and file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.config import Config
from mdpu.pipeline.evaluate.collect import collect, find_runs, run_accuracies, summarize
from mdpu.pipeline.evaluate.readings import Readings
from mdpu.pipeline.files import REPOSITORY, write_csv, write_table
from mdpu.pipeline.plan import AXES, Plan, Run
from mdpu.pipeline.store import Stored

PROVENANCE = ("device", "precision", "date")  # facts that a stored run carries


def write_collection(plan: Plan, files: Iterable[Path], metrics: Path, summary: Path, runs: Path) -> None:
    """Write the histories of a plan's runs as one tidy table (Parquet), and their results per cell and per run (CSV).

    `files` are the files of the cells, and the shipped files that hold some of their runs. Raises `UserError` that
    names the first run that is in none of them under its key.
    """
    found = find_runs(plan, files)
    collected = collect(found)
    accuracies = run_accuracies(collected, plan.protocol.reporting)
    described = describe_runs(collected, accuracies, found, plan.config)
    write_table(collected, metrics)
    write_csv(summarize(described), summary)
    write_csv(described, runs)


def describe_runs(
    metrics: pd.DataFrame, accuracies: pd.DataFrame, found: Mapping[Run, tuple[Stored, Path]], config: Config
) -> pd.DataFrame:
    """Return one row per run: its results, and what they come from.

    ``selection`` is the name of the configuration. ``reading`` says where the run's training departs from the protocol
    (`mdpu.pipeline.evaluate.readings`), and is empty if no reading of the paper asks for it. ``risk`` is that of the
    last epoch, missing for a run that diverged or estimates none; ``file`` holds the run under its ``key``.
    """
    names = reading_names(found.values(), config)
    last = metrics.sort_values("epoch").drop_duplicates(list(AXES), keep="last")
    reached = accuracies.merge(last[[*AXES, "risk"]], on=list(AXES), validate="one_to_one")
    places = [
        {**vars(run), "selection": config["name"], "run": run.name, "key": stored.key, "file": _short(file)}
        | {"reading": names[stored.key]}
        | {name: stored.about.get(name, "") for name in PROVENANCE}
        | ({} if load_method(run.method).objective else {"precision": "float32"})  # of matrix products: it has none
        for run, (stored, file) in found.items()
    ]
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
    return reached.merge(pd.DataFrame(places), on=list(AXES), validate="one_to_one")[columns]


def reading_names(runs: Iterable[tuple[Stored, Path]], config: Config) -> dict[str, str]:
    """Return the name of the reading that asks for each run, by its key; nothing where no reading does."""
    definitions = config["definitions"]
    readings = Readings(config) if {"choices", "readings"} <= definitions.keys() else None
    return {stored.key: readings.named_run(stored.about["asked"]) if readings else "" for stored, _ in runs}


def _short(file: Path) -> str:
    """Return the path of a file, relative to the repository if it is there, because tables are passed on."""
    return str(file.relative_to(REPOSITORY) if file.is_relative_to(REPOSITORY) else file)
