"""How far is each reading of the paper's baselines from its numbers?

    ./run baselines && python benchmarks/baselines.py

Prints the root mean square of ours minus the published mean, in points, over the cells of `config/baselines.yaml`.
"""

import numpy as np
import pandas as pd
from readings import show

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.published import beside_published
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import CELL, Plan
from mdpu.pipeline.store import read_runs

OURS = {"siamese": ("siamese", "siamese-mixed", "untrained"), "contrastive": ("contrastive", "untrained"),
        "kmeans": ("kmeans", "kmeans-members", "kmeans-means")}  # fmt: skip
# How a run's accuracies by epoch, in percent, are reported.
REPORTED = {"last ten": lambda own: own.tail(10).mean(), "all": lambda own: own.mean(), "first": lambda own: own[0],
            "best (sees test labels)": max, "swapped": lambda own: 100 - own.tail(10).mean()}  # fmt: skip

plan, rows, found = Plan(load_config([REPOSITORY / "config" / "baselines.yaml"])), [], []
runs = {plan.key(run): run for run in plan.runs}
files = [*plan.shipped_on(plan.datasets), *(REPOSITORY / "results" / "runs").rglob("*.parquet")]
for key, run in {key: run for file in files for key, run in read_runs(file, runs).items()}.items():
    accuracy = 100 * run.history["accuracy"]
    rows += [{**vars(runs[key]), "reported": name, "mean": how(accuracy)} for name, how in REPORTED.items()]
means = pd.DataFrame(rows).groupby([*CELL, "reported"], as_index=False)["mean"].mean()
for published, method in ((published, method) for published, methods in OURS.items() for method in methods):
    own = means[means["method"] == method].assign(method=published)
    for (tuple_size, name), cells in own.groupby(["tuple_size", "reported"], sort=False):
        if name == "last ten" or method == published != "kmeans":
            gaps = beside_published(cells, plan.published_names).groupby("dataset")["difference"]
            facts = {"paper": published, "M": tuple_size, "ours": method, "reported": name, "cells": len(cells)}
            found.append({**facts, **gaps.agg(lambda gap: np.sqrt((gap**2).mean()))})
show("Distance from the paper, in points", found, 1)
