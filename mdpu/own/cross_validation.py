"""Models of folds that cut no group: each row is scored by one that has seen neither it nor its
group, unless the row stands in another group, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline

from mdpu.data import UNLABELED, Indices, numbers_of
from mdpu.own.groups import GroupData, rows_of_groups, take_rows
from mdpu.own.rules import Rule
from mdpu.scores import TupleKFold

FOLDS = 5
# of the groups in training, the learning curve has an eighth, a quarter, a half, and all
PARTS = (8, 4, 2, 1)
LEAST = 20  # groups in such a part


@dataclass(frozen=True)
class CrossValidation:
    """Models that were trained without a fold, and what they say of its rows.

    Attributes
    ----------
    models : list of (classifier, ndarray)
        For each fold, the model that learned from all groups of the others, and the places of the
        fold's rows.
    scores_by_part : dict from int to ndarray, shape (N,)
        Scores of all rows. The key is the number of parts that the groups in training were cut
        into, of which one was learned from; 1 stands for all of them.
    """

    models: list[tuple[Any, Indices]]
    scores_by_part: dict[int, NDArray[np.float64]]

    @property
    def scores(self) -> NDArray[np.float64]:
        """The scores (N,) by models that learned from all groups of the other folds."""
        return self.scores_by_part[1]

    @property
    def folds(self) -> Indices:
        """The number of each row's fold (N,)."""
        folds = np.zeros(len(self.scores), np.int64)
        for fold, (_, held) in enumerate(self.models):
            folds[held] = fold
        return folds


def groups_in_training(n_groups: int, part: int) -> float:
    """Return how many groups a model of a fold learns from, on average."""
    return n_groups * (FOLDS - 1) / FOLDS / part


def large_parts(parts: Sequence[int], n_groups: int) -> list[int]:
    """Return the parts of a learning curve in which enough groups are left; the last is 1."""
    return [part for part in parts if part == 1 or groups_in_training(n_groups, part) >= LEAST]


def cross_validate(
    trainer: Trainer,
    classifier: Any,
    rows: Any,
    groups: Indices,
    parts: Sequence[int],
    end_model: Callable[[], object],
) -> CrossValidation:
    """Train clones of a classifier on folds of rows (N, ...) with groups (N,).

    `end_model` is called after each.
    """
    scores_by_part = {part: np.empty(len(groups)) for part in parts}
    models = []
    for kept, held in _folds(FOLDS, rows, groups):
        for part in parts:
            chosen = _one_of(part, kept, groups)
            model = trainer.fit(clone(classifier), take_rows(rows, chosen), groups[chosen])
            scores_by_part[part][held] = model.decision_function(take_rows(rows, held))
            end_model()
        models.append((model, held))  # of the last part, which is all groups
    return CrossValidation(models, scores_by_part)


def _one_of(parts: int, places: Indices, groups: Indices) -> Indices:
    """Return the places of the rows of one of several parts that cut no group."""
    if parts == 1:
        return places
    _, chosen = next(_folds(parts, places, groups[places]))
    return places[chosen]


def _folds(count: int, rows: Any, groups: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Yield the places of the rows to train on and to hold out, in folds that cut no group."""
    if (groups == UNLABELED).any():
        return TupleKFold(count).split(rows, groups)
    return iter(GroupKFold(count, shuffle=True, random_state=0).split(groups, groups=groups))


class Trainer:
    """Trains classifiers on parts of the data by its rule."""

    def __init__(self, data: GroupData, rule: Rule):
        self.numbers = numbers_of(data.groups)
        self.rule = rule

    def fit(self, estimator: Any, rows: Any, groups: Indices) -> Any:
        """Train a classifier, or a pipeline that ends in one, on rows (N, ...) of groups (N,)."""
        if self.rule.counts is None:
            return estimator.fit(rows, groups)
        counts = self.rule.take(np.searchsorted(self.numbers, numbers_of(groups))).counts
        if isinstance(estimator, Pipeline):  # whose fit takes no list of groups
            rows = estimator[:-1].fit_transform(rows)
        classifier = last_step(estimator)
        if (groups == UNLABELED).any():
            classifier.fit(rows, groups, counts=counts)
        else:
            classifier.fit(rows_of_groups(rows, groups), counts=counts)
        return estimator


def last_step(estimator: Any) -> Any:
    """Return the classifier that a pipeline ends in, or the classifier itself."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator
