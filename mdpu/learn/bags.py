"""Tuples as positive bags and groups of unlabeled images as unlabeled ones: what the methods on bags share.

``docs/bags.md`` has the theory, `mdpu.theory.joint` the plain version of `dominance`. No torch at the top: the files of
methods import this one.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def tails(positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """Return q and 1 - q, the probabilities that a bag of independent members is dominant and that it is not.

    The dynamic program of `mdpu.theory.joint.positives_law`. Both tails are sums of nonnegative numbers, so that
    neither loses its digits, or its gradient, where the other rounds to 1.

    Parameters
    ----------
    positive, negative : Tensor, shape (..., M)
        Probabilities r and 1 - r of each member.

    Returns
    -------
    dominant, other : Tensor, shape (...)
    """
    from torch.nn.functional import pad

    law = positive.new_ones(*positive.shape[:-1], 1)  # of the number of positives among the members so far
    for yes, no in zip(positive.split(1, dim=-1), negative.split(1, dim=-1), strict=True):
        law = pad(law * no, (0, 1)) + pad(law * yes, (1, 0))
    fewest = fewest_positives(positive.shape[-1])
    return law[..., fewest:].sum(dim=-1), law[..., :fewest].sum(dim=-1)


def dominance(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return q and 1 - q, (...), of bags with the scores (..., M), where r = sigmoid(score)."""
    return tails(scores.sigmoid(), (-scores).sigmoid())


def unlabeled_bags(unlabeled: Tensor, tuple_size: int) -> Tensor:
    """Return the scores (B_U,) of unlabeled images as bags (B_U // M, M) that share no member.

    Neighbours make a bag. An epoch goes through the unlabeled images in an order drawn anew, so bags are random, and
    other ones in every epoch. Images that are left over are not used; a minibatch with less than M of them makes one
    bag in which an image stands more than once.
    """
    bags = len(unlabeled) // tuple_size
    if bags == 0:
        return unlabeled.repeat(tuple_size)[None, :tuple_size]
    return unlabeled[: bags * tuple_size].view(bags, tuple_size)


class BagHead(Head):
    """Base of the heads on bags; parameters of `Head`.

    Attributes
    ----------
    bag_priors : list of float, length R
        Z, the share of dominant bags among random ones, by the prior that each task is told.
    measures : tuple of str
        ``model_prior`` is the mean of r over the unlabeled images, the model's own class prior.
    """

    measures = ("model_prior",)

    def __init__(self, tasks: Sequence[Task], device: torch.device) -> None:
        super().__init__(tasks, device)
        self.bag_priors = [dominance_rate(task.tuple_size, task.prior) for task in tasks]

    def objective(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the objective (R,) and the model's class prior (R, 1).

        Run by run: how many runs share a tensor decides which of its numbers go through vector instructions, and so
        how they are rounded.
        """
        import torch

        rows = list(zip(batch.tuples, batch.unlabeled, strict=True))
        losses = [self.loss(r, tuples, unlabeled) for r, (tuples, unlabeled) in enumerate(rows)]
        return torch.stack(losses), torch.stack([unlabeled.sigmoid().mean() for _, unlabeled in rows])[:, None]

    def loss(self, r: int, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return what run r minimises, given the scores (B, M) of its tuples and (B_U,) of its unlabeled images."""
        raise NotImplementedError


class BagRiskHead(BagHead):
    """Non-negative PU risk of bags with the squared loss on q; parameters of `Head`.

    Z mean_T (1 - q)^2 + f(mean_U q^2 - Z mean_T q^2), where T are the tuples, U bags of unlabeled images, and f is a
    correction of the second part, whose expectation is not negative (``docs/bags.md``, "The bag risk").

    Attributes
    ----------
    k : float
        Slope of f below zero, see `mdpu.learn.risk.correction`.
    """

    k = 0.0

    def loss(self, r: int, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the corrected risk."""
        from mdpu.learn.risk import correction

        rate, (dominant, other) = self.bag_priors[r], dominance(tuples)
        of_bags, _ = dominance(unlabeled_bags(unlabeled, tuples.shape[1]))
        negative = of_bags.square().mean() - rate * dominant.square().mean()
        return rate * other.square().mean() + correction(negative, self.k)


def contrast(tuples: Tensor, bags: Tensor, rate: Tensor | float) -> Tensor:
    """Return the cross-entropy of telling tuples (B, M) from bags (B', M), which weigh the same, by scores.

    Where both are equally many, a bag is a tuple with the probability q / (q + Z), `rate` being Z.
    """
    (of_tuples, _), (of_bags, _) = dominance(tuples), dominance(bags)
    tuples_loss = ((of_tuples + rate) / of_tuples.clamp(min=TINY)).log().mean()
    return (tuples_loss + ((of_bags + rate) / rate).log().mean()) / 2


def prior_divergence(prior: float, model_prior: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of Bernoulli(model_prior) from Bernoulli(prior)."""
    model_prior = model_prior.clamp(min=TINY)
    model_negative = (1 - model_prior).clamp(min=TINY)
    return prior * (prior / model_prior).log() + (1 - prior) * ((1 - prior) / model_negative).log()


def rate_of_prior(prior: Tensor, tuple_size: int) -> Tensor:
    """Return Z, the share of dominant bags among random ones, at a class prior that is a tensor, any shape."""
    members = prior[..., None].expand(*prior.shape, tuple_size)
    return tails(members, 1 - members)[0].clamp(min=TINY)
