"""A problem whose every expectation is known: two Gaussian classes on a line, and classifiers that are thresholds.

An image is a number x. Its class y is +1 with probability pi_+, and x given y is normal with mean y and deviation 1.
The classifier with threshold t scores it as x - t, cut off at -1 and 1. The loss is the logistic one. So losses are
bounded, and the Rademacher complexity of the thresholds is at most `REACH` / sqrt(n) for every density.
Expectations are quadratures of smooth functions, exact to about 1e-14.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from mdpu.learn.losses import LOSSES
from mdpu.pipeline.data.splits import draw_tuple_labels
from mdpu.randomness import Stream
from mdpu.theory import coefficients, risk_weights
from mdpu.theory.bounds import Assumptions, Sample, negatives_variance

Floats = NDArray[np.float64]

REACH = 2.0  # thresholds lie between -REACH and REACH
THRESHOLDS = np.linspace(-REACH, REACH, 101)
MOST_NUMBERS = 4_000_000  # scores held at a time
LOSS_BOUND = math.log1p(math.e)  # of a score in [-1, 1]
# E sup_t (1/n) sum_i s_i (x_i - t) = REACH E |(1/n) sum_i s_i| <= REACH / sqrt(n), and cutting off adds nothing.
ASSUMPTIONS = Assumptions(complexity=REACH, lipschitz=1 / (1 + math.exp(-1)), loss_bound=LOSS_BOUND)

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(40)  # on [-1, 1], the scores that are not cut off


def loss(scores: Floats, label: int) -> Floats:
    """Return the logistic loss of each score against a label, same shape."""
    return LOSSES["logistic"](torch.from_numpy(scores), label).numpy()


def scored(x: Floats, thresholds: Floats | float) -> Floats:
    """Return scores of images, shape (...), or (..., T) if there are T thresholds."""
    return np.clip(x - thresholds if np.ndim(thresholds) == 0 else x[..., None] - thresholds, -1.0, 1.0)


def expectation(function: Callable[[Floats], Floats], label: int, threshold: float) -> float:
    """Return the expectation of a function of the score over a class: +1 or -1."""
    densities = np.exp(-((_NODES + threshold - label) ** 2) / 2) / math.sqrt(2 * math.pi)
    below, above = ndtr(threshold - 1 - label), ndtr(label - threshold - 1)
    ends = function(np.array([-1.0, 1.0]))
    return float(ends @ [below, above] + (_NODE_WEIGHTS * densities) @ function(_NODES))


def true_risk(prior: float, threshold: float) -> float:
    """Return R(g), the risk of Eq. 1."""
    positive = expectation(lambda z: loss(z, 1), 1, threshold)
    return prior * positive + (1 - prior) * expectation(lambda z: loss(z, -1), -1, threshold)


@dataclass(frozen=True)
class Expected:
    """What is known of the risk estimate at one classifier.

    Attributes
    ----------
    tuple_risk, unlabeled_risk : float
        R_MDP and R_U.
    deviation : float
        Standard deviation of the risk estimate.
    """

    tuple_risk: float
    unlabeled_risk: float
    deviation: float


def expected(sample: Sample, threshold: float) -> Expected:
    """Return the partial risks at a classifier, and how far the risk estimate scatters around their sum.

    The variance within a tuple is that of its members given their classes, and that of the number of its negatives.
    """
    size, prior = sample.tuple_size, sample.prior
    share, weights = coefficients(size, prior), risk_weights(size, prior)

    def member_loss(z: Floats) -> Floats:
        return weights.tuple_positive * loss(z, 1) + weights.tuple_negative * loss(z, -1)

    def unlabeled_loss(z: Floats) -> Floats:
        return weights.unlabeled_positive * loss(z, 1) + weights.unlabeled_negative * loss(z, -1)

    means = {label: expectation(member_loss, label, threshold) for label in (1, -1)}
    within = sum(
        part * (expectation(lambda z: member_loss(z) ** 2, label, threshold) - means[label] ** 2)
        for label, part in ((1, share.a), (-1, share.b))
    )
    between = (means[1] - means[-1]) ** 2 * negatives_variance(size, prior) / size**2
    mean, square = (
        prior * expectation(function, 1, threshold) + (1 - prior) * expectation(function, -1, threshold)
        for function in (unlabeled_loss, lambda z: unlabeled_loss(z) ** 2)
    )
    variance = (within / size + between) / sample.n + (square - mean**2) / sample.n_unlabeled
    return Expected(share.a * means[1] + share.b * means[-1], mean, math.sqrt(variance))


@dataclass(frozen=True)
class Drawn:
    """Images of trials.

    Attributes
    ----------
    members : ndarray, shape (trials, n, M)
    unlabeled : ndarray, shape (trials, n_unlabeled)
    """

    members: Floats
    unlabeled: Floats


def draw(sample: Sample, trials: int, name: str) -> Drawn:
    """Draw independent trials of a sample; `name` seeds every random number."""
    labels = draw_tuple_labels(
        sample.tuple_size, sample.prior, trials * sample.n, Stream(name, "tuple labels")
    ).reshape(trials, sample.n, sample.tuple_size)
    unlabeled = np.where(Stream(name, "unlabeled labels").uniform(trials, sample.n_unlabeled) < sample.prior, 1.0, -1.0)
    return Drawn(
        labels + _normal(Stream(name, "members"), labels.shape),
        unlabeled + _normal(Stream(name, "unlabeled"), unlabeled.shape),
    )


def estimates(sample: Sample, trials: int, name: str, thresholds: Floats | float) -> tuple[Floats, Floats]:
    """Draw trials and return their `partial_estimates`, some trials at a time, so that memory stays small."""
    numbers = (sample.tuple_size * sample.n + sample.n_unlabeled) * np.size(thresholds)
    most = max(1, MOST_NUMBERS // numbers)
    parts = [
        partial_estimates(sample, draw(sample, min(most, trials - start), f"{name}/{start}"), thresholds)
        for start in range(0, trials, most)
    ]
    return np.concatenate([tuples for tuples, _ in parts]), np.concatenate([unlabeled for _, unlabeled in parts])


def _normal(stream: Stream, shape: tuple[int, ...]) -> Floats:
    """Return standard normal numbers, finite where the uniform number is 0."""
    return ndtri(np.maximum(stream.uniform(*shape), 2.0**-54))


def partial_estimates(sample: Sample, drawn: Drawn, thresholds: Floats | float) -> tuple[Floats, Floats]:
    """Return the estimates of R_MDP and R_U of each trial, (trials,) or (trials, T); they add up to Eq. 11."""
    weights = risk_weights(sample.tuple_size, sample.prior)
    members = scored(drawn.members.reshape(len(drawn.members), -1), thresholds)
    unlabeled = scored(drawn.unlabeled, thresholds)
    return (
        weights.tuple_positive * loss(members, 1).mean(axis=1)
        + weights.tuple_negative * loss(members, -1).mean(axis=1),
        weights.unlabeled_positive * loss(unlabeled, 1).mean(axis=1)
        + weights.unlabeled_negative * loss(unlabeled, -1).mean(axis=1),
    )
