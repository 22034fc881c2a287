"""Control of `bag-relu`: the same bounded loss and correction on single members, so without joint information.

Among unlabeled images a share pi_+ / a can be seen as members of tuples: an image is one with the probability s = r
+ (1 - r) (b pi_+) / (a pi_-), linear in r, because members have the density (a / pi_+) r + (b / pi_-) (1 - r)
against the unlabeled (Lemma 6). So members are positives, unlabeled images unlabeled, s the classifier and pi_+ / a
the class prior of a non-negative PU risk with the squared loss. Where a < pi_+ the classes change places. What
`bag-relu` is above this, it owes to the tuples. The run's loss is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mdpu.learn.bags import BagHead
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.learn.task import Task


class MarginalRiskHead(BagHead):
    """Non-negative PU risk of members with the squared loss on s; parameters of `Head`."""

    def __init__(self, tasks: Sequence[Task], device: torch.device) -> None:
        import torch

        super().__init__(tasks, device)
        laws = [task.law_of(task.tuple_size) for task in tasks]
        for law, task in zip(laws, tasks, strict=True):
            law.risk_weights(task.prior)  # refuses a = pi_+
        mixes = [law.coefficients(task.prior) for law, task in zip(laws, tasks, strict=True)]
        rarer = [mix.denominator > 0 for mix in mixes]  # whether positives are rarer among unlabeled images
        slopes = [
            mix.denominator / (mix.a * (1 - t.prior)) if up else -mix.denominator / (mix.b * t.prior)
            for mix, up, t in zip(mixes, rarer, tasks, strict=True)
        ]
        self.slope = torch.tensor(slopes, device=device)  # (R,): s is 1 - slope where r is 0
        self.sign = torch.tensor([1.0 if up else -1.0 for up in rarer], device=device)
        most = torch.tensor([mix.a if up else mix.b for mix, up in zip(mixes, rarer, strict=True)], device=device)
        self.share = torch.where(self.sign > 0, self.prior, 1 - self.prior) / most  # (R,): pi_+ / a

    def loss(self, tuples: Tensor, unlabeled: Tensor, model_prior: Tensor) -> Tensor:
        """Return the corrected risk."""
        slope, sign = self.slope[:, None], self.sign[:, None]
        members, others = (1 - slope * (-sign * scores).sigmoid() for scores in (tuples.flatten(1), unlabeled))
        negative = others.square().mean(dim=1) - self.share * members.square().mean(dim=1)
        return self.share * (1 - members).square().mean(dim=1) + negative.clamp(min=0)


METHOD = NetworkMethod("Marginal ReLU", MarginalRiskHead, log_odds=True)
