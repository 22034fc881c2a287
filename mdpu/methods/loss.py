"""A loss as the objective of a training: one of `mdpu.losses`, or a function of scores.

The loss is the method's, or the task's, if that is a function and no name. A loss of `mdpu.losses`
takes the scores of all seeds at once. A function takes those of one seed, as in a loop of one's
own, and is called for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.losses import RiskLoss, ScoreLoss, TupleLoss
from mdpu.methods import Batch, Objective


class LossObjective(Objective):
    """The objective that a loss gives; it records what the loss measures.

    Raises
    ------
    UserError
        If the loss is a function that does not return a number which depends on the scores.
    """

    loss: Callable[..., Any]

    def begin(self) -> None:
        """Make the loss, and let it read the law of the tuples."""
        is_function = callable(self.task.loss)
        self.loss = self.task.loss if is_function else cast(Any, self.method.loss)(self.task)
        if not isinstance(self.loss, ScoreLoss):
            return

        self.measures = self.loss.measures
        if is_function:  # a user's instance stays where it is, and has no test loss by name
            return
        self.loss.prepare(self.task.tuple_size, self.device)
        if isinstance(self.loss, RiskLoss):
            self.test_measures = ("test_risk",)

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return the loss (S,), and the measures of a loss of `mdpu.losses`."""
        if not isinstance(self.loss, ScoreLoss):
            by_seed = [self.of_one_seed(batch, s) for s in range(len(self.seeds))]
            return torch.stack(by_seed), None
        if batch.sizes is None:
            terms = self.loss.terms(batch.tuples, batch.unlabeled)
        else:
            seeds = zip(batch.tuples, batch.unlabeled, batch.sizes, strict=True)
            terms = torch.stack([self.loss.terms(*of_seed) for of_seed in seeds])
        return self.loss.combine(terms), self.loss.measured(terms, batch.unlabeled)

    def of_one_seed(self, batch: Batch, s: int) -> Tensor:
        """Return what a function makes of the scores of one seed."""
        tuples: Any = batch.tuples[s]
        if batch.sizes is not None:
            tuples = [scores[:size] for scores, size in zip(tuples, batch.sizes[s], strict=True)]
        value = self.loss(tuples, batch.unlabeled[s])
        if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
            raise UserError(
                f"loss returns {value!r}; a tensor of one number that depends on the scores is "
                "needed"
            )
        return value.reshape(())

    def start(self, sample: TupleData, seed: int | str, images: Any) -> Any:
        """Return linear scores where networks of the joint law start at a saddle
        (`mdpu.learners.linear`).
        """
        if not isinstance(self.loss, TupleLoss):
            return None
        law = self.task.law_of(self.task.tuple_size)
        if not law.at(self.task.prior).turns:
            return None  # weights that only rise need no start, and scipy stays unloaded
        from mdpu.learners.linear import network_start

        return network_start(images, sample, law, self.task.prior, seed)
