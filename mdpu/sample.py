"""What a fit reads: rows, each once, and the tuples and unlabeled rows among them, by law.

`Sample` is read once in a fit. Everything that learns or judges takes it, or its `Bags`, which know
no rows. `mdpu.data` has the indices alone, as the trainer of the paper's networks takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mdpu.data import Indices, TupleData
from mdpu.errors import UserError, warn
from mdpu.law import Law
from mdpu.randomness import Stream

LawOf = Callable[[int], Law]
# numbers of copies, up to which a common divisor may be chance and not a repetition of all rows
FEW_COUNTS = 20
# further copies per unlabeled row, from which on rows count as repeated, not as drawn
REPEATED = 0.1
POOL = 0.02  # share of members that recur, from which on tuples count as draws from a small pool


# -- bags ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Tuples of one size and law.

    Attributes
    ----------
    tuples : ndarray, int64, shape (n, M)
        Rows of the members.
    law : Law
    """

    tuples: Indices
    law: Law


@dataclass(frozen=True)
class Bags:
    """Tuples of one or several sizes and laws, and unlabeled rows.

    Attributes
    ----------
    parts : sequence of Part
    unlabeled : ndarray, int64, shape (n_unlabeled,)
    complete : bool
        Whether all groups were collected, whatever was observed of them; the unlabeled rows are
        then their members.
    """

    parts: tuple[Part, ...]
    unlabeled: Indices
    complete: bool = False

    @property
    def n(self) -> int:
        """Number of tuples."""
        return sum(len(part.tuples) for part in self.parts)

    @property
    def n_rows(self) -> int:
        """One more than the largest row."""
        largest = [part.tuples.max(initial=0) for part in self.parts]
        return 1 + int(max(self.unlabeled.max(), *largest))

    @property
    def laws(self) -> list[Law]:
        """The law of each part."""
        return [part.law for part in self.parts]

    @property
    def members(self) -> Indices:
        """Rows of the members of all tuples, one after the other."""
        return np.concatenate([part.tuples.ravel() for part in self.parts])

    @property
    def data(self) -> TupleData:
        """The indices alone, tuples in the order of the parts."""
        largest = max(law.size for law in self.laws)
        padded = []
        for part in self.parts:
            missing = largest - part.tuples.shape[1]
            padded.append(np.pad(part.tuples, ((0, 0), (0, missing)), constant_values=-1))
        return TupleData(np.concatenate(padded), self.unlabeled)

    @classmethod
    def of(
        cls,
        data: TupleData,
        law_of: LawOf,
        counts: tuple[ArrayLike, ArrayLike] | None = None,
        complete: bool = False,
    ) -> Bags:
        """Return the bags of tuples, by size, or by size and bounds.

        Parameters
        ----------
        data : TupleData
        law_of : callable
            From a tuple size to its `Law`.
        counts : (low, high), optional
            The least and the largest number of positives that were observed in each tuple, told
            once or for each. They take the place of the law.
        complete : bool

        Raises
        ------
        UserError
            If a law is for another size, or counts cannot be right.
        """
        bounds = np.zeros((len(data.tuples), 0), np.int64)
        if counts is not None:
            bounds = checked_bounds(data.sizes, counts, complete)
        kinds = np.column_stack([data.sizes, bounds])
        kinds, kind_of_tuple = np.unique(kinds, axis=0, return_inverse=True)

        parts = []
        for number, (size, *bound) in enumerate(kinds.tolist()):
            law = Law.between(size, *bound) if bound else law_of(size)
            if law.size != size:
                raise UserError(f"the law of tuples of {law.size} is given for tuples of {size}")
            tuples = data.tuples[kind_of_tuple.ravel() == number, :size]
            parts.append(Part(tuples, law))
        unlabeled = data.members if complete else data.unlabeled
        return cls(tuple(parts), unlabeled, complete)

    def select(self, tuples: Sequence[NDArray[np.bool_]], unlabeled: NDArray[np.bool_]) -> Bags:
        """Return the tuples and unlabeled rows that masks choose, a mask for each part."""
        parts = []
        for part, mask in zip(self.parts, tuples, strict=True):
            parts.append(Part(part.tuples[mask], part.law))
        return Bags(tuple(parts), self.unlabeled[unlabeled], self.complete)

    def split(self, of_tuples: NDArray[Any]) -> list[NDArray[Any]]:
        """Return values (n,) of all tuples, in the order of the parts, as those of each part."""
        ends = np.cumsum([len(part.tuples) for part in self.parts])[:-1]
        return np.split(of_tuples, ends)


