"""Sampling of tuples and unlabeled images for one trial.

A split holds indices into the training images and never their labels, so the learner sees what the paper's
learner sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mdpu.errors import UserError
from mdpu.pipeline.files import load_npz, save_npz
from mdpu.randomness import Stream
from mdpu.theory import broken_tuple_law, check_prior, check_tuple_size, tuple_law

Indices = NDArray[np.int64]
Signs = NDArray[np.int8]


@dataclass(frozen=True)
class Split:
    """Training data of one trial.

    Attributes
    ----------
    tuples : ndarray, int64, shape (n, M)
        Each row a dominant-positive tuple of training indices.
    unlabeled : ndarray, int64, shape (n_unlabeled,)
        Training indices drawn at the class prior.
    """

    tuples: Indices
    unlabeled: Indices


def draw_tuple_labels(tuple_size: int, prior: float, n: int, stream: Stream, broken: float = 0.0) -> Signs:
    """Draw the hidden labels of `n` tuples from the law of Lemma 5.

    A share `broken` of them, on average, comes from the law of the other tuples instead.

    Returns
    -------
    ndarray, int8, shape (n, M)
        +1 or -1; no row has more negatives than positives, unless it is broken.
    """
    law = broken_tuple_law(tuple_size, prior, broken) if broken else tuple_law(tuple_size, prior)
    negatives = np.searchsorted(np.cumsum(law)[:-1], stream.uniform(n), side="right")  # (n,)
    ranks = np.argsort(np.argsort(stream.uniform(n, tuple_size), axis=1, kind="stable"), axis=1)  # (n, M)
    return np.where(ranks < negatives[:, None], -1, 1).astype(np.int8)


def draw_split(
    labels: Signs,
    tuple_size: int,
    prior: float,
    n: int,
    n_unlabeled: int,
    trial: int | str,
    replacement: bool = True,
    overlap: bool = True,
    broken: float = 0.0,
) -> Split:
    """Draw tuples and unlabeled images of one trial.

    Parameters
    ----------
    labels : ndarray, int8, shape (N,)
        Sides of the training images; images of side 0 are left out.
    tuple_size, prior, n, n_unlabeled
        M, pi_+, number of tuples, number of unlabeled images.
    trial : int or str
        Seeds every random number of the split; splits of two trials are independent.
    replacement : bool
        Whether an image may be drawn more than once within the tuples, and within the unlabeled set.
    overlap : bool
        Whether an image may occur both in a tuple and among the unlabeled.
    broken : float
        Share of tuples, in [0, 1), that are not dominant: annotators err.

    Returns
    -------
    Split

    Raises
    ------
    UserError
        If a number is out of range, a side has no image, or a pool is too small.
    """
    check_tuple_size(tuple_size)
    check_prior(prior)
    for name, value in (("n", n), ("n_unlabeled", n_unlabeled)):
        if value < 1:
            raise UserError(f"{name} is {value}; at least 1 is needed")
    if isinstance(trial, int) and trial < 0:
        raise UserError(f"trial is {trial}; it must be 0 or more")
    hidden = draw_tuple_labels(tuple_size, prior, n, Stream(trial, "tuple labels"), broken).ravel()  # (n * M,)
    unlabeled = np.where(Stream(trial, "unlabeled labels").uniform(n_unlabeled) < prior, 1, -1).astype(np.int8)

    tuple_members = np.empty(hidden.size, dtype=np.int64)
    unlabeled_members = np.empty(n_unlabeled, dtype=np.int64)
    for sign, side in ((1, "positive"), (-1, "negative")):
        pool = np.flatnonzero(labels == sign)
        need = int((hidden == sign).sum()), int((unlabeled == sign).sum())
        tuple_pool, unlabeled_pool = _pools(pool, need, overlap, Stream(trial, f"{side} pools"))
        for members, drawn, sub_pool, count, what in (
            (tuple_members, hidden, tuple_pool, need[0], "tuples"),
            (unlabeled_members, unlabeled, unlabeled_pool, need[1], "unlabeled images"),
        ):
            stream = Stream(trial, f"{side} {what}")
            if replacement:
                if count and not sub_pool.size:
                    raise UserError(f"no {side} training image is left for the {what}; the pool has {pool.size}")
                members[drawn == sign] = sub_pool[stream.integers(sub_pool.size, count)]
            elif count > sub_pool.size:
                fits = _largest_n(labels, hidden.reshape(n, tuple_size), unlabeled, overlap)
                other = "" if overlap else f" beside {need[1] if what == 'tuples' else need[0]} for the other part"
                raise UserError(
                    f"sampling without replacement needs {count} {side} training images for the {what}{other}, but "
                    f"the pool has {pool.size}; the largest n that fits M = {tuple_size}, prior {prior} is {fits}"
                )
            else:
                members[drawn == sign] = sub_pool[stream.permutation(sub_pool.size)[:count]]
    return Split(tuple_members.reshape(n, tuple_size), unlabeled_members)


def _pools(pool: Indices, need: tuple[int, int], overlap: bool, stream: Stream) -> tuple[Indices, Indices]:
    """Return the pools of the tuples and of the unlabeled images: one shared pool, or a division in proportion.

    If both need images and the pool has two, each gets at least one.
    """
    if overlap:
        return pool, pool
    shuffled = pool[stream.permutation(pool.size)]
    cut = round(pool.size * need[0] / max(1, sum(need)))
    if all(need) and pool.size > 1:
        cut = min(max(cut, 1), pool.size - 1)
    return shuffled[:cut], shuffled[cut:]


def _largest_n(labels: Signs, hidden: Signs, unlabeled: Signs, overlap: bool) -> int:
    """Return how many of the first tuples, with unlabeled images in proportion, the pools can supply."""

    def fits(n: int) -> bool:
        unlabeled_needed = unlabeled[: round(n * unlabeled.size / len(hidden))]
        for sign in (1, -1):
            pool = int((labels == sign).sum())
            need = int((hidden[:n] == sign).sum()), int((unlabeled_needed == sign).sum())
            if (max(need) if overlap else sum(need)) > pool:
                return False
        return True

    low, high = 0, len(hidden)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def write_split(split: Split, path: Path) -> None:
    """Write a split as npz with arrays ``tuples`` and ``unlabeled``."""
    save_npz(path, tuples=split.tuples, unlabeled=split.unlabeled)


def read_split(path: Path) -> Split:
    """Read a split; raise `UserError` if the file is missing or broken."""
    return Split(**load_npz(path, "tuples", "unlabeled"))
