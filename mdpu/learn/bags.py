"""Tuples as positive bags and groups of unlabeled images as unlabeled ones: what the methods on bags share.

``docs/explanation/bags.md`` has the theory, `mdpu.theory.joint` the plain version of `dominance`. No torch at the top:
the files of methods import this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mdpu.learn.head import Batch, Head
from mdpu.theory.joint import dominance_rate, fewest_positives

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.learn.task import Task

# Of the weights' running mean that the bag risks take for their model: some fifty steps, twelve epochs of the protocol.
MEMORY = 0.98
TINY = 1e-12  # what probabilities are raised to before their logarithm is taken


def count_law(positive: Tensor, negative: Tensor) -> Tensor:
    """Return the law of the number of positives among independent members, the Poisson-binomial law.

    The dynamic program of `mdpu.theory.joint.positives_law`.

    Parameters
    ----------
    positive, negative : Tensor, shape (..., M)
        Probabilities r and 1 - r of each member.

    Returns
    -------
    Tensor, shape (..., M + 1)
    """
    from torch.nn.functional import pad

    law = positive.new_ones(*positive.shape[:-1], 1)
    for yes, no in zip(positive.split(1, dim=-1), negative.split(1, dim=-1), strict=True):
        law = pad(law * no, (0, 1)) + pad(law * yes, (1, 0))
    return law


def tails(positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """Return q and 1 - q, the probabilities that a bag of independent members is dominant and that it is not.

    Both tails are sums of nonnegative numbers, so that neither loses its digits, or its gradient, where the other
    rounds to 1.

    Parameters
    ----------
    positive, negative : Tensor, shape (..., M)
        Probabilities r and 1 - r of each member.

    Returns
    -------
    dominant, other : Tensor, shape (...)
    """
    law = count_law(positive, negative)
    fewest = fewest_positives(positive.shape[-1])
    return law[..., fewest:].sum(dim=-1), law[..., :fewest].sum(dim=-1)


def dominance(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return q and 1 - q, (...), of bags with the scores (..., M), where r = sigmoid(score)."""
    return tails(scores.sigmoid(), (-scores).sigmoid())


def unlabeled_bags(unlabeled: Tensor, tuple_size: int) -> Tensor:
    """Return the scores (R, B_U) of unlabeled images as bags (R, B_U // M, M) that share no member.

    Neighbours make a bag. An epoch goes through the unlabeled images in an order drawn anew, so bags are random, and
    other ones in every epoch. Images that are left over are not used; a minibatch with less than M of them makes one
    bag in which an image stands more than once.
    """
    bags = unlabeled.shape[1] // tuple_size
    if bags == 0:
        return unlabeled.repeat(1, tuple_size)[:, None, :tuple_size]
    return unlabeled[:, : bags * tuple_size].unflatten(1, (bags, tuple_size))


class BagHead(Head):
    """Base of the heads on bags; parameters of `Head`.

    The objective of tuples of several sizes is the mean of the objectives of each size, by their numbers in the
    minibatch; each size has its share of the unlabeled images.

    Attributes
    ----------
    prior, bag_prior : Tensor, shape (R,)
        pi_+ and Z, the share of dominant bags among random ones, as each task is told.
    measures : tuple of str
        ``model_prior`` is the mean of r over the unlabeled images, the model's own class prior.
    """

    measures = ("model_prior",)

    def __init__(self, tasks: Sequence[Task], device: torch.device) -> None:
        import torch

        super().__init__(tasks, device)
        self.prior = torch.tensor([task.prior for task in tasks], device=device)
        self.bag_prior = torch.tensor([dominance_rate(task.tuple_size, task.prior) for task in tasks], device=device)

    def objective(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the objective (R,) and the model's class prior (R, 1)."""
        import torch

        model_prior = batch.unlabeled.sigmoid().mean(dim=1)
        if batch.sizes is None:
            objective = self.loss(batch.tuples, batch.unlabeled, model_prior)
        else:
            objective = torch.stack([self._ragged_loss(batch, r, model_prior) for r in range(len(self.tasks))])
        return objective, model_prior[:, None]

    def _ragged_loss(self, batch: Batch, r: int, model_prior: Tensor) -> Tensor:
        """Return what one task minimises, a scalar, on tuples of several sizes."""
        import torch

        assert batch.sizes is not None
        sizes, unlabeled = batch.sizes[r], batch.unlabeled[r : r + 1]
        counts = torch.bincount(sizes)
        ends = (counts.cumsum(0) * unlabeled.shape[1] / len(sizes)).round().int().tolist()
        parts = []
        for size in counts.nonzero().squeeze(1).tolist():
            start = min(ends[size - 1], unlabeled.shape[1] - 1)
            tuples = batch.tuples[r : r + 1, sizes == size, :size]  # (1, B_size, size)
            own = unlabeled[:, start : max(ends[size], start + 1)]
            head = type(self)([replace(self.tasks[r], tuple_size=size)], self.device)
            parts.append(counts[size] / len(sizes) * head.loss(tuples, own, model_prior[r : r + 1])[0])
        return torch.stack(parts).sum()

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
        Slope of f below zero, see `mdpu.learn.risk.correction`.
    """

    k = 0.0

    def loss(self, tuples: Tensor, unlabeled: Tensor, model_prior: Tensor) -> Tensor:
        """Return the corrected risk."""
        from mdpu.learn.risk import correction

        dominant, other = dominance(tuples)
        bag_dominant, _ = dominance(unlabeled_bags(unlabeled, tuples.shape[2]))
        negative = bag_dominant.square().mean(dim=1) - self.bag_prior * dominant.square().mean(dim=1)
        return self.bag_prior * other.square().mean(dim=1) + correction(negative, self.k)


def contrast(tuples: Tensor, bags: Tensor, bag_prior: Tensor) -> Tensor:
    """Return the cross-entropy (R,) of telling tuples (R, B, M) from bags (R, B', M), which weigh the same, by scores.

    Where both are equally many, a bag is a tuple with the probability q / (q + Z), Z being `bag_prior` (R,).
    """
    (tuple_dominant, _), (bag_dominant, _) = dominance(tuples), dominance(bags)
    bag_prior = bag_prior[:, None]
    tuples_loss = ((tuple_dominant + bag_prior) / tuple_dominant.clamp(min=TINY)).log().mean(dim=1)
    return (tuples_loss + ((bag_dominant + bag_prior) / bag_prior).log().mean(dim=1)) / 2


def prior_divergence(prior: Tensor, model_prior: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of Bernoulli(model_prior) from Bernoulli(prior), elementwise."""
    model_negative = (1 - model_prior).clamp(min=TINY)
    return prior * (prior / model_prior.clamp(min=TINY)).log() + (1 - prior) * ((1 - prior) / model_negative).log()


def bag_prior_at(prior: Tensor, tuple_size: int) -> Tensor:
    """Return Z, the share of dominant bags among random ones, at class priors of any shape."""
    members = prior[..., None].expand(*prior.shape, tuple_size)
    return tails(members, 1 - members)[0].clamp(min=TINY)
