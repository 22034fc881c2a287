"""Raw downloads: whole and verified, or absent.

torchvision knows the address and the MD5 of each file; this module does the transfer. Neither torchvision nor pooch
bounds a file's size or ends a transfer that only trickles, and pooch's files can be read by their owner alone, which
does not suit a folder that several users share.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import hashlib
import http.client
import io
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from filelock import FileLock

from mdpu.errors import UserError, printable
from mdpu.progress import Steps

if TYPE_CHECKING:
    from mdpu.pipeline.data.images import ImageSet

TIMEOUT_SECONDS = 30.0  # in which at least LEAST bytes must come
LEAST = 30_000
MOST = 2 << 30  # bytes of a file whose size is not known
MEBIBYTE = 1 << 20


class DownloadError(Exception):
    """Why a file cannot be had from a place; another place may have it."""


@dataclass(frozen=True)
class Part:
    """A file that an archive holds, which may lie in ``data_dir`` by itself, gzipped or in a folder ``gzip`` too."""

    path: str  # within data_dir
    sha256: str | None  # of the content without gzip
    size: int | None = None  # bytes without gzip, by which it is known if its SHA-256 is not

    def find(self, data_dir: Path) -> Path | None:
        """Return the file that holds the right content, or None."""
        stated = data_dir / self.path
        for place in (stated, stated.parent / "gzip" / stated.name):
            for path in (place, place.with_name(f"{place.name}.gz")):
                if path.is_file() and self._is_right(path):
                    return path
        return None

    def _is_right(self, path: Path) -> bool:
        try:
            with open_content(path) as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
                return sha256 == self.sha256 if self.sha256 else stream.tell() == self.size
        except (OSError, EOFError, zlib.error):
            return False


@dataclass(frozen=True)
class Archive:
    """A file as its publisher offers it."""

    path: str  # within data_dir, and within a mirror: torchvision's own layout
    md5: str
    urls: tuple[str, ...]  # of the publisher and of its copies, tried in this order
    size: int | None = None  # bytes; no more are taken from a server
    parts: tuple[Part, ...] = ()  # unpacked files that serve as well, if data_dir holds all of them

    def places(self, mirror: str | None) -> tuple[str, ...]:
        """Return where to get the file: from the mirror alone where there is one, else from `urls`."""
        if mirror is None:
            return self.urls
        if _is_url(mirror):
            return (f"{mirror.rstrip('/')}/{urllib.parse.quote(self.path)}",)
        return (str(Path(mirror).expanduser() / self.path),)

    def find(self, data_dir: Path) -> Path | None:
        """Return the file in `data_dir`, or the folder of its parts, or its only part; None if the content is wrong."""
        path = data_dir / self.path
        if _is_intact(path, self.md5):
            return path
        found = [part.find(data_dir) for part in self.parts]
        if not found or None in found:
            return None
        return found[0] if len(found) == 1 else path.parent


@dataclass(frozen=True)
class Source:
    """Images that this project knows how to fetch and read.

    `archives` returns the files to fetch, and is a function because their addresses need an import of torchvision.
    `read` gets a scratch folder with the verified archives, each under its `Archive.path`. It may unpack them there.
    """

    archives: Callable[[], Sequence[Archive]]
    read: Callable[[Path], ImageSet]


def fetch(archives: Sequence[Archive], data_dir: Path, mirror: str | None = None) -> list[Path]:
    """Return the files of `archives` in `data_dir`, fetching those that are missing or broken.

    Any number of processes may ask for the same file at the same time: one fetches it, the others wait. A `mirror` is
    an http(s) address or a folder, laid out like `data_dir`, that is used instead of the publishers. All files are
    tried; the error names every missing one, its place and its MD5.
    """
    if mirror is not None and not _is_url(mirror) and not Path(mirror).expanduser().is_dir():
        raise UserError(
            f"mirror {mirror} is neither an http(s) address nor a folder; correct it in the config key mirror "
            "or in the environment variable MDPU_MIRROR"
        )
    files, missing = [], {}
    for archive in archives:
        try:
            files.append(archive.find(data_dir) or _fetch(archive, data_dir / archive.path, mirror))
        except DownloadError as error:
            if unpacked := _unpacked(archive, mirror):
                files.append(unpacked)
            else:
                missing[archive] = f"{archive.path} could not be fetched ({error})"
        except OSError as error:  # of the disk: no other place mends it
            raise UserError(
                f"config key data_dir: {data_dir / archive.path} could not be read or written "
                f"({error.strerror or error}); make room, or choose another data_dir"
            ) from None
    if missing:
        places = "; ".join(f"{(data_dir / archive.path).absolute()} (MD5 {archive.md5})" for archive in missing)
        raise UserError(
            f"{'; '.join(missing.values())}; connect to the network, set the config key mirror or the environment "
            f"variable MDPU_MIRROR to where the files are, or put them into place by hand, and run again; "
            f"missing: {places}"
        )
    return files


def list_absent(archives: Sequence[Archive], data_dir: Path) -> list[Archive]:
    """Return the files that `data_dir` does not hold with the right content."""
    return [archive for archive in archives if not archive.find(data_dir)]


def find_missing(archives: Sequence[Archive], data_dir: Path, mirror: str | None = None) -> list[Archive]:
    """Return the files that are neither in `data_dir` nor offered by a place; nothing is downloaded."""

    def is_offered(archive: Archive) -> bool:
        for place in archive.places(mirror):
            with contextlib.suppress(DownloadError), _opened(place, "HEAD"):
                return True
        return _unpacked(archive, mirror) is not None

    absent = list_absent(archives, data_dir)
    with ThreadPoolExecutor(max_workers=8) as pool:
        return [archive for archive, offered in zip(absent, pool.map(is_offered, absent), strict=True) if not offered]


def _unpacked(archive: Archive, mirror: str | None) -> Path | None:
    """Return where a mirror that is a folder has the parts of an archive, as another's `data_dir` may; or None."""
    return archive.find(Path(mirror).expanduser()) if mirror and not _is_url(mirror) else None


