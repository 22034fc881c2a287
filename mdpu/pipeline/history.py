"""A run's history as a table: the measures of the training, and what follows from them."""

from __future__ import annotations

import pandas as pd

from mdpu.learn.methods import load_method
from mdpu.learn.risk import TERMS

RATES = ["true_positive_rate", "true_negative_rate"]
MEASURES = ("objective", *(f"risk_{term}" for term in TERMS), *RATES)  # what every history has


def run_history(method: str, history: pd.DataFrame, share_positive: float) -> pd.DataFrame:
    """Return the history of a run.

    Parameters
    ----------
    method : str
    history : DataFrame
        As `mdpu.learn.fitting.Fitted` holds it, with the rates of `mdpu.learn.evaluation.TestRates`.
    share_positive : float
        Share of positives among the test images.

    Returns
    -------
    DataFrame
        One row per epoch: epoch, from 1; `MEASURES`; risk, the sum of its four terms; raw_accuracy and accuracy; and
        further measures of the head, by name. The two accuracies differ if the answers of an unnamed method are swapped
        to the better assignment; its rates are then swapped too. Risk terms are missing for a method that estimates no
        risk. All measures are missing from the first epoch on whose objective is not finite.
    """
    frame = history.reindex(columns=["epoch", *MEASURES])
    frame["risk"] = frame[[f"risk_{term}" for term in TERMS]].sum(axis=1, skipna=False)
    frame["raw_accuracy"] = _accuracy(frame, share_positive)
    if load_method(method).unnamed:
        frame[RATES] = frame[RATES].mask(frame["raw_accuracy"] < 0.5, 1 - frame[RATES])
    frame["accuracy"] = _accuracy(frame, share_positive)
    for name in history.columns.difference(frame.columns, sort=False):
        frame[name] = history[name]
    return frame


def _accuracy(frame: pd.DataFrame, share_positive: float) -> pd.Series:
    """Return the accuracy, element by element: a matrix product rounds otherwise on some processors."""
    positive, negative = (frame[name] for name in RATES)
    return share_positive * positive + (1 - share_positive) * negative
