"""Control: one and the same answer for every image, the floor.

Of the two constant answers the better one counts, so its accuracy is the majority rate of the test set.
Its objective is the 0-1 risk at the training prior, min(pi_+, pi_-).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.learn.method import FittedMethod

if TYPE_CHECKING:
    from mdpu.data.splits import Split
    from mdpu.learn.trainer import TrainingData
    from mdpu.study.grid import Run


def always_positive(run: Run, _split: Split, _data: TrainingData) -> tuple[float, float, float]:
    """Return the objective and the rates of the answer "positive"; the assignment may turn it over."""
    return min(float(run.prior), 1 - float(run.prior)), 1.0, 0.0


METHOD = FittedMethod("Chance", always_positive, control=True, unnamed=True)
