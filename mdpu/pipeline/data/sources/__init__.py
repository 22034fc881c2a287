"""Where images come from: one file per publisher, discovered by being here.

Each defines ``SOURCES``, a `mdpu.pipeline.data.download.Source` for each name that a configuration may give.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path

from mdpu.errors import UserError
from mdpu.pipeline.data import own
from mdpu.pipeline.data.download import Source, fetch
from mdpu.pipeline.data.images import ImageSet, is_path, write_images
from mdpu.pipeline.files import sha256 as sha256_of

_FILES = [importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)]

SOURCES: Mapping[str, Source] = {name: source for file in _FILES for name, source in file.SOURCES.items()}


def load_source(name: str, data_dir: Path, mirror: str | None) -> tuple[ImageSet, dict[str, str]]:
    """Return the images of a source, by its name or the path of one's own, and the checksums of its files."""
    if is_path(name):
        path = Path(name).expanduser()
        images = own.read(path)
        return images, {path.name: f"sha256:{sha256_of(path)}"} if path.is_file() else {}
    if name not in SOURCES:
        raise UserError(f"source {name!r} is unknown; known are {', '.join(SOURCES)} and paths of your own")
    source = SOURCES[name]
    files = fetch(source.archives, data_dir, mirror)
    try:
        images = source.read(list(files))
    except Exception as error:  # every format's reader raises its own errors for a broken file
        told = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        raise UserError(f"source {name}: {', '.join(map(str, files))} could not be read ({told})") from None
    return images, {file.name: checksum for file, checksum in files.items()}


def write_source(source: str, data_dir: Path, mirror: str | None, out: Path, sha256: str | None = None) -> None:
    """Fetch and verify a source; write its images, with a description (.json) beside them.

    Parameters
    ----------
    source : str
        Name, or path of one's own images.
    data_dir : Path
        Where raw downloads go; intact ones that are there already are used.
    mirror : str or None
        An http(s) address or a folder, laid out as `data_dir`.
    out : Path
        An npz file, named as the dataset if the images are one's own.
    sha256 : str, optional
        What the ``checksum`` of the images has to be (`ImageSet.checksum`).

    Raises
    ------
    UserError
        If files cannot be had, read or used, or the images are others than `sha256` says.
    """
    images, checksums = load_source(source, data_dir, mirror)
    if sha256 is not None and images.checksum != sha256:
        raise UserError(
            f"config key definitions.datasets.{out.stem}.sha256 is {sha256}, but the images of {source} have "
            f"{images.checksum}; correct it, or give the files that it was taken of"
        )
    write_images(images, out, checksums)
