"""Scores of a classifier without labels, from groups whose numbers of positives are known, exactly
or within bounds.

A held-out classifier says yes to a share t of the positives and f of the negatives. A group of M
rows with m positives gets m t + (M - m) f answers yes on average, so a regression of the answers on
m and M - m gives t and f. Where only bounds are known, m is its mean under them at the prior; an
unlabeled row is a group of one with m equal to the prior. All that is estimated is a sum over rows,
so one pair of weights for each group serves for every threshold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from mdpu.data import UNLABELED, Indices, numbers_of
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.learners.joint import posteriors
from mdpu.own.rules import Rule
from mdpu.scores import BINS, Estimate, Suspicion, interval

Floats = NDArray[np.float64]
LEVEL = 0.95
# rows of each class that the least variance takes for granted, half of them wrong, as Agresti and
# Coull do
ADDED = 4
# least eigenvalue of the regression, in units of the largest, at which shares of positives differ
ALIKE = 1e-8


@dataclass(frozen=True)
class Counted:
    """Groups of rows, with the weights that give what holds of positives and of negatives.

    Attributes
    ----------
    place : ndarray, int64, shape (N,)
        The group of each row; an unlabeled row is one.
    positives, sizes : ndarray, shape (n,)
        Mean number of positives, and number of rows, of each group.
    prior : float
        Share of positives among the rows that the scores are for.
    weights : ndarray, shape (2, n)
        Weights of sums over groups: of positives, and of negatives.
    """

    place: Indices
    positives: Floats
    sizes: Floats
    prior: float
    weights: Floats

    @classmethod
    def of(cls, groups: Indices, rule: Rule, prior: float) -> Counted:
        """Return the groups of rows (N,) under a rule with counts.

        Raises
        ------
        UserError
            If all groups have the same share of positives, which tells nothing apart.
        """
        assert rule.counts is not None
        low, high = rule.counts
        numbers, sizes = np.unique(groups[groups != UNLABELED], return_counts=True)
        positives = [
            _mean_count(*bounds, prior) for bounds in zip(sizes.tolist(), low, high, strict=True)
        ]
        unlabeled = groups == UNLABELED
        place = np.searchsorted(numbers, groups)
        place[unlabeled] = len(numbers) + np.arange(unlabeled.sum())
        all_positives = np.append(positives, np.full(unlabeled.sum(), prior))
        all_sizes = np.append(sizes, np.ones(unlabeled.sum()))
        weights = _weights(all_positives, all_sizes)
        return cls(place, all_positives, all_sizes, prior, weights)

    def sums(self, values: Floats) -> Floats:
        """Return the sum of values (N,) in each group, (n,)."""
        return np.bincount(self.place, values, len(self.sizes)).astype(np.float64)

    def means(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the means of values (N,) among positives and negatives, (2,), and what each group
        adds, (2, n).
        """
        sums = self.sums(values)
        means = self.weights @ sums
        residuals = sums - self.positives * means[0] - (self.sizes - self.positives) * means[1]
        return means, self.weights * residuals

    def rates(self, yes: Floats) -> tuple[Floats, Floats]:
        """Return the rates of yes among positives and negatives, (2,), and their covariance, (2,
        2).
        """
        rates, parts = self.means(yes)
        covariance = parts @ parts.T
        n_positives = self.positives.sum()
        n_negatives = (self.sizes - self.positives).sum()
        numbers = np.array([n_positives, n_negatives])
        total = numbers + ADDED
        smoothed = (numbers * np.clip(rates, 0, 1) + ADDED / 2) / total
        least = smoothed * (1 - smoothed) / total
        lacking = np.maximum(0, least - np.diag(covariance))
        return rates, covariance + np.diag(lacking)

    def error(self, yes: Floats) -> Estimate:
        """Return the error rate of answers (N,)."""
        return self._linear(yes, self.prior, np.array([-self.prior, 1 - self.prior]))

    def _linear(self, yes: Floats, constant: float, slopes: Floats) -> Estimate:
        rates, covariance = self.rates(yes)
        return interval(
            float(constant + slopes @ rates), float(slopes @ covariance @ slopes), LEVEL
        )

    def precision(self, yes: Floats) -> Estimate:
        """Return the share of positives among the rows with the answer yes."""
        rates, covariance = self.rates(yes)
        right = self.prior * rates[0]
        wrong = (1 - self.prior) * rates[1]
        total = max(right + wrong, 1e-9)
        of_positives = self.prior * wrong
        of_negatives = -(1 - self.prior) * right
        slopes = np.array([of_positives, of_negatives]) / total**2
        variance = slopes @ covariance @ slopes
        return interval(float(right / total), float(variance), LEVEL)

    def auc(self, scores: Floats) -> Estimate:
        """Return the probability that a positive row scores higher than a negative one."""
        positive, negative = self.weights[:, self.place]
        below = _weight_below(scores, negative)
        above = positive.sum() - _weight_below(scores, positive)
        (value, _), of_positives = self.means(below)
        _, of_negatives = self.means(above)
        parts = of_positives[0] + of_negatives[1]
        return interval(float(value), float(parts @ parts), LEVEL)

    def measures(self, scores: Floats) -> dict[str, Estimate]:
        """Return the scores of `mdpu.scores.scores_without_labels`, with intervals that are cut to
        [0, 1].
        """
        yes = (scores > 0).astype(float)
        estimates = {
            "auc": self.auc(scores),
            "balanced_accuracy": self._linear(yes, 0.5, np.array([0.5, -0.5])),
            "precision": self.precision(yes),
            "recall": self._linear(yes, 0.0, np.array([1.0, 0.0])),
        }
        return {name: _cut(estimate) for name, estimate in estimates.items()}

    def calibration(self, scores: Floats) -> pd.DataFrame:
        """Return what `mdpu.scores.calibration_without_labels` does, with bins of all rows."""
        edges = np.unique(np.quantile(scores, np.arange(1, BINS) / BINS))
        bins = np.searchsorted(edges, scores, "right")
        rows = []
        for number in np.unique(bins).tolist():
            inside = bins == number
            share = _cut(self.precision(inside.astype(float)))
            mean = float(expit(scores[inside]).mean())
            value = float(np.clip(share.value, 0, 1))
            rows.append(
                {
                    "probability": mean,
                    "share": value,
                    "low": share.low,
                    "high": share.high,
                    "rows": int(inside.sum()),
                }
            )
        return pd.DataFrame(rows)


