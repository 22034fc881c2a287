"""Every cell of a report: its trials, its curve, its verdict, and what a reader needs to trace or
retrain it.
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.collect import epochs_in_words, reported_accuracy, spread_evenly
from mdpu.pipeline.evaluate.summary import were_run
from mdpu.pipeline.plan import AXES, DOMINANT, LOGISTIC, Plan, Run
from mdpu.pipeline.report.drawing import size_name
from mdpu.pipeline.report.verdicts import verdict_words

# of a curve's drawing, in its own units
WIDTH = 200
HEIGHT = 100
FLOAT32 = "float32"  # another precision than float32 is marked, also TF32 of ResNet-34


def training_lines(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return what trained some runs, one line per device and precision, from the earliest on.

    A line has a ``letter`` to refer to it, ``device``, ``precision``, ``first`` and ``last`` day,
    and the ``runs`` by name. `runs` are as `mdpu.pipeline.evaluate.provenance.describe_runs`
    returns them.
    """
    days = runs.assign(day=runs["date"].str[:10])
    groups = days.groupby(["device", "precision"], dropna=False)
    lines = groups.agg(first=("day", "min"), last=("day", "max"), runs=("run", list))
    lines = lines.reset_index().sort_values("first", kind="stable")
    lettered: list[dict[Any, Any]] = []
    for place, line in enumerate(lines.to_dict("records")):
        turn, letter = divmod(place, len(string.ascii_uppercase))
        number = str(turn + 1) if turn else ""  # A, ..., Z, A2, ...
        lettered.append({"letter": string.ascii_uppercase[letter] + number, **line})
    return lettered


def cell_lines(
    plan: Plan, runs: pd.DataFrame, metrics: pd.DataFrame, training: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return every cell that was run, in order: its title in words, trials, epochs that are
    averaged, and curve.

    A trial has its seed, its accuracy in percent (None if it diverged), its ``key`` and ``file``,
    and the letter of its line in `training`.
    """
    reporting = plan.protocol.reporting
    curves = _curves(metrics, reporting["test_prior"])
    letters = {name: line["letter"] for line in training for name in line["runs"]}
    cells: dict[str, list[tuple[Run, dict[Any, Any]]]] = {}
    for row in runs.to_dict("records"):
        run = Run(**{axis: row[axis] for axis in AXES})
        cells.setdefault(run.cell, []).append((run, row))

    lines = []
    for name, of_cell in cells.items():
        rows = pd.DataFrame([row for _, row in of_cell])
        lines.append(
            {
                "name": name,
                "title": cell_title(plan, of_cell[0][0]),
                "trials": [_trial(row, letters) for _, row in of_cell],
                "epochs": epochs_in_words(rows, reporting["average_last"]),
                "curve": drawn([curves[run] for run, _ in of_cell]),
                "reduced": bool((rows["precision"] != FLOAT32).any()),
            }
        )
    return lines


def _trial(row: Mapping[Any, Any], letters: Mapping[str, str]) -> dict[str, Any]:
    """Return a trial of a cell by its row of the runs; `letters` say what trained each run."""
    accuracy = row["accuracy"]
    return {
        "seed": row["seed"],
        "accuracy": None if math.isnan(accuracy) else round(accuracy, 2),
        "key": row["key"],
        "file": row["file"],
        "origin": letters[row["run"]],
    }


def cell_title(plan: Plan, run: Run) -> str:
    """Return a run's cell in words; what is not the tables' own is named: variant, law and loss."""
    words = [
        plan.dataset(run.dataset)["title"],
        size_name(run.tuple_size).lower(),
        f"n = {run.n:,}",
        f"prior {run.prior}",
        load_method(run.method).title,
    ]
    if run.variant != BASE:
        words.append(run.variant)
    if run.law != DOMINANT:
        words.append(f"law {run.law}")
    if run.loss != LOGISTIC:
        words.append(f"{run.loss} loss")
    return ", ".join(words)


def _curves(metrics: pd.DataFrame, test_prior: str) -> dict[Run, tuple[np.ndarray, np.ndarray]]:
    """Return the epochs of each run that `spread_evenly` takes, and their accuracies."""
    epochs = metrics["epoch"].to_numpy()
    accuracies = reported_accuracy(metrics, test_prior).to_numpy()
    curves = {}
    for key, rows in metrics.groupby(list(AXES), sort=False).indices.items():
        chosen = rows[spread_evenly(len(rows))]
        curves[Run(*cast("tuple[Any, ...]", key))] = epochs[chosen], accuracies[chosen]
    return curves


def drawn(curves: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """Return curves of one cell, pairs of epochs and accuracies in percent, as SVG draws them.

    ``low`` and ``high`` are the accuracies at the bottom and at the top, multiples of five. Where
    accuracies are missing, a curve has no points.
    """
    accuracies = np.concatenate([accuracy for _, accuracy in curves])
    if np.isnan(accuracies).all():
        return {"lines": [], "low": 0, "high": 100, "first": 0, "last": 0}
    low = 5 * math.floor(np.nanmin(accuracies) / 5)
    high = 5 * math.floor(np.nanmax(accuracies) / 5) + 5
    epochs_of_all, _ = curves[0]
    first = int(epochs_of_all.min())
    last = int(epochs_of_all.max())
    lines = []
    for epochs, accuracy in curves:
        x = (epochs - first) / max(1, last - first) * WIDTH
        y = HEIGHT - (accuracy - low) / (high - low) * HEIGHT
        points = np.column_stack([x, y])[~np.isnan(accuracy)].round().astype(int)
        lines.append(" ".join(f"{across},{down}" for across, down in points.tolist()))
    return {"lines": lines, "low": low, "high": high, "first": first, "last": last}


def verdicts_by_cell(comparison: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the comparisons of the cells that were run, by the name of the cell, with the verdict
    in ``words``; missing numbers are None.
    """
    run = were_run(comparison)
    rows: list[dict[Any, Any]] = run.astype(object).where(run.notna(), None).to_dict("records")
    return {row["cell"]: {**row, "words": verdict_words(row)} for row in rows}


def drawer_data(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the page's script shows of each cell, ready for JSON: files of runs, and cells by
    name.

    A trial is its seed, accuracy, key, position of the file, letter of what trained it.
    """
    files: list[str] = []
    cells = {}
    for line in lines:
        trials = []
        for trial in line["trials"]:
            if trial["file"] not in files:
                files.append(trial["file"])
            place = files.index(trial["file"])
            trials.append([trial["seed"], trial["accuracy"], trial["key"], place, trial["origin"]])
        cells[line["name"]] = {
            "title": line["title"],
            "epochs": line["epochs"],
            "trials": trials,
            "curve": line["curve"],
        }
    return {"files": files, "cells": cells}
