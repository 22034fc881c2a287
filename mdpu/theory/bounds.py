"""Theorems 2 and 3 of the paper for any tuple size and prior: as printed, and as they follow.

Theorem 2 bounds the excess risk of the model that minimises the risk estimate. Theorem 3 bounds the bias of a corrected
risk. The paper's proofs have gaps, so each function here gives two numbers: what the paper prints, and what can be
proved. ``docs/explanation/bounds.md`` has the proofs and says where the two differ.

A bound that exceeds every double is ``inf``. It is one where a - pi_+ is tiny: for long tuples at a high prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mdpu.errors import UserError
from mdpu.theory.law import check_prior, check_tuple_size, tuple_law


@dataclass(frozen=True)
class Scales:
    """By how much Theorem 1 multiplies losses, in absolute value.

    Attributes
    ----------
    tuples : float
        pi_+ pi_- / (a - pi_+), of l(g, +1) - l(g, -1) on members of tuples.
    unlabeled_positive, unlabeled_negative : float
        b pi_+ / (a - pi_+) and a pi_- / (a - pi_+), of l(g, +1) and l(g, -1) on unlabeled images.
    """

    tuples: float
    unlabeled_positive: float
    unlabeled_negative: float

    @property
    def unlabeled(self) -> float:
        """The sum of the scales of unlabeled images."""
        return self.unlabeled_positive + self.unlabeled_negative


@dataclass(frozen=True)
class Assumptions:
    """What Theorem 2 assumes of the models and the loss.

    Attributes
    ----------
    complexity : float
        C_G: the models' Rademacher complexity on n independent images of any density is at most C_G / sqrt(n).
    lipschitz : float
        rho in the theorem, L_l in the text before it: Lipschitz constant of the loss as a function of the score.
    loss_bound : float
        C_l, the largest loss; losses are not negative.
    """

    complexity: float
    lipschitz: float
    loss_bound: float


@dataclass(frozen=True)
class ErrorBounds:
    """Bounds of R(g^) - R(g*), each with probability at least 1 - delta.

    Attributes
    ----------
    printed : float
        Theorem 2 as the paper prints it. Its proof takes the members of a tuple for independent.
    by_tuples : float
        What its proof gives for independent tuples: n in the place of M n.
    by_members : float
        A bound in 1 / sqrt(M n), from the fact that labels within a tuple vary less than independent ones.
    """

    printed: float
    by_tuples: float
    by_members: float

    @property
    def corrected(self) -> float:
        """The smaller of the two bounds that hold."""
        return min(self.by_tuples, self.by_members)


@dataclass(frozen=True)
class BiasBounds:
    """Bounds of the bias E[R~(g)] - R(g) of a corrected risk.

    Attributes
    ----------
    printed : float or None
        Theorem 3 as the paper prints it, or None where its assumption fails: that both partial risks are positive.
    low, high : float
        What follows. The bias is at least `low` and at most `high`.
    """

    printed: float | None
    low: float
    high: float


Scope = Literal["whole", "part"]


@dataclass(frozen=True)
class Sample:
    """A sample of tuples and unlabeled images, by its numbers alone.

    Parameters
    ----------
    tuple_size : int
        M.
    prior : float
        pi_+.
    n, n_unlabeled : int
        Numbers of tuples and of unlabeled images.

    Raises
    ------
    UserError
        If a number is out of range.
    """

    tuple_size: int
    prior: float
    n: int
    n_unlabeled: int

    def __post_init__(self) -> None:
        check_tuple_size(self.tuple_size)
        check_prior(self.prior)
        for name in ("n", "n_unlabeled"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}; at least 1 is needed")


def log_denominator(tuple_size: int, prior: float) -> float:
    """Return log(a - pi_+), the logarithm of Theorem 1's denominator a pi_- - b pi_+, which may underflow itself.

    In the closed form of Section IV it is (1 - m / M) pi_- P(k = m) with m = floor(M / 2). 1 / P(k = m) is the sum of
    P(k) / P(m) over k, and the ratio of neighbours P(k - 1) / P(k) is k pi_+ / ((M - k + 1) pi_-).

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    size, positive = check_tuple_size(tuple_size), check_prior(prior)
    most = size // 2
    k = np.arange(most, 0, -1)
    ratios = np.log(k / (size - k + 1)) + math.log(positive) - math.log1p(-positive)
    log_last = -float(np.logaddexp.reduce(np.concatenate([[0.0], np.cumsum(ratios)])))
    return math.log((size - most) / size) + math.log1p(-positive) + log_last