def _mean_count(size: int, low: int, high: int, prior: float) -> float:
    """Return the mean number of positives of a group, given bounds on it."""
    if low == high:
        return float(low)
    return float(Law.between(size, low, high).counts(prior) @ np.arange(size + 1))


def _weights(positives: Floats, sizes: Floats) -> Floats:
    """Return the weights of the regression of sums on numbers of positives and negatives."""
    design = np.stack([positives, sizes - positives]) / np.sqrt(sizes)
    gram = design @ design.T
    eigenvalues = np.linalg.eigvalsh(gram)
    if eigenvalues[0] <= ALIKE * eigenvalues[1]:
        raise UserError(
            "all groups have the same share of positives, so nothing tells the classes apart; add "
            "groups with another share, or unlabeled rows"
        )
    return np.asarray(np.linalg.solve(gram, design) / np.sqrt(sizes))


def _weight_below(scores: Floats, weights: Floats) -> Floats:
    """Return the sum of the weights of rows that score less than each row, those of equal scores
    counting half.
    """
    order = np.argsort(scores, kind="stable")
    cumulated = np.concatenate([[0.0], np.cumsum(weights[order])])
    ordered = scores[order]
    left = cumulated[np.searchsorted(ordered, scores, "left")]
    right = cumulated[np.searchsorted(ordered, scores, "right")]
    return np.asarray((left + right) / 2)


def _cut(estimate: Estimate) -> Estimate:
    low, high = (float(np.clip(end, 0, 1)) for end in (estimate.low, estimate.high))
    return Estimate(estimate.value, low, high, estimate.level)


def known_prior(groups: Indices, rule: Rule) -> float | None:
    """Return the share of positives in the rows of groups, if it is known exactly and there are no
    others.
    """
    assert rule.counts is not None
    low, high = rule.counts
    if (groups == UNLABELED).any() or (low != high).any():
        return None
    return float(low.sum() / len(groups))


def doubtful(scores: Floats, groups: Indices, rule: Rule, prior: float) -> Suspicion:
    """Rank groups by how little their scores (N,) fit the numbers of positives that are known of
    them.

    ``q`` is the probability that a random group with such scores has such a number, ``factor`` how
    many times likelier the scores are otherwise. Nothing tells how many groups are wrong.
    """
    assert rule.counts is not None
    numbers = numbers_of(groups)
    q = np.empty(len(numbers))
    rate = np.empty(len(numbers))
    for place, (number, low, high) in enumerate(zip(numbers, *rule.counts, strict=True)):
        members = scores[groups == number]
        law = Law.between(len(members), int(low), int(high))
        q[place] = posteriors(np.array(law.weights), members)[0]
        rate[place] = law.rate(prior)
    q = np.clip(q, 1e-9, 1 - 1e-9)
    rate = np.clip(rate, 1e-9, 1 - 1e-9)
    factor = (1 - q) / (1 - rate) / (q / rate)
    return Suspicion.of(q, factor, np.nan, None)
