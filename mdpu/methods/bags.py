"""Tuples as positive bags and groups of unlabeled images as unlabeled bags: `bag-relu`, `bag-free`
and `bag-em`.

The theory is in ``docs/explanation/bags.md``, the formulas in `mdpu.losses`. The run's loss is not
used.

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

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from mdpu.data import TupleData
from mdpu.law import TINY, Law
from mdpu.losses import bag_risk, by_kind, joint, unlabeled_bags
from mdpu.methods import Batch, Objective


class Bags(Objective):
    """Base of the objectives on bags; it records the model's own class prior, the mean of r over
    unlabeled images.

    The objective of tuples of several sizes is the mean of those of each size, by their numbers in
    the minibatch; each size has its share of the unlabeled images.
    """

    measures = ("model_prior",)

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the objective (S,) and the model's class prior (S, 1)."""
        tuples, unlabeled, sizes, _ = batch
        model_prior = unlabeled.detach().sigmoid().mean(dim=1)[:, None]
        if sizes is None:
            return self.loss(self.task.law_of(tuples.shape[2]), tuples, unlabeled), model_prior
        by_seed = [
            sum(
                share * self.loss(self.task.law_of(size), cut, others)[0]
                for share, size, cut, others in by_kind(own[None], own_unlabeled[None], own_sizes)
            )
            for own, own_unlabeled, own_sizes in zip(tuples, unlabeled, sizes, strict=True)
        ]
        return torch.stack(by_seed), model_prior  # type: ignore[arg-type]

    def loss(self, law: Law, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the objective (S,) on scores of tuples (S, B, M) and of unlabeled images (S,
        B_U).
        """
        raise NotImplementedError

    def threshold(self) -> float:
        """Return the threshold of log-odds that moves them from the unlabeled images' prior to the
        target, if any.
        """
        target = self.task.target_prior
        if target is None or not self.method.log_odds:
            return 0.0
        return math.log(self.task.prior / (1 - self.task.prior)) - math.log(target / (1 - target))

    def start(self, sample: TupleData, seed: int | str, images: Any) -> Any:
        """Return the linear scores of laws under which networks start at a saddle
        (`mdpu.learners.linear`).
        """
        law = self.task.law_of(self.task.tuple_size)
        steps = [after - before for before, after in pairwise(law.at(self.task.prior).weights)]
        if not min(steps) < 0 < max(steps):
            return None  # weights that only rise need no start, and scipy stays unloaded
        from mdpu.learners.linear import network_start

        return network_start(images, sample, law, self.task.prior, seed)


class BagRisk(Bags):
    """Z mean_T (1 - q)^2 + f(mean_B q^2 - Z mean_T q^2), of tuples T and bags B of unlabeled
    images.
    """

    def loss(self, law: Law, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the corrected risk; an epoch orders the unlabeled images anew, so its bags are
        random.
        """
        bags = unlabeled_bags(unlabeled, law.size)
        prior = self.task.prior
        return bag_risk(law.at(prior), tuples, bags, law.rate(prior), self.method.k)


class Expectation(Bags):
    """Expected cross-entropy of members and of unlabeled images."""

    def loss(self, law: Law, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the mean over a tuple and an unlabeled image, as if the tuple were M."""
        scores = unlabeled.detach()
        expected = (scores + shift_to(self.task.prior, scores)).sigmoid()
        unlabeled_loss = (softplus(unlabeled) - expected * unlabeled).mean(dim=1)
        tuples_loss = -joint(law.at(self.task.prior), tuples)[0].clamp(min=TINY).log().mean(dim=1)
        return (tuples_loss + unlabeled_loss) / (tuples.shape[2] + 1)


def shift_to(prior: float, scores: Tensor, halvings: int = 30) -> Tensor:
    """Return the shift of scores (S, N) that gives r the mean `prior`, at most 30 log-odds,
    (S, 1).
    """
    low = scores.new_full((len(scores), 1), -30.0)
    high = -low
    for _ in range(halvings):
        middle = (low + high) / 2
        below = (scores + middle).sigmoid().mean(dim=1, keepdim=True) < prior
        low, high = middle.where(below, low), high.where(below, middle)
    return (low + high) / 2
