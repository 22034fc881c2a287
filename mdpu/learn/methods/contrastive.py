"""Contrastive loss (Hadsell, Chopra and LeCun, 2006), the paper's second baseline.

The paper names the loss and the evaluation: one random prototype per class, cosine similarity, mean
over 10 selections. It gives no supervision, embedding or margin, and its cosine does not fit the
Euclidean loss.

The choices here: an embedding of `OUTPUTS` linear units, not normalised. Hadsell's D^2 / 2 for "same" pairs
and max(0, m - D)^2 / 2 for the others, with m = 1 and the Euclidean distance D. Pairs as for `siamese`:
members of a tuple are "same", two unlabeled images are not, and both kinds have equal weight. Prototypes
are labelled training images, and the evaluation is the paper's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mdpu.learn.method import NetworkMethod
from mdpu.learn.pairs import PairHead

if TYPE_CHECKING:
    from torch import Tensor

OUTPUTS = 64
MARGIN = 1.0


class ContrastiveHead(PairHead):
    """Squared margin loss on Euclidean distances, scored by cosine similarity; parameters of `Head`."""

    def pair_loss(self, left: Tensor, right: Tensor, same: bool) -> Tensor:
        """Return Hadsell's loss of each pair, (R, P)."""
        import torch

        distance = torch.linalg.vector_norm(left - right, dim=2)  # its gradient at 0 is 0, not NaN
        return (distance if same else (MARGIN - distance).clamp(min=0)).square() / 2

    def similarities(self, images: Tensor, prototypes: Tensor) -> Iterator[Tensor]:
        """Yield the cosines (R, N) for each prototype."""
        from torch.nn import functional

        cosines = functional.normalize(images, dim=2) @ functional.normalize(prototypes, dim=2).mT  # (R, N, P)
        yield from cosines.unbind(2)


METHOD = NetworkMethod("Contrastive", ContrastiveHead, outputs=OUTPUTS, origin="baseline")
