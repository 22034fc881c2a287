"""Count loss (Shukla et al., 2023): the number of positives of a bag is held to what is known of it.

Of a tuple it is known that it passed: -log q. Of `BAG` unlabeled images the count
has the law Binomial(BAG, pi_+): the cross-entropy to it of the count's law under the model, as for their PU data.
The two kinds weigh the same. The run's loss is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.law import TINY, count_law
from mdpu.learn.bags import BagHead
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    from torch import Tensor

BAG = 50


class CountHead(BagHead):
    """Count loss of tuples and of unlabeled bags; parameters of `Head`."""

    def loss(self, tuples: Tensor, unlabeled: Tensor, model_prior: Tensor) -> Tensor:
        """Return the sum of the two kinds' mean losses."""
        from mdpu.scores import unlabeled_bags

        tuples_loss = -self.passes(tuples)[0].clamp(min=TINY).log().mean(dim=1)
        bags = unlabeled_bags(unlabeled, BAG)
        law = count_law(bags.sigmoid(), (-bags).sigmoid()).clamp(min=TINY)  # (R, bags, BAG + 1)
        prior = self.prior[:, None].expand(-1, BAG)
        binomial = count_law(prior, 1 - prior)  # (R, BAG + 1)
        return tuples_loss - (binomial[:, None] * law.log()).sum(dim=2).mean(dim=1)


METHOD = NetworkMethod("Count loss", CountHead, origin="literature")
