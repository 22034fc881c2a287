"""What a classifier was given, as rows and the sample that names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpu.data import Joined, TupleData
from mdpu.errors import UserError, warn
from mdpu.groups import join_groups, read_groups
from mdpu.learn.fitting import LARGE
from mdpu.learn.task import check_sample
from mdpu.learners.joint import WeightedTuples
from mdpu.learners.latent import disjoint_tuples
from mdpu.streaming import Shuffle

PROFILED = 20_000  # tuples that the prior is compared with, at most, where a network is trained
POOL = 0.02  # share of members that recur, from which on tuples are taken for draws from a small pool


def read(X: Any, y: Any, check: Callable[..., Any]) -> tuple[Any, TupleData]:
    """Return rows (N, ...) and the sample that names them, whatever form they were given in.

    `check` returns rows as learners take them, or raises; it takes scikit-learn's ``ensure_min_samples``.
    """
    if y is None:
        raise UserError("requires y to be passed, but the target y is None; give unlabeled rows, or groups")
    if not isinstance(y, TupleData) and not hasattr(y, "ndim"):
        try:
            y = np.asarray(y)
        except ValueError:
            raise UserError(
                "y holds rows of several shapes; if tuples and unlabeled rows are swapped, give the tuples first"
            ) from None
    if not isinstance(y, TupleData) and y.ndim != 1:
        if is_large_pair(X, y):
            rows = Joined(check(X.reshape(-1, *X.shape[2:])), check(y))
            members = X.shape[0] * X.shape[1]
            return rows, TupleData(np.arange(members).reshape(X.shape[:2]), np.arange(members, len(rows)))
        X, y = join_groups(X, y)
    rows = check(X, ensure_min_samples=2)
    if isinstance(y, TupleData):
        if not all(np.issubdtype(part.dtype, np.integer) for part in (y.tuples, y.unlabeled)):
            raise UserError("the sample's numbers of rows are no integers; give integers")
        check_sample(y, rows.shape[0], ())
        return rows, y
    groups = y if isinstance(y, np.ndarray) else np.asarray(y)
    if rows.shape[0] != len(groups) and np.issubdtype(groups.dtype, np.integer):
        raise UserError(f"X holds {rows.shape[0]} rows, but y the groups of {len(groups)}; give one for each")
    return rows, read_groups(groups)


def numbers(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows as the library takes them: uint8 and floats as they are, other numbers as float32.

    Frames and memory maps may be read-only, which torch warns of; they are copied unless they are large.
    """
    if rows.dtype != np.uint8 and not np.issubdtype(rows.dtype, np.floating):
        return rows.astype(np.float32)
    return rows if rows.nbytes > LARGE else np.require(rows, requirements="W")


def is_large_pair(tuples: Any, unlabeled: Any) -> bool:
    """Whether tuples (n, M, ...) and unlabeled rows are arrays alike that need no copy and are too large for one."""
    arrays = isinstance(tuples, np.ndarray) and isinstance(unlabeled, np.ndarray)
    if not arrays or tuples.shape[2:] != unlabeled.shape[1:] or tuples.dtype != unlabeled.dtype:
        return False
    return tuples.nbytes + unlabeled.nbytes > LARGE and tuples.dtype in (np.uint8, np.float32)


def put_back(sample: TupleData) -> TupleData:
    """Return a sample with its members among the unlabeled rows as well."""
    present = sample.tuples >= 0
    unlabeled = np.concatenate([sample.unlabeled, sample.tuples[present]])
    if not isinstance(sample, WeightedTuples):
        return replace(sample, unlabeled=unlabeled)
    members = np.repeat(sample.tuple_weights, present.sum(axis=1))
    weights = np.concatenate([sample.unlabeled_weights, members])
    return replace(sample, unlabeled=unlabeled, unlabeled_weights=weights)


def part_of(sample: TupleData, seed: int | str) -> TupleData:
    """Return a random part of a large sample, which tells the prior as well."""
    chosen = [
        rows[Shuffle(len(rows), seed, "part that tells the prior")(np.arange(min(len(rows), count)))]
        for rows, count in ((sample.tuples, PROFILED), (sample.unlabeled, 2 * PROFILED))
    ]
    return TupleData(*chosen)


def without_pool(rows: Any, sample: TupleData) -> TupleData:
    """Return the sample without tuples that share members, where members recur and unlabeled rows are others.

    Tuples and unlabeled rows that are drawn from one finite pool need no care.
    """
    identity = identity_of(rows)
    present = sample.tuples >= 0
    members = identity[sample.tuples[present]]
    distinct = np.unique(members)
    recurring = 1 - len(distinct) / len(members)
    common = float(np.isin(np.unique(identity[sample.unlabeled]), distinct).mean())
    if recurring < POOL or common >= recurring:
        return sample
    chosen = disjoint_tuples(sample.tuples, identity)
    warn(
        f"the members of {len(sample.tuples)} tuples are {len(distinct)} different rows, and recur; as these are "
        f"no independent draws, the prior is judged by {chosen.sum()} tuples that share none"
    )
    return TupleData(sample.tuples[chosen], sample.unlabeled)


def identity_of(rows: Any) -> NDArray[np.int64]:
    """Return a number for each row (N,), equal for equal rows; sparse ones count as different."""
    if not isinstance(rows, np.ndarray):
        return np.arange(rows.shape[0])
    contents: dict[bytes, int] = {}
    return np.array([contents.setdefault(row.tobytes(), len(contents)) for row in np.ascontiguousarray(rows)])
