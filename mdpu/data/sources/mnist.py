"""MNIST and Fashion-MNIST: the same four idx files, of handwritten digits and of clothes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mdpu.data.download import Archive
from mdpu.data.images import ImageSet
from mdpu.data.source import Source


def archives(name: str) -> list[Archive]:
    """Return the four files of torchvision's class `name`."""
    dataset = _torchvision_class(name)
    return [
        Archive(f"{name}/raw/{file}", md5, tuple(f"{address}{file}" for address in dataset.mirrors))
        for file, md5 in dataset.resources
    ]


def read(folder: Path, name: str, classes: Sequence[str], origin: str, licence: str) -> ImageSet:
    """Return 60,000 training and 10,000 test images of 28x28, unpacked and read by torchvision."""
    # The archives are already in place, so download=True only verifies and unpacks them.
    train, test = (_torchvision_class(name)(str(folder), train=train, download=True) for train in (True, False))
    return ImageSet(
        train_images=train.data.numpy(),
        train_labels=train.targets.numpy(),
        test_images=test.data.numpy(),
        test_labels=test.targets.numpy(),
        classes=classes,
        origin=origin,
        licence=licence,
    )


def _torchvision_class(name: str) -> Any:
    import torchvision.datasets

    return getattr(torchvision.datasets, name)


SOURCES = {
    "mnist": Source(
        archives=partial(archives, "MNIST"),
        read=partial(
            read,
            name="MNIST",
            classes=[str(digit) for digit in range(10)],
            origin="MNIST (LeCun, Cortes and Burges), via torchvision",
            licence="CC BY-SA 3.0",
        ),
    ),
    "fashion-mnist": Source(
        archives=partial(archives, "FashionMNIST"),
        read=partial(
            read,
            name="FashionMNIST",
            classes=[
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
            ],
            origin="Fashion-MNIST (Xiao, Rasul and Vollgraf; Zalando SE), via torchvision",
            licence="MIT",
        ),
    ),
}
