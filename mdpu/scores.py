"""Scores of a fitted classifier from tuples and unlabeled rows, with intervals; folds that cut no
tuple.

Classifiers are fitted `MDPUClassifier` or `TupleClassifier`, or a scikit-learn ``Pipeline`` that
ends in one. Rows and groups are as for their ``fit``. ``docs/how-to/estimator.md`` has examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from scipy.stats import norm

from mdpu.data import UNLABELED, TupleData, join_groups, sample_of
from mdpu.errors import UserError, check_choice, check_count, check_number
from mdpu.law import Law, check_share
from mdpu.learners.joint import posteriors, shifted
from mdpu.prior import PriorProfile, bin_scores, share_deviance
from mdpu.randomness import Stream
from mdpu.sample import row_numbers, without_repeats

Floats = NDArray[np.float64]
LawOf = Callable[[int], Law]
BINS = 8  # of rows by their probability, for the calibration
NEAR = 1e-9  # difference of class share and prior below which members say nothing one by one
Measure = Literal["auc", "balanced_accuracy", "precision", "recall"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


class TupleKFold:
    """Folds for cross-validation of rows with groups: no tuple is cut, and each fold has its share
    of both kinds.

    Equal unlabeled rows, as a bootstrap has them, are in one fold: copies would be held out from
    themselves.

    Parameters
    ----------
    n_splits : int
    random_state : int
    """

    def __init__(self, n_splits: int = 5, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: Any, y: ArrayLike, groups: Any = None
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield indices of the rows to train on and of those that are held out; `y` are the groups
        as for `fit`, of `join_groups` or `number_groups`. Without the rows `X`, all of them count
        as different.

        Raises
        ------
        UserError
            If there are fewer tuples or different unlabeled rows than folds, or `y` are no groups.
        """
        check_count("n_splits", self.n_splits)
        check_number("random_state", self.random_state, Integral)
        group_of = np.asarray(y)
        sample_of(group_of)
        numbers, places = np.unique(group_of, return_inverse=True)
        unlabeled = np.flatnonzero(group_of == UNLABELED)
        if X is None:
            rows = np.arange(len(group_of))
        else:
            rows = X if hasattr(X, "shape") else np.asarray(X)
        kinds = row_numbers(rows, unlabeled)
        different = int(kinds.max()) + 1
        for count, what in (
            (np.sum(numbers != UNLABELED), "tuples"),
            (different, "different unlabeled rows"),
        ):
            if not 2 <= self.n_splits <= count:
                raise UserError(
                    f"{count} {what} cannot be divided into {self.n_splits} folds; give more of "
                    "them, or fewer folds: n_splits, at least 2"
                )
        order = Stream(self.random_state, "fold of each tuple").permutation(len(numbers))
        order = order[numbers[order] != UNLABELED]
        fold_of_number = np.zeros(len(numbers), np.int64)
        fold_of_number[order] = np.arange(len(order)) % self.n_splits
        folds = fold_of_number[places]
        shuffled = Stream(self.random_state, "fold of each unlabeled image").permutation(different)
        folds[unlabeled] = np.argsort(shuffled)[kinds] % self.n_splits
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


