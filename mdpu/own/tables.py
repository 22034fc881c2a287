"""Tables as people have them: separators, encodings, Excel and Parquet, and numbers with a few
marks among them.

What is beyond doubt is done and said in a line. What is in doubt is a sentence with the option that
settles it.
"""

from __future__ import annotations

import csv
import datetime
import decimal as decimals
import gzip
import io
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mdpu.errors import UserError, check_choice, printable
from mdpu.own.account import few

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
DELIMITED = (".csv", ".tsv", ".tab", ".txt")
TABLES = (*DELIMITED, ".parquet", ".xlsx")
NAMELESS = "Unnamed: "  # how pandas calls a column without a name, by its place
REGULAR = 0.9  # share of the lines that a separator divides alike
TOP = 20  # lines in which a header is looked for by the names that it must hold
BOMS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\0\0": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}

# Texts that stand for a missing value in every column, as pandas reads them.
GAPS = {"", "#n/a", "#na", "-nan", "<na>", "n/a", "na", "nan", "none", "null"}
# Texts that stand for one in a column that else holds numbers.
MARKS = {
    *("?", "-", "--", "---", "–", "—", ".", "..", "...", "*", "x"),
    *("n.a.", "n. a.", "k.a.", "k. a.", "keine angabe", "(null)", "nil", "missing", "unknown"),
    *("#div/0!", "#value!", "#ref!", "#num!", "#null!", "#name?"),
}
# share of numbers from which on a column is one of numbers with marks, or with values to ask about
MOSTLY = 0.5
TRUTHS = {"true": True, "false": False}
DATE = re.compile(r"\d{4}-\d\d-\d\d")
DOTTED = re.compile(r"\d?\d\.\d?\d\.\d{4}")  # the day first wherever dates have dots
SLASHED = re.compile(r"(\d?\d)/(\d?\d)/\d{4}")  # the day first or the month, by country
YEAR_FIRST = re.compile(r"\d{4}/\d?\d/\d?\d")
OTHER_SIGN = {".": ",", ",": "."}
FORMS = {"day-first": "%d/%m/%Y", "month-first": "%m/%d/%Y"}
MONEY = re.compile(
    r"(?:(?P<minus>[+−-]) ?)?(?P<before>R\$|[€$£¥₹₽₺]|[A-Z]{3}|kr|Fr\.)?\s*(?P<amount>.*?)"
    r"\s*(?P<behind>[€$£¥₹₽₺]|[A-Z]{3}|kr|zł|Kč|Ft)?"
)
CODES = {
    *("AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HUF", "INR", "JPY"),
    *("KRW", "MXN", "NOK", "NZD", "PLN", "SEK", "TRY", "USD", "ZAR"),
}
BLANKS = " \u00a0\u2009\u202f"  # between the digits of thousands
EXACT = 2**53  # integers beyond are not exact in a double
NUMERIC = (int, float, np.integer, np.floating, decimals.Decimal)
DIGITS = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True)
class Reading:
    """How a table is to be read: what the options say; None and empty where the file itself
    tells.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    fill: bool = False
    dates: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        if self.dates is not None:
            check_choice("dates", self.dates, [*FORMS])
        if self.decimal is not None:
            check_choice("decimal", self.decimal, (".", ","))
        if self.sep is not None and len(self.separator or "") != 1:
            raise UserError(f"sep is {self.sep!r}; one character is needed, or tab")

    @property
    def separator(self) -> str | None:
        """The separator as a character."""
        return "\t" if self.sep in ("tab", "\\t") else self.sep


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


def _first_records(text: str, separator: str, most: int = 1000) -> list[list[str]]:
    """Return the first records of a table, without lines of comments above it and lines without a
    cell.
    """
    records = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if record and not (record[0].startswith("#") and len(record) == 1):
                records.append(record)
            if len(records) == most:
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
    above = filled[: filled.index(header_at)]
    if above:
        first = printable(str(records[above[0]][0]))[:40]
        notes.append(f"lines passed over above the header: {len(above)}, such as {first!r}")
    names = [_name(cell) for cell in records[header_at]]
    body = filled[filled.index(header_at) + 1 :]
    blank = len(records) - 1 - header_at - len(body)
    if blank:
        notes.append(f"lines without a value, passed over: {blank}")
    rows = []
    short = 0
    for place in body:
        record = [*records[place]]
        while len(record) > len(names) and _is_blank(record[-1]):
            record.pop()
        if len(record) > len(names):
            raise UserError(
                f"{path}, line {lines[place]}: it has more values ({len(record)}) than the header "
                f"has names ({len(names)}); mend the line, or name the separator by --sep"
            )
        short += len(record) < len(names)
        rows.append(record + [None] * (len(names) - len(record)))
    if short:
        notes.append(
            f"lines with fewer values than the header has names: {short}; the rest of them is "
            "missing"
        )
    frame = pd.DataFrame(rows, columns=range(len(names)), dtype=object)
    empty = [
        place for place, name in enumerate(names) if not name and frame[place].map(_is_blank).all()
    ]
    frame = frame.drop(columns=empty)
    frame.columns = [
        name or f"{NAMELESS}{place}" for place, name in enumerate(names) if place not in empty
    ]
    kept = np.array([lines[place] for place in body], np.int64)
    return _without_units(Table(frame, kept, notes))


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
    return {*needed} <= {*cells} and not any(map(_is_measured, cells))


def _without_units(table: Table) -> Table:
    """Return a table without a row of units under the header: it has no number, and it alone keeps
    two columns or more from being numbers.
    """
    frame = table.frame
    if len(frame) < 3 or not frame.columns.is_unique:
        return table
    units = []
    for _, column in frame.items():
        first = column.iloc[0]
        rest = column.iloc[1:]
        if _is_blank(first):
            continue
        if not isinstance(first, str) or _is_measured(first):
            return table
        if first.strip().casefold() in GAPS | MARKS:
            continue
        values = _values(rest)
        if values and all(map(_is_measured, values)):
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


def _is_measured(text: str) -> bool:
    """Return whether a text is a number, an amount of money or a date."""
    text = text.strip()
    if DATE.match(text) or any(form.fullmatch(text) for form in (DOTTED, SLASHED, YEAR_FIRST)):
        return True
    amount = without_currency(text)[0]
    return any(pattern.fullmatch(amount) for pattern in NUMBERS.values())


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


# -- columns --------------------------------------------------------------------------------------


def _number(point: str, comma: str) -> re.Pattern[str]:
    """Return what a number looks like with a decimal sign, and another one or blanks between
    thousands.
    """
    thousands = rf"[1-9][0-9]{{0,2}}(?P<mark>[{comma}{BLANKS}'’])[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*"
    digits = rf"(?=[{point}]?[0-9])(?:{thousands}|[0-9]*)(?:[{point}][0-9]*)?(?:[eE][+-]?[0-9]+)?"
    return re.compile(rf"[+−-]?(?:{digits}|inf(?:inity)?) ?%?", re.IGNORECASE)


NUMBERS = {".": _number(".", ","), ",": _number(",", ".")}


def tidy(
    frame: pd.DataFrame,
    reading: Reading | None = None,
    text: Collection[str] = (),
    separator: str | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """Return a frame of doubles, truths, dates, durations and text, and what is to be said on its
    columns.

    It changes no frame that it returned. Columns of `text` stay text. Numbers are numbers with a
    decimal comma, with marks between thousands, with a percent sign (12 % is 0.12) or with marks of
    missing values among them.
    """
    reading = reading or Reading()
    repeated = [str(name) for name, count in Counter(frame.columns).items() if count > 1]
    if repeated:
        raise UserError(
            f"columns share a name: {few(repeated)}; give each column a name of its own"
        )
    plain: dict[Any, pd.Series] = {}
    for name, column in frame.items():
        plain[name] = _native(column, reading)
    texts: dict[Any, _Text] = {}
    for name, column in plain.items():
        if _is_text(column) and name not in text:
            texts[name] = _Text(str(name), column, _numbers_by_text(frame[name]))
    sign = reading.decimal or _decimal_sign(texts.values(), separator)
    dates = reading.dates or _date_form(texts.values())
    said: dict[str, list[str]] = {}
    for name, values in texts.items():
        for words in values.convert(sign, dates):
            said.setdefault(words, []).append(str(name))
        plain[name] = values.column
    notes = [f"{few(names)}: {words}" for words, names in said.items()]
    for name in {*text} & {*plain}:
        plain[name] = _as_text(frame[name], reading)
    return pd.DataFrame(plain, index=frame.index), notes


def kind_of(column: pd.Series) -> str:
    """Return what a tidy column holds: ``number``, ``truth``, ``date``, ``duration``, ``text`` or
    ``other``.
    """
    kinds = {"b": "truth", "f": "number", "M": "date", "m": "duration"}
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in kinds:
        return kinds[column.dtype.kind]
    return "text" if _is_text(column) else "other"


def _is_text(column: pd.Series) -> bool:
    return column.dtype == object and all(isinstance(value, str) for value in column.dropna())


def _native(column: pd.Series, reading: Reading) -> pd.Series:
    """Return a column by its own type: numbers as doubles, dates without a zone, text and mixed
    columns as text.
    """
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        column = column.astype(object)
        dtype = column.dtype
    if not pd.api.types.is_object_dtype(dtype) and pd.api.types.is_bool_dtype(dtype):
        if column.isna().any():
            return pd.Series(column.to_numpy(np.float64, na_value=np.nan), index=column.index)
        return column.astype(bool)
    if pd.api.types.is_complex_dtype(dtype):
        return column.astype(object)
    if pd.api.types.is_integer_dtype(dtype) and _are_long(column.dropna()):
        return _as_text(column.astype(object), reading)
    if pd.api.types.is_numeric_dtype(dtype):
        numbers = pd.Series(column.to_numpy(np.float64, na_value=np.nan), index=column.index)
        return numbers.mask(numbers.isin(_numbers_among(reading.missing)))
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return _dates(column)
    if pd.api.types.is_timedelta64_dtype(dtype):
        return column
    known = column.dropna()
    kinds = {type(value) for value in known}
    if not kinds:
        return pd.Series(np.nan, index=column.index)
    if kinds <= {bool, np.bool_}:
        return column.astype(bool) if len(known) == len(column) else column.astype(np.float64)
    if all(issubclass(kind, datetime.date) for kind in kinds):
        return _dates(column)
    if all(issubclass(kind, datetime.timedelta) for kind in kinds):
        return pd.to_timedelta(column)
    if all(issubclass(kind, NUMERIC) for kind in kinds):
        if all(map(_is_whole, known)) and _are_long(known):
            return _as_text(column, reading)
        return _native(column.astype(np.float64), reading)
    if all(issubclass(kind, (str, datetime.date, *NUMERIC)) for kind in kinds):
        return _as_text(column, reading)
    return column.astype(object)


def _is_whole(value: Any) -> bool:
    """Return whether a number is whole, and of a type that keeps all digits."""
    if isinstance(value, decimals.Decimal):
        return value == value.to_integral_value()
    return isinstance(value, int | np.integer)


def _are_long(numbers: pd.Series) -> bool:
    """Return whether whole numbers are so long that doubles lose their last digits, as ids are."""
    return bool(((numbers >= EXACT) | (numbers <= -EXACT)).any())


def _dates(column: pd.Series) -> pd.Series:
    return pd.to_datetime(column, utc=True).dt.tz_localize(None).dt.as_unit("us")


def _numbers_among(texts: Collection[str]) -> list[float]:
    numbers = []
    for text in texts:
        try:
            numbers.append(float(text))
        except ValueError:
            continue
    return numbers


def _as_text(column: pd.Series, reading: Reading) -> pd.Series:
    """Return a column as text without blanks around it, and with None for what is missing."""
    gaps = {*GAPS, *(mark.casefold() for mark in reading.missing)}
    texts: list[str | None] = []
    for value, is_missing in zip(column, column.isna(), strict=True):
        text = None
        if not is_missing and cell_text(value).casefold() not in gaps:
            text = cell_text(value)
        texts.append(text)
    return pd.Series(texts, index=column.index, dtype=object)


def cell_text(value: Any) -> str:
    """Return a cell as text without blanks around it: whole numbers without a point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def without_currency(text: str) -> tuple[str, str]:
    """Return an amount of money and the sign of its currency; of any other text, itself and
    nothing.
    """
    found = MONEY.fullmatch(text)
    if found is None:
        return text, ""
    signs = [sign for sign in (found["before"], found["behind"]) if sign]
    is_word = any(sign.isalpha() and sign.isupper() and sign not in CODES for sign in signs)
    if len(signs) != 1 or is_word or not any(letter.isdigit() for letter in found["amount"]):
        return text, ""
    return f"{found['minus'] or ''}{found['amount']}", signs[0]


