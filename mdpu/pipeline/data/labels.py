"""From class ids to the two sides: +1 and -1, or 0 for classes that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpu.errors import UserError
from mdpu.pipeline.data.images import ImageSet, read_images
from mdpu.pipeline.files import load_npz, save_npz, write_json

Labels = dict[str, NDArray[np.int8]]  # of the parts ``train`` and ``test``


def binarize(
    image_set: ImageSet,
    positive: Iterable[str],
    negative: Iterable[str],
    dropped: Iterable[str] = (),
    where: str = "dataset",
) -> Labels:
    """Return ``train`` and ``test`` labels, int8 in {+1, -1, 0}, one per image.

    Every class of the images has to be in exactly one of `positive`, `negative` and `dropped`, and both sides need an
    image. `where` says where the sides are configured, for error messages.
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
    for part, part_labels in labels.items():
        for side in ("positive", "negative"):
            if not (part_labels == sides[side]).any():
                raise UserError(f"{where}: the {part} images hold no {side} one; both sides are needed")
    return labels


def count_sides(labels: Labels) -> dict[str, dict[str, int]]:
    """Return the numbers of ``positive``, ``negative`` and ``dropped`` images of each part."""
    return {
        part: {"positive": int((y > 0).sum()), "negative": int((y < 0).sum()), "dropped": int((y == 0).sum())}
        for part, y in labels.items()
    }


def read_labels(path: Path) -> Labels:
    """Read labels; raise `UserError` if the file is missing or broken."""
    return load_npz(path, "train", "test")


def write_binarized(images: Path, dataset: str, definition: Mapping[str, Any], path: Path) -> None:
    """Binarize the class ids of an image set and write the labels, with their counts (.json) beside them.

    The sides are those of the dataset's `definition` in a configuration, which may know some of the counts.
    """
    where = f"config key definitions.datasets.{dataset}"
    sides = definition["positive"], definition["negative"], definition.get("dropped", ())
    labels = binarize(read_images(images), *sides, where)
    counts = count_sides(labels)
    for part, known in definition.get("counts", {}).items():
        for side, count in known.items():
            if counts[part][side] != count:
                raise UserError(
                    f"{where}.counts.{part}.{side}: {count} images are expected but the source has "
                    f"{counts[part][side]}; correct the sides or the count"
                )
    save_npz(path, **labels)
    write_json(path.with_suffix(".json"), {"counts": counts})
