"""Control: the same answer for every image, the floor.

The better of the two constant answers counts, so the accuracy is the majority rate of the test set.
Its objective is the 0-1 risk at the training prior, min(pi_+, pi_-).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpu.learn.method import Answers, FittedMethod

if TYPE_CHECKING:
    from mdpu.data import TupleData
    from mdpu.learn.task import Task


def always_positive(task: Task, _sample: TupleData, _images: NDArray[Any]) -> Answers:
    """Return the objective and the answer "positive", which the assignment may reverse."""
    return Answers(min(task.prior, 1 - task.prior), lambda images: np.ones(len(images), dtype=bool))


METHOD = FittedMethod("Chance", always_positive, control=True, unnamed=True)
