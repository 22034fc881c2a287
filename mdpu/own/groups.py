"""Groups from users' files: a data frame, CSV, Parquet, npz, or pictures in folders, with a report of what they hold.

>>> data = read_groups("groups.csv", group="id")
>>> print(data.report)
>>> MDPUClassifier().fit(data.rows, data.groups)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mdpu.data import SIZES, UNLABELED, Indices, join_groups, number_groups
from mdpu.errors import UserError, printable
from mdpu.prior import row_numbers

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr")  # Pillow's, of at most 8 bits a channel
SHOWN = 5  # columns and sizes that the report names


@dataclass(frozen=True)
class GroupReport:
    """A description of groups before training: counts of groups by size, counts of rows, and names of columns."""

    sizes: dict[int, int]
    n_unlabeled: int
    distinct_unlabeled: int
    repeated_within: int  # groups in which a row stands more than once
    in_two_groups: int  # different rows
    in_group_and_unlabeled: int
    missing: dict[str, int]  # values by column, where there are some
    text: list[str]  # columns that are neither numbers nor dates
    constant: list[str]

    def __str__(self) -> str:
        """Return the report in lines, without those that have nothing to say."""
        sizes = _few([f"{count} of {size} rows" for size, count in self.sizes.items()])
        lines = [
            f"{sum(self.sizes.values())} groups: {sizes}",
            f"{self.n_unlabeled} unlabeled rows, {self.distinct_unlabeled} of them different",
            self.repeated_within and f"{self.repeated_within} groups hold a row more than once",
            self.in_two_groups and f"{self.in_two_groups} rows stand in two groups or more",
            self.in_group_and_unlabeled and f"{self.in_group_and_unlabeled} unlabeled rows stand in groups too",
            self.missing and f"missing values: {_few([f'{name} {count}' for name, count in self.missing.items()])}",
            self.text and f"columns of text, taken as categories (in Python, encode them): {_few(self.text)}",
            self.constant and f"columns of one value: {_few(self.constant)}",
        ]
        return "\n".join(str(line) for line in lines if line)


def _few(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


@dataclass(frozen=True)
class GroupData:
    """Rows (N, ...) and groups (N,) for ``fit(rows, groups)``, names of the groups, files of pictures, the report."""

    rows: Any
    groups: Indices
    names: list[str]
    files: list[Path] | None
    report: GroupReport


def read_groups(
    source: Any, group: str = "group", *, table: Any = None, file: str = "file", size: tuple[int, int] | None = None
) -> GroupData:
    """Return the rows and groups of a source, with a report.

    Parameters
    ----------
    source : DataFrame, str or Path
        A frame, or a CSV or Parquet file. Or an npz file of ``rows`` and ids, or of ``tuples`` and ``unlabeled``. Or a
        folder of pictures with a folder for each group: pictures beside these, or in `unlabeled`, are unlabeled.
    group : str
        The column of ids: text or numbers, and missing, or the integer -1, for unlabeled rows.
    table, file : DataFrame, str or Path, optional; and str
        For pictures that lie together: a table with `group`, and its column of paths below the folder.
    size : (height, width), optional
        The size that pictures are scaled to. Without it, all must have one size.
    """
    rows, ids, files = read_rows(source, group, table=table, file=file, size=size)
    groups = number_groups(ids) if len(ids) else ids
    for count, what in ((np.sum(groups == UNLABELED), "unlabeled rows"), (np.sum(groups != UNLABELED), "groups")):
        if not count:
            raise UserError(f"the source has no {what}: {group} must be empty in unlabeled rows, else a name")
    places = np.unique(groups[groups != UNLABELED], return_index=True)[1]
    first = ids[np.flatnonzero(groups != UNLABELED)[places]]
    names = [str(int(one)) if isinstance(one, float) else str(one) for one in first]  # missing ones make numbers floats
    return GroupData(rows, groups, names, files, report_groups(rows, groups))


def read_rows(
    source: Any,
    group: str | None = None,
    *,
    table: Any = None,
    file: str = "file",
    size: tuple[int, int] | None = None,
    mode: str | None = None,
    text: Sequence[str] = (),
) -> tuple[Any, NDArray[Any], list[Path] | None]:
    """Return the rows of a source as `read_groups` reads it, their ids if `group` is given, and files of pictures.

    In a CSV file, ids and the columns `text` are text, even where all values look like numbers. Pictures get the `mode`
    ``L`` or ``RGB``, or without it that of all.
    """
    if table is not None or (isinstance(source, str | Path) and Path(source).is_dir()):
        files, ids = _list_pictures(Path(source), group, table, file)
        return _read_pictures(files, size, mode), ids, files
    if isinstance(source, str | Path) and Path(source).suffix == ".npz":
        return *_read_npz(Path(source), group), None
    frame = _read_frame(source, group, text)
    if group is None:
        return frame, np.empty(0), None
    return frame.drop(columns=group, errors="ignore"), _column(frame, group).to_numpy(), None


def report_groups(rows: Any, groups: Indices) -> GroupReport:
    """Return the report on rows (N, ...) and on groups (N,) of `number_groups`."""
    contents = row_numbers(rows)
    table = as_numbers(pd.DataFrame(rows if np.ndim(rows) == 2 else None))  # pictures have no named columns
    members = pd.DataFrame({"row": contents, "group": groups})[groups != UNLABELED]
    different = members.drop_duplicates()
    unlabeled = np.unique(contents[groups == UNLABELED])
    sizes, counts = np.unique(np.unique(members["group"]) % SIZES, return_counts=True)
    return GroupReport(
        dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
        int(np.sum(groups == UNLABELED)),
        len(unlabeled),
        members[members.duplicated()]["group"].nunique(),
        int((different["row"].value_counts() > 1).sum()),
        int(np.isin(unlabeled, different["row"]).sum()),
        {str(name): int(count) for name, count in table.isna().sum().items() if count},
        [str(name) for name in table.select_dtypes(exclude=["number", "bool"])],
        [str(name) for name, count in table.nunique(dropna=False).items() if count == 1],
    )


def as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with numbers in columns of dates, as text or not, and of truths: days since 1970, and 0 and 1."""
    frame = frame.copy(deep=False)
    for name, column in frame.select_dtypes(exclude="number").items():
        known = column.dropna()
        if len(known) and known.map(lambda one: isinstance(one, bool)).all():
            frame[name] = column.astype(float)
        elif len(known) and known.astype(str).str.match(r"\d{4}-\d\d-\d\d").all():
            dates = pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce").dt.as_unit("s")  # up to 9999
            frame[name] = (dates - pd.Timestamp(0, tz="UTC").as_unit("s")) / pd.Timedelta(days=1)
    return frame


