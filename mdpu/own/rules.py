"""What is known of the positives in groups: a law for all of them, or a number or a label for each.

A law is named as in `mdpu.law.named_law`: ``dominant``, ``at-least-1``, ``exactly-1``,
``between-1-2``, ``similar``. A column of counts holds a number, a share, or bounds such as 1-3 or
1+. A column of labels says of each group whether it keeps the law, as bags of multiple-instance
learning are labelled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mdpu.data import UNLABELED, Indices
from mdpu.errors import UserError
from mdpu.law import Law, named_law
from mdpu.own.account import few
from mdpu.own.values import GAPS, cell_text

# difference of the share of positives in groups and the prior below which members say nothing
NEAR = 1e-9
# distance of a prior from the centre of a mirror, from which on the classes are told apart
TIE = 0.05
EXACT = 1e-6  # error of a share with many digits
DIGITS = 8  # from which on a share is not one that somebody rounded

NAMES = re.compile(
    r"dominant|similar|at-least-\d+|exactly-\d+|between-\d+-\d+|[0-9.]+(?:,[0-9.]+)+"
)
COUNT = re.compile(r"(\d+)")
BETWEEN = re.compile(r"(\d+)\s*(?:-|–|\.\.|to)\s*(\d+)")
AT_LEAST = re.compile(r"(\d+)\s*\+|(?:>=|≥)\s*(\d+)")
SHARE = re.compile(r"(\d*[.,]\d+|\d+)\s*(%?)")
LABELS = {"1": True, "+1": True, "true": True, "yes": True, "positive": True, "pos": True}
LABELS |= {"0": False, "-1": False, "false": False, "no": False, "negative": False, "neg": False}


@dataclass(frozen=True)
class Rule:
    """What is known of the number of positives in each group.

    Parameters
    ----------
    law : str
        A name of `mdpu.law.named_law`.
    dominant : {'positive', 'negative'}
        The class of the law ``dominant``.
    counts : (low, high), optional
        The least and the largest number of positives in each group, integers (n,), in place of a
        law.
    column : str
        The column that says so.
    is_label : bool
        Whether the column says which groups keep the law.
    """

    law: str = "dominant"
    dominant: str = "positive"
    counts: tuple[Indices, Indices] | None = None
    column: str = ""
    is_label: bool = False

    def law_of(self, size: int) -> Law:
        """Return the law of groups of a size."""
        if self.law == "dominant" and self.dominant == "negative":
            return Law.between(size, 0, size // 2)
        return named_law(self.law, size)

    def laws(self, sizes: Sequence[int]) -> Law | str:
        """Return the law as `TupleClassifier` takes it: that of one size, or its name."""
        different = {*map(int, sizes)}
        if len(different) == 1:
            return self.law_of(different.pop())
        return self.law

    def take(self, places: Indices) -> Rule:
        """Return the rule of some groups."""
        if self.counts is None:
            return self
        return replace(self, counts=(self.counts[0][places], self.counts[1][places]))

    def __str__(self) -> str:
        """Return the rule as a sentence."""
        if self.counts is not None and not self.is_label:
            return f"the column {self.column} says how many of a group’s rows are positive"
        if self.is_label:
            return (
                f"the column {self.column} says whether {self._said('a group’s rows', 'are', 'is')}"
            )
        return self._said("each group’s rows", "are", "is")

    def clause(self) -> str:
        """Return what is doubted of a suspicious group, such as "at least half of them were
        positive".
        """
        if self.counts is not None:
            return f"the column {self.column} were right"
        return self._said("them", "were", "was")

    def _said(self, rows: str, plural: str, singular: str) -> str:
        """Return how many of some rows are of a class."""
        if "," in self.law:
            weights = self.law.replace(",", ", ")
            return f"groups with 0, 1, 2, ... positives were collected with the weights {weights}"
        kind, *numbers = re.split(r"-(?=\d)", self.law)
        if kind == "similar":
            return f"all of {rows} {plural} of one class"
        if kind == "dominant":
            return f"at least half of {rows} {plural} {self.dominant}"
        verb = singular if numbers == ["1"] else plural
        named = "one" if numbers == ["1"] else " to ".join(numbers)
        quantity = {"at-least": "at least ", "exactly": "exactly "}.get(kind, "")
        return f"{quantity}{named} of {rows} {verb} positive"

    # -- what is refused ------------------------------------------------------------------------

    def check(self, sizes: Sequence[int], unlabeled: int) -> None:
        """Raise `UserError` if the rule cannot hold for groups of these sizes, or says nothing of
        them.
        """
        if not NAMES.fullmatch(self.law):
            raise UserError(
                f"law is {self.law!r}; known are dominant, similar, at-least-1, exactly-1 and "
                "between-1-2, with other "
                "numbers too, and the weights of groups with 0, 1, ... positives, such as 0,0.2,1"
            )
        if self.dominant == "negative" and (self.law != "dominant" or self.counts is not None):
            raise UserError(
                f"--dominant negative is for the law dominant; leave it out, as {self} says more"
            )
        if self.counts is None:
            for size, count in sorted(Counter(map(int, sizes)).items()):
                self._check_size(size, count)
            return
        low, high = self.counts
        shares = {*zip(low.tolist(), high.tolist(), np.asarray(sizes).tolist(), strict=True)}
        constant = len({(low / size, high / size) for low, high, size in shares}) == 1
        if constant and not unlabeled:
            raise UserError(
                f"the column {self.column} says the same of all groups, and there are no unlabeled "
                "rows, so nothing tells the classes apart; add groups of which it says something "
                "else, or unlabeled rows"
            )

    def _check_size(self, size: int, count: int) -> None:
        try:
            self.law_of(size)
        except UserError:
            raise UserError(
                f"the law {self.law} says nothing of groups of {size} rows, of which there are "
                f"{count}, or is for another number of rows; leave them out, or name another law"
            ) from None

    def check_identified(
        self, sizes: Sequence[int], prior: float | None, guess_prior: bool, positive_by: str | None
    ) -> None:
        """Raise `UserError` if groups by this law, however many, do not tell what is asked for."""
        if self.counts is not None:
            return
        laws = {size: self.law_of(size) for size in {*map(int, sizes)}}
        identified = {law.identifies() for law in laws.values()}
        what = "all"
        centre = None
        if len(identified) == 1:
            what, centre = identified.pop()
        if what == "family" and prior is None and not guess_prior:
            raise UserError(
                f"groups of {_listed(laws)} by the law {self.law} do not tell the prior, however "
                "many there are; give it by --prior"
            )
        if what == "mirror" and centre is not None:
            self._check_mirror(centre, len(sizes), prior, positive_by)
        if prior is not None:
            self._check_members(laws, Counter(map(int, sizes)), prior)

    def _check_mirror(
        self, centre: float, n: int, prior: float | None, positive_by: str | None
    ) -> None:
        symmetric = abs(centre - 0.5) < NEAR
        if positive_by is not None and symmetric:
            return
        ways = f"give a prior other than {centre:.2g} by --prior"
        if symmetric:
            ways += ", or by --positive-by a column of numbers that are larger in positive rows"
        if prior is None or abs(prior - centre) <= max(TIE, n**-0.5):
            near = ""
            if prior is not None:
                near = f", and prior {prior} is too near {centre:.2g}"
            raise UserError(
                f"the law {self.law} is the same with the classes exchanged{near}, so nothing says "
                f"which class is positive; {ways}"
            )

    def _check_members(self, laws: dict[int, Law], counts: Counter[int], prior: float) -> None:
        excess = sum(
            law.coefficients(prior).denominator * counts[size] for size, law in laws.items()
        )
        if abs(excess) / counts.total() < NEAR:
            raise UserError(
                f"at prior {prior} the rows of groups by the law {self.law} are positive as often "
                "as unlabeled rows, so nothing without labels says how good a classifier is; take "
                "groups of another size, or TupleClassifier in Python with labelled rows to judge "
                "by"
            )


def _listed(sizes: Any) -> str:
    return f"{few([*map(str, sorted(sizes))])} rows"


# -- columns of counts and of labels --------------------------------------------------------------


def read_counts(
    column: pd.Series, groups: Indices, names: Sequence[str]
) -> tuple[Indices, Indices]:
    """Return the least and the largest number of positives in each group.

    Parameters
    ----------
    column : Series, shape (N,)
        Numbers, shares, or bounds such as 1-3 or 1+, by row; in the rows of a group the same, or
        missing.
    groups : ndarray, int64, shape (N,)
        Groups of the rows, of `number_groups`.
    names : sequence of str
        Names of the groups.

    Raises
    ------
    UserError
        If a group has no value or several, or one that is impossible; or all are 0 and 1, which
        labels are too.
    """
    texts, sizes = _of_groups(column, groups, names)
    are_shares = any(_is_share(text) for text in texts)
    low = np.empty(len(texts), np.int64)
    high = np.empty(len(texts), np.int64)
    for place, (text, size) in enumerate(zip(texts, sizes, strict=True)):
        bounds = _bounds(text, int(size), are_shares)
        if bounds is None or not 0 <= bounds[0] <= bounds[1] <= size:
            raise UserError(
                f"column {column.name} holds {text!r} for group {names[place]} of {size} rows; a "
                "number of positives "
                "from 0 to that is needed, a share of them, or bounds such as 1-3 or 1+"
            )
        low[place], high[place] = bounds
    if {*texts} <= {"0", "1"} and sizes.max() > 1:
        raise UserError(
            f"column {column.name} holds 0 and 1 alone: if 1 says that a group has a positive row, "
            "name it by --label and --law at-least-1; if it is the exact number, write 1-1 for 1"
        )
    return low, high


def read_labels(
    column: pd.Series, groups: Indices, names: Sequence[str], law: str
) -> tuple[Indices, Indices]:
    """Return the least and the largest number of positives in groups of which a column says if they
    keep a law.
    """
    texts, sizes = _of_groups(column, groups, names)
    low = np.empty(len(texts), np.int64)
    high = np.empty(len(texts), np.int64)
    for place, (text, size) in enumerate(zip(texts, sizes, strict=True)):
        label = LABELS.get(text.casefold())
        if label is None:
            raise UserError(
                f"column {column.name} holds {text!r} for group {names[place]}; write 1 where the "
                "group keeps the law and 0 where it does not"
            )
        kept = np.array(named_law(law, int(size)).weights) == float(label)
        inside = np.flatnonzero(kept)
        if len(inside) == 0 or len(inside) <= np.ptp(inside):
            raise UserError(
                f"--label needs a law with one bound, such as at-least-1 or dominant; with {law} "
                f"no bounds say what holds for group {names[place]}"
            )
        low[place], high[place] = inside[0], inside[-1]
    return low, high


def _of_groups(
    column: pd.Series, groups: Indices, names: Sequence[str]
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the one text that a column holds for each group, and the groups' sizes."""
    missing = column.isna().to_numpy()
    held: list[str] = [""] * len(names)
    numbers, sizes = np.unique(groups[groups != UNLABELED], return_counts=True)
    place_of = {int(number): place for place, number in enumerate(numbers)}
    for group, value, is_missing in zip(groups.tolist(), column, missing, strict=True):
        text = "" if is_missing else cell_text(value)
        if group == UNLABELED or text.casefold() in GAPS:
            continue
        place = place_of[group]
        if held[place] and held[place] != text:
            raise UserError(
                f"column {column.name} holds {held[place]} and {text} for group {names[place]}; a "
                "group has one value"
            )
        held[place] = text
    lacking = [name for name, text in zip(names, held, strict=True) if not text]
    if lacking:
        raise UserError(
            f"column {column.name} holds nothing for {len(lacking)} groups ({few(lacking)}); fill "
            "it, or leave the names of these groups empty, so that their rows are unlabeled"
        )
    return held, sizes


