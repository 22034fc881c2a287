"""Groups from users' files: a frame, a table, npz, or pictures in folders, with an account of what
was read.

>>> data = read_groups("groups.csv", group="id")
>>> print(data.account)
>>> print(data.report)
>>> make_pipeline(TableEncoder(), MDPUClassifier()).fit(data.rows, data.groups)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mdpu.data import SIZES, UNLABELED, Indices, join_groups, number_groups, numbers_of
from mdpu.errors import UserError, printable
from mdpu.law import Law
from mdpu.own import pictures
from mdpu.own.account import Account, Column, few
from mdpu.own.group_names import ODD_NAMES, GroupNames
from mdpu.own.reading import Reading
from mdpu.own.rules import Rule, read_counts, read_labels
from mdpu.own.tables import TABLES, Table, column_of, is_table, read_table
from mdpu.own.values import doubt_of, kind_of, tidy
from mdpu.sample import row_numbers


@dataclass(frozen=True)
class GroupReport:
    """A description of groups before training: counts of groups by size, counts of rows, and names
    of columns.
    """

    sizes: dict[int, int]
    n_unlabeled: int
    distinct_unlabeled: int
    repeated_within: int  # groups in which a row stands more than once
    in_two_groups: int  # different rows
    in_group_and_unlabeled: int
    missing: dict[str, int]  # values by column, where there are some
    constant: list[str]

    def __str__(self) -> str:
        """Return the report in lines, without those that have nothing to say."""
        sizes = few([f"{count} of {size} rows" for size, count in self.sizes.items()])
        lines = [
            f"{sum(self.sizes.values())} groups: {sizes}",
            f"{self.n_unlabeled} unlabeled rows, {self.distinct_unlabeled} of them different",
            self.repeated_within and f"{self.repeated_within} groups hold a row more than once",
            self.in_two_groups and f"{self.in_two_groups} rows stand in two groups or more",
            self.in_group_and_unlabeled
            and f"{self.in_group_and_unlabeled} unlabeled rows stand in groups too",
            self.missing
            and (
                "missing values: "
                f"{few([f'{name} {count}' for name, count in self.missing.items()])}"
            ),
            self.constant and f"columns of one value: {few(self.constant)}",
        ]
        return "\n".join(str(line) for line in lines if line)


@dataclass(frozen=True)
class GroupData:
    """Rows (N, ...) and groups (N,) for ``fit(rows, groups)``, names of the groups, files of
    pictures, the report.

    `account` says what was read and what became of it. `lines` (N,) are the lines of a table's file
    that the rows stand in, or places in a frame. `raw` is a table as it stands in its file, with
    all of its columns. `rule` says what is known of the numbers of positives in groups, if that was
    asked for: then `law` and `counts` are what `TupleClassifier` takes.
    """

    rows: Any
    groups: Indices
    names: list[str]
    files: list[Path] | None
    report: GroupReport
    account: Account
    lines: NDArray[np.int64]
    raw: pd.DataFrame | None = None
    rule: Rule | None = None

    def take(self, places: Indices) -> GroupData:
        """Return the data at some places (n,), with the account of all."""
        taken = replace(
            self,
            rows=take_rows(self.rows, places),
            groups=self.groups[places],
            lines=self.lines[places],
        )
        if self.files is not None:
            taken = replace(taken, files=[self.files[place] for place in places])
        if self.raw is not None:
            taken = replace(taken, raw=self.raw.iloc[places])
        return taken

    @property
    def sizes(self) -> Indices:
        """Number of rows of each group, (n,)."""
        return np.unique(self.groups[self.groups != UNLABELED], return_counts=True)[1]

    @property
    def law(self) -> Law | str:
        """The law, as `TupleClassifier` takes it."""
        return (self.rule or Rule()).laws(self.sizes.tolist())

    @property
    def counts(self) -> tuple[Indices, Indices] | None:
        """The least and the largest number of positives in each group, as ``TupleClassifier.fit``
        takes them.
        """
        return None if self.rule is None else self.rule.counts

    def members(self, rows: Any) -> list[Any]:
        """Return the rows (N, ...) of each group, as ``fit`` takes them where there are no
        unlabeled rows.
        """
        return rows_of_groups(rows, self.groups)


def take_rows(rows: Any, places: Indices) -> Any:
    """Return the rows of a frame or an array at some places."""
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[places]
    return rows[places]


def rows_of_groups(rows: Any, groups: Indices) -> list[Any]:
    """Return the rows (N, ...) of each of the groups (N,), in the order of their numbers."""
    numbers = numbers_of(groups)
    return [take_rows(rows, np.flatnonzero(groups == number)) for number in numbers]


@dataclass(frozen=True)
class Source:
    """What a source holds, as it was read.

    `raw` is a table as it stands in its file, with all of its columns; `rows` are tidy, without the
    columns of groups. `statement` is the column that says something of each group.
    """

    rows: Any
    ids: NDArray[Any] | None
    account: Account
    lines: NDArray[np.int64]
    files: list[Path] | None = None
    raw: pd.DataFrame | None = None
    statement: pd.Series | None = None


def read_groups(
    source: Any,
    group: str | Sequence[str] = "group",
    *,
    table: Any = None,
    file: str = "file",
    size: tuple[int, int] | None = None,
    law: str | None = None,
    count: str | None = None,
    label: str | None = None,
    drop: Sequence[str] = (),
    **reading: Any,
) -> GroupData:
    """Return the rows and groups of a source, with an account of what was read and a report.

    Parameters
    ----------
    source : DataFrame, str or Path
        A frame; a table, which is a file of .csv, .tsv or .txt, also as .gz, of .xlsx or .parquet.
        Or an npz file of ``rows`` and ids, or of ``tuples`` and ``unlabeled``. Or a folder of
        pictures with a folder for each group: pictures beside these, or in `unlabeled`, are
        unlabeled.
    group : str or sequence of str
        The column of ids: text or numbers, and missing, or -1, for unlabeled rows. With several
        columns, rows are of one group if they agree in all of them.
    table, file : DataFrame, str or Path, optional; and str
        For pictures that lie together: a table with `group`, and its column of paths below the
        folder.
    size : (height, width), optional
        The size that pictures are scaled to. Without it, all must have one size; if the longer
        side has more than 32 pixels, they are made that small.
    law : str, optional
        The law of the groups, a name of `mdpu.law.named_law`, by default ``dominant``: at least
        half of the rows are positive.
    count : str, optional
        In place of a law, a column with the number of positives in each group: a number, a share,
        or bounds such as 1-3 or 1+. If all groups have one, unlabeled rows may be missing.
    label : str, optional
        A column that says whether each group keeps the law, 1 or 0, as bags of multiple-instance
        learning are labelled.
    drop : sequence of str
        Columns that training leaves out. They stay as they are written, whatever is in doubt.
    **reading
        How tables are read, where they do not tell: ``sep``, the separator; ``decimal``, the
        decimal sign; ``encoding``; ``missing``, texts that stand for a missing value, in columns of
        groups too; ``fill=True`` reads names of groups downwards, where cells below a name are
        empty; ``dates``, ``day-first`` or ``month-first``; ``sheet``, the title of a sheet of
        .xlsx, or its place from 1.
    """
    _check_group(group)
    if count is not None and label is not None:
        raise UserError(f"count is {count!r} and label is {label!r}; give one of them")
    statement = label if count is None else count
    read = read_rows(
        source,
        group,
        table=table,
        file=file,
        size=size,
        text=drop,
        statement=statement,
        reading=make_reading(reading),
    )
    assert read.ids is not None
    groups = read.ids.astype(np.int64) if not len(read.ids) else number_groups(read.ids)
    is_member = groups != UNLABELED

    column = group if isinstance(group, str) else " ".join(group)
    if not is_member.any():
        raise UserError(_nothing("groups", column, read))
    if is_member.all() and statement is None:
        raise UserError(_nothing("unlabeled rows", column, read))

    firsts = np.unique(groups[is_member], return_index=True)[1]
    names = [str(name) for name in read.ids[is_member][firsts]]
    report = report_groups(read.rows, groups)
    data = GroupData(
        read.rows, groups, names, read.files, report, read.account, read.lines, read.raw
    )
    if law is None and statement is None:
        return data
    return with_rule(data, _make_rule(law, read.statement, label is not None, groups, names))


def _check_group(group: Any) -> None:
    """Raise `UserError` unless a group is a name of a column, or several."""
    names = [group]
    if np.iterable(group) and not isinstance(group, str):
        names = [*group]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise UserError(f"group is {group!r}; name a column, or several")


def with_rule(data: GroupData, rule: Rule) -> GroupData:
    """Return data with a rule that is checked, and with an account that says it."""
    rule.check(data.sizes.tolist(), data.report.n_unlabeled)
    return replace(data, rule=rule, account=replace(data.account, rule=str(rule)))


def _make_rule(
    law: str | None,
    statement: pd.Series | None,
    is_label: bool,
    groups: Indices,
    names: Sequence[str],
) -> Rule:
    """Return what a law, or a column of counts or of labels, says."""
    if statement is None:
        return Rule(law or "dominant")
    if not is_label:
        if law is not None:
            raise UserError(
                f"counts take the place of a law, but the law {law} was given too; leave one out"
            )
        return Rule(counts=read_counts(statement, groups, names), column=str(statement.name))
    if law is None:
        raise UserError(
            f"column {statement.name} says which groups keep a law, so name it: --law at-least-1 "
            "if 1 says that a group has a positive row, --law dominant if it says that at least "
            "half are positive"
        )
    bounds = read_labels(statement, groups, names, law)
    return Rule(law, counts=bounds, column=str(statement.name), is_label=True)


def make_reading(options: dict[str, Any]) -> Reading:
    """Return how tables are to be read, by options of which some may be None."""
    chosen = {name: value for name, value in options.items() if value is not None}
    marks = chosen.pop("missing", ())
    if isinstance(marks, str):
        marks = (marks,)
    return Reading(**chosen, missing=tuple(map(str, marks)))


def read_rows(
    source: Any,
    group: str | Sequence[str] | None = None,
    *,
    table: Any = None,
    file: str = "file",
    size: tuple[int, int] | None = None,
    mode: str | None = None,
    needed: Sequence[str] = (),
    text: Sequence[str] = (),
    statement: str | None = None,
    reading: Reading | None = None,
) -> Source:
    """Return what a source holds, as `read_groups` reads it, with ids if `group` is given.

    Columns of `text` stay text, even where all values look like numbers. `needed` are columns that
    a table must have; if there are any, the others stay text. `statement` is a column that says
    something of each group, and is none of the rows'. Pictures get the `mode` ``L`` or ``RGB``, or
    without it that of all.
    """
    reading = reading or Reading()
    keys = [group] if isinstance(group, str) else [*(group or ())]
    statements = [statement] if statement is not None else []
    is_path = isinstance(source, str | Path)
    if table is not None or (is_path and Path(source).is_dir()):
        return _read_folder(Path(source), keys, table, file, size, mode, statements, reading)
    if is_path and Path(source).suffix == ".npz":
        if statement is not None:
            raise UserError(f"{source} is no table, so it has no column {statement}; take a table")
        return _read_arrays(Path(source), keys)
    return _read_rows_of_table(source, keys, statements, needed, text, reading)


def _read_rows_of_table(
    source: Any,
    keys: Sequence[str],
    statements: Sequence[str],
    needed: Sequence[str],
    text: Sequence[str],
    reading: Reading,
) -> Source:
    """Return the rows of a frame or of a table's file, with the ids in the columns `keys`."""
    table = _read_frame(source, [*keys, *statements, *needed], reading)
    ids = GroupNames.of(table.frame, keys, reading)
    statement = _statement(table.frame, statements, keys)
    features = table.frame.drop(columns=[*keys, *statements])
    if needed:
        text = [*text, *(name for name in map(str, features) if name not in needed)]
    rows, notes = tidy(features, reading, text, table.separator)

    columns = [Column(str(key), "group", False) for key in keys]
    columns += [Column(name, "count", False) for name in statements]
    columns += [_as_read(str(name), rows[name]) for name in rows]
    n_files = int(isinstance(source, str | Path))
    account = Account(
        files_seen=n_files,
        files_read=n_files,
        passed_over={},
        rows=len(rows),
        names_written=ids.written,
        groups=ids.groups,
        columns=columns,
        notes=table.notes + notes + ids.notes,
    )
    return Source(rows, ids.names, account, table.lines, raw=table.frame, statement=statement)


