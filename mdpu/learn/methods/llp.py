"""Learning from label proportions with the expected proportions, because the exact ones are hidden here.

Empirical proportion risk (Yu et al., 2014) with the cross-entropy between a bag's proportion and its
mean predicted probability (Ardehaly and Culotta, 2017; Tsai and Lin, 2020). The proportion of a tuple is
taken to be its expectation a (Lemma 6). The unlabeled images form bags of `BAG` in the minibatch's random
order, with the proportion pi_+. The two kinds of bags have equal weight. The run's loss is not used: this
literature uses the cross-entropy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mdpu.learn.head import Batch, Head
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.learn.task import Task

BAG = 100


class ProportionHead(Head):
    """Cross-entropy between expected and predicted proportions of bags; parameters of `Head`."""

    def __init__(self, tasks: Sequence[Task], device: torch.device) -> None:
        import torch

        super().__init__(tasks, device)
        priors = [task.prior for task in tasks]
        tuple_proportions = [task.law_of(task.tuple_size).coefficients(task.prior).a for task in tasks]
        self.proportions = torch.tensor([tuple_proportions, priors], dtype=torch.float32, device=device)  # (2, R)

    def objective(self, batch: Batch) -> tuple[Tensor, None]:
        """Return the mean over the two kinds of bags of their mean cross-entropy, (R,)."""
        import torch
        from torch.nn import functional

        unlabeled = batch.unlabeled.sigmoid().split(BAG, dim=1)
        predicted = (
            batch.tuples.sigmoid().mean(dim=2),  # (R, B)
            torch.stack([bag.mean(dim=1) for bag in unlabeled], dim=1),  # (R, bags)
        )
        losses = [
            functional.binary_cross_entropy(
                predictions, expected[:, None].expand_as(predictions), reduction="none"
            ).mean(dim=1)
            for predictions, expected in zip(predicted, self.proportions, strict=True)
        ]
        return torch.stack(losses).mean(dim=0), None


METHOD = NetworkMethod("LLP", ProportionHead, origin="literature")
