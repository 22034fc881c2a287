"""The contract of images: what every dataset rule writes and every later stage reads.

``<source>.npz`` holds `train_images` and `test_images`, uint8 of shape [N, H, W] or [N, H, W, C],
and `train_labels` and `test_labels`, int64 class ids. ``<source>.json`` beside it names the classes
(the id is the position), the origin, the licence and the checksum of these arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mdpu.errors import CONTROL, UserError
from mdpu.pipeline.files import load_npz, read_json, save_npz, write_json

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


@dataclass(frozen=True)
class ImageSet:
    """Images and classes of one source, where they come from, and their terms of use."""

    train_images: np.ndarray  # uint8, (N, H, W) or (N, H, W, C)
    train_labels: np.ndarray  # int64, (N,): positions in `classes`
    test_images: np.ndarray
    test_labels: np.ndarray
    classes: Sequence[str]
    origin: str
    licence: str

    def __post_init__(self) -> None:
        for text in (*self.classes, self.origin, self.licence):
            if CONTROL.search(text):
                raise UserError(
                    f"{text!r} holds control characters; give every class, origin and licence "
                    "plain text"
                )
        if len(set(self.classes)) < len(self.classes):
            raise UserError(
                f"two classes share a name among {', '.join(self.classes)}; give each its own"
            )
        for part in ("train", "test"):
            images = getattr(self, f"{part}_images")
            labels = getattr(self, f"{part}_labels")
            if images.dtype != np.uint8 or images.ndim not in (3, 4) or 0 in images.shape:
                raise UserError(
                    f"{part}_images is {images.dtype} of shape {images.shape}, not uint8 [N, H, "
                    "W(, C)]"
                )
            if labels.shape != (len(images),):
                raise UserError(
                    f"{part}_labels has shape {labels.shape}, but there are {len(images)} "
                    f"{part}_images"
                )
            if labels.min() < 0 or labels.max() >= len(self.classes):
                raise UserError(
                    f"{part}_labels hold ids outside of 0 to {len(self.classes) - 1}, the named "
                    "classes"
                )
        if (train := self.train_images.shape[1:]) != (test := self.test_images.shape[1:]):
            raise UserError(f"train_images are of shape {train} but test_images of shape {test}")

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the type, shape and values of the four arrays, in the order of `ARRAYS`."""
        sha256 = hashlib.sha256()
        for name in ARRAYS:
            array = np.ascontiguousarray(getattr(self, name))
            sha256.update(f"{array.dtype} {array.shape}".encode())
            sha256.update(array.data)
        return sha256.hexdigest()


def write_images(image_set: ImageSet, path: Path) -> None:
    """Write an image set as ``path`` (npz) and its description beside it (json)."""
    save_npz(path, **{name: getattr(image_set, name) for name in ARRAYS})
    description = {
        "classes": list(image_set.classes),
        "origin": image_set.origin,
        "licence": image_set.licence,
        "checksum": image_set.checksum,
        "train": len(image_set.train_labels),
        "test": len(image_set.test_labels),
        "shape": list(image_set.train_images.shape[1:]),
    }
    write_json(path.with_suffix(".json"), description)


def read_images(path: Path) -> ImageSet:
    """Read an image set; raise `UserError` if a file is missing, broken or against the contract."""
    description = read_json(path.with_suffix(".json"))
    try:
        facts: dict[str, Any] = {key: description[key] for key in ("classes", "origin", "licence")}
    except (KeyError, TypeError):
        raise UserError(
            f"{path.with_suffix('.json')} does not describe images; delete it and run again"
        ) from None
    images = ImageSet(**facts | load_npz(path, *ARRAYS))
    if images.checksum != description.get("checksum"):
        raise UserError(
            f"{path} holds other images than the .json beside it describes; delete both and run "
            "again"
        )
    return images


def is_path(source: str) -> bool:
    """Return whether a source is the path of a user's own images instead of a name."""
    return "/" in source or source.endswith(".npz")
