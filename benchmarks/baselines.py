"""How far is each reading of the paper's baselines from its numbers?

    ./run baselines && python benchmarks/baselines.py

Prints the root mean square of ours minus the published mean, in points, over the cells of
`config/baselines.yaml`, and writes it to `results/reference/baselines.csv`. All these runs are
shipped, so nothing is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.published import beside_published
from mdpu.pipeline.files import REPOSITORY, write_csv
from mdpu.pipeline.plan import CELL, Plan
from mdpu.pipeline.store import read_runs

# For each published method, the methods that may be it.
CANDIDATES = {
    "siamese": ("siamese", "siamese-mixed", "untrained"),
    "contrastive": ("contrastive", "untrained"),
    "kmeans": ("kmeans", "kmeans-members", "kmeans-means"),
}
# How a run's accuracies by epoch, in percent, may be reported.
REPORTS: dict[str, Callable[[pd.Series], float]] = {
    "last ten": lambda accuracy: accuracy.tail(10).mean(),
    "all": lambda accuracy: accuracy.mean(),
    "first": lambda accuracy: accuracy[0],
    "best (sees test labels)": max,
    "swapped": lambda accuracy: 100 - accuracy.tail(10).mean(),
}


def read_means(plan: Plan) -> pd.DataFrame:
    """Return the mean accuracy of each cell in percent, by how it is reported."""
    planned = {plan.key(run): run for run in plan.runs}
    files = [
        *plan.shipped_on(plan.datasets),
        *(REPOSITORY / "results" / "runs").rglob("*.parquet"),
    ]
    finished = {}
    for file in files:
        finished |= read_runs(file, planned)

    rows = []
    for key, run in finished.items():
        accuracy = 100 * run.history["accuracy"]
        for name, report in REPORTS.items():
            rows.append({**vars(planned[key]), "reported": name, "mean": report(accuracy)})
    return pd.DataFrame(rows).groupby([*CELL, "reported"], as_index=False)["mean"].mean()


def distances(
    means: pd.DataFrame,
    plan: Plan,
    published: str,
    method: str,
) -> Iterator[dict[str, Any]]:
    """Yield how far a method of ours is from a published one, by tuple size and report.

    Other reports than the last ten are for methods that bear the name of the published one, but
    for k-means, which has no epochs.
    """
    ours = means[means["method"] == method].assign(method=published)
    has_epochs = method == published and published != "kmeans"
    for (tuple_size, reported), cells in ours.groupby(["tuple_size", "reported"], sort=False):
        if reported != "last ten" and not has_epochs:
            continue
        beside = beside_published(cells, plan.published_names)
        squares = (beside["difference"] ** 2).groupby(beside["dataset"])
        yield {
            "paper": published,
            "M": tuple_size,
            "ours": method,
            "reported": reported,
            "cells": len(cells),
            **np.sqrt(squares.mean()),
        }


def show(rows: pd.DataFrame) -> None:
    """Print rows as a Markdown table; distances have one digit."""
    print(f"| {' | '.join(rows)} |")
    print("|" + " --- |" * len(rows.columns))
    for row in rows.itertuples(index=False):
        cells = [f"{value:.1f}" if isinstance(value, float) else str(value) for value in row]
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    """Print the distances, and write them."""
    plan = Plan(load_config([REPOSITORY / "config" / "baselines.yaml"]))
    means = read_means(plan)
    rows = []
    for published, methods in CANDIDATES.items():
        for method in methods:
            rows += distances(means, plan, published, method)
    table = pd.DataFrame(rows)
    print("\nDistance from the paper, in points\n")
    show(table)
    write_csv(table, REPOSITORY / "results" / "reference" / "baselines.csv")


if __name__ == "__main__":
    main()
