"""Where images come from: the datasets of the paper, the bundled digits, and one's own files."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from mdpu.data.images import ImageSet, is_path
from mdpu.data.sources import own
from mdpu.data.sources.cifar10 import CIFAR_10
from mdpu.data.sources.digits import DIGITS
from mdpu.data.sources.download import fetch
from mdpu.data.sources.emnist import EMNIST_BALANCED, EMNIST_DIGITS, EMNIST_LETTERS
from mdpu.data.sources.mnist import FASHION_MNIST, MNIST
from mdpu.data.sources.source import Source
from mdpu.data.sources.svhn import SVHN
from mdpu.errors import UserError
from mdpu.files import sha256

SOURCES: Mapping[str, Source] = {
    "digits": DIGITS,
    "mnist": MNIST,
    "fashion-mnist": FASHION_MNIST,
    "emnist-digits": EMNIST_DIGITS,
    "emnist-letters": EMNIST_LETTERS,
    "emnist-balanced": EMNIST_BALANCED,
    "cifar-10": CIFAR_10,
    "svhn": SVHN,
}


def load_source(source: str, data_dir: Path, mirror: str | None, scratch: Path) -> tuple[ImageSet, dict[str, str]]:
    """Return the images of a source, and the checksums of the files they were read from.

    Parameters
    ----------
    source : str
        A name of `SOURCES`, or the path of an npz file or of a folder of pictures.
    data_dir : Path
        Folder of raw downloads.
    mirror : str or None
        See `mdpu.data.sources.download.fetch`.
    scratch : Path
        Folder in which archives are unpacked for the time of the reading. Unpacked files have no
        checksums, so none are kept that a killed process might have left half-written.

    Raises
    ------
    UserError
        If the source is unknown, a file cannot be fetched, or what it holds is not what it should.
    """
    if is_path(source):
        path = Path(source).expanduser()
        checksums = {path.name: f"sha256:{sha256(path)}"} if path.is_file() else {}
        return own.read(path), checksums
    if source not in SOURCES:
        raise UserError(f"source {source!r} is unknown; known are {', '.join(SOURCES)} and paths of your own")
    archives = SOURCES[source].archives()
    files = fetch(archives, data_dir, mirror)
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=scratch) as folder:
        for archive, file in zip(archives, files, strict=True):
            link = Path(folder, archive.path)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file.resolve())
        try:
            images = SOURCES[source].read(Path(folder))
        except UserError as error:
            raise UserError(f"source {source}: {error}") from None
        except Exception as error:  # every format's reader has its own words for a broken file
            held = ", ".join(map(str, files)) or "its files"
            raise UserError(f"source {source}: {held} could not be read ({type(error).__name__}: {error})") from None
    return images, {archive.path: f"md5:{archive.md5}" for archive in archives}