# -- the error rate --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """An estimate about a classifier without labels.

    Attributes
    ----------
    value : float
        Unbiased for classifiers that did not see these tuples and rows. It is not clipped: noise
        can take it below 0 or above 1.
    low, high : float
        Interval of `level`, from the variance over tuples and over unlabeled rows. It takes a given
        prior as exact, and the classifier as it is. If the classifier estimated its prior, the
        interval includes that uncertainty.
    level : float
    """

    value: float
    low: float
    high: float
    level: float


def _share(classifier: Any, sizes: NDArray[np.int64], prior: float) -> float:
    """Return the mean class share of members, or raise `UserError` where it equals the prior."""
    laws = [
        (classifier.law_of(size), count)
        for size, count in zip(*np.unique(sizes, return_counts=True), strict=True)
    ]
    excess = sum(law.coefficients(prior).denominator * count for law, count in laws) / len(sizes)
    if abs(excess) < NEAR:
        laws[0][0].risk_weights(prior)  # raises with the reason, if it is one law
        raise UserError(
            f"at prior {prior:.3g} members of tuples are positive as often as unlabeled rows"
        )
    return float(prior + excess)


def _rates(members: Any, unlabeled: Any, share: float, prior: float) -> tuple[Any, Any]:
    """Return true and false positive rates from the shares of positive answers among members and
    unlabeled rows.
    """
    difference = (members - unlabeled) / (share - prior)
    return unlabeled + (1 - prior) * difference, unlabeled - prior * difference


def variance_of_mean(values: Floats, ends: tuple[float, float] = (0.0, 1.0)) -> float:
    """Return the variance of the mean of values between two ends.

    Where nearly all values are equal, their own variance is mostly too small. Two more values at
    each end correct that, as in the interval of Agresti and Coull (The American Statistician 52,
    1998) for a proportion.
    """
    if len(values) < 2:
        raise UserError("a score without labels takes at least two tuples and two unlabeled rows")
    return float(np.append(values, [*ends, *ends]).var(ddof=1) / len(values))


def interval(value: float, variance: float, level: float) -> Estimate:
    """Return an estimate with the interval of a normal distribution."""
    margin = float(norm.ppf((1 + level) / 2) * np.sqrt(variance))
    return Estimate(float(value), float(value - margin), float(value + margin), level)


def with_uncertain_prior(
    at: Callable[[float], dict[str, Estimate]],
    prior: float,
    profile: PriorProfile | None,
    level: float,
) -> dict[str, Estimate]:
    """Return estimates at a prior whose intervals contain those at all priors that the profile
    allows.

    A value belongs to the interval if at some prior pi the deviance of pi and the squared distance
    from the estimate there, in its standard errors, add up to no more than the quantile of
    chi-squared. Tuples and rows are others than those of the profile. Priors at which members say
    nothing are left out. The values are those `at` the given prior.
    """
    estimates = at(prior)
    if profile is None:
        return estimates
    most = float(norm.ppf((1 + level) / 2))
    points = logit(np.clip(profile.priors, 0.003, 0.997))
    line = np.linspace(points[0], points[-1], 400)
    deviance = np.interp(line, points, profile.deviance / profile.inflation)
    if not profile.gate or profile.verdict in ("not known", "does not fit"):
        line = np.linspace(logit(0.02), logit(0.98), 400)
        deviance = np.zeros(400)
    allowed = np.flatnonzero(deviance < most**2)
    for place in np.unique(allowed[np.linspace(0, len(allowed) - 1, 33).astype(int)]):
        try:
            there = at(float(expit(line[place])))
        except UserError:
            continue
        reach = np.sqrt(1 - deviance[place] / most**2)
        for name, estimate in there.items():
            low = float(estimate.value + reach * (estimate.low - estimate.value))
            high = float(estimate.value + reach * (estimate.high - estimate.value))
            widest = estimates[name]
            estimates[name] = replace(widest, low=min(widest.low, low), high=max(widest.high, high))
    return estimates


def of_pool(classifier: Any, sample: TupleData) -> TupleData:
    """Return a sample whose unlabeled rows are draws at the classifier's prior: where they are what
    the tuples left of a pool, the members are put back.

    Intervals take tuples and unlabeled rows as independent. A member that is among both moves
    nearly all estimates less than that, so they are rather too wide.
    """
    return sample.put_back() if classifier.unlabeled_is == "remainder" else sample


def estimated_profile(classifier: Any, prior: float | None = None) -> PriorProfile | None:
    """Return the prior's estimate of a classifier that has one, if no other prior is given."""
    is_given = prior is not None or getattr(classifier, "prior", 0.5) is not None
    return None if is_given else classifier.prior_estimate_


