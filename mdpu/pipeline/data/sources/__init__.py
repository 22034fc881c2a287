"""Where images come from: one file per publisher, discovered by being here.

Each defines ``SOURCES``, a `mdpu.pipeline.data.download.Source` for each name that a configuration
may give.
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

_FILES = [
    importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)
]

SOURCES: Mapping[str, Source] = {
    name: source for file in _FILES for name, source in file.SOURCES.items()
}


def load_source(name: str, data_dir: Path, mirror: str | None = None) -> ImageSet:
    """Return the images of a source, by its name or by the path of your own; see `write_source`."""
    if is_path(name):
        return own.read(Path(name).expanduser())
    if name not in SOURCES:
        raise UserError(
            f"source {name!r} is unknown; known are {', '.join(SOURCES)} and paths of your own"
        )
    files = fetch(SOURCES[name].archives, data_dir, mirror)
    try:
        return SOURCES[name].read(files)
    except Exception as error:  # every format's reader raises its own errors for a broken file
        held = ", ".join(map(str, files))
        raise UserError(
            f"source {name}: {held} could not be read ({type(error).__name__}: {error})"
        ) from None


def write_source(
    source: str, data_dir: Path, mirror: str | None, out: Path, sha256: str | None = None
) -> None:
    """Fetch and verify a source, and write its images, with a description (.json) beside them.

    Raw downloads go to `data_dir`; intact ones that are there already are used. `sha256` is the
    `ImageSet.checksum` that a user's own images must have; `out` is then named after the dataset.
    Raises `UserError` if they have another.
    """
    images = load_source(source, data_dir, mirror)
    if sha256 is not None and images.checksum != sha256:
        raise UserError(
            f"config key definitions.datasets.{out.stem}.sha256 is {sha256}, but the images of "
            f"{source} have {images.checksum}; correct it, or give the files that it describes"
        )
    write_images(images, out)
