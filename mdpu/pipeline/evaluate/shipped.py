"""Names of the runs that are shipped for the readings of the paper, which no experiment shows.

Such a run has a name like any other. Its variant is the training of its reading: ``replacement-without``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from mdpu.pipeline.config import BASE, Config, load_config, merge
from mdpu.pipeline.evaluate.collect import collect, run_accuracies
from mdpu.pipeline.evaluate.provenance import describe_runs
from mdpu.pipeline.evaluate.readings import PROTOCOL, Readings
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import AXES, LOGISTIC, Plan, Run
from mdpu.pipeline.store import Stored, read_runs

NAME = "readings"  # of the configuration that has these runs
MOST_SEEDS = 20
SELECTIONS = ("reference", "own-split", "laws")  # the files of config/ whose shipped runs are kept, the first first


def variant_of(training: str) -> str:
    """Return the name of the variant that trains what a reading needs, by `Readings.training`."""
    return BASE if training == PROTOCOL else training.replace(", ", "-").replace(" ", "-")


def reading_config(run: Run) -> Config:
    """Return a configuration whose only experiment is the cell of a run of some reading, with `MOST_SEEDS` trials."""
    config = load_config()
    readings = Readings(config)
    variants: dict[str, Config | None] = {BASE: None}
    for training, reading in readings.trainings.items():
        change = readings.changes(reading)["protocol"]
        variants[variant_of(training)] = {key: change[key] for key in ("sampling", "training") if key in change} or None
    experiment = {"kind": "table", "title": "A cell of a reading", "seed": list(range(1, MOST_SEEDS + 1)), "n": run.n}
    for axis in ("variant", "tuple_size", "method", "loss", "law"):
        experiment[axis] = [getattr(run, axis)]
    experiment["prior"] = [float(run.prior)]
    overlay = {"name": NAME, "datasets": [run.dataset], "experiments": ["cell"]}
    definitions = {**config["definitions"], "variants": variants, "experiments": {"cell": experiment}}
    return {**merge(config, overlay), "definitions": definitions}


def reading_plan(run: Run) -> Plan | None:
    """Return a plan with the cell of `run` and its shipped trials, None if no trial of it is shipped."""
    config = reading_config(run)
    known = config["definitions"]
    if run.dataset not in known["datasets"] or run.variant not in known["variants"]:
        return None
    plan = Plan(config)
    seeds = [one.seed for one in plan.runs if plan.key(one) in plan.shipped]
    if not seeds:
        return None
    known["experiments"]["cell"]["seed"] = seeds
    return Plan(config)


def shipped_runs(folder: Path) -> pd.DataFrame:
    """Return one row per packed run of a folder: a run's own columns, beside ``selection``, the configuration's name.

    A run of several selections is the first one's; a run of none is that of a reading.
    """
    stored: dict[str, tuple[Stored, Path]] = {}
    for file in sorted(folder.glob("*.parquet"), key=lambda path: path.stem):
        stored |= {key: (run, file) for key, run in read_runs(file).items()}
    tables = []
    for name in SELECTIONS:
        plan = Plan(load_config([REPOSITORY / "config" / f"{name}.yaml"]))
        keys = {run: str(plan.key(run)) for run in plan.runs}
        found = {run: stored.pop(key) for run, key in keys.items() if key in stored}
        tables.append(_described(found, plan))
    plan = Plan({**load_config(), "name": NAME})
    tables.append(_described(dict(_named(stored.values(), Readings(plan.config))), plan))
    return pd.concat([table for table in tables if len(table)], ignore_index=True)


def _described(found: dict[Run, tuple[Stored, Path]], plan: Plan) -> pd.DataFrame:
    if not found:
        return pd.DataFrame()
    metrics = collect(found)
    return describe_runs(metrics, run_accuracies(metrics, plan.protocol.reporting), found, plan.config)


def _named(runs: Iterable[tuple[Stored, Path]], readings: Readings) -> Iterator[tuple[Run, tuple[Stored, Path]]]:
    """Yield the runs of readings by their names."""
    for stored, file in runs:
        if axes := readings.axes(stored.about["asked"]):
            method, _, loss = axes["method"].partition(".")
            named = {"variant": variant_of(axes["variant"]), "method": method, "loss": loss or LOGISTIC}
            values = {**axes, **named}
            yield Run(**{axis: values[axis] for axis in AXES}), (stored, file)
