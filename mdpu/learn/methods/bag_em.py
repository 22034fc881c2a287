"""Expectation maximisation on bags, after the general framework of Chen et al. (GLWS, 2024).

The labels of a tuple's members are latent, given that the tuple passed. A gradient step on their expected
cross-entropy is one on -log q (Fisher's identity), so that is the tuples' loss. An unlabeled image's expected label
is r with its log-odds shifted until the minibatch's mean is the told prior. Tuples weigh M times an unlabeled
image. The run's loss is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.law import TINY
from mdpu.learn.bags import BagHead, shift_to
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    from torch import Tensor


class ExpectationHead(BagHead):
    """Expected cross-entropy of members and unlabeled images; parameters of `Head`."""

    def loss(self, tuples: Tensor, unlabeled: Tensor, model_prior: Tensor) -> Tensor:
        """Return the mean over a tuple and an unlabeled image, as if the tuple were M."""
        from torch.nn.functional import softplus

        scores = unlabeled.detach()
        expected = (scores + shift_to(self.prior, scores)).sigmoid()
        unlabeled_loss = (softplus(unlabeled) - expected * unlabeled).mean(dim=1)
        tuples_loss = -self.passes(tuples)[0].clamp(min=TINY).log().mean(dim=1)
        return (tuples_loss + unlabeled_loss) / (tuples.shape[2] + 1)


METHOD = NetworkMethod("Bag EM", ExpectationHead, origin="literature")
