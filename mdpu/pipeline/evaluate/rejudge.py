"""The paper's numbers under every reading that was tried: what the page judges by, and counts of
the verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.choices import Reading, Readings
from mdpu.pipeline.evaluate.collect import (
    REPORTED,
    reported_accuracy,
    span_of,
    spread_evenly,
    summarize,
)
from mdpu.pipeline.evaluate.comparison import JUDGED, NOT_RUN, count_verdicts
from mdpu.pipeline.evaluate.exported import DECIMALS, exported
from mdpu.pipeline.evaluate.known import best_power, held_out
from mdpu.pipeline.evaluate.model import Model
from mdpu.pipeline.evaluate.panel import TRIAL_KEYS, Panel, verdicts
from mdpu.pipeline.evaluate.published import METHODS, PROPOSED, TRIALS, published_cells
from mdpu.pipeline.files import write_csv, write_json
from mdpu.pipeline.plan import AXES, DOMINANT, LOGISTIC, ROW, Plan
from mdpu.pipeline.store import Stored, read_runs
from mdpu.threads import one_thread

CHOICES = ("epochs", "replacement")  # whose values are counted beside one another
FEWEST_CELLS = 12  # of a reading that is counted: fewer say nothing of the paper


def is_compared(plan: Plan) -> bool:
    """Return whether a plan runs numbers of URE, ReLU or ABS on the paper's images, reported as the
    protocol does.
    """
    readings = Readings(plan.config)
    if readings.changed_protocol(readings.protocol) != plan.config["protocol"]:
        return False
    if plan.config["protocol"]["training"]["prior_offset"]:
        return False  # no reading gives a method a wrong prior

    cells = published_cells()
    published = set(_row_keys(cells[cells["method"].isin(PROPOSED)]))
    papers_images = _papers_images(plan, readings)
    for dataset, *rest in _protocol_seeds(plan):
        if dataset in papers_images and (plan.published_names[dataset], *rest) in published:
            return True
    return False


def _papers_images(plan: Plan, readings: Readings) -> set[str]:
    """Return our datasets that have the paper's images: not another split of them, but the letters
    of any reading.
    """
    names = {ours for ours, paper in plan.published_names.items() if ours == paper}
    for value in readings.values("letters"):
        names.update(readings.changes({"letters": value})["datasets"].values())
    return names


def _row_keys(cells: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Return the row and the method of each cell."""
    return cells[[*ROW, "method"]].itertuples(index=False, name=None)


def _protocol_seeds(plan: Plan) -> dict[tuple[Any, ...], set[int]]:
    """Return the seeds of a plan's cells that depart from the protocol in nothing, by row and
    method.
    """
    seeds: dict[tuple[Any, ...], set[int]] = {}
    for run in plan.runs:
        if (run.variant, run.loss, run.law) == (BASE, LOGISTIC, DOMINANT):
            row = tuple(getattr(run, axis) for axis in ROW)
            seeds.setdefault((*row, run.method), set()).add(run.seed)
    return seeds


def reading_files(plan: Plan) -> list[Path]:
    """Return the packed files that hold runs of a plan's datasets, and of those that a choice puts
    in their place.
    """
    names = set(plan.datasets)
    for choice in plan.config["definitions"].get("choices", {}).values():
        for value in choice["values"].values():
            replaced = value.get("datasets", {})
            names.update(replaced.keys(), replaced.values())
    return plan.shipped_on(names)


def statistics(trials: pd.DataFrame) -> pd.DataFrame:
    """Return mean and deviation (ddof = 1) of the trials that did not diverge, all trials and those
    that did.

    `trials` are as `Readings.read_trials` returns them; a row has their `TRIAL_KEYS`.
    """
    rows = summarize(trials, TRIAL_KEYS)[[*TRIAL_KEYS, "mean", "std", "trials", "diverged"]]
    return rows.round({"mean": DECIMALS, "std": DECIMALS})


def place_name(row: Mapping[Any, Any]) -> str:
    """Return the name of a cell whatever its training."""
    split = f"{row['dataset']}/m{row['tuple_size']}/n{row['n']}/prior{row['prior']}"
    return f"{split}/{row['method']}"


