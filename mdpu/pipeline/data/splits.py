"""The file of a split: tuples and unlabeled images of one trial, as `mdpu.data.draw_split` draws them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mdpu.data import Indices, Signs, TupleData, draw_split
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.pipeline.files import load_npz, save_npz
from mdpu.randomness import Stream


def draw(
    labels: Signs, law: Law, prior: float, n: int, n_unlabeled: int, trial: str, unlabeled: str = "pool", **options: Any
) -> TupleData:
    """Draw a split; `options` are those of `draw_split`.

    The unlabeled images are new draws from the ``pool``; or its ``remainder``, when the same tuples have been taken out
    of n M + n_unlabeled images that were drawn at the prior; or that remainder with the members of the tuples
    ``put-back``.
    """
    split = draw_split(labels, law, prior, n, n_unlabeled, trial, **options)
    if unlabeled == "pool":
        return split
    rest = _remainder(labels, split, prior, trial, options.get("replacement", True))
    return TupleData(split.tuples, rest if unlabeled == "remainder" else np.append(rest, split.tuples))


def _remainder(labels: Signs, split: TupleData, prior: float, trial: str, replacement: bool) -> Indices:
    """Return what the tuples of a split left of a pool, none of which is a member."""
    members, n = split.tuples.size, split.unlabeled.size
    pool = int((Stream(trial, "labels of the pool").uniform(members + n) < prior).sum())
    left = pool - int((labels[split.tuples] > 0).sum())
    if not 0 <= left <= n:
        raise UserError(
            f"a pool of {members + n} images with {pool} positives does not hold these tuples; make n_unlabeled larger"
        )
    rest = []
    for side, sign, count in (("positive", 1, left), ("negative", -1, n - left)):
        others, stream = np.setdiff1d(np.flatnonzero(labels == sign), split.tuples), Stream(trial, f"{side} remainder")
        if others.size < (count if not replacement else min(count, 1)):
            raise UserError(f"{others.size} {side} training images are no members, but the remainder needs {count}")
        rest.append(
            others[stream.integers(others.size, count) if replacement else stream.permutation(others.size)[:count]]
        )
    return np.concatenate(rest)[Stream(trial, "order of the remainder").permutation(n)]


def write_split(split: TupleData, path: Path) -> None:
    """Write a split as npz with arrays ``tuples`` and ``unlabeled``."""
    save_npz(path, tuples=split.tuples, unlabeled=split.unlabeled)


def read_split(path: Path) -> TupleData:
    """Read a split; raise `UserError` if the file is missing or broken."""
    return TupleData(**load_npz(path, "tuples", "unlabeled"))
