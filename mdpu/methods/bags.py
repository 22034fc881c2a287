"""Tuples as positive bags and groups of unlabeled images as unlabeled bags: `bag-relu`, `bag-free`
and `bag-em`.

The theory is in ``docs/explanation/bags.md``, the loss of the first two is `mdpu.losses.TupleLoss`.
The run's loss is not used.

- `bag-relu` is the non-negative PU risk of du Plessis et al. (2015) and Kiryo et al. (2017), with
  bags for images, Z for the class prior and q, the probability that a bag passes, for the
  classifier; the loss is the squared one on q, which is bounded. The model is the running mean of
  the weights.
- `bag-free` is the same, with an estimate of the prior from the same sample.
- `bag-em` is expectation maximisation after the general framework of Chen et al. (GLWS, 2024). The
  labels of a tuple's members are latent, given that the tuple passed. A gradient step on their
  expected cross-entropy is one on -log q (Fisher's identity), so that is the tuples' loss. An
  unlabeled image's expected label is r with its log-odds shifted until the minibatch's mean is the
  given prior. Tuples weigh M times an unlabeled image. Its scores are not log-odds:
  -log q is not normalised by Z, so the true r is not its minimum.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from mdpu.law import TINY
from mdpu.losses import TupleLoss, joint

HALVINGS = 30  # of the interval in which a shift is looked for


class ExpectationLoss(TupleLoss):
    """Expected cross-entropy of members and of unlabeled images."""

    def kind_terms(self, kind: int, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the mean over a tuple and an unlabeled image, as if the tuple were M."""
        law, _ = self.values_of(kind)
        scores = unlabeled.detach()
        expected = (scores + shift_to(self.prior, scores)).sigmoid()
        unlabeled_loss = (softplus(unlabeled) - expected * unlabeled).mean(dim=-1)
        tuples_loss = -joint(law, tuples)[0].clamp(min=TINY).log().mean(dim=-1)
        return (tuples_loss + unlabeled_loss) / (law.size + 1)


def shift_to(prior: float, scores: Tensor) -> Tensor:
    """Return the shift of scores (..., N) that gives r the mean `prior`, at most 30 log-odds,
    (..., 1).
    """
    low = torch.full_like(scores[..., :1], -30.0)
    high = -low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = (scores + middle).sigmoid().mean(dim=-1, keepdim=True) < prior
        low, high = middle.where(below, low), high.where(below, middle)
    return (low + high) / 2
