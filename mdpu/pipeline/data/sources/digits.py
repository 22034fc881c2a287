"""Handwritten digits bundled with scikit-learn, for the quick run: nothing to download."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mdpu.errors import UserError
from mdpu.pipeline.data.download import Source
from mdpu.pipeline.data.images import ImageSet

CHECKSUM = "16d04ced2e5d1d3be214d879ea4358f2fc4c5ccb84693882b64f32888959de25"


def read(_files: Sequence[Path]) -> ImageSet:
    """Return 1,797 images of 8x8, every fourth for testing; their grey levels, 0..16, are stretched
    to 0..255.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    labels = bunch.target.astype(np.int64)
    test = np.arange(len(labels)) % 4 == 3
    origin = "UCI ML hand-written digits, as bundled with scikit-learn (test part of the original)"
    arrays = images[~test], labels[~test], images[test], labels[test]
    image_set = ImageSet(*arrays, list("0123456789"), origin, "CC BY 4.0")
    if image_set.checksum != CHECKSUM:
        raise UserError(
            "the digits of the installed scikit-learn differ from those of its version 1.9.1; "
            "install that"
        )
    return image_set


SOURCES = {"digits": Source(read, f"scikit-learn digits {CHECKSUM}")}
