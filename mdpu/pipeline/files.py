"""Files that are whole or absent, each with a *seal* beside it: its checksum, and what it was made from and by.

A file is the old one or the new one, and matches its seal, even if a process is killed or the power fails: contents
reach the disk before the name does, and the name before anything that depends on it. A cut between a file and its seal
is a mismatch, so the file is made again. The seal of ``metrics.parquet`` is ``.metrics.parquet.seal``, in JSON. So
every number can be traced back, from the page to the images.
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
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from mdpu.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

PACKAGE = Path(__file__).resolve().parents[1]
REPOSITORY = PACKAGE.parent
PACKAGES = ("mdpu", "numpy", "pandas", "torch", "torchvision")  # whose versions are recorded

# What is known of the current command, and what it has read: path to SHA-256. Nothing is recorded outside `recording`.
_MADE: ContextVar[dict[str, object] | None] = ContextVar("made", default=None)
_READ: ContextVar[dict[str, str] | None] = ContextVar("read", default=None)


def resource(name: str) -> Path:
    """Return a file or folder that travels with the package, by its path in the repository.

    In the repository some of these lie outside ``mdpu``; an installed package has them in its folder ``resources``.
    """
    for folder in (PACKAGE / "resources", REPOSITORY):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"mdpu is not installed whole: it lacks {name}")


@dataclass(frozen=True)
class Seal:
    """What is known of a file, as it was written: its SHA-256, that of each file that was read to make it, its origin.

    ``edited`` says that somebody deliberately changed the file by hand afterwards.
    """

    sha256: str
    inputs: dict[str, str] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)
    edited: bool = False


def _of_facts(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def seal_path(path: Path) -> Path:
    """Return the path of a file's seal."""
    return path.with_name(f".{path.name}.seal")


def is_seal(path: Path) -> bool:
    """Return whether a file is a seal, judging by its name."""
    return path.name.startswith(".") and path.suffix == ".seal"


def sealed_path(seal: Path) -> Path:
    """Return the file that a seal belongs to."""
    return seal.with_name(seal.name.removeprefix(".").removesuffix(".seal"))


def read_seal(path: Path) -> Seal | None:
    """Return a file's seal, or None if it has none; a broken seal matches nothing."""
    try:
        facts = json.loads(seal_path(path).read_text(encoding="utf-8"))
        own = facts.pop("seal", None)
        return Seal(**facts) if own == _of_facts(facts) else Seal("broken")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(seal_path(path), error) from None
    except (ValueError, TypeError, AttributeError):
        return Seal("broken")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits; raise `UserError` if it is missing or cannot be read."""
    if path.is_fifo():  # reading it would block
        raise UserError(f"{path} is a pipe, not a file")
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; run the rule that makes it") from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"{path} could not be read ({error.strerror or error}); mend that and run again")


def check(path: Path) -> str:
    """Return the SHA-256 of a file that is about to be read, and record it as an input of what is written next.

    A file without a seal, such as one of the user's own, is taken as it is; one that does not match its seal is
    refused.
    """
    for _ in range(2):
        checksum, seal = sha256(path), read_seal(path)
        if seal is None or checksum == seal.sha256:
            break
        any(path.parent.iterdir())  # a network file system may show another node's new seal only after that
    else:
        raise UserError(
            f"{path} is not what was written: it has changed since; ./run makes it anew, and "
            f"`python -m mdpu accept {path}` keeps it as it is"
        )
    if (read := _READ.get()) is not None:
        read[str(path)] = checksum
    return checksum


def is_intact(path: Path) -> bool:
    """Return whether a file exists and matches its seal."""
    seal = read_seal(path)
    return seal is not None and path.is_file() and sha256(path) == seal.sha256


@contextlib.contextmanager
def recording(**facts: object) -> Iterator[None]:
    """Record what is read in the block, for the seals of what is written in it; one block surrounds each command."""
    made, read = _MADE.set(facts), _READ.set({})
    try:
        yield
    finally:
        _MADE.reset(made)
        _READ.reset(read)


def note(**facts: object) -> None:
    """Record further facts, such as the device, for the seals of what the current command writes from now on."""
    if (made := _MADE.get()) is not None:
        made.update(facts)


def accept(path: Path) -> None:
    """Seal a file as it is now and mark it as edited, after a deliberate change by hand."""
    _write_seal(path, replace(read_seal(path) or Seal(""), sha256=sha256(path), edited=True))


def _write_seal(path: Path, seal: Seal) -> None:
    """Write a seal, with a checksum of its own."""
    facts = asdict(seal)
    with atomic(seal_path(path)) as temporary:
        text = json.dumps({**facts, "seal": _of_facts(facts)}, indent=1, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")


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


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    installed = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[package] = importlib.metadata.version(package)
    return installed


def origin(**facts: object) -> dict[str, Any]:
    """Describe the software and the machine of this process, with further `facts` such as the device."""
    return {
        **facts,
        "commit": git_commit(),
        "python": platform.python_version(),
        "packages": versions(PACKAGES),
        "machine": f"{platform.system()} {platform.machine()}",
    }


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that becomes `path` when the block succeeds.

    Readers see the old file or the new one, never a partial one. A killed writer leaves only a temporary file behind,
    which the next writer removes. Two writers of the same file do not disturb each other. An `OSError`, such as of a
    full disk, ends in `UserError`.
    """
    if path.exists() and not path.is_file():  # a device, a pipe or a folder
        raise UserError(f"{path} is no regular file; name another one")
    # The suffix is kept, because numpy and matplotlib choose the format by it.
    temporary = path.with_name(f".{path.stem}.{platform.node()}-{os.getpid()}{path.suffix}")
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
    """Write a file as `atomic` does, and its seal after it."""
    with atomic(path) as temporary:
        yield temporary
    inputs = {name: value for name, value in (_READ.get() or {}).items() if name != str(path)}
    _write_seal(path, Seal(sha256(path), inputs, origin(**(_MADE.get() or {}))))


