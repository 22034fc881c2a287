"""Pictures as telephones and computers leave them: upright by their orientation, in folders and
behind links.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpu.errors import UserError, printable
from mdpu.own.account import few

PICTURES = (".png", ".jpg", ".jpeg", ".jfif", ".bmp", ".gif", ".tif", ".tiff", ".webp")
HEIC = (".heic", ".heif")
UNREAD = (
    *HEIC,
    ".avif",
    ".jp2",
    ".dng",
    ".cr2",
    ".cr3",
    ".nef",
    ".arw",
    ".svg",
    ".psd",
    ".pdf",
    ".mov",
    ".mp4",
)
# Pillow's, of at most 8 bits a channel
MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr")
UNLABELED = ("unlabeled", "unlabelled")
HIDDEN = (".", "@", "__MACOSX")  # how files and folders begin that a system made
# Pixels of the longer side of a picture, unless a size is given: at twice as many a fit takes three
# times as long, and a thousand pictures of a camera would not fit into memory.
LARGEST = 32
ORIENTATION = 0x0112  # tag of EXIF
ON_ITS_SIDE = (5, 6, 7, 8)  # its values where height and width are exchanged


@dataclass(frozen=True)
class Listing:
    """The files of a folder: pictures, and how many others were passed over, by the reason."""

    pictures: list[Path]
    seen: int
    passed_over: dict[str, int]


def can_read_heic() -> bool:
    """Return whether Pillow reads HEIC, after `pillow_heif` was registered if it is installed."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def list_folder(folder: Path) -> Listing:
    """Return the pictures below a folder, in order; links are followed, hidden files and folders
    are passed over.
    """
    readable = (*PICTURES, *HEIC) if can_read_heic() else PICTURES
    pictures = []
    passed: Counter[str] = Counter()
    for path in _walk(folder, ()):
        parts = path.relative_to(folder).parts
        suffix = path.suffix.lower()
        if any(part.startswith(HIDDEN) for part in parts):
            passed["hidden"] += 1
        elif not path.is_file():
            passed["links that lead nowhere, or no ordinary files"] += 1
        elif suffix in readable:
            pictures.append(path)
        elif suffix in HEIC:
            passed[f"{suffix} (pip install pillow-heif reads them)"] += 1
        elif suffix in UNREAD:
            passed[f"{suffix} (convert them to .jpg or .png to use them)"] += 1
        else:
            passed[suffix or "without a suffix"] += 1
    pictures.sort()
    return Listing(pictures, len(pictures) + passed.total(), dict(passed.most_common()))


def _walk(folder: Path, above: tuple[Any, ...]) -> list[Path]:
    """Return the files below a folder; a link that leads back to a folder above it is not
    followed.
    """
    identity = folder.resolve()
    if identity in above:
        return []
    files = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise UserError(
            f"{folder} could not be read ({error.strerror}); fix that and run again"
        ) from None
    for entry in entries:
        path = folder / entry.name
        if entry.is_dir():
            files += _walk(path, (*above, identity))
        else:
            files.append(path)
    return files


def group_of(path: Path, folder: Path) -> str | None:
    """Return the name of the folder that holds a picture, below `folder`, or None if the picture is
    unlabeled.
    """
    parts = path.relative_to(folder).parts[:-1]
    if not parts or parts[0].strip().casefold() in UNLABELED:
        return None
    return "/".join(parts)


def read_picture(
    path: Path, mode: str | None = None, size: tuple[int, int] | None = None
) -> NDArray[np.uint8]:
    """Return a picture as people see it, (H, W) if it is grey, or (H, W, 3): turned by its EXIF
    orientation.
    """
    from PIL import Image, ImageOps

    with Image.open(path) as picture:
        if picture.mode not in MODES:
            raise ValueError(f"its mode is {picture.mode}, but 8 bits a channel are needed")
        if mode is None:
            mode = "L" if picture.mode in ("1", "L") else "RGB"
        if size is not None:
            enough = 2 * max(size)
            picture.draft(None, (enough, enough))  # a large JPEG is decoded at a part of its size
        plain = ImageOps.exif_transpose(picture).convert(mode)
        if size is not None:
            plain = plain.resize((size[1], size[0]))
        return np.asarray(plain)


def _upright_size(path: Path) -> tuple[int, int]:
    """Return height and width of a picture as people see it, from the head of its file."""
    from PIL import Image

    with Image.open(path) as picture:
        width, height = picture.size
        if picture.getexif().get(ORIENTATION) in ON_ITS_SIDE:
            return width, height
        return height, width


def _in_colour(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if picture.ndim > 2:
        return picture
    return np.repeat(picture[..., None], 3, axis=2)  # (H, W) -> (H, W, 3)


def common_size(files: Collection[Path]) -> tuple[int, int] | None:
    """Return height and width of pictures, or None if no file can be read.

    Raises
    ------
    UserError
        If they have several sizes.
    """
    can_read_heic()
    sizes: Counter[tuple[int, int]] = Counter()
    for path in files:
        # a damaged picture is named by `read_pictures`, beside all others
        with suppress(Exception):
            sizes[_upright_size(path)] += 1
    if len(sizes) > 1:
        texts = [f"{height} x {width}" for (height, width), _ in sizes.most_common()]
        raise UserError(
            f"pictures have the sizes {few(texts)}; name one that all are scaled to: "
            f"size=(height, width), or --size HEIGHT WIDTH, such as --size {LARGEST} {LARGEST}"
        )
    return next(iter(sizes), None)


def smaller(size: tuple[int, int]) -> tuple[int, int]:
    """Return height and width scaled down, so that neither is more than `LARGEST`."""
    factor = min(1.0, LARGEST / max(size))
    return max(1, round(factor * size[0])), max(1, round(factor * size[1]))


def read_pictures(
    files: Collection[Path], size: tuple[int, int] | None, mode: str | None
) -> NDArray[np.uint8]:
    """Return pictures (N, H, W) if all are grey, or (N, H, W, 3); raise one `UserError` for all
    that are damaged.
    """
    can_read_heic()
    pictures = []
    damaged = []
    for path in files:
        try:
            pictures.append(read_picture(path, mode, size))
        except MemoryError:
            raise
        except Exception as error:  # Pillow raises different ones for a damaged file
            damaged.append(f"{path} ({printable(str(error)).replace(repr(str(path)), 'it')[:80]})")
    if damaged:
        count = "a picture" if len(damaged) == 1 else f"{len(damaged)} pictures"
        raise UserError(f"{count} cannot be read: {few(damaged)}; mend or remove what is damaged")

    if len({picture.ndim for picture in pictures}) > 1:
        pictures = [_in_colour(picture) for picture in pictures]
    return np.stack(pictures)