def estimated_risk(
    answers: NDArray[np.bool_], sample: TupleData, prior: float, law_of: LawOf, level: float
) -> Estimate:
    """Return the error rate that answers (N,) are estimated to have.

    Tuples of several sizes give one estimate for each size, and their mean by numbers.

    Parameters
    ----------
    answers : ndarray, bool, shape (N,)
        Which rows are called positive.
    sample : TupleData
        Tuples and unlabeled rows among them.
    prior : float
        Prior of the positive class.
    law_of : callable
        From a tuple size to its `Law`.
    level : float
        Level of the interval.
    """
    rest = answers[sample.unlabeled]
    sizes = sample.sizes
    members = _of_tuples(answers, sample)
    errors = np.empty(len(sizes))
    slope = 0.0
    ends = []
    for size in np.unique(sizes).tolist():
        error = law_of(size).error
        of_size = sizes == size
        errors[of_size] = error(members[of_size], rest.mean(), prior)
        ends += [error(share, rest.mean(), prior) for share in (0.0, 1.0)]
        slope += of_size.mean() * (error(0.0, 1.0, prior) - error(0.0, 0.0, prior))
    variance = variance_of_mean(errors, (min(ends), max(ends))) + slope**2 * variance_of_mean(
        rest.astype(float)
    )
    return interval(errors.mean(), variance, level)


def negative_risk(estimator: Any, X: Any, y: ArrayLike, *, prior: float | None = None) -> float:
    """Return minus the label-free estimate of the error rate: a scorer, higher is better.

    Parameters
    ----------
    estimator : MDPUClassifier, or Pipeline that ends in one
        Fitted.
    X : array_like, shape (N, ...)
        Held-out rows, as the estimator's ``predict`` takes them.
    y : ndarray, int64, shape (N,)
        Their groups, as for `MDPUClassifier.fit`.
    prior : float, optional
        Prior of the estimate, by default the classifier's. Give it by `functools.partial` if the
        compared classifiers estimate theirs: risks at different priors are not comparable.
    """
    classifier, sample, used_prior, scores = _read_scores(estimator, X, y, prior)
    return -estimated_risk(scores > 0, sample, used_prior, classifier.law_of, 0.95).value


def negative_bag_risk(estimator: Any, X: Any, y: ArrayLike, *, prior: float | None = None) -> float:
    """Return minus the label-free estimate of the share of bags on the wrong side: a scorer, higher
    is better.

    It takes tuples as wholes. Epochs that it chose lost half as much accuracy as those that the
    other estimate chose (docs/explanation/findings.md). Its value is no error rate of single rows.
    Parameters are those of `negative_risk`.
    """
    classifier, sample, used_prior, scores = _read_scores(estimator, X, y, prior)
    answers = scores > 0
    sizes = sample.sizes
    rest = answers[sample.unlabeled].mean()
    risk = 0.0
    for size in np.unique(sizes).tolist():
        positives = answers[sample.tuples[sizes == size, :size]].sum(axis=1)
        shares = np.bincount(positives, minlength=size + 1) / len(positives)
        of_size = classifier.law_of(size).bag_risk(shares, rest, used_prior)
        risk += np.mean(sizes == size) * float(of_size)
    return -risk


def _read_scores(
    estimator: Any, X: Any, y: Any, prior: float | None = None
) -> tuple[Any, TupleData, float, Floats]:
    """Return the classifier, the sample, the prior, and the scores (N,) of rows given as tuples or
    with groups.
    """
    classifier = getattr(estimator, "_final_estimator", estimator)  # of a pipeline
    if not hasattr(classifier, "law_of"):
        raise UserError(
            f"{type(classifier).__name__} does not learn from tuples; give an MDPUClassifier or "
            "TupleClassifier, or a Pipeline that ends in one"
        )
    if np.ndim(y) != 1:
        X, y = join_groups(X, y)
    X = X if hasattr(X, "shape") else np.asarray(X)
    sample = of_pool(classifier, without_repeats(X, sample_of(np.asarray(y))))
    # refuses one that is not fitted
    scores = np.asarray(estimator.decision_function(X), np.float64)
    return (
        classifier,
        sample,
        classifier.prior_ if prior is None else check_share("prior", prior),
        scores,
    )


# -- other scores ----------------------------------------------------------------------------------


def _members_below(scores: Floats, sample: TupleData, points: Floats, side: Any) -> Floats:
    """Return the share of members, all tuples counting alike, with a score below points, or up to
    them (`side`).
    """
    present = sample.tuples >= 0
    members = scores[sample.tuples[present]]
    sizes = present.sum(axis=1, keepdims=True)
    weights = (present / sizes)[present]
    order = np.argsort(members)
    shares = weights[order] / len(present)
    cumulated = np.append(0.0, np.cumsum(shares))
    n_below = np.searchsorted(members[order], points, side)
    return np.asarray(cumulated[n_below])


