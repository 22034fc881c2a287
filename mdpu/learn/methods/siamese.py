"""Siamese network (Koch, 2015), the paper's first baseline.

The paper gives the architecture's name and M = 2 and 3, but no loss, no supervision and no scoring.

The choices here follow Koch: both images pass the same network, whose last layer of `OUTPUTS` sigmoid units
is the embedding h. The probability that a pair is of one group is sigmoid(sum_j alpha_j |h_1j - h_2j| +
beta), with learned alpha and beta, trained by binary cross-entropy. Koch has no beta, but without it the
probability for two equal images would always be 1/2. The supervision is what this data can give: members of
one tuple are one group, two unlabeled images are not. For M > 2 every pair of a tuple counts. Both kinds of
pairs have equal weight. A test image takes the class of the labelled prototype, one per class, with which it
more probably shares a group; the result is the mean over 10 random selections of prototypes.

At pi_+ = 1/2 a pair has one negative with probability 2/3, but two unlabeled images differ only with
probability 1/2. As a statement about equal labels, this supervision is worse than none. What it does say is
that negatives never meet in a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mdpu.learn.method import NetworkMethod
from mdpu.learn.pairs import PairHead
from mdpu.randomness import Stream

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.learn.task import Task

OUTPUTS = 64


class SiameseHead(PairHead):
    """Weighted L1 distance of sigmoid embeddings with binary cross-entropy; parameters of `Head`."""

    def __init__(self, tasks: Sequence[Task], device: torch.device) -> None:
        import torch

        super().__init__(tasks, device)
        drawn = {task.seed: 2 * Stream(task.seed, "distance weights").uniform(OUTPUTS + 1) - 1 for task in tasks}
        values = torch.from_numpy(np.stack([drawn[task.seed] for task in tasks]) / OUTPUTS**0.5).float().to(device)
        # (R, 1, E) and (R, 1, 1), as a torch.nn.Linear from the E distances to the logit starts
        self.alpha = values[:, None, :OUTPUTS].contiguous().requires_grad_()
        self.beta = values[:, None, OUTPUTS:].contiguous().requires_grad_()
        self.parameters = [self.alpha, self.beta]

    def embedding(self, outputs: Tensor) -> Tensor:
        """Return Koch's sigmoid units."""
        return outputs.sigmoid()

    def logits(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the logits (R, N) that images (R, N, E) are of one group with others (R, 1 or N, E)."""
        return ((left - right).abs() @ self.alpha.mT + self.beta).squeeze(2)

    def pair_loss(self, left: Tensor, right: Tensor, same: bool) -> Tensor:
        """Return the binary cross-entropy of each pair, (R, P)."""
        from torch.nn import functional

        logits = self.logits(left, right)
        return functional.softplus(-logits if same else logits)

    def similarities(self, images: Tensor, prototypes: Tensor) -> Iterator[Tensor]:
        """Yield the logits (R, N) for each prototype."""
        yield from (self.logits(images, prototype[:, None]) for prototype in prototypes.unbind(1))


METHOD = NetworkMethod("Siamese", SiameseHead, outputs=OUTPUTS, origin="baseline")
