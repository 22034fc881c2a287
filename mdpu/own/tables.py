"""Tables as people have them: separators, encodings, lines above the header, Excel and Parquet.

What is beyond doubt is done and said in a line. What is in doubt is a sentence with the option that
settles it.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mdpu.errors import UserError, printable
from mdpu.own.account import few
from mdpu.own.reading import Reading
from mdpu.own.values import GAPS, MARKS, cell_text, is_measured

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
DELIMITED = (".csv", ".tsv", ".tab", ".txt")
TABLES = (*DELIMITED, ".parquet", ".xlsx")
NAMELESS = "Unnamed: "  # how pandas calls a column without a name, by its place
REGULAR = 0.9  # share of the lines that a separator divides alike
MOST_RECORDS = 1000  # by which a separator is judged
TOP = 20  # lines in which a header is looked for by the names that it must hold
NO_UNIT = "1"  # in a row of units, of a column whose numbers have none
BOMS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\0\0": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


@dataclass
class Table:
    """A table as it stands in a file: cells (text, where the file has no types), lines of the rows,
    what is to be said.

    `separator` is None where none divides the cells.
    """

    frame: pd.DataFrame
    lines: NDArray[np.int64]
    notes: list[str] = field(default_factory=list)
    separator: str | None = None


# -- files ----------------------------------------------------------------------------------------


def is_table(path: Path) -> bool:
    """Return whether a file's name is that of a table."""
    return _suffix(path) in TABLES


