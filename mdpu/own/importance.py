"""Which columns matter: by how much the AUC falls where their values are exchanged between rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from mdpu.data import Indices
from mdpu.errors import UserError
from mdpu.own.groups import take_rows
from mdpu.own.judges import CountedJudge, Judge

MOST_COLUMNS = 200  # whose importance is measured
SLICES = 5  # of a column by its values, which are compared to tell whether it may be important


def parts_of_columns(estimator: Any, rows: Any) -> dict[str, list[int]]:
    """Return the places of what each column became in the rows that a model takes.

    Pictures have no columns.
    """
    if rows.ndim != 2:
        return {}
    names = [str(place) for place in range(rows.shape[1])]
    if isinstance(estimator, Pipeline):
        names = estimator[0].sources()
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    return places


def rank_columns(
    rows: Any,
    parts_of: dict[str, list[int]],
    held_out: NDArray[np.float64],
) -> list[str]:
    """Return the columns, those first whose values go along most with the scores (N,) of the rows.

    The values of a column are cut into `SLICES`, with another for missing ones. What counts is how
    far the mean scores of the slices lie from one another. Pictures have no columns.
    """
    if not parts_of:
        return []
    table = pd.DataFrame(np.asarray(rows))
    shares = np.nan_to_num(table.rank(pct=True).to_numpy())  # a missing value has the rank 0
    slices = np.ceil(shares * SLICES).astype(np.int64)
    between = np.array([_between(column, held_out) for column in slices.T])
    importance = {}
    for name, places in parts_of.items():
        importance[name] = between[places].max()
    return sorted(importance, key=lambda name: -importance[name])


def _between(slices: Indices, values: NDArray[np.float64]) -> float:
    """Return the sum of squares of values (N,) between slices."""
    counts = np.bincount(slices)
    sums = np.bincount(slices, values - values.mean())
    return float((sums**2 / np.maximum(counts, 1)).sum())


def column_importance(
    models: list[tuple[Any, Indices]],
    rows: Any,
    groups: Indices,
    parts_of: dict[str, list[int]],
    judge: Judge | CountedJudge,
) -> pd.DataFrame:
    """Return by how much the AUC of each fold falls where a column is permuted.

    A fold whose groups say nothing of an AUC, as all of them are negative, is left out.
    """
    nothing = pd.DataFrame({"column": [], "loss": [], "low": [], "high": []})
    if not parts_of:
        return nothing

    lost = []
    for model, held in models:
        rows_held = take_rows(rows, held)
        try:
            auc = judge.auc_of(model, rows_held, groups[held])
        except UserError:
            continue
        lost.append(_lost(model, rows_held, parts_of, auc))
    if not lost:
        return nothing
    low = np.min(lost, axis=0)
    mean = np.mean(lost, axis=0)
    high = np.max(lost, axis=0)
    return pd.DataFrame({"column": [*parts_of], "loss": mean, "low": low, "high": high})


def _lost(
    model: Any,
    rows: Any,
    parts_of: dict[str, list[int]],
    auc: Callable[[Any], float],
) -> list[float]:
    """Return the AUC on held-out rows less that with each column permuted, its parts alike."""
    whole = auc(model.decision_function(rows))
    values = np.array(rows)
    order = np.random.default_rng(0).permutation(len(values))
    lost = []
    for places in parts_of.values():
        permuted: Any = values.copy()
        permuted[:, places] = values[:, places][order]
        if isinstance(rows, pd.DataFrame):
            permuted = pd.DataFrame(permuted, columns=rows.columns)
        lost.append(whole - auc(model.decision_function(permuted)))
    return lost
