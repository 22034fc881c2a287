"""Where training went on for too long: test accuracies that were higher at earlier epochs."""

from __future__ import annotations

import pandas as pd

from mdpu.pipeline.evaluate.collect import reported_accuracy
from mdpu.pipeline.plan import CELL

WINDOW = 10  # epochs that an accuracy is the mean of
FELL = 1.0  # points from which on a cell is named


def overfitting(metrics: pd.DataFrame, test_prior: str) -> pd.DataFrame:
    """Return the methods of which a cell's mean accuracy fell by a point or more after its best epochs, worst first.

    A row has ``method`` and ``variant``, the numbers of ``cells`` and of those that ``fell``, the ``points`` that the
    worst of these lost, and the ``epoch``, a median, that ended their best `WINDOW` epochs. These are known by test
    labels, so nobody could have stopped there. Arguments are those of `reported_accuracy`.
    """
    seen = metrics[[*CELL, "epoch"]].assign(accuracy=reported_accuracy(metrics, test_prior))
    curves = seen.groupby([*CELL, "epoch"], observed=True)["accuracy"].mean().unstack("epoch")
    smooth = curves.T.rolling(WINDOW).mean().T.dropna(how="all")
    if smooth.empty:  # all trainings are short
        return pd.DataFrame(columns=["method", "variant", "fell", "points", "epoch", "cells"])
    last = smooth.ffill(axis=1).iloc[:, -1]
    cells = pd.DataFrame({"points": smooth.max(axis=1) - last, "epoch": smooth.idxmax(axis=1)}).reset_index()
    by = ["method", "variant"]
    worst = cells[cells["points"] >= FELL].groupby(by, observed=True)
    found = worst.agg(fell=("points", "size"), points=("points", "max"), epoch=("epoch", "median"))
    found = found.join(cells.groupby(by, observed=True).size().rename("cells"))
    return found.reset_index().sort_values("points", ascending=False, ignore_index=True)
