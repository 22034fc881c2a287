"""Training in float64, for tests that compare the numbers of two trainings.

In float32 no training repeats between CPUs: Adam divides a gradient by its size, so a gradient that
is zero but for rounding moves its weight by a whole step.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from mdpu import train as trainer
from mdpu.networks import Preparation


@contextmanager
def in_float64() -> Iterator[None]:
    """Let networks, their input and all sums be float64, so that rounding stays far below what a
    change moves.
    """
    laid_out = Preparation.lay_out
    made = trainer.make_network
    default = torch.get_default_dtype()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "float", torch.Tensor.double)
        patch.setattr(Preparation, "lay_out", lambda self, kept: laid_out(self, kept).double())
        patch.setattr(trainer, "make_network", lambda *arguments: made(*arguments).double())
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(default)
