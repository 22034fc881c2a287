"""From class ids to the two sides: +1 and -1, or 0 for classes that are left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mdpu.errors import UserError
from mdpu.pipeline.data.images import ImageSet, read_images
from mdpu.pipeline.files import save_npz, write_json

Labels = dict[str, NDArray[np.int8]]  # of the parts ``train`` and ``test``

SIDES = {"positive": 1, "negative": -1, "dropped": 0}


def binarize(
    images: ImageSet, sides: Mapping[str, Collection[object]], where: str = "dataset"
) -> Labels:
    """Return ``train`` and ``test`` labels, int8 in {+1, -1, 0}, one per image.

    `sides` gives the names of the classes on each of `SIDES`; ``dropped`` may be left out. `where`
    is the key that they are at. Raises `UserError` if a class is not on exactly one side, or if a
    side of a part has no image.
    """
    signs: dict[str, int] = {}
    for side, sign in SIDES.items():
        for name in map(str, sides.get(side) or ()):
            if name not in images.classes:
                raise UserError(
                    f"{where}.{side}: the source has no class {name!r}; it has "
                    f"{', '.join(images.classes)}"
                )
            if name in signs:
                raise UserError(f"{where}.{side}: class {name!r} is listed twice; give it one side")
            signs[name] = sign
    if homeless := [name for name in images.classes if name not in signs]:
        raise UserError(
            f"{where}: class {', '.join(homeless)} is on no side; list it as positive, negative or "
            "dropped"
        )
    sign_of_class = np.array([signs[name] for name in images.classes], dtype=np.int8)
    labels = {
        "train": sign_of_class[images.train_labels],
        "test": sign_of_class[images.test_labels],
    }
    for part, counts in count_sides(labels).items():
        for side in ("positive", "negative"):
            if not counts[side]:
                raise UserError(
                    f"{where}.{side}: the {part} images hold none of this side; both sides are "
                    "needed"
                )
    return labels


def count_sides(labels: Labels) -> dict[str, dict[str, int]]:
    """Return the numbers of ``positive``, ``negative`` and ``dropped`` images of each part."""
    return {
        part: {side: int((signs == sign).sum()) for side, sign in SIDES.items()}
        for part, signs in labels.items()
    }


def write_labels(
    images: Path,
    out: Path,
    sides: Mapping[str, Collection[object]],
    counts: Mapping[str, Mapping[str, int]],
) -> None:
    """Binarize the classes of an image set; write the labels, with their counts (.json) beside
    them.

    `sides` are those of `binarize`, `counts` the numbers of images by part and side that are known
    beforehand. `out` is named after the dataset. Raises `UserError` if the images cannot be read,
    or contradict the sides or the counts.
    """
    where = f"config key definitions.datasets.{out.stem}"
    labels = binarize(read_images(images), sides, where)
    sides_of = count_sides(labels)
    for part, known in counts.items():
        for side, count in known.items():
            if (actual := sides_of[part][side]) != count:
                raise UserError(
                    f"{where}.counts.{part}.{side} is {count}, but there are {actual} such images"
                )
    save_npz(out, **labels)
    write_json(out.with_suffix(".json"), {"counts": sides_of})