def checked_bounds(sizes: Indices, counts: tuple[ArrayLike, ArrayLike], complete: bool) -> Indices:
    """Return the bounds (n, 2) on the numbers of positives of tuples, each told once or for each.

    Raises
    ------
    UserError
        If they are not bounds, say nothing about a tuple, or overlap where all groups were
        collected.
    """
    try:
        low, high = (_of_each(bound, sizes) for bound in counts)
    except (TypeError, ValueError):
        raise UserError(
            f"counts must be (low, high): two integers or two arrays of {len(sizes)}"
        ) from None

    says_nothing = (low == 0) & (high == sizes)
    wrong = np.flatnonzero((low < 0) | (low > high) | (high > sizes) | says_nothing)
    if len(wrong):
        i = int(wrong[0])
        raise UserError(
            f"counts of tuple {i} are {low[i]} to {high[i]} of {sizes[i]}, which is impossible "
            "or says nothing; "
            "give rows of tuples about which nothing is known as unlabeled rows"
        )

    bounds = np.stack([low, high], axis=1)
    if complete:
        _check_partition(sizes, bounds)
    return bounds


def _of_each(bound: ArrayLike, sizes: Indices) -> Indices:
    """Return a bound of each tuple as integers (n,)."""
    values = np.broadcast_to(np.asarray(bound), sizes.shape)
    return values.astype(np.int64, casting="same_kind")


def _check_partition(sizes: Indices, bounds: Indices) -> None:
    """Raise `UserError` if bounds of tuples of one size overlap without being the same."""
    kinds = np.unique(np.column_stack([sizes, bounds]), axis=0).tolist()
    for (size, low, high), (next_size, next_low, next_high) in pairwise(kinds):
        if size == next_size and next_low <= high:
            raise UserError(
                f"counts {low} to {high} and {next_low} to {next_high} of {size} overlap, so that "
                "tuples alone do not say what was observed; give unlabeled rows"
            )


# -- the sample ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """The rows of a fit, each once, and the tuples and unlabeled rows among them.

    Attributes
    ----------
    rows : ndarray or sparse matrix, shape (N, ...)
        Equal rows are one row, so that folds that leave out a row leave out its copies.
    bags : Bags
        Indices of the rows. Their laws are those of the class whose scores are learned.
    """

    rows: Any
    bags: Bags

    @classmethod
    def of(
        cls,
        rows: Any,
        data: TupleData,
        law_of: LawOf,
        counts: tuple[ArrayLike, ArrayLike] | None = None,
        complete: bool = False,
    ) -> Sample:
        """Return the sample of indices into rows (N, ...), equal or unused ones among them.

        Unlabeled rows that recur more often than draws would are left out, with a warning. The
        other parameters, and what is refused, are those of `Bags.of`.
        """
        rows, data = different_rows(rows, data)
        if not complete:
            data = _without_copies(data, np.arange(rows.shape[0]))
        return cls(rows, Bags.of(data, law_of, counts, complete))

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are a sparse matrix."""
        return bool(sparse.issparse(self.rows))

    @property
    def is_dominant(self) -> bool:
        """Whether at least half of the members of every tuple are of one class."""
        return all(law == Law.dominant(law.size) for law in self.bags.laws)

    @property
    def unlabeled_rows(self) -> Any:
        """The unlabeled rows (n_unlabeled, ...)."""
        return self.rows[self.bags.unlabeled]

    def of_bags(self, bags: Bags) -> Sample:
        """Return the sample of some of the bags, with the rows that they name."""
        used = np.unique(np.append(bags.members, bags.unlabeled))
        n_rows = self.rows.shape[0]
        if len(used) == n_rows:
            return Sample(self.rows, bags)
        places = np.full(n_rows, -1)
        places[used] = np.arange(len(used))
        parts = tuple(Part(places[part.tuples], part.law) for part in bags.parts)
        moved = replace(bags, parts=parts, unlabeled=places[bags.unlabeled])
        return Sample(self.rows[used], moved)

    def put_back(self) -> Sample:
        """Return the sample with the members of the tuples among the unlabeled rows as well."""
        unlabeled = np.concatenate([self.bags.unlabeled, self.bags.members])
        return replace(self, bags=replace(self.bags, unlabeled=unlabeled))


# -- rows ------------------------------------------------------------------------------------------


def row_numbers(rows: Any, places: Indices | None = None) -> Indices:
    """Return a number for the row at each of some places, or for all rows (N, ...), equal for equal
    rows.

    They count from 0, in the order of first appearance.
    """
    places = np.arange(rows.shape[0]) if places is None else places
    numbers: dict[int, int] = {}
    contents: Iterable[int]
    is_of_objects = isinstance(rows, np.ndarray) and rows.dtype.hasobject
    if is_of_objects or isinstance(rows, pd.Series):  # such as texts
        rows = pd.DataFrame(np.asarray(rows).reshape(len(rows), -1))
    if isinstance(rows, pd.DataFrame):
        contents = pd.util.hash_pandas_object(rows.iloc[places], index=False).tolist()
    elif sparse.issparse(rows):
        # scipy's base class has no rows
        chosen: Any = rows.tocsr()[places]  # type: ignore[attr-defined]
        chosen.sum_duplicates()
        parts = [slice(*ends) for ends in pairwise(chosen.indptr.tolist())]
        contents = (
            hash((chosen.indices[part].tobytes(), chosen.data[part].tobytes())) for part in parts
        )
    else:
        contents = (hash(rows[place].tobytes()) for place in places)
    return np.array([numbers.setdefault(content, len(numbers)) for content in contents])


