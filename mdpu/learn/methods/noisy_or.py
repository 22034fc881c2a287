"""Multiple-instance learning by noisy-or (Maron and Lozano-Perez, 1998): positive tuples, negative unlabeled bags.

A bag is positive with the probability 1 - prod_i (1 - r_i); the loss is the cross-entropy, the two kinds weighing the
same. For M > 2 the link is not that of dominant tuples, and for any M a share Z of the bags that are called negative is
dominant: what one does who takes multiple-instance learning as it is. The prior and the run's loss are not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.law import TINY
from mdpu.learn.bags import BagHead
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    from torch import Tensor


class NoisyOrHead(BagHead):
    """Cross-entropy of bags under noisy-or; parameters of `Head`."""

    def loss(self, tuples: Tensor, unlabeled: Tensor, model_prior: Tensor) -> Tensor:
        """Return the mean over the two kinds of their mean cross-entropy."""
        import torch
        from torch.nn.functional import softplus

        none_of_tuple = softplus(tuples).sum(dim=2)  # -log prod (1 - r)
        none_of_bag = softplus(self.bags(unlabeled)).sum(dim=2)
        tuples_loss = -(-torch.expm1(-none_of_tuple)).clamp(min=TINY).log().mean(dim=1)
        return (tuples_loss + none_of_bag.mean(dim=1)) / 2


METHOD = NetworkMethod("Noisy-or", NoisyOrHead, origin="literature")
