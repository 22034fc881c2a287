"""Tuples and unlabeled instances as indices into any source, and their drawing from labelled ones, without torch.

`mdpu.streaming` reads them in minibatches. Data hold indices and never labels, so the learner sees what the paper's
learner sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpu.errors import UserError
from mdpu.law import Law, as_law, check_prior
from mdpu.randomness import Stream

Indices = NDArray[np.int64]
Signs = NDArray[np.int8]


class Joined:
    """Arrays below one another as one that is only read, without a copy of them.

    Parameters
    ----------
    *parts : ndarray, shapes (N_i, ...)
        Alike but for their lengths.
    """

    def __init__(self, *parts: NDArray[Any]) -> None:
        self.parts, self._ends = parts, np.cumsum([len(part) for part in parts])
        self.shape, self.dtype, self.ndim = (int(self._ends[-1]), *parts[0].shape[1:]), parts[0].dtype, parts[0].ndim
        self.nbytes = sum(part.nbytes for part in parts)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[Any]) -> NDArray[Any]:
        """Return a copy of some rows."""
        places = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows, np.int64)
        found = np.empty((len(places), *self.shape[1:]), self.dtype)
        for part, end in zip(self.parts, self._ends.tolist(), strict=True):
            here = (places >= end - len(part)) & (places < end)
            found[here] = part[places[here] - (end - len(part))]
        return found


@dataclass(frozen=True)
class TupleData:
    """What the learner sees: indices of images, and no labels.

    Attributes
    ----------
    tuples : ndarray, int64, shape (n, M)
        Each row is a tuple. If tuples have several sizes, M is the largest, and rows with fewer
        members end in -1.
    unlabeled : ndarray, int64, shape (n_unlabeled,)
        Images drawn at the class prior.
    """

    tuples: Indices
    unlabeled: Indices

    @property
    def is_ragged(self) -> bool:
        """Whether the tuples have several sizes."""
        return bool((self.tuples < 0).any())

    @classmethod
    def gather(
        cls, tuples: NDArray[Any] | Sequence[NDArray[Any]], unlabeled: NDArray[Any]
    ) -> tuple[NDArray[Any], TupleData]:
        """Return one array of all images, and the sample of indices into it.

        Parameters
        ----------
        tuples : ndarray, shape (n, M, ...), or sequence of n ndarrays, shapes (M_i, ...)
            Images or feature vectors of the members.
        unlabeled : ndarray, shape (n_unlabeled, ...)

        Raises
        ------
        UserError
            If the members and the unlabeled images differ in shape or type, or one of them is empty.
        """
        sizes = np.array([len(members) for members in tuples], dtype=np.int64)
        if not sizes.size or not sizes.all() or not len(unlabeled):
            raise UserError("tuples and unlabeled rows are both needed, but there are none, or a tuple has no member")
        for members in tuples[:1] if isinstance(tuples, np.ndarray) else tuples:
            if members.shape[1:] != unlabeled.shape[1:] or members.dtype != unlabeled.dtype:
                raise UserError(
                    f"tuples hold rows of shape {members.shape[1:]} and type {members.dtype}, but the unlabeled ones "
                    f"have shape {unlabeled.shape[1:]} and type {unlabeled.dtype}; give both alike"
                )
        starts = np.cumsum(sizes) - sizes
        places = np.arange(sizes.max())
        indices = np.where(places < sizes[:, None], starts[:, None] + places, -1)  # (n, M)
        images = np.concatenate([*tuples, unlabeled])
        return images, cls(indices, np.arange(sizes.sum(), len(images)))


def draw_split(
    labels: Signs,
    law: Law | int,
    prior: float,
    n: int,
    n_unlabeled: int,
    trial: int | str,
    replacement: bool = True,
    overlap: bool = True,
) -> TupleData:
    """Draw tuples and unlabeled images of one trial.

    Parameters
    ----------
    labels : ndarray, int8, shape (N,)
        Sides of the training images; images of side 0 are left out.
    law, prior, n, n_unlabeled
        Law of the tuples, or M for dominant ones; pi_+; number of tuples; number of unlabeled images.
    trial : int or str
        Seeds every random number of the split; splits of two trials are independent.
    replacement : bool
        Whether an image may be drawn more than once within the tuples, and within the unlabeled set.
    overlap : bool
        Whether an image may occur both in a tuple and among the unlabeled.

    Returns
    -------
    TupleData

    Raises
    ------
    UserError
        If a number is out of range, a side has no image, or a pool is too small.
    """
    law = as_law(law)
    check_prior(prior)
    for name, value in (("n", n), ("n_unlabeled", n_unlabeled)):
        if value < 1:
            raise UserError(f"{name} is {value}; at least 1 is needed")
    if isinstance(trial, int) and trial < 0:
        raise UserError(f"trial is {trial}; it must be 0 or more")
    hidden = law.draw(prior, n, Stream(trial, "tuple labels")).ravel()  # (n * M,)
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
                fits = _largest_n(labels, hidden.reshape(n, law.size), unlabeled, overlap)
                other = "" if overlap else f" beside {need[1] if what == 'tuples' else need[0]} for the other part"
                raise UserError(
                    f"sampling without replacement needs {count} {side} training images for the {what}{other}, but "
                    f"the pool has {pool.size}; the largest n that fits M = {law.size}, prior {prior} is {fits}"
                )
            else:
                members[drawn == sign] = sub_pool[stream.permutation(sub_pool.size)[:count]]
    return TupleData(tuple_members.reshape(n, law.size), unlabeled_members)


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
