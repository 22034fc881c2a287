"""The class prior from tuples and unlabeled rows: an interval that covers it, or a refusal.

Any score that was learned without a row ranks it. The ranks are cut into three bins, and the bin is
all that is used: a positive falls into bin k with the probability p_k, a negative with n_k, and the
tuples are collected by the law. This latent-class model is right for every score; a poor score only
widens the interval. At each prior pi the likelihood is maximised over p and n by EM, and twice its
fall from the maximum is the profile d(pi).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, gammaln, logit
from scipy.stats import chi2, rankdata

from mdpu.data import Indices, TupleData
from mdpu.law import Law, check_share
from mdpu.learners.features import Standardisation, kernel_maps
from mdpu.learners.joint import Floats, member_sums, shifted, weights_at
from mdpu.learners.linear import CrossFit, cross_fit
from mdpu.randomness import Stream
from mdpu.sample import Bags, Sample, without_pool
from mdpu.threads import one_thread

Verdict = Literal["known", "bound only", "not known", "does not fit"]
BINS = 3
LEAST = 1e-9  # probability of a bin
EDGES = (0.003, 0.997)
COARSE = 25
FINE = 17
AT_ONCE = 2**24  # sums over the members of tuples that several priors may hold at once
# factor of the chi-squared quantile: scores of different folds share their training tuples
INFLATION = 1.25
# the same where the score may be noise, as at the gate, and each pair of folds is counted twice
SHARED = 2.0
GATE = SHARED * float(chi2.ppf(0.95, df=BINS))
NARROW = (
    4.0  # times the gate: below this, one draw of the folds may pass by chance, so more are taken
)
DRAWS = 3  # of the folds in that case
CYCLES = 400  # of EM, at most
TOLERANCE = 1e-6  # rise of the log-likelihood below which EM ends
SEARCH = 4.8  # span of the fine grid
FOLDS = 5
RIDGES = (1e-3, 3e-4, 1e-4, 3e-5)
LEARN_FROM = 2000  # at most so many tuples teach the score of a fold; all are counted
MOST = 20_000  # at most so many tuples are counted
# factor for the fit; of 64 samples that the law gave, the largest statistic was the quantile itself
MISFIT = 1.5
EXPECTED = 5.0  # expected tuples, from which on a pattern counts by itself
NAMED = 3  # columns that tell members from unlabeled rows
LARGEST = 50  # members of a tuple whose patterns are counted for the fit
NOISE = SHARED * BINS  # mean of the gate where the score is noise
FURTHER = np.geomspace(1, 30, 69)  # multiples of a sample that may tell the prior, in steps of 5 %
MARGIN = 2  # of 65 samples of the expected size 31 told the prior, of 29 of the double size 23


@dataclass(frozen=True)
class PriorProfile:
    """The estimate of a sample's class prior.

    The model assumes that tuples were collected by the law and that unlabeled rows were drawn at
    the prior. With a few thousand tuples, the data do not show when this is wrong: 10 % of tuples
    that break the law move the estimate by about -0.12 for pairs, and unlabeled rows with another
    prior by more than that, outside of the interval. Tuples from a small fixed pool of members are
    not independent draws either.

    Attributes
    ----------
    prior : float
        The prior of the highest likelihood; 0.5 where nothing is known.
    low, high : float
        Interval of `level`; [0, 1] where nothing is known.
    level : float
    verdict : {'known', 'bound only', 'not known', 'does not fit'}
        Known: the interval is at most 0.5 wide and away from 0 and 1. Bound only: the interval is
        right, but a single number in it would mislead. Not known: the score does not tell tuples
        from unlabeled rows, or the law leaves the prior free. Does not fit: at no prior do law and
        classes give these bins; the interval is [0, 1].
    symmetric : bool
        Whether the law is the same with the classes exchanged. Then 1 - `prior` fits as well, with
        the mirrored interval, and the profile is that of priors of at least one half.
    gate : float
        Twice the log-likelihood ratio against bins that say nothing of the class.
    misfit : float
        Pearson's statistic of the best fit over the largest one that fits; 0 where it cannot be
        computed.
    priors, deviance : ndarray
        The profile: twice the log-likelihood ratio of each prior against the best.
    n, n_unlabeled : int
        Tuples and unlabeled rows that were used.
    """

    prior: float
    low: float
    high: float
    level: float
    verdict: Verdict
    symmetric: bool
    gate: float
    misfit: float
    n: int
    n_unlabeled: int
    priors: Floats = field(repr=False, compare=False)
    deviance: Floats = field(repr=False, compare=False)

    @property
    def inflation(self) -> float:
        """Factor of the chi-squared quantile that bounds the interval: 2 near the gate, 1.25 well
        beyond it.
        """
        return _inflation(self.gate)

    @property
    def known(self) -> bool:
        """Whether the sample tells the prior."""
        return self.verdict == "known"

    @property
    def enough(self) -> tuple[int, int] | None:
        """How many tuples and unlabeled rows of this kind probably tell the prior, or None.

        With k times the sample, the deviance at each prior is about k times as large, and so is
        what the gate has beyond noise; the interval is narrower by sqrt(k), therefore. The least k
        that would do is doubled (`MARGIN`), because the sample that it comes from is small. Nothing
        can be said where k is more than 30, where the gate is within its noise, and of a sample
        that does not fit, which is not mended by a larger one.
        """
        if self.verdict == "does not fit":
            return None
        points = logit(self.priors)
        quantile = float(chi2.ppf(self.level, df=1))
        for times in FURTHER[FURTHER * MARGIN * self.n <= MOST]:
            gate = NOISE + times * (self.gate - NOISE)
            if gate <= GATE:
                continue
            threshold = _inflation(gate) * quantile / times
            if _is_known(*_ends(points, self.deviance, threshold, self.symmetric)):
                enough = MARGIN * times
                return _rounded_up(enough * self.n), _rounded_up(enough * self.n_unlabeled)
        return None

    def fits(self, prior: float) -> bool:
        """Return whether a given prior lies in the interval, or in its mirror image where the law
        is symmetric.
        """
        return self.low <= prior <= self.high or (
            self.symmetric and self.low <= 1 - prior <= self.high
        )

    def mirrored(self) -> PriorProfile:
        """Return the profile of the other class."""
        if self.symmetric:
            return self
        return replace(
            self,
            prior=1 - self.prior,
            low=1 - self.high,
            high=1 - self.low,
            priors=1 - self.priors[::-1],
            deviance=self.deviance[::-1],
        )


def _inflation(gate: float) -> float:
    return float(np.interp(gate, [NARROW / 2 * GATE, NARROW * GATE], [SHARED, INFLATION]))


def _is_known(low: float, high: float) -> bool:
    """Whether an interval is away from 0 and 1, and narrow enough to choose a prior from it."""
    return low > 0.01 and high < 0.99 and high - low <= 0.5


def _rounded_up(number: float) -> int:
    """Return a number with two digits that are not 0, or fewer, rounded upwards."""
    unit = 10 ** max(0, int(np.log10(number)) - 1)
    return int(np.ceil(number / unit)) * unit


@dataclass(frozen=True)
class Counts:
    """Bins of tuples and unlabeled rows.

    Attributes
    ----------
    patterns : list of ndarray, int64, shapes (T, M)
        Bins of a tuple's members, sorted; one array for each tuple size.
    numbers : list of ndarray, shapes (T,)
        Tuples with each pattern.
    laws : list of Law
        The law of each size.
    unlabeled : ndarray, shape (BINS,)
        Unlabeled rows in each bin.
    """

    patterns: list[Indices]
    numbers: list[Floats]
    laws: list[Law]
    unlabeled: Floats

    @property
    def pooled(self) -> Floats:
        """Shares of the bins among members and unlabeled rows together."""
        total = self.unlabeled.copy()
        for patterns, numbers in zip(self.patterns, self.numbers, strict=True):
            size = patterns.shape[1]
            total += np.bincount(patterns.ravel(), np.repeat(numbers, size), BINS)
        total = np.maximum(total, LEAST)
        return total / total.sum()


def count_bins(fit: CrossFit, bags: Bags, seed: int | str) -> Counts:
    """Return the bins of held-out scores, ranked within each fold with ties in random order."""
    scores = [*fit.tuple_scores, fit.unlabeled_scores]
    folds = [*fit.tuple_folds, fit.unlabeled_folds]
    bins = [np.zeros(part.shape, np.int64) for part in scores]
    n_folds = int(fit.unlabeled_folds.max()) + 1

    for fold in range(n_folds):
        masks = [part == fold for part in folds]
        in_fold = [part[mask].ravel() for part, mask in zip(scores, masks, strict=True)]
        stream = Stream(seed, "ties", fold)
        ranked = _in_bins(np.concatenate(in_fold), stream)
        ends = np.cumsum([part.size for part in in_fold])[:-1]
        of_parts = np.split(ranked, ends)
        for part, mask, values in zip(bins, masks, of_parts, strict=True):
            shape = part[mask].shape
            part[mask] = values.reshape(shape)

    *of_tuples, of_unlabeled = bins
    return _tabulated(of_tuples, bags.laws, of_unlabeled)


def _in_bins(scores: Floats, ties: Stream) -> Indices:
    """Return the bin of each score (N,); bins hold equal numbers."""
    return ranked(scores, ties.permutation(len(scores))) * BINS // len(scores)


def ranked(scores: Floats, by_chance: Indices) -> Indices:
    """Return the ranks of scores (N,), from 0 on; equal ones by numbers that are drawn for them."""
    order = np.lexsort((by_chance, scores))
    ranks = np.empty(len(scores), np.int64)
    ranks[order] = np.arange(len(scores))
    return ranks


def _tabulated(bins: list[Indices], laws: list[Law], unlabeled: Indices) -> Counts:
    """Return the counts of bins of tuples (n_s, M_s), by size, and of unlabeled rows."""
    patterns = []
    numbers = []
    for of_size in bins:
        distinct, counts = np.unique(np.sort(of_size, axis=1), axis=0, return_counts=True)
        patterns.append(distinct)
        numbers.append(counts.astype(float))
    of_unlabeled = np.bincount(unlabeled, minlength=BINS).astype(float)
    return Counts(patterns, numbers, laws, of_unlabeled)


def collected(laws: Sequence[Law], priors: Floats) -> Floats:
    """Return w_0 .. w_M over Z, (R, M + 1), of a law at each of R priors."""
    at = list(zip(laws, priors.tolist(), strict=True))
    return np.array([weights_at(law, prior) / _rate(law, prior) for law, prior in at])


def log_likelihood(
    counts: Counts, priors: Floats, laws: Floats, weights: list[Floats]
) -> tuple[Floats, Floats]:
    """Return the log-likelihood (R,) of laws at priors (R,), and the laws after a step of EM, (R,
    2, BINS).

    `laws` holds p and n: (R, 2, BINS); `weights` what `collected` returns, for each tuple size.
    """
    per_prior = max(patterns.size * patterns.shape[1] for patterns in counts.patterns)
    n_parts = min(len(priors), -(-len(priors) * per_prior // AT_ONCE))
    if n_parts > 1:  # large tuples, of all priors at once, would not fit into memory
        values = []
        stepped = []
        for part in np.array_split(np.arange(len(priors)), n_parts):
            at_part = [of_size[part] for of_size in weights]
            value, after = log_likelihood(counts, priors[part], laws[part], at_part)
            values.append(value)
            stepped.append(after)
        return np.concatenate(values), np.concatenate(stepped)

    a = laws[:, 0] * priors[:, None]
    b = laws[:, 1] * (1 - priors[:, None])
    mixed = a + b
    value = np.log(mixed) @ counts.unlabeled
    expected = np.stack([a / mixed, b / mixed], axis=1)  # (R, 2, BINS)
    expected = expected * counts.unlabeled
    for patterns, numbers, of_size in zip(counts.patterns, counts.numbers, weights, strict=True):
        positive = a[:, patterns]  # (R, T, M)
        negative = b[:, patterns]
        f, by_positive, by_negative = member_sums(of_size[:, None], positive, negative)
        f = np.maximum(f, 1e-300)
        value = value + np.log(f) @ numbers

        in_bin = (patterns.reshape(-1, 1) == np.arange(BINS)).astype(float)  # (T M, BINS)
        scale = (numbers / f)[..., None]
        for label, products in enumerate((positive * by_positive, negative * by_negative)):
            of_members = (products * scale).reshape(len(priors), -1)
            expected[:, label] += of_members @ in_bin
    return value, _normalised(expected)


def _normalised(laws: Floats) -> Floats:
    """Return laws whose probabilities are at least `LEAST` and add up to 1."""
    laws = np.maximum(laws, LEAST)
    laws = np.maximum(laws / laws.sum(axis=-1, keepdims=True), LEAST)
    return laws / laws.sum(axis=-1, keepdims=True)


def maximise(
    counts: Counts,
    priors: Floats,
    laws: Floats,
    weights: list[Floats],
) -> tuple[Floats, Floats]:
    """Return the greatest log-likelihood (R,) over the laws at each prior, by EM with SQUAREM
    steps, and the laws.

    A step that lowers the likelihood is replaced by two of plain EM (Varadhan and Roland, 2008).
    """
    best = np.full(len(priors), -np.inf)
    active = np.arange(len(priors))
    laws = laws.copy()
    for _ in range(CYCLES):
        at = priors[active]
        at_weights = [of_size[active] for of_size in weights]
        start = laws[active]
        before, once = log_likelihood(counts, at, start, at_weights)
        after, two = log_likelihood(counts, at, once, at_weights)
        jump = _jump(start, once, two)
        reached, jumped = log_likelihood(counts, at, jump, at_weights)
        worse = reached < after
        laws[active] = np.where(worse[:, None, None], two, jumped)
        value = np.maximum(reached, after)
        done = value - before < TOLERANCE
        best[active] = np.maximum(best[active], value)
        active = active[~done]
        if not len(active):
            break
    return best, laws


def _jump(start: Floats, once: Floats, twice: Floats) -> Floats:
    """Return where SQUAREM goes from laws (R, 2, BINS), after a step of EM and after two."""
    step = once - start
    change = twice - 2 * once + start
    squares = (step**2).sum(axis=(1, 2))
    of_change = (change**2).sum(axis=(1, 2))
    ratio = squares / np.maximum(of_change, 1e-300)
    length = np.clip(np.sqrt(ratio), 1.0, 1e4)[:, None, None]
    return _normalised(start + 2 * length * step + length**2 * change)


def starting_laws(counts: Counts, priors: Floats) -> tuple[Floats, Floats]:
    """Return priors (R,), each as often as there are starts, and laws (R, 2, BINS) whose positives
    rank high.

    Laws that may fall as the number of positives grows have starts whose positives rank low as
    well.
    """
    pooled = counts.pooled
    of_300 = np.maximum(1, np.round(300 * pooled)).astype(int)
    rising = all((np.diff(law.weights) >= 0).all() for law in counts.laws)
    slopes = (1.0, 4.0) if rising else (1.0, 4.0, -1.0, -4.0)
    ranks = np.arange(BINS) - (BINS - 1) / 2
    laws = []
    for prior in priors:
        for slope in slopes:
            scores = slope * ranks
            shift = shifted(np.repeat(scores, of_300), float(prior))
            r = expit(scores + shift)
            laws.append([pooled * r, pooled * (1 - r)])
    return np.repeat(priors, len(slopes)), _normalised(np.array(laws))


@lru_cache(maxsize=1024)
def _rate(law: Law, prior: float) -> float:
    return law.rate(prior)


def profile(*draws: Counts, level: float = 0.95) -> PriorProfile:
    """Return the profile likelihood of the prior, its interval and the verdict.

    Counts of several draws of the folds have the mean of their log-likelihoods.
    """
    counts = draws[0]
    symmetric = all(law.is_symmetric for law in counts.laws)
    quantile = float(chi2.ppf(level, df=1))
    points, values = _profile_points(draws, symmetric, quantile)
    deviance = 2 * (values.max() - values)
    gate = 2 * float(values.max() - _without_class(draws))
    n = round(sum(numbers.sum() for numbers in counts.numbers))
    n_unlabeled = round(counts.unlabeled.sum())

    def says(verdict: Verdict, prior: float, ends: tuple[float, float], far: float) -> PriorProfile:
        return PriorProfile(
            prior=prior,
            low=ends[0],
            high=ends[1],
            level=level,
            verdict=verdict,
            symmetric=symmetric,
            gate=gate,
            misfit=far,
            n=n,
            n_unlabeled=n_unlabeled,
            priors=expit(points),
            deviance=deviance,
        )

    anywhere = (0.0, 1.0)
    if gate <= GATE or all(law.identifies().what == "family" for law in counts.laws):
        return says("not known", 0.5, anywhere, 0.0)
    prior = float(expit(points[values.argmax()]))
    far = misfit(counts, prior)
    if far > 1:
        return says("does not fit", prior, anywhere, far)
    ends = _ends(points, deviance, _inflation(gate) * quantile, symmetric)
    return says("known" if _is_known(*ends) else "bound only", prior, ends, far)


def _profile_points(
    draws: Sequence[Counts], symmetric: bool, quantile: float
) -> tuple[Floats, Floats]:
    """Return log-odds of priors, and the greatest log-likelihood at each: a coarse grid, and a fine
    one where the likelihood is high.
    """
    low_edge = 0.0 if symmetric else float(logit(EDGES[0]))
    coarse = np.linspace(low_edge, float(logit(EDGES[1])), COARSE)
    values = _best_at(draws, coarse)
    fall = 2 * (values.max() - values)
    near = np.flatnonzero(fall <= max(SEARCH, INFLATION * quantile))
    first = max(near[0] - 1, 0)
    last = min(near[-1] + 1, COARSE - 1)
    fine = np.linspace(coarse[first], coarse[last], FINE)

    points = np.concatenate([coarse, fine])
    values = np.concatenate([values, _best_at(draws, fine)])
    order = np.argsort(points, kind="stable")
    return points[order], values[order]


def _best_at(draws: Sequence[Counts], points: Floats) -> Floats:
    """Return the greatest log-likelihood at each prior, given by its log-odds; the mean of the
    draws.
    """
    priors = expit(points)
    weights = [collected([law] * len(points), priors) for law in draws[0].laws]
    total = np.zeros(len(points))
    for counts in draws:
        at, starts = starting_laws(counts, priors)
        n_starts = len(at) // len(points)
        at_weights = [np.repeat(of_size, n_starts, axis=0) for of_size in weights]
        values, _ = maximise(counts, at, starts, at_weights)
        total += values.reshape(len(points), -1).max(axis=1)
    return total / len(draws)


def _without_class(draws: Sequence[Counts]) -> float:
    """Return the log-likelihood of bins that say nothing of the class; the mean of the draws."""
    half = np.array([0.5])
    weights = [collected([law], half) for law in draws[0].laws]
    values = []
    for counts in draws:
        alike = _normalised(np.broadcast_to(counts.pooled, (1, 2, BINS)))
        values.append(log_likelihood(counts, half, alike, weights)[0][0])
    return float(np.mean(values))


def bin_scores(scores: Floats, sample: TupleData, laws: dict[int, Law]) -> Counts:
    """Return the bins of scores (N,) that were learned from none of the rows of a sample; `laws` by
    tuple size.

    Equal scores are ranked by chance: in the order of rows, those of a tuple would be alike.
    """
    bins = _in_bins(scores, Stream(0, "ties of rows"))
    bins_of_tuples = []
    for size in laws:
        tuples = sample.tuples[sample.sizes == size, :size]
        bins_of_tuples.append(bins[tuples])
    return _tabulated(bins_of_tuples, list(laws.values()), bins[sample.unlabeled])


def share_deviance(counts: Counts, prior: float, shares: Floats) -> Floats:
    """Return twice the log-likelihood ratio of each share of broken tuples against the best, at a
    given prior.
    """
    priors, starts = starting_laws(counts, np.array([prior]))
    each = len(priors)
    share_of_each = np.repeat(shares, each)
    prior_of_each = 0 * share_of_each + prior
    weights = []
    for law in counts.laws:
        laws = [law.broken(share) for share in share_of_each]
        weights.append(collected(laws, prior_of_each))

    all_priors = np.tile(priors, len(shares))
    all_starts = np.tile(starts, (len(shares), 1, 1))
    values, _ = maximise(counts, all_priors, all_starts, weights)
    best = values.reshape(len(shares), each).max(axis=1)
    return 2 * (best.max() - best)


def misfit(counts: Counts, prior: float) -> float:
    """Return Pearson's statistic of the best laws at a prior over `MISFIT` times its quantile of
    0.999.

    Patterns with fewer than `EXPECTED` expected tuples count as one.
    """
    priors, starts = starting_laws(counts, np.array([prior]))
    weights = [collected([law] * len(priors), priors) for law in counts.laws]
    values, laws = maximise(counts, priors, starts, weights)
    p, n = laws[values.argmax()]
    a = prior * p
    b = (1 - prior) * n
    cells = [(counts.unlabeled, counts.unlabeled.sum() * (a + b))]
    for patterns, numbers, of_size in zip(counts.patterns, counts.numbers, weights, strict=True):
        if patterns.shape[1] <= LARGEST:
            cells.append(_pattern_cells(patterns, numbers, of_size[0], a, b))

    freedom = sum(len(observed) - 1 for observed, _ in cells) - 2 * BINS + 1
    if freedom < 1:
        return 0.0
    statistic = 0.0
    for observed, expected in cells:
        statistic += float(((observed - expected) ** 2 / expected).sum())
    return statistic / (MISFIT * float(chi2.ppf(0.999, df=freedom)))


def _pattern_cells(
    patterns: Indices, numbers: Floats, weights: Floats, a: Floats, b: Floats
) -> tuple[Floats, Floats]:
    """Return how many tuples of a size have each pattern, and how many are expected to.

    A pattern is the bins of a tuple's members, without their order. `a` and `b` (BINS,) are the
    joint laws of bin and class. Rare patterns are one cell, which is left out if it is rare itself.
    """
    size = patterns.shape[1]
    every = np.array(list(combinations_with_replacement(range(BINS), size)))
    chances = member_sums(weights, a[every], b[every])[0]
    expected = numbers.sum() * _orders(every) * chances
    seen = dict(zip(map(tuple, patterns.tolist()), numbers, strict=True))
    observed = np.array([seen.get(tuple(pattern), 0.0) for pattern in every.tolist()])

    rare = expected < EXPECTED
    n_rare = expected[rare].sum()
    if n_rare < EXPECTED:
        return observed[~rare], expected[~rare]
    observed = np.append(observed[~rare], observed[rare].sum())
    return observed, np.append(expected[~rare], n_rare)


def _orders(patterns: Indices) -> Floats:
    """Return the number of orders of the bins of each pattern (T, M)."""
    size = patterns.shape[1]
    repeats = np.zeros(len(patterns))
    for k in range(BINS):
        repeats += gammaln((patterns == k).sum(axis=1) + 1)
    return np.asarray(np.exp(gammaln(size + 1) - repeats))


def columns_apart(rows: Any, members: Indices, unlabeled: Indices) -> list[tuple[int, float]]:
    """Return the columns of a table that tell members from unlabeled rows best, and how well: areas
    under the curve.
    """
    if sparse.issparse(rows) or rows.ndim != 2:
        return []

    of_members = _spread(rows, members)
    of_unlabeled = _spread(rows, unlabeled)
    both = np.concatenate([of_members, of_unlabeled])
    missing_first = np.nan_to_num(both, nan=-np.inf)
    ranks = rankdata(missing_first, axis=0)
    mean_ranks = ranks[: len(of_members)].mean(axis=0)
    areas = (mean_ranks - (len(of_members) + 1) / 2) / len(of_unlabeled)
    best = np.argsort(-np.abs(areas - 0.5), kind="stable")[:NAMED]
    either_way = np.maximum(areas, 1 - areas)
    return [(int(column), float(either_way[column])) for column in best]


def _spread(rows: NDArray[Any], places: Indices) -> NDArray[Any]:
    """Return rows at different places, spread over all if they are many."""
    step = 1 + len(places) // LEARN_FROM
    return np.asarray(rows[np.unique(places)][::step])


def _ends(
    points: Floats, deviance: Floats, threshold: float, symmetric: bool
) -> tuple[float, float]:
    """Return the interval {d <= threshold}, whose ends are interpolated in the log-odds of the
    prior.
    """
    inside = np.flatnonzero(deviance <= threshold)
    first = int(inside[0])
    last = int(inside[-1])

    def crossing(within: int, outside: int) -> float:
        rise = deviance[outside] - deviance[within]
        part = (threshold - deviance[within]) / rise
        return float(expit(points[within] + part * (points[outside] - points[within])))

    low = 0.5 if symmetric else 0.0
    high = 1.0
    if first > 0:
        low = crossing(first, first - 1)
    if last < len(points) - 1:
        high = crossing(last, last + 1)
    return low, high


def estimate_prior(
    rows: Any,
    sample: TupleData,
    law: Law | Callable[[int], Law],
    seed: int | str = 0,
    *,
    level: float = 0.95,
) -> PriorProfile:
    """Estimate the class prior from tuples and unlabeled rows alone.

    Parameters
    ----------
    rows : ndarray or sparse matrix, shape (N, ...)
        uint8 or floats, which may have missing values. A linear score of a kernel's features ranks
        them.
    sample : TupleData
        Tuples of one or several sizes; all of them count, or a random part if there are more than
        `MOST`.
    law : Law or callable
        The law of the tuples, or a function from a tuple size to a law.
    seed : int or str
        Seed of that part, the kernel, folds, groups and ties.
    level : float
        Confidence level of the interval, in (0, 1).

    Raises
    ------
    UserError
        If `level` is no share.

    Notes
    -----
    `PriorProfile` names the limits. Where members recur, tuples that share some are left out. Of
    repeated unlabeled rows one is counted. Both give a warning.
    """
    law_of = law if callable(law) else lambda size: law
    return prior_of(Sample.of(rows, sample, law_of), seed, level=level)


def prior_of(sample: Sample, seed: int | str, *, level: float = 0.95) -> PriorProfile:
    """Estimate the class prior of a sample, as `estimate_prior` does of its parts."""
    check_share("level", level)
    bags = without_pool(_part(sample.bags, seed))
    if bags.n < 2 * FOLDS or len(bags.unlabeled) < 2 * FOLDS:
        return _nothing_known(bags, level)

    sample = sample.of_bags(bags)
    with one_thread():
        counts = rank(sample, seed)
        estimate = profile(counts, level=level)
        if GATE < estimate.gate < NARROW * GATE:
            seeds = [f"{seed}, draw {draw} of the folds" for draw in range(1, DRAWS)]
            more = [rank(sample, another) for another in seeds]
            estimate = profile(counts, *more, level=level)
    return estimate


def _nothing_known(bags: Bags, level: float) -> PriorProfile:
    """Return the estimate of a sample that is too small for one."""
    return PriorProfile(
        prior=0.5,
        low=0.0,
        high=1.0,
        level=level,
        verdict="not known",
        symmetric=False,
        gate=0.0,
        misfit=0.0,
        n=bags.n,
        n_unlabeled=len(bags.unlabeled),
        priors=np.array([0.0, 1.0]),
        deviance=np.zeros(2),
    )


def rank(sample: Sample, seed: int | str) -> Counts:
    """Return the bins of scores of the rows of a sample, each learned without the row."""
    features = sample.rows
    if not sample.is_sparse:
        z = Standardisation.learn(sample.rows)(sample.rows)
        features = kernel_maps(z, seed, (1.0,))[0].transform(z)
    fit = cross_fit(
        [features],
        sample.bags,
        0.5,
        seed=seed,
        folds=FOLDS,
        ridges=RIDGES,
        at_most=LEARN_FROM,
        aligned=True,
    )
    return count_bins(fit, sample.bags, seed)


def _part(bags: Bags, seed: int | str) -> Bags:
    """Return at most `MOST` tuples and twice as many unlabeled rows, by chance."""

    def chosen(n: int, most: int) -> NDArray[np.bool_]:
        order = Stream(seed, "part that tells the prior").permutation(n)
        return order < most

    return bags.select(bags.split(chosen(bags.n, MOST)), chosen(len(bags.unlabeled), 2 * MOST))
