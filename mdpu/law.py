"""The law of a tuple: which groups of M a collector lets pass, and all that follows from it. No
torch is imported.

A random group of M whose members have the labels y is collected with the weight w(y) in [0, 1].
With r(x) = p(+1 | x) at the class prior pi_+, q = E[w(y)] for independent labels with P(y_i = +1) =
r(x_i), and Z the value of q at the prior, a collected tuple has the density q / Z against M
unlabeled instances (``docs/explanation/laws.md``, Theorem L1). The paper's law is `Law.dominant`:
Lemmas 5 and 6 and the weights of Theorem 1 are what `Law` gives for it.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpu.errors import UserError, check_count
from mdpu.randomness import Stream

Floats = NDArray[np.float64]
TINY = 1e-12  # smaller probabilities are raised to it before their logarithm is taken


class Coefficients(NamedTuple):
    """Shares a and b of positives and of negatives among the members of tuples (Lemma 6), and a -
    pi_+ (Section IV).
    """

    a: float
    b: float
    denominator: float


class RiskWeights(NamedTuple):
    """Factors of the mean losses l(g, +1) and l(g, -1) of members and of unlabeled instances in Eq.
    11.
    """

    tuple_positive: float
    tuple_negative: float
    unlabeled_positive: float
    unlabeled_negative: float


Scope = Literal["whole", "class", "part"]
# Which of the four terms T+, T-, U+, U- each corrected part of the risk holds.
SCOPES: dict[Scope, tuple[tuple[int, int, int, int], tuple[int, int, int, int]]] = {
    "whole": ((1, 1, 1, 1), (0, 0, 0, 0)),
    "class": ((1, 0, 1, 0), (0, 1, 0, 1)),
    "part": ((1, 1, 0, 0), (0, 0, 1, 1)),
}


class Identified(NamedTuple):
    """The part of r and the prior that tuples and unlabeled instances determine, if the prior is
    not given.

    Attributes
    ----------
    what : {'all', 'mirror', 'family'}
        r and the prior; r or its mirror image 2 c - r; or r up to a factor, r' = c + t (r - c) with
        any t.
    centre : float, optional
        c, unless all is identified. A mirror at 1/2 swaps the classes.
    """

    what: Literal["all", "mirror", "family"]
    centre: float | None = None


def check_share(name: str, value: Any) -> float:
    """Return a share, such as a prior or a level; raise `UserError` unless it is one number between
    0 and 1.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise UserError(f"{name} is {value!r}; one number between 0 and 1 is needed")
    return float(value)


def _numbers(size: Any) -> range:
    """Return the numbers of positives, 0 .. M; raise `UserError` unless M is an integer of at least
    1.
    """
    check_count("tuple size", size)
    return range(int(size) + 1)


