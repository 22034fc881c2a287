"""The joint objective of tuples and groups of unlabeled rows, for any law of counts and any model of scores.

With r = sigmoid(F(x)), collected tuples have the density q / Z against groups of M unlabeled rows (`mdpu.law.Law`).
`Objective` tells the one from the other by logistic regression on
log(q / Z). It knows scores only, so a linear model, a tree and a kernel machine minimise the same function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.randomness import Stream

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
TINY = 1e-12  # what q and means are raised to before their logarithm is taken
PIN = 0.3  # weight of the divergence of the model's prior from the told one


@dataclass(frozen=True)
class Part:
    """Tuples of one size.

    Attributes
    ----------
    tuples : ndarray, int64, shape (n, M)
        Rows of the members.
    law : Law
    """

    tuples: Indices
    law: Law


@dataclass(frozen=True)
class Bags:
    """Tuples of one or several sizes, and unlabeled rows.

    Attributes
    ----------
    parts : sequence of Part
    unlabeled : ndarray, int64, shape (n_unlabeled,)
    """

    parts: tuple[Part, ...]
    unlabeled: Indices

    @property
    def n(self) -> int:
        """Number of tuples."""
        return sum(len(part.tuples) for part in self.parts)

    @classmethod
    def of(cls, tuples: Indices, unlabeled: Indices, law_of: Callable[[int], Law]) -> Bags:
        """Return the bags of a sample whose shorter tuples end in -1; `law_of` gives the law of each size."""
        sizes = (tuples >= 0).sum(axis=1)
        parts = [Part(tuples[sizes == size, :size], law_of(size)) for size in np.unique(sizes).tolist()]
        return cls(tuple(parts), unlabeled)

    def select(self, tuples: Sequence[NDArray[np.bool_]], unlabeled: NDArray[np.bool_]) -> Bags:
        """Return the part of the bags that masks choose, one for each size and one for the unlabeled rows."""
        parts = tuple(Part(p.tuples[mask], p.law) for p, mask in zip(self.parts, tuples, strict=True))
        return Bags(parts, self.unlabeled[unlabeled])


@lru_cache(maxsize=1024)
def weights_at(law: Law, prior: float) -> Floats:
    """Return w_0 .. w_M at a prior, on which they depend where tuples are broken."""
    if law.ordered:
        raise UserError("the order of members counts in this law, which only networks learn from (mdpu.learn.fit)")
    return np.array(law.at(prior).weights)


def member_sums(weights: Floats, positive: Floats, negative: Floats) -> tuple[Floats, Floats, Floats]:
    """Return q, and q given that member i is positive and given that it is negative.

    A forward program over the counts of the members before i, a backward one over what those after it add to q; both
    add nonnegative numbers only. They are linear in each member, so `positive` and `negative` need not add up to 1.

    Parameters
    ----------
    weights : ndarray, shape (..., M + 1)
    positive, negative : ndarray, shape (..., M)

    Returns
    -------
    q : ndarray, shape (...)
    given_positive, given_negative : ndarray, shape (..., M)
        The derivatives of q by `positive` and by `negative`.
    """
    size = positive.shape[-1]
    after = [np.broadcast_to(weights, (*positive.shape[:-1], size + 1))]
    for i in reversed(range(size)):
        later = after[-1]
        after.append(positive[..., i, None] * later[..., 1:] + negative[..., i, None] * later[..., :-1])
    after.reverse()  # after[i][..., k]: q, if k of the first i members are positive
    before = np.ones((*positive.shape[:-1], 1))
    given_positive, given_negative = np.empty_like(positive), np.empty_like(positive)
    for i in range(size):
        given_positive[..., i] = (before * after[i + 1][..., 1:]).sum(axis=-1)
        given_negative[..., i] = (before * after[i + 1][..., :-1]).sum(axis=-1)
        grown = np.zeros((*before.shape[:-1], i + 2))
        grown[..., 1:] = before * positive[..., i, None]
        grown[..., :-1] += before * negative[..., i, None]
        before = grown
    return after[0][..., 0], given_positive, given_negative


def posteriors(weights: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Return q (...) of groups with the scores (..., M), and the members' posteriors g, given that they are collected.

    The derivative of log q by a score is g - r.
    """
    r = expit(scores)
    q, given_positive, _ = member_sums(weights, r, expit(-scores))
    q = np.maximum(q, TINY)
    return q, r * given_positive / q[..., None]


