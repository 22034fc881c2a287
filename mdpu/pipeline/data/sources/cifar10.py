"""CIFAR-10: colour images of animals and vehicles."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mdpu.pipeline.data.download import Archive, Source
from mdpu.pipeline.data.images import ImageSet

ARCHIVE = Archive(
    "cifar-10-python.tar.gz",
    "c58f30108f718f92721af3b95e74349a",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
    170_498_071,
)


def read(files: Sequence[Path]) -> ImageSet:
    """Return 50,000 training and 10,000 test images of 32x32x3, unpacked and read by torchvision.

    The batches are pickles; torchvision opens them only after their own MD5s have been verified.
    """
    from torchvision.datasets import CIFAR10

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, ARCHIVE.path).symlink_to(files[0].resolve())
        train, test = (CIFAR10(folder, train=train, download=True) for train in (True, False))
    return ImageSet(
        train_images=np.ascontiguousarray(train.data),
        train_labels=np.array(train.targets, dtype=np.int64),
        test_images=np.ascontiguousarray(test.data),
        test_labels=np.array(test.targets, dtype=np.int64),
        classes=train.classes,
        origin="CIFAR-10 (Krizhevsky), read by torchvision",
        licence="none stated; for research, with citation",
    )


SOURCES = {"cifar-10": Source(read, f"CIFAR-10 {ARCHIVE.md5}", [ARCHIVE])}