def _as_read(name: str, column: pd.Series) -> Column:
    """Return a column before training, with what is in doubt about it."""
    kind = kind_of(column)
    if kind != "text":
        return Column(name, kind, True)
    return Column(name, kind, True, *doubt_of(column))


def _statement(
    frame: pd.DataFrame, statements: Sequence[str], keys: Sequence[str]
) -> pd.Series | None:
    """Return the column that says something of each group, if one is named."""
    if not statements:
        return None
    name = statements[0]
    if name in keys:
        raise UserError(
            f"column {name} names the groups, so it cannot say how many of their rows are positive"
        )
    return column_of(frame, name)


def report_groups(rows: Any, groups: Indices) -> GroupReport:
    """Return the report on rows (N, ...) and on groups (N,) of `number_groups`."""
    table = pd.DataFrame()  # pictures have no named columns
    if np.ndim(rows) == 2:
        table = pd.DataFrame(rows)
    for name, column in table.items():
        if kind_of(column) == "other":  # such as lists, which cannot be hashed
            table[name] = column.map(str)
    contents = row_numbers(table) if isinstance(rows, pd.DataFrame) else row_numbers(rows)

    members = pd.DataFrame({"row": contents, "group": groups})[groups != UNLABELED]
    different = members.drop_duplicates()
    unlabeled = np.unique(contents[groups == UNLABELED])
    sizes, counts = np.unique(np.unique(members["group"]) % SIZES, return_counts=True)
    gaps = table.isna().sum()
    contents_of_columns = table.nunique(dropna=False)
    return GroupReport(
        sizes=dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
        n_unlabeled=int(np.sum(groups == UNLABELED)),
        distinct_unlabeled=len(unlabeled),
        repeated_within=members[members.duplicated()]["group"].nunique(),
        in_two_groups=int((different["row"].value_counts() > 1).sum()),
        in_group_and_unlabeled=int(np.isin(unlabeled, different["row"]).sum()),
        missing={str(name): int(count) for name, count in gaps.items() if count},
        constant=[str(name) for name, count in contents_of_columns.items() if count == 1],
    )


