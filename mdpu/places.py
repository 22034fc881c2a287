"""Whether tuples come from places, whose members are more alike than the law allows; and what the
error rate may then be.

A tuple is taken for a random group that a law lets pass. If each tuple comes from a place of its
own, such as a shop or a household, and places differ, its members are alike beyond that. There are
two signs.

- *Shares of positives differ.* If they have a beta law of mean pi and variance rho pi (1 - pi), the
  number of positives in a random group is beta-binomial. So tuples have another symmetric law, of
  the weights w_k BB(k) / B(k), and the model of `mdpu.prior` says how much likelier it makes the
  held-out scores.
- *A column differs.* Given their classes, members are independent draws, so a function f of a row
  has the covariance (E_+ f - E_- f)^2 Cov(y, y') within tuples. Most laws make classes of two
  members go along negatively, at every prior. Then nothing may be alike within tuples, and
  exchanging members between tuples shows whether a column is.

The first sign also shows how far off an error rate may be: it is estimated again at each variance
that the scores allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betaln, expit, logit
from scipy.stats import chi2, rankdata

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import TINY, Law
from mdpu.prior import (
    INFLATION,
    LARGEST,
    Counts,
    PriorProfile,
    bin_scores,
    collected,
    maximise,
    ranked,
    starting_laws,
)
from mdpu.randomness import Stream
from mdpu.scores import Estimate, LawOf, estimated_risk

Floats = NDArray[np.float64]
AtPrior = Callable[[Law, float, float], Law]
# of the shares of positives, in parts of the largest variance
VARIANCES = np.array([0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65, 0.85])
SHARES = np.array([0.0, 0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.18])  # of broken tuples
BELOW = 0.98  # of the share of random groups that break the law, which broken tuples can be
PRIORS = expit(np.linspace(logit(0.04), logit(0.96), 13))  # where none is given
FINE = 33  # amounts at which an error rate is estimated
# twice the log-likelihood ratio from which on shares differ: the quantile of 0.97 of a half-half
# mixture of chi-squared and 0, as no variance is negative
DIFFER = INFLATION * float(chi2.ppf(0.94, df=1))
ALIKE = 0.01  # probability by chance, up to which a column is alike within tuples
ORDERS = 199  # of members, by chance
MOST_TUPLES = 2000  # at most so many are judged
MOST_COLUMNS = 100
NAMED = 3  # columns
NEGATIVE = 1e-9  # covariance of classes up to which it counts as not positive


@dataclass(frozen=True)
class Places:
    """What speaks for places that differ.

    Attributes
    ----------
    statistic : float
        Twice the log-likelihood ratio of shares of positives that differ, against those of the law.
    variance : float
        Their likeliest variance, in parts of the largest.
    chance : float
        Probability that a column is as alike within tuples if the law holds; 1 where the law allows
        that, or there are no columns.
    columns : tuple of int
        The columns that are alike within tuples, the clearest first.
    error : Estimate
        The error rate, with an interval that allows for all variances that the scores allow.
    """

    statistic: float
    variance: float
    chance: float
    columns: tuple[int, ...]
    error: Estimate

    @property
    def shares_differ(self) -> bool:
        """Whether shares of positives differ between places: 5 % of samples by the law say so."""
        return self.statistic > DIFFER

    @property
    def columns_differ(self) -> bool:
        """Whether columns are alike within tuples: less than 1 % of samples by the law say so."""
        return self.chance <= ALIKE


def placed(law: Law, prior: float, variance: float) -> Law:
    """Return the law of tuples from places, given that of random groups and the prior.

    Parameters
    ----------
    law : Law
    prior : float
        Mean share of positives of a place.
    variance : float
        Variance of these shares over prior (1 - prior), in [0, 1).
    """
    law = law.at(prior)
    if not variance:
        return law
    number = np.arange(law.size + 1)
    rest = law.size - number
    total = 1 / variance - 1
    positive = total * prior
    negative = total * (1 - prior)
    log_ratio = betaln(number + positive, rest + negative) - betaln(positive, negative)
    log_ratio -= number * np.log(prior) + rest * np.log1p(-prior)
    weights = np.array(law.weights)
    collected_at = weights > 0
    scaled = np.zeros(law.size + 1)
    scaled[collected_at] = weights[collected_at] * np.exp(
        log_ratio[collected_at] - log_ratio[collected_at].max()
    )
    return Law(tuple(scaled / scaled.max()))


def with_broken(law: Law, prior: float, share: float) -> Law:
    """Return the law with a share of broken tuples, at a prior.

    It is at most the share of random groups that break the law.
    """
    by_chance = 1 - law.rate(prior)
    return replace(law, refused=min(share, BELOW * by_chance)).at(prior)


# -- the likelihood of a departure from the law ----------------------------------------------------


@dataclass(frozen=True)
class Surface:
    """How well priors and amounts of a departure from the law fit, in twice the log-likelihood.

    Attributes
    ----------
    priors, amounts : ndarray, shapes (P,), (R,)
        The first amount is none.
    deviance : ndarray, shape (P, R)
        Against the best of all.
    """

    priors: Floats
    amounts: Floats
    deviance: Floats

    @classmethod
    def of(cls, counts: Counts, priors: Floats, amounts: Floats, at: AtPrior) -> Surface:
        """Return the surface of bins of scores; `at` gives the law from a law, a prior and an
        amount.
        """
        every_prior = np.repeat(priors, len(amounts))
        every_amount = np.tile(amounts, len(priors))
        repeated, starts = starting_laws(counts, every_prior)
        each = len(repeated) // len(every_prior)
        weights = []
        for law in counts.laws:
            pairs = zip(every_prior.tolist(), every_amount.tolist(), strict=True)
            laws = [at(law, prior, amount) for prior, amount in pairs]
            weights.append(np.repeat(collected(laws, every_prior), each, axis=0))
        values = maximise(counts, repeated, starts, weights)[0]
        best = values.reshape(len(priors), len(amounts), each).max(axis=2)
        return cls(priors, amounts, 2 * (best.max() - best))

    @property
    def statistic(self) -> float:
        """Twice the log-likelihood ratio of the best amount against none."""
        return float(self.deviance[:, 0].min())

    @property
    def amount(self) -> float:
        """The best amount."""
        return float(self.amounts[self.deviance.min(axis=0).argmin()])

    def excludes_none(self, level: float) -> bool:
        """Whether no amount does not belong to the region of a level."""
        return self.statistic >= INFLATION * float(chi2.ppf(level, df=1))

    def allowed(self, level: float) -> list[tuple[float, float, float]]:
        """Return priors and amounts that belong to the region of a level, each with the part of an
        interval's half width that is left to it.
        """
        quantile = INFLATION * float(chi2.ppf(level, df=1))
        fine = np.interp(
            np.linspace(0, len(self.amounts) - 1, FINE), np.arange(len(self.amounts)), self.amounts
        )
        inside = []
        for prior, deviance in zip(self.priors.tolist(), self.deviance, strict=True):
            at_fine = np.interp(fine, self.amounts, deviance)
            for place in np.flatnonzero(at_fine < quantile):
                reach = float(np.sqrt(1 - at_fine[place] / quantile))
                inside.append((prior, float(fine[place]), reach))
        return inside


def _law_at(law_of: LawOf, at: AtPrior, prior: float, amount: float, size: int) -> Law:
    """Return the law of a tuple size with an amount of a departure."""
    return at(law_of(size), prior, amount)


# -- held-out scores -------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldOut:
    """Scores by models that had not seen the rows or their tuples, and what the law says of them.

    Attributes
    ----------
    scores : ndarray, shape (N,)
        Positive for the answer +1.
    sample : TupleData
        Tuples and unlabeled rows among them.
    law_of : callable
        From a tuple size to its `Law`.
    error : Estimate
        Error rate of the answers by the law itself.
    prior : float
        The prior that was given, or estimated.
    profile : PriorProfile, optional
        Its estimate; without it, the prior is taken as exact.
    folds : ndarray, int64, shape (N,), optional
        Rows that one model scored have one number. Scores are ranked within them: those of another
        model lie elsewhere, and all members of a tuple have the same.
    """

    scores: Floats
    sample: TupleData
    law_of: LawOf
    error: Estimate
    prior: float
    profile: PriorProfile | None = None
    folds: NDArray[np.int64] | None = None

    @cached_property
    def part(self) -> TupleData:
        """The tuples and unlabeled rows that are judged."""
        return _part(self.sample)

    @cached_property
    def ranks(self) -> Floats:
        """Ranks of the scores in (0, 1), (N,), as `ranks_within` gives them."""
        return ranks_within(self.scores, self.folds)

    @cached_property
    def laws(self) -> dict[int, Law]:
        """The law of each tuple size."""
        return {size: self.law_of(size) for size in np.unique(self.part.sizes).tolist()}

    @cached_property
    def bins(self) -> Counts:
        """Bins of the scores; of large tuples, nearly all of which differ, those of the rest."""
        small = {size: law for size, law in self.laws.items() if size <= LARGEST}
        return bin_scores(self.ranks, self.part, small)

    @cached_property
    def priors(self) -> Floats:
        """The priors that are compared."""
        if self.profile is None:
            return np.array([self.prior])
        return np.unique(np.append(PRIORS, self.prior))

    @property
    def likely_priors(self) -> Floats:
        """Those of the priors that lie in the interval of their estimate."""
        if self.profile is None:
            return self.priors
        within = (self.priors >= self.profile.low) & (self.priors <= self.profile.high)
        return self.priors[within] if within.any() else self.priors

    def surface(self, amounts: Floats, at: AtPrior) -> Surface:
        """Return how well amounts of a departure from the law fit."""
        return Surface.of(self.bins, self.priors, amounts, at)

    def error_with(self, surface: Surface, at: AtPrior) -> Estimate:
        """Return the error rate with an interval that allows for a departure.

        A value belongs to the interval if at some prior and amount the deviance and the squared
        distance from the estimate there, in its standard errors, add up to no more than the
        quantile of chi-squared, as in `mdpu.scores.with_uncertain_prior`. The value is that of the
        best amount. The interval by the law itself belongs to it, unless some departure is certain.
        """
        answers = self.scores > 0
        level = self.error.level
        ends = [] if surface.excludes_none(level) else [self.error.low, self.error.high]
        value = self.error.value
        best = 0.0
        for prior, amount, reach in surface.allowed(level):
            law_at = partial(_law_at, self.law_of, at, prior, amount)
            try:
                there = estimated_risk(answers, self.sample, prior, law_at, level)
            except UserError:  # members are positive as often as unlabeled rows
                continue
            ends += [there.value + reach * (end - there.value) for end in (there.low, there.high)]
            if reach > best:
                best = reach
                value = there.value
        if not ends:
            return self.error
        return Estimate(float(value), float(min(ends)), float(max(ends)), level)


# -- columns that are alike ------------------------------------------------------------------------


def classes_go_along(laws: Iterable[Law], priors: Floats) -> bool:
    """Return whether classes of two members of a tuple go along at one of the priors, by one of
    the laws.
    """
    for law in laws:
        for prior in priors.tolist():
            share = law.coefficients(prior).a
            if law.both_positive(prior) - share**2 > NEGATIVE:
                return True
    return False


def alike_columns(values: Floats, sample: TupleData) -> tuple[float, tuple[int, ...]]:
    """Return the probability by chance that a column is as alike within tuples as the most alike
    one, and the columns that are more so than any is by chance.

    Members are exchanged between tuples of one size. Covariances of all columns are compared in
    their standard deviations, and the largest one counts.

    Parameters
    ----------
    values : ndarray, shape (N, d)
        Columns; missing values stand for the mean.
    sample : TupleData
    """
    sizes = sample.sizes
    parts = [
        _ranks_of_members(values, sample.tuples[sizes == size, :size])
        for size in np.unique(sizes).tolist()
        if size > 1
    ]
    if not parts:
        return 1.0, ()

    stream = Stream(0, "members exchanged between tuples")
    sums = [sum(_within(part) for part in parts)]
    for _ in range(ORDERS):
        sums.append(sum(_within(_exchanged(part, stream)) for part in parts))
    within = np.array(sums)
    spread = np.maximum(within.std(axis=0), TINY)
    excess = (within - within.mean(axis=0)) / spread

    seen = excess[0]
    by_chance = excess[1:].max(axis=1)
    clear = np.flatnonzero(seen > by_chance.max())
    clearest = clear[np.argsort(-seen[clear], kind="stable")][:NAMED]
    chance = (1 + int((by_chance >= seen.max()).sum())) / (ORDERS + 1)
    return float(chance), tuple(clearest.tolist())


def _ranks_of_members(values: Floats, tuples: NDArray[np.int64]) -> Floats:
    """Return centred ranks (n, M, d) of the members of tuples (n, M); missing values get 0."""
    members = values[tuples]  # (n, M, d)
    flat = members.reshape(-1, members.shape[2])
    missing = np.isnan(flat)
    missing_last = np.where(missing, np.inf, flat)
    ranks = np.where(missing, 0, rankdata(missing_last, axis=0))
    n_present = np.maximum((~missing).sum(axis=0), 1)
    means = ranks.sum(axis=0) / n_present
    centred = np.where(missing, 0, ranks - means)
    return np.asarray(centred.reshape(members.shape))


def _exchanged(members: Floats, stream: Stream) -> Floats:
    """Return members (n, M, d) that were exchanged between their tuples by chance."""
    flat = members.reshape(-1, members.shape[2])
    return np.asarray(flat[stream.permutation(len(flat))].reshape(members.shape))


def _within(members: Floats) -> Floats:
    """Return the sum of squares of the tuples' sums (d,): their covariance, up to what no exchange
    changes.
    """
    return np.asarray((members.sum(axis=1) ** 2).sum(axis=0))


# -- both ------------------------------------------------------------------------------------------


def judge_places(held: HeldOut, rows: Any) -> Places:
    """Return what held-out scores and columns say of places that differ.

    Columns of `rows`, an ndarray or a DataFrame of numbers (N, ...), are compared in a dense table
    only.
    """
    surface = held.surface(VARIANCES, placed)
    error = held.error_with(surface, placed)
    chance = 1.0
    columns: tuple[int, ...] = ()
    if not classes_go_along(held.laws.values(), held.likely_priors):
        table = held.ranks[:, None]
        if is_table(rows):
            table = np.column_stack([np.asarray(rows, np.float64)[:, :MOST_COLUMNS], table])
        chance, columns = alike_columns(table, held.part)
        columns = tuple(place for place in columns if place < table.shape[1] - 1)
    return Places(surface.statistic, surface.amount, chance, columns, error)


def error_with_broken(held: HeldOut) -> Estimate:
    """Return the error rate with an interval that allows for all shares of broken tuples that the
    scores allow.
    """
    return held.error_with(held.surface(SHARES, with_broken), with_broken)


def ranks_within(scores: Floats, folds: NDArray[np.int64] | None) -> Floats:
    """Return the ranks of scores (N,) in (0, 1), within folds if there are some.

    Equal scores are ranked by chance. By their places, members of a tuple would be alike.
    """
    if folds is None:
        folds = np.zeros(len(scores), np.int64)
    by_chance = Stream(0, "ties of held-out scores").permutation(len(scores))
    ranks = np.empty(len(scores))
    for fold in np.unique(folds).tolist():
        inside = np.flatnonzero(folds == fold)
        of_fold = ranked(scores[inside], by_chance[inside])
        ranks[inside] = (1 + of_fold) / (len(inside) + 1)
    return ranks


def is_table(rows: Any) -> bool:
    """Return whether rows are a dense table of numbers."""
    return isinstance(rows, np.ndarray | pd.DataFrame) and rows.ndim == 2


def _part(sample: TupleData) -> TupleData:
    """Return at most `MOST_TUPLES` tuples, and as many times the unlabeled rows, by chance."""
    n = len(sample.tuples)
    if n <= MOST_TUPLES:
        return sample
    stream = Stream(0, "part that tells places")
    chosen = np.sort(stream.permutation(n)[:MOST_TUPLES])
    n_unlabeled = len(sample.unlabeled)
    kept = max(2, n_unlabeled * MOST_TUPLES // n)
    return TupleData(
        sample.tuples[chosen], sample.unlabeled[np.sort(stream.permutation(n_unlabeled)[:kept])]
    )
