"""The file of a cell's splits: for each seed, the tuples and unlabeled images of one trial."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mdpu.data import Indices, Signs, TupleData, draw_split
from mdpu.errors import UserError
from mdpu.law import Law, named_law
from mdpu.pipeline.files import load_npz, save_npz
from mdpu.randomness import Stream


def write_split(labels: Path, out: Path, spec: Mapping[str, Any]) -> None:
    """Draw the splits of a cell, one for each seed, and write them.

    Parameters
    ----------
    labels, out : Path
        Labels of the dataset, and the npz file to write: arrays ``tuples_1`` (n, M) and
        ``unlabeled_1`` (n_unlabeled,) of seed 1, and so on, which hold positions among the training
        images.
    spec : mapping
        ``tuple_size``, ``prior``, ``n``, ``n_unlabeled``, and ``trials``, which gives each seed the
        name that seeds its random numbers; and, if wanted, ``law``, a text of `mdpu.law.named_law`,
        ``broken``, the share of tuples that break it, and the options of `draw`. `UserError` if one
        is out of range, or there are too few images.
    """
    options = dict(spec)
    law = named_law(options.pop("law", None) or "dominant", options.pop("tuple_size"))
    law = law.broken(options.pop("broken", 0.0))
    prior = float(options.pop("prior"))
    trials = options.pop("trials")
    train = load_npz(labels, "train")["train"]
    arrays: dict[str, Indices] = {}
    for seed, trial in trials.items():
        sample = draw(train, law, prior, trial=trial, **options)
        arrays |= {f"tuples_{seed}": sample.tuples, f"unlabeled_{seed}": sample.unlabeled}
    save_npz(out, **arrays)


def describe_split(sample: TupleData, labels: Signs) -> dict[str, Any]:
    """Return shares of positives by the hidden labels (N,), and the numbers of tuples with 0, 1,
    ..., M of them.
    """
    positive = labels[sample.tuples] > 0  # (n, M)
    return {
        "members": float(positive.mean()),
        "unlabeled": float((labels[sample.unlabeled] > 0).mean()),
        "tuples": np.bincount(positive.sum(axis=1), minlength=positive.shape[1] + 1).tolist(),
    }


def draw(
    labels: Signs,
    law: Law,
    prior: float,
    n: int,
    n_unlabeled: int,
    trial: str,
    unlabeled: str = "pool",
    **options: Any,
) -> TupleData:
    """Draw a split; `options` are those of `draw_split`.

    The unlabeled images are new draws from the ``pool``; or its ``remainder``, when the same tuples
    have been taken out of n M + n_unlabeled images that were drawn at the prior; or that remainder
    with the members of the tuples ``put-back``.
    """
    split = draw_split(labels, law, prior, n, n_unlabeled, trial, **options)
    if unlabeled == "pool":
        return split
    rest = _remainder(labels, split, prior, trial, options.get("replacement", True))
    return TupleData(
        split.tuples, rest if unlabeled == "remainder" else np.append(rest, split.tuples)
    )


def _remainder(
    labels: Signs, split: TupleData, prior: float, trial: str, replacement: bool
) -> Indices:
    """Return the rest of a pool after the tuples of a split were taken out."""
    members = split.tuples.size
    n = split.unlabeled.size
    pool = int((Stream(trial, "labels of the pool").uniform(members + n) < prior).sum())
    left = pool - int((labels[split.tuples] > 0).sum())
    if not 0 <= left <= n:
        raise UserError(
            f"a pool of {members + n} images with {pool} positives does not hold these tuples; "
            "make n_unlabeled larger"
        )
    rest = []
    for side, sign, count in (("positive", 1, left), ("negative", -1, n - left)):
        others = np.setdiff1d(np.flatnonzero(labels == sign), split.tuples)
        stream = Stream(trial, f"{side} remainder")
        if others.size < (count if not replacement else min(count, 1)):
            raise UserError(
                f"{others.size} {side} training images are in no tuple, but the remainder needs "
                f"{count}"
            )
        rest.append(
            others[
                stream.integers(others.size, count)
                if replacement
                else stream.permutation(others.size)[:count]
            ]
        )
    return np.concatenate(rest)[Stream(trial, "order of the remainder").permutation(n)]
