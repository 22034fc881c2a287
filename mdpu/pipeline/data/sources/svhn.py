"""SVHN: digits of house numbers in street photographs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mdpu.pipeline.data.download import Archive, Source
from mdpu.pipeline.data.images import ImageSet

# The cropped digits; the extra training images are not used.
ADDRESS = "http://ufldl.stanford.edu/housenumbers"
TRAIN = Archive(
    "train_32x32.mat",
    "e26dedcc434d2e4c54c9b2d4a06d8373",
    (f"{ADDRESS}/train_32x32.mat",),
    182_040_794,
)
TEST = Archive(
    "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", (f"{ADDRESS}/test_32x32.mat",), 64_275_384
)


def read(files: Sequence[Path]) -> ImageSet:
    """Return 73,257 training and 26,032 test images of 32x32x3. The digit 0, class 10 in the files,
    is class 0.
    """
    from scipy.io import loadmat

    arrays = {}
    for part, content in zip(("train", "test"), map(loadmat, files), strict=True):
        arrays[f"{part}_images"] = np.ascontiguousarray(content["X"].transpose(3, 0, 1, 2))
        arrays[f"{part}_labels"] = content["y"].astype(np.int64).ravel() % 10
    origin = "SVHN, cropped digits (Netzer, Wang, Coates, Bissacco, Wu and Ng)"
    return ImageSet(
        **arrays, classes=list("0123456789"), origin=origin, licence="non-commercial use"
    )


SOURCES = {"svhn": Source(read, f"SVHN {TRAIN.md5} {TEST.md5}", [TRAIN, TEST])}