def _is_share(text: str) -> bool:
    match = SHARE.fullmatch(text)
    return bool(match) and not COUNT.fullmatch(text)


def _bounds(text: str, size: int, is_share: bool) -> tuple[int, int] | None:
    """Return the least and the largest number of positives that a text allows in a group of a size,
    or None.
    """
    if is_share:
        return _bounds_of_share(text, size)
    if match := COUNT.fullmatch(text):
        return int(match[1]), int(match[1])
    if match := BETWEEN.fullmatch(text):
        return int(match[1]), int(match[2])
    if match := AT_LEAST.fullmatch(text):
        return int(match[1] or match[2]), size
    return None


def _bounds_of_share(text: str, size: int) -> tuple[int, int] | None:
    """Return the numbers of positives whose share of a size is this one, after rounding to its
    digits.
    """
    match = SHARE.fullmatch(text)
    if match is None:
        return None
    number = match[1].replace(",", ".")
    digits = len(number.partition(".")[2])
    share = float(number)
    half = 0.5 * 10.0**-digits
    if match[2]:
        share /= 100
        half /= 100
    elif not 0 < digits < DIGITS:
        half = EXACT
    if share > 1:
        return None
    low = np.ceil(size * (share - half) - NEAR)
    high = np.floor(size * (share + half) + NEAR)
    return max(0, int(low)), min(size, int(high))
