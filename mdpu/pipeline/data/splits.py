"""The file of a split: tuples and unlabeled images of one trial, as `mdpu.data.draw_split` draws them."""

from __future__ import annotations

from pathlib import Path

from mdpu.data import TupleData
from mdpu.pipeline.files import load_npz, save_npz


def write_split(split: TupleData, path: Path) -> None:
    """Write a split as npz with arrays ``tuples`` and ``unlabeled``."""
    save_npz(path, tuples=split.tuples, unlabeled=split.unlabeled)


def read_split(path: Path) -> TupleData:
    """Read a split; raise `UserError` if the file is missing or broken."""
    return TupleData(**load_npz(path, "tuples", "unlabeled"))
