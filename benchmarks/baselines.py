"""How far is each reading of the paper's baselines from its numbers?

    ./run baselines && python benchmarks/baselines.py [--runs results/runs]

Prints Markdown, from the runs of ``config/baselines.yaml`` that are shipped or in the folder: for each published
method, the root mean square over the cells of ours minus the published mean, in points.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from readings import show

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.published import beside_published
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import AXES, CELL, Plan
from mdpu.pipeline.store import read_runs

OURS = {"siamese": ("siamese", "untrained"), "contrastive": ("contrastive", "untrained"),
        "kmeans": ("kmeans", "kmeans-members", "kmeans-means")}  # fmt: skip
# What is reported of a run's accuracies by epoch, in percent; "best" sees test labels.
REPORTED = {"last ten": slice(-10, None), "all": slice(None), "first": slice(1), "best": "max", "swapped": "swapped"}


def reported(accuracy: pd.Series, how: slice | str) -> float:
    """Return the accuracy of a run, or of its last ten epochs with the two answers swapped."""
    if how == "swapped":
        return 100 - accuracy.tail(10).mean()
    return accuracy.max() if how == "max" else accuracy[how].mean()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=REPOSITORY / "results" / "runs")
    plan = Plan(load_config([REPOSITORY / "config" / "baselines.yaml"]))
    files = [*plan.shipped_on_datasets, *parser.parse_args().runs.rglob("*.parquet")]
    keys = {plan.key(run): run for run in plan.runs}
    stored = {key: run for file in files for key, run in read_runs(file, keys).items()}
    rows = [
        {
            **{axis: getattr(keys[key], axis) for axis in AXES},
            "reported": name,
            "mean": reported(100 * run.history["accuracy"], how),
        }
        for key, run in stored.items()
        for name, how in REPORTED.items()
    ]
    means = pd.DataFrame(rows).groupby([*CELL, "reported"], as_index=False)["mean"].mean()
    found = []
    for published, methods in OURS.items():
        for method in methods:
            own = means[means["method"] == method].assign(method=published)
            for (tuple_size, name), cells in own.groupby(["tuple_size", "reported"], sort=False):
                compared = beside_published(cells, plan.published_names)
                size = compared.groupby("dataset")["difference"].agg(lambda gap: np.sqrt((gap**2).mean()))
                facts = {"paper": published, "M": tuple_size, "ours": method, "reported": name, "cells": len(cells)}
                found.append({**facts, **size})
    trained = pd.DataFrame(found).query("ours in ['siamese', 'contrastive'] or reported == 'last ten'")
    show("Distance from the paper, in points", trained, 1)


if __name__ == "__main__":
    main()