def shown_runs(
    trials: pd.DataFrame,
    runs: Mapping[tuple[Any, ...], Stored],
    test_prior: str,
) -> dict[str, dict[str, list[Any]]]:
    """Return the runs behind the trials of all readings, by training and by the name of their cell.

    Parameters
    ----------
    trials : DataFrame
        As `Readings.read_trials` returns them.
    runs : mapping
        As `Readings.find_runs` returns them.
    test_prior : str
        As for `mdpu.pipeline.evaluate.collect.reported_accuracy`.

    Returns
    -------
    dict
        Of each run its ``seed``; ``accuracies`` in percent by value of the choice ``epochs``, None
        if it diverged; its ``key``; ``device``, ``precision`` and ``day`` of its training; its
        number of ``epochs``; and ``curve``, the test accuracy of the epochs that `spread_evenly`
        takes.
    """
    shown: dict[str, dict[str, list[Any]]] = {}
    for values, rows in trials.groupby(list(AXES), sort=True):
        axes: dict[str, Any] = dict(zip(AXES, values, strict=True))
        run = _shown_run(rows, runs[values], test_prior)
        cells = shown.setdefault(axes["variant"], {})
        of_cell = cells.setdefault(place_name(axes), [])
        of_cell.append({"seed": int(axes["seed"]), **run})
    return shown


def _shown_run(rows: pd.DataFrame, run: Stored, test_prior: str) -> dict[str, Any]:
    """Return what `shown_runs` says of a run, by its rows of the trials."""
    measured = run.history.reindex(columns=["epoch", *REPORTED])
    epochs = measured.assign(prior=rows["prior"].iloc[0], method=rows["method"].iloc[0])
    history = reported_accuracy(epochs, test_prior).to_numpy()
    curve = history[spread_evenly(len(history))]
    return {
        "accuracies": dict(zip(rows["epochs"], map(_percent, rows["accuracy"]), strict=True)),
        "key": run.key,
        "device": run.about.get("device"),
        "precision": run.precision,
        "day": str(run.about.get("date"))[:10],
        "epochs": len(history),
        "curve": [_percent(value, 1) for value in curve],
    }


def _percent(value: float, decimals: int = 2) -> float | None:
    """Return a number of percent as JSON has it."""
    if not np.isfinite(value):
        return None
    return round(float(value), decimals)


