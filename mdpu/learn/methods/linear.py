"""A linear model of the joint objective, for tables with few tuples: the classifier's learner ``linear``.

Of all rows only those of the sample are seen, as the classifier sees them. The history's objective is the joint
objective without its last term (`mdpu.learners.joint.Objective`), at the rows that were learned from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mdpu.learn.method import Answers, FittedMethod
from mdpu.randomness import Stream

if TYPE_CHECKING:
    from mdpu.data import TupleData
    from mdpu.learn.task import Task


def answers_of(fit: Callable[..., Any], task: Task, sample: TupleData, images: NDArray[Any]) -> Answers:
    """Return the answers of a learner: from (rows, bags, prior, seed) to what gives the scores of rows."""
    from threadpoolctl import threadpool_limits

    from mdpu.learners.joint import Bags, Objective, only_used

    rows, own = only_used(images, sample)
    bags = Bags.of(own, task.law_of)
    with threadpool_limits(1):  # other threads would divide sums in another way
        scores_of = fit(rows, bags, task.prior, task.seed)
        objective = Objective(bags, task.prior, len(rows), Stream(task.seed, "objective of answers"))
        value = objective.bag_loss(scores_of(rows))

    def says_positive(images: NDArray[Any]) -> NDArray[Any]:
        with threadpool_limits(1):
            return scores_of(images) > 0

    return Answers(value, says_positive)


def fit(task: Task, sample: TupleData, images: NDArray[Any]) -> Answers:
    """Fit the model."""
    from mdpu.learners.student import fit_linear

    return answers_of(fit_linear, task, sample, images)


METHOD = FittedMethod("Linear", fit, takes_ragged=True)
