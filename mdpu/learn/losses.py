"""The four losses of Table I, as functions of the margin z = y g(x)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Loss:
    """A margin loss l(g, y) = margin_loss(y g).

    Attributes
    ----------
    title : str
        Name in tables.
    formula : str
        LaTeX of l(t, z) in the notation of Table I (t the label, z the score).
    margin_loss : callable
        Elementwise, from margins to losses, any shape.
    """

    title: str
    formula: str
    margin_loss: Callable[[Tensor], Tensor]

    def __call__(self, scores: Tensor, label: int) -> Tensor:
        """Return the loss of each score against `label` (+1 or -1), same shape as `scores`."""
        return self.margin_loss(scores if label > 0 else -scores)


LOSSES = {
    "logistic": Loss("Logistic", r"\log(1 + \exp(-tz))", lambda z: functional.softplus(-z)),
    "ramp": Loss("Ramp", r"\min(1, \max(0, 1 - tz))", lambda z: torch.clamp(1 - z, 0, 1)),
    "squared": Loss("Squared", r"\frac{1}{4}(tz - 1)^2", lambda z: (z - 1).square() / 4),
    "hinge": Loss("Hinge", r"\max(0, 1 - tz)", lambda z: functional.relu(1 - z)),
}