def _fetch(archive: Archive, path: Path, mirror: str | None) -> Path:
    """Fetch a file from the first place that has it, alone among processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):  # it follows no link
        if _is_intact(path, archive.md5):  # another process has fetched it meanwhile
            return path
        if path.exists() and not path.is_file():
            raise UserError(f"config key data_dir: {path} is no file, but a folder, a pipe or a device; remove it")
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
            with contextlib.suppress(OSError):  # of another user's killed process
                left.unlink()
        reasons = []
        for place in archive.places(mirror):
            # A name of its own, opened exclusively: no file and no link of another user's is written through.
            partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
            try:
                with _opened(place) as stream, partial.open("xb") as file:
                    md5 = _copy(stream, file, archive)
                if md5 != archive.md5:
                    raise DownloadError(f"its MD5 is {md5}, not {archive.md5}")
                partial.replace(path)
            except DownloadError as error:
                reasons.append(f"{place}: {error}")
            else:
                print(f"{path}: fetched, MD5 {archive.md5} verified", file=sys.stderr, flush=True)
                return path
            finally:
                partial.unlink(missing_ok=True)
    raise DownloadError("; ".join(reasons))


def _copy(stream: Any, file: BinaryIO, archive: Archive) -> str:
    """Write what a stream gives, as far as the known size, and return its MD5."""
    most = MOST if archive.size is None else archive.size
    announced = getattr(stream, "length", None)  # of a server's answer; a local file has none
    md5, have = hashlib.md5(usedforsecurity=False), 0
    started, before = time.monotonic(), 0
    with Steps(archive.path.rpartition("/")[2], -(-(announced or most) // MEBIBYTE), "MiB") as steps:
        while chunk := _read(stream):
            have += len(chunk)
            if have > most:
                raise DownloadError(f"it sends more than {most} bytes, the size of the file")
            md5.update(chunk)
            file.write(chunk)
            if time.monotonic() - started > TIMEOUT_SECONDS:
                if have - before < LEAST:
                    raise DownloadError(f"less than {LEAST} bytes came in {TIMEOUT_SECONDS:g} s")
                started, before = time.monotonic(), have
            if have // MEBIBYTE > steps.done:
                steps.advance(have // MEBIBYTE - steps.done)
    if announced and have < announced:
        raise DownloadError(f"closed after {have} of {announced} bytes")
    return md5.hexdigest()


@contextlib.contextmanager
def _opened(place: str, method: str = "GET") -> Iterator[Any]:
    """Open a file of a server or of a folder for reading."""
    if not _is_url(place):
        if not Path(place).is_file():
            raise DownloadError("there is no such file")
        place = Path(place).absolute().as_uri()
    # A server that unpacks .gz files in transit would break the checksum.
    headers = {"User-Agent": "mdpu", "Accept-Encoding": "identity"}
    with _network():
        request = urllib.request.Request(place, headers=headers, method=method)
        stream = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    with stream:
        yield stream


def _read(stream: Any) -> bytes:
    with _network():
        return stream.read1(MEBIBYTE)


@contextlib.contextmanager
def _network() -> Iterator[None]:
    """Turn an error, in which a server may have put any text, into a reason that may be printed."""
    try:
        yield
    except urllib.error.HTTPError as error:
        raise DownloadError(printable(f"HTTP {error.code} {error.reason}")) from None
    except TimeoutError:
        raise DownloadError(f"no byte for {TIMEOUT_SECONDS:g} s") from None
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise DownloadError(printable(str(getattr(error, "reason", None) or error or type(error).__name__))) from None


def _is_intact(path: Path, md5: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest() == md5


def open_content(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file for reading; what is gzipped is unpacked, whatever its name."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def _is_url(place: str) -> bool:
    return place.startswith(("http://", "https://"))