@dataclass(frozen=True)
class Law:
    """The law of a tuple: which groups of M a collector lets pass.

    Attributes
    ----------
    weights : tuple of float
        Weights in [0, 1], not all equal, by the number of positives: w_0 .. w_M.
    refused : float
        Share in [0, 1) of the collected groups that come from those which the weights refuse, see
        `broken`.

    Raises
    ------
    UserError
        If weights are outside of [0, 1], or all equal: then tuples say nothing.
    """

    weights: tuple[float, ...]
    refused: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(float(w) for w in self.weights))
        if not all(0 <= w <= 1 for w in self.weights):
            raise UserError(f"weights {self.weights} of a law are not all between 0 and 1")
        if len(set(self.weights)) < 2:
            raise UserError(
                f"a law that collects all groups alike says nothing; its weights are {self.weights}"
            )
        if not 0 <= self.refused < 1:
            raise UserError(
                f"broken is {self.refused}; a share of tuples, from 0 to below 1, is needed"
            )

    @property
    def is_symmetric(self) -> bool:
        """Whether the law is the same with the classes exchanged."""
        return self.weights == self.weights[::-1]

    @classmethod
    def dominant(cls, size: int) -> Law:
        """At least as many positives as negatives, the paper's law."""
        return cls(tuple(float(2 * k >= size) for k in _numbers(size)))

    @classmethod
    def at_least(cls, size: int, least: int) -> Law:
        """At least `least` positives; with 1, the positive bags of multiple-instance learning."""
        return cls(tuple(float(k >= least) for k in _numbers(size)))

    @classmethod
    def exactly(cls, size: int, positives: int) -> Law:
        """Exactly `positives` positives."""
        return cls(tuple(float(k == positives) for k in _numbers(size)))

    @classmethod
    def between(cls, size: int, low: int, high: int) -> Law:
        """From `low` to `high` positives."""
        return cls(tuple(float(low <= k <= high) for k in _numbers(size)))

    @classmethod
    def similar(cls, size: int) -> Law:
        """All members of one class, whichever it is (Bao et al., 2018)."""
        return cls(tuple(float(k in (0, size)) for k in _numbers(size)))

    def broken(self, share: float) -> Law:
        """Return this law with a share of all tuples, in [0, 1), from the groups that it refuses.

        Their weights are then (1 - share) w / Z + share (1 - w) / (1 - Z), scaled to at most 1: see
        `at`.
        """
        return replace(self, refused=share)

    @property
    def size(self) -> int:
        """M, the number of members."""
        return len(self.weights) - 1

    @property
    def turns(self) -> bool:
        """Whether the weights rise and fall with the number of positives."""
        steps = np.diff(self.weights)
        return bool(steps.min() < 0 < steps.max())

    def at(self, prior: float) -> Law:
        """Return the law without a share of broken tuples, its weights being those that this share
        gives at a prior.
        """
        if not self.refused:
            return self
        passed, refused = self.passes(*_at(prior, self.size))
        # weight of refused groups in units of the others'
        leak = self.refused * passed / ((1 - self.refused) * refused)
        largest = max(1, leak)
        of_passed = 1 / largest
        of_refused = leak / largest
        return Law(tuple(of_passed * w + of_refused * (1 - w) for w in self.weights))

    def passes(self, positive: Any, negative: Any) -> tuple[Any, Any]:
        """Return q and 1 - q of groups of independent members, by the weights as they are.

        Both are sums of nonnegative terms, so that neither loses its digits, or its gradient, where
        the other rounds to 1.

        Parameters
        ----------
        positive, negative : ndarray or Tensor, shape (..., M)
            Probabilities r and 1 - r of each member.

        Returns
        -------
        q, other : ndarray or Tensor, shape (...)
        """
        if positive.shape[-1:] != (self.size,):
            raise UserError(
                f"the law is for {self.size} members, but groups have the shape "
                f"{tuple(positive.shape)}"
            )
        counts = count_law(positive, negative)
        return _weigh(counts, self.weights), _weigh(counts, tuple(1 - w for w in self.weights))

    def rate(self, prior: float) -> float:
        """Return Z, the share of random groups that pass: the class prior of the bags."""
        return float(self.at(prior).passes(*_at(prior, self.size))[0])

    def joint_information(self, prior: float) -> float:
        """Return the information of a tuple about its members' classes, in nats, for separable
        classes.

        It is the Kullback-Leibler divergence of a tuple from M unlabeled instances, E_T[log(w /
        Z)]. Overlapping classes give less.
        """
        law = self.at(prior)
        passed, refused = law.passes(*_at(prior, self.size))
        expected = 0.0
        for probability, weight in zip(law.counts(prior), law.weights, strict=True):
            if weight > 0:
                expected += probability * math.log(weight)
        if passed < 0.5:
            return expected - math.log(float(passed))
        return expected - math.log1p(-float(refused))  # 1 - Z has the digits

    def marginal_information(self, prior: float) -> float:
        """Return the part of `joint_information` that is left if each member is seen by itself, in
        nats per tuple.

        It is M times the divergence of a member's Bernoulli law of the class from Bernoulli(pi_+).
        """
        a, b, excess = self.coefficients(prior)
        divergence = 0.0
        if a > 0:
            divergence += a * math.log1p(excess / prior)  # log(a / pi_+) without cancellation
        if b > 0:
            divergence += b * math.log1p(-excess / (1 - prior))
        return max(0.0, self.size * divergence)  # two terms that nearly cancel for large tuples

    def counts(self, prior: float) -> Floats:
        """Return the law of the number of positives in a tuple, (M + 1,) (Lemma 5)."""
        return self._negatives(prior)[::-1].copy()

    def _negatives(self, prior: float) -> Floats:
        """Return the law of the number of negatives in a tuple, (M + 1,)."""
        size = self.size
        law = np.zeros(self.size + 1)
        passed = np.array(self.weights[::-1])
        positive = math.log(check_share("prior", prior))
        negative = math.log1p(-prior)
        groups = math.lgamma(size + 1)
        logs = [
            groups
            - math.lgamma(k + 1)
            - math.lgamma(size - k + 1)
            + (size - k) * positive
            + k * negative
            for k in range(size + 1)
        ]
        for share, weights in ((1 - self.refused, passed), (self.refused, 1 - passed)):
            if share:
                kinds = np.flatnonzero(weights)
                logs_of_kind = np.array([logs[k] + math.log(weights[k]) for k in kinds])
                terms = np.exp(logs_of_kind - logs_of_kind.max())
                law[kinds] += share * (terms / terms.sum())
        return law

    def draw(self, prior: float, n: int, stream: Stream) -> NDArray[np.int8]:
        """Draw the hidden labels of `n` tuples, (n, M), +1 or -1."""
        chances = self._negatives(prior)
        kinds = np.flatnonzero(chances)
        ends = np.cumsum(chances[kinds])[:-1]
        places = np.searchsorted(ends, stream.uniform(n), side="right")
        n_negatives = kinds[places]
        orders = np.argsort(stream.uniform(n, self.size), axis=1, kind="stable")
        ranks = np.argsort(orders, axis=1)  # (n, M)
        is_negative = ranks < n_negatives[:, None]
        return np.where(is_negative, -1, 1).astype(np.int8)

    def coefficients(self, prior: float) -> Coefficients:
        """Return the class mix of members.

        a - pi_+ is a sum over the steps of the weights, each with the sign of its step. For
        dominant tuples it is the closed form of Section IV, (1 - m / M) pi_- P(m negatives) with m
        = floor(M / 2).
        """
        law, prior = self.at(prior), check_share("prior", prior)
        chances = self._negatives(prior)
        kinds = np.flatnonzero(chances)
        excess = 0.0
        b = float(chances[kinds] @ kinds) / self.size
        # from k to k + 1 positives
        for k, (low, high) in enumerate(itertools.pairwise(law.weights)):
            if high > 0:
                most = self.size - k - 1
                excess += (
                    (1 - most / self.size) * (1 - prior) * chances[most] * ((high - low) / high)
                )
            elif low > 0:
                excess -= (1 - k / self.size) * prior * chances[self.size - k]
        return Coefficients(1.0 - b, b, float(excess))

    def risk_weights(self, prior: float) -> RiskWeights:
        """Return the weights of the unbiased risk (Theorem 1, Eq. 11).

        They are those of learning from two unlabeled sets with the class priors a and pi_+ (Lu et
        al., 2018), and for M = 1 those of unbiased PU learning (du Plessis et al., 2015).

        Raises
        ------
        UserError
            If members are positive as often as unlabeled instances are: then no risk of members
            exists.
        """
        positive = check_share("prior", prior)
        negative = 1.0 - positive
        a, b, scale = self.coefficients(positive)
        if abs(scale) < (1e-12 if self.turns else sys.float_info.min):  # steps of both signs cancel
            raise UserError(
                f"with tuples of {self.size} at prior {prior} members are positive as often as "
                "unlabeled rows, to double precision, so that no risk of single members exists; "
                "take a method on bags, such as bag-relu, or tuples of another size or rule"
            )
        return RiskWeights(
            positive * negative / scale,
            -positive * negative / scale,
            -b * positive / scale,
            a * negative / scale,
        )

    def error(self, members: Any, unlabeled: Any, prior: float) -> Any:
        """Return the unbiased estimate of the error rate (Eq. 11, 0-1 loss) from two shares of
        positive answers.

        They are those among the members of tuples and among unlabeled instances, numbers or arrays.
        """
        rates = (1 - members, members, 1 - unlabeled, unlabeled)
        return sum(
            weight * rate for weight, rate in zip(self.risk_weights(prior), rates, strict=True)
        )

    def both_positive(self, prior: float) -> float:
        """Return P11, the probability that two given members of a tuple are positive; 0 for tuples
        of one.
        """
        k = np.arange(self.size + 1)
        given_k = k * (k - 1) / max(1, self.size * (self.size - 1))
        return float(self.counts(prior) @ given_k)

    def bag_risk(self, counts: ArrayLike, unlabeled: ArrayLike, prior: float) -> Floats:
        """Return the PU estimate of how far bags are put on the wrong side (du Plessis et al.,
        2015).

        A bag with k positive answers is said to pass with w_k: Z E_T[1 - 2 w_k] + E_U[w_k^2], up to
        a constant the squared error of w. Where the weights are 0 and 1 it is the share of bags
        that are put on the wrong side.

        Parameters
        ----------
        counts : array_like, shape (..., M + 1)
            Shares of tuples with 0 .. M positive answers.
        unlabeled : array_like, shape (...)
            Share of positive answers among unlabeled instances.
        prior : float
        """
        weights = self.at(prior).weights
        shares = np.asarray(counts, np.float64)
        answers = np.asarray(unlabeled, np.float64)[..., None]
        answers = np.repeat(answers, self.size, axis=-1)
        of_groups = count_law(answers, 1.0 - answers)
        squares = _weigh(of_groups, tuple(weight**2 for weight in weights))
        of_tuples = 1 - 2 * _weigh(shares, weights)
        return np.asarray(self.rate(prior) * of_tuples + squares)

    def identifies(self) -> Identified:
        """Return how far tuples and unlabeled instances determine r without the prior (``laws.md``,
        Theorem L2).

        The share of broken tuples is not given either; it lies below that of random groups which
        the law refuses.
        """
        exact = [Fraction(w / max(self.weights)).limit_denominator(10**9) for w in self.weights]
        centre, degrees = _degrees(exact, bool(self.refused))
        if len(degrees) == 1:
            return Identified("family", centre)
        if 0 < centre < 1 and all(degree % 2 == 0 for degree in degrees):
            return Identified("mirror", centre)
        return Identified("all")


