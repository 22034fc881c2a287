"""The paper's numbers under every reading that was tried: what the page judges by, and counts of the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mdpu.pipeline.config import BASE, merge
from mdpu.pipeline.evaluate.collect import spread_evenly, summarize
from mdpu.pipeline.evaluate.comparison import NOT_RUN, VERDICTS
from mdpu.pipeline.evaluate.exported import exported
from mdpu.pipeline.evaluate.published import METHODS, PROPOSED, TRIALS, published_cells
from mdpu.pipeline.evaluate.readings import KEYS, Model, Panel, Readings, best_power, held_out, verdicts
from mdpu.pipeline.files import write_csv, write_json
from mdpu.pipeline.plan import AXES, DOMINANT, LOGISTIC, ROW, Plan
from mdpu.pipeline.store import Stored, read_runs
from mdpu.threads import one_thread

DECIMALS = 4  # of means and deviations in percent
CHOICES = ("epochs", "replacement")  # whose values are counted beside one another
FEWEST_CELLS = 12  # of a reading that is counted: fewer say nothing of the paper


def is_compared(plan: Plan) -> bool:
    """Return whether a plan runs numbers of URE, ReLU or ABS on the paper's images, reported as the protocol does."""
    readings, protocol = Readings(plan.config), plan.config["protocol"]
    if merge(protocol, readings.changes(readings.protocol)["protocol"]) != protocol:
        return False
    cells = published_cells()
    published = set(cells.loc[cells["method"].isin(PROPOSED), [*ROW, "method"]].itertuples(index=False, name=None))
    names = plan.published_names
    own = {name for name in names if names[name] == name}  # not another split of the images
    for value in readings.values("letters"):
        own.update(readings.changes({"letters": value})["datasets"].values())
    return any(dataset in own and (names[dataset], *rest) in published for dataset, *rest in _protocol_seeds(plan))


def _protocol_seeds(plan: Plan) -> dict[tuple[Any, ...], set[int]]:
    """Return the seeds of a plan's cells that depart from the protocol in nothing, by row and method."""
    seeds: dict[tuple[Any, ...], set[int]] = {}
    for run in plan.runs:
        if (run.variant, run.loss, run.law) == (BASE, LOGISTIC, DOMINANT):
            seeds.setdefault((run.dataset, run.tuple_size, run.n, run.prior, run.method), set()).add(run.seed)
    return seeds


def reading_files(plan: Plan) -> list[Path]:
    """Return the packed files that hold runs of a plan's datasets, and of those that a choice puts in their place."""
    choices = plan.config["definitions"].get("choices", {}).values()
    changed = [value.get("datasets", {}) for choice in choices for value in choice["values"].values()]
    names = {*plan.datasets, *(ours for own in changed for pair in own.items() for ours in pair)}
    return plan.shipped_on(names)


def statistics(trials: pd.DataFrame) -> pd.DataFrame:
    """Return mean and deviation (ddof = 1) of the trials that did not diverge, all trials and those that did.

    `trials` are as `Readings.read_trials` returns them; a row has their `KEYS`.
    """
    found = summarize(trials, KEYS)[[*KEYS, "mean", "std", "trials", "diverged"]]
    return found.round({"mean": DECIMALS, "std": DECIMALS})


def place_name(row: Mapping[Any, Any]) -> str:
    """Return the name of a cell whatever its training."""
    return f"{row['dataset']}/m{row['tuple_size']}/n{row['n']}/prior{row['prior']}/{row['method']}"


def shown_runs(trials: pd.DataFrame, runs: Mapping[tuple[Any, ...], Stored]) -> dict[str, dict[str, list[Any]]]:
    """Return the runs behind the trials of all readings, by training and by the name of their cell.

    Parameters
    ----------
    trials : DataFrame
        As `Readings.read_trials` returns them.
    runs : mapping
        As `Readings.find_runs` returns them.

    Returns
    -------
    dict
        Of each run its ``seed``; ``accuracies`` in percent by value of the choice ``epochs``, None if it diverged; its
        ``key``; ``device``, ``precision`` and ``day`` of its training; its number of ``epochs``; and ``curve``, the
        test accuracy of the epochs that `spread_evenly` takes.
    """
    shown: dict[str, dict[str, list[Any]]] = {}
    for values, rows in trials.groupby(list(AXES), sort=True):
        axes: dict[str, Any] = dict(zip(AXES, values, strict=True))
        run = runs[values]
        history = run.history["accuracy"].to_numpy()
        about = {
            "seed": int(axes["seed"]),
            "accuracies": dict(zip(rows["epochs"], map(_percent, rows["accuracy"]), strict=True)),
            "key": run.key,
            "device": run.about.get("device"),
            "precision": run.about["precision"],
            "day": str(run.about.get("date"))[:10],
            "epochs": len(history),
            "curve": [_percent(100 * value, 1) for value in history[spread_evenly(len(history))]],
        }
        shown.setdefault(axes["variant"], {}).setdefault(place_name(axes), []).append(about)
    return shown


def _percent(value: float, decimals: int = 2) -> float | None:
    """Return a number of percent as JSON has it."""
    if not np.isfinite(value):
        return None
    return round(float(value), decimals)


