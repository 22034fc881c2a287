"""The file of a cell's splits: for each seed, the tuples and unlabeled images of one trial."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mdpu.data import Indices, Signs, TupleData, draw_split
from mdpu.law import named_law
from mdpu.pipeline.files import load_npz, save_npz


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
        ``broken``, the share of tuples that break it, and the options of `draw_split`. `UserError`
        if one is out of range, or there are too few images.
    """
    options = dict(spec)
    law = named_law(options.pop("law", "dominant"), options.pop("tuple_size"))
    law = law.broken(options.pop("broken", 0.0))
    prior = float(options.pop("prior"))
    trials = options.pop("trials")
    train = load_npz(labels, "train")["train"]
    arrays: dict[str, Indices] = {}
    for seed, trial in trials.items():
        sample = draw_split(train, law, prior, trial=trial, **options)
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