def _numbers_by_text(column: pd.Series) -> dict[str, float]:
    """Return the cells of a mixed column that are numbers, by the text that stands for them.

    Excel has such columns. A number has no decimal sign, whatever that of the text beside it is.
    """
    if not pd.api.types.is_object_dtype(column.dtype):
        return {}
    numbers = {}
    texts = set()
    for value in column.dropna():
        if isinstance(value, str):
            texts.add(value.strip())
        elif isinstance(value, NUMERIC) and not isinstance(value, bool):
            numbers[cell_text(value)] = float(value)
    return {text: number for text, number in numbers.items() if text not in texts}


class _Text:
    """A column of text, which may be numbers, truths or dates.

    `numbers` are those of its texts that stand for cells which are numbers.
    """

    def __init__(self, name: str, column: pd.Series, numbers: dict[str, float] | None = None):
        self.name = name
        self.column = column
        self.numbers = numbers or {}
        self.counts = Counter(self.column.dropna())
        self.texts = [*self.counts]
        plain = [text for text in self.texts if text.casefold() not in MARKS]
        amounts = {text: without_currency(text) for text in plain}
        self.bare = {text: amount for text, (amount, _) in amounts.items()}
        self.currencies = {sign for _, sign in amounts.values() if sign}
        self.marks = [text for text in self.texts if text.casefold() in MARKS]
        self.readable = {}
        for sign, pattern in NUMBERS.items():
            self.readable[sign] = {text for text in plain if pattern.fullmatch(self.bare[text])}
            self.readable[sign] |= self.numbers.keys() & {*plain}
        self.plain = {*plain}
        self.doubt: tuple[str, str] | None = None

    def reads(self, sign: str) -> bool:
        """Return whether all values but marks are numbers with a decimal sign."""
        enough = sum(self.counts[text] for text in self.plain) >= MOSTLY * self.counts.total()
        return bool(self.plain) and enough and self.readable[sign] == self.plain

    @property
    def signs(self) -> set[str]:
        """The commas and points in its values."""
        return {*".,"} & self._letters()

    def _letters(self) -> set[str]:
        """Return the letters of its values, less blanks and percent signs around them."""
        written = self.plain - self.numbers.keys()
        return set().union(*(self.bare[text].strip("% ") for text in written))

    @property
    def date_forms(self) -> set[str]:
        """The forms in which all values may be dates with slashes; empty if they are none."""
        parts = [SLASHED.fullmatch(text) for text in self.texts]
        present = [part for part in parts if part]
        if not present or len(present) < len(parts):
            return set()
        forms = set()
        if all(int(part[1]) <= 31 and int(part[2]) <= 12 for part in present):
            forms.add("day-first")
        if all(int(part[1]) <= 12 and int(part[2]) <= 31 for part in present):
            forms.add("month-first")
        return forms

    def convert(self, sign: str, dates: str | None) -> list[str]:
        """Make the column what it is beyond doubt; return what is to be said on it."""
        if not self.texts:
            self.column = pd.Series(np.nan, index=self.column.index)
            return []
        if {text.casefold() for text in self.texts} <= TRUTHS.keys():
            truths = self.column.str.casefold().map(TRUTHS)
            self.column = truths.astype(np.float64 if truths.isna().any() else bool)
            return []
        if all(DATE.match(text) for text in self.texts):
            return self._convert_dates("ISO8601")
        if all(DOTTED.fullmatch(text) for text in self.texts):
            return self._convert_dates("%d.%m.%Y")
        if all(YEAR_FIRST.fullmatch(text) for text in self.texts):
            return self._convert_dates("%Y/%m/%d")
        if all(SLASHED.fullmatch(text) for text in self.texts):
            return self._convert_slashed(dates)
        for candidate in (sign, OTHER_SIGN[sign]):
            if self.reads(candidate) and not self._is_of_long_numbers():
                return self._convert_numbers(candidate)
        self._find_doubt()
        return []

    def _convert_slashed(self, dates: str | None) -> list[str]:
        forms = self.date_forms
        if not forms:
            self.doubt = (
                "some of its dates have the day first and others the month",
                "write dates as 2020-05-07",
            )
            return []
        form = dates
        if len(forms) == 1:
            form = forms.pop()
        assert form is not None
        self._convert_dates(FORMS[form])
        return [f"dates with the {form.partition('-')[0]} first"]

    def _convert_dates(self, form: str) -> list[str]:
        dates = pd.to_datetime(self.column, format=form, utc=True, errors="coerce")
        wrong = self.column[dates.isna() & self.column.notna()]
        if len(wrong):
            self.doubt = (
                f"{wrong.iloc[0]!r} is no date",
                "mend it, or take it as missing by --missing",
            )
            return []
        self.column = _dates(dates)
        return []

    def _convert_numbers(self, sign: str) -> list[str]:
        if len(self.currencies) > 1:
            self.doubt = (
                f"its amounts are in {' and in '.join(sorted(self.currencies))}",
                "give one currency",
            )
            return []
        shares = [text for text in self.plain if text.endswith("%")]
        if shares and len(shares) < len(self.plain):
            self.doubt = (
                "some of its numbers have a percent sign, and others have none",
                "write all alike",
            )
            return []
        comma = OTHER_SIGN[sign]
        removed = str.maketrans(dict.fromkeys(f"{comma}{BLANKS}'’%") | {"−": "-", sign: "."})
        written = self.plain - self.numbers.keys()
        values = {text: float(self.bare[text].translate(removed)) for text in written}
        if shares:
            values = {text: value / 100 for text, value in values.items()}
        self.column = self.column.map(values | self.numbers).astype(np.float64)
        said = []
        if sign == "," and any(sign in self.bare[text] for text in written):
            said.append("the decimal sign is a comma")
        if self._letters() & {*f"{comma}{BLANKS}'’"}:
            said.append("marks between thousands were taken out")
        if self.currencies:
            said.append(f"the sign {few(sorted(self.currencies))} was taken out")
        if shares:
            said.append("percent became shares")
        if self.marks:
            count = sum(self.counts[mark] for mark in self.marks)
            said.append(f"{few(sorted(self.marks))} stands for a missing value {count} times")
        return said

    def _is_of_long_numbers(self) -> bool:
        """Return whether all values are whole numbers, some of them too long for a double."""
        if not all(map(DIGITS.fullmatch, self.plain)):
            return False
        return _are_long(pd.Series([int(text) for text in self.plain], dtype=object))

    def _find_doubt(self) -> None:
        """Note what keeps a column of numbers from being one."""
        if self._is_of_long_numbers():
            self.doubt = (
                "its whole numbers have more digits than a number keeps, as ids have",
                "shorter numbers, or a unit that makes them smaller, would keep it",
            )
            return
        readable = max(self.readable.values(), key=len)
        others = sorted({*self.texts} - readable, key=lambda text: -self.counts[text])
        count = sum(self.counts[text] for text in others)
        if count > (1 - MOSTLY) * self.counts.total():
            return
        named = few([repr(text) for text in others])
        self.doubt = (f"{count} of its values are no numbers ({named})", "--missing takes them out")


