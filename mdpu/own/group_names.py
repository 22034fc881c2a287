"""Names of groups: what stands in a column, or in several, and which rows it puts together."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mdpu.data import UNLABELED, whole_key
from mdpu.errors import UserError
from mdpu.own.reading import Reading
from mdpu.own.tables import column_of
from mdpu.own.values import EXACT, GAPS, cell_text

# names of a table that say that a row has no group
NO_GROUP = (str(UNLABELED), "unlabeled", "unlabelled")
ODD_NAMES = GAPS | {"-", "--", "?"}  # names of groups that may stand for a missing one
# share of groups of one row, followed by rows without a group, from which on cells may have been
# merged
FOLLOWED = 0.9
# times the largest other group that the last one may have after names were filled downwards
BEYOND = 2
# names of a last row that sums up the others
TOTALS = {
    "average",
    "gesamt",
    "gesamtsumme",
    "grand total",
    "mean",
    "mittelwert",
    "sum",
    "summe",
    "total",
    "totals",
}


@dataclass(frozen=True)
class GroupNames:
    """Names of the groups of rows (N,), None for none; how many there are, and were before blanks
    were taken away. Without columns that name groups, `names` is None.
    """

    names: NDArray[Any] | None = None
    written: int = 0
    groups: int = 0
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, frame: pd.DataFrame, keys: Sequence[str], reading: Reading) -> GroupNames:
        """Return the names in one column, or in several of which all or none are filled."""
        if not keys:
            return cls()
        written = [_names_as_written(column_of(frame, key), reading) for key in keys]
        if len(keys) > 1:
            table = pd.DataFrame(dict(enumerate(written)))
            partly = table.isna().any(axis=1) & table.notna().any(axis=1)
            if partly.any():
                raise UserError(
                    f"{int(partly.sum())} rows have a value in some of {' and '.join(keys)} and "
                    "none in others; fill all of them, or none where a row has no group"
                )
            joined = [" / ".join(row) for row in table.fillna("").itertuples(index=False)]
            whole = pd.Series(joined, dtype=object).where(table.notna().all(axis=1), None)
        else:
            whole = written[0]
        return cls.clean(whole, reading.fill)

    @classmethod
    def clean(cls, written: pd.Series, fill: bool) -> GroupNames:
        """Return names without blanks around them; `fill` reads them downwards over empty cells."""
        names = written.map(_clean_name, na_action="ignore").astype(object)
        names = names.where(names != "", None)
        empty = names.isna()
        if fill:
            names = names.ffill()

        said_none = names.map(_says_no_group)
        n_called = int((said_none & (names != str(UNLABELED))).sum())
        names = names.mask(said_none, None)
        names = names.astype(object).where(names.notna(), None)

        notes = []
        if n_called:
            notes.append(
                "rows whose group is called unlabeled were taken as rows without a group: "
                f"{n_called}"
            )
        if fill:
            notes.append(f"names filled downwards: {int((empty & names.notna()).sum())} rows")
            _check_filled(names)
        known = names.notna()
        different = [*names[known].unique()]
        notes += _doubts_of(names, different)
        return cls(names.to_numpy(object), written[known].nunique(), len(different), notes)


def _says_no_group(name: Any) -> bool:
    return isinstance(name, str) and name.casefold() in NO_GROUP


def _names_as_written(column: pd.Series, reading: Reading) -> pd.Series:
    """Return ids as text with the blanks around it, and None for missing ones."""
    kind = column.dtype
    if pd.api.types.is_float_dtype(kind):
        known = column.dropna()
        if (known % 1 != 0).any():
            raise UserError(
                "ids are numbers with fractions; names or integers are needed, or missing for "
                "unlabeled rows"
            )
        if (known.abs() >= EXACT).any():
            raise UserError(
                f"ids of column {column.name} are doubles beyond 2^53, which lost their last "
                "digits; give them as integers (Int64) or as text"
            )
    missing = {mark.casefold() for mark in reading.missing}
    names: list[str | None] = []
    for value, is_missing in zip(column.astype(object), column.isna(), strict=True):
        key = None if is_missing else whole_key(value)
        name = None if key is None else _id_text(key)
        if name is not None and name.strip().casefold() in {"", *missing}:
            name = None
        names.append(name)
    return pd.Series(names, dtype=object)


def _id_text(value: Any) -> str:
    """Return an id as text, with the blanks around it if it is text."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return " / ".join(cell_text(part) for part in value)
    return cell_text(value)


def _clean_name(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip().strip("\u200b\ufeff"))


def _folded(name: str) -> str:
    """Return a name in small letters, with one blank where there are several."""
    return " ".join(name.casefold().split())


def _check_filled(names: pd.Series) -> None:
    sizes = names.value_counts()
    if len(sizes) < 2:
        return
    last = names.dropna().iloc[-1]
    largest_other = sizes.drop(last).max()
    if sizes[last] > BEYOND * largest_other:
        raise UserError(
            f"the last name, {last}, would be filled down to {sizes[last]} rows, and no other "
            f"group has more than {largest_other}; write -1 into the first row that has no group"
        )


def _doubts_of(names: pd.Series, different: list[str]) -> list[str]:
    """Return lines on names that may be one, may be none, or stand in the first row of a group
    only.
    """
    notes = []
    folded = Counter(map(_folded, different))
    alike = len(different) - len(folded)
    if alike:
        example = next(text for text, count in folded.items() if count > 1)
        pair = [name for name in different if _folded(name) == example][:2]
        notes.append(
            f"names that differ by capitals or by blanks within alone: {alike}, such as "
            f"{pair[0]!r} and {pair[1]!r}; "
            "they are different groups; write them alike if they are one"
        )
    sizes = names.value_counts()
    for name in different:
        if name.casefold() in ODD_NAMES:
            notes.append(
                f"a group of {sizes[name]} rows is called {name}; if these have no group, "
                f"--missing {name}"
            )
    last = "" if names.tail(1).isna().all() else names.iloc[-1]
    if last.casefold().strip(" :") in TOTALS:
        notes.append(
            f"the last row is of a group called {last}: if it sums up the others, remove it"
        )
    known = names.notna().to_numpy()
    followed = np.append(~known[1:], False)[known]
    if len(sizes) > 1 and sizes.max() == 1 and followed.mean() >= FOLLOWED:
        notes.append(
            "every group has one row and is followed by unlabeled rows: if cells were merged, or "
            "names written once, --fill reads them downwards"
        )
    return notes
