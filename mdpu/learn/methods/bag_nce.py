"""Logistic contrast of tuples with bags of unlabeled images (noise-contrastive estimation, Gutmann and Hyvarinen,
2010).

A bag is a tuple with the odds q / Z where both are equally many. The ratio is bounded by 1 / Z, the loss therefore
too, and still a network that memorises its tuples overfits it: `PIN` times the divergence of the model's prior from
the told one keeps it from that. The run's loss is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.learn.bags import BagHead, contrast, prior_divergence, unlabeled_bags
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    from torch import Tensor

PIN = 3.0


class PinnedContrastHead(BagHead):
    """The contrast and the divergence of the model's prior; parameters of `Head`."""

    def loss(self, r: int, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the mean cross-entropy + PIN KL(pi_+ || m)."""
        divergence = prior_divergence(self.tasks[r].prior, unlabeled.sigmoid().mean())
        return contrast(tuples, unlabeled_bags(unlabeled, tuples.shape[1]), self.bag_priors[r]) + PIN * divergence


METHOD = NetworkMethod("Bag NCE", PinnedContrastHead)
