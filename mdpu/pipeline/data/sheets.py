"""Contact sheets: what the images of a side look like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from mdpu.pipeline.data.images import ImageSet, read_images
from mdpu.pipeline.data.labels import Labels, read_labels
from mdpu.pipeline.files import atomic

ROWS, COLUMNS, GAP = 4, 12, 1


def contact_sheet(image_set: ImageSet, labels: Labels, sign: int) -> Image.Image:
    """Return a sheet of training images of one side (+1 or -1), its classes in turn, the first images of each.

    Images whose number of channels is neither 1 nor 3 are shown as the channels' mean, on a white ground.
    """
    side_indices = np.flatnonzero(labels["train"] == sign)
    chosen = _spread(image_set.train_labels[side_indices], ROWS * COLUMNS)
    pixels = image_set.train_images[side_indices[chosen]]
    if pixels.ndim == 4 and pixels.shape[-1] != 3:
        pixels = pixels.mean(axis=-1).astype(np.uint8)
    count, height, width = pixels.shape[:3]
    columns = min(COLUMNS, count)
    size = (-(-count // columns) * (height + GAP) - GAP, columns * (width + GAP) - GAP)
    sheet = np.full((*size, *pixels.shape[3:]), 255, dtype=np.uint8)
    for index, image in enumerate(pixels):
        top, left = (index // columns) * (height + GAP), (index % columns) * (width + GAP)
        sheet[top : top + height, left : left + width] = image
    return Image.fromarray(sheet)


def _spread(class_ids: np.ndarray, count: int) -> np.ndarray:
    """Return positions of up to `count` images, shared equally among the classes and ordered by class."""
    order = np.argsort(class_ids, kind="stable")
    first = np.searchsorted(class_ids[order], class_ids[order])  # where each class begins
    turn = np.arange(order.size) - first  # 0 for the first image of its class, 1 for the second, ...
    taken = np.sort(np.argsort(turn, kind="stable")[:count])
    return order[taken]


def write_sheets(images: Path, labels: Path, positive: Path, negative: Path) -> None:
    """Draw a contact sheet of each side of a dataset, as PNG; raise `UserError` if an input is missing or broken."""
    image_set, sides = read_images(images), read_labels(labels)
    for sign, path in ((1, positive), (-1, negative)):
        with atomic(path) as temporary:
            contact_sheet(image_set, sides, sign).save(temporary, format="PNG")
