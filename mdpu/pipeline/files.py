"""Files that are either whole or absent, and the provenance written beside them.

A file is always the old one or the new one, and matches its seal (`mdpu.pipeline.seals`), even if a process is killed
or the power fails. To this end the contents reach the disk before the name does, and the name before anything that
depends on it.
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
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mdpu.errors import UserError
from mdpu.pipeline.seals import Seal, check, make_seal, read_seal, seal_path, sha256

if TYPE_CHECKING:
    import pandas as pd

PACKAGE = Path(__file__).resolve().parents[1]
REPOSITORY = PACKAGE.parent


def resource(name: str) -> Path:
    """Return a file or folder that travels with the package, such as the schema or the templates of the report.

    In the repository some of these lie outside ``mdpu``; an installed package has them in its folder ``resources``.

    Parameters
    ----------
    name : str
        Path in the repository.

    Raises
    ------
    FileNotFoundError
        If it is missing.
    """
    for folder in (PACKAGE / "resources", REPOSITORY):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"mdpu is not installed whole: it lacks {name}")


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that becomes `path` when the block succeeds.

    Readers see the old file or the new one, never a partial one. A killed writer leaves only a temporary file behind,
    which the next writer removes. Two writers of the same file do not disturb each other.

    Raises
    ------
    UserError
        If the block fails with an `OSError`, e.g. because the disk is full, or something else than a file is there.
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # a device, a pipe or a folder
        raise UserError(f"{path} is no regular file; name another one")
    temporary = _temporary(path)
    try:
        _make_folder(path.parent)
        _remove_orphans(path)
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise UserError(f"{path} could not be written ({error.strerror or error}); mend that and run again") from error
    finally:
        with contextlib.suppress(OSError):  # e.g. its folder is gone: the first error is the one to report
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file as `atomic` does, and its seal after it.

    A power cut between the two leaves a file that does not match its seal, so it is made again.
    """
    with atomic(path) as temporary:
        yield temporary
    seal = make_seal(Path(path), sha256(path))
    with atomic(seal_path(path)) as temporary:
        temporary.write_text(seal.to_json(), encoding="utf-8")


def remove(path: Path) -> None:
    """Delete a file, if it exists, and then its seal."""
    path.unlink(missing_ok=True)
    seal_path(path).unlink(missing_ok=True)


def accept(path: Path) -> None:
    """Seal a file as it is now and mark it as edited, after a deliberate change by hand.

    Raises
    ------
    UserError
        If the file is missing or its seal cannot be written.
    """
    old = read_seal(path)
    seal = Seal(sha256(path), inputs=old.inputs if old else {}, edited=True)
    with atomic(seal_path(path)) as temporary:
        temporary.write_text(seal.to_json(), encoding="utf-8")


def _temporary(path: Path) -> Path:
    # The suffix is kept, because numpy and matplotlib choose the format by it.
    return path.with_name(f".{path.stem}.{platform.node()}-{os.getpid()}{path.suffix}")


def _make_folder(folder: Path) -> None:
    """Create a folder and its parents; each name is on the disk before anything below it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def _sync(path: Path) -> None:
    """Wait until a file's contents, or a folder's entries, are on the disk."""
    if os.name != "posix" and path.is_dir():  # only POSIX systems can open a folder
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the file system has nothing to sync
            raise
    finally:
        os.close(descriptor)


def _remove_orphans(path: Path) -> None:
    """Remove the temporary files that dead processes of this machine left of `path`.

    Processes of other machines may still be running, so their files stay.
    """
    if os.name != "posix":  # only POSIX systems can look for a process without disturbing it
        return
    for other in path.parent.glob(f".{glob.escape(path.stem)}.{glob.escape(platform.node())}-*{path.suffix}"):
        number = other.name.removesuffix(path.suffix).rpartition("-")[2]
        if number.isdecimal() and not _runs(int(number)):
            with contextlib.suppress(OSError):  # another user's, in a shared folder: it does no harm
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
    """Read JSON from `path`; raise `UserError` if it is missing, broken or changed since it was written."""
    with _reading(path, "valid JSON"):
        return json.loads(Path(path).read_text(encoding="utf-8"))


@contextlib.contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Check a file, and name it in the error if the block cannot read it.

    Parameters
    ----------
    path : Path
    what : str
        What the file should be, for the message.

    Raises
    ------
    UserError
        If the file is missing, broken or changed since it was written, or the system cannot read it.
    """
    check(path)
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:  # zipfile, zlib, numpy, pandas and pyarrow raise different errors for a broken file
        if isinstance(error, OSError) and error.errno:
            raise UserError(f"{path} could not be read ({error.strerror}); mend that and run again") from None
        raise UserError(f"{path} is not {what} ({error}); delete it and run again") from None


