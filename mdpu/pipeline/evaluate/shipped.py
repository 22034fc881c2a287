"""Names of the runs that are shipped for the readings of the paper, which no experiment shows.

Such a run has a name like any other. Its variant is the training of its reading:
``replacement-without``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from mdpu.pipeline.config import BASE, Config, load_config, merge
from mdpu.pipeline.evaluate.choices import PROTOCOL, Readings
from mdpu.pipeline.evaluate.collect import collect
from mdpu.pipeline.evaluate.provenance import describe_runs
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import LOGISTIC, Plan, Run
from mdpu.pipeline.store import Stored, read_runs

NAME = "readings"  # of the configuration that has these runs
MOST_SEEDS = 20
# the files of config/ whose shipped runs are kept, the first first
SELECTIONS = ("reference", "own-split", "laws")


def variant_of(training: str) -> str:
    """Return the name of the variant that trains what a reading needs, by `Readings.training`."""
    if training == PROTOCOL:
        return BASE
    return training.replace(", ", "-").replace(" ", "-")


def reading_config(run: Run) -> Config:
    """Return a configuration whose only experiment is the cell of a run of some reading, with
    `MOST_SEEDS` trials.
    """
    config = load_config()
    trainings = Readings(config).variants.items()
    variants = {variant_of(training): changes or None for training, changes in trainings}
    experiment: Config = {
        "kind": "table",
        "title": "A cell of a reading",
        "seed": list(range(1, MOST_SEEDS + 1)),
        "n": run.n,
        "prior": [float(run.prior)],
    }
    for axis in ("variant", "tuple_size", "method", "loss", "law"):
        experiment[axis] = [getattr(run, axis)]

    overlay = {"name": NAME, "datasets": [run.dataset], "experiments": ["cell"]}
    of_cell = {"variants": variants, "experiments": {"cell": experiment}}
    return {**merge(config, overlay), "definitions": {**config["definitions"], **of_cell}}


def reading_plan(run: Run) -> Plan | None:
    """Return a plan with the cell of `run` and its shipped trials.

    It is None if no reading asks for the cell, or no trial of it is shipped.
    """
    config = reading_config(run)
    known = config["definitions"]
    if run.dataset not in known["datasets"] or run.variant not in known["variants"]:
        return None
    if run.loss not in known["choices"]["loss"]["values"]:
        return None
    plan = Plan(config)
    seeds = [trial.seed for trial in plan.runs if plan.key(trial) in plan.shipped]
    if not seeds:
        return None
    known["experiments"]["cell"]["seed"] = seeds
    return Plan(config)


def shipped_runs(folder: Path) -> pd.DataFrame:
    """Return one row per packed run of a folder: a run's own columns, beside ``selection``, the
    configuration's name.

    A run of several selections is the first one's; a run of none is that of a reading.
    """
    stored: dict[str, tuple[Stored, Path]] = {}
    for file in sorted(folder.glob("*.parquet"), key=lambda path: path.stem):
        for key, shipped in read_runs(file).items():
            stored[key] = (shipped, file)
    tables = []
    for name in SELECTIONS:
        file = REPOSITORY / "config" / f"{name}.yaml"
        plan = Plan(load_config([file]))
        selected = {}
        for run in plan.runs:
            key = str(plan.key(run))
            if key in stored:
                selected[run] = stored.pop(key)
        tables.append(_described(selected, plan))

    plan = Plan({**load_config(), "name": NAME})
    rest = dict(_runs_of_readings(stored.values(), Readings(plan.config)))
    tables.append(_described(rest, plan))
    described = [table for table in tables if len(table)]
    return pd.concat(described, ignore_index=True)


def _described(stored_runs: dict[Run, tuple[Stored, Path]], plan: Plan) -> pd.DataFrame:
    """Return one row per run of a plan, as `describe_runs` does."""
    if not stored_runs:
        return pd.DataFrame()
    return describe_runs(plan, collect(stored_runs), stored_runs)


def _runs_of_readings(
    runs: Iterable[tuple[Stored, Path]],
    readings: Readings,
) -> Iterator[tuple[Run, tuple[Stored, Path]]]:
    """Yield the runs of readings by their names."""
    for stored, file in runs:
        axes = readings.axes(stored.about["asked"])
        if axes is None:
            continue
        method, _, loss = axes["method"].partition(".")
        variant = variant_of(axes["variant"])
        named = {**axes, "variant": variant, "method": method, "loss": loss or LOGISTIC}
        yield Run(**named), (stored, file)
