"""MNIST, Fashion-MNIST and EMNIST, which are idx files: handwritten digits and letters, and
clothes.
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from mdpu.pipeline.data.download import Archive, Source, read_content
from mdpu.pipeline.data.images import ImageSet
from mdpu.pipeline.files import digest

MNIST = {  # MD5 and bytes of each file
    "train-images-idx3-ubyte.gz": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
    "train-labels-idx1-ubyte.gz": ("d53e105ee54ea40749a09fcbcd1e9432", 28_881),
    "t10k-images-idx3-ubyte.gz": ("9fb629c4189551a2d022fa330f9573f3", 1_648_877),
    "t10k-labels-idx1-ubyte.gz": ("ec29112dd5afa0611ce80d1b7f02629c", 4_542),
}
FASHION = {
    "train-images-idx3-ubyte.gz": ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
    "train-labels-idx1-ubyte.gz": ("25c81989df183df01b3e8a0aad5dffbe", 29_515),
    "t10k-images-idx3-ubyte.gz": ("bef4ecab320f06d8554ea6380940ec79", 4_422_102),
    "t10k-labels-idx1-ubyte.gz": ("bb300cfdad3c16e7a12a480ee83cd310", 5_148),
}
MNIST_UNPACKED = {  # SHA-256 of the unpacked files, which serve as well
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
FASHION_UNPACKED = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
CLOTHES = [
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
]

EMNIST_URL = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"  # of all its splits
EMNIST = Archive(
    "EMNIST/raw/gzip.zip", "58c8d27c78d21e728a6bc7b3cc06412e", (EMNIST_URL,), 561_753_746
)
LETTERS = {  # SHA-256 of the unpacked files of this split, which serve without the archive
    "train-images-idx3": "7a786db773b2096a7b9a3f3275388a27711f4451548c3ca8be96f09ae94371ae",
    "train-labels-idx1": "e8e94c3f4353d5532fd9604b939cb4c76e7847945b9b0d9ff7884d881dead6bc",
    "test-images-idx3": "d5895e82d14765b22a84342337bc5c25f1affd61cc97d3821d4e65504bbf8dbc",
    "test-labels-idx1": "22dbcde0a929a7f166bdac863b9195b2994d840a1e082f8f6daaeac5606376a6",
}
UNPACKED = tuple(
    (f"EMNIST/raw/emnist-letters-{file}-ubyte", sha256) for file, sha256 in LETTERS.items()
)
CLASSES = {
    "digits": "0123456789",
    "letters": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",  # upper and lower case alike
    # with lower case where it looks different
    "balanced": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt",
}


def parse_idx(content: bytes) -> np.ndarray:
    """Return the bytes of an idx file in the shape that its header gives."""
    dimensions = content[3]
    shape = np.frombuffer(content, ">i4", dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def read_mnist(
    files: Sequence[Path], classes: Sequence[str], origin: str, licence: str
) -> ImageSet:
    """Return 60,000 training and 10,000 test images of 28x28."""
    train_images, train_labels, test_images, test_labels = (
        parse_idx(read_content(file)) for file in files
    )
    labels = train_labels.astype(np.int64), test_labels.astype(np.int64)
    return ImageSet(train_images, labels[0], test_images, labels[1], classes, origin, licence)


def read_emnist(files: Sequence[Path], split: str) -> ImageSet:
    """Return the images of one split.

    EMNIST stores its images transposed; they are returned upright, so that people can read them. It
    counts the classes of Letters from 1; here A is class 0.
    """
    if len(files) == 1:
        with zipfile.ZipFile(files[0]) as archive:
            contents = [
                gzip.decompress(archive.read(f"gzip/emnist-{split}-{file}-ubyte.gz"))
                for file in LETTERS
            ]
    else:
        contents = [read_content(file) for file in files]
    train_images, train_labels, test_images, test_labels = map(parse_idx, contents)
    upright = [
        np.ascontiguousarray(images.transpose(0, 2, 1)) for images in (train_images, test_images)
    ]
    labels = [
        labels.astype(np.int64) - (split == "letters") for labels in (train_labels, test_labels)
    ]
    origin = f"EMNIST {split} (Cohen, Afshar, Tapson and van Schaik; from NIST Special Database 19)"
    licence = "none stated; derived from NIST Special Database 19"
    return ImageSet(
        upright[0], labels[0], upright[1], labels[1], list(CLASSES[split]), origin, licence
    )


def archives(
    folder: str, files: dict[str, tuple[str, int]], unpacked: dict[str, str], *addresses: str
) -> list[Archive]:
    """Return files of MNIST's layout that lie at some addresses."""
    archives = []
    for file, (md5, size) in files.items():
        path = f"{folder}/raw/{file}"
        plain = file.removesuffix(".gz")
        urls = tuple(f"{address}/{file}" for address in addresses)
        archives.append(
            Archive(path, md5, urls, size, ((path.removesuffix(".gz"), unpacked[plain]),))
        )
    return archives


def emnist(split: str, archive: Archive = EMNIST) -> Source:
    """Return the source of a split of EMNIST."""
    return Source(partial(read_emnist, split=split), f"EMNIST {split} {archive.md5}", [archive])


SOURCES = {
    "mnist": Source(
        partial(
            read_mnist,
            classes=list("0123456789"),
            origin="MNIST (LeCun, Cortes, Burges)",
            licence="CC BY-SA 3.0",
        ),
        f"MNIST {digest(MNIST)}",
        archives(
            "MNIST",
            MNIST,
            MNIST_UNPACKED,
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "http://yann.lecun.com/exdb/mnist",
        ),
    ),
    "fashion-mnist": Source(
        partial(
            read_mnist,
            classes=CLOTHES,
            origin="Fashion-MNIST (Xiao, Rasul and Vollgraf; Zalando)",
            licence="MIT",
        ),
        f"Fashion-MNIST {digest(FASHION)}",
        archives(
            "FashionMNIST",
            FASHION,
            FASHION_UNPACKED,
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        ),
    ),
    "emnist-digits": emnist("digits"),
    "emnist-letters": emnist("letters", replace(EMNIST, unpacked=UNPACKED)),
    "emnist-balanced": emnist("balanced"),
}
