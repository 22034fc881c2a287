"""The law of a tuple: which groups of M a collector lets pass, and all that follows from it. No torch is imported.

A random group of M whose members have the labels y is collected with the weight w(y) in [0, 1]. With r(x) = p(+1 | x)
at the class prior pi_+, q = E[w(y)] for independent labels with P(y_i = +1) = r(x_i), and Z the value of q at the
prior, a collected tuple has the density q / Z against M unlabeled instances (``docs/explanation/laws.md``, Theorem 1).
The paper's law is `Law.dominant`: Lemmas 5 and 6 and the weights of Theorem 1 are what `Law` gives for it.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpu.errors import UserError
from mdpu.randomness import Stream

Floats = NDArray[np.float64]
TINY = 1e-12  # what probabilities are raised to before their logarithm is taken


class Coefficients(NamedTuple):
    """Shares a and b of positives and of negatives among the members of tuples (Lemma 6), and a - pi_+ (Section IV)."""

    a: float
    b: float
    denominator: float


class RiskWeights(NamedTuple):
    """What multiplies the mean losses l(g, +1) and l(g, -1) of members and of unlabeled instances in Eq. 11."""

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
    """What tuples and unlabeled instances say about r and the prior, if the prior is not told.

    Attributes
    ----------
    what : {'all', 'mirror', 'family'}
        r and the prior; r or its mirror image 2 c - r; or r up to a factor, r' = c + t (r - c) with any t.
    centre : float, optional
        c. A mirror at 1/2 swaps the classes. None for a family of shifts.
    """

    what: Literal["all", "mirror", "family"]
    centre: float | None = None


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


@dataclass(frozen=True)
class Law:
    """Which groups of M a collector lets pass.

    Attributes
    ----------
    weights : tuple of float
        In [0, 1], not all equal. By the number of positives, w_0 .. w_M; or, if `ordered`, of each of the 2^M label
        vectors, as binary numbers whose first digit is the first member and whose ones are positives.
    ordered : bool
        Whether the position of a member counts.
    refused : float
        Share in [0, 1) of the collected groups that come from those which the weights refuse, see `broken`.

    Raises
    ------
    UserError
        If the weights are not such, or all equal: then tuples say nothing.
    """

    weights: tuple[float, ...]
    ordered: bool = False
    refused: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(float(w) for w in self.weights))
        if len(self.weights) < 2 or (self.ordered and len(self.weights) != 2**self.size):
            raise UserError(f"a law has M + 1 weights, or 2^M if the order counts; {len(self.weights)} are given")
        if not all(0 <= w <= 1 for w in self.weights):
            raise UserError(f"weights {self.weights} of a law are not all between 0 and 1")
        if len(set(self.weights)) == 1:
            raise UserError(f"a law that lets every group pass alike says nothing; its weights are {self.weights}")
        if not 0 <= self.refused < 1:
            raise UserError(f"broken is {self.refused}; a share of tuples, from 0 to below 1, is needed")

    @classmethod
    def dominant(cls, size: int) -> Law:
        """At least as many positives as negatives, the paper's law."""
        return cls.at_least(size, (check_tuple_size(size) + 1) // 2)

    @classmethod
    def at_least(cls, size: int, least: int) -> Law:
        """At least so many positives; with 1, the positive bags of multiple-instance learning."""
        return cls.between(size, least, size)

    @classmethod
    def exactly(cls, size: int, positives: int) -> Law:
        """So many positives, neither more nor less."""
        return cls.between(size, positives, positives)

    @classmethod
    def between(cls, size: int, low: int, high: int) -> Law:
        """From `low` to `high` positives."""
        return cls(tuple(float(low <= k <= high) for k in range(check_tuple_size(size) + 1)))

    @classmethod
    def similar(cls, size: int) -> Law:
        """All members of one class, whichever (Bao et al., 2018)."""
        return cls(tuple(float(k in (0, size)) for k in range(check_tuple_size(size) + 1)))

    @classmethod
    def comparison(cls) -> Law:
        """Pairs whose first member is at least as positive as the second (Feng et al., 2021)."""
        return cls((1.0, 0.0, 1.0, 1.0), ordered=True)

    def broken(self, share: float) -> Law:
        """Return this law with a share of all tuples, in [0, 1), from the groups that it refuses.

        Their weights are then (1 - share) w / Z + share (1 - w) / (1 - Z), scaled to at most 1: see `at`.
        """
        return replace(self, refused=share)

    @property
    def size(self) -> int:
        """M, the number of members."""
        return len(self.weights).bit_length() - 1 if self.ordered else len(self.weights) - 1

    def at(self, prior: float) -> Law:
        """Return the law without a share of broken tuples, its weights being those that this share gives at a prior."""
        if not self.refused:
            return self
        leak = self.leak(*self.passes(*_at(prior, self.size)))
        passed, leak = 1 / max(1, leak), leak / max(1, leak)
        return Law(tuple(passed * w + leak * (1 - w) for w in self.weights), self.ordered)

    def leak(self, passed: Any, other: Any) -> Any:
        """Return the weight of refused groups in units of that of the others, at Z and 1 - Z of random groups."""
        return self.refused * passed / ((1 - self.refused) * other)

    # -- the joint law: q, Z and their information ---------------------------------------------------

    def passes(self, positive: Any, negative: Any) -> tuple[Any, Any]:
        """Return q and 1 - q of groups of independent members, by the weights as they are.

        Both are sums of nonnegative terms, so that neither loses its digits, or its gradient, where the other rounds
        to 1.

        Parameters
        ----------
        positive, negative : ndarray or Tensor, shape (..., M)
            Probabilities r and 1 - r of each member.

        Returns
        -------
        q, other : ndarray or Tensor, shape (...)
        """
        if positive.shape[-1:] != (self.size,):
            raise UserError(f"the law is one of {self.size} members, but groups have the shape {tuple(positive.shape)}")
        complement = tuple(1 - w for w in self.weights)
        if self.ordered:
            return _contract(self.weights, positive, negative), _contract(complement, positive, negative)
        counts = count_law(positive, negative)
        return _weigh(counts, self.weights), _weigh(counts, complement)

    def slopes(self, positive: Floats) -> Floats:
        """Return the derivative of q by each member's probability, (..., M): q with it positive less q with it not.

        The law of the others is that of the members before i and of those after it, so that nothing is divided by r_i
        or 1 - r_i.
        """
        size, slopes = self.size, np.zeros_like(positive)
        if self.ordered:
            for i, here in enumerate(np.eye(size, dtype=bool)):
                ends = np.where(here, 1.0, positive), np.where(here, -1.0, 1.0 - positive)
                slopes[..., i] = _contract(self.weights, *ends)
            return slopes
        members = list(zip(_members(positive), _members(1.0 - positive), strict=True))
        after = [np.ones((*positive.shape[:-1], 1))]  # laws of the last 0, 1, ..., M - 1 members
        for member in members[:0:-1]:
            after.append(_with_member(after[-1], *member))
        before = after[0]
        for i, member in enumerate(members):
            rest = after.pop()
            for others, step in enumerate(np.diff(self.weights)):
                for k in range(max(0, others - (size - 1 - i)), min(i, others) + 1) if step else ():
                    slopes[..., i] += step * (before[..., k] * rest[..., others - k])
            before = _with_member(before, *member)
        return slopes

    def rate(self, prior: float) -> float:
        """Return Z, the share of random groups that pass: the class prior of the bags."""
        return float(self.at(prior).passes(*_at(prior, self.size))[0])

    def joint_information(self, prior: float) -> float:
        """Return the information of a tuple about its members' classes, in nats, for separable classes.

        It is the Kullback-Leibler divergence of a tuple from M unlabeled instances, E_T[log(w / Z)]. Overlapping
        classes give less.
        """
        law = self.at(prior)
        passed, other = (float(part) for part in law.passes(*_at(prior, self.size)))
        chances = law._vectors(prior)[1] if self.ordered else law.counts(prior)
        weight = sum(p * math.log(w) for p, w in zip(chances, law.weights, strict=True) if w > 0)
        return weight - math.log(passed) if passed < 0.5 else weight - math.log1p(-other)  # 1 - Z has the digits

    def marginal_information(self, prior: float) -> float:
        """Return what is left of `joint_information` when each member is seen by itself, in nats per tuple.

        It is the divergence of each position's Bernoulli law of the class from Bernoulli(pi_+).
        """
        shares = self._mixes(prior)
        total = 0.0
        for a, b, excess in shares:  # log(a / pi_+) and log(b / pi_-) without cancellation
            total += a * math.log1p(excess / prior) if a > 0 else 0.0
            total += b * math.log1p(-excess / (1 - prior)) if b > 0 else 0.0
        return max(0.0, self.size // len(shares) * total)  # two terms that nearly cancel for large tuples

    # -- the labels of a tuple -----------------------------------------------------------------------

    def counts(self, prior: float) -> Floats:
        """Return the law of the number of positives in a tuple, (M + 1,) (Lemma 5)."""
        if self.ordered:
            vectors, chances = self.at(prior)._vectors(prior)
            return np.asarray(np.bincount(vectors.sum(axis=1), chances, self.size + 1), np.float64)
        return self._negatives(prior)[::-1].copy()

    def _negatives(self, prior: float) -> Floats:
        """Return the law of the number of negatives in a tuple of a symmetric law, (M + 1,)."""
        weights = np.array(self.weights[::-1])
        own = _part(weights, prior)
        return (1 - self.refused) * own + self.refused * _part(1 - weights, prior) if self.refused else own

    def _vectors(self, prior: float) -> tuple[NDArray[np.int64], Floats]:
        """Return all label vectors (2^M, M) of ones and zeros, and their probabilities among tuples."""
        vectors = np.array(list(itertools.product((0, 1), repeat=self.size)))
        chances = np.where(vectors, prior, 1 - prior).prod(axis=1) * np.array(self.weights)
        return vectors, chances / chances.sum()

    def draw(self, prior: float, n: int, stream: Stream) -> NDArray[np.int8]:
        """Draw the hidden labels of `n` tuples, (n, M), +1 or -1."""
        vectors, chances = self.at(prior)._vectors(prior) if self.ordered else (None, self._negatives(prior))
        kinds = np.flatnonzero(chances)
        drawn = kinds[np.searchsorted(np.cumsum(chances[kinds])[:-1], stream.uniform(n), side="right")]
        if vectors is not None:
            return (2 * vectors[drawn] - 1).astype(np.int8)
        ranks = np.argsort(np.argsort(stream.uniform(n, self.size), axis=1, kind="stable"), axis=1)  # (n, M)
        return np.where(ranks < drawn[:, None], -1, 1).astype(np.int8)

    # -- the members by themselves -------------------------------------------------------------------

    def _mixes(self, prior: float) -> list[Coefficients]:
        """Return the class mix of each position, or one for all where the order does not count.

        a - pi_+ is a sum over the steps of the weights, each with the sign of its step. For dominant tuples it is the
        closed form of Section IV, (1 - m / M) pi_- P(m negatives) with m = floor(M / 2).
        """
        law, prior = self.at(prior), check_prior(prior)
        if self.ordered:
            vectors, chances = law._vectors(prior)
            excesses = prior * (1 - prior) * law.slopes(np.full(self.size, prior)) / law.rate(prior)
            return [
                Coefficients(a, 1 - a, d) for a, d in zip((chances @ vectors).tolist(), excesses.tolist(), strict=True)
            ]
        chances = self._negatives(prior)
        kinds, excess = np.flatnonzero(chances), 0.0
        b = float(chances[kinds] @ kinds) / self.size
        for k, (low, high) in enumerate(itertools.pairwise(law.weights)):  # from k to k + 1 positives
            if high > 0:
                most = self.size - k - 1
                excess += (1 - most / self.size) * (1 - prior) * chances[most] * ((high - low) / high)
            elif low > 0:
                excess -= (1 - k / self.size) * prior * chances[self.size - k]
        return [Coefficients(1.0 - b, b, float(excess))]

    def coefficients(self, prior: float) -> Coefficients:
        """Return the class mix of all members."""
        mixes = self._mixes(prior)
        return mixes[0] if not self.ordered else Coefficients(*np.mean(mixes, axis=0).tolist())

    def shares(self, prior: float) -> Floats:
        """Return a, the probability that a member is positive (Lemma 6), of each position, (M,)."""
        return np.broadcast_to([mix.a for mix in self._mixes(prior)], self.size)

    def _factors(self, prior: float) -> tuple[list[Coefficients], float, list[float]]:
        """Return the class mixes, their distance from the prior, and that of each in units of it."""
        mixes = self._mixes(prior)
        scale = (
            math.hypot(*(mix.denominator for mix in mixes)) / self.size**0.5 if self.ordered else mixes[0].denominator
        )
        steps = np.diff(self.weights)
        cancels = self.ordered or bool((steps > 0).any() and (steps < 0).any())
        if abs(scale) < (1e-12 if cancels else sys.float_info.min):
            raise UserError(
                f"with tuples of {self.size} at prior {prior} members are positive as often as unlabeled rows, to "
                "double precision, so that no risk of single members exists; take a method on bags, such as bag-relu "
                "or bag-nce, or tuples of another size or rule"
            )
        return mixes, scale, [mix.denominator / scale for mix in mixes]

    def positions(self, prior: float) -> Floats:
        """Return what multiplies the losses of each position in the unbiased risk, (M,): 1 unless the order counts.

        Each position gives an unbiased risk. These are combined with weights (a_i - pi_+)^2, so that a position whose
        share is the prior counts nothing.
        """
        return np.broadcast_to(self._factors(prior)[2], self.size)

    @classmethod
    def singles(cls, share: float, prior: float) -> Law:
        """Single instances, a share of them positive, out of a pool whose class prior is another one.

        With the pool they are the two unlabeled sets of UU learning (Lu et al., 2019); with a share of 1, PU learning.
        """
        odds = check_prior(prior) * (1 - share), (1 - prior) * share
        return cls(tuple(weight / max(odds) for weight in odds))

    def risk_weights(self, prior: float, target: float | None = None) -> RiskWeights:
        """Return the weights of the unbiased risk (Theorem 1, Eq. 11), at another prior `target` if one is given.

        They are those of learning from two unlabeled sets with the class priors a and pi_+ (Lu et al., 2018), and for
        M = 1 those of unbiased PU learning (du Plessis et al., 2015). With an order, see `positions`.

        Raises
        ------
        UserError
            If members are positive as often as unlabeled instances are: then no risk of members exists.
        """
        positive = check_prior(prior)
        negative = 1.0 - positive
        mixes, scale, factors = self._factors(positive)
        a, b = (sum(mix[i] * f for mix, f in zip(mixes, factors, strict=True)) / len(mixes) for i in (0, 1))
        weights = RiskWeights(
            positive * negative / scale, -positive * negative / scale, -b * positive / scale, a * negative / scale
        )
        if target is None:
            return weights
        up, down = check_prior(target) / positive, (1 - target) / negative
        return RiskWeights(*(weight * factor for weight, factor in zip(weights, (up, down, up, down), strict=True)))

    # -- risks of answers, without labels ------------------------------------------------------------

    def error(self, members: Any, unlabeled: Any, prior: float) -> Any:
        """Return the unbiased estimate of the error rate (Eq. 11, 0-1 loss) from two shares of positive answers.

        They are those among the members of tuples and among unlabeled instances, numbers or arrays.
        """
        self._check_unordered()
        rates = (1 - members, members, 1 - unlabeled, unlabeled)
        return sum(weight * rate for weight, rate in zip(self.risk_weights(prior), rates, strict=True))

    def _check_unordered(self) -> None:
        if self.ordered:
            raise UserError("answers without their positions give no risk under a law of ordered tuples")

    def member_risk(self, counts: ArrayLike, unlabeled: ArrayLike, prior: float) -> Floats:
        """Return `error`, given what `bag_risk` takes."""
        members = np.asarray(counts, np.float64) @ (np.arange(self.size + 1) / self.size)
        return np.asarray(self.error(members, np.asarray(unlabeled, np.float64), prior))

    def bag_risk(self, counts: ArrayLike, unlabeled: ArrayLike, prior: float) -> Floats:
        """Return the PU estimate of how far bags are put on the wrong side (du Plessis et al., 2015).

        A bag with k positive answers is said to pass with w_k: Z E_T[1 - 2 w_k] + E_U[w_k^2], up to a constant the
        squared error of w. Where the weights are 0 and 1 it is the share of bags that are put on the wrong side.

        Parameters
        ----------
        counts : array_like, shape (..., M + 1)
            Shares of tuples with 0 .. M positive answers.
        unlabeled : array_like, shape (...)
            Share of positive answers among unlabeled instances.
        prior : float
        """
        self._check_unordered()
        weights, shares = self.at(prior).weights, np.asarray(counts, np.float64)
        answers = np.repeat(np.asarray(unlabeled, np.float64)[..., None], self.size, axis=-1)
        squares = _weigh(count_law(answers, 1.0 - answers), tuple(w * w for w in weights))
        return np.asarray(self.rate(prior) * (1 - 2 * _weigh(shares, weights)) + squares)

    # -- what can be known ---------------------------------------------------------------------------

    def identifies(self) -> Identified:
        """Return what tuples and unlabeled instances determine without the prior (``laws.md``, Theorem 2).

        With broken tuples: without their share as well, if it is below that of random groups which the law refuses.
        """
        exact = [Fraction(w).limit_denominator(10**9) for w in self.weights]
        centre, degrees = (_ordered_degrees if self.ordered else _degrees)(exact, bool(self.refused))
        if len(degrees) == 1:
            return Identified("family", centre)
        if centre is not None and 0 < centre < 1 and all(degree % 2 == 0 for degree in degrees):
            return Identified("mirror", centre)
        return Identified("all")


def named_law(name: str, size: int) -> Law:
    """Return the law that a text names, of tuples of M members.

    Parameters
    ----------
    name : str
        ``dominant``, ``similar``, ``comparison`` (of pairs), ``at-least-1``, ``exactly-1``, ``between-1-2``, or M + 1
        weights by the number of positives, such as ``0,0.2,1,1``.
    size : int
        M.

    Raises
    ------
    UserError
        If the text names no law, or none of so many members.
    """
    known = "dominant, similar, comparison, at-least-K, exactly-K, between-K-L, or M + 1 weights: 0,0.2,1"
    kind, *numbers = re.split(r"-(?=\d)", name)
    try:
        if "," in name:
            law = Law(tuple(map(float, name.split(","))))
        elif kind in ("dominant", "similar", "at-least", "exactly", "between"):
            law = getattr(Law, kind.replace("-", "_"))(size, *map(int, numbers))
        else:
            law = {"comparison": Law.comparison}[name]()
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{name!r} is no law; known are {known}") from None
    if law.size != size:
        raise UserError(f"{name!r} is a law of {law.size} members, but tuples have {size}")
    return law


def as_law(law: Law | int) -> Law:
    """Return a law as it is, and for a number of members the paper's."""
    return law if isinstance(law, Law) else Law.dominant(law)


def count_law(positive: Any, negative: Any) -> Any:
    """Return the law of the number of positives among independent members, the Poisson-binomial law.

    The dynamic program takes the members in one by one, O(M^2) in all, and only adds nonnegative numbers. One formula
    for numpy and torch.

    Parameters
    ----------
    positive, negative : ndarray or Tensor, shape (..., M)
        Probabilities r and 1 - r of each member.

    Returns
    -------
    ndarray or Tensor, shape (..., M + 1)
    """
    law = _arrays(positive).ones_like(positive[..., :1])
    for yes, no in zip(_members(positive), _members(negative), strict=True):
        law = _with_member(law, yes, no)
    return law


def _members(values: Any) -> Any:
    """Return the columns (..., 1) of an array (..., M)."""
    return np.split(values, values.shape[-1], -1) if isinstance(values, np.ndarray) else values.split(1, -1)


def _with_member(law: Any, positive: Any, negative: Any) -> Any:
    """Return the law (..., m + 1) of the number of positives with one more member."""
    arrays = _arrays(law)
    none = arrays.zeros_like(law[..., :1])
    return arrays.concatenate([law * negative, none], -1) + arrays.concatenate([none, law * positive], -1)


def _weigh(counts: Any, weights: tuple[float, ...]) -> Any:
    """Return the mean of the weights, (...), under laws of counts (..., M + 1), by runs of equal weights."""
    total, start = None, 0
    for weight, run in itertools.groupby(weights):
        stop = start + len(list(run))
        if weight:
            part = counts[..., start:stop].sum(-1)
            part = part if weight == 1 else weight * part
            total = part if total is None else total + part
        start = stop
    return total


def _contract(weights: Any, positive: Any, negative: Any) -> Any:
    """Return the mean of the weights (2^M) of label vectors, (...), for independent members (..., M)."""
    left = list(weights)
    for i in reversed(range(positive.shape[-1])):
        left = [negative[..., i] * no + positive[..., i] * yes for no, yes in zip(left[::2], left[1::2], strict=True)]
    return left[0]


def _arrays(values: Any) -> Any:
    """Return the module whose functions take `values`: numpy, or torch if it is loaded and they are tensors."""
    return np if isinstance(values, np.ndarray) else sys.modules["torch"]


def _at(prior: float, size: int) -> tuple[Floats, Floats]:
    """Return r and 1 - r of M members at the class prior."""
    members = np.full(size, check_prior(prior))
    return members, 1.0 - members


def _part(weights: Floats, prior: float) -> Floats:
    """Return the law of the number of negatives of M draws that are collected with weights (M + 1,) by that number."""
    size, kinds = len(weights) - 1, np.flatnonzero(weights)
    positive, negative, groups = math.log(check_prior(prior)), math.log1p(-prior), math.lgamma(size + 1)
    logs = np.array(
        [
            groups - math.lgamma(k + 1) - math.lgamma(size - k + 1) + (size - k) * positive + k * negative + math.log(w)
            for k, w in zip(kinds.tolist(), weights[kinds].tolist(), strict=True)
        ]
    )
    terms = np.exp(logs - logs.max())
    law = np.zeros(size + 1)
    law[kinds] = terms / terms.sum()
    return law


def _centre(form: Any) -> Any:
    """Return the mean of a polynomial's roots."""
    return -form[form.order - 1] / (form.order * form[form.order])


def _degrees(weights: list[Fraction], free: bool) -> tuple[float, set[int]]:
    """Return the mean c of the roots of B_w and the powers of s - c in it, without the constant one if that is free."""
    size, s = len(weights) - 1, cast(Any, np.poly1d(np.array([Fraction(1), Fraction(0)])))
    form = sum(math.comb(size, k) * w * s**k * (1 - s) ** (size - k) for k, w in enumerate(weights))
    centre = _centre(form)
    shifted = form(s + centre)
    return float(centre), {j for j in range(int(free), form.order + 1) if shifted[j]}


def _ordered_degrees(weights: list[Fraction], free: bool) -> tuple[float | None, set[int]]:
    """Return the same of the form q(s_1 .. s_M): powers are numbers of factors s_i - c. No centre: any shift fits."""
    size = len(weights).bit_length() - 1
    form = np.array(weights, dtype=object).reshape((2,) * size)
    sides = [np.moveaxis(form, axis, 0) for axis in range(size)]
    for side in sides:
        side[1] -= side[0]
    sets = list(itertools.product((0, 1), repeat=size))
    for fixed in sets:  # the derivative by these members, on the diagonal
        powers = [Fraction(0)] * (size + 1)
        for chosen in sets:
            if all(own >= other for own, other in zip(chosen, fixed, strict=True)):
                powers[size - sum(chosen) + sum(fixed)] += form[chosen]
        diagonal = np.poly1d(np.array(powers))
        if diagonal.order > (1 if free and not any(fixed) else 0):
            centre = _centre(diagonal)
            break
    else:
        return None, {1}
    for side in sides:
        side[0] += centre * side[1]
    return float(centre), {sum(chosen) for chosen in sets if form[chosen] and not (free and not any(chosen))}
