"""Tuples and unlabeled instances as indices into any source: from arrays, from groups, or drawn
from labelled ones.

Data hold indices and never labels, so the learner sees what the paper's learner sees.
`mdpu.loading` reads them in minibatches. No torch is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpu.errors import UserError
from mdpu.law import Law, check_share
from mdpu.randomness import Stream

Indices = NDArray[np.int64]
Signs = NDArray[np.int8]
UNLABELED = -1
SIZES = (
    1_000_000  # a group's number is its place times this, plus its size: 17000003 has three rows
)


@dataclass(frozen=True)
class TupleData:
    """The data that a learner sees: indices of images, and no labels.

    Attributes
    ----------
    tuples : ndarray, int64, shape (n, M)
        Each row is a tuple. If tuples have several sizes, M is the largest, and rows with fewer
        members end in -1.
    unlabeled : ndarray, int64, shape (n_unlabeled,)
        Images drawn at the class prior.
    """

    tuples: Indices
    unlabeled: Indices

    @property
    def sizes(self) -> Indices:
        """Number of members of each tuple, (n,)."""
        return np.asarray((self.tuples >= 0).sum(axis=1))

    @property
    def members(self) -> Indices:
        """Images of the members of all tuples, one after the other."""
        return self.tuples[self.tuples >= 0]

    @property
    def is_ragged(self) -> bool:
        """Whether the tuples have several sizes."""
        return bool((self.tuples < 0).any())

    def put_back(self) -> TupleData:
        """Return the sample with the members of the tuples among the unlabeled images as well."""
        return TupleData(self.tuples, np.append(self.unlabeled, self.members))

    def check(self, n_rows: int) -> None:
        """Raise `UserError` unless these are indices of `n_rows` rows, and every tuple has a
        member.
        """
        _check_indices("tuples", self.tuples, 2, range(-1, n_rows))
        _check_indices("unlabeled rows", self.unlabeled, 1, range(n_rows))
        present = self.tuples >= 0
        follows_gap = present[:, 1:] > present[:, :-1]
        if not present[:, 0].all() or follows_gap.any():
            raise UserError("a tuple of the sample has no member, or has -1 before its last member")

    @classmethod
    def gather(
        cls, tuples: NDArray[Any] | Sequence[NDArray[Any]], unlabeled: NDArray[Any]
    ) -> tuple[NDArray[Any], TupleData]:
        """Return one array of all images, and the sample of indices into it.

        Parameters
        ----------
        tuples : ndarray, shape (n, M, ...), or sequence of n ndarrays, shapes (M_i, ...)
            Images or feature vectors of the members.
        unlabeled : ndarray, shape (n_unlabeled, ...)

        Raises
        ------
        UserError
            If the members and the unlabeled images differ in shape or type, or one of them is
            empty.
        """
        sizes = np.array([len(members) for members in tuples], dtype=np.int64)
        _check_filled(sizes, len(unlabeled))
        # the tuples of one array are alike
        for members in tuples[:1] if isinstance(tuples, np.ndarray) else tuples:
            _check_alike(members, unlabeled)
        images = np.concatenate([*tuples, unlabeled])
        return images, cls(_padded(sizes), np.arange(sizes.sum(), len(images)))


def _check_indices(name: str, indices: Any, axes: int, allowed: range) -> None:
    """Raise `UserError` unless indices of a sample are integers of so many axes in a range."""
    is_array = isinstance(indices, np.ndarray)
    if not is_array or indices.ndim != axes or indices.dtype.kind not in "iu":
        raise UserError(f"the sample's {name} are no array of integers with {axes} axes")
    if not indices.size:
        raise UserError(f"the sample holds no {name}")
    if indices.min() < allowed.start or indices.max() >= allowed.stop:
        raise UserError(
            f"the sample's {name} name rows that do not exist; there are {allowed.stop}"
        )


def _check_filled(sizes: Sequence[int] | Indices, n_unlabeled: int) -> None:
    """Raise `UserError` unless there are tuples, all with members, and unlabeled rows."""
    if not len(sizes) or not np.all(sizes) or not n_unlabeled:
        raise UserError(
            "tuples and unlabeled rows are both needed, but there are none, or a tuple has no "
            "member"
        )


def _check_alike(members: NDArray[Any], unlabeled: NDArray[Any]) -> None:
    """Raise `UserError` unless rows have one shape, and one type or both are floats."""
    same_shape = members.shape[1:] == unlabeled.shape[1:]
    both_floats = all(np.issubdtype(rows.dtype, np.floating) for rows in (members, unlabeled))
    if not same_shape or (members.dtype != unlabeled.dtype and not both_floats):
        raise UserError(
            f"tuples hold rows of shape {members.shape[1:]} and type {members.dtype}, but "
            "the unlabeled ones "
            f"have shape {unlabeled.shape[1:]} and type {unlabeled.dtype}; give both alike"
        )


def _padded(sizes: Indices) -> Indices:
    """Return the numbers from 0 on as tuples of some sizes, (n, M), and -1 in place of members that
    are missing.
    """
    starts = np.cumsum(sizes) - sizes
    places = np.arange(sizes.max())
    return np.where(places < sizes[:, None], starts[:, None] + places, -1)


def join_groups(tuples: Any, unlabeled: Any) -> tuple[Any, Indices]:
    """Return all rows as one array (N, ...), and for each the number of its tuple, or -1 if it is
    unlabeled.

    This is scikit-learn's form, ``fit(rows, groups)``. The numbers are those of `number_groups`.

    Parameters
    ----------
    tuples : ndarray, shape (n, M, ...)
        Or a sequence of n ndarrays, frames or sparse matrices, shapes (M_i, ...).
    unlabeled : ndarray, frame or sparse matrix, shape (n_unlabeled, ...)

    Raises
    ------
    UserError
        If the members and the unlabeled rows differ in shape, type or columns, or there are none.
    """
    import pandas as pd
    from scipy import sparse

    if (
        isinstance(tuples, str | dict | pd.DataFrame)
        or not hasattr(tuples, "__len__")
        or not np.shape(unlabeled)
    ):
        raise UserError(
            f"tuples are {type(tuples).__name__} and unlabeled rows {type(unlabeled).__name__}; "
            "give an array (n, M, "
            "...), or a list with the rows of each tuple, and the rows (n_unlabeled, ...)"
        )
    parts = (unlabeled,) if isinstance(tuples, np.ndarray) else (unlabeled, *tuples)
    if any(isinstance(part, pd.DataFrame) or sparse.issparse(part) for part in parts):
        sizes = _sizes_of_alike(list(tuples), unlabeled)
        parts = (*tuples, unlabeled)
        is_frame = isinstance(unlabeled, pd.DataFrame)
        rows = (
            pd.concat(parts, ignore_index=True) if is_frame else sparse.vstack(parts, format="csr")
        )
    else:
        rows, sizes = _concatenate(tuples, unlabeled)
    groups = np.full(rows.shape[0], UNLABELED)
    groups[: sum(sizes)] = np.repeat(np.arange(len(sizes)) * SIZES + np.array(sizes), sizes)
    return rows, groups


def number_groups(ids: Any) -> Indices:
    """Return for each row the number of its group, which carries the group's size, or -1 if it is
    unlabeled.

    Call it on all rows before anything cuts them: then `fit` knows a group that lacks rows. Groups
    are in the order of their first rows. A group's number is its place times 1,000,000 plus its
    size.

    Parameters
    ----------
    ids : array_like, shape (N,)
        Text, integers or any other names; tuples, such as keys of pandas' groupby, name a group
        together. Missing ones, the integer -1, and tuples whose parts are all missing mark
        unlabeled rows.

    Raises
    ------
    UserError
        If ids are not one for each row, are numbers with fractions, or tuples of which only some
        parts are missing.
    """
    import pandas as pd

    names = _as_names(ids)
    if pd.api.types.is_float_dtype(names.dtype) and (names.dropna() % 1 != 0).any():
        raise UserError(
            "ids are numbers with fractions; names or integers are needed, or missing for "
            "unlabeled rows"
        )
    is_minus_one = [isinstance(name, Real) and name == UNLABELED for name in names]
    unlabeled = names.isna().to_numpy() | is_minus_one
    places, distinct = pd.factorize(names[~unlabeled].infer_objects())
    sizes = np.bincount(places, minlength=len(distinct))
    groups = np.full(len(names), UNLABELED)
    groups[~unlabeled] = places * SIZES + sizes[places]
    return groups


def numbers_of(groups: Indices) -> Indices:
    """Return the numbers (n,) of the groups that rows (N,) belong to, each once, in order."""
    return np.unique(groups[groups != UNLABELED])


def _as_names(ids: Any) -> Any:
    """Return ids as a series, in which a tuple is one name.

    Raises
    ------
    UserError
        If ids are not one for each row, or tuples of which only some parts are missing.
    """
    import pandas as pd

    is_plain = isinstance(ids, list | tuple | pd.MultiIndex)
    if is_plain and any(isinstance(key, tuple) for key in ids):
        names = pd.Series([*ids], dtype=object)
    elif np.ndim(ids) != 1:
        raise UserError(f"ids have {np.ndim(ids)} axes; one id is needed for each row")
    elif hasattr(ids, "dtype"):
        names = pd.Series(ids)
    else:
        names = pd.Series(np.array([*ids, None], object)[:-1])

    names = names.reset_index(drop=True).infer_objects()
    if names.dtype == object and any(isinstance(key, tuple) for key in names):
        return pd.Series([whole_key(key) for key in names], dtype=object)
    return names


def whole_key(key: Any) -> Any:
    """Return the id of a row's group: None for a tuple whose parts are all missing.

    Raises
    ------
    UserError
        If only some parts are missing.
    """
    import pandas as pd

    if not isinstance(key, tuple):
        return key
    missing = [bool(pd.isna(part)) for part in key]
    if any(missing) and not all(missing):
        raise UserError(
            f"id {key!r} lacks a part; fill all parts, or none where a row has no group"
        )
    return None if all(missing) else key


def _concatenate(tuples: Any, unlabeled: Any) -> tuple[NDArray[Any], list[int]]:
    """Return arrays below one another, and the sizes of the tuples."""
    members = tuples if isinstance(tuples, np.ndarray) else [np.asarray(rows) for rows in tuples]
    singles = np.asarray(unlabeled)
    if isinstance(members, np.ndarray) and members.ndim <= singles.ndim:
        raise UserError(
            f"tuples {members.shape} have no more axes than unlabeled rows {singles.shape}; tuples "
            "have one more, (n, M, ...): if they are swapped, give the tuples (n, M, ...) first, "
            "and single rows need their groups as y"
        )
    return TupleData.gather(members, singles)[0], [len(rows) for rows in members]


def _sizes_of_alike(tuples: Sequence[Any], unlabeled: Any) -> list[int]:
    """Return the sizes of tuples of frames or sparse matrices, or raise `UserError` unless all are
    alike.
    """
    sizes = [np.shape(part)[0] for part in tuples]
    _check_filled(sizes, np.shape(unlabeled)[0])
    for number, part in enumerate(tuples):
        if type(part) is not type(unlabeled) or part.shape[1:] != unlabeled.shape[1:]:
            raise UserError(
                f"tuple {number} is a {type(part).__name__} of shape {np.shape(part)}, but the "
                "unlabeled rows are a "
                f"{type(unlabeled).__name__} of shape {np.shape(unlabeled)}; give both alike"
            )
        if hasattr(unlabeled, "columns") and list(part.columns) != list(unlabeled.columns):
            raise UserError(
                f"the columns of tuple {number} are not those of the unlabeled rows, or in another "
                "order; give tuple[unlabeled.columns]"
            )
    return sizes


def sample_of(groups: NDArray[Any]) -> TupleData:
    """Return the sample that groups (N,) name in their rows, tuples in the order of their numbers.

    Raises
    ------
    UserError
        If they are labels instead of groups, or name no tuple or no unlabeled row, or do not carry
        the sizes of their tuples as those of `number_groups` do: then tuples have been cut, or
        nobody can know.
    """
    if (
        not np.issubdtype(groups.dtype, np.integer)
        or groups.ndim != 1
        or (groups < UNLABELED).any()
    ):
        raise UserError(
            "y holds neither unlabeled rows (n_unlabeled, ...) nor groups, but continuous numbers "
            f"or names of classes ({groups.dtype} of shape {groups.shape}); groups are an integer "
            "for each row, the number of its tuple or -1, as number_groups(ids) gives it"
        )
    unlabeled = np.flatnonzero(groups == UNLABELED)
    members = np.flatnonzero(groups != UNLABELED)
    if not len(members):
        raise UserError("y names no tuple; it names unlabeled rows only")
    if not len(unlabeled):
        raise UserError(
            "Only binary classification is supported, from groups instead of labels: y names no "
            "unlabeled row, -1; "
            "meta-estimators that number classes anew, such as BaggingClassifier, cannot be used"
        )
    members = members[np.argsort(groups[members], kind="stable")]
    # codes may be of 8 bits
    numbers, sizes = np.unique(groups[members].astype(np.int64), return_counts=True)
    if len(numbers) == 1 and numbers[0] == 1 and sizes[0] > 2:
        raise UserError(
            "y holds -1 and +1, which are labels, and as groups would make one tuple of all rows "
            "that have +1; give unlabeled rows, or for each row the number of its tuple"
        )
    wrong = numbers % SIZES != sizes
    if wrong.any():
        raise UserError(
            f"y holds {len(numbers)} group numbers, and {wrong.sum()} do not fit the sizes of "
            "their groups: a splitter or a meta-estimator such as BaggingClassifier has cut "
            "tuples or numbered them anew, or the numbers are plain ids, which do not carry the "
            "sizes; cross-validate with cv=TupleKFold(), and turn ids into numbers by "
            "number_groups(ids)"
        )
    places = _padded(sizes)  # (n, M)
    return TupleData(np.where(places >= 0, members[places], -1), unlabeled)


def draw_split(
    labels: Signs,
    law: Law | int,
    prior: float,
    n: int,
    n_unlabeled: int,
    trial: int | str,
    replacement: bool = True,
    overlap: bool = True,
) -> TupleData:
    """Draw tuples and unlabeled images of one trial.

    Parameters
    ----------
    labels : ndarray, int8, shape (N,)
        Sides of the training images; images of side 0 are left out.
    law, prior, n, n_unlabeled
        Law of the tuples, or M for dominant ones; pi_+; number of tuples; number of unlabeled
        images.
    trial : int or str
        Seeds every random number of the split; splits of two trials are independent.
    replacement : bool
        Whether an image may be drawn more than once within the tuples, and within the unlabeled
        set.
    overlap : bool
        Whether an image may occur both in a tuple and among the unlabeled.

    Returns
    -------
    TupleData

    Raises
    ------
    UserError
        If a number is out of range, a side has no image, or a pool is too small.
    """
    law = law if isinstance(law, Law) else Law.dominant(law)
    check_share("prior", prior)
    for name, value in (("n", n), ("n_unlabeled", n_unlabeled)):
        if value < 1:
            raise UserError(f"{name} is {value}; at least 1 is needed")
    if isinstance(trial, int) and trial < 0:
        raise UserError(f"trial is {trial}; it must be 0 or more")
    hidden = law.draw(prior, n, Stream(trial, "tuple labels")).ravel()  # (n * M,)
    chances = Stream(trial, "unlabeled labels").uniform(n_unlabeled)
    unlabeled = np.where(chances < prior, 1, -1).astype(np.int8)

    tuple_members = np.empty(hidden.size, dtype=np.int64)
    unlabeled_members = np.empty(n_unlabeled, dtype=np.int64)
    for sign, side in ((1, "positive"), (-1, "negative")):
        pool = np.flatnonzero(labels == sign)
        in_tuples = hidden == sign
        in_unlabeled = unlabeled == sign
        need = int(in_tuples.sum()), int(in_unlabeled.sum())
        pools = _pools(pool, need, overlap, Stream(trial, f"{side} pools"))
        for members, places, images, what in (
            (tuple_members, in_tuples, pools[0], "tuples"),
            (unlabeled_members, in_unlabeled, pools[1], "unlabeled images"),
        ):
            count = int(places.sum())
            stream = Stream(trial, f"{side} {what}")
            if replacement:
                if count and not images.size:
                    raise UserError(
                        f"no {side} training image is left for the {what}; the pool has {pool.size}"
                    )
                members[places] = images[stream.integers(images.size, count)]
                continue
            if count > images.size:
                largest = _largest_n(labels, hidden.reshape(n, law.size), unlabeled, overlap)
                beside = "" if overlap else f" beside {sum(need) - count} for the other part"
                raise UserError(
                    f"sampling without replacement needs {count} {side} training images for the "
                    f"{what}{beside}, but the pool has {pool.size}; the largest n that fits M = "
                    f"{law.size}, prior {prior} is {largest}"
                )
            members[places] = images[stream.permutation(images.size)[:count]]
    return TupleData(tuple_members.reshape(n, law.size), unlabeled_members)


def _pools(
    pool: Indices, need: tuple[int, int], overlap: bool, stream: Stream
) -> tuple[Indices, Indices]:
    """Return the pools of the tuples and of the unlabeled images: one shared pool, or a division in
    proportion.

    If both need images and the pool has two, each gets at least one.
    """
    if overlap:
        return pool, pool
    shuffled = pool[stream.permutation(pool.size)]
    cut = round(pool.size * need[0] / max(1, sum(need)))
    if all(need) and pool.size > 1:
        cut = min(max(cut, 1), pool.size - 1)
    return shuffled[:cut], shuffled[cut:]


def _largest_n(labels: Signs, hidden: Signs, unlabeled: Signs, overlap: bool) -> int:
    """Return how many of the first tuples, with unlabeled images in proportion, the pools can
    supply.
    """

    def fits(n: int) -> bool:
        unlabeled_needed = unlabeled[: round(n * unlabeled.size / len(hidden))]
        for sign in (1, -1):
            pool = int((labels == sign).sum())
            need = int((hidden[:n] == sign).sum()), int((unlabeled_needed == sign).sum())
            if (max(need) if overlap else sum(need)) > pool:
                return False
        return True

    low = 0
    high = len(hidden)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
