"""EMNIST: handwritten digits and letters, several splits in one archive of 535 MB."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from mdpu.pipeline.data.download import Archive, Source, read_content, read_idx
from mdpu.pipeline.data.images import ImageSet

# SHA-256 of the files of Letters, which serve without the archive.
LETTERS = {
    "train-images-idx3": "7a786db773b2096a7b9a3f3275388a27711f4451548c3ca8be96f09ae94371ae",
    "train-labels-idx1": "e8e94c3f4353d5532fd9604b939cb4c76e7847945b9b0d9ff7884d881dead6bc",
    "test-images-idx3": "d5895e82d14765b22a84342337bc5c25f1affd61cc97d3821d4e65504bbf8dbc",
    "test-labels-idx1": "22dbcde0a929a7f166bdac863b9195b2994d840a1e082f8f6daaeac5606376a6",
}
ARCHIVE = Archive(
    "EMNIST/raw/gzip.zip",
    "58c8d27c78d21e728a6bc7b3cc06412e",
    ("https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",),
    561_753_746,
)
UNPACKED = tuple((f"EMNIST/raw/emnist-letters-{file}-ubyte", sha256) for file, sha256 in LETTERS.items())
CLASSES = {
    "digits": "0123456789",
    "letters": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",  # upper and lower case alike
    "balanced": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt",  # with lower case where it looks different
}


def read(files: Sequence[Path], split: str) -> ImageSet:
    """Return the images of one split.

    EMNIST stores its images transposed; they are returned upright, so that people can read them. It counts the classes
    of Letters from 1; here A is class 0.
    """
    if len(files) == 1:
        with zipfile.ZipFile(files[0]) as archive:
            members = [f"gzip/emnist-{split}-{file}-ubyte.gz" for file in LETTERS]
            contents = [gzip.decompress(archive.read(member)) for member in members]
    else:
        contents = [read_content(file) for file in files]
    first = 1 if split == "letters" else 0
    train_images, train_labels, test_images, test_labels = map(read_idx, contents)
    return ImageSet(
        train_images=np.ascontiguousarray(train_images.transpose(0, 2, 1)),
        train_labels=train_labels.astype(np.int64) - first,
        test_images=np.ascontiguousarray(test_images.transpose(0, 2, 1)),
        test_labels=test_labels.astype(np.int64) - first,
        classes=list(CLASSES[split]),
        origin=f"EMNIST {split} (Cohen, Afshar, Tapson and van Schaik; from NIST Special Database 19)",
        licence="none stated; derived from NIST Special Database 19",
    )


SOURCES = {
    f"emnist-{split}": Source(
        partial(read, split=split),
        f"EMNIST {split} {ARCHIVE.md5}",
        [replace(ARCHIVE, unpacked=UNPACKED if split == "letters" else ())],
    )
    for split in CLASSES
}
