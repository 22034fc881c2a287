"""Groups from people's files: a data frame, CSV, Parquet, npz, or pictures in folders, with a report of what they hold.

>>> data = read_groups("groups.csv", group="id")
>>> print(data.report)
>>> MDPUClassifier().fit(data.rows, data.groups)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpu.data import SIZES, UNLABELED, Indices, join_groups, number_groups
from mdpu.errors import UserError, printable
from mdpu.prior import row_numbers

if TYPE_CHECKING:
    import pandas as pd

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
UNLABELED_FOLDER = "unlabeled"
SHOWN = 5  # columns and sizes that the report names


@dataclass(frozen=True)
class GroupReport:
    """What groups hold, before anything trains.

    Attributes
    ----------
    sizes : dict from int to int
        Number of groups of each size.
    n_unlabeled, distinct_unlabeled : int
        Unlabeled rows, and how many different ones.
    repeated_within : int
        Groups in which a row stands more than once.
    in_two_groups, in_group_and_unlabeled : int
        Different rows that stand in two groups or more, and in a group and among the unlabeled ones.
    missing : dict from str to int
        Missing values by column, where there are some.
    text, constant : list of str
        Columns that are no numbers, and columns of one value.
    """

    sizes: dict[int, int]
    n_unlabeled: int
    distinct_unlabeled: int
    repeated_within: int
    in_two_groups: int
    in_group_and_unlabeled: int
    missing: dict[str, int]
    text: list[str]
    constant: list[str]

    def __str__(self) -> str:
        """Return the report in lines, the last ones of what to look at."""
        sizes = [f"{count} of {size}" for size, count in sorted(self.sizes.items())]
        lines = [
            f"{sum(self.sizes.values())} groups, {_few(sizes)} rows",
            f"{self.n_unlabeled} unlabeled rows, {self.distinct_unlabeled} of them different",
        ]
        counted = {
            "groups hold a row more than once": self.repeated_within,
            "rows stand in two groups or more": self.in_two_groups,
            "rows stand in a group and among the unlabeled ones": self.in_group_and_unlabeled,
        }
        lines += [f"{count} {what}" for what, count in counted.items() if count]
        if self.missing:
            lines.append(f"missing values: {_few([f'{name} {count}' for name, count in self.missing.items()])}")
        if self.text:
            lines.append(f"no numbers, which need an encoder before the classifier: {_few(self.text)}")
        if self.constant:
            lines.append(f"columns of one value: {_few(self.constant)}")
        return "\n".join(lines)


def _few(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


@dataclass(frozen=True)
class GroupData:
    """Rows and groups for ``fit(rows, groups)``, and the report.

    Attributes
    ----------
    rows : DataFrame or ndarray, shape (N, ...)
    groups : ndarray, int64, shape (N,)
        As `mdpu.data.number_groups` gives them.
    names : list of str
        Of the groups, in their order.
    files : list of Path or None
        Of pictures, the file of each row.
    report : GroupReport
    """

    rows: Any
    groups: Indices
    names: list[str]
    files: list[Path] | None
    report: GroupReport


def read_groups(
    source: Any,
    group: str = "group",
    *,
    table: Any = None,
    file: str = "file",
    size: tuple[int, int] | None = None,
) -> GroupData:
    """Return the rows and groups of a source, with a report.

    Parameters
    ----------
    source : DataFrame, str or Path
        A frame with a column of ids, or the CSV or Parquet file of one. Or an npz file: ``rows`` and, by the name in
        `group`, their ids, or ``tuples`` and ``unlabeled``. Or a folder of pictures: one folder for each group, while
        pictures beside these, or in a folder `unlabeled`, are unlabeled.
    group : str
        The column of ids: text or numbers, and missing, or the integer -1, for unlabeled rows.
    table : DataFrame, str or Path, optional
        Of a folder of pictures that lie together, the table with the columns `file` and `group`.
    file : str
        The column of paths below the folder.
    size : (height, width), optional
        To which pictures are scaled. Without it, all must have one size.

    Raises
    ------
    UserError
        If the source cannot be read, lacks a column, or holds no group or no unlabeled row.
    """
    files = None
    if table is not None or (isinstance(source, str | Path) and Path(source).is_dir()):
        files, ids = _list_pictures(Path(source), group, table, file)
        rows: Any = _read_pictures(files, size)
    elif isinstance(source, str | Path) and Path(source).suffix == ".npz":
        rows, ids = _read_npz(Path(source), group)
    else:
        frame = _read_frame(source)
        rows, ids = frame.drop(columns=group, errors="ignore"), _column(frame, group).to_numpy()
    groups = number_groups(ids)
    for count, what in ((np.sum(groups == UNLABELED), "unlabeled rows"), (np.sum(groups != UNLABELED), "groups")):
        if not count:
            raise UserError(f"the source has no {what}: {group} is missing for unlabeled rows, and names a group else")
    places = np.unique(groups[groups != UNLABELED], return_index=True)[1]
    names = [str(ids[place]) for place in np.flatnonzero(groups != UNLABELED)[places]]
    return GroupData(rows, groups, names, files, report_groups(rows, groups))


def report_groups(rows: Any, groups: Indices) -> GroupReport:
    """Return what rows (N, ...) and groups (N,) of `number_groups` hold."""
    import pandas as pd

    frame = rows if isinstance(rows, pd.DataFrame) else None
    table = frame if frame is not None else (pd.DataFrame(rows) if np.ndim(rows) == 2 else None)
    contents = pd.util.hash_pandas_object(frame, index=False).to_numpy() if frame is not None else row_numbers(rows)
    is_member = groups != UNLABELED
    members = pd.DataFrame({"row": contents[is_member], "group": groups[is_member]})
    different = members.drop_duplicates()
    unlabeled = np.unique(contents[~is_member])
    numbers = np.unique(members["group"])
    missing = {} if table is None else {str(name): int(count) for name, count in table.isna().sum().items() if count}
    kinds = (
        {} if frame is None else {str(name): pd.api.types.is_numeric_dtype(kind) for name, kind in frame.dtypes.items()}
    )
    return GroupReport(
        {int(size): int(count) for size, count in zip(*np.unique(numbers % SIZES, return_counts=True), strict=True)},
        int(np.sum(~is_member)),
        len(unlabeled),
        members[members.duplicated()]["group"].nunique(),
        int((different["row"].value_counts() > 1).sum()),
        int(np.isin(unlabeled, different["row"]).sum()),
        missing,
        [name for name, is_number in kinds.items() if not is_number],
        [] if table is None else [str(name) for name, count in table.nunique(dropna=False).items() if count == 1],
    )


def _read_frame(source: Any) -> pd.DataFrame:
    """Return a frame, or that of a CSV or Parquet file."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True)
    if not isinstance(source, str | Path):
        raise UserError(f"source is a {type(source).__name__}; a DataFrame, a file or a folder is needed")
    readers: dict[str, Callable[[Path], Any]] = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    path = Path(source)
    if path.suffix not in readers:
        raise UserError(f"{path} is no folder, and its name ends in none of .csv, .parquet and .npz")
    return _tried(path, readers[path.suffix])


