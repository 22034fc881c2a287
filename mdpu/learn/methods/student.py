"""Boosted trees on the soft labels of a kernel machine: the classifier's learner ``student``, its first for tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mdpu.learn.method import Answers, FittedMethod
from mdpu.learn.methods import linear

if TYPE_CHECKING:
    from mdpu.data import TupleData
    from mdpu.learn.task import Task


def fit(task: Task, sample: TupleData, images: NDArray[Any]) -> Answers:
    """Fit the teacher, and the student to its soft labels."""
    from mdpu.learners.student import fit_student

    return linear.answers_of(fit_student, task, sample, images)


METHOD = FittedMethod("Student", fit, takes_ragged=True)
