"""The joint law of a tuple: what its members say together that each by itself does not.

With r(x) = p(+1 | x) at the training prior, the density of a dominant tuple over that of M unlabeled images is
q(r(x_1), ..., r(x_M)) / Z. Here q is the probability that M independent images are dominant given what they look
like, and Z = E[q] that they are dominant at all. ``docs/explanation/bags.md`` has the proof.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpu.errors import UserError
from mdpu.theory.law import check_prior, check_tuple_size, coefficients

Floats = NDArray[np.float64]


def fewest_positives(tuple_size: int) -> int:
    """Return ceil(M / 2), the fewest positives of a dominant tuple; raise `UserError` for no tuple size."""
    return (check_tuple_size(tuple_size) + 1) // 2


def positives_law(probabilities: ArrayLike) -> Floats:
    """Law of the number of positives among M independent members, the Poisson-binomial law.

    The dynamic program takes the members in one by one, O(M^2) in all. It adds nonnegative numbers only, so every
    probability that is no smaller than the least normal double is exact to about 2 M roundings, at r = 0 and 1 too.

    Parameters
    ----------
    probabilities : array_like, shape (..., M)
        r(x_i) of each member, in [0, 1].

    Returns
    -------
    ndarray, shape (..., M + 1)
        Probabilities of 0 .. M positives.

    Raises
    ------
    UserError
        If there is no member, or a number lies outside [0, 1].
    """
    r = _checked(probabilities)
    law = np.ones((*r.shape[:-1], 1))
    for i in range(r.shape[-1]):
        law = _with_member(law, r[..., i])
    return law


def dominance(probabilities: ArrayLike) -> Floats:
    """Return q, the probability that at least ceil(M / 2) of M independent members are positive.

    Parameters and errors are those of `positives_law`; the result has the shape (...).
    """
    law = positives_law(probabilities)
    return np.asarray(law[..., fewest_positives(law.shape[-1] - 1) :].sum(axis=-1))


def non_dominance(probabilities: ArrayLike) -> Floats:
    """Return 1 - q, summed by itself: where q rounds to 1, this still has its digits.

    Parameters and errors are those of `positives_law`; the result has the shape (...).
    """
    law = positives_law(probabilities)
    return np.asarray(law[..., : fewest_positives(law.shape[-1] - 1)].sum(axis=-1))


def dominance_gradient(probabilities: ArrayLike) -> Floats:
    """Return the derivative of q by each member's probability.

    q is linear in each r_i. Its slope is the probability that member i decides: that exactly ceil(M / 2) - 1 of the
    other members are positive. The law of the others is that of the members before i and of those after it, so
    that nothing is divided by r_i or 1 - r_i.

    Parameters
    ----------
    probabilities : array_like, shape (..., M)
        As for `positives_law`.

    Returns
    -------
    ndarray, shape (..., M)
        Nonnegative.
    """
    r = _checked(probabilities)
    size = r.shape[-1]
    decisive = fewest_positives(size) - 1
    slopes = np.zeros_like(r)
    after = [np.ones((*r.shape[:-1], 1))]  # laws of the last 0, 1, ..., M - 1 members
    for i in reversed(range(1, size)):
        after.append(_with_member(after[-1], r[..., i]))
    before = np.ones((*r.shape[:-1], 1))
    for i in range(size):
        rest = after[size - 1 - i]
        for positives in range(max(0, decisive - (size - 1 - i)), min(i, decisive) + 1):
            slopes[..., i] += before[..., positives] * rest[..., decisive - positives]
        before = _with_member(before, r[..., i])
    return slopes


def dominance_rate(tuple_size: int, prior: float) -> float:
    """Return Z, the probability that M independent draws at the class prior are dominant.

    It is the normaliser of Lemma 5's law, and the class prior of the bags: the share of dominant ones among random
    groups of M unlabeled images.

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    return float(dominance(np.full(check_tuple_size(tuple_size), check_prior(prior))))


def prior_of_dominance_rate(tuple_size: int, rate: float) -> float:
    """Return the class prior at which M independent draws are dominant with probability `rate`.

    The inverse of `dominance_rate`, by bisection to the last digit; Z grows strictly with the prior.

    Raises
    ------
    UserError
        If `tuple_size` is out of range or `rate` is not strictly between 0 and 1.
    """
    size = check_tuple_size(tuple_size)
    if not 0.0 < rate < 1.0:
        raise UserError(f"a share of dominant bags of {rate!r} is not strictly between 0 and 1")
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if float(dominance(np.full(size, middle))) < rate else (low, middle)
    return middle


def joint_information(tuple_size: int, prior: float) -> float:
    """Return the information of a dominant tuple about its members' classes, in nats, for separable classes.

    It is the Kullback-Leibler divergence of a tuple from M unlabeled images, E_T[log(q / Z)]. Where the classes are
    separable q is 1 on every dominant tuple, which leaves -log Z. Overlapping classes give less.

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    rate = dominance_rate(tuple_size, prior)
    if rate < 0.5:
        return -math.log(rate)
    return -math.log1p(-float(non_dominance(np.full(tuple_size, prior))))  # Z near 1 has its digits in 1 - Z


def marginal_information(tuple_size: int, prior: float) -> float:
    """Return what is left of `joint_information` when each member is seen by itself, in nats per tuple.

    A member is positive with probability a (Lemma 6), an unlabeled image with probability pi_+: M times the
    divergence of the one Bernoulli law from the other.

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    share = coefficients(tuple_size, prior)
    # log(a / pi_+) and log(b / pi_-), where the difference a - pi_+ = pi_- - b is known without cancellation.
    positive_part = share.a * math.log1p(share.denominator / prior)
    negative_part = share.b * math.log1p(-share.denominator / (1 - prior)) if share.b > 0 else 0.0
    return max(0.0, tuple_size * (positive_part + negative_part))  # two terms that nearly cancel for large tuples


def _with_member(law: Floats, positive: Floats) -> Floats:
    """Return the law of the number of positives with one more member, (..., m) to (..., m + 1)."""
    grown = np.zeros((*law.shape[:-1], law.shape[-1] + 1))
    grown[..., :-1] = law * (1.0 - positive[..., None])
    grown[..., 1:] += law * positive[..., None]
    return grown


def _checked(probabilities: ArrayLike) -> Floats:
    """Return probabilities as doubles with a last axis of members, or raise `UserError`."""
    r = np.asarray(probabilities, dtype=np.float64)
    if r.ndim == 0 or r.shape[-1] == 0:
        raise UserError("a tuple needs at least one member")
    if not bool(((r >= 0) & (r <= 1)).all()):
        raise UserError("the probabilities of a tuple's members must lie between 0 and 1")
    return r