def named_law(name: str, size: int) -> Law:
    """Return the law that a text names, of tuples of M members.

    Parameters
    ----------
    name : str
        ``dominant``, ``similar``, ``at-least-1``, ``exactly-1``, ``between-1-2``, or M + 1 weights
        by the number of positives, such as ``0,0.2,1,1``.
    size : int
        M.

    Raises
    ------
    UserError
        If the text names no law, or none for this size.
    """
    kind, *numbers = re.split(r"-(?=\d)", name)
    makers: dict[str, Callable[..., Law]] = {
        "dominant": Law.dominant,
        "similar": Law.similar,
        "exactly": Law.exactly,
    }
    makers |= {"at-least": Law.at_least, "between": Law.between}
    try:
        law = (
            Law(tuple(map(float, name.split(","))))
            if "," in name
            else makers[kind](size, *map(int, numbers))
        )
    except (KeyError, TypeError, ValueError):
        known = "dominant, similar, at-least-K, exactly-K, between-K-L, or M + 1 weights: 0,0.2,1"
        raise UserError(f"{name!r} is not a law for tuples of {size}; known are {known}") from None
    if law.size != size:
        raise UserError(f"{name!r} is a law for {law.size} members, but tuples have {size}")
    return law


def count_law(positive: Any, negative: Any) -> Any:
    """Return the law of the number of positives among independent members, the Poisson-binomial
    law.

    The dynamic program takes the members in one by one, O(M^2) in all, and only adds nonnegative
    numbers. One formula for numpy and torch.

    Parameters
    ----------
    positive, negative : ndarray or Tensor, shape (..., M)
        Probabilities r and 1 - r of each member.

    Returns
    -------
    ndarray or Tensor, shape (..., M + 1)
    """
    arrays = _arrays(positive)
    law = arrays.ones_like(positive[..., :1])
    none = arrays.zeros_like(law)
    for i in range(positive.shape[-1]):
        yes = positive[..., i : i + 1]
        no = negative[..., i : i + 1]
        law = arrays.concatenate([law * no, none], -1) + arrays.concatenate([none, law * yes], -1)
    return law


