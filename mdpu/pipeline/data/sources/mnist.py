"""MNIST and Fashion-MNIST: the same four idx files, of handwritten digits and of clothes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mdpu.pipeline.data.download import Archive, Source, read_content, read_idx
from mdpu.pipeline.data.images import ImageSet

# Bytes of the files of both: training images and labels, then test images and labels.
SIZES = {
    "MNIST": (9_912_422, 28_881, 1_648_877, 4_542),
    "FashionMNIST": (26_421_880, 29_515, 4_422_102, 5_148),
}
CLOTHES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"]
CLOTHES += ["Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


def archives(name: str) -> list[Archive]:
    """Return the four files of torchvision's class `name`."""
    from torchvision import datasets

    dataset = getattr(datasets, name)
    return [
        Archive(f"{name}/raw/{file}", md5, tuple(f"{address}{file}" for address in dataset.mirrors), size)
        for (file, md5), size in zip(dataset.resources, SIZES[name], strict=True)
    ]


def read(files: Sequence[Path], **facts: Any) -> ImageSet:
    """Return 60,000 training and 10,000 test images of 28x28."""
    train_images, train_labels, test_images, test_labels = (read_idx(read_content(file)) for file in files)
    return ImageSet(train_images, train_labels.astype(np.int64), test_images, test_labels.astype(np.int64), **facts)


SOURCES = {
    "mnist": Source(
        archives=partial(archives, "MNIST"),
        read=partial(
            read,
            classes=[str(digit) for digit in range(10)],
            origin="MNIST (LeCun, Cortes and Burges), via torchvision",
            licence="CC BY-SA 3.0",
        ),
    ),
    "fashion-mnist": Source(
        archives=partial(archives, "FashionMNIST"),
        read=partial(
            read,
            classes=CLOTHES,
            origin="Fashion-MNIST (Xiao, Rasul and Vollgraf; Zalando SE), via torchvision",
            licence="MIT",
        ),
    ),
}
