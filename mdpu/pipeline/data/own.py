"""A user's own images: an npz file or a folder of pictures, named in the configuration."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from mdpu.errors import UserError
from mdpu.pipeline.data.images import ARRAYS, ImageSet
from mdpu.pipeline.files import read_json

PARTS = ("train", "test")

# Pillow's modes with at most 8 bits a channel, which become grey or colour without loss.
GREY = ("1", "L", "LA")
COLOUR = ("P", "RGB", "RGBA", "CMYK", "YCbCr")


def read(path: Path) -> ImageSet:
    """Return the images of an npz file or of a folder of pictures.

    The npz file holds ``train_images``, ``test_images`` (uint8 [N, H, W] or [N, H, W, C]) and
    ``train_labels``, ``test_labels`` (integers from 0). The class names are in an array ``classes``
    or in ``<name>.json`` beside it, which may also have ``origin`` and ``licence``; without either,
    the ids are the names. The folder holds pictures ``train/<class>/*.png`` and
    ``test/<class>/*.png``, of one size, in any format of Pillow, in colour if the first is.
    """
    with _naming(path):
        return _read_folder(path) if path.is_dir() else _read_npz(path)


@cache
def is_colour(path: Path) -> bool:
    """Return whether the training images have three channels; for a folder, the first picture
    decides.
    """
    with _naming(path):
        if path.is_dir():
            return _picture(_pictures(path, "train", _classes(path, "train"))[0][1]).mode == "RGB"
        with (
            np.load(path, allow_pickle=False) as archive,
            archive.zip.open("train_images.npy") as stream,
        ):
            version = np.lib.format.read_magic(stream)
            header = (
                np.lib.format.read_array_header_1_0
                if version[0] == 1
                else np.lib.format.read_array_header_2_0
            )
            return header(stream)[0][3:] == (3,)


def inputs(path: Path) -> list[Path]:
    """Return the files that change when the images do; class folders change when a picture is added
    or removed.
    """
    with _naming(path):
        if path.is_dir():
            return [path / part / name for part in PARTS for name in _classes(path, part)]
        description = path.with_suffix(".json")
        return [path, description] if description.exists() else [path]


def _read_npz(path: Path) -> ImageSet:
    with np.load(path, allow_pickle=False) as archive:
        if missing := [name for name in ARRAYS if name not in archive]:
            raise UserError(f"it has no array {', '.join(missing)}; it holds {', '.join(archive)}")
        arrays = {name: np.asarray(archive[name]) for name in ARRAYS}
        names: Any = (
            np.asarray(archive["classes"]).ravel().tolist() if "classes" in archive else None
        )
    for name in ("train_labels", "test_labels"):
        if arrays[name].dtype.kind not in "iu":
            raise UserError(f"{name} is {arrays[name].dtype}; class ids must be integers")
        arrays[name] = arrays[name].astype(np.int64)
    description = path.with_suffix(".json")
    facts = read_json(description) if description.exists() else {}
    if not isinstance(facts, dict):
        raise UserError(f'{description} holds no mapping; it should look like {{"classes": [...]}}')
    names = facts.get("classes", names)
    if names is None:
        names = range(1 + max(int(arrays[f"{part}_labels"].max(initial=0)) for part in PARTS))
    elif not isinstance(names, list):
        raise UserError(
            f"{description}: classes is {names!r}, not a list of names in the order of the ids"
        )
    origin = str(facts.get("origin", path))
    licence = str(facts.get("licence", "not stated"))
    return ImageSet(**arrays, classes=list(map(str, names)), origin=origin, licence=licence)


def _read_folder(path: Path) -> ImageSet:
    classes = _classes(path, "train")
    if unknown := sorted(set(_classes(path, "test")) - set(classes)):
        raise UserError(
            f"test/{unknown[0]} has no counterpart in train; both parts need the same class folders"
        )
    pictures = {part: _pictures(path, part, classes) for part in PARTS}
    first = _picture(pictures["train"][0][1])
    arrays = {}
    for part in PARTS:
        arrays[f"{part}_images"] = np.stack(
            [np.asarray(_picture(file, first)) for _, file in pictures[part]]
        )
        arrays[f"{part}_labels"] = np.array([label for label, _ in pictures[part]], dtype=np.int64)
    return ImageSet(**arrays, classes=classes, origin=str(path), licence="not stated")


def _classes(path: Path, part: str) -> list[str]:
    folder = path / part
    if not folder.is_dir():
        raise UserError(f"it has no folder {part}; pictures go to {part}/<class>/")
    return sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.name.startswith(".")
    )


def _pictures(path: Path, part: str, classes: list[str]) -> list[tuple[int, Path]]:
    """Return the class id and the file of each picture, in order of their paths."""
    readable = {
        suffix for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN
    }
    pictures = [
        (label, file)
        for label, name in enumerate(classes)
        for file in sorted((path / part / name).glob("[!.]*"))
        if file.suffix.lower() in readable
    ]
    if not pictures:
        raise UserError(f"there is no picture in {part}/<class>/")
    return pictures


def _picture(file: Path, first: Image.Image | None = None) -> Image.Image:
    """Return a picture in grey (``L``) or colour (``RGB``), in the mode and size of the first if
    that is given.
    """
    if not file.is_file():  # reading a pipe would block
        raise UserError(f"{file} is not a file but a folder, a pipe or a broken link")
    try:
        with Image.open(file) as picture:
            if picture.mode not in (
                (*GREY, *COLOUR) if first is None or first.mode == "RGB" else GREY
            ):
                raise UserError(
                    f"{file} has mode {picture.mode}; use 8 bits a channel, the first in colour if "
                    "any is"
                )
            upright = ImageOps.exif_transpose(picture)
            if first is not None and upright.size != first.size:
                raise UserError(
                    f"{file} is {upright.size}, but the first picture {first.size}; make them one "
                    "size"
                )
            return upright.convert(first.mode if first else "L" if picture.mode in GREY else "RGB")
    except (
        OSError,
        SyntaxError,
        Image.DecompressionBombError,
    ) as error:  # a broken PNG is a SyntaxError
        raise UserError(f"{file} is not a whole picture ({error})") from None


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the source in every error; refuse a pipe or a device, because reading it would block."""
    try:
        if not (path.is_file() or path.is_dir()):
            raise UserError("there is no such file or folder")
        yield
    except UserError as error:
        raise UserError(f"source {path}: {error}") from None
    except MemoryError:
        raise
    except (
        Exception
    ) as error:  # zipfile, zlib, numpy and Pillow raise different errors for a broken file
        raise UserError(
            f"source {path}: it could not be read ({error}); numpy.savez saves arrays anew"
        ) from None
