"""The joint objective of tuples and groups of unlabeled rows, for any law of counts and any model
of scores.

With r = sigmoid(F(x)), collected tuples have the density q / Z against groups of M unlabeled rows
(`mdpu.law.Law`). `JointObjective` tells the one from the other by logistic regression on
log(q / Z). It knows scores only, so a linear model, a tree and a kernel machine minimise the same
function. Where all groups were collected, and what was observed of each partitions the counts, it
is the log loss of the observations.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from mdpu.data import Indices
from mdpu.errors import UserError
from mdpu.law import TINY, Law
from mdpu.randomness import Stream
from mdpu.sample import Bags

Floats = NDArray[np.float64]
SMALLEST = float(np.finfo(float).tiny)  # a large group with its exact count has a q near it
PIN = 0.3  # weight of the divergence of the model's prior from the given one


@lru_cache(maxsize=1024)
def weights_at(law: Law, prior: float) -> Floats:
    """Return w_0 .. w_M at a prior, on which they depend where tuples are broken."""
    return np.array(law.at(prior).weights)


def member_sums(
    weights: Floats, positive: Floats, negative: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return q, and q given that member i is positive and given that it is negative.

    A forward program over the counts of the members before i, a backward one over what those after
    it add to q; both add nonnegative numbers only. They are linear in each member, so `positive`
    and `negative` need not add up to 1.

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
    weights = np.broadcast_to(weights, (*positive.shape[:-1], size + 1))
    # Counts and members come first: sums over the last, short axis take three times as long.
    p, n, w = (
        np.ascontiguousarray(np.moveaxis(values, -1, 0)) for values in (positive, negative, weights)
    )
    after = [w]
    for i in reversed(range(size)):
        later = after[-1]
        after.append(p[i] * later[1:] + n[i] * later[:-1])
    after.reverse()  # after[i][k]: q, if k of the first i members are positive
    before = np.ones((1, *p.shape[1:]))
    given_positive = np.empty_like(positive)
    given_negative = np.empty_like(positive)
    for i in range(size):
        given_positive[..., i] = (before * after[i + 1][1:]).sum(axis=0)
        given_negative[..., i] = (before * after[i + 1][:-1]).sum(axis=0)
        grown = np.zeros((i + 2, *p.shape[1:]))
        grown[1:] = before * p[i]
        grown[:-1] += before * n[i]
        before = grown
    return after[0][0], given_positive, given_negative


def posteriors(weights: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Return q (...) of groups with the scores (..., M), and the members' posteriors g, given that
    they are collected.

    The derivative of log q by a score is g - r.
    """
    r = expit(scores)
    q, given_positive, _ = member_sums(weights, r, expit(-scores))
    q = np.maximum(q, SMALLEST)
    return q, r * given_positive / q[..., None]


class JointObjective:
    """J(F) of scores F (N,) of all rows, per tuple, and its derivative.

    J = 1/n [sum_T log(1 + Z/q) + n/B sum_B log(1 + q/Z)] + 2 PIN KL(pi || mean_U r). The last term
    keeps a model that memorises its tuples at the prior. For complete bags J is the mean of -log q,
    which needs no prior.

    Parameters
    ----------
    bags : Bags
    prior : float
    rows : int
        N.
    stream : Stream
        Random numbers for the groups of unlabeled rows.
    groupings : int
        How often each unlabeled row is in a group.
    """

    def __init__(
        self, bags: Bags, prior: float, rows: int, stream: Stream, groupings: int = 3
    ) -> None:
        self.bags = bags
        self.prior = prior
        self.rows = rows
        self._stream = stream
        self._groupings = groupings
        self._rates = [part.law.rate(prior) for part in bags.parts]
        self._weights = [weights_at(part.law, prior) for part in bags.parts]
        if not bags.complete and min(self._rates) < SMALLEST:
            raise UserError(f"at prior {prior} the law collects no group; check law and prior")
        self.regroup()

    def regroup(self) -> None:
        """Draw the groups of unlabeled rows anew."""
        self._groups = [np.zeros((0, part.tuples.shape[1]), np.int64) for part in self.bags.parts]
        if self.bags.complete:
            return
        for place, part in enumerate(self.bags.parts):
            size = part.tuples.shape[1]
            if len(self.bags.unlabeled) < size:
                drawn = [self._draw()] * self._groupings
            else:
                drawn = [self._draw(size) for _ in range(self._groupings)]
            rows = np.concatenate(drawn)
            self._groups[place] = np.resize(rows, (max(1, len(rows) // size), size))

    def _draw(self, size: int = 1) -> Indices:
        """Return the unlabeled rows in random order, as many as fill whole groups."""
        order = self._stream.permutation(len(self.bags.unlabeled))
        return self.bags.unlabeled[order[: len(order) // size * size]]

    def bag_loss(self, scores: Floats) -> float:
        """Return J without the last term, in nats per tuple; at constant scores of the prior it is
        2 log 2.
        """
        return float(sum(self._parts(scores, None)))

    def __call__(self, scores: Floats) -> tuple[float, Floats]:
        """Return J and its derivative by each row's score, (N,)."""
        gradient = np.zeros(self.rows)
        value = float(sum(self._parts(scores, gradient)))
        if self.bags.complete:
            return value, gradient
        r = expit(scores[self.bags.unlabeled])
        mean = float(np.clip(r.mean(), TINY, 1 - TINY))
        told = self.prior
        value += (
            2 * PIN * (told * np.log(told / mean) + (1 - told) * np.log((1 - told) / (1 - mean)))
        )
        slope = 2 * PIN * (mean - told) / (mean * (1 - mean)) / len(r)
        gradient += np.bincount(self.bags.unlabeled, slope * r * (1 - r), self.rows)
        return value, gradient

    def _parts(self, scores: Floats, gradient: Floats | None) -> list[float]:
        """Return the losses of tuples and of groups of each size, and add their derivatives to
        `gradient`.
        """
        losses = []
        n = self.bags.n or 1
        places = zip(self.bags.parts, self._groups, self._rates, self._weights, strict=True)
        for part, groups, z, weights in places:
            share = len(part.tuples) / n
            for rows, sign in ((part.tuples, -1.0), (groups, 1.0)):
                if not len(rows):
                    continue
                members = scores[rows]
                q, g = posteriors(weights, members)
                ratio = np.log(q) if self.bags.complete else np.log(q / z)
                loss = -ratio if self.bags.complete else np.logaddexp(0, sign * ratio)
                losses.append(share * float(loss.mean()))
                if gradient is not None:
                    by_ratio = (
                        sign
                        * (1.0 if self.bags.complete else expit(sign * ratio))
                        * share
                        / len(rows)
                    )
                    by_ratio = np.broadcast_to(by_ratio, len(rows))
                    by_score = by_ratio[:, None] * (g - expit(members))
                    gradient += np.bincount(rows.ravel(), by_score.ravel(), self.rows)
        return losses


def shifted(scores: Floats, prior: float) -> float:
    """Return the number to add to scores so that the mean of sigmoid is `prior`; by bisection."""
    low = logit(prior) - scores.max() - 1
    high = logit(prior) - scores.min() + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(scores + middle).mean() < prior else (low, middle)
    return float((low + high) / 2)