def _weigh(counts: Any, weights: tuple[float, ...]) -> Any:
    """Return the mean of the weights, (...), under laws of counts (..., M + 1), by runs of equal
    weights.
    """
    total = None
    stop = 0
    for weight, run in itertools.groupby(weights):
        start, stop = stop, stop + len(list(run))
        if weight:
            part = (
                counts[..., start:stop].sum(-1)
                if weight == 1
                else weight * counts[..., start:stop].sum(-1)
            )
            total = part if total is None else total + part
    return total


def _arrays(values: Any) -> Any:
    """Return the module whose functions take `values`: numpy, or torch if it is loaded and they are
    tensors.
    """
    return np if isinstance(values, np.ndarray) else sys.modules["torch"]


def _at(prior: float, size: int) -> tuple[Floats, Floats]:
    """Return r and 1 - r of M members at the class prior."""
    members = np.full(size, check_share("prior", prior))
    return members, 1.0 - members


def _degrees(weights: list[Fraction], free: bool) -> tuple[float, set[int]]:
    """Return the mean c of the roots of B_w and the powers of s - c in it, without the constant one
    if that is free.
    """
    size = len(weights) - 1
    coefficients = []  # of the powers of s: by finite differences, which take M^2 steps
    differences = weights
    for power in range(size + 1):
        coefficients.append(math.comb(size, power) * differences[0])
        differences = [after - before for before, after in itertools.pairwise(differences)]

    degree = max(power for power in range(size + 1) if coefficients[power])
    centre = -coefficients[degree - 1] / (degree * coefficients[degree])
    shifted = coefficients[: degree + 1]  # of the powers of s - c, by Horner's scheme
    for lowest in range(degree):
        for power in reversed(range(lowest, degree)):
            shifted[power] += centre * shifted[power + 1]
    powers = range(int(free), degree + 1)
    return float(centre), {power for power in powers if shifted[power]}
