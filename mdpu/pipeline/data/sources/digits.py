"""Handwritten digits bundled with scikit-learn, for the quick run: nothing to download."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mdpu.pipeline.data.download import Source
from mdpu.pipeline.data.images import ImageSet


def read(_files: Sequence[Path]) -> ImageSet:
    """Return 1,797 images of 8x8, every fourth for testing.

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


SOURCES = {"digits": Source(archives=list, read=read)}
