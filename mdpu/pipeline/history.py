"""A run's history as a tidy table: its key, the measures of the training, and what follows from them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mdpu.learn.methods import load_method
from mdpu.learn.risk import TERMS
from mdpu.pipeline.grid import Run, run_columns

RATES = ["true_positive_rate", "true_negative_rate"]
MEASURES = ("objective", *(f"risk_{term}" for term in TERMS), *RATES)  # what every history has


def run_history(run: Run, history: pd.DataFrame, share_positive: float) -> pd.DataFrame:
    """Return the history of a run.

    Parameters
    ----------
    run : Run
    history : DataFrame
        As `mdpu.learn.fitting.Fitted` holds it, with the rates of `mdpu.learn.evaluation.TestRates`.
    share_positive : float
        Share of positives among the test images.

    Returns
    -------
    DataFrame
        One row per epoch: the run's key columns; epoch, from 1; `MEASURES`; risk, the sum of its four terms;
        raw_accuracy and accuracy; and further measures of the head, by name. The two accuracies differ if the answers
        of an unnamed method are swapped to the better assignment; its rates are then swapped too. Risk terms are
        missing for a method that estimates no risk. All measures are missing from the first epoch on whose objective
        is not finite.
    """
    frame = history.reindex(columns=["epoch", *MEASURES])
    share = np.array([share_positive, 1 - share_positive])
    frame["risk"] = frame[[f"risk_{term}" for term in TERMS]].sum(axis=1, skipna=False)
    frame["raw_accuracy"] = frame[RATES] @ share
    if load_method(run.method).unnamed:
        frame[RATES] = frame[RATES].mask(frame["raw_accuracy"] < 0.5, 1 - frame[RATES])
    frame["accuracy"] = frame[RATES] @ share
    for name in history.columns.difference(frame.columns, sort=False):
        frame[name] = history[name]
    for position, (column, value) in enumerate(run_columns(run).items()):
        frame.insert(position, column, value)
    return frame