def _nothing(what: str, column: str, read: Source) -> str:
    """Return a sentence on a source that has no groups, or no unlabeled rows."""
    if read.files is not None:
        places = "beside the folders of the groups, or in a folder unlabeled"
        if what == "groups":
            places = "in a folder for each group"
        return (
            f"the source has no {what}: put their pictures {places}; a table names them by --table"
        )
    assert read.ids is not None
    names = {name for name in read.ids if isinstance(name, str)}
    odd = sorted(name for name in names if name.casefold() in ODD_NAMES)
    hint = ""
    if odd:
        hint = f"; if {odd[0]} means that a row has no group, say --missing {odd[0]}"
    if what == "unlabeled rows":
        hint += (
            "; if a column says how many rows of each group are positive, name it by --count, or "
            "by --label"
        )
    return f"the source has no {what}: {column} must be empty in unlabeled rows, else a name{hint}"


def _read_frame(source: Any, needed: Sequence[str], reading: Reading) -> Table:
    """Return a frame, or that of a file, as a table; a name of its index that is needed becomes a
    column.
    """
    if isinstance(source, pd.DataFrame):
        levels = [name for name in source.index.names if name in needed and name not in source]
        frame = source.reset_index(levels).reset_index(drop=True)
        return Table(frame, np.arange(len(frame)), [])
    if not isinstance(source, str | Path) or not is_table(Path(source)):
        kinds = ", ".join(TABLES)
        raise UserError(
            f"source is {printable(str(source))[:200]}; take a frame, a folder, {kinds} or .npz"
        )
    return read_table(Path(source), needed, reading)


