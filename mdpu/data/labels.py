"""From class ids to the two sides: +1, -1, or 0 for what is left out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mdpu.data.images import ImageSet
from mdpu.errors import UserError
from mdpu.files import load_npz, save_npz

Labels = dict[str, NDArray[np.int8]]


def binarize(
    image_set: ImageSet,
    positive: Iterable[str],
    negative: Iterable[str],
    dropped: Iterable[str] = (),
    where: str = "dataset",
) -> Labels:
    """Return ``train`` and ``test`` labels, int8 in {+1, -1, 0}, one per image.

    Parameters
    ----------
    image_set : ImageSet
        Images with named classes.
    positive, negative, dropped : iterable of str
        Class names; every class of the source stands in exactly one of the three.
    where : str
        Where the sides were read, for error messages.

    Raises
    ------
    UserError
        If a class is unknown, listed twice, on no side, or a side has no image.
    """
    sides = {"positive": 1, "negative": -1, "dropped": 0}
    value: dict[str, int] = {}
    for side, names in zip(sides, (positive, negative, dropped), strict=True):
        for name in map(str, names):
            if name not in image_set.classes:
                raise UserError(
                    f"{where}.{side}: the source has no class {name!r}; it has {', '.join(image_set.classes)}"
                )
            if name in value:
                raise UserError(f"{where}: class {name!r} is listed twice; give it one side")
            value[name] = sides[side]
    homeless = [name for name in image_set.classes if name not in value]
    if homeless:
        raise UserError(f"{where}: class {', '.join(homeless)} is on no side; list it as positive, negative or dropped")
    lookup = np.array([value[name] for name in image_set.classes], dtype=np.int8)
    labels = {"train": lookup[image_set.train_labels], "test": lookup[image_set.test_labels]}
    for part, found in labels.items():
        for side in ("positive", "negative"):
            if not (found == sides[side]).any():
                raise UserError(f"{where}: the {part} images hold no {side} one; both sides are needed")
    return labels


def write_labels(labels: Labels, path: Path) -> None:
    """Write labels as npz with arrays ``train`` and ``test``."""
    save_npz(path, **labels)


def read_labels(path: Path) -> Labels:
    """Read labels; raise `UserError` if the file is missing or broken."""
    return load_npz(path, "train", "test")
