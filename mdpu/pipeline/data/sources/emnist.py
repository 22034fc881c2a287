"""EMNIST: handwritten digits and letters, several splits in one archive of 535 MB."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from mdpu.pipeline.data.download import Archive, Source, read_content, read_idx
from mdpu.pipeline.data.images import ImageSet

FILES = ("train-images-idx3", "train-labels-idx1", "test-images-idx3", "test-labels-idx1")  # of a split
# SHA-256 of these files of Letters, which serve without the archive.
LETTERS = (
    "7a786db773b2096a7b9a3f3275388a27711f4451548c3ca8be96f09ae94371ae",
    "e8e94c3f4353d5532fd9604b939cb4c76e7847945b9b0d9ff7884d881dead6bc",
    "d5895e82d14765b22a84342337bc5c25f1affd61cc97d3821d4e65504bbf8dbc",
    "22dbcde0a929a7f166bdac863b9195b2994d840a1e082f8f6daaeac5606376a6",
)


def archives(split: str) -> list[Archive]:
    """Return the one file that holds every split; the unpacked files of Letters serve as well."""
    from torchvision.datasets import EMNIST

    names = [f"EMNIST/raw/emnist-letters-{file}-ubyte" for file in FILES] if split == "letters" else []
    unpacked = tuple(zip(names, LETTERS, strict=False))
    return [Archive("EMNIST/raw/gzip.zip", EMNIST.md5, (EMNIST.url,), 561_753_746, unpacked)]


def read(files: Sequence[Path], split: str) -> ImageSet:
    """Return the images of one split.

    EMNIST stores its images transposed; they are returned upright, so that people can read them. EMNIST counts Letters
    from 1 (torchvision calls class 0 ``N/A``); here A is class 0. Letters merges upper and lower case, and its classes
    are called by the capital. Balanced keeps 11 lower-case letters that look unlike their capitals, under their own
    names.
    """
    from torchvision.datasets import EMNIST

    if len(files) == 1:
        with zipfile.ZipFile(files[0]) as archive:
            members = [f"gzip/emnist-{split}-{file}-ubyte.gz" for file in FILES]
            contents = [gzip.decompress(archive.read(member)) for member in members]
    else:
        contents = [read_content(file) for file in files]
    first = 1 if split == "letters" else 0
    names = EMNIST.classes_split_dict[split][first:]
    train_images, train_labels, test_images, test_labels = map(read_idx, contents)
    own_files = ", from its own files instead of the archive" if len(files) > 1 else ""
    return ImageSet(
        train_images=np.ascontiguousarray(train_images.transpose(0, 2, 1)),
        train_labels=train_labels.astype(np.int64) - first,
        test_images=np.ascontiguousarray(test_images.transpose(0, 2, 1)),
        test_labels=test_labels.astype(np.int64) - first,
        classes=[name.upper() for name in names] if split == "letters" else names,
        origin=f"EMNIST {split} (Cohen, Afshar, Tapson and van Schaik; from NIST Special Database 19), via torchvision"
        + own_files,
        licence="none stated; derived from NIST Special Database 19",
    )


SOURCES = {
    f"emnist-{split}": Source(partial(archives, split), partial(read, split=split))
    for split in ("digits", "letters", "balanced")
}
