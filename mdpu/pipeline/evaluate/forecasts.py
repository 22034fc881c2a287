"""Forecasts of what our runs of the paper's datasets will give, and their score once these are run.

``benchmarks/forecasts.py`` made ``results/reference/forecasts.csv`` before anybody ran these datasets;
``docs/explanation/readings.md`` says how.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.evaluate.comparison import Trials, prediction_interval
from mdpu.pipeline.evaluate.evidence import table_cells
from mdpu.pipeline.evaluate.published import TRIALS
from mdpu.pipeline.evaluate.readings import Readings
from mdpu.pipeline.files import REPOSITORY, read_csv
from mdpu.pipeline.plan import CELL, Plan

FILE = REPOSITORY / "results" / "reference" / "forecasts.csv"


def read_scores(plan: Plan, metrics: pd.DataFrame) -> list[dict[str, Any]]:
    """Return what `score_forecasts` says of the forecasts in `FILE`, nothing where that is not there."""
    return score_forecasts(plan, metrics, read_csv(FILE)) if FILE.exists() else []


def score_forecasts(plan: Plan, metrics: pd.DataFrame, forecasts: pd.DataFrame) -> list[dict[str, Any]]:
    """Score the forecasts of the cells that were run, by reading and dataset, then of all datasets of a reading.

    `metrics` are as `mdpu.pipeline.evaluate.collect.write_collection` writes them, `forecasts` as `FILE` has them, of a
    cell's mean over trials. A row has ``reading``, ``dataset``, ``numbers``, ``level``, and of the forecasts how many
    hold our mean, ``inside``; the mean ``width`` in points; and the mean interval ``score`` in points, lower is better
    (Gneiting and Raftery, 2007): the width, and 2 / (1 - level) times the distance by which it is outside.
    ``paper_inside`` and so on are those of intervals for three more trials like the paper's own.
    """
    readings, scored = Readings(plan.config), []
    metrics = table_cells(metrics[metrics["dataset"].isin(set(forecasts["dataset"]))], None)
    for reading, own in forecasts.groupby("reading", sort=False):
        reporting = {**plan.protocol.reporting, **readings.changes(readings.named[reading])["protocol"]["reporting"]}
        means = run_accuracies(metrics, reporting).groupby(list(CELL), as_index=False)["accuracy"].mean()
        run = own.merge(means, on=["dataset", "tuple_size", "n", "prior", "method"])
        level, paper = float(own["level"].iloc[0]), Trials(run["published_mean"], run["published_std"], TRIALS)
        sides: dict[str, Any] = {"": (run["low"], run["high"]), "paper_": prediction_interval(paper, TRIALS, level)}
        for prefix, (low, high) in sides.items():
            outside = np.maximum(low - run["accuracy"], 0) + np.maximum(run["accuracy"] - high, 0)
            run[f"{prefix}inside"], run[f"{prefix}width"] = outside == 0, high - low
            run[f"{prefix}score"] = high - low + 2 / (1 - level) * outside
        groups = [*run.groupby("dataset", sort=False), *([("all", run)] if run["dataset"].nunique() > 1 else [])]
        for dataset, cells in groups:
            kinds = {"inside": "sum", "width": "mean", "score": "mean"}
            values = {f"{side}{name}": cells[f"{side}{name}"].agg(how) for side in sides for name, how in kinds.items()}
            facts = {"reading": reading, "dataset": dataset, "numbers": len(cells), "level": level}
            scored.append({**facts, **values})
    return scored
