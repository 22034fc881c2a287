"""Likelihood of the tuples under the model's own prior, with that prior held near the one that is told.

The log-likelihood of a tuple is log q - log Z(m), with m the mean of r over the unlabeled images
(``docs/explanation/bags.md``, "The likelihood"). By itself it needs no prior, but a network that memorises its tuples
drives m to zero. So `PIN` times the divergence of m from the told prior is added, whose minimum is at the true r too.
No bags are made of unlabeled images. The run's loss is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.law import TINY
from mdpu.learn.bags import BagHead, prior_divergence
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    from torch import Tensor

PIN = 10.0


class LikelihoodHead(BagHead):
    """Negative log-likelihood of tuples and the divergence of the model's prior; parameters of `Head`."""

    def loss(self, tuples: Tensor, unlabeled: Tensor, model_prior: Tensor) -> Tensor:
        """Return log Z(m) - mean log q + PIN KL(pi_+ || m)."""
        from mdpu.scores import joint, seen_at

        (q,), bag_prior = seen_at(self.law, model_prior, joint(self.law, tuples))
        likelihood = q.clamp(min=TINY).log().mean(dim=1) - bag_prior.log()
        return PIN * prior_divergence(self.prior, model_prior) - likelihood


METHOD = NetworkMethod("Bag likelihood", LikelihoodHead, takes_ragged=True, log_odds=True)