def negative_share(tuple_size: int, prior: float) -> float:
    """Return b of Lemma 6, the probability that a member is negative, also where a - pi_+ underflows.

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    law = tuple_law(tuple_size, prior)
    return float(law @ np.arange(law.size)) / tuple_size


def negatives_variance(tuple_size: int, prior: float) -> float:
    """Return the variance of the number of negatives of a tuple; it is at most M a b, that of independent members.

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    law = tuple_law(tuple_size, prior)
    k = np.arange(law.size)
    return float(law @ (k - law @ k) ** 2)


def scales(tuple_size: int, prior: float) -> Scales:
    """Return the factors of Theorem 1, ``inf`` where they exceed every double.

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    log_d, b = log_denominator(tuple_size, prior), negative_share(tuple_size, prior)
    positive = float(prior)
    log_positive, log_negative = math.log(positive), math.log1p(-positive)
    unlabeled_positive = _exp(math.log(b) + log_positive - log_d) if b > 0 else 0.0
    # a pi_- - b pi_+ is the denominator itself, so the two unlabeled scales differ by 1.
    return Scales(_exp(log_positive + log_negative - log_d), unlabeled_positive, 1.0 + unlabeled_positive)


def error_bounds(sample: Sample, assumptions: Assumptions, delta: float) -> ErrorBounds:
    """Bound the excess risk of the model that minimises the risk estimate (Theorem 2).

    Parameters
    ----------
    sample : Sample
    assumptions : Assumptions
    delta : float
        The probability with which a bound may fail, in (0, 1).

    Raises
    ------
    UserError
        If `delta` is out of range.
    """
    _check_delta(delta)
    scale = scales(sample.tuple_size, sample.prior)
    complexity = assumptions.lipschitz * assumptions.complexity
    members = sample.tuple_size * sample.n
    quarter, sixth = (assumptions.loss_bound * math.sqrt(math.log(m / delta) / 2) for m in (4, 6))
    tuples = scale.tuples * (4 * complexity + 2 * quarter)
    unlabeled = scale.unlabeled * (2 * complexity + quarter) / math.sqrt(sample.n_unlabeled)
    by_members = scale.tuples * (4 * math.sqrt(2) * complexity + 4 * sixth) / math.sqrt(members)
    return ErrorBounds(
        printed=2 * (tuples / math.sqrt(members) + unlabeled),
        by_tuples=2 * (tuples / math.sqrt(sample.n) + unlabeled),
        by_members=2 * (by_members + scale.unlabeled * (2 * complexity + sixth) / math.sqrt(sample.n_unlabeled)),
    )


def bias_bounds(
    sample: Sample, tuple_risk: float, unlabeled_risk: float, loss_bound: float, k: float, scope: Scope
) -> BiasBounds:
    """Bound the bias of a corrected risk at a fixed model (Theorem 3).

    Parameters
    ----------
    sample : Sample
    tuple_risk, unlabeled_risk : float
        R_MDP and R_U, the partial risks of the tuples and of the unlabeled images; they add up to R(g). Where they are
        positive they are the paper's zeta and eta.
    loss_bound : float
        C_l.
    k : float
        Slope of the correction f below zero: 0 for ReLU, 1 for ABS.
    scope : {'whole', 'part'}
        What f is applied to: the whole risk, as in Eqs. 15-16, or the two partial risks, as in the theorem's proof.
    """
    scale = scales(sample.tuple_size, sample.prior)
    parts = _parts(sample, scale, tuple_risk, unlabeled_risk, loss_bound, scope)
    printed = None
    if tuple_risk > 0 and unlabeled_risk > 0:
        most = (max(1.0, k) + 1) * loss_bound * (scale.tuples * sample.tuple_size + 1)
        tuple_decay = 2 * sample.n * (tuple_risk * sample.tuple_size / (scale.tuples * loss_bound)) ** 2
        unlabeled_decay = 2 * sample.n_unlabeled * (unlabeled_risk / loss_bound) ** 2
        printed = most * (math.exp(-tuple_decay) + math.exp(-unlabeled_decay))
    return BiasBounds(
        printed=printed,
        low=(1 + k) * sum(max(0.0, -part.mean) for part in parts),
        high=(1 + k) * sum(part.negative_part() for part in parts),
    )


def deviation_bounds(
    sample: Sample, tuple_risk: float, unlabeled_risk: float, loss_bound: float, k: float, scope: Scope, delta: float
) -> tuple[float | None, float]:
    """Bound |R~(g) - R(g)| at a fixed model with probability at least 1 - delta (the inequality after Theorem 3).

    Parameters and errors are those of `bias_bounds` and `error_bounds`.

    Returns
    -------
    printed : float or None
        As the paper prints it, or None where the assumption of Theorem 3 fails.
    corrected : float
        What follows.
    """
    _check_delta(delta)
    scale = scales(sample.tuple_size, sample.prior)
    slope = max(1.0, k)
    bias = bias_bounds(sample, tuple_risk, unlabeled_risk, loss_bound, k, scope)
    printed = None
    if bias.printed is not None:
        width = math.hypot(scale.tuples / sample.tuple_size / math.sqrt(sample.n), 1 / math.sqrt(sample.n_unlabeled))
        printed = loss_bound * slope * math.sqrt(math.log(2 / delta) / 2) * width + bias.printed
    parts = _parts(sample, scale, tuple_risk, unlabeled_risk, loss_bound, scope)
    deviation = math.sqrt(math.log(2 * len(parts) / delta) / 2) * sum(part.width for part in parts)
    return printed, slope * deviation + bias.low


@dataclass(frozen=True)
class _Part:
    """An estimate to which f is applied.

    Attributes
    ----------
    mean : float
        Its expectation.
    width : float
        Such that the estimate falls s or more below its mean with probability at most exp(-2 (s / width)^2).
    reach : float
        It is at least minus this.
    """

    mean: float
    width: float
    reach: float

    def negative_part(self) -> float:
        """Bound E[max(0, -X)], the integral of P(X < -t) over t from 0 to the reach."""
        if math.isinf(self.width):
            return math.inf
        unit = self.width / math.sqrt(2)
        tails = math.erfc(max(0.0, self.mean) / unit) - math.erfc((self.mean + self.reach) / unit)
        return max(0.0, -self.mean) + math.sqrt(math.pi) / 2 * unit * max(0.0, tails)


def _parts(
    sample: Sample, scale: Scales, tuple_risk: float, unlabeled_risk: float, loss_bound: float, scope: Scope
) -> list[_Part]:
    """Return what f is applied to in a scope."""
    tuple_reach, unlabeled_reach = scale.tuples * loss_bound, scale.unlabeled_positive * loss_bound
    tuple_width = 2 * tuple_reach / math.sqrt(sample.tuple_size * sample.n)
    unlabeled_width = scale.unlabeled * loss_bound / math.sqrt(sample.n_unlabeled)
    if scope == "part":
        return [_Part(tuple_risk, tuple_width, tuple_reach), _Part(unlabeled_risk, unlabeled_width, unlabeled_reach)]
    width = math.hypot(tuple_width, unlabeled_width)
    return [_Part(tuple_risk + unlabeled_risk, width, tuple_reach + unlabeled_reach)]


def _exp(exponent: float) -> float:
    """Return the exponential, ``inf`` where it exceeds every double."""
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


def _check_delta(delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise UserError(f"a probability of failure of {delta!r} is not strictly between 0 and 1")
