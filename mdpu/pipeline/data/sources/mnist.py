"""MNIST and Fashion-MNIST: the same four idx files, of handwritten digits and of clothes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mdpu.pipeline.data.download import Archive, Source, read_content, read_idx
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
CLOTHES = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"


def read(files: Sequence[Path], **facts: Any) -> ImageSet:
    """Return 60,000 training and 10,000 test images of 28x28."""
    train_images, train_labels, test_images, test_labels = (read_idx(read_content(file)) for file in files)
    return ImageSet(train_images, train_labels.astype(np.int64), test_images, test_labels.astype(np.int64), **facts)


def source(folder: str, files: dict[str, tuple[str, int]], addresses: Sequence[str], **facts: Any) -> Source:
    """Return a source of four files that lie at some addresses."""
    archives = [
        Archive(f"{folder}/raw/{file}", md5, tuple(address + file for address in addresses), size)
        for file, (md5, size) in files.items()
    ]
    return Source(partial(read, **facts), f"{folder} {digest([archive.md5 for archive in archives])}", archives)


SOURCES = {
    "mnist": source(
        "MNIST",
        MNIST,
        ["https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/"],
        classes=list("0123456789"),
        origin="MNIST (LeCun, Cortes and Burges)",
        licence="CC BY-SA 3.0",
    ),
    "fashion-mnist": source(
        "FashionMNIST",
        FASHION,
        ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"],
        classes=CLOTHES.split(","),
        origin="Fashion-MNIST (Xiao, Rasul and Vollgraf; Zalando SE)",
        licence="MIT",
    ),
}
