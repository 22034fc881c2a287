"""Finished runs, found by what was asked for.

A run's *key* is the digest of what `mdpu.pipeline.job.asked` returns. A cell's file holds its runs,
all seeds, by key; so a job adds what is missing, and runs of an earlier configuration stay. Runs
that are shipped with the repository lie in packed files of the same form, with a text of their keys
beside each, which is all that a workflow reads before it starts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from mdpu.errors import UserError
from mdpu.files import atomic
from mdpu.methods import load_method
from mdpu.pipeline.files import digest

if TYPE_CHECKING:
    import pandas as pd

KEY = "key"
ABOUT = "about"


@dataclass(frozen=True)
class Stored:
    """A finished run.

    Attributes
    ----------
    key : str
    history : DataFrame
        A row per epoch: ``epoch``, from 1, and the measures (`mdpu.pipeline.job.run_history`).
    about : dict
        ``asked``, whose digest is the key; ``device``, ``precision``, ``date``, ``commit`` and
        ``packages`` of the training; ``drawn``, counts of its tuples and unlabeled images; and
        ``sha256`` of the history's values.
    """

    key: str
    history: pd.DataFrame
    about: dict[str, Any]

    @classmethod
    def of(cls, asked: Mapping[str, Any], history: pd.DataFrame, **about: Any) -> Stored:
        """Return a run that has just been trained."""
        facts = json.loads(json.dumps({"asked": dict(asked), **about, "sha256": checksum(history)}))
        return cls(digest(facts["asked"]), history, facts)

    @property
    def precision(self) -> str:
        """Precision of the training's matrix products; ``float32`` for a method that has none."""
        if not load_method(self.about["asked"]["method"]).trains_network:
            return "float32"
        return str(self.about["precision"])


def checksum(history: pd.DataFrame) -> str:
    """Return the SHA-256 of a history's values; the order of its columns and empty columns do not
    matter.
    """
    return _checksum(list(history.columns), history.to_numpy(np.float64))


def _checksum(names: Sequence[str], values: NDArray[np.float64]) -> str:
    """Return the checksum of a history's values (epochs, names)."""
    total = hashlib.sha256()
    # a NaN may have a sign, which a file does not keep
    values = np.where(np.isnan(values), np.nan, values)
    for place in sorted(range(len(names)), key=names.__getitem__):
        column = values[:, place]
        if not np.isnan(column).all():
            total.update(names[place].encode() + b"\0" + column.tobytes())
    return total.hexdigest()


def read_runs(path: Path, keys: Collection[str] | None = None) -> dict[str, Stored]:
    """Return the runs of a cell's file or of a packed file by key, all or those asked for that are
    in it.

    Raises
    ------
    UserError
        If the file is missing or damaged: a run's values do not match their checksum, or its key is
        another's.
    """
    filters = None
    if keys is not None:
        if not keys:
            return {}
        filters = [(KEY, "in", list(keys))]
    try:
        table = parquet.read_table(path, filters=filters)
        return {run.key: run for run in _runs(table)}
    except FileNotFoundError:
        raise UserError(f"{path} is not there; run the workflow, or restore it") from None
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise UserError(
            f"{path} is damaged ({words}); delete it, then name it as a target to make it again"
        ) from None


def _runs(table: pa.Table) -> Iterator[Stored]:
    """Yield the runs of a table, whose rows follow one another."""
    import pandas as pd  # a plan reads only keys, and does without it

    keys = table[KEY].to_numpy()
    about = table[ABOUT]
    measures = table.drop_columns([KEY, ABOUT])
    names = measures.column_names
    # (rows, names)
    values = np.column_stack([column.to_numpy().astype(np.float64) for column in measures.columns])
    is_first = np.ones(len(keys), dtype=bool)
    is_first[1:] = keys[1:] != keys[:-1]
    starts = np.flatnonzero(is_first).tolist()
    ends = [*starts[1:], len(keys)]
    for start, end in zip(starts, ends, strict=False):  # no start, no run
        key = str(keys[start])
        facts = json.loads(about[start].as_py())
        of_run = values[start:end]
        if facts["sha256"] != _checksum(names, of_run):
            raise ValueError(f"the values of run {key} do not match their checksum")
        if key != digest(facts["asked"]):
            raise ValueError(f"the key {key} is another run's")

        # Other runs of the table may have more measures. One that diverged at once still has these
        # three.
        is_measured = ~np.isnan(of_run).all(axis=0)
        is_measured |= np.isin(names, ("epoch", "objective", "accuracy"))
        history = pd.DataFrame(of_run[:, is_measured], columns=np.array(names)[is_measured])
        history["epoch"] = history["epoch"].astype(int)
        yield Stored(key, history, facts)


def write_runs(path: Path, runs: Iterable[Stored], **options: Any) -> None:
    """Write runs into one file, beside its place and renamed, so two writers of one cell do no
    harm.

    `options` are those of `pandas.DataFrame.to_parquet`.
    """
    import pandas as pd

    frames = [
        run.history.assign(**{KEY: run.key, ABOUT: json.dumps(run.about, sort_keys=True)})
        for run in sorted(runs, key=lambda run: (run.about["asked"]["trial"], run.key))
    ]
    rows = pd.concat(frames, ignore_index=True)
    columns = [KEY, ABOUT, *rows.columns.drop([KEY, ABOUT])]
    with atomic(path) as temporary:
        rows[columns].to_parquet(temporary, index=False, **options)


def pack(path: Path, runs: Iterable[Stored]) -> None:
    """Write runs into a packed file, a fifth of their size, with the text of their keys (.keys)
    beside it.
    """
    by_key = {run.key: run for run in runs}
    measures: set[str] = set()
    for run in by_key.values():
        measures.update(run.history.columns)
    write_runs(
        path,
        by_key.values(),
        compression="zstd",
        compression_level=19,
        use_dictionary=[KEY, ABOUT, "epoch"],
        column_encoding=dict.fromkeys(sorted(measures - {"epoch"}), "BYTE_STREAM_SPLIT"),
    )
    with atomic(path.with_suffix(".keys")) as temporary:
        temporary.write_text("".join(f"{key}\n" for key in sorted(by_key)))


def shipped_keys(folder: Path) -> dict[str, Path]:
    """Return the packed file of a folder that holds a run, by key; ``mnist-2`` if ``mnist`` holds
    it too.

    A packed file that is not there holds nothing, so its runs are trained.
    """
    files: dict[str, Path] = {}
    for text in sorted(folder.glob("*.keys"), key=lambda path: path.stem):
        packed = text.with_suffix(".parquet")
        if packed.exists():
            files.update(dict.fromkeys(text.read_text().split(), packed))
    return files
