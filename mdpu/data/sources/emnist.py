"""EMNIST: handwritten digits and letters, several splits in one archive of 535 MB."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from mdpu.data.download import Archive
from mdpu.data.images import ImageSet
from mdpu.data.source import Source
from mdpu.errors import UserError

PATH = "EMNIST/raw/gzip.zip"


def archives() -> list[Archive]:
    """Return the one file that holds every split."""
    from torchvision.datasets import EMNIST

    return [Archive(PATH, EMNIST.md5, (EMNIST.url,))]


def read(folder: Path, split: str) -> ImageSet:
    """Return the images of one split, read by torchvision.

    EMNIST stores its images transposed. They are returned upright, so that people can read them. To a
    perceptron this is a permutation of the pixels, which changes nothing.

    torchvision counts Letters from 1 (its class 0 is ``N/A``); here A is class 0. Letters merges upper
    and lower case, and its classes are called by the capital. Balanced keeps 11 lower-case letters
    that look unlike their capitals, under their own names.
    """
    from torchvision import datasets

    class EMNIST(datasets.EMNIST):  # type: ignore[misc]
        """torchvision's class with another reader; its own holds the 188 MB of Digits in memory twice."""

        def _load_data(self) -> tuple[np.ndarray, np.ndarray]:
            return read_idx(Path(self.images_file)), read_idx(Path(self.labels_file))

    unpack(folder / PATH, split)
    first = 1 if split == "letters" else 0
    names = EMNIST.classes_split_dict[split][first:]
    arrays = {}
    for part, train in (("train", True), ("test", False)):
        dataset = EMNIST(str(folder), split=split, train=train)
        turn_upright(dataset.data)
        arrays[f"{part}_images"] = dataset.data
        arrays[f"{part}_labels"] = dataset.targets.astype(np.int64) - first
    return ImageSet(
        **arrays,
        classes=[name.upper() for name in names] if split == "letters" else names,
        origin=f"EMNIST {split} (Cohen, Afshar, Tapson and van Schaik; from NIST Special Database 19), via torchvision",
        licence="none stated; derived from NIST Special Database 19",
    )


def unpack(archive: Path, split: str) -> None:
    """Unpack the four files of `split` beside `archive`.

    torchvision would unpack all six splits, 2 GB, with each file whole in memory.

    Raises
    ------
    UserError
        If a path in the archive leads out of its folder, or a file is missing in it.
    """
    with zipfile.ZipFile(archive) as members:
        for name in members.namelist():
            path = PurePosixPath(name.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts:
                raise UserError(f"{archive.name} holds a file whose path leads out of it, {name!r}; do not use it")
        for part in ("train", "test"):
            for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"):
                file = f"emnist-{split}-{part}-{kind}"
                try:
                    packed = members.open(f"gzip/{file}.gz")
                except KeyError:
                    raise UserError(f"{archive.name} holds no gzip/{file}.gz; it is not EMNIST's archive") from None
                with packed, gzip.open(packed) as content, archive.with_name(file).open("wb") as unpacked:
                    shutil.copyfileobj(content, unpacked, 1 << 20)


def read_idx(path: Path) -> np.ndarray:
    """Return the bytes of an idx file in the shape that its header gives; raise `UserError` if it is not one."""
    with path.open("rb") as stream:
        zeros, kind, dimensions = stream.read(2), stream.read(1), stream.read(1)
        if zeros != b"\0\0" or kind != b"\x08" or not dimensions:
            raise UserError(f"{path.name} is no idx file of bytes")
        shape = np.fromfile(stream, dtype=">i4", count=dimensions[0])
        content = np.fromfile(stream, dtype=np.uint8)
    if content.size != shape.prod(dtype=np.int64):
        raise UserError(f"{path.name} holds {content.size} bytes, not {' x '.join(map(str, shape))}")
    return content.reshape(shape)


def turn_upright(images: np.ndarray) -> None:
    """Transpose each image in place; shape (N, H, H)."""
    for start in range(0, len(images), 1000):
        block = images[start : start + 1000]
        block[:] = block.transpose(0, 2, 1).copy()


SOURCES = {
    f"emnist-{split}": Source(archives, partial(read, split=split)) for split in ("digits", "letters", "balanced")
}
