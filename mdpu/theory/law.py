"""The law of dominant-positive tuples and the weights of the risk estimator. Pure functions, no torch.

Notation follows the paper: tuple size M, class prior pi_+ = p(y = +1), pi_- = 1 - pi_+, and k, the
number of negatives in a tuple, which runs from 0 to m = floor(M / 2).
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdpu.errors import UserError


@dataclass(frozen=True)
class Coefficients:
    """Class mix of one tuple member (Lemma 6) and the estimator's denominator (Section IV).

    Attributes
    ----------
    a, b : float
        Probabilities that a tuple member is positive and negative; a + b = 1.
    denominator : float
        a pi_- - b pi_+ = a - pi_+, strictly positive.
    """

    a: float
    b: float
    denominator: float


@dataclass(frozen=True)
class RiskWeights:
    """What multiplies each of the four mean losses in the empirical risk (Eq. 11).

    The risk is the sum of ``tuple_positive * mean_T l(g, +1)``, ``tuple_negative * mean_T l(g, -1)``,
    ``unlabeled_positive * mean_U l(g, +1)`` and ``unlabeled_negative * mean_U l(g, -1)``. T holds all members of all
    tuples, and U the unlabeled images.

    Attributes
    ----------
    tuple_positive, tuple_negative : float
        Of the members of the tuples, as positives and as negatives.
    unlabeled_positive, unlabeled_negative : float
        Of the unlabeled images, as positives and as negatives.
    """

    tuple_positive: float
    tuple_negative: float
    unlabeled_positive: float
    unlabeled_negative: float

    def as_tuple(self) -> tuple[float, float, float, float]:
        """Return the weights in the order T+, T-, U+, U-."""
        return (
            self.tuple_positive,
            self.tuple_negative,
            self.unlabeled_positive,
            self.unlabeled_negative,
        )


def check_tuple_size(tuple_size: int) -> int:
    """Return `tuple_size`, or raise `UserError` unless it is an integer of at least 1."""
    if isinstance(tuple_size, bool) or not isinstance(tuple_size, (int, np.integer)) or tuple_size < 1:
        raise UserError(f"tuple size {tuple_size!r} is not an integer of at least 1")
    return int(tuple_size)


def check_prior(prior: float) -> float:
    """Return `prior` as a float, or raise `UserError` unless it lies in the open interval (0, 1)."""
    value = float(prior)
    if not 0.0 < value < 1.0:
        raise UserError(f"prior {prior!r} is not strictly between 0 and 1")
    return value


def tuple_law(tuple_size: int, prior: float) -> NDArray[np.float64]:
    """Probability of k negatives in a dominant-positive tuple (Lemma 5).

    Parameters
    ----------
    tuple_size : int
        M >= 1.
    prior : float
        pi_+ in (0, 1).

    Returns
    -------
    ndarray, shape (M // 2 + 1,)
        Probabilities of k = 0 .. M // 2, proportional to C(M, k) pi_+^(M - k) pi_-^k; they sum to 1.
        Given k, every choice of positions for the negatives is equally likely.

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    return _binomial_part(tuple_size, prior, range(check_tuple_size(tuple_size) // 2 + 1))


def broken_tuple_law(tuple_size: int, prior: float, broken: float) -> NDArray[np.float64]:
    """Probability of k negatives in a tuple, if a share of all tuples is not dominant.

    Parameters
    ----------
    tuple_size, prior
        As for `tuple_law`.
    broken : float
        Share in [0, 1) of tuples with more negatives than positives; these follow the law of M draws, given that.

    Returns
    -------
    ndarray, shape (M + 1,)

    Raises
    ------
    UserError
        If an argument is out of range.
    """
    size = check_tuple_size(tuple_size)
    if not 0 <= broken < 1:
        raise UserError(f"broken is {broken}; a share of tuples, from 0 to below 1, is needed")
    others = _binomial_part(size, prior, range(size // 2 + 1, size + 1))
    return np.concatenate([(1 - broken) * tuple_law(size, prior), broken * others])


def _binomial_part(tuple_size: int, prior: float, negatives: range) -> NDArray[np.float64]:
    """Law of the number of negatives among M independent draws, given that it is one of `negatives`."""
    size = check_tuple_size(tuple_size)
    positive = check_prior(prior)
    log_terms = np.array(
        [
            math.lgamma(size + 1)
            - math.lgamma(k + 1)
            - math.lgamma(size - k + 1)
            + (size - k) * math.log(positive)
            + k * math.log1p(-positive)
            for k in negatives
        ]
    )
    terms = np.exp(log_terms - log_terms.max())
    return terms / terms.sum()


def coefficients(tuple_size: int, prior: float) -> Coefficients:
    """Coefficients a, b of Lemma 6 and the denominator a pi_- - b pi_+ of Theorem 1.

    A member of a tuple with k negatives is positive with probability (M - k) / M, because
    C(M - 1, k) / C(M, k) = (M - k) / M. The denominator is computed in the closed form of Section IV,
    (1 - m / M) pi_- P(k = m) with m = floor(M / 2), which is free of cancellation.

    Parameters
    ----------
    tuple_size : int
        M >= 1.
    prior : float
        pi_+ in (0, 1).

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range, or the denominator is too small for a double.
    """
    law = tuple_law(tuple_size, prior)
    negatives = np.arange(law.size)
    b = float(law @ negatives) / tuple_size
    most = tuple_size // 2
    denominator = (1 - most / tuple_size) * (1 - float(prior)) * float(law[most])
    if denominator < sys.float_info.min:
        raise UserError(
            f"tuple size {tuple_size} at prior {float(prior)} is too large: nearly every tuple is dominant, so that "
            "a - pi_+ is zero in double precision and tuples say nothing; use smaller tuples"
        )
    return Coefficients(a=1.0 - b, b=b, denominator=denominator)


def risk_weights(tuple_size: int, prior: float) -> RiskWeights:
    """Weights of the unbiased risk estimator (Theorem 1, Eq. 11).

    They equal the weights of learning from two unlabeled sets with class priors theta = a and
    theta' = pi_+ (Lu et al., 2018), and for M = 1 those of unbiased PU learning
    (du Plessis et al., 2015).

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    c = coefficients(tuple_size, prior)
    positive = float(prior)
    negative = 1.0 - positive
    return RiskWeights(
        tuple_positive=positive * negative / c.denominator,
        tuple_negative=-positive * negative / c.denominator,
        unlabeled_positive=-c.b * positive / c.denominator,
        unlabeled_negative=c.a * negative / c.denominator,
    )