def doubt_of(column: pd.Series) -> tuple[str, str]:
    """Return what keeps a tidy column of text from being numbers or dates, and what would mend it;
    else nothing.
    """
    text = _Text(str(column.name), column)
    text.convert(_sign_of(text), "day-first")
    return text.doubt or ("", "")


def _sign_of(text: _Text) -> str:
    return "," if text.reads(",") and not text.reads(".") else "."


def _decimal_sign(texts: Collection[_Text], separator: str | None) -> str:
    """Return the decimal sign of a table; raise `UserError` if a column may be read with both, and
    nothing tells.
    """
    texts = [*texts]
    certain = set()
    for text in texts:
        signs = [sign for sign in OTHER_SIGN if text.reads(sign)]
        if len(signs) == 1:
            certain.add(signs[0])
    if len(certain) == 1:
        return certain.pop()

    for text in texts:
        is_open = text.reads(".") and text.reads(",") and bool(text.signs)
        if is_open and (text.signs != {"."} or separator == ";"):
            example = next(value for value in text.texts if {*value} & {".", ","})
            raise UserError(
                f"column {text.name} holds {example}, whose sign may be that of decimals or of "
                "thousands; name the decimal sign by --decimal"
            )
    return "."


def _date_form(texts: Collection[_Text]) -> str | None:
    """Return the form of a table's dates with slashes; raise `UserError` if nothing tells where the
    day stands.
    """
    certain = set()
    for text in texts:
        if len(text.date_forms) == 1:
            certain |= text.date_forms
    if len(certain) == 1:
        return certain.pop()

    for text in texts:
        if len(text.date_forms) == 2:
            raise UserError(
                f"column {text.name} holds {text.texts[0]}, whose day may stand first or second; "
                "name the form by --dates day-first or --dates month-first"
            )
    return None


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
