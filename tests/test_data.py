"""Tuples as indices: from arrays, from groups in scikit-learn's form, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mdpu.data import TupleData, join_groups, read_groups
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
        assert np.array_equal(images[groups == number], members)
    assert np.array_equal(images[groups == -1], numbers[sum(sizes) :])
    sample, expected = read_groups(groups), TupleData.gather(tuples, numbers[sum(sizes) :])[1]
    assert np.array_equal(sample.tuples, expected.tuples)
    assert np.array_equal(sample.unlabeled, expected.unlabeled)


def test_frames_keep_their_columns_and_sparse_rows_stay_sparse():
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [6.0, 7, 8, 9, 10]})
    rows, groups = join_groups([frame[:2], frame[2:4]], frame[4:])
    assert list(rows.columns) == ["a", "b"] and groups.tolist() == [0, 0, 1, 1, -1]
    matrix = sparse.csr_matrix(frame)
    rows, groups = join_groups([matrix[:2], matrix[2:4]], matrix[4:])
    assert sparse.issparse(rows) and groups.tolist() == [0, 0, 1, 1, -1]


PAIRS, ROWS = np.zeros((4, 2, 3)), np.zeros((5, 3))
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})


@pytest.mark.parametrize(
    ("tuples", "unlabeled"),
    [
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
    ],
)
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
        read_groups(np.array(groups))


def test_tuples_of_one_row_among_others_are_read_where_no_number_is_missing():
    sample = read_groups(np.array([2, 0, -1, 1, 0]))
    assert sample.tuples.tolist() == [[1, 4], [3, -1], [0, -1]] and sample.unlabeled.tolist() == [2]
