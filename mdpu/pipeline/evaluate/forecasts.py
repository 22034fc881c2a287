"""Forecasts of what our runs of the paper's datasets will give, and their score once these are run.

``benchmarks/forecasts.py`` made ``results/reference/forecasts.csv`` before anybody ran these
datasets; ``docs/explanation/readings.md`` says how.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.evaluate.comparison import Trials, prediction_interval
from mdpu.pipeline.evaluate.evidence import protocol_cells
from mdpu.pipeline.evaluate.published import TRIALS
from mdpu.pipeline.files import REPOSITORY, read_csv
from mdpu.pipeline.plan import CELL, Plan

FILE = REPOSITORY / "results" / "reference" / "forecasts.csv"


def read_scores(plan: Plan, metrics: pd.DataFrame) -> list[dict[str, Any]]:
    """Return what `score_forecasts` says of the forecasts in `FILE`, nothing where that is not
    there.
    """
    return score_forecasts(plan, metrics, read_csv(FILE)) if FILE.exists() else []


def as_forecast(plan: Plan, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return histories of the datasets that name a ``forecast`` as those of the cells that it is
    of.

    Such runs need not be of the protocol: their dataset and variant are replaced. A dataset has one
    variant.
    """
    datasets = plan.config["definitions"]["datasets"]
    names = {
        name: dataset["forecast"] for name, dataset in datasets.items() if "forecast" in dataset
    }
    measured = metrics[metrics["dataset"].isin(names)]
    return measured.assign(dataset=measured["dataset"].map(names).astype(object), variant=BASE)


def forecast_cells(plan: Plan, metrics: pd.DataFrame, forecasts: pd.DataFrame) -> pd.DataFrame:
    """Return the forecasts of the cells that were run, by reading, each beside what came out.

    `metrics` are as `mdpu.pipeline.evaluate.collect.write_collection` writes them, `forecasts` as
    `FILE` has them, of a cell's mean over trials. A row has that mean, ``accuracy``; whether it is
    ``above`` the forecast's centre; whether the interval holds it, ``inside``; and the interval's
    ``width`` and ``score`` in points. The interval score is the width, and 2 / (1 - level) times
    the distance by which the mean is outside; lower is better (Gneiting and Raftery, 2007).
    ``paper_inside`` and so on are those of intervals for three more trials like the paper's own.
    """
    readings = Readings(plan.config)
    run = protocol_cells(metrics[metrics["dataset"].isin(set(forecasts["dataset"]))], None)
    tables = []

    for reading, of_reading in forecasts.groupby("reading", sort=False):
        accuracies = run_accuracies(run, readings.reporting(readings.named[reading]))
        means = accuracies.groupby(list(CELL), as_index=False)["accuracy"].mean()
        cells = of_reading.merge(means, on=["dataset", "tuple_size", "n", "prior", "method"])
        tables.append(_scored(cells, float(of_reading["level"].iloc[0])))

    return pd.concat(tables, ignore_index=True)


def _scored(cells: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return cells of one reading with their scores, those of the paper's own intervals beside
    them.
    """
    paper = Trials(cells["published_mean"], cells["published_std"], TRIALS)
    intervals: dict[str, Any] = {"": (cells["low"], cells["high"])}
    intervals["paper_"] = prediction_interval(paper, TRIALS, level)
    ours = cells["accuracy"]
    scored = cells.assign(above=ours > cells["forecast"])

    for prefix, (low, high) in intervals.items():
        outside = np.maximum(low - ours, 0) + np.maximum(ours - high, 0)
        scored[f"{prefix}inside"] = outside == 0
        scored[f"{prefix}width"] = high - low
        scored[f"{prefix}score"] = high - low + 2 / (1 - level) * outside
    return scored


def score_forecasts(
    plan: Plan, metrics: pd.DataFrame, forecasts: pd.DataFrame
) -> list[dict[str, Any]]:
    """Score the forecasts of the cells that were run, by reading and dataset, then by reading.

    The parameters are those of `forecast_cells`. A row has ``reading``, ``dataset``, ``all`` where
    it is of several; ``numbers``; ``level``; how many of our means lie ``inside`` and ``above`` the
    centre; and the mean ``width`` and ``score`` of the forecasts. Then come ``paper_inside``,
    ``paper_width`` and ``paper_score``.
    """
    scores = []
    for reading, cells in forecast_cells(plan, metrics, forecasts).groupby("reading", sort=False):
        groups = [*cells.groupby("dataset", sort=False)]
        if len(groups) > 1:
            groups.append(("all", cells))
        for dataset, of_dataset in groups:
            facts = {"reading": reading, "dataset": dataset, "numbers": len(of_dataset)}
            facts["level"] = float(of_dataset["level"].iloc[0])
            facts["above"] = int(of_dataset["above"].sum())
            for prefix in ("", "paper_"):
                facts[f"{prefix}inside"] = int(of_dataset[f"{prefix}inside"].sum())
                facts[f"{prefix}width"] = float(of_dataset[f"{prefix}width"].mean())
                facts[f"{prefix}score"] = float(of_dataset[f"{prefix}score"].mean())
            scores.append(facts)
    return scores
