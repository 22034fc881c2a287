"""Sources: where images come from. Each function returns an image set in the contract's form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mdpu.data.images import ImageSet
from mdpu.errors import UserError


def digits(_data_dir: Path) -> ImageSet:
    """Handwritten digits bundled with scikit-learn: 1,797 images of 8x8, every fourth for testing.

    The images have 17 grey levels, 0..16, which are stretched to 0..255.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    labels = bunch.target.astype(np.int64)
    test = np.arange(len(labels)) % 4 == 3
    return ImageSet(
        train_images=images[~test],
        train_labels=labels[~test],
        test_images=images[test],
        test_labels=labels[test],
        classes=[str(digit) for digit in range(10)],
        origin="UCI ML hand-written digits, as bundled with scikit-learn (test part of the original)",
        licence="CC BY 4.0",
    )


def mnist(data_dir: Path) -> ImageSet:
    """MNIST through torchvision's own download code, which verifies the files' MD5 checksums."""
    from torchvision.datasets import MNIST

    parts = {}
    for part, train in (("train", True), ("test", False)):
        try:
            parts[part] = MNIST(str(data_dir), train=train, download=True)
        except Exception as error:
            folder = data_dir / "MNIST" / "raw"
            raise UserError(
                f"MNIST could not be downloaded ({error}); connect to a network, or put the four *-ubyte.gz "
                f"files of MNIST into {folder} and run again"
            ) from None
    return ImageSet(
        train_images=parts["train"].data.numpy(),
        train_labels=parts["train"].targets.numpy(),
        test_images=parts["test"].data.numpy(),
        test_labels=parts["test"].targets.numpy(),
        classes=[str(digit) for digit in range(10)],
        origin="MNIST (LeCun, Cortes and Burges), via torchvision",
        licence="CC BY-SA 3.0",
    )


SOURCES: dict[str, Callable[[Path], ImageSet]] = {"digits": digits, "mnist": mnist}
