"""Files that are either whole or absent, and the provenance written beside them."""

from __future__ import annotations

import contextlib
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
    name behind, which the next one removes, and two writers of the same file do each other no harm.

    Raises
    ------
    UserError
        If the block fails with an `OSError`, e.g. because the disk is full.
    """
    path = Path(path)
    # The suffix stays, because savers such as numpy and matplotlib choose the format by it.
    temporary = path.with_name(f".{path.stem}.{platform.node()}-{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_orphans(path)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path} could not be written ({error.strerror or error}); mend that and run again") from error
    finally:
        temporary.unlink(missing_ok=True)


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
    """Read JSON from `path`; raise `UserError` if it is missing or broken."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; run the rule that makes it") from None
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
        If the file is missing, is not a whole npz, or lacks one of `keys`.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [key for key in keys if key not in archive]
            if missing:
                raise UserError(f"{path} has no array {', '.join(missing)}; it holds {', '.join(archive)}")
            return {key: archive[key] for key in keys}
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; run the rule that makes it") from None
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each have their own words for a broken file
        raise UserError(f"{path} is not a whole npz file ({error}); delete it and run again") from None


def read_table(path: Path) -> pd.DataFrame:
    """Read a Parquet table; raise `UserError` if it is missing or broken."""
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; run the rule that makes it") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is not a whole Parquet file ({error}); delete it and run again") from None


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV table, priors and values of keys as they are written; raise `UserError` if it is missing or broken."""
    import pandas as pd

    try:
        return pd.read_csv(path, dtype=dict.fromkeys(("prior", "base", "value"), str))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; run the rule that makes it") from None
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


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits; raise `UserError` if it is missing."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; run the rule that makes it") from None


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
    found = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found
