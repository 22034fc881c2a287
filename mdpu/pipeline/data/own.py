"""A user's own images: an npz file, a folder of pictures, or the files of a table, named in the configuration."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mdpu.errors import UserError, printable
from mdpu.pipeline.data.images import ARRAYS, TABLES, ImageSet, standardised
from mdpu.pipeline.files import read_json

PARTS = ("train", "test")

# Pillow's modes with at most 8 bits a channel, which become grey or colour without loss.
GREY, COLOUR = ("1", "L", "LA"), ("P", "RGB", "RGBA", "CMYK", "YCbCr")


def read(path: Path) -> ImageSet:
    """Return the images of an npz file, of a folder of pictures, or of a table.

    The npz file holds ``train_images``, ``test_images`` (uint8 [N, H, W] or [N, H, W, C]) and ``train_labels``,
    ``test_labels`` (integers from 0). The class names are in an array ``classes`` or in ``<name>.json`` beside it, that
    may also have ``origin`` and ``licence``; without either, the ids are the names. The folder holds pictures
    ``train/<class>/*.png`` and ``test/<class>/*.png``, of one size, in any format that Pillow reads. The rows of a
    table are in two files, ``...train.csv`` and ``...test.csv``, or Parquet, with equal columns, of which the last is
    the class and the others are numbers. Tables, and ``train_images`` and ``test_images`` of floats [N, d] in an npz,
    are standardised.
    """
    with _told_of(path):
        if is_table(path):
            return _read_table(path)
        return _read_folder(path) if path.is_dir() else _read_npz(path)


def is_table(path: Path) -> bool:
    """Return whether a path is that of a table's training part."""
    return path.name.endswith(TABLES)


def parts_of(path: Path) -> dict[str, Path]:
    """Return the two files of a table; raise `UserError` unless the one that is named says which part it is."""
    before, found, after = path.name.rpartition("train")
    if not found:
        raise UserError("a table's file is called ...train.csv, so that ...test.csv beside it is known; rename it")
    return {"train": path, "test": path.with_name(f"{before}test{after}")}


@cache
def is_colour(path: Path) -> bool:
    """Return whether the training images have three channels; of a folder, the first picture says it."""
    with _told_of(path):
        if is_table(path):
            return False
        if path.is_dir():
            (_, picture), *_ = _pictures(path, "train", _classes(path, "train"))
            return _pixels(picture).ndim == 3
        with _npz(path) as archive, archive.zip.open("train_images.npy") as stream:
            version = np.lib.format.read_magic(stream)
            header = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
            return header(stream)[0][3:] == (3,)


def inputs(path: Path) -> list[Path]:
    """Return the files that change whenever the images change.

    For a folder of pictures these are the class folders, which change when a picture is added or removed.
    """
    with _told_of(path):
        if not path.exists():
            raise UserError("there is no such file or folder")
        if path.is_dir():
            return [path / part / name for part in PARTS for name in _classes(path, part)]
        if not path.is_file():
            raise UserError("it is a pipe or a device, not a file")
        files = list(parts_of(path).values()) if is_table(path) else [path]
        description = path.with_suffix(".json")
        return [*files, description] if description.exists() else files


def _read_npz(path: Path) -> ImageSet:
    with _npz(path) as archive:
        missing = [name for name in ARRAYS if name not in archive]
        if missing:
            raise UserError(f"it has no array {', '.join(missing)}; it holds {', '.join(archive)}")
        arrays = {name: np.asarray(archive[name]) for name in ARRAYS}
        names: Any = np.asarray(archive["classes"]).ravel().tolist() if "classes" in archive else None
    for part in PARTS:
        labels = arrays[f"{part}_labels"]
        if labels.dtype.kind not in "iu":
            raise UserError(f"{part}_labels is {labels.dtype}; class ids must be integers")
        arrays[f"{part}_labels"] = labels.astype(np.int64)
    if all(arrays[f"{part}_images"].ndim == 2 and arrays[f"{part}_images"].dtype.kind == "f" for part in PARTS):
        _standardise(arrays)
    return _described(path, arrays, names)


def _read_table(path: Path) -> ImageSet:
    frames = {part: _read_frame(file) for part, file in parts_of(path).items()}
    if list(frames["train"].columns) != list(frames["test"].columns):
        raise UserError("the columns of the training and of the test file differ; give both alike")
    arrays: dict[str, np.ndarray] = {}
    *columns, last = frames["train"].columns
    if any(frame[last].isna().any() for frame in frames.values()):
        raise UserError(f"column {last}, the class, has missing values; leave their rows out")
    names = sorted({*frames["train"][last].astype(str)} | {*frames["test"][last].astype(str)})
    for part, frame in frames.items():
        other = [str(column) for column in columns if frame[column].dtype.kind not in "fiub"]
        if other or not columns:
            raise UserError(
                f"column {', '.join(other) or last} of the {part} file holds no numbers; the last column is the class, "
                "and all others are numbers"
            )
        arrays[f"{part}_images"] = frame[columns].to_numpy(np.float64, na_value=np.nan)
        arrays[f"{part}_labels"] = np.searchsorted(names, frame[last].astype(str).to_numpy(str)).astype(np.int64)
    _standardise(arrays)
    return _described(path, arrays, names)


def _read_frame(path: Path) -> Any:
    import pandas as pd  # takes a while, and few plans need it

    if not path.is_file():
        raise UserError(f"{path} is no file; a table has a training and a test part")
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except Exception as error:  # of many types
        raise UserError(f"{path} cannot be read as a table ({printable(str(error))})") from None


def _standardise(arrays: dict[str, np.ndarray]) -> None:
    """Standardise a table's columns in place of the raw ones."""
    train, test = (arrays[f"{part}_images"] for part in PARTS)
    if 0 in train.shape or train.shape[1:] != test.shape[1:]:
        raise UserError(f"training rows are {train.shape} but test rows {test.shape}; give both alike")
    if np.isinf(train).any() or np.isinf(test).any():
        raise UserError("the table holds infinite values; remove or replace them")
    arrays["train_images"], arrays["test_images"] = standardised(train, test)


def _described(path: Path, arrays: dict[str, np.ndarray], names: Any) -> ImageSet:
    """Return arrays with their names of classes, and what a JSON file beside them says."""
    description = path.with_suffix(".json")
    facts = read_json(description) if description.exists() else {}
    if not isinstance(facts, dict):
        raise UserError(f'{description} holds no mapping; it should look like {{"classes": [...]}}')
    names = facts.get("classes", names)
    if not isinstance(names, list | None):
        raise UserError(f"{description}: classes is {names!r}, not a list of names, the id being the position")
    if names is None:
        names = range(1 + max(int(arrays[f"{part}_labels"].max(initial=0)) for part in PARTS))
    return ImageSet(
        **arrays,
        classes=[str(name) for name in names],
        origin=str(facts.get("origin", path)),
        licence=str(facts.get("licence", "not stated")),
    )


@contextlib.contextmanager
def _npz(path: Path) -> Iterator[Any]:
    """Open an npz file without unpickling; raise `UserError` if it is broken."""
    if path.exists() and not path.is_file():  # reading a pipe would block
        raise UserError("it is a pipe or a device, not a file")
    try:
        with np.load(path, allow_pickle=False) as archive:
            yield archive
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError("there is no such file or folder") from None
    except Exception as error:  # zipfile, zlib and numpy raise different errors for a broken file
        if "allow_pickle" in str(error):
            raise UserError("it holds pickled objects, which may run code; save arrays of numbers or text") from None
        raise UserError(f"it is not a whole npz file ({error}); save it again with numpy.savez") from None


def _read_folder(path: Path) -> ImageSet:
    classes = _classes(path, "train")
    unknown = sorted(set(_classes(path, "test")) - set(classes))
    if unknown:
        raise UserError(f"test/{unknown[0]} has no counterpart in train; both parts need the same class folders")
    pictures = {part: _pictures(path, part, classes) for part in PARTS}
    pixels = {file: _pixels(file) for part in PARTS for _, file in pictures[part]}
    first, *others = pixels
    for file in others:
        (height, width), (first_height, first_width) = pixels[file].shape[:2], pixels[first].shape[:2]
        if (height, width) != (first_height, first_width):
            raise UserError(f"{file} is {width}x{height} but {first} {first_width}x{first_height}; make them one size")
    if any(image.ndim == 3 for image in pixels.values()):
        pixels = {file: image if image.ndim == 3 else np.stack([image] * 3, axis=2) for file, image in pixels.items()}
    arrays = {}
    for part in PARTS:
        arrays[f"{part}_images"] = np.stack([pixels[file] for _, file in pictures[part]])
        arrays[f"{part}_labels"] = np.array([label for label, _ in pictures[part]], dtype=np.int64)
    return ImageSet(**arrays, classes=classes, origin=str(path), licence="not stated")


def _classes(path: Path, part: str) -> list[str]:
    folder = path / part
    if not folder.is_dir():
        raise UserError(f"it has no folder {part}; pictures go to {part}/<class>/")
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _pictures(path: Path, part: str, classes: list[str]) -> list[tuple[int, Path]]:
    """Return the class id and the file of each picture, in order of their paths."""
    from PIL import Image

    readable = {suffix for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    pictures = [
        (label, file)
        for label, name in enumerate(classes)
        for file in sorted((path / part / name).glob("[!.]*"))
        if file.suffix.lower() in readable
    ]
    if not pictures:
        raise UserError(f"there is no picture in {part}/<class>/")
    for _, file in pictures:
        if not file.is_file():  # reading a pipe would block
            raise UserError(f"{file} is no file, but a folder, a pipe or a link to nothing")
    return pictures


def _pixels(file: Path) -> np.ndarray:
    """Return a picture: (H, W) if it is grey, (H, W, 3) if it is in colour."""
    from PIL import Image

    try:
        with Image.open(file) as picture:
            if picture.mode not in (*GREY, *COLOUR):
                raise UserError(f"{file} has mode {picture.mode}; convert it to 8 bits a channel")
            return np.asarray(picture.convert("RGB" if picture.mode in COLOUR else "L"))
    except UserError:
        raise
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:  # a broken PNG is a SyntaxError
        raise UserError(f"{file} is no whole picture ({error})") from None


@contextlib.contextmanager
def _told_of(path: Path) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise UserError(f"source {path}: {error}") from None
