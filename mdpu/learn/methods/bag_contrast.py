"""Logistic contrast of tuples with bags of unlabeled images, without the prior.

`bag-nce` uses the given Z; this method uses the Z of the model's own prior, the mean of r over the unlabeled images.
The joint law identifies both (``docs/explanation/bags.md``, Theorem 2). The run's loss is not used. A network that
memorises its tuples loses the prior, so this method needs an early stop; `mdpu.learn.prior` provides one by held-out
bags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.learn.bags import BagHead
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    from torch import Tensor


class FreeContrastHead(BagHead):
    """The contrast with the model's own Z; parameters of `Head`."""

    def loss(self, tuples: Tensor, unlabeled: Tensor, model_prior: Tensor) -> Tensor:
        """Return the mean cross-entropy."""
        from mdpu.losses import contrast
        from mdpu.scores import joint, seen_at

        groups = (joint(self.law, scores) for scores in (tuples, self.bags(unlabeled)))
        (tuples_q, bags_q), bag_prior = seen_at(self.law, model_prior, *groups)
        return contrast(tuples_q, bags_q, bag_prior)


METHOD = NetworkMethod("Bag contrast, prior-free", FreeContrastHead, log_odds=True)
