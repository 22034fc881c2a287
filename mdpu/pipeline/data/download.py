"""Raw downloads: whole and verified, or absent.

torchvision knows the address and the MD5 of each file, but its own transfer has no time-out, does not
retry, and writes to the final name. So this module takes addresses and checksums from torchvision and
does the transfer itself.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http
import http.client
import io
import math
import shutil
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from mdpu.errors import UserError
from mdpu.progress import Steps

ATTEMPTS = 3
PAUSE_SECONDS = 1.0  # before the second attempt; doubled before each later one
TIMEOUT_SECONDS = 30.0  # without a byte
PROBE_SECONDS = 10.0  # for the answer whether a file is there
MEBIBYTE = 1 << 20

# Statuses in the 400s that may pass with time: request timeout, too early, too many requests.
PASSING = (408, 425, 429)


class DownloadError(Exception):
    """Why a file could not be fetched; the caller or the user may know another place."""


@dataclass(frozen=True)
class Part:
    """A file that an archive holds, which may lie in ``data_dir`` by itself.

    It may lie under its path or in a folder ``gzip`` beside it, and may be gzipped, with ``.gz`` after its name.

    Attributes
    ----------
    path : str
        Path within ``data_dir``.
    sha256 : str, optional
        Hexadecimal digits, of the content without gzip. None if it is not known.
    size : int, optional
        Bytes of the content without gzip, by which it is known if its SHA-256 is not.
    """

    path: str
    sha256: str | None
    size: int | None = None

    def find(self, data_dir: Path) -> Path | None:
        """Return the file that holds the right content, or None."""
        stated = data_dir / self.path
        for place in (stated, stated.parent / "gzip" / stated.name):
            for path in (place, place.with_name(f"{place.name}.gz")):
                if path.is_file() and self._is_right(path):
                    return path
        return None

    def _is_right(self, path: Path) -> bool:
        sha256, size = _content(path)
        return sha256 == self.sha256 if self.sha256 else size == self.size


@dataclass(frozen=True)
class Archive:
    """A file as its publisher offers it.

    Attributes
    ----------
    path : str
        Path within ``data_dir``, and within a mirror; torchvision's own layout.
    md5 : str
        Hexadecimal digits.
    urls : tuple of str
        Addresses of the publisher and of its copies, tried in this order.
    size : int, optional
        Bytes, to say in advance how much there is to download.
    parts : tuple of Part
        Unpacked files that serve as well, if all of them are in ``data_dir``: a folder that another program has filled.
        Empty if nothing is known of their contents, so that they cannot be verified.
    """

    path: str
    md5: str
    urls: tuple[str, ...]
    size: int | None = None
    parts: tuple[Part, ...] = ()

    def places(self, mirror: str | None) -> tuple[str, ...]:
        """Return where to get the file: from the mirror alone where there is one, else from `urls`."""
        if mirror is None:
            return self.urls
        if _is_url(mirror):
            return (f"{mirror.rstrip('/')}/{urllib.parse.quote(self.path)}",)
        return (str(Path(mirror).expanduser() / self.path),)


def fetch(archives: Sequence[Archive], data_dir: Path, mirror: str | None = None) -> list[Path]:
    """Return the files of `archives` in `data_dir`, fetching those that are missing or broken.

    An existing file is used if its MD5 is right, and replaced if not. Unpacked parts with the right content serve as
    well; the result then is the folder of those parts, or the part if there is one. Any number of processes may ask for
    the same file at the same time: one fetches it, the others wait.

    Parameters
    ----------
    archives : sequence of Archive
    data_dir : Path
        Folder of raw downloads; it may be read-only if it holds all files.
    mirror : str, optional
        An http(s) address or a local folder, laid out like `data_dir`, to use instead of the publishers.
        Checksums are verified there too.

    Raises
    ------
    UserError
        If a file cannot be fetched. The sentence names every missing file, its place and its MD5.
    """
    if mirror is not None and not _is_url(mirror) and not Path(mirror).expanduser().is_dir():
        raise UserError(
            f"mirror {mirror} is neither an http(s) address nor a folder; correct it in the config key mirror "
            "or in the environment variable MDPU_MIRROR"
        )
    try:
        return [_fetch(archive, data_dir / archive.path, mirror) for archive in archives]
    except DownloadError as error:
        missing = [archive for archive in archives if not _intact(data_dir / archive.path, archive.md5)]
        places = "; ".join(f"{(data_dir / archive.path).absolute()} (MD5 {archive.md5})" for archive in missing)
        raise UserError(
            f"{error}; connect to the network, set the config key mirror or the environment variable MDPU_MIRROR to "
            f"where the files are, or put them into place by hand, and run again; missing: {places}"
        ) from None


def list_absent(archives: Sequence[Archive], data_dir: Path) -> list[Archive]:
    """Return the files that `data_dir` does not hold with the right MD5."""
    return [
        archive
        for archive in archives
        if not _intact(path := data_dir / archive.path, archive.md5) and not _find_parts(archive, path)
    ]


def find_missing(archives: Sequence[Archive], data_dir: Path, mirror: str | None = None) -> dict[Archive, str]:
    """Return the files that are neither in `data_dir` nor to be had now, each with the reason; nothing is downloaded.

    Parameters
    ----------
    archives, data_dir, mirror
        As for `fetch`.
    """
    ahead = list_absent(archives, data_dir)
    with ThreadPoolExecutor(max_workers=8) as pool:
        reasons = pool.map(lambda archive: _why_not(archive, mirror), ahead)
        return {archive: reason for archive, reason in zip(ahead, reasons, strict=True) if reason}


def _why_not(archive: Archive, mirror: str | None) -> str | None:
    """Return why a file cannot be had from any of its places, or None if it can from one."""
    reasons = []
    for place in archive.places(mirror):
        reason = _why_not_from(place, archive.md5)
        if reason is None:
            return None
        reasons.append(f"{place}: {reason}")
    return "; ".join(reasons)


def _why_not_from(place: str, md5: str) -> str | None:
    if not _is_url(place):
        if not Path(place).is_file():
            return "there is no such file"
        return None if _intact(Path(place), md5) else f"its MD5 is {_md5(Path(place))}, not {md5}"
    request = urllib.request.Request(place, headers={"User-Agent": "mdpu"}, method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=PROBE_SECONDS).close()
    except urllib.error.HTTPError as error:
        certain = 400 <= error.code < 500 and error.code not in PASSING
        return f"HTTP {error.code} {error.reason}" if certain else None
    except urllib.error.URLError as error:
        return str(error.reason)
    except (http.client.HTTPException, OSError, ValueError) as error:
        return str(error) or type(error).__name__
    return None


def _fetch(archive: Archive, path: Path, mirror: str | None) -> Path:
    if _intact(path, archive.md5):
        return path
    if unpacked := _find_parts(archive, path):
        return unpacked
    with _alone(path):
        if _intact(path, archive.md5):
            return path
        if path.exists():
            _say(f"{path}: its MD5 is {_md5(path)}, not {archive.md5}; fetching it anew")
        partial = path.with_name(f".{path.name}.part")
        reasons = []
        for place in archive.places(mirror):
            try:
                (_download if _is_url(place) else _copy)(place, partial, archive.md5)
            except DownloadError as error:
                reasons.append(f"{place}: {error}")
            else:
                partial.replace(path)
                _say(f"{path}: fetched, MD5 {archive.md5} verified")
                return path
    raise DownloadError(f"{archive.path} could not be fetched ({'; '.join(reasons)})")


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of `path`, with a message if another process holds it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f".{path.name}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            _say(f"{path}: another process is fetching it; waiting")
            lock.acquire()
    except OSError as error:
        raise DownloadError(f"config key data_dir: {path.parent} cannot be written to ({error.strerror})") from None
    try:
        yield
    finally:
        lock.release()


def _download(url: str, partial: Path, md5: str) -> None:
    """Fill `partial` from `url`, resuming where an earlier attempt or process was cut off."""
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            pause = PAUSE_SECONDS * 2 ** (attempt - 1)
            _say(f"{url}: {reason}; attempt {attempt + 1} of {ATTEMPTS} in {pause:g} s")
            time.sleep(pause)
        resumed = partial.exists()
        if _intact(partial, md5):
            return
        try:
            _transfer(url, partial)
        except UserError:  # a ValueError too, which another attempt would not heal
            raise
        except urllib.error.HTTPError as error:
            reason = f"HTTP {error.code} {error.reason}"
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                partial.unlink(missing_ok=True)
            elif 400 <= error.code < 500 and error.code not in PASSING:
                raise DownloadError(reason) from None
        except TimeoutError:
            reason = f"no byte for {TIMEOUT_SECONDS:g} s"
        except urllib.error.URLError as error:
            reason = str(error.reason)
        except (http.client.HTTPException, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
        else:
            checksum = _md5(partial)
            if checksum == md5:
                return
            partial.unlink()
            reason = f"what it sent has MD5 {checksum}, not {md5}"
            if not resumed:
                raise DownloadError(reason)
    raise DownloadError(f"{reason}, after {ATTEMPTS} attempts")


def _transfer(url: str, partial: Path) -> None:
    """Append the rest of `url` to `partial`; raise `ConnectionError` if less arrives than was announced."""
    have = partial.stat().st_size if partial.exists() else 0
    # A server that unpacks .gz files in transit would break the checksum.
    headers = {"User-Agent": "mdpu", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            have = 0
        length = response.headers.get("Content-Length")
        total = None if length is None else have + int(length)
        size = "size unknown" if total is None else f"{total / MEBIBYTE:.1f} MiB"
        _say(f"{url}: {size}" + (f", {have / MEBIBYTE:.1f} of them there" if have else ""))
        with _writing(partial):
            file = partial.open("ab" if have else "wb")
        with file, Steps(url.rpartition("/")[2], math.ceil((total or 0) / MEBIBYTE), "MiB") as steps:
            while chunk := response.read1(MEBIBYTE):
                with _writing(partial):
                    file.write(chunk)
                have += len(chunk)
                arrived = math.ceil(have / MEBIBYTE) if have == total else have // MEBIBYTE
                if arrived > steps.done:
                    steps.advance(arrived - steps.done)
            with _writing(partial):
                file.flush()
    if total is not None and have < total:
        raise ConnectionError(f"closed after {have} of {total} bytes")


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an error of the disk into `UserError`: unlike an error of the network, it is not worth a retry."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"config key data_dir: {path} could not be written ({error.strerror}); make room or choose another data_dir"
        ) from None


def _copy(place: str, partial: Path, md5: str) -> None:
    """Fill `partial` from a file of a local mirror."""
    if not Path(place).is_file():
        raise DownloadError("there is no such file")
    try:
        shutil.copyfile(place, partial)
    except OSError as error:
        raise DownloadError(str(error)) from None
    checksum = _md5(partial)
    if checksum != md5:
        partial.unlink()
        raise DownloadError(f"its MD5 is {checksum}, not {md5}")


def _intact(path: Path, md5: str) -> bool:
    return path.is_file() and _md5(path) == md5


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _find_parts(archive: Archive, path: Path) -> Path | None:
    """Return the folder of an archive's unpacked parts, or the only part; None unless all are there with their content.

    `path` is where the archive itself would be.
    """
    data_dir = path.parents[len(Path(archive.path).parts) - 1]
    found = [part.find(data_dir) for part in archive.parts]
    if not found or None in found:
        return None
    return found[0] if len(found) == 1 else path.parent


def _content(path: Path) -> tuple[str, int] | tuple[None, None]:
    """Return SHA-256 and size of a file's content, unpacked if it is gzipped; None of a broken one."""
    try:
        with open_content(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest(), stream.tell()
    except (OSError, EOFError, zlib.error):
        return None, None


def open_content(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file for reading; what is gzipped is unpacked, whatever its name."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def _is_url(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