def counts(panel: Panel, readings: Readings, rule: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the verdicts by which epochs count and by replacement: a row of counts for each value of the two choices.

    Values of one choice are counted on the numbers that were run for all of them.
    """
    judged, rows = verdicts(panel, rule), []
    for choice in CHOICES:
        made = [readings.reading({choice: value}) for value in readings.values(choice)]
        places = [panel.readings.index(reading) for reading in made if reading in panel.readings]
        common = (judged[places] != NOT_RUN).all(axis=0)
        if len(places) == len(made) and common.any():
            rows += [
                {"choice": choice, "reading": reading, **_counted(judged[place][common], panel.counts[place][common])}
                for reading, place in zip(made, places, strict=True)
            ]
    return rows


def _counted(verdict: np.ndarray, trials: np.ndarray) -> dict[str, Any]:
    """Return how many numbers were judged, how many have each verdict, and by how many trials: ``3`` or ``3 to 5``."""
    run = verdict != NOT_RUN
    least, most = int(trials[run].min()), int(trials[run].max())
    return {
        "numbers": int(run.sum()),
        **{one: int((verdict == one).sum()) for one in VERDICTS[:4]},
        "trials": str(most) if least == most else f"{least} to {most}",
    }


def beside(panel: Panel, readings: Readings, probable: Mapping[str, str] | None) -> Panel:
    """Return the readings that stand beside one another on the page, with equal trials."""
    shown = [readings.protocol, *readings.named.values(), *([probable] if probable else [])]
    shown += [readings.reading({choice: value}) for choice in CHOICES for value in readings.values(choice)]
    return panel.beside(shown)


def counted(panel: Panel, reading: Mapping[str, str], rule: Mapping[str, float]) -> dict[str, Any] | None:
    """Return the counts of a reading of a panel, None if it was not run."""
    if reading not in panel.readings:
        return None
    place = panel.readings.index(dict(reading))
    judged = verdicts(panel, rule)[place]
    if (judged == NOT_RUN).all():
        return None
    return {"reading": dict(reading), **_counted(judged, panel.counts[place])}


def best(panel: Panel, every: Panel, readings: Readings, rule: Mapping[str, float]) -> dict[str, Any] | None:
    """Return the most probable reading of the numbers that the protocol's runs cover, None if it cannot be told.

    `every` has further trials of the panel's cells, by which the power of a likelihood is chosen. The answer has the
    ``posterior`` and the ``protocol``'s, the verdicts, and how many readings of all numbers were ``compared``.
    """
    if readings.protocol not in panel.readings:
        return None
    protocol = panel.trials[panel.readings.index(readings.protocol)]
    run = np.isfinite(protocol).sum(axis=1) >= TRIALS
    own, five = panel.on(run), every.on(run, TRIALS + 2)
    if run.sum() < FEWEST_CELLS or min(len(own.readings), len(five.readings)) < 2:
        return None
    with one_thread():
        power = best_power(five, held_out(five, TRIALS))
        posterior = own.posterior(Model(own).likelihood(*own.published).both[0], power)
    place = int(posterior.argmax())
    reading = own.readings[place]
    return {
        "reading": reading,
        "posterior": round(float(posterior[place]), 2),
        "protocol": round(float(posterior[own.readings.index(readings.protocol)]), 2),
        "compared": len(own.readings),
        **(counted(beside(panel, readings, reading), reading, rule) or {}),
    }


def places_tried(panel: Panel) -> list[int]:
    """Return the readings that were tried; only the first of those with the same trials.

    They are of `FEWEST_CELLS`, or of all cells of a smaller panel. If all runs diverged, the protocol is the only one.
    """
    first: dict[bytes, int] = {}
    fewest = min(FEWEST_CELLS, len(panel.cells))
    for place in np.flatnonzero(np.isfinite(panel.trials).any(axis=2).sum(axis=1) >= fewest):
        first.setdefault(panel.trials[place].tobytes(), int(place))
    return list(first.values()) or [0]


def plan_panel(plan: Plan, readings: Readings, trials: pd.DataFrame) -> Panel:
    """Return all readings of the published numbers of URE, ReLU and ABS that a plan runs."""
    panel, there = readings.panel(trials), _protocol_seeds(plan)
    cells = panel.cells.replace({"dataset": readings.changes(readings.protocol)["datasets"]})
    own = np.array([key in there for key in cells[[*ROW, "method"]].itertuples(index=False, name=None)])
    return Panel(panel.readings, panel.cells[own].reset_index(drop=True), panel.trials[:, own])


def judged_trials(plan: Plan, readings: Readings, trials: pd.DataFrame) -> pd.DataFrame:
    """Return the trials of all readings; for the plan's own cells, those of its seeds, as in its verdicts."""
    seeds, plain = _protocol_seeds(plan), trials["variant"] == readings.name(readings.protocol)
    keys = trials[[*ROW, "method"]].itertuples(index=False, name=None)
    asked = [seed in seeds.get(key, {seed}) for key, seed in zip(keys, trials["seed"], strict=True)]
    return trials[~plain | np.array(asked, dtype=bool)]


def write_readings(plan: Plan, files: Iterable[Path], csv: Path, json: Path, numbers: Path) -> Panel:
    """Write our statistics under every reading (CSV), counts of the verdicts and the verdicts themselves (JSON).

    Readings that stand beside one another have equal trials. Returns the plan's panel, with all trials.
    """
    readings, rule = Readings(plan.config), plan.config["comparison"]
    runs = readings.find_runs((run for file in files for run in read_runs(file).values()), METHODS)
    every = readings.read_trials(runs.values(), METHODS)
    trials = judged_trials(plan, readings, every)
    panel, literal = plan_panel(plan, readings, trials), readings.named["literal"]
    probable = best(panel, plan_panel(plan, readings, every), readings, rule)
    equal = beside(panel, readings, probable and probable["reading"])
    write_csv(statistics(trials), csv)
    found = {
        "counts": counts(equal, readings, rule),
        "best": probable,
        "literal": counted(equal, literal, rule),
        "tried": len(places_tried(panel)),
        "runs": shown_runs(trials, runs),
    }
    write_json(json, found)
    seeds = sorted(map(int, trials["seed"].unique()))
    rows = exported(equal, readings, rule, seeds)
    write_json(numbers, {"rule": dict(rule), "numbers": rows})
    return panel
