"""Learners of a classifier: networks, a student of a kernel machine, a linear model.

Each is a value. Its ``learn(sample, prior, seed)`` returns the scores of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from numpy.typing import NDArray

from mdpu.sample import Sample

Scorer = Callable[[Any], NDArray[Any]]  # from rows (N, ...) as they are to scores (N,)
EndEpoch = Callable[[], bool]  # is told that an epoch ended; returns whether to stop


def never_stop() -> bool:
    """Return False after any epoch."""
    return False


class Learner(ABC):
    """How scores are learned from a sample.

    Attributes
    ----------
    name : str
    """

    name: ClassVar[str]

    @property
    def takes_sparse(self) -> bool:
        """Whether rows may be a sparse matrix."""
        return True

    @property
    def takes_missing(self) -> bool:
        """Whether rows may have missing values."""
        return True

    def check(self, sample: Sample) -> None:  # noqa: B027  # most learners take any sample
        """Raise `UserError` if the learner cannot learn from a sample."""

    def epochs(self, sample: Sample) -> int:
        """Return the number of epochs of a training, 0 if it has none."""
        return 0

    @abstractmethod
    def learn(
        self, sample: Sample, prior: float, seed: int | str, end_epoch: EndEpoch = never_stop
    ) -> Scorer:
        """Return scores, log-odds of the class that the laws of the sample favour.

        Parameters
        ----------
        sample : Sample
        prior : float
            Share of that class among the unlabeled rows.
        seed : int or str
            Seed of all random numbers.
        end_epoch : callable
            Called after each epoch; the training stops where it returns True.
        """
