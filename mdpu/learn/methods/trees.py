"""Boosted trees of the joint objective, for tables: the classifier's learner ``trees``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mdpu.learn.method import Answers, FittedMethod
from mdpu.learn.methods import linear

if TYPE_CHECKING:
    from mdpu.data import TupleData
    from mdpu.learn.task import Task


def fit(task: Task, sample: TupleData, images: NDArray[Any]) -> Answers:
    """Fit the trees."""
    from mdpu.learners.trees import fit_trees

    return linear.answers_of(fit_trees, task, sample, images)


METHOD = FittedMethod("Trees", fit, takes_ragged=True)
