"""What the columns of a table become for a classifier: numbers, and a column for each frequent
category.

>>> classifier = make_pipeline(TableEncoder(), MDPUClassifier())
>>> classifier.fit(data.rows, data.groups)  # of `read_groups`
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import OneHotEncoder

from mdpu.errors import UserError, warn
from mdpu.own.account import Column, few
from mdpu.own.tables import NAMELESS, suggest
from mdpu.own.values import cell_text, doubt_of, kind_of, tidy

# categories of a column of text; all others count as one
KINDS = {"min_frequency": 10, "max_categories": 30}
NAMES = 0.5  # share of different values in a column of text, from which on it names rows
ENOUGH = 5  # rows from which on a column that lies outside of what training saw is worth a line
MANY = 30  # whole numbers that rise from row to row, from which on they number the rows
MISSING = "missing"  # the category of a missing value
RESERVED = ("answer", "probability")  # columns that `predict` adds

NOUNS = {
    "number": "numbers",
    "truth": "truths",
    "date": "dates",
    "duration": "durations",
    "category": "categories",
}
HINTS = {
    "date": "write dates as 2020-05-07",
    "duration": "give durations",
    "truth": "write true and false",
}


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Makes numbers of a table: dates are days since 1970, durations days, truths 0 and 1,
    categories columns.

    It takes the frames of `read_groups`, and any other. A column of text with more than 30
    different values, and more of them than half the rows, names rows: it is left out.

    Parameters
    ----------
    drop : sequence of str
        Columns to leave out.

    Attributes
    ----------
    columns_ : list of dict
        All columns of the table, as `mdpu.own.account.Column` describes them; `columns` returns
        these.
    """

    def __init__(self, drop: Sequence[str] = ()):
        self.drop = drop

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn the columns of a frame: what they hold, their categories, and which to leave out
        and why.
        """
        frame, _ = tidy(_frame(X))
        lacking = [name for name in self.drop if name not in frame]
        if lacking:
            raise UserError(
                f"there is no column {lacking[0]} to leave out{suggest(lacking[0], [*frame])}"
            )
        columns = [self._describe(str(name), column) for name, column in frame.items()]
        self.columns_ = [vars(column) for column in columns]
        used = [column for column in columns if column.used]
        if not used:
            raise UserError(
                "no column is left to learn from; left out: "
                f"{few([column.name for column in columns])}"
            )
        reserved = [column.name for column in used if column.name in RESERVED]
        if reserved:
            raise UserError(f"rename the column {reserved[0]}: predict gives answers this name")
        self.kinds_ = {column.name: column.kind for column in used}
        self.ranges_ = {}
        for name in self._plain():
            numbers = _numbers(str(name), frame[name])
            if numbers.notna().any():
                self.ranges_[name] = [float(numbers.min()), float(numbers.max())]
        categories = self.categories()
        self.encoder_ = None
        self.known_ = {}
        if categories:
            texts = frame[categories].fillna(MISSING)
            self.encoder_ = OneHotEncoder(
                handle_unknown="infrequent_if_exist", sparse_output=False, **KINDS
            ).fit(texts)
            self.known_ = {name: sorted(texts[name].unique()) for name in categories}
        return self

    def columns(self) -> list[Column]:
        """Return all columns of the table."""
        return [Column(**column) for column in self.columns_]

    def categories(self) -> list[str]:
        """Return the columns of categories."""
        return [name for name, kind in self.kinds_.items() if kind == "category"]

    def sources(self) -> list[str]:
        """Return the columns of the table that those of `transform` come from, one for each."""
        names: list[str] = []
        if self.encoder_ is not None:
            known = self.encoder_.categories_
            rare = self.encoder_.infrequent_categories_  # which count as one
            for name, texts, together in zip(self.categories(), known, rare, strict=True):
                count = len(texts)
                if together is not None:
                    count += 1 - len(together)
                names += [name] * count
        return names + self._plain()

    def transform(self, X: Any) -> pd.DataFrame:
        """Return a frame of doubles; warn of columns whose values have nothing in common with those
        of training.
        """
        X = _frame(X)
        names = [*map(str, X.columns)]
        lacking = [name for name in self.kinds_ if name not in X]
        if lacking:
            raise UserError(
                f"there is no column {few(lacking)}, as in training{suggest(lacking[0], names)}"
            )
        frame, _ = tidy(X[[*self.kinds_]], text=self.categories())
        plain = {name: self._checked(name, frame[name]) for name in self._plain()}
        encoded = pd.DataFrame(plain, index=frame.index, dtype=np.float64)
        if self.encoder_ is None:
            return encoded
        categories = self.categories()
        texts = frame[categories].fillna(MISSING)
        for name in categories:
            self._warn_of_new(name, frame[name].dropna())
        hot = pd.DataFrame(
            self.encoder_.transform(texts),
            index=frame.index,
            columns=_without_collisions(self.encoder_.get_feature_names_out(), encoded.columns),
        )
        return pd.concat([hot, encoded], axis=1)

    def _plain(self) -> list[str]:
        return [name for name, kind in self.kinds_.items() if kind != "category"]

    def _describe(self, name: str, column: pd.Series) -> Column:
        kind = kind_of(column)
        if name in self.drop:
            return Column(name, kind, False, "--drop names it")
        if kind == "number" and _numbers_rows(name, column):
            reason = "it numbers the rows, so it says where a row stands"
            return Column(name, kind, False, reason, "rows in another order keep it")
        if kind == "other":
            held = type(column.dropna().iloc[0]).__name__
            return Column(
                name,
                kind,
                False,
                f"its cells are neither numbers nor text ({held})",
                "write them as text",
            )
        if kind != "text":
            return Column(name, kind, True)
        different = column.nunique()
        if different > max(KINDS["max_categories"], NAMES * len(column)):
            reason = (
                f"{different} different texts in {len(column)} rows name rows rather than describe "
                "them"
            )
            remedy = "numbers, dates such as 2020-05-07 or fewer different texts would keep it"
            doubt = doubt_of(column)
            return Column(name, kind, False, doubt[0] or reason, doubt[1] or remedy)
        return Column(name, "category", True, *doubt_of(column))

    def _checked(self, name: str, column: pd.Series) -> pd.Series:
        """Return a column of new rows as numbers, or raise `UserError` if it holds something else
        than in training.
        """
        kind = kind_of(column)
        known = self.kinds_[name]
        if column.notna().any() and kind != known and {kind, known} != {"number", "truth"}:
            example = cell_text(column.dropna().iloc[0])[:40]
            raise UserError(
                f"column {name} held {NOUNS[known]} in training and holds "
                f"{NOUNS.get(kind, 'text')} now, such as "
                f"{example}; {HINTS.get(known, 'write numbers')}"
            )
        numbers = _numbers(name, column)
        seen = self.ranges_.get(name)
        inside = numbers.dropna()
        if seen and len(inside) >= ENOUGH and (inside.max() < seen[0] or inside.min() > seen[1]):
            warn(
                f"all values of column {name} lie outside of what training saw, "
                f"{_shown(seen[0], known)} to {_shown(seen[1], known)}: is its unit another one?"
            )
        return numbers

    def _warn_of_new(self, name: str, texts: pd.Series) -> None:
        known = [*self.known_[name]]
        if len(texts) and not texts.isin(known).any():
            example = str(texts.iloc[0])
            names = [value for value in known if value != MISSING]
            warn(
                f"no value of column {name} was seen in training, such as {example!r}; training "
                f"knew {few([repr(value) for value in names])}{suggest(example, names)}"
            )


def _numbers_rows(name: str, column: pd.Series) -> bool:
    """Return whether numbers rise from row to row: whole ones, and many, if the column has a
    name.
    """
    numbers = column.dropna()
    if not (numbers.diff().dropna() > 0).all():
        return False
    if name.startswith(NAMELESS):
        return True
    return len(numbers) >= MANY and bool((numbers % 1 == 0).all())


def _frame(X: Any) -> pd.DataFrame:
    if not isinstance(X, pd.DataFrame):
        raise UserError(f"rows are {type(X).__name__}; TableEncoder takes a frame")
    if all(isinstance(name, str) for name in X.columns):
        return X
    return X.set_axis([*map(str, X.columns)], axis=1)


def _numbers(name: str, column: pd.Series) -> pd.Series:
    """Return a tidy column as doubles: days since 1970, days, 0 and 1."""
    kind = kind_of(column)
    if kind == "date":
        numbers = (column - pd.Timestamp(0).as_unit("us")) / pd.Timedelta(days=1)
    elif kind == "duration":
        numbers = column.dt.total_seconds() / 86400
    else:
        numbers = column.astype(np.float64)
    if np.isinf(numbers).any():
        raise UserError(f"column {name} holds an infinite number; write it as missing")
    return numbers


def _shown(number: float, kind: str) -> str:
    if kind == "date":
        return str((pd.Timestamp(0) + pd.Timedelta(days=number)).date())
    return f"{number:.6g}"


def _without_collisions(names: Collection[str], existing: Collection[str]) -> list[str]:
    """Return names of which none is among the existing ones or stands twice: more underscores are
    put behind.
    """
    taken = {*map(str, existing)}
    free = []
    for name in names:
        while name in taken:
            name += "_"
        taken.add(name)
        free.append(name)
    return free
