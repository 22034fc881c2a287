"""Columns of a table: text that is numbers with a few marks among them, truths or dates.

What is beyond doubt is done and said in a line. What is in doubt is a sentence with the option that
settles it.
"""

from __future__ import annotations

import datetime
import decimal as decimals
import re
from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from mdpu.errors import UserError
from mdpu.own.account import few
from mdpu.own.reading import FORMS, Reading

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
MONEY = re.compile(
    r"(?:(?P<minus>[+−-]) ?)?(?P<before>R\$|[€$£¥₹₽₺]|[A-Z]{3}|kr|Fr\.)?\s*(?P<amount>.*?)"
    r"\s*(?P<behind>[€$£¥₹₽₺]|[A-Z]{3}|kr|zł|Kč|Ft)?"
)
CODES = {  # of currencies, ISO 4217
    *("AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HUF", "INR", "JPY"),
    *("KRW", "MXN", "NOK", "NZD", "PLN", "SEK", "TRY", "USD", "ZAR"),
}
BLANKS = " \u00a0\u2009\u202f"  # between the digits of thousands
EXACT = 2**53  # integers beyond are not exact in a double
NUMERIC = (int, float, np.integer, np.floating, decimals.Decimal)
DIGITS = re.compile(r"[+-]?[0-9]+")


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
        return _native(column.astype(object), reading)
    if pd.api.types.is_object_dtype(dtype):
        return _native_of_objects(column, reading)
    if pd.api.types.is_bool_dtype(dtype):
        return _truths(column)
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
    return _native_of_objects(column, reading)


def _native_of_objects(column: pd.Series, reading: Reading) -> pd.Series:
    """Return a column by the types of its values."""
    known = column.dropna()
    types = {type(value) for value in known}
    if not types:
        return pd.Series(np.nan, index=column.index)
    if types <= {bool, np.bool_}:
        return _truths(column)
    if all(issubclass(kind, datetime.date) for kind in types):
        return _dates(column)
    if all(issubclass(kind, datetime.timedelta) for kind in types):
        return pd.to_timedelta(column)
    if all(issubclass(kind, NUMERIC) for kind in types):
        if all(map(_is_whole, known)) and _are_long(known):
            return _as_text(column, reading)
        return _native(column.astype(np.float64), reading)
    if all(issubclass(kind, (str, datetime.date, *NUMERIC)) for kind in types):
        return _as_text(column, reading)
    return column.astype(object)


def _truths(column: pd.Series) -> pd.Series:
    """Return truths as they are, or as 0, 1 and NaN where some are missing."""
    if column.isna().any():
        return pd.Series(column.to_numpy(np.float64, na_value=np.nan), index=column.index)
    return column.astype(bool)


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
    match = MONEY.fullmatch(text)
    if match is None:
        return text, ""
    signs = [sign for sign in (match["before"], match["behind"]) if sign]
    is_word = any(sign.isalpha() and sign.isupper() and sign not in CODES for sign in signs)
    if len(signs) != 1 or is_word or not any(letter.isdigit() for letter in match["amount"]):
        return text, ""
    return f"{match['minus'] or ''}{match['amount']}", signs[0]


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
        unreadable = sorted({*self.texts} - readable, key=lambda text: -self.counts[text])
        count = sum(self.counts[text] for text in unreadable)
        if count > (1 - MOSTLY) * self.counts.total():
            return
        named = few([repr(text) for text in unreadable])
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


def is_measured(text: str) -> bool:
    """Return whether a text is a number, an amount of money or a date."""
    text = text.strip()
    if DATE.match(text) or any(form.fullmatch(text) for form in (DOTTED, SLASHED, YEAR_FIRST)):
        return True
    amount = without_currency(text)[0]
    return any(pattern.fullmatch(amount) for pattern in NUMBERS.values())