def _read_arrays(path: Path, keys: Sequence[str]) -> Source:
    if len(keys) > 1:
        raise UserError(
            f"{path} is no table, so its groups have one name; give one of {', '.join(keys)}"
        )
    if not keys:
        rows, _ = _read_npz(path, None)
        ids = GroupNames()
    else:
        rows, written = _read_npz(path, keys[0])
        column = pd.Series(written, name=keys[0])
        ids = GroupNames.of(column.to_frame(), keys, Reading())
    account = Account(1, 1, {}, len(rows), ids.written, ids.groups)
    return Source(rows, ids.names, account, np.arange(len(rows)))


def _load_arrays(path: Path) -> dict[Any, NDArray[Any]]:
    """Return the arrays of an npz file by name; raise `UserError` if it is damaged."""
    try:
        return {**np.load(path, allow_pickle=False)}
    except Exception as error:  # zipfile and numpy raise different ones
        raise UserError(f"{path} cannot be read: {printable(str(error))[:200]}") from None


def _read_npz(path: Path, group: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows and ids of an npz file."""
    held = _load_arrays(path)
    for name in held.keys() & {"rows", "tuples", "unlabeled"}:
        array = held[name]
        most = 5 if name == "tuples" else 4  # axes of pictures in colour
        is_plain = array.dtype.kind in "biuf" and 2 <= array.ndim <= most
        if not is_plain or np.isinf(array).any():
            raise UserError(
                f"{path}: {name} is {array.dtype} of shape {array.shape}; finite rows (N, d), or "
                "pictures"
            )
    if group is None:
        if "rows" not in held:
            raise UserError(f"{path} holds {', '.join(held)}, but no array rows")
        return held["rows"], np.empty(0)
    if {"tuples", "unlabeled"} <= held.keys():
        rows, groups = join_groups(held["tuples"], held["unlabeled"])
        return rows, np.where(groups == UNLABELED, UNLABELED, groups // SIZES)
    if not {"rows", group} <= held.keys() or len(held["rows"]) != len(held[group]):
        raise UserError(
            f"{path} holds {', '.join(held)}; rows and {group} of one length are needed, or tuples"
        )
    if held[group].ndim != 1:
        raise UserError(
            f"{path}: {group} has the shape {held[group].shape}; one name for each row is needed"
        )
    return held["rows"], held[group]


def _read_folder(
    folder: Path,
    keys: Sequence[str],
    table: Any,
    file: str,
    size: tuple[int, int] | None,
    mode: str | None,
    statements: Sequence[str],
    reading: Reading,
) -> Source:
    """Return pictures with the ids of their groups: from a table, or from the folders that hold
    them.
    """
    listed = pictures.list_folder(folder)
    passed = dict(listed.passed_over)
    statement = None
    if table is not None:
        held = _read_frame(table, [*keys, *statements, file], reading)
        files = [folder / str(name).strip() for name in column_of(held.frame, file)]
        ids = GroupNames.of(held.frame, keys, reading)
        statement = _statement(held.frame, statements, keys)
        notes = held.notes + ids.notes
        unlisted = _resolved(listed.pictures) - _resolved(files)
        if unlisted:
            passed["that the table does not list"] = len(unlisted)
    else:
        if statements:
            raise UserError(
                f"folders of pictures have no column {statements[0]}; name a table that has it by "
                "--table"
            )
        files = listed.pictures
        if not files:
            kinds = ", ".join(pictures.PICTURES)
            raise UserError(f"{folder} holds no pictures ({kinds}){_passed_words(passed)}")
        ids = _ids_of_folders(files, folder) if keys else GroupNames()
        notes = ids.notes

    if size is None:
        size, scaled = _default_size(files)
        notes = notes + scaled
    rows = pictures.read_pictures(files, size, mode)
    account = Account(
        listed.seen, len({*files}), passed, len(files), ids.written, ids.groups, [], notes
    )
    lines = np.arange(len(files))
    return Source(rows, ids.names, account, lines, files, statement=statement)


def _default_size(files: Sequence[Path]) -> tuple[tuple[int, int] | None, list[str]]:
    """Return the size that pictures are scaled to where none is named, None if no picture can be
    read, and what the account says of it.
    """
    size = pictures.common_size(files)
    if size is None or pictures.smaller(size) == size:
        return size, []
    height, width = pictures.smaller(size)
    return (height, width), [
        f"pictures of {size[0]} x {size[1]} pixels were made {height} x {width}; --size names "
        "another size"
    ]


def _resolved(files: Sequence[Path]) -> set[Path]:
    return {path.resolve() for path in files}


def _ids_of_folders(files: Sequence[Path], folder: Path) -> GroupNames:
    """Return the names of the folders that hold pictures."""
    names = pd.Series([pictures.group_of(path, folder) for path in files], dtype=object)
    return GroupNames.clean(names, False)


def _passed_words(passed: dict[str, int]) -> str:
    if not passed:
        return ""
    return f"; passed over: {few([f'{count} {reason}' for reason, count in passed.items()])}"
