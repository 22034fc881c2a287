"""Tuples as indices: from arrays, from groups in scikit-learn's form, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mdpu.data import TupleData, join_groups, number_groups, sample_of
from mdpu.errors import UserError


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 7))
def test_gathered_images_are_those_of_the_tuples_and_the_unlabeled_ones(n, size, n_unlabeled):
    count = n * size + n_unlabeled
    numbers = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
    tuples = numbers[:-n_unlabeled].reshape(n, size, 3)
    unlabeled = numbers[-n_unlabeled:]

    images, sample = TupleData.gather(tuples, unlabeled)

    assert np.array_equal(images[sample.tuples], tuples)
    assert np.array_equal(images[sample.unlabeled], unlabeled)
    assert len(images) == count


def test_tuples_of_several_sizes_are_gathered_with_minus_one_where_there_is_no_member():
    tuples = [np.full((size, 3), size) for size in (2, 4, 1)]
    unlabeled = np.zeros((5, 3), int)

    images, sample = TupleData.gather(tuples, unlabeled)

    assert sample.is_ragged
    assert sample.sizes.tolist() == [2, 4, 1]
    assert sample.tuples.tolist() == [
        [0, 1, -1, -1],
        [2, 3, 4, 5],
        [6, -1, -1, -1],
    ]
    assert sample.unlabeled.tolist() == [7, 8, 9, 10, 11]
    expected = np.repeat([2, 4, 1, 0], [2, 4, 1, 5])
    assert np.array_equal(images[:, 0], expected)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 5))
def test_groups_name_each_image_once(sizes, n_unlabeled):
    numbers = np.arange(sum(sizes) + n_unlabeled, dtype=float)[:, None]
    ends = np.cumsum(sizes)
    *tuples, unlabeled = np.split(numbers, ends)

    images, groups = join_groups(tuples, unlabeled)

    assert sorted(images) == list(numbers)
    for number, members in enumerate(tuples):
        name = 10**6 * number + len(members)
        assert np.array_equal(images[groups == name], members)
    assert np.array_equal(images[groups == -1], unlabeled)

    sample = sample_of(groups)
    _, expected = TupleData.gather(tuples, unlabeled)
    assert np.array_equal(sample.tuples, expected.tuples)
    assert np.array_equal(sample.unlabeled, expected.unlabeled)


PAIRS = np.zeros((4, 2, 3))
ROWS = np.zeros((5, 3))
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
TWO_PAIRS_AND_A_ROW = [2, 2, 1000002, 1000002, -1]


def test_frames_keep_their_columns():
    rows, groups = join_groups([FRAME, FRAME[::-1]], FRAME[:1])
    assert list(rows.columns) == ["a", "b"]
    assert rows["a"].tolist() == [1, 2, 2, 1, 1]
    assert groups.tolist() == TWO_PAIRS_AND_A_ROW


def test_sparse_rows_stay_sparse():
    matrix = sparse.csr_matrix(FRAME)
    rows, groups = join_groups([matrix, matrix[::-1]], matrix[:1])
    assert sparse.issparse(rows)
    values = rows.toarray()[:, 0]
    assert values.tolist() == [1, 2, 2, 1, 1]
    assert groups.tolist() == TWO_PAIRS_AND_A_ROW


UNLIKE = [
    (ROWS, PAIRS),
    (ROWS, ROWS),
    (PAIRS, np.zeros((5, 4))),
    (PAIRS, ROWS.astype(np.uint8)),
    (PAIRS[:0], ROWS),
    (PAIRS, ROWS[:0]),
    ([FRAME, FRAME[["b", "a"]]], FRAME),
    ([FRAME[["a"]]], FRAME),
    ([FRAME, FRAME], FRAME.to_numpy()),
    ([FRAME, FRAME[:0]], FRAME),
    ([sparse.csr_matrix(FRAME)], ROWS),
    (FRAME, FRAME),
    ("tuples", ROWS),
]


@pytest.mark.parametrize(("tuples", "unlabeled"), UNLIKE)
def test_tuples_and_unlabeled_rows_that_do_not_match_are_refused(tuples, unlabeled):
    with pytest.raises(UserError, match="tuple"):
        join_groups(tuples, unlabeled)


@pytest.mark.parametrize(
    "groups",
    [
        [1, -1, 1, 1, -1],  # labels
        [0.0, 0.0, -1.0],
        [0, 0, -2],
        [[0, 0], [-1, -1]],
        [-1, -1, -1],
        [0, 0, 1, 1],
        [0, 0, 2, 2, 3, -1],  # tuple 3 is cut, and 1 is elsewhere
    ],
)
def test_what_names_no_tuples_and_unlabeled_rows_is_refused(groups):
    with pytest.raises(UserError, match=r"y holds|y names|cut"):
        sample_of(np.array(groups))


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_codes_of_categories_are_refused_in_a_sentence_and_numbered_as_ids(dtype):
    codes = np.repeat([0, 1, -1], 5).astype(dtype)
    with pytest.raises(UserError, match="number_groups"):
        sample_of(codes)
    assert sample_of(number_groups(codes)).tuples.shape == (2, 5)


@pytest.mark.parametrize("none", [None, np.nan, pd.NA, -1])
@pytest.mark.parametrize("names", ["cab", (7, 3, 9), (2.0, 1.0, 0.0)])
def test_numbers_of_groups_carry_their_sizes(names, none):
    """Ids of one kind and of several, an array and a series, in any order."""
    a, b, c = names
    ids = [a, none, b, a, c, none, a, b]
    series = pd.Series(ids, index=range(5, 13))
    for column in (ids, np.array(ids, object), series):
        groups = number_groups(column)
        assert groups.tolist() == [3, -1, 1000002, 3, 2000001, -1, 3, 1000002]

    sample = sample_of(groups)
    assert sample.tuples.tolist() == [
        [0, 3, 6],
        [2, 7, -1],
        [4, -1, -1],
    ]
    assert sample.unlabeled.tolist() == [1, 5]


def test_keys_of_several_values_name_a_group_together():
    missing = (None, np.nan)
    keys = [
        ("x", 1),
        missing,
        ("x", 2),
        ("x", 1),
        missing,
        ("y", 1),
    ]
    frame = pd.DataFrame(keys, columns=["school", "class"])
    index = pd.MultiIndex.from_frame(frame)
    by_group = frame.groupby(["school", "class"]).ngroup()

    for ids in (keys, pd.Series(keys), index, index.to_flat_index(), by_group):
        assert number_groups(ids).tolist() == [2, -1, 1000001, 2, -1, 2000001]


def test_keys_of_several_values_may_have_gaps_of_none():
    keys = [("x", 1), None, ("x", 1)]
    assert number_groups(keys).tolist() == [2, -1, 2]


def test_keys_of_which_one_value_is_missing_are_refused():
    with pytest.raises(UserError, match="nan"):
        number_groups([("x", np.nan), ("x", 1), None])


@given(st.lists(st.integers(1, 5), min_size=2, max_size=8), st.data())
def test_no_cut_of_groups_goes_unseen(sizes, data):
    """Whatever rows a splitter leaves, the groups are whole or refused; so is a row that a
    bootstrap repeats.
    """
    ids = np.repeat(np.arange(len(sizes)), sizes)
    groups = number_groups(np.append(ids, -1))
    row = st.integers(0, len(ids) - 1)
    left = data.draw(st.lists(row, min_size=1, max_size=len(ids) + 2))

    kept = groups[[*left, -1]]

    numbers, counts = np.unique(kept[:-1], return_counts=True)
    is_whole = np.array_equal(counts, numbers % 10**6)
    if is_whole:
        assert len(sample_of(kept).tuples) == len(numbers)
    else:
        with pytest.raises(UserError):
            sample_of(kept)


@pytest.mark.parametrize("ids", [[[0, 1], [2, 3]], [0.5, 1.0], np.array([1.5, np.nan])])
def test_ids_that_are_none_are_refused(ids):
    with pytest.raises(UserError, match="ids"):
        number_groups(ids)