def _read_frame(source: Any, group: str | None, text: Sequence[str] = ()) -> pd.DataFrame:
    """Return a frame, or that of a CSV or Parquet file."""
    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True)
    readers: dict[str, Callable[[Path], Any]] = {".csv": partial(_read_csv, group, text), ".parquet": pd.read_parquet}
    suffix = Path(source).suffix if isinstance(source, str | Path) else None
    if suffix not in readers:
        raise UserError(f"source is {printable(str(source))[:200]}; take a frame, a folder, .csv, .parquet or .npz")
    return _tried(Path(source), readers[suffix])


def _read_csv(group: str | None, text: Sequence[str], path: Path) -> pd.DataFrame:
    """Return a CSV file with columns of text as such, and with ids as they stand there, such as 007 and NA."""
    frame = pd.read_csv(path, dtype=dict.fromkeys(text, str), low_memory=False)
    if not frame.index.equals(pd.RangeIndex(len(frame))):
        raise ValueError("its lines have more values than its header has names")
    if group in frame:
        ids = pd.read_csv(path, usecols=[group], dtype=str, keep_default_na=False)[group]
        frame[group] = ids.where(~ids.isin(["", str(UNLABELED)]))
    return frame


def _tried(path: Path, read: Callable[[Path], Any]) -> Any:
    """Read a file by a function, or raise `UserError`."""
    try:
        return read(path)
    except Exception as error:  # pandas, pyarrow, zipfile, numpy and Pillow raise different ones for a damaged file
        raise UserError(f"{path} cannot be read: {printable(str(error))[:200]}") from None


def _column(frame: pd.DataFrame, name: str) -> Any:
    if [*frame.columns].count(name) != 1:
        raise UserError(f"one column {name} is needed; there are {_few([str(own) for own in frame.columns])}")
    return frame[name]


def _read_npz(path: Path, group: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows and ids of an npz file."""
    held = _tried(path, lambda own: {**np.load(own, allow_pickle=False)})
    for name in held.keys() & {"rows", "tuples", "unlabeled"}:
        own = held[name]
        if own.dtype.kind not in "biuf" or not 2 <= own.ndim <= 4 + (name == "tuples") or np.isinf(own).any():
            raise UserError(f"{path}: {name} is {own.dtype} of shape {own.shape}; finite rows (N, d), or pictures")
    if group is None and "rows" in held:
        return held["rows"], np.empty(0)
    if group is not None and {"tuples", "unlabeled"} <= held.keys():
        rows, groups = join_groups(held["tuples"], held["unlabeled"])
        return rows, np.where(groups == UNLABELED, UNLABELED, groups // SIZES)
    if not {"rows", group} <= held.keys() or len(held["rows"]) != len(held[group]):
        raise UserError(f"{path} holds {', '.join(held)}; rows and {group} of one length are needed, or tuples")
    return held["rows"], held[group]


def _list_pictures(folder: Path, group: str | None, table: Any, file: str) -> tuple[list[Path], NDArray[Any]]:
    """Return the files of pictures and the ids of their groups: from a table, or from the folders that hold them."""
    if table is not None:
        frame = _read_frame(table, group)
        files = [folder / str(name) for name in _column(frame, file)]
        return files, np.empty(0) if group is None else _column(frame, group).to_numpy()
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in PICTURES)
    if not files:
        raise UserError(f"{folder} holds no pictures ({', '.join(PICTURES)})")
    parts = [path.relative_to(folder).parts[:-1] for path in files]
    return files, np.array([None if part[:1] in ((), ("unlabeled",)) else "/".join(part) for part in parts], object)


def _read_pictures(files: list[Path], size: tuple[int, int] | None, mode: str | None) -> NDArray[np.uint8]:
    """Return pictures (N, H, W) if all are grey, or (N, H, W, 3), uint8."""
    from PIL import Image

    def read(path: Path) -> Any:
        with Image.open(path) as picture:
            if picture.mode not in MODES:
                raise ValueError(f"its mode is {picture.mode}, but 8 bits a channel are needed")
            own = picture.convert(mode or ("L" if picture.mode in ("1", "L") else "RGB"))
        return np.asarray(own if size is None else own.resize((size[1], size[0])))

    pictures = [_tried(path, read) for path in files]
    if len({picture.ndim for picture in pictures}) > 1:
        pictures = [picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=2) for picture in pictures]
    if len(shapes := {picture.shape[:2] for picture in pictures}) > 1:
        raise UserError(f"pictures have the sizes {_few([*map(str, shapes)])}; give size=(height, width)")
    return np.stack(pictures)
