"""Raw downloads: a file with known addresses and MD5 is either complete and verified, or absent."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import math
import sys
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from mdpu.errors import UserError, printable
from mdpu.files import atomic
from mdpu.pipeline.data.images import ImageSet
from mdpu.pipeline.files import progress

TIMEOUT_SECONDS = 30.0  # without a byte
MEBIBYTE = 1 << 20


class DownloadError(Exception):
    """Why a file cannot be had from a server; another server may have it."""


@dataclass(frozen=True)
class Archive:
    """A file as its publisher offers it."""

    path: str  # within data_dir, and within a mirror: torchvision's own layout
    md5: str
    urls: tuple[str, ...]  # of the publisher and of its copies, tried in this order
    size: int  # bytes
    # paths and SHA-256 of files that together serve as well
    unpacked: tuple[tuple[str, str], ...] = ()

    def find(self, folder: Path) -> list[Path]:
        """Return the file, or its unpacked ones, gzipped or not; nothing unless all are right.

        Unpackers and Kaggle call ``train-images-idx3-ubyte`` also ``train-images.idx3-ubyte``, or
        put it into a folder of its name.
        """
        path = folder / self.path
        if path.is_file() and _md5(path) == self.md5:
            return [path]
        files = []
        for name, sha256 in self.unpacked:
            for file in _names_of(folder / name):
                with contextlib.suppress(OSError, EOFError, zlib.error):
                    if hashlib.sha256(read_content(file)).hexdigest() == sha256:
                        files.append(file)
                        break
        return files if len(files) == len(self.unpacked) else []

    def faults(self, folder: Path) -> list[str]:
        """Return what is wrong with files of this name that lie in a folder."""
        path = folder / self.path
        faults = [f"{path} {_fault(path, self)}"] if path.is_file() else []
        for name, _ in self.unpacked:
            there = [file for file in _names_of(folder / name) if file.is_file() and file != path]
            faults += [
                f"{file} lies there, but holds something else than the unpacked file"
                for file in there
            ]
        return faults


def _names_of(path: Path) -> list[Path]:
    """Return the names under which an unpacked file may lie."""
    dotted = path.with_name(path.name.replace("-idx", ".idx"))
    names = [path, dotted, path / path.name, dotted / dotted.name]
    return [file for name in names for file in (name, name.with_name(f"{name.name}.gz"))]


@dataclass(frozen=True)
class Source:
    """Images that this project knows how to fetch and read.

    `read` gets the verified files in the order of `archives`; the unpacked ones of an archive take
    its place. `checksum` is a text that identifies the images in the keys of runs: another text
    trains them anew.
    """

    read: Callable[[Sequence[Path]], ImageSet]
    checksum: str
    archives: Sequence[Archive] = ()


def fetch(archives: Sequence[Archive], data_dir: Path, mirror: str | None = None) -> list[Path]:
    """Return the files of `archives`; download into `data_dir` those that are missing or damaged.

    Any number of processes may ask for the same file at the same time: one fetches it, the others
    wait. A `mirror` is laid out like `data_dir`. If it is a folder, its files are used as they lie
    there; if it is an http(s) address, it is asked instead of the publishers. All files are tried;
    the error names every missing one, its place and its MD5.
    """
    address = mirror.rstrip("/") if mirror and mirror.startswith(("http://", "https://")) else None
    folders = [data_dir] if mirror is None or address else [data_dir, Path(mirror).expanduser()]
    if not all(folder.is_dir() for folder in folders[1:]):
        raise UserError(
            f"mirror {mirror}, config key or MDPU_MIRROR, is neither an http(s) address nor a "
            "folder"
        )
    files: list[Path] = []
    places: list[str] = []
    reasons: dict[str, list[str]] = {}
    for archive in archives:
        urls = (
            [f"{address}/{urllib.parse.quote(archive.path)}"]
            if address
            else archive.urls
            if mirror is None
            else []
        )
        try:
            files += next(filter(None, map(archive.find, folders)), []) or _download(
                archive, data_dir, urls
            )
        except DownloadError as error:
            wrong = [fault for folder in folders for fault in archive.faults(folder)]
            reasons.setdefault("; ".join([str(error), *wrong]), []).append(archive.path)
            places.append(f"{(data_dir / archive.path).absolute()} (MD5 {archive.md5})")
    if reasons:
        why = [
            f"{', '.join(paths)} could not be fetched ({reason})"
            for reason, paths in reasons.items()
        ]
        raise UserError(
            f"{'; '.join(why)}; connect to the network, set the config key mirror or MDPU_MIRROR "
            "to a copy, or "
            f"put them into place by hand, and run again; missing: {'; '.join(places)}"
        )
    return files


def _download(archive: Archive, data_dir: Path, urls: Sequence[str]) -> list[Path]:
    """Download a file from the first server that has it, alone among processes."""
    path = data_dir / archive.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        if found := archive.find(data_dir):  # another process has fetched it meanwhile
            return found
        reasons = []
        for url in urls:
            try:
                with atomic(path) as temporary:
                    _transfer(url, temporary, archive)
            except DownloadError as error:
                reasons.append(f"{url}: {error}")
            else:
                print(f"{path}: fetched, MD5 {archive.md5} verified", file=sys.stderr, flush=True)
                return [path]
    raise DownloadError("; ".join(reasons) or "the mirror has no such file with the right content")


def _transfer(url: str, path: Path, archive: Archive) -> None:
    """Write what a server sends into a file; raise `DownloadError` unless it has the
    archive's MD5.
    """
    total = math.ceil(archive.size / MEBIBYTE)
    with path.open("wb") as file, progress(Path(archive.path).name, total, "MiB") as bar:
        for chunk in _chunks(url):
            if file.tell() > archive.size:  # a server may go on for ever
                break
            file.write(chunk)
            bar.update()
    if _md5(path) != archive.md5:
        raise DownloadError(f"what it sends {_fault(path, archive)}")


def _fault(path: Path, archive: Archive) -> str:
    """Return what is wrong with a file that is not the archive."""
    with path.open("rb") as stream:
        start = stream.read(1000).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "is a web page, perhaps one for signing in"
    if start.startswith(b"version https://git-lfs"):
        return "is a pointer of Git LFS, not the file"
    if (size := path.stat().st_size) != archive.size:
        return f"has {size} bytes instead of {archive.size}"
    return f"has the MD5 {_md5(path)} instead of {archive.md5}"


def _chunks(url: str) -> Iterator[bytes]:
    """Yield the bytes of a server; trouble is a `DownloadError` with a printable text."""
    # A server that unpacks .gz files in transit would break the checksum.
    request = urllib.request.Request(
        url, headers={"User-Agent": "mdpu", "Accept-Encoding": "identity"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as stream:
            while chunk := stream.read(MEBIBYTE):
                yield chunk
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise DownloadError(printable(f"{type(error).__name__}: {error}")) from None


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def read_content(path: Path) -> bytes:
    """Return the bytes of a file; a gzipped file is unpacked, whatever its name."""
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
