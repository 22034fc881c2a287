"""How many tuples a set of training images can supply without replacement."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len

from mdpu.theory import check_prior, coefficients, tuple_law

# What is drawn without replacement: the tuples alone; the tuples and, from the full pool again, the unlabeled images;
# or both from one pool, so that no image is in both.
Demand = Literal["tuples", "overlapping", "disjoint"]
DEMANDS: tuple[Demand, ...] = ("tuples", "overlapping", "disjoint")


def expected_largest_n(
    positives: int, negatives: int, tuple_size: int, prior: float, demand: Demand, n_unlabeled: float = 1.0
) -> int:
    """Return the largest number of tuples whose expected demand the training images of both sides can meet.

    n tuples hold n M a positives and n M b negatives in expectation (Lemma 6), and c n unlabeled images
    c n pi_+ and c n pi_-. At this n about half of all draws need more images of a side than expected:
    `probability_of_fit` says how many fail.

    Parameters
    ----------
    positives, negatives : int
        Training images of each side.
    tuple_size : int
        M.
    prior : float
        pi_+.
    demand : {'tuples', 'overlapping', 'disjoint'}
        What is drawn without replacement, see `DEMANDS`.
    n_unlabeled : float
        c, the number of unlabeled images as a multiple of the number of tuples.

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    per_tuple = coefficients(tuple_size, prior)
    limits = []
    for pool, share, rate in ((positives, per_tuple.a, prior), (negatives, per_tuple.b, 1 - prior)):
        tuple_demand, unlabeled_demand = tuple_size * share, n_unlabeled * rate
        needed = {
            "tuples": tuple_demand,
            "overlapping": max(tuple_demand, unlabeled_demand),
            "disjoint": tuple_demand + unlabeled_demand,
        }[demand]
        limits.append(pool / needed if needed else math.inf)
    # Tolerate rounding: 12,000 / (3 x 0.8) is 5,000.
    return math.floor(min(limits) * (1 + 1e-12))


def probability_of_fit(
    positives: int,
    negatives: int,
    tuple_size: int,
    prior: float,
    n: int,
    demand: Demand,
    n_unlabeled: int | None = None,
) -> float:
    """Return the probability that `mdpu.pipeline.data.splits.draw_split` can draw a split without replacement.

    The number of positives that a split needs is random. Its law is exact: the convolution of the laws of
    its n tuples (Lemma 5) and of its unlabeled images, taken by discrete Fourier transform, with an
    absolute error near 1e-12.

    Parameters
    ----------
    positives, negatives, tuple_size, prior, demand
        As for `expected_largest_n`.
    n : int
        Number of tuples.
    n_unlabeled : int, optional
        Number of unlabeled images; n unless given.

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range.
    """
    unlabeled = n if n_unlabeled is None else n_unlabeled
    draws = {
        "tuples": [(n, 0)],
        "overlapping": [(n, 0), (0, unlabeled)],
        "disjoint": [(n, unlabeled)],
    }[demand]
    laws = [_needed_positives(tuple_size, prior, *counts) for counts in draws]
    return math.prod(_fits(law, positives, negatives) for law in laws)


@lru_cache(maxsize=64)  # datasets share it: it knows nothing of the images that there are
def _needed_positives(tuple_size: int, prior: float, tuples: int, unlabeled: int) -> NDArray[np.float64]:
    """Return the probability of 0, 1, .. positives among the images of so many tuples and unlabeled images."""
    negatives_law = tuple_law(tuple_size, prior)
    of_tuple = np.zeros(tuple_size + 1)
    of_tuple[tuple_size - np.arange(negatives_law.size)] = negatives_law
    of_image = np.array([1 - check_prior(prior), prior])
    images = tuple_size * tuples + unlabeled
    length = next_fast_len(images + 1, real=True)
    transform = np.fft.rfft(of_tuple, length) ** tuples * np.fft.rfft(of_image, length) ** unlabeled
    law = np.fft.irfft(transform, length)[: images + 1]
    law.flags.writeable = False
    return law


def _fits(needed: NDArray[np.float64], positives: int, negatives: int) -> float:
    """Return the probability that neither side needs more images than there are, by the law of the positives."""
    least = max(0, needed.size - 1 - negatives)  # fewer positives would mean more negatives than there are
    return float(np.clip(needed[least : positives + 1].sum(), 0.0, 1.0))
