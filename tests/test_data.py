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
    tuples = np.arange(n * size * 3).reshape(n, size, 3).astype(np.float32)
    unlabeled = -np.arange(n_unlabeled * 3).reshape(n_unlabeled, 3).astype(np.float32)
    images, sample = TupleData.gather(tuples, unlabeled)
    assert np.array_equal(images[sample.tuples], tuples)
    assert np.array_equal(images[sample.unlabeled], unlabeled)
    assert len(images) == n * size + n_unlabeled


def test_tuples_of_several_sizes_are_gathered_with_minus_one_where_there_is_no_member():
    tuples = [np.full((size, 3), size, dtype=np.float32) for size in (2, 4, 1)]
    images, sample = TupleData.gather(tuples, np.zeros((5, 3), dtype=np.float32))
    assert sample.is_ragged and sample.sizes.tolist() == [2, 4, 1]
    assert sample.tuples.tolist() == [[0, 1, -1, -1], [2, 3, 4, 5], [6, -1, -1, -1]]
    assert images[:, 0].tolist() == [2, 2, 4, 4, 4, 4, 1, 0, 0, 0, 0, 0]
    assert sample.unlabeled.tolist() == [7, 8, 9, 10, 11]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 5))
def test_groups_name_each_image_once(sizes, n_unlabeled):
    numbers = np.arange(sum(sizes) + n_unlabeled, dtype=float)[:, None]
    tuples = np.split(numbers[: sum(sizes)], np.cumsum(sizes)[:-1])
    images, groups = join_groups(tuples, numbers[sum(sizes) :])
    assert sorted(images[:, 0]) == list(numbers[:, 0])
    for number, members in enumerate(tuples):
        assert np.array_equal(images[groups == 10**6 * number + len(members)], members)
    assert np.array_equal(images[groups == -1], numbers[sum(sizes) :])
    sample = sample_of(groups)
    expected = TupleData.gather(tuples, numbers[sum(sizes) :])[1]
    assert np.array_equal(sample.tuples, expected.tuples)
    assert np.array_equal(sample.unlabeled, expected.unlabeled)


def test_frames_keep_their_columns_and_sparse_rows_stay_sparse():
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [6.0, 7, 8, 9, 10]})
    rows, groups = join_groups([frame[:2], frame[2:4]], frame[4:])
    assert list(rows.columns) == ["a", "b"] and groups.tolist() == [2, 2, 1000002, 1000002, -1]
    matrix = sparse.csr_matrix(frame)
    rows, groups = join_groups([matrix[:2], matrix[2:4]], matrix[4:])
    assert sparse.issparse(rows) and groups.tolist() == [2, 2, 1000002, 1000002, -1]


PAIRS = np.zeros((4, 2, 3))
ROWS = np.zeros((5, 3))
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})


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
    ids = [names[0], none, names[1], names[0], names[2], none, names[0], names[1]]
    for column in (ids, np.array(ids, object), pd.Series(ids, index=range(5, 13))):
        groups = number_groups(column)
        assert groups.tolist() == [3, -1, 1000002, 3, 2000001, -1, 3, 1000002]
    sample = sample_of(groups)
    assert sample.tuples.tolist() == [
        [0, 3, 6],
        [2, 7, -1],
        [4, -1, -1],
    ] and sample.unlabeled.tolist() == [1, 5]


def test_keys_of_several_values_name_a_group_together():
    keys = [("x", 1), None, ("x", 2), ("x", 1), (None, np.nan), ("y", 1)]
    frame = pd.DataFrame([key or (None, None) for key in keys], columns=["school", "class"])
    index = pd.MultiIndex.from_frame(frame)
    for ids in (keys, pd.Series(keys), index, index.to_flat_index()):
        assert number_groups(ids).tolist() == [2, -1, 1000001, 2, -1, 2000001]
    by_group = frame.groupby(["school", "class"]).ngroup()
    assert number_groups(by_group).tolist() == [2, -1, 1000001, 2, -1, 2000001]
    with pytest.raises(UserError, match="nan"):
        number_groups([("x", np.nan), ("x", 1), None])


@given(st.lists(st.integers(1, 5), min_size=2, max_size=8), st.data())
def test_no_cut_of_groups_goes_unseen(sizes, data):
    """Whatever rows a splitter leaves, the groups are whole or refused; so is a row that a
    bootstrap repeats.
    """
    groups = number_groups(np.concatenate([np.repeat(np.arange(len(sizes)), sizes), [-1, -1]]))
    left = data.draw(st.lists(st.integers(0, len(groups) - 3), min_size=1, max_size=len(groups)))
    kept = groups[[*left, len(groups) - 1]]
    whole = all(np.sum(kept == number) == number % 10**6 for number in set(kept[:-1].tolist()))
    if whole:
        assert len(sample_of(kept).tuples) == len(set(kept.tolist())) - 1
    else:
        with pytest.raises(UserError):
            sample_of(kept)


@pytest.mark.parametrize("ids", [[[0, 1], [2, 3]], [0.5, 1.0], np.array([1.5, np.nan])])
def test_ids_that_are_none_are_refused(ids):
    with pytest.raises(UserError, match="ids"):
        number_groups(ids)
