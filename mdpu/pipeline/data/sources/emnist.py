"""EMNIST: handwritten digits and letters, several splits in one archive of 535 MB."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from mdpu.errors import UserError
from mdpu.pipeline.data.download import Archive, Part, Source, open_content
from mdpu.pipeline.data.images import ImageSet

PATH = "EMNIST/raw/gzip.zip"
FILES = [f"{part}-{kind}" for part in ("train", "test") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]


# Training and test images of a split, by which its own files are known; they serve without the archive.
NUMBERS = {"digits": (240_000, 40_000), "letters": (124_800, 20_800), "balanced": (112_800, 18_800)}
# SHA-256 of the contents of a split's files. Those of the other splits are not known here.
SHA256 = {
    "letters": {
        "train-images-idx3-ubyte": "7a786db773b2096a7b9a3f3275388a27711f4451548c3ca8be96f09ae94371ae",
        "train-labels-idx1-ubyte": "e8e94c3f4353d5532fd9604b939cb4c76e7847945b9b0d9ff7884d881dead6bc",
        "test-images-idx3-ubyte": "d5895e82d14765b22a84342337bc5c25f1affd61cc97d3821d4e65504bbf8dbc",
        "test-labels-idx1-ubyte": "22dbcde0a929a7f166bdac863b9195b2994d840a1e082f8f6daaeac5606376a6",
    }
}


def archives(split: str) -> list[Archive]:
    """Return the one file that holds every split; the unpacked files of `split` serve as well."""
    from torchvision.datasets import EMNIST

    own = tuple(parts(split, f"{PurePosixPath(PATH).parent}/"))
    return [Archive(PATH, EMNIST.md5, (EMNIST.url,), 561_753_746, own)]


def parts(split: str, folder: str = "") -> Iterator[Part]:
    """Yield the four files of a split, with `folder` before their names."""
    for file in FILES:
        number = NUMBERS[split][file.startswith("test")]
        size = 16 + 28 * 28 * number if "images" in file else 8 + number  # an idx header, then a byte each
        yield Part(f"{folder}emnist-{split}-{file}", SHA256.get(split, {}).get(file), size)


def read(folder: Path, split: str) -> ImageSet:
    """Return the images of one split, read by torchvision.

    EMNIST stores its images transposed; they are returned upright, so that people can read them. torchvision counts
    Letters from 1 (its class 0 is ``N/A``); here A is class 0. Letters merges upper and lower case, and its classes are
    called by the capital. Balanced keeps 11 lower-case letters that look unlike their capitals, under their own names.
    """
    from torchvision import datasets

    class EMNIST(datasets.EMNIST):  # type: ignore[misc]
        """torchvision's class with another reader; its own holds the 188 MB of Digits in memory twice."""

        def _load_data(self) -> tuple[np.ndarray, np.ndarray]:
            return read_idx(Path(self.images_file)), read_idx(Path(self.labels_file))

    source = folder / PATH
    if source.is_dir():  # the split's own files, verified
        folder = folder / "unpacked"
        copy_parts(source, folder / PurePosixPath(PATH).parent, split)
    else:
        unpack(source, split)
    first = 1 if split == "letters" else 0
    names = EMNIST.classes_split_dict[split][first:]
    arrays = {}
    for part, train in (("train", True), ("test", False)):
        dataset = EMNIST(str(folder), split=split, train=train)
        for start in range(0, len(dataset.data), 1000):  # in place, some at a time
            block = dataset.data[start : start + 1000]
            block[:] = block.transpose(0, 2, 1).copy()
        arrays[f"{part}_images"] = dataset.data
        arrays[f"{part}_labels"] = dataset.targets.astype(np.int64) - first
    unverified = "" if split in SHA256 else ", which have the right numbers of images; their checksums are not known"
    return ImageSet(
        **arrays,
        classes=[name.upper() for name in names] if split == "letters" else names,
        origin=f"EMNIST {split} (Cohen, Afshar, Tapson and van Schaik; from NIST Special Database 19), via torchvision"
        + (f", from its own files instead of the archive{unverified}" if source.is_dir() else ""),
        licence="none stated; derived from NIST Special Database 19",
    )


def copy_parts(source: Path, target: Path, split: str) -> None:
    """Copy the four files of `split` from a folder where they lie unpacked or gzipped."""
    target.mkdir(parents=True)
    for part in parts(split):
        found = part.find(source)
        if found is None:
            raise UserError(f"{source / part.path} has changed while it was read; run again")
        with open_content(found) as stream, (target / part.path).open("wb") as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)


def unpack(archive: Path, split: str) -> None:
    """Unpack the four files of `split` beside `archive`; torchvision would unpack all six splits, 2 GB, in memory."""
    with zipfile.ZipFile(archive) as members:
        for name in members.namelist():
            path = PurePosixPath(name.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts:
                raise UserError(f"{archive.name} holds a file whose path leads out of it, {name!r}; do not use it")
        for name in FILES:
            file = f"emnist-{split}-{name}"
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


SOURCES = {
    f"emnist-{split}": Source(partial(archives, split), partial(read, split=split))
    for split in ("digits", "letters", "balanced")
}
