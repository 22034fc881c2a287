"""MNIST and Fashion-MNIST: the same four idx files, of handwritten digits and of clothes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mdpu.pipeline.data.download import Archive, Part, Source, open_content
from mdpu.pipeline.data.images import ImageSet

# The publishers' files by MD5: their bytes, and the SHA-256 of what they hold unpacked.
KNOWN = {
    "f68b3c2dcbeaaa9fbdd348bbdeb94873": (
        9_912_422,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    "d53e105ee54ea40749a09fcbcd1e9432": (28_881, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    "9fb629c4189551a2d022fa330f9573f3": (1_648_877, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    "ec29112dd5afa0611ce80d1b7f02629c": (4_542, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d": (
        26_421_880,
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    ),
    "25c81989df183df01b3e8a0aad5dffbe": (29_515, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
    "bef4ecab320f06d8554ea6380940ec79": (4_422_102, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
    "bb300cfdad3c16e7a12a480ee83cd310": (5_148, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
}
CLOTHES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"]
CLOTHES += ["Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


def archives(name: str) -> list[Archive]:
    """Return the four files of torchvision's class `name`."""
    from torchvision import datasets

    dataset, listed = getattr(datasets, name), []
    for file, md5 in dataset.resources:
        path = f"{name}/raw/{file}"
        size, content = KNOWN.get(md5, (None, None))
        parts = (Part(path.removesuffix(".gz"), content),) if content else ()
        listed.append(Archive(path, md5, tuple(f"{address}{file}" for address in dataset.mirrors), size, parts))
    return listed


def read(folder: Path, name: str, classes: Sequence[str], origin: str, licence: str) -> ImageSet:
    """Return 60,000 training and 10,000 test images of 28x28, read by torchvision."""
    from torchvision import datasets

    for link in (folder / name / "raw").glob("*.gz"):
        file = link.resolve()  # it may be unpacked already
        with open_content(file) as packed, link.with_suffix("").open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked, 1 << 20)
    train, test = (getattr(datasets, name)(str(folder), train=train) for train in (True, False))
    return ImageSet(
        train_images=train.data.numpy(),
        train_labels=train.targets.numpy(),
        test_images=test.data.numpy(),
        test_labels=test.targets.numpy(),
        classes=classes,
        origin=origin,
        licence=licence,
    )


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
            classes=CLOTHES,
            origin="Fashion-MNIST (Xiao, Rasul and Vollgraf; Zalando SE), via torchvision",
            licence="MIT",
        ),
    ),
}
