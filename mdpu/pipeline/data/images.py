"""The contract of images: what every dataset rule writes and every later stage reads.

``<source>.npz`` holds `train_images` and `test_images`, uint8 of shape [N, H, W] or [N, H, W, C], and
`train_labels` and `test_labels`, int64 class ids. ``<source>.json`` beside it names the classes (the id
is the position), the origin and the licence. The rows of a table stand for images too: float32 of shape
[N, d], each column standardised on the training part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mdpu.errors import CONTROL, UserError
from mdpu.pipeline.files import load_npz, read_json, save_npz, write_json

TABLES = (".csv", ".csv.gz", ".parquet")  # what tables are read from
ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


@dataclass(frozen=True)
class ImageSet:
    """Images and classes of one source, where they come from, and their terms of use."""

    train_images: np.ndarray  # uint8, (N, H, W) or (N, H, W, C); of a table float32, (N, d)
    train_labels: np.ndarray  # int64, (N,): positions in `classes`
    test_images: np.ndarray
    test_labels: np.ndarray
    classes: Sequence[str]
    origin: str
    licence: str

    def __post_init__(self) -> None:
        for text in (*self.classes, self.origin, self.licence):
            if CONTROL.search(text):
                raise UserError(f"{text!r} holds control characters; give every class, origin and licence plain text")
        if len(set(self.classes)) < len(self.classes):
            raise UserError(f"two classes share a name among {', '.join(self.classes)}; give each its own")
        for part in ("train", "test"):
            images, labels = getattr(self, f"{part}_images"), getattr(self, f"{part}_labels")
            if (images.dtype, images.ndim) not in ((np.uint8, 3), (np.uint8, 4), (np.float32, 2)):
                raise UserError(
                    f"{part}_images is {images.dtype} of shape {images.shape}, not uint8 [N, H, W(, C)] or a table of "
                    "floats [N, d]"
                )
            if 0 in images.shape[1:]:
                raise UserError(f"{part}_images has shape {images.shape}: an image needs a pixel and a channel")
            if len(images) == 0 or labels.shape != (len(images),):
                raise UserError(f"{part} has {len(images)} images but labels of shape {labels.shape}")
            if labels.min() < 0 or labels.max() >= len(self.classes):
                raise UserError(
                    f"{part}_labels run from {labels.min()} to {labels.max()}, "
                    f"outside the {len(self.classes)} named classes"
                )
        if self.train_images.shape[1:] != self.test_images.shape[1:]:
            raise UserError(
                f"training images are {self.train_images.shape[1:]} but test images {self.test_images.shape[1:]}"
            )


def write_images(image_set: ImageSet, path: Path, checksums: Mapping[str, str] | None = None) -> None:
    """Write an image set as ``path`` (npz) and its description beside it (json).

    `checksums` are those of the files that the images were read from, e.g. ``md5:...``.
    """
    save_npz(path, **{name: getattr(image_set, name) for name in ARRAYS})
    description = {
        "classes": list(image_set.classes),
        "origin": image_set.origin,
        "licence": image_set.licence,
        "checksums": dict(checksums or {}),
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
        raise UserError(f"{path.with_suffix('.json')} does not describe images; delete it and run again") from None
    return ImageSet(**facts | load_npz(path, *ARRAYS))


def standardised(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both parts of a table (N, d) as float32, each column centred and scaled as the training part says.

    Outliers are pulled in, and missing values become the centre (`mdpu.learners.features.Standardisation`).
    """
    from mdpu.learners.features import Standardisation  # takes scikit-learn, which plans do without

    learned = Standardisation.learn(train, components=None)
    return learned(train).astype(np.float32), learned(test).astype(np.float32)


def as_pictures(images: np.ndarray) -> np.ndarray:
    """Return images as they are, and rows of a table (N, d) as grey squares with a cell for each column."""
    if images.ndim > 2:
        return images
    side = int(np.ceil(np.sqrt(images.shape[1])))
    grey = np.clip(128 + 42 * images, 0, 255)  # three standard deviations to either side
    padded = np.pad(grey, ((0, 0), (0, side**2 - images.shape[1])), constant_values=255)
    return padded.astype(np.uint8).reshape(-1, side, side)


def is_path(source: str) -> bool:
    """Return whether a source is the path of a user's own images instead of a name."""
    return "/" in source or source.endswith((".npz", *TABLES))