def _of_tuples(values: NDArray[Any], sample: TupleData) -> Floats:
    """Return the mean value of each tuple's members, of values (N,) of rows."""
    present = sample.tuples >= 0
    return np.asarray((np.where(present, values[sample.tuples], 0).sum(axis=1)) / sample.sizes)


def _unlabeled_below(scores: Floats, sample: TupleData) -> Floats:
    """Return the mean share of unlabeled rows that each tuple's members score above.

    Equal scores count one half.
    """
    ordered = np.sort(scores[sample.unlabeled])
    lower = np.searchsorted(ordered, scores, "left")
    upper = np.searchsorted(ordered, scores, "right")
    return _of_tuples((lower + upper) / 2 / len(ordered), sample)


def auc_of_scores(estimator: Any, X: Any, y: Any) -> Callable[[Any], float]:
    """Return the AUC of `scores_without_labels` as a function of scores (N,) of the rows.

    Repeated rows are looked for once, however many scores are judged.
    """
    classifier, sample, used_prior, _ = _read_scores(estimator, X, y)
    gap = _share(classifier, sample.sizes, used_prior) - used_prior

    def auc(scores: Any) -> float:
        below = _unlabeled_below(np.asarray(scores, np.float64), sample)
        return float(0.5 + (below.mean() - 0.5) / gap)

    return auc


def scores_without_labels(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    threshold: float = 0.0,
    prior: float | None = None,
    level: float = 0.95,
) -> dict[str, Estimate]:
    """Estimate AUC, balanced accuracy, precision and recall from tuples and unlabeled rows.

    A member of a tuple is positive with the probability a (Lemma 6), an unlabeled row with pi. So
    the shares of positive answers among them give the two rates of the classifier, and AUC = 1/2 +
    (AUC_TU - 1/2) / (a - pi), where AUC_TU compares members with unlabeled rows.

    Parameters
    ----------
    estimator : MDPUClassifier, or Pipeline that ends in one
        Fitted on rows other than these.
    X, y
        As for `MDPUClassifier.fit`: tuples and unlabeled rows, or rows and groups.
    threshold : float
        Score of ``decision_function`` above which the answer is positive.
    prior : float, optional
        By default the classifier's.
    level : float
        Level of the intervals.

    Raises
    ------
    UserError
        If members are positive as often as unlabeled rows, or there are less than two tuples or
        unlabeled rows.
    """
    check_share("level", level)
    check_number("threshold", threshold)
    classifier, sample, used_prior, scores = _read_scores(estimator, X, y, prior)
    sizes = sample.sizes
    unlabeled = scores[sample.unlabeled]
    yes = (scores > threshold).astype(float)
    tuple_yes = _of_tuples(yes, sample)
    unlabeled_yes = yes[sample.unlabeled]
    members = tuple_yes.mean()
    rest = unlabeled_yes.mean()
    tuple_below = _unlabeled_below(scores, sample)
    spread = variance_of_mean(tuple_yes)
    spread_rest = variance_of_mean(unlabeled_yes)
    lower, upper = (_members_below(scores, sample, unlabeled, side) for side in ("left", "right"))
    above = 1 - (lower + upper) / 2  # share of members above each unlabeled row
    spread_below = variance_of_mean(tuple_below) + variance_of_mean(above)

    def at(assumed: float) -> dict[str, Estimate]:
        share = _share(classifier, sizes, assumed)
        recall, _ = _rates(members, rest, share, assumed)
        gap = share - assumed
        # derivatives of recall
        by_member = (1 - assumed) / gap
        by_rest = 1 - (1 - assumed) / gap
        return {
            "auc": interval(0.5 + (tuple_below.mean() - 0.5) / gap, spread_below / gap**2, level),
            "balanced_accuracy": interval(
                0.5 + (members - rest) / (2 * gap), (spread + spread_rest) / (2 * gap) ** 2, level
            ),
            "precision": _precision(tuple_yes, unlabeled_yes, share, assumed, level),
            "recall": interval(recall, by_member**2 * spread + by_rest**2 * spread_rest, level),
        }

    estimates = with_uncertain_prior(at, used_prior, estimated_profile(classifier, prior), level)
    return {
        name: replace(estimate, low=max(0.0, estimate.low), high=min(1.0, estimate.high))
        for name, estimate in estimates.items()
    }


