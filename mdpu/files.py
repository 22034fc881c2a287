"""Files that are either whole or absent, and the provenance written beside them.

Whatever is killed, and at whatever moment the power fails, a file is the old one or the new one and matches its seal
(`mdpu.seals`): contents are on the disk before their name is, and the name before anything that builds on it.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mdpu.errors import UserError
from mdpu.seals import Seal, check, make_seal, read_seal, seal_path, sha256

if TYPE_CHECKING:
    import pandas as pd

PACKAGE = Path(__file__).resolve().parent
REPOSITORY = PACKAGE.parent


def resource(name: str) -> Path:
    """Return a file or folder that travels with the package, such as the schema or the templates of the report.

    An installed package holds what lies outside of ``mdpu`` in its folder ``resources``.

    Parameters
    ----------
    name : str
        Path in the repository. Write it out where it is used: `mdpu.study.closure` finds it there.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    for folder in (PACKAGE / "resources", REPOSITORY):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"mdpu is not installed whole: it lacks {name}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that becomes `path` when the block succeeds.

    Readers see the old file or the new one, never a half; a killed writer leaves only a temporary
    name behind, which the next one removes, and two writers of the same file do each other no harm. The file's seal
    is written with it.

    Raises
    ------
    UserError
        If the block fails with an `OSError`, e.g. because the disk is full.
    """
    path = Path(path)
    temporary, seal = _temporary(path), seal_path(path)
    try:
        _make_folder(path.parent)
        _remove_orphans(path)
        _remove_orphans(seal)
        yield temporary
        _sync(temporary)
        _temporary(seal).write_text(make_seal(path, sha256(temporary)).to_json(), encoding="utf-8")
        _sync(_temporary(seal))
        # The seal first: it allows the old contents too, so that between the two renames nothing is out of order.
        _temporary(seal).replace(seal)
        _sync(path.parent)
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise UserError(f"{path} could not be written ({error.strerror or error}); mend that and run again") from error
    finally:
        for leftover in (temporary, _temporary(seal)):
            with contextlib.suppress(OSError):  # e.g. its folder is no more: what is told is why
                leftover.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Delete a file, if it is there, and its seal after it."""
    path.unlink(missing_ok=True)
    seal_path(path).unlink(missing_ok=True)


def accept(path: Path) -> None:
    """Seal a file as it is now, marked as edited: for changes by hand, on purpose.

    Raises
    ------
    UserError
        If the file is missing or its seal cannot be written.
    """
    old = read_seal(path)
    inputs = old.inputs if old else {}
    seal, temporary = seal_path(path), _temporary(seal_path(path))
    text = Seal(sha256(path), inputs=inputs, edited=True).to_json()
    try:
        temporary.write_text(text, encoding="utf-8")
        _sync(temporary)
        temporary.replace(seal)
        _sync(path.parent)
    except OSError as error:
        raise UserError(f"{seal} could not be written ({error.strerror or error}); mend that and run again") from error


def _temporary(path: Path) -> Path:
    # The suffix stays, because savers such as numpy and matplotlib choose the format by it.
    return path.with_name(f".{path.stem}.{platform.node()}-{os.getpid()}{path.suffix}")


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, each name on the disk before what comes below it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def _sync(path: Path) -> None:
    """Return when a file's contents, or a folder's names, are on the disk."""
    if os.name != "posix" and path.is_dir():  # elsewhere a folder cannot be opened
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has nothing to sync
            raise
    finally:
        os.close(descriptor)


def _remove_orphans(path: Path) -> None:
    """Remove what processes of this machine that are no more left of `path`; another machine's may be at work."""
    if os.name != "posix":  # elsewhere a process cannot be asked for without harm
        return
    for other in path.parent.glob(f".{glob.escape(path.stem)}.{glob.escape(platform.node())}-*{path.suffix}"):
        number = other.name.removesuffix(path.suffix).rpartition("-")[2]
        if number.isdecimal() and not _runs(int(number)):
            with contextlib.suppress(OSError):  # another user's, in a shared folder: no reason to write nothing
                other.unlink()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Write `value` to `path` as indented JSON in one step."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON from `path`; raise `UserError` if it is missing, broken or not what was written."""
    check(path)
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({error}); delete it and run again") from None