def _tried(path: Path, read: Callable[[Path], Any]) -> Any:
    """Return what a reader makes of a file, or raise `UserError`."""
    try:
        return read(path)
    except Exception as error:  # pandas, pyarrow, zipfile, numpy and Pillow raise different ones for a damaged file
        raise UserError(f"{path} cannot be read: {printable(str(error))[:200]}") from None


def _column(frame: pd.DataFrame, name: str) -> Any:
    if name not in frame.columns or frame.columns.tolist().count(name) > 1:
        raise UserError(f"one column {name} is needed; there are {_few([str(own) for own in frame.columns])}")
    return frame[name]


def _read_npz(path: Path, group: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows and ids of an npz file."""
    with _tried(path, lambda own: np.load(own, allow_pickle=False)) as held:
        if {"tuples", "unlabeled"} <= set(held.files):
            rows, groups = join_groups(_tried(path, lambda _: held["tuples"]), held["unlabeled"])
            return rows, np.where(groups == UNLABELED, UNLABELED, groups // SIZES)
        if not {"rows", group} <= set(held.files):
            raise UserError(
                f"{path} holds {', '.join(held.files)}; rows and {group} are needed, or tuples and unlabeled"
            )
        rows, ids = _tried(path, lambda _: (held["rows"], held[group]))
    if len(rows) != len(ids):
        raise UserError(f"{path} holds {len(rows)} rows and {len(ids)} ids of groups; one is needed for each row")
    return rows, ids


def _list_pictures(folder: Path, group: str, table: Any, file: str) -> tuple[list[Path], NDArray[Any]]:
    """Return the files of pictures and the ids of their groups: from a table, or from the folders that hold them."""
    if table is not None:
        frame = _read_frame(table)
        files, ids = [folder / str(name) for name in _column(frame, file)], _column(frame, group).to_numpy()
        if lost := [str(path) for path in files if not path.is_file()]:
            raise UserError(f"{len(lost)} files of the table are not in {folder}: {_few(lost)}")
        return files, ids
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in PICTURES)
    if not files:
        raise UserError(f"{folder} holds no pictures ({', '.join(PICTURES)})")
    parts = [path.relative_to(folder).parts[:-1] for path in files]
    return files, np.array([None if part in ((), (UNLABELED_FOLDER,)) else "/".join(part) for part in parts], object)


def _read_pictures(files: list[Path], size: tuple[int, int] | None) -> NDArray[np.uint8]:
    """Return pictures (N, H, W) if all are grey, or (N, H, W, 3), uint8."""
    try:
        from PIL import Image
    except ImportError:
        raise UserError("pictures need Pillow; install pillow") from None

    def read(path: Path) -> Any:
        with Image.open(path) as picture:
            own = picture.convert("L" if picture.mode in ("1", "L") else "RGB")
        return np.asarray(own if size is None else own.resize((size[1], size[0])))

    pictures = [_tried(path, read) for path in files]
    if any(picture.ndim == 3 for picture in pictures):
        pictures = [picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=2) for picture in pictures]
    if len(shapes := {picture.shape[:2] for picture in pictures}) > 1:
        few = _few([f"{height} x {width}" for height, width in sorted(shapes)])
        raise UserError(f"pictures have several sizes, {few}; give size=(height, width), to which they are scaled")
    return np.stack(pictures)
