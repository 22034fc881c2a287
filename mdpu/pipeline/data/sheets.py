"""Contact sheets: what the images of a side look like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from mdpu.files import atomic
from mdpu.pipeline.data.images import ImageSet, read_images
from mdpu.pipeline.data.labels import Labels
from mdpu.pipeline.files import load_npz

ROWS = 4
COLUMNS = 12
GAP = 1


def write_sheets(images: Path, labels: Path, positive: Path, negative: Path) -> None:
    """Draw a contact sheet of each side of a dataset, as PNG; raise `UserError` if an input is
    missing or damaged.
    """
    image_set = read_images(images)
    sides = load_npz(labels, "train")
    for sign, path in ((1, positive), (-1, negative)):
        with atomic(path) as temporary:
            contact_sheet(image_set, sides, sign).save(temporary, format="PNG")


def contact_sheet(image_set: ImageSet, labels: Labels, sign: int) -> Image.Image:
    """Return a sheet of training images of one side (+1 or -1), its classes in turn, the first
    images of each.

    Images whose number of channels is neither 1 nor 3 are shown as the channels' mean. The ground
    is white.
    """
    side = np.flatnonzero(labels["train"] == sign)
    chosen = side[_spread(image_set.train_labels[side], ROWS * COLUMNS)]
    pixels = image_set.train_images[chosen]
    if pixels.ndim == 4 and pixels.shape[-1] != 3:
        pixels = pixels.mean(axis=-1).astype(np.uint8)

    count, height, width, *channels = pixels.shape
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    height += GAP
    width += GAP
    places_left = (0, rows * columns - count)
    white = [places_left, (0, GAP), (0, GAP)] + [(0, 0)] * len(channels)
    tiles = np.pad(pixels, white, constant_values=255)
    tiles = tiles.reshape(rows, columns, height, width, *channels)
    sheet = tiles.swapaxes(1, 2).reshape(rows * height, columns * width, *channels)
    return Image.fromarray(sheet[:-GAP, :-GAP])


def _spread(class_ids: np.ndarray, count: int) -> np.ndarray:
    """Return positions of up to `count` images, shared equally among the classes and ordered by
    class.
    """
    order = np.argsort(class_ids, kind="stable")
    # 0 for the first of its class
    turn = np.arange(order.size) - np.searchsorted(class_ids[order], class_ids[order])
    return order[np.sort(np.argsort(turn, kind="stable")[:count])]