def save_npz(path: Path, **arrays: np.ndarray) -> None:
    """Save arrays as an uncompressed npz in one step; images load several times faster so."""
    with replacing(path) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)


def load_npz(path: Path, *keys: str) -> dict[str, np.ndarray]:
    """Load the named arrays of an npz file, never unpickling.

    Raises
    ------
    UserError
        If the file is missing, is not what was written or no whole npz, or lacks one of `keys`.
    """
    check(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [key for key in keys if key not in archive]
            if missing:
                raise UserError(f"{path} has no array {', '.join(missing)}; it holds {', '.join(archive)}")
            return {key: archive[key] for key in keys}
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each have their own words for a broken file
        raise UserError(f"{path} is not a whole npz file ({error}); delete it and run again") from None


def read_table(path: Path) -> pd.DataFrame:
    """Read a Parquet table; raise `UserError` if it is missing, broken or not what was written."""
    import pandas as pd

    check(path)
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is not a whole Parquet file ({error}); delete it and run again") from None


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV table, priors and values of keys as they are written.

    Raises
    ------
    UserError
        If the file is missing, broken or not what was written.
    """
    import pandas as pd

    check(path)
    try:
        return pd.read_csv(path, dtype=dict.fromkeys(("prior", "base", "value"), str))
    except ValueError as error:  # among them pandas' ParserError and EmptyDataError, and a wrong encoding
        raise UserError(f"{path} is not a CSV table ({error}); delete it and run again") from None


def write_csv(table: pd.DataFrame, path: Path, exact: bool = False) -> None:
    """Write a CSV table in one step, numbers with ten significant digits, or with all of them if `exact`.

    What is exact is written by Arrow, seven times as fast (270,000 rows of histories in 0.4 s): for large tables.
    """
    with replacing(path) as temporary:
        if not exact:
            table.to_csv(temporary, index=False, float_format="%.10g")
            return
        from pyarrow import Table, csv

        csv.write_csv(
            Table.from_pandas(table, preserve_index=False), temporary, csv.WriteOptions(quoting_style="needed")
        )


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a Parquet table in one step, with its ``attrs`` in the metadata."""
    with replacing(path) as temporary:
        table.to_parquet(temporary, index=False)


def digest(value: object) -> str:
    """Return a 16-digit hexadecimal digest of a JSON-serialisable value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_files(paths: Iterable[Path]) -> str:
    """Return a 16-digit hexadecimal digest of the contents of files, whatever their order."""
    return digest(sorted(sha256(path) for path in paths))


@cache
def git_commit() -> str:
    """Return the repository's commit, with ``-dirty`` when the tree differs; ``unknown`` without a repository."""
    if not (REPOSITORY / ".git").exists():  # installed; a repository around it, if there is one, is another
        return "unknown"
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def origin(**facts: object) -> dict[str, object]:
    """Describe the software and machine that computes here and now; `facts` belong to it too: the device, say."""
    packages = ("mdpu", "numpy", "pandas", "torch", "torchvision")
    return {
        **facts,
        "commit": git_commit(),
        "python": platform.python_version(),
        "packages": versions(packages),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def provenance(started: float, inputs: Iterable[Path] = (), **facts: object) -> dict[str, object]:
    """Describe how an artifact came to be.

    Parameters
    ----------
    started : float
        `time.perf_counter()` at the start of the work.
    inputs : iterable of Path
        Files whose SHA-256 is recorded.
    **facts
        Whatever else belongs there: config digest, device, settings.
    """
    return {
        **origin(**facts, inputs={str(path): sha256(path) for path in inputs}),
        "wall_seconds": round(time.perf_counter() - started, 3),
    }


def versions(packages: Iterable[str]) -> Mapping[str, str]:
    """Return the installed versions of `packages`, leaving out what is not installed."""
    installed = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[package] = importlib.metadata.version(package)
    return installed
