"""Where images come from: one file per publisher, discovered by being here.

Each defines ``SOURCES``, a `mdpu.pipeline.data.download.Source` for each name that a configuration may give, and
imports torchvision in its functions only.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mdpu.errors import UserError
from mdpu.pipeline.data import own
from mdpu.pipeline.data.download import Archive, Source, fetch
from mdpu.pipeline.data.images import ImageSet, is_path, write_images
from mdpu.pipeline.files import sha256

_FILES = [importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)]

SOURCES: Mapping[str, Source] = {name: source for file in _FILES for name, source in file.SOURCES.items()}
MODULES: Mapping[str, str] = {name: file.__name__ for file in _FILES for name in file.SOURCES}


def list_archives(name: str) -> Sequence[Archive]:
    """Return the files of a source; raise `UserError` if the package that knows them is not installed."""
    try:
        return SOURCES[name].archives()
    except ModuleNotFoundError as error:
        raise UserError(f"source {name} needs {error.name}; run pip install '.[pipeline]' in a checkout") from None


def load_source(name: str, data_dir: Path, mirror: str | None) -> tuple[ImageSet, dict[str, str]]:
    """Return the images of a source, by its name or the path of one's own, and the checksums of its files."""
    if is_path(name):
        path = Path(name).expanduser()
        images = own.read(path)
        parts = own.parts_of(path).values() if own.is_table(path) else [path]
        return images, {file.name: f"sha256:{sha256(file)}" for file in parts if file.is_file()}
    if name not in SOURCES:
        raise UserError(f"source {name!r} is unknown; known are {', '.join(SOURCES)} and paths of your own")
    files = fetch(list_archives(name), data_dir, mirror)
    try:
        return SOURCES[name].read(list(files)), {file.name: checksum for file, checksum in files.items()}
    except UserError as error:
        raise UserError(f"source {name}: {error}") from None
    except Exception as error:  # every format's reader raises its own errors for a broken file
        held = ", ".join(map(str, files)) or "its files"
        raise UserError(f"source {name}: {held} could not be read ({type(error).__name__}: {error})") from None


def write_source(name: str, data_dir: Path, mirror: str | None, path: Path) -> None:
    """Fetch and verify a source and write its images, with a description (.json) beside them; see `load_source`."""
    images, checksums = load_source(name, data_dir, mirror)
    write_images(images, path, checksums)


def fetch_sources(names: Iterable[str], data_dir: Path, mirror: str | None) -> None:
    """Fetch and verify the raw files of sources, all that can be had; a user's own images have none."""
    failures = []
    for name in sorted(set(names) & SOURCES.keys()):
        try:
            files = fetch(list_archives(name), data_dir, mirror)
        except UserError as error:
            failures.append(f"{name}: {error}")
        else:
            print(f"{name}: {len(files)} files there and verified", file=sys.stderr)
    if failures:
        raise UserError("; ".join(failures))
