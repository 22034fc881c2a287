"""Logistic contrast of tuples with bags of unlabeled images (noise-contrastive estimation, Gutmann and Hyvarinen,
2010).

A bag is a tuple with the odds q / Z where both are equally many. The ratio is bounded by 1 / Z, the loss therefore
too, and still a network that memorises its tuples overfits it: `PIN` times the divergence of the model's prior from
the told one keeps it from that. The run's loss is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.learn.bags import BagHead, prior_divergence
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    from torch import Tensor

PIN = 3.0


class PinnedContrastHead(BagHead):
    """The contrast and the divergence of the model's prior; parameters of `Head`."""

    def loss(self, tuples: Tensor, unlabeled: Tensor, model_prior: Tensor) -> Tensor:
        """Return the mean cross-entropy + PIN KL(pi_+ || m)."""
        from mdpu.losses import contrast

        tuples_q, bags_q = (self.passes(scores)[0] for scores in (tuples, self.bags(unlabeled)))
        return contrast(tuples_q, bags_q, self.bag_prior) + PIN * prior_divergence(self.prior, model_prior)


METHOD = NetworkMethod("Bag NCE", PinnedContrastHead, takes_ragged=True, log_odds=True)