class Objective:
    """J(F) of scores F (N,) of all rows, per tuple, and its derivative.

    J = 1/n [sum_T log(1 + Z/q) + n/B sum_B log(1 + q/Z)] + 2 PIN KL(pi || mean_U r). The last term keeps a model that
    memorises its tuples at the prior.

    Parameters
    ----------
    bags : Bags
    prior : float
    rows : int
        N.
    stream : Stream
        Of the groups of unlabeled rows.
    groupings : int
        How often each unlabeled row is in a group.
    """

    def __init__(self, bags: Bags, prior: float, rows: int, stream: Stream, groupings: int = 3) -> None:
        self.bags, self.prior, self.rows = bags, prior, rows
        self._stream, self._groupings = stream, groupings
        self._rates = [part.law.rate(prior) for part in bags.parts]
        self._weights = [weights_at(part.law, prior) for part in bags.parts]
        if min(self._rates) < TINY:
            raise UserError(f"at prior {prior} the law lets no group pass; check law and prior")
        self.regroup()

    def regroup(self) -> None:
        """Draw the groups of unlabeled rows anew."""
        self._groups = []
        for part in self.bags.parts:
            size = part.tuples.shape[1]
            rows = np.concatenate(
                [self.bags.unlabeled[self._stream.permutation(len(self.bags.unlabeled))]] * self._groupings
                if len(self.bags.unlabeled) < size
                else [self._draw(size) for _ in range(self._groupings)]
            )
            self._groups.append(np.resize(rows, (max(1, len(rows) // size), size)))

    def _draw(self, size: int) -> Indices:
        """Return the unlabeled rows in random order, as many as fill groups."""
        order = self._stream.permutation(len(self.bags.unlabeled))
        return self.bags.unlabeled[order[: len(order) // size * size]]

    def bag_loss(self, scores: Floats) -> float:
        """Return J without the last term, in nats per tuple; at constant scores of the prior it is 2 log 2."""
        return float(sum(self._parts(scores, None)))

    def __call__(self, scores: Floats) -> tuple[float, Floats]:
        """Return J and its derivative by each row's score, (N,)."""
        gradient = np.zeros(self.rows)
        value = float(sum(self._parts(scores, gradient)))
        r = expit(scores[self.bags.unlabeled])
        mean = float(np.clip(r.mean(), TINY, 1 - TINY))
        told = self.prior
        value += 2 * PIN * (told * np.log(told / mean) + (1 - told) * np.log((1 - told) / (1 - mean)))
        slope = 2 * PIN * (mean - told) / (mean * (1 - mean)) / len(r)
        gradient += np.bincount(self.bags.unlabeled, slope * r * (1 - r), self.rows)
        return value, gradient

    def _parts(self, scores: Floats, gradient: Floats | None) -> list[float]:
        """Return the losses of tuples and of groups of each size, and add their derivatives to `gradient`."""
        losses = []
        n = max(1, self.bags.n)
        places = zip(self.bags.parts, self._groups, self._rates, self._weights, strict=True)
        for part, groups, z, weights in places:
            share = len(part.tuples) / n
            for rows, sign in ((part.tuples, -1.0), (groups, 1.0)):
                if not len(rows):
                    continue
                own = scores[rows]
                q, g = posteriors(weights, own)
                ratio = np.log(q / z)
                losses.append(share * float(np.logaddexp(0, sign * ratio).mean()))
                if gradient is not None:
                    by_ratio = sign * expit(sign * ratio) * share / len(rows)
                    by_score = by_ratio[:, None] * (g - expit(own))
                    gradient += np.bincount(rows.ravel(), by_score.ravel(), self.rows)
        return losses


def shifted(scores: Floats, prior: float) -> float:
    """Return the number to add to scores so that the mean of sigmoid is `prior`, by bisection."""
    low, high = logit(prior) - scores.max() - 1, logit(prior) - scores.min() + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(scores + middle).mean() < prior else (low, middle)
    return float((low + high) / 2)