def save_npz(path: Path, **arrays: np.ndarray) -> None:
    """Save arrays as an npz in one step, uncompressed, because images then load several times faster."""
    with replacing(path) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)


def load_npz(path: Path, *keys: str) -> dict[str, np.ndarray]:
    """Load the named arrays of an npz file, never unpickling.

    Raises
    ------
    UserError
        If the file is missing, broken or changed since it was written, or lacks one of `keys`.
    """
    with _reading(path, "a whole npz file"), np.load(path, allow_pickle=False) as archive:
        missing = [key for key in keys if key not in archive]
        if missing:
            raise UserError(f"{path} has no array {', '.join(missing)}; it holds {', '.join(archive)}")
        return {key: archive[key] for key in keys}


def read_table(
    path: Path, columns: Collection[str] | None = None, among: Mapping[str, Collection[Any]] | None = None
) -> pd.DataFrame:
    """Read a Parquet table.

    Parameters
    ----------
    path : Path
    columns : collection of str, optional
        What to read, as far as the table has it. Histories of the whole paper are read five times as fast by three of
        their columns as by all.
    among : mapping, optional
        Values by column; only rows with one of the values in each column are read.

    Raises
    ------
    UserError
        If the file is missing, broken or changed since it was written.
    """
    import pandas as pd
    from pyarrow.parquet import read_schema

    with _reading(path, "a whole Parquet file"):
        chosen = None if columns is None else [name for name in read_schema(path).names if name in columns]
        kept = [(name, "in", sorted(values)) for name, values in (among or {}).items()]
        return pd.read_parquet(path, columns=chosen, filters=kept or None)


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV table; priors and the values of keys stay text.

    Raises
    ------
    UserError
        If the file is missing, broken or changed since it was written.
    """
    import pandas as pd

    with _reading(path, "a CSV table"):
        return pd.read_csv(path, dtype=dict.fromkeys(("prior", "base", "value"), str))


def write_csv(table: pd.DataFrame, path: Path, exact: bool = False) -> None:
    """Write a CSV table in one step, with ten significant digits a number, or with all of them if `exact`.

    Arrow writes the exact ones and is seven times as fast (270,000 rows of histories in 0.4 s), so it suits large
    tables.
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


@cache
def git_commit() -> str:
    """Return the repository's commit, with ``-dirty`` when the tree differs; ``unknown`` without a repository."""
    if not (REPOSITORY / ".git").exists():  # installed; a repository around the installation is another project's
        return "unknown"
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def origin(**facts: object) -> dict[str, object]:
    """Describe the software and the machine of this process, with further `facts` such as the device."""
    packages = ("mdpu", "numpy", "pandas", "torch", "torchvision")
    return {
        **facts,
        "commit": git_commit(),
        "python": platform.python_version(),
        "packages": versions(packages),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def provenance(started: float, inputs: Iterable[Path] = (), **facts: object) -> dict[str, object]:
    """Describe how an artifact was made.

    Parameters
    ----------
    started : float
        `time.perf_counter()` at the start of the work.
    inputs : iterable of Path
        Files whose SHA-256 is recorded.
    **facts
        Anything else that belongs there: config digest, device, settings.
    """
    return {
        **origin(**facts, inputs={str(path): sha256(path) for path in inputs}),
        "wall_seconds": round(time.perf_counter() - started, 3),
    }


def versions(packages: Iterable[str]) -> Mapping[str, str]:
    """Return the versions of those `packages` that are installed."""
    installed = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[package] = importlib.metadata.version(package)
    return installed
