"""SVHN: digits of house numbers in street photographs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mdpu.pipeline.data.download import Archive, Source
from mdpu.pipeline.data.images import ImageSet

SIZES = {"train": 182_040_794, "test": 64_275_384}  # bytes of each part's file


def archives() -> list[Archive]:
    """Return the cropped training and test digits; the extra training images are not used."""
    from torchvision.datasets import SVHN as dataset

    files = {part: dataset.split_list[part] for part in SIZES}
    return [Archive(file, md5, (url,), SIZES[part]) for part, (url, file, md5) in files.items()]


def read(files: Sequence[Path]) -> ImageSet:
    """Return 73,257 training and 26,032 test images of 32x32x3, read by torchvision.

    The files call the digit 0 class 10; torchvision calls it class 0, and so does this function.
    """
    from torchvision.datasets import SVHN as dataset

    arrays = {}
    for part, file in zip(SIZES, files, strict=True):
        loaded = dataset(str(file.parent), split=part)
        arrays[f"{part}_images"] = np.ascontiguousarray(loaded.data.transpose(0, 2, 3, 1))
        arrays[f"{part}_labels"] = loaded.labels
    return ImageSet(
        **arrays,
        classes=[str(digit) for digit in range(10)],
        origin="SVHN, cropped digits (Netzer, Wang, Coates, Bissacco, Wu and Ng), via torchvision",
        licence="non-commercial use",
    )


SOURCES = {"svhn": Source(archives, read)}
