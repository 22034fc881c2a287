"""Control of `bag-relu`: the same bounded loss and correction on single members, so without joint information.

Among unlabeled images a share pi_+ / a can be seen as members of tuples: an image is one with the probability s = r
+ (1 - r) (b pi_+) / (a pi_-), linear in r, because members have the density (a / pi_+) r + (b / pi_-) (1 - r)
against the unlabeled (Lemma 6). So members are positives, unlabeled images unlabeled, s the classifier and pi_+ / a
the class prior of a non-negative PU risk with the squared loss. What `bag-relu` is above this, it owes to the
tuples. The run's loss is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.learn.bags import BagHead
from mdpu.learn.method import NetworkMethod
from mdpu.theory import coefficients

if TYPE_CHECKING:
    from torch import Tensor


class MarginalRiskHead(BagHead):
    """Non-negative PU risk of members with the squared loss on s; parameters of `Head`."""

    def loss(self, r: int, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the corrected risk."""
        task = self.tasks[r]
        mix = coefficients(task.tuple_size, task.prior)
        share = task.prior / mix.a
        slope = mix.denominator / (mix.a * (1 - task.prior))  # s is 1 - slope where r is 0
        of_members, of_unlabeled = (1 - slope * (-scores).sigmoid() for scores in (tuples.flatten(), unlabeled))
        negative = of_unlabeled.square().mean() - share * of_members.square().mean()
        return share * (1 - of_members).square().mean() + negative.clamp(min=0)


METHOD = NetworkMethod("Marginal ReLU", MarginalRiskHead)