def only_used(rows: Any, data: TupleData) -> tuple[Any, TupleData]:
    """Return the rows that tuples or unlabeled rows name, and the indices of their new places."""
    present = data.tuples >= 0
    named = np.append(data.tuples[present], data.unlabeled)
    used, places = np.unique(named, return_inverse=True)
    n_members = int(present.sum())
    tuples = np.full(data.tuples.shape, -1)
    tuples[present] = places[:n_members]
    if len(used) < rows.shape[0]:
        rows = rows[used]  # all of a memory map are not read
    return rows, TupleData(tuples, places[n_members:])


def different_rows(rows: Any, data: TupleData) -> tuple[Any, TupleData]:
    """Return the rows that are named, equal ones once, and the indices of their places."""
    used, data = only_used(rows, data)
    identity = row_numbers(used)
    first = np.unique(identity, return_index=True)[1]
    if len(first) == len(identity):
        return used, data
    tuples = np.where(data.tuples >= 0, identity[data.tuples], -1)
    return used[first], TupleData(tuples, identity[data.unlabeled])


def without_repeats(rows: Any, data: TupleData) -> TupleData:
    """Return tuples, and each unlabeled row once, with a warning, if rows recur more often than
    draws would.

    Copies, as in a bootstrap, would be taken for further draws, and scores judged by rows that they
    were learned from. Rows of a finite pool or of a table with few values recur in tuples as well,
    and are left. If every unlabeled row occurs k times, or a multiple of that, one k-th of them is
    left.
    """
    identity = np.full(rows.shape[0], -1)
    places = np.unique(np.append(data.members, data.unlabeled))
    identity[places] = row_numbers(rows, places)
    return _without_copies(data, identity)


def _without_copies(data: TupleData, identity: Indices) -> TupleData:
    """Do what `without_repeats` says; `identity` (N,) is equal for equal rows."""
    unlabeled = identity[data.unlabeled]
    members = identity[data.members]
    numbers = int(identity.max()) + 1
    counts = np.bincount(unlabeled, minlength=numbers)
    of_members = np.bincount(members, minlength=numbers)

    times = int(np.gcd.reduce(counts)) if np.count_nonzero(counts) > FEW_COUNTS else 1
    drawn = counts // times
    by_chance = float(drawn @ of_members) / len(members)
    if float(drawn @ (drawn - 1)) / drawn.sum() > 2 * by_chance + REPEATED:
        drawn = np.minimum(counts, 1)
    elif times == 1:
        return data

    copy_number = pd.Series(unlabeled).groupby(unlabeled).cumcount()
    kept = np.flatnonzero(copy_number < drawn[unlabeled])
    warn(
        f"{len(unlabeled)} unlabeled rows are {np.count_nonzero(counts)} different rows, and recur "
        f"more often than those of tuples; {len(kept)} are counted, as copies add nothing"
    )
    return replace(data, unlabeled=data.unlabeled[kept])


def without_pool(bags: Bags) -> Bags:
    """Return the bags without tuples that share members, if members recur and unlabeled rows are
    other rows.

    Tuples and unlabeled rows that are drawn from one finite pool need no care.
    """
    members = bags.members
    distinct = np.unique(members)
    recurring = 1 - len(distinct) / len(members)
    common = float(np.isin(np.unique(bags.unlabeled), distinct).mean())
    if recurring < POOL or common >= recurring:
        return bags

    chosen = disjoint_tuples(bags.data.tuples)
    warn(
        f"the members of {bags.n} tuples are {len(distinct)} different rows, and "
        "recur; as these are "
        f"not independent draws, the prior is judged by {chosen.sum()} tuples that share none"
    )
    return bags.select(bags.split(chosen), np.ones(len(bags.unlabeled), bool))


def disjoint_tuples(tuples: Indices) -> NDArray[np.bool_]:
    """Return which tuples (n, M) to take so that no two share a member, greedily in a random order.

    A tuple that holds a member twice is not taken.
    """
    taken = np.zeros(int(tuples.max()) + 1, bool)
    chosen = np.zeros(len(tuples), bool)
    for place in Stream(0, "disjoint tuples").permutation(len(tuples)).tolist():
        members = tuples[place][tuples[place] >= 0]
        is_free = not taken[members].any()
        if is_free and len(set(members.tolist())) == len(members):
            taken[members] = True
            chosen[place] = True
    return chosen
