"""CIFAR-10: colour images of animals and vehicles."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mdpu.pipeline.data.download import Archive, Source
from mdpu.pipeline.data.images import ImageSet

FILE = "cifar-10-python.tar.gz"
URL = f"https://www.cs.toronto.edu/~kriz/{FILE}"
ARCHIVE = Archive(FILE, "c58f30108f718f92721af3b95e74349a", (URL,), 170_498_071)


def read(files: Sequence[Path]) -> ImageSet:
    """Return 50,000 training and 10,000 test images of 32x32x3, unpacked and read by torchvision.

    The batches are pickles; torchvision opens them only after their own MD5s have been verified.
    """
    from torchvision.datasets import CIFAR10

    arrays = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, FILE).symlink_to(files[0].resolve())
        for part in ("train", "test"):
            dataset = CIFAR10(folder, train=part == "train", download=True)
            arrays[f"{part}_images"] = np.ascontiguousarray(dataset.data)
            arrays[f"{part}_labels"] = np.array(dataset.targets, dtype=np.int64)
    licence = "none stated; for research, with citation"
    return ImageSet(
        **arrays, classes=dataset.classes, origin="CIFAR-10 (Krizhevsky)", licence=licence
    )


SOURCES = {"cifar-10": Source(read, f"CIFAR-10 {ARCHIVE.md5}", [ARCHIVE])}
