"""Tuples as positive bags and groups of unlabeled images as unlabeled ones: what the methods on bags share.

``docs/explanation/bags.md`` has the theory, `mdpu.losses` the formulas. No torch at the top: the files of methods
import this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mdpu.law import TINY
from mdpu.learn.head import Batch, Head

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.learn.task import Task

# Of the weights' running mean that the bag risks take for their model: some fifty steps, twelve epochs of the protocol.
EMA_DECAY = 0.98


class BagHead(Head):
    """Base of the heads on bags; parameters of `Head`.

    The objective of tuples of several sizes is the mean of the objectives of each size, by their numbers in the
    minibatch; each size has its share of the unlabeled images.

    Attributes
    ----------
    prior, bag_prior : Tensor, shape (R,)
        pi_+ and Z, the share of random bags that pass, as each task is told.
    law, told_law : Law
        Of the tuples; the same at the told prior, without a share of broken ones.
    measures : tuple of str
        ``model_prior`` is the mean of r over the unlabeled images, the model's own class prior.
    """

    measures = ("model_prior",)
    is_log_odds = True

    def __init__(self, tasks: Sequence[Task], device: torch.device) -> None:
        import torch

        super().__init__(tasks, device)
        self.prior = torch.tensor([task.prior for task in tasks], device=device)
        laws = [task.law_of(task.tuple_size) for task in tasks]
        rates = [law.rate(task.prior) for law, task in zip(laws, tasks, strict=True)]
        self.bag_prior = torch.tensor(rates, device=device)
        self.law, self.told_law = laws[0], laws[0].at(tasks[0].prior)
        self._alike = all(law.at(t.prior) == self.told_law for law, t in zip(laws, tasks, strict=True))

    def objective(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the objective (R,) and the model's class prior (R, 1)."""
        import torch

        model_prior = batch.unlabeled.sigmoid().mean(dim=1)
        if batch.sizes is None and self._alike:
            objective = self.loss(batch.tuples, batch.unlabeled, model_prior)
        else:
            objective = torch.stack([self._own_loss(batch, r, model_prior) for r in range(len(self.tasks))])
        return objective, model_prior[:, None]

    def _own_loss(self, batch: Batch, r: int, model_prior: Tensor) -> Tensor:
        """Return what one task minimises, a scalar, on tuples of one size or of several."""
        import torch

        from mdpu.scores import by_kind

        tuples, unlabeled, own_prior = (part[r : r + 1] for part in (batch.tuples, batch.unlabeled, model_prior))
        if batch.sizes is None:
            return type(self)([self.tasks[r]], self.device).loss(tuples, unlabeled, own_prior)[0]
        parts = []
        for share, size, own, others in by_kind(tuples, unlabeled, batch.sizes[r]):
            head = type(self)([replace(self.tasks[r], tuple_size=size)], self.device)
            parts.append(share * head.loss(own, others, own_prior)[0])
        return torch.stack(parts).sum()

    def passes(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return q and 1 - q, (R, B), of groups with the scores (R, B, M)."""
        from mdpu.scores import joint

        return joint(self.told_law, scores)

    def bags(self, unlabeled: Tensor) -> Tensor:
        """Return the scores (R, B_U) of unlabeled images as bags (R, B_U // M, M).

        An epoch goes through the unlabeled images in an order drawn anew, so bags are random, and other ones in every
        epoch.
        """
        from mdpu.scores import unlabeled_bags

        return unlabeled_bags(unlabeled, self.law.size)

    def loss(self, tuples: Tensor, unlabeled: Tensor, model_prior: Tensor) -> Tensor:
        """Return what each run minimises, (R,).

        Parameters
        ----------
        tuples : Tensor, shape (R, B, M)
            Scores of the members of tuples.
        unlabeled : Tensor, shape (R, B_U)
            Scores of unlabeled images.
        model_prior : Tensor, shape (R,)
            Mean of r over them.
        """
        raise NotImplementedError


class BagRiskHead(BagHead):
    """Non-negative PU risk of bags with the squared loss on q; parameters of `Head`.

    Z mean_T (1 - q)^2 + f(mean_U q^2 - Z mean_T q^2), where T are the tuples, U bags of unlabeled images, and f is a
    correction of the second part, whose expectation is not negative (``docs/explanation/bags.md``, "The bag risk").

    Attributes
    ----------
    k : float
        Slope of f below zero, see `mdpu.losses.correction`.
    """

    k = 0.0

    def loss(self, tuples: Tensor, unlabeled: Tensor, model_prior: Tensor) -> Tensor:
        """Return the corrected risk."""
        from mdpu.losses import bag_risk

        return bag_risk(self.told_law, tuples, self.bags(unlabeled), self.bag_prior, self.k)


def shift_to(prior: Tensor, scores: Tensor, halvings: int = 30) -> Tensor:
    """Return what to add to scores (R, N) for r to have the mean `prior` (R,), at most 30 log-odds, (R, 1)."""
    low = scores.new_full((len(scores), 1), -30.0)
    high = -low
    for _ in range(halvings):
        middle = (low + high) / 2
        below = (scores + middle).sigmoid().mean(dim=1, keepdim=True) < prior[:, None]
        low, high = middle.where(below, low), high.where(below, middle)
    return (low + high) / 2


def prior_divergence(prior: Tensor, model_prior: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of Bernoulli(model_prior) from Bernoulli(prior), elementwise."""
    model_negative = (1 - model_prior).clamp(min=TINY)
    return prior * (prior / model_prior.clamp(min=TINY)).log() + (1 - prior) * ((1 - prior) / model_negative).log()