def counts(panel: Panel, readings: Readings, rule: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the verdicts by which epochs count and by replacement: a row of counts for each value
    of the two choices.

    Values of one choice are counted on the numbers that were run for all of them.
    """
    judged = verdicts(panel, rule)
    rows = []
    for choice in CHOICES:
        beside = _readings_by(choice, readings)
        if not all(reading in panel.readings for reading in beside):
            continue
        places = [panel.readings.index(reading) for reading in beside]
        common = (judged[places] != NOT_RUN).all(axis=0)
        if not common.any():
            continue
        for reading, place in zip(beside, places, strict=True):
            counted = _counts(judged[place][common], panel.counts[place][common])
            rows.append({"choice": choice, "reading": reading, **counted})
    return rows


def _readings_by(choice: str, readings: Readings) -> list[dict[str, str]]:
    """Return the readings that depart from the protocol in nothing but a choice: one for each of
    its values.
    """
    return [readings.reading({choice: value}) for value in readings.values(choice)]


def _counts(verdict: np.ndarray, trials: np.ndarray) -> dict[str, Any]:
    """Return how many numbers were judged, how many have each verdict, and by how many trials:
    ``3`` or ``3 to 5``.
    """
    run = verdict != NOT_RUN
    return {
        "numbers": int(run.sum()),
        **count_verdicts(verdict, JUDGED),
        "trials": span_of(trials[run]),
    }


def shown_readings(panel: Panel, readings: Readings, probable: Reading | None) -> Panel:
    """Return the readings that stand beside one another on the page, with equal trials."""
    beside: list[Reading] = [readings.protocol, *readings.named.values()]
    if probable:
        beside.append(probable)
    for choice in CHOICES:
        beside.extend(_readings_by(choice, readings))
    return panel.beside(beside)


def reading_counts(
    panel: Panel,
    reading: Reading,
    rule: Mapping[str, float],
) -> dict[str, Any] | None:
    """Return the counts of a reading of a panel, None if it was not run."""
    if reading not in panel.readings:
        return None
    place = panel.readings.index(dict(reading))
    judged = verdicts(panel, rule)[place]
    if (judged == NOT_RUN).all():
        return None
    return {"reading": dict(reading), **_counts(judged, panel.counts[place])}


def most_probable(
    panel: Panel,
    with_further: Panel,
    readings: Readings,
    rule: Mapping[str, float],
) -> dict[str, Any] | None:
    """Return the most probable reading of the numbers that the protocol's runs cover, None if it
    cannot be told.

    `with_further` has further trials of the panel's cells, by which the power of a likelihood is
    chosen. The answer has the ``posterior`` and the ``protocol``'s, the verdicts, and how many
    readings of all numbers were ``compared``.
    """
    if readings.protocol not in panel.readings:
        return None
    of_protocol = panel.trials[panel.readings.index(readings.protocol)]
    is_covered = np.isfinite(of_protocol).sum(axis=1) >= TRIALS
    compared = panel.on(is_covered)
    held = with_further.on(is_covered, TRIALS + 2)
    fewest_readings = min(len(compared.readings), len(held.readings))
    if is_covered.sum() < FEWEST_CELLS or fewest_readings < 2:
        return None

    with one_thread():
        power = best_power(held, held_out(held, TRIALS))
        likelihood = Model(compared).likelihood(*compared.published)
        posterior = compared.posterior(likelihood.both[0], power)
    place = int(posterior.argmax())
    reading = compared.readings[place]
    protocol = compared.readings.index(readings.protocol)
    equal = shown_readings(panel, readings, reading)
    return {
        "reading": reading,
        "posterior": round(float(posterior[place]), 2),
        "protocol": round(float(posterior[protocol]), 2),
        "compared": len(compared.readings),
        **(reading_counts(equal, reading, rule) or {}),
    }


def places_tried(panel: Panel) -> list[int]:
    """Return the readings that were tried; only the first of those with the same trials.

    They are of `FEWEST_CELLS`, or of all cells of a smaller panel. If all runs diverged, the
    protocol is the only one.
    """
    fewest = min(FEWEST_CELLS, len(panel.cells))
    is_finished = np.isfinite(panel.trials).any(axis=2)
    has_enough = is_finished.sum(axis=1) >= fewest
    first: dict[bytes, int] = {}
    for place in np.flatnonzero(has_enough):
        trials = panel.trials[place].tobytes()
        first.setdefault(trials, int(place))
    return list(first.values()) or [0]


def plan_panel(plan: Plan, readings: Readings, trials: pd.DataFrame) -> Panel:
    """Return all readings of the published numbers of URE, ReLU and ABS that a plan runs."""
    panel = Panel.of(readings, trials)
    ours = readings.changes(readings.protocol)["datasets"]
    cells = panel.cells.replace({"dataset": ours})
    planned = _protocol_seeds(plan)
    return panel.of_cells([key in planned for key in _row_keys(cells)])


def judged_trials(plan: Plan, readings: Readings, trials: pd.DataFrame) -> pd.DataFrame:
    """Return the trials of all readings; for the plan's own cells, those of its seeds, as in its
    verdicts.
    """
    seeds = _protocol_seeds(plan)
    is_planned = []
    for key, seed in zip(_row_keys(trials), trials["seed"], strict=True):
        is_planned.append(key not in seeds or seed in seeds[key])
    of_protocol = trials["variant"] == readings.name(readings.protocol)
    return trials[~of_protocol | np.array(is_planned, dtype=bool)]


def write_readings(
    plan: Plan,
    files: Iterable[Path],
    csv: Path,
    json: Path,
    numbers: Path,
) -> Panel:
    """Write our statistics under every reading (CSV), counts of the verdicts and the verdicts
    themselves (JSON).

    Readings that stand beside one another have equal trials. Returns the plan's panel, with all
    trials.
    """
    readings = Readings(plan.config)
    rule = plan.config["comparison"]
    stored: list[Stored] = []
    for file in files:
        stored.extend(read_runs(file).values())
    own = {str(plan.key(run)) for run in plan.runs}
    runs = readings.find_runs(stored, METHODS, own)
    every_trial = readings.read_trials(runs.values(), METHODS)
    trials = judged_trials(plan, readings, every_trial)
    write_csv(statistics(trials), csv)

    panel = plan_panel(plan, readings, trials)
    with_further = plan_panel(plan, readings, every_trial)
    probable = most_probable(panel, with_further, readings, rule)
    equal = shown_readings(panel, readings, probable and probable["reading"])
    facts = {
        "counts": counts(equal, readings, rule),
        "best": probable,
        "literal": reading_counts(equal, readings.named["literal"], rule),
        "tried": len(places_tried(panel)),
        "runs": shown_runs(trials, runs, plan.protocol.reporting["test_prior"]),
    }
    write_json(json, facts)

    seeds = sorted(map(int, trials["seed"].unique()))
    rows = exported(equal, readings, rule, seeds)
    write_json(numbers, {"rule": dict(rule), "numbers": rows})
    return panel