def read_table(path: Path, needed: Sequence[str] = (), reading: Reading | None = None) -> Table:
    """Return a table as it stands in a file; `needed` are names that its header must hold, if they
    are known.

    Raises
    ------
    UserError
        If the file is damaged, or two readings of it are equally good.
    """
    reading = reading or Reading()
    suffix = _suffix(path)
    try:
        if suffix == ".xlsx":
            return _read_excel(path, needed, reading.sheet)
        if reading.sheet is not None:
            raise UserError(f"a sheet is named, but {path} is no .xlsx; leave out --sheet")
        if suffix == ".parquet":
            return _read_parquet(path, needed)
        return _read_delimited(path, needed, reading)
    except (UserError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        raise UserError(
            f"{path} needs {error.name} to be read; run pip install {error.name}"
        ) from None
    # pandas, pyarrow, zipfile and openpyxl raise different ones for a damaged file
    except Exception as error:
        raise UserError(f"{path} cannot be read: {printable(str(error))[:200]}") from None


def _suffix(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _read_delimited(path: Path, needed: Sequence[str], reading: Reading) -> Table:
    text, notes = _decode(path, reading.encoding)
    if not text.strip():
        raise UserError(f"{path} is empty")
    separator = reading.separator or _find_separator(text, path, needed)
    if separator != "," and _suffix(path) == ".csv":
        notes.append(f"cells are divided by {SEPARATORS.get(separator, repr(separator))}")
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        records: list[list[Any]] = []
        lines = []
        for record in reader:
            records.append(record)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise UserError(
            f"{path}, line {reader.line_num}: {error}; mend the quotes of that line"
        ) from None
    table = _tabulate(path, records, lines, needed, notes)
    table.separator = separator
    return table


def _decode(path: Path, encoding: str | None) -> tuple[str, list[str]]:
    """Return the text of a file, and what is to be said on its encoding."""
    data = path.read_bytes()
    if path.name.lower().endswith(".gz"):
        data = gzip.decompress(data)
    for start, name in BOMS.items():
        if encoding is None and data.startswith(start):
            said = [] if name == "utf-8-sig" else [f"the encoding is {name.upper()}"]
            return data.decode(name), said
    try:
        text = data.decode(encoding or "utf-8")
    except LookupError:
        raise UserError(
            f"encoding is {encoding!r}, which Python does not know; such as utf-8 or cp1252"
        ) from None
    except UnicodeDecodeError:
        if encoding is not None:
            raise UserError(
                f"{path} is not in {encoding}; name its encoding by --encoding"
            ) from None
    else:
        if "\0" in text:
            raise UserError(
                f"{path} holds null characters; name its encoding by --encoding, such as utf-16-le"
            )
        return text.removeprefix("\ufeff"), []
    try:
        return data.decode("cp1252"), [
            "the encoding is not UTF-8 and was taken as Windows-1252; --encoding names it"
        ]
    except UnicodeDecodeError:
        raise UserError(
            f"{path} is neither in UTF-8 nor in Windows-1252; name its encoding by --encoding"
        ) from None


def _find_separator(text: str, path: Path, needed: Sequence[str]) -> str:
    """Return the one character that divides the lines of a table alike."""
    usual = "\t" if _suffix(path) in (".tsv", ".tab") else ","
    regular = []
    headed = []
    named = []
    for separator in SEPARATORS:
        records = _first_records(text, separator)
        widths = Counter(len(record) for record in records)
        if not widths:
            continue
        width, count = widths.most_common(1)[0]
        if width == 1 or count < REGULAR * len(records):
            continue
        regular.append(separator)
        if len(records[0]) == width:
            headed.append(separator)
        first = next(record for record in records if len(record) == width)
        if {*needed} and {*needed} <= {name.strip() for name in first}:
            named.append(separator)
    for candidates in (named, headed, regular):
        if len(candidates) == 1:
            return candidates[0]
        if usual in candidates and _suffix(path) != ".csv":
            return usual
        if candidates:
            words = " or ".join(SEPARATORS[separator] for separator in candidates)
            raise UserError(f"{path} may be divided by {words}; name the separator by --sep")
    return usual


def _first_records(text: str, separator: str) -> list[list[str]]:
    """Return the first records of a table, without lines of comments above it and lines without a
    cell.
    """
    records = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if record and not (record[0].startswith("#") and len(record) == 1):
                records.append(record)
            if len(records) == MOST_RECORDS:
                break
    except csv.Error:
        return records
    return records


def _tabulate(
    path: Path, records: list[list[Any]], lines: list[int], needed: Sequence[str], notes: list[str]
) -> Table:
    """Return records as a table: lines above the header and lines without a value are passed over,
    and said.
    """
    filled = [place for place, record in enumerate(records) if not all(map(_is_blank, record))]
    if not filled:
        raise UserError(f"{path} is empty")

    header_at = _header(records, filled, needed)
    n_above = filled.index(header_at)
    if n_above:
        first = printable(str(records[filled[0]][0]))[:40]
        notes.append(f"lines passed over above the header: {n_above}, such as {first!r}")

    body = filled[n_above + 1 :]
    n_blank = len(records) - 1 - header_at - len(body)
    if n_blank:
        notes.append(f"lines without a value, passed over: {n_blank}")

    names = [_name(cell) for cell in records[header_at]]
    rows = [_cut_to_header(records[place], names, path, lines[place]) for place in body]
    n_short = sum(len(row) < len(names) for row in rows)
    if n_short:
        notes.append(
            f"lines with fewer values than the header has names: {n_short}; the rest of them is "
            "missing"
        )
    of_rows = np.array([lines[place] for place in body], np.int64)
    return _without_units(Table(_named_frame(rows, names), of_rows, notes))


def _cut_to_header(record: list[Any], names: list[str], path: Path, line: int) -> list[Any]:
    """Return a record without blank cells beyond the header."""
    n_cells = len(record)
    while n_cells > len(names) and _is_blank(record[n_cells - 1]):
        n_cells -= 1
    if n_cells > len(names):
        raise UserError(
            f"{path}, line {line}: it has more values ({n_cells}) than the header has names "
            f"({len(names)}); mend the line, or name the separator by --sep"
        )
    return record[:n_cells]


def _named_frame(rows: list[list[Any]], names: list[str]) -> pd.DataFrame:
    """Return a frame of rows, without columns that have neither a name nor a value."""
    filled = [row + [None] * (len(names) - len(row)) for row in rows]
    frame = pd.DataFrame(filled, columns=range(len(names)), dtype=object)
    used = [
        place for place, name in enumerate(names) if name or not frame[place].map(_is_blank).all()
    ]
    frame = frame[used]
    frame.columns = [names[place] or f"{NAMELESS}{place}" for place in used]
    return frame


def _is_blank(cell: Any) -> bool:
    if isinstance(cell, str):
        return not cell.strip()
    return cell is None or (isinstance(cell, float) and np.isnan(cell))


def _name(cell: Any) -> str:
    """Return a cell of the header as a name."""
    if _is_blank(cell):
        return ""
    return str(cell).strip()


def _header(records: list[list[Any]], filled: list[int], needed: Sequence[str]) -> int:
    """Return the place of the header: the line that holds the needed names, which may stand below
    merged headings; else the first line that is no title or comment of one cell.
    """
    for place in filled[:TOP]:
        if needed and _is_header(records[place], needed):
            return place
    widest = max(len(records[place]) for place in filled)
    for place in filled:
        cells = [str(cell).strip() for cell in records[place] if not _is_blank(cell)]
        is_title = len(cells) == 1 and widest > 1 and cells[0] not in needed
        is_comment = (
            bool(cells) and cells[0].startswith(("#", "sep=")) and not {*needed} <= {*cells}
        )
        if not (is_title or (is_comment and {*needed})):
            return place
    return filled[0]


def _is_header(record: Sequence[Any], needed: Sequence[str]) -> bool:
    """Return whether a line holds needed names, and no numbers."""
    cells = [str(cell).strip() for cell in record if not _is_blank(cell)]
    return {*needed} <= {*cells} and not any(map(is_measured, cells))


def _without_units(table: Table) -> Table:
    """Return a table without a row of units under the header: it has no number but `NO_UNIT`, and
    it alone keeps two columns or more from being numbers.
    """
    frame = table.frame
    if len(frame) < 3 or not frame.columns.is_unique:
        return table
    units = []
    for _, column in frame.items():
        first = column.iloc[0]
        rest = column.iloc[1:]
        if _is_blank(first) or cell_text(first) == NO_UNIT:
            continue
        if not isinstance(first, str) or is_measured(first):
            return table
        if first.strip().casefold() in GAPS | MARKS:
            continue
        values = _values(rest)
        if values and all(map(is_measured, values)):
            units.append(first.strip())
    if len(units) < 2:
        return table
    note = f"line {table.lines[0]} was passed over: it holds no numbers, but units ({few(units)})"
    return Table(
        frame.iloc[1:].reset_index(drop=True),
        table.lines[1:],
        [*table.notes, note],
        table.separator,
    )


def _values(column: pd.Series) -> list[str]:
    """Return the different values of a column of text, without blanks around them and without marks
    of missing ones.
    """
    texts = {str(value).strip() for value in column if not _is_blank(value)}
    return [text for text in texts if text.casefold() not in GAPS | MARKS]


def _read_parquet(path: Path, needed: Sequence[str]) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    frame = table.to_pandas()
    notes = []
    kept = [
        name
        for name in frame.index.names
        if name is not None and name in needed and name not in frame
    ]
    lost = [str(name) for name in frame.index.names if name is not None and name not in kept]
    if kept:
        frame = frame.reset_index(kept)
        notes.append(f"{few([*map(str, kept)])} stands in the index of the file")
    if lost:
        notes.append(
            f"the index {few(lost)} was not read; reset_index() before writing makes it a column"
        )
    for name in {*needed} & {*table.column_names}:
        # with nulls, pandas would make doubles of them
        if pa.types.is_integer(table.schema.field(name).type):
            frame[name] = pd.Series(table.column(name).to_pylist(), index=frame.index, dtype=object)
    frame = frame.reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    return Table(frame, np.arange(len(frame)), notes)


def _read_excel(path: Path, needed: Sequence[str], wanted: str | None) -> Table:
    from openpyxl import load_workbook

    book = load_workbook(path, data_only=True)
    sheets = [sheet for sheet in book.worksheets if sheet.max_row > 1 or sheet.max_column > 1]
    if not sheets:
        raise UserError(f"{path} has no sheet with a table")
    if wanted is None:
        sheet = _choose_sheet(sheets, needed)
    else:
        sheet = _named_sheet(path, sheets, wanted)
    notes = []
    if len(sheets) > 1:
        passed_over = [other.title for other in sheets if other is not sheet]
        notes.append(
            f"of {len(sheets)} sheets {sheet.title} was read, and {len(passed_over)} passed over "
            f"({few(passed_over)}); --sheet names another"
        )
    records = [[*row] for row in sheet.values]
    merged = 0
    for area in sheet.merged_cells.ranges:
        first = records[area.min_row - 1][area.min_col - 1]
        if area.min_col != area.max_col or area.min_row == area.max_row:
            continue
        for row in range(area.min_row, area.max_row):
            records[row][area.min_col - 1] = first
            merged += 1
    if merged:
        notes.append(f"cells that were merged downwards got the value of the first: {merged}")
    return _tabulate(path, records, [*range(1, len(records) + 1)], needed, notes)


def _choose_sheet(sheets: Sequence[Any], needed: Sequence[str]) -> Any:
    """Return the first sheet with a header of the needed names, or the first of all."""
    for sheet in sheets:
        lines = sheet.iter_rows(max_row=TOP, values_only=True)
        if needed and any(_is_header(line, needed) for line in lines):
            return sheet
    return sheets[0]


def _named_sheet(path: Path, sheets: Sequence[Any], wanted: str) -> Any:
    """Return the sheet of a title, or at a place, from 1."""
    titles = {sheet.title.strip().casefold(): sheet for sheet in sheets}
    places = {str(place): sheet for place, sheet in enumerate(sheets, 1)}
    sheet = titles.get(wanted.strip().casefold()) or places.get(wanted.strip())
    if sheet is None:
        names = [sheet.title for sheet in sheets]
        raise UserError(
            f"{path} has no sheet {wanted} with a table; it has "
            f"{few(names)}{suggest(wanted, names)}"
        )
    return sheet


# -- names ----------------------------------------------------------------------------------------


def suggest(name: str, names: Sequence[str]) -> str:
    """Return a question after the name that was meant, or nothing if none is near."""
    folded = {known.casefold().strip(): known for known in names}
    near = get_close_matches(name.casefold().strip(), folded, n=1)
    if not near:
        return ""
    return f"; did you mean {folded[near[0]]}?"


def column_of(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return the one column of a name; raise `UserError`, with the name that was meant, if there is
    none.
    """
    names = [str(column) for column in frame.columns]
    count = [*frame.columns].count(name)
    if count > 1:
        raise UserError(f"{count} columns are called {name}; one column {name} is needed")
    if not count:
        raise UserError(
            f"one column {name} is needed; there are {few(names)}{suggest(name, names)}"
        )
    return frame[name]