def remove(path: Path) -> None:
    """Delete a file, if it exists, and then its seal."""
    path.unlink(missing_ok=True)
    seal_path(path).unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    """Create a folder and its parents; each name is on the disk before anything below it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def _sync(path: Path) -> None:
    """Wait until a file's contents, or a folder's entries, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the file system has nothing to sync
            raise
    finally:
        os.close(descriptor)


def _remove_orphans(path: Path) -> None:
    """Remove the temporary files that dead processes of this machine left of `path`; other machines' may be alive."""
    for other in path.parent.glob(f".{glob.escape(path.stem)}.{glob.escape(platform.node())}-*{path.suffix}"):
        number = other.name.removesuffix(path.suffix).rpartition("-")[2]
        if number.isdecimal() and not psutil.pid_exists(int(number)):
            with contextlib.suppress(OSError):  # another user's, in a shared folder: it does no harm
                other.unlink()


def write_text(path: Path, text: str) -> None:
    """Write text."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Write a value as indented JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def save_npz(path: Path, **arrays: np.ndarray) -> None:
    """Save arrays as an npz, uncompressed, because images then load several times faster."""
    import numpy as np

    with replacing(path) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a CSV table, with ten significant digits a number."""
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False, float_format="%.10g")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a Parquet table, with its ``attrs`` in the metadata."""
    with replacing(path) as temporary:
        table.to_parquet(temporary, index=False)


@contextlib.contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Check a file, and name it and `what` it should be in the error if the block cannot read it."""
    check(path)
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:  # zipfile, zlib, numpy, pandas and pyarrow raise different errors for a broken file
        if isinstance(error, OSError) and error.errno:
            raise _unreadable(path, error) from None
        raise UserError(f"{path} is not {what} ({error}); delete it and run again") from None


def read_json(path: Path) -> Any:
    """Read JSON; like the other readers, refuse a file that is missing, broken or changed since it was written."""
    with _reading(path, "valid JSON"):
        return json.loads(path.read_text(encoding="utf-8"))


def load_npz(path: Path, *keys: str) -> dict[str, np.ndarray]:
    """Load the named arrays of an npz file, never unpickling."""
    import numpy as np

    with _reading(path, "a whole npz file"), np.load(path, allow_pickle=False) as archive:
        missing = [key for key in keys if key not in archive]
        if missing:
            raise UserError(f"{path} has no array {', '.join(missing)}; it holds {', '.join(archive)}")
        return {key: archive[key] for key in keys}


def read_table(
    path: Path, columns: Collection[str] | None = None, among: Mapping[str, Collection[Any]] | None = None
) -> pd.DataFrame:
    """Read a Parquet table: some of its columns, as far as it has them, and rows with values `among` those of columns.

    Histories of the whole paper are read five times as fast by three of their columns as by all.
    """
    import pandas as pd
    from pyarrow.parquet import read_schema

    with _reading(path, "a whole Parquet file"):
        chosen = None if columns is None else [name for name in read_schema(path).names if name in columns]
        kept = [(name, "in", sorted(values)) for name, values in (among or {}).items()]
        return pd.read_parquet(path, columns=chosen, filters=kept or None)


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV table; priors and the values of keys stay text."""
    import pandas as pd

    with _reading(path, "a CSV table"):
        return pd.read_csv(path, dtype=dict.fromkeys(("prior", "base", "value"), str))


def digest(value: object) -> str:
    """Return a 16-digit hexadecimal digest of a JSON-serialisable value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
