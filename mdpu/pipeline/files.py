"""Files of many kinds, written by `mdpu.files.atomic` and noticed when read damaged; progress."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from tqdm import tqdm

from mdpu.errors import UserError
from mdpu.files import atomic

if TYPE_CHECKING:
    import pandas as pd

PACKAGE, REPOSITORY = Path(__file__).resolve().parents[1:3]


def resource(name: str) -> Path:
    """Return a file or folder of the repository, by its path there; an installed package has it in
    ``resources``.
    """
    for path in (PACKAGE / "resources" / name, REPOSITORY / name):
        if path.exists():
            return path
    raise FileNotFoundError(f"the installation of mdpu is incomplete: it lacks {name}")


def progress(what: str, total: int, unit: str) -> tqdm[NoReturn]:
    """Return a bar of progress, which moves on a terminal, and of which a log keeps the last
    state.
    """
    moves = sys.stderr.isatty()
    return tqdm(
        desc=what, total=total, unit=f" {unit}", mininterval=0.1 if moves else 10.0, leave=not moves
    )


def digest(value: object) -> str:
    """Return a 16-digit hexadecimal digest of a JSON-serialisable value."""
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, ensure_ascii=False).encode()
    ).hexdigest()[:16]


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits; raise `UserError` if it is missing or
    cannot be read.
    """
    with _reading(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write text."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Write a value as indented JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def save_npz(path: Path, **arrays: np.ndarray) -> None:
    """Save arrays as an npz, uncompressed, because images then load several times faster."""
    with atomic(path) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)


def write_csv(table: pd.DataFrame, path: Path, digits: int = 10) -> None:
    """Write a CSV table, with so many significant digits a number."""
    with atomic(path) as temporary:
        table.to_csv(temporary, index=False, float_format=f"%.{digits}g")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a Parquet table, with its ``attrs`` in the metadata and a checksum for each page."""
    with atomic(path) as temporary:
        table.to_parquet(temporary, index=False, write_page_checksum=True)


@contextlib.contextmanager
def _reading(path: Path, what: str = "readable") -> Iterator[None]:
    """Turn what goes wrong in the block into a `UserError` that names the file and `what` it should
    be.
    """
    if not path.is_file():  # a pipe would block
        raise UserError(
            f"{path} does not exist, or is not a regular file; run the rule that makes it"
        )
    try:
        yield
    # zipfile, zlib, numpy, pandas and pyarrow raise different errors for a damaged file
    except Exception as error:
        if isinstance(error, UserError | MemoryError):
            raise
        if isinstance(error, OSError) and error.errno:
            raise UserError(
                f"{path} could not be read ({error.strerror or error}); fix that and run again"
            ) from None
        raise UserError(
            f"{path} is not {what} ({error}); delete it and run again, with it as the target"
        ) from None


def read_json(path: Path) -> Any:
    """Read JSON; like the other readers, raise `UserError` if the file is missing or damaged."""
    with _reading(path, "valid JSON"):
        return json.loads(path.read_bytes())


def load_npz(path: Path, *keys: str) -> dict[str, np.ndarray]:
    """Load the named arrays of an npz file, never unpickling; the zip's checksums show damage."""
    with _reading(path, "a whole npz file"), np.load(path, allow_pickle=False) as archive:
        if missing := [key for key in keys if key not in archive]:
            raise UserError(
                f"{path} has no array {', '.join(missing)}; it holds {', '.join(archive)}"
            )
        return {key: archive[key] for key in keys}


# columns of tables whose values are text, also where they are made of digits or read "nan"
TEXTS = (
    "dataset",
    "published_dataset",
    "variant",
    "prior",
    "method",
    "loss",
    "law",
    "base",
    "key",
    "selection",
    "value",
)


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV table; names, priors and the values of keys stay text, and empty fields alone are
    missing.
    """
    import pandas as pd

    with _reading(path, "a CSV table"):
        texts = dict.fromkeys(TEXTS, str)
        return pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=[""])


def read_table(path: Path, columns: Collection[str] | None = None) -> pd.DataFrame:
    """Read a Parquet table, or those of some columns that it has; the checksums of its pages show
    damage.
    """
    import pandas as pd
    from pyarrow.parquet import read_schema

    with _reading(path, "a whole Parquet file"):
        chosen = [name for name in read_schema(path).names if columns is None or name in columns]
        return pd.read_parquet(path, columns=chosen, page_checksum_verification=True)
