"""What is lost where collectors look at more than the labels: results/reference/collectors.csv."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

from mdpu.pipeline.files import REPOSITORY

METHODS = {"ure": "x", "relu": "s", "abs": "^", "bag-relu": "o", "bag-nce": "D"}
rows = pd.read_csv(REPOSITORY / "results/reference/collectors.csv")
cases = rows[["collector", "strength"]].drop_duplicates().to_numpy().tolist()[1:]
names = [name if strength == 1 else f"{name} {strength}" for name, strength in cases]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for axis, (dataset, own) in zip(axes, rows.groupby("dataset"), strict=True):
    by_case = own.set_index(["collector", "strength", "trial"]).sort_index()
    for place, (method, marker) in enumerate(METHODS.items()):
        lost = [by_case[method].loc[name, strength] - by_case[method].loc["fair", 1] for name, strength in cases]
        half = [stats.t.ppf(0.975, len(one) - 1) * one.std() / np.sqrt(len(one)) for one in lost]
        at = np.arange(len(cases)) + 0.15 * (place - 2)
        axis.errorbar(at, [one.mean() for one in lost], half, fmt=marker, markersize=4, label=method, linewidth=0.8)
    seen = [np.mean((one.low > 0.4) | (one.high < 0.4)) for one in (by_case.loc[tuple(case)] for case in cases)]
    axis.set_xticks(
        range(len(cases)), [f"{name}\n{100 * share:.0f} %" for name, share in zip(names, seen, strict=True)]
    )
    axis.tick_params(axis="x", rotation=60)
    axis.axhline(0, color="gray", linewidth=0.8)
    axis.set(title={"magic": "MAGIC", "mnist": "MNIST"}[dataset], ylim=(-45, 10))
axes[0].set_ylabel("Points of accuracy\nbeside fair collectors")
axes[1].legend(fontsize="small", ncols=2, loc="lower right")