def _precision(
    by_tuple: Floats, by_unlabeled: Floats, share: float, prior: float, level: float
) -> Estimate:
    """Return the share of positives among rows that were chosen, from their shares in tuples and
    unlabeled rows.
    """
    rest = by_unlabeled.mean()
    recall, _ = _rates(by_tuple.mean(), rest, share, prior)
    value, inverse = (prior * recall / rest, prior / rest) if rest > 0 else (np.nan, np.nan)
    by_member = (1 - prior) / (share - prior)  # derivative of recall
    slope = inverse * (1 - by_member) - value / max(rest, 1e-12)
    parts = (
        (inverse * by_member) ** 2 * variance_of_mean(by_tuple),
        slope**2 * variance_of_mean(by_unlabeled),
    )
    return interval(value, sum(parts), level)


def calibration_without_labels(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    prior: float | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Compare the probabilities of rows with the shares of positives that tuples and unlabeled rows
    speak for.

    Unlabeled rows are put into bins of equal numbers by their probability. The share of positives
    in a bin is the precision of the answer "it lies in this bin", as in `scores_without_labels`,
    whose parameters these are.

    Returns
    -------
    DataFrame
        By bin: ``probability``, the mean of its unlabeled rows; ``share`` of positives, with
        ``low`` and ``high``; and ``rows``, the number of unlabeled ones. Shares are cut to [0, 1].

    Raises
    ------
    UserError
        As `scores_without_labels`, and if scores are not log-odds.
    """
    check_share("level", level)
    classifier, sample, used_prior, scores = _read_scores(estimator, X, y, prior)
    # these rows have the training's prior
    scores = scores - classifier._prior_shift("calibration_without_labels")
    unlabeled = scores[sample.unlabeled]
    edges = np.unique(np.quantile(unlabeled, np.arange(1, BINS) / BINS))
    place = np.searchsorted(edges, scores, "right")
    filled = np.unique(place[sample.unlabeled]).tolist()

    def at(assumed: float) -> dict[str, Estimate]:
        share = _share(classifier, sample.sizes, assumed)
        members = [_of_tuples(place == number, sample) for number in filled]
        rest = [(place[sample.unlabeled] == number).astype(float) for number in filled]
        pairs = zip(filled, members, rest, strict=True)
        return {
            str(number): _precision(by_tuple, by_row, share, assumed, level)
            for number, by_tuple, by_row in pairs
        }

    estimates = with_uncertain_prior(at, used_prior, estimated_profile(classifier, prior), level)
    rows = []
    for number in filled:
        inside = unlabeled[place[sample.unlabeled] == number]
        estimate = estimates[str(number)]
        share, low, high = np.clip([estimate.value, estimate.low, estimate.high], 0, 1).tolist()
        mean = float(expit(inside).mean())
        rows.append(
            {"probability": mean, "share": share, "low": low, "high": high, "rows": len(inside)}
        )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class LabelFreeScorer:
    """A scorer for scikit-learn's tools with ``cv=TupleKFold()``, higher is better.

    Attributes
    ----------
    measure : {'auc', 'balanced_accuracy', 'precision', 'recall'}
    threshold, prior
        As for `scores_without_labels`.
    """

    measure: Measure
    threshold: float = 0.0
    prior: float | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown measure."""
        check_choice("measure", self.measure, MEASURES)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the estimate on held-out rows and groups."""
        return scores_without_labels(estimator, X, y, threshold=self.threshold, prior=self.prior)[
            self.measure
        ].value


def least_cost_threshold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    false_positive: float = 1.0,
    false_negative: float = 1.0,
    prior: float | None = None,
) -> float:
    """Return the threshold of ``decision_function`` with the least estimated cost per row, without
    labels.

    Parameters
    ----------
    estimator, X, y, prior
        As for `scores_without_labels`.
    false_positive, false_negative : float
        Costs of the two mistakes.

    Raises
    ------
    UserError
        If a cost is not positive; and as `scores_without_labels`.
    """
    check_number("false_positive", false_positive)
    check_number("false_negative", false_negative)
    if not (false_positive > 0 and false_negative > 0):
        raise UserError(
            f"costs are {false_positive} and {false_negative}; positive numbers are needed"
        )
    classifier, sample, used_prior, scores = _read_scores(estimator, X, y, prior)
    sizes = sample.sizes
    share = _share(classifier, sizes, used_prior)
    unlabeled = np.sort(scores[sample.unlabeled])
    candidates = np.unique(np.concatenate([scores[sample.members], unlabeled, [scores.min() - 1]]))
    member_yes = 1 - _members_below(scores, sample, candidates, "right")
    unlabeled_yes = 1 - np.searchsorted(unlabeled, candidates, "right") / len(unlabeled)
    recall, false_alarms = _rates(member_yes, unlabeled_yes, share, used_prior)
    missed = false_negative * used_prior * (1 - recall)
    alarmed = false_positive * (1 - used_prior) * false_alarms
    return float(candidates[np.argmin(missed + alarmed)])


# -- broken tuples ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Suspicion:
    """The tuples that look as if they broke the law, and how many do.

    Attributes
    ----------
    tuples : DataFrame
        The most suspicious first: ``tuple``, its place; ``q``, the probability that the law holds
        for a random group with such scores; ``factor``, how many times likelier they are in a
        broken tuple; ``probability`` that it is.
    number : Estimate or None
        Number of broken tuples. Like the probability, it needs unlabeled rows and tuples larger
        than pairs.
    """

    tuples: pd.DataFrame
    number: Estimate | None

    @classmethod
    def of(cls, q: Floats, factor: Floats, probability: Any, number: Estimate | None) -> Suspicion:
        """Return tuples, in their order, as the most suspicious first."""
        table = pd.DataFrame(
            {"tuple": np.arange(len(q)), "q": q, "factor": factor, "probability": probability}
        )
        ranked = table.sort_values("factor", ascending=False, kind="stable", ignore_index=True)
        return cls(ranked, number)


def suspicious(estimator: Any, X: Any, y: Any = None, *, level: float = 0.95) -> Suspicion:
    """Rank tuples by the odds that they break the law, and estimate how many do.

    Broken tuples are modelled as random groups that the law refuses. Their share has the largest
    likelihood at the classifier's prior in the model of `mdpu.prior`, which takes the scores as
    ranks in three bins, so that none need be right; the interval is that of its profile, and holds
    no uncertainty of the prior. Of 400 held-out triples or quintuples of digits with 0, 10 and 20 %
    broken ones, 47 of 48 intervals covered. Tuples that the classifier was trained on look too
    good: their ranking is useful, but the number is too low. Parameters are those of
    `scores_without_labels`, where scores must be log-odds, and `y` may be left out.
    """
    check_share("level", level)
    alone = y is None
    classifier, sample, prior, scores = _read_scores(estimator, X, X[0] if alone else y)
    scores = scores - classifier._prior_shift("suspicious")  # as in calibration_without_labels
    sizes = sample.sizes
    laws = {
        size: replace(classifier.law_of(size), refused=0.0) for size in np.unique(sizes).tolist()
    }

    shift = 0.0 if alone else shifted(scores[sample.unlabeled], prior)
    q = np.empty(len(sizes))
    rate = np.empty(len(sizes))
    for size, law in laws.items():
        of_size = sizes == size
        members = scores[sample.tuples[of_size, :size]]
        q[of_size] = posteriors(np.array(law.weights), members + shift)[0]
        rate[of_size] = law.rate(prior)
    q = np.clip(q, 1e-9, 1 - 1e-9)
    factor = (1 - q) / (1 - rate) / (q / rate)
    number = None
    share = None
    if not alone and sizes.max() > 2:
        most = 0.98 * (1 - rate.min())  # random groups break more
        shares = np.concatenate([[0.0], np.geomspace(min(0.005, most / 40), most, 40)])
        deviance = share_deviance(bin_scores(scores, sample, laws), prior, shares)
        inside = np.flatnonzero(deviance <= float(norm.ppf((1 + level) / 2)) ** 2)
        share, low, high = (
            float(shares[place]) for place in (deviance.argmin(), inside[0], inside[-1])
        )
        number = Estimate(len(sizes) * share, len(sizes) * low, len(sizes) * high, level)
    probability = np.nan if share is None else share * factor / (1 - share + share * factor)
    return Suspicion.of(q, factor, probability, number)
