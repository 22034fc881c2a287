"""Bags by size and law, rows that are equal, and tuples that share members."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.sample import (
    Bags,
    Sample,
    different_rows,
    disjoint_tuples,
    row_numbers,
    without_pool,
    without_repeats,
)

KINDS = {
    "table": np.asarray,
    "sparse": sparse.csr_matrix,
    "pictures": lambda rows: rows.reshape(len(rows), -1, 1),
    "frame": pd.DataFrame,
}


def ragged(n=60, n_rows=40, seed=0):
    """Return pairs and triples in turns, of rows that recur."""
    generator = np.random.default_rng(seed)
    tuples = generator.integers(n_rows, size=(n, 3))
    tuples[::2, 2] = -1
    return TupleData(tuples, generator.integers(n_rows, size=n))


def gaussian(n=400, size=3, seed=3):
    """Return rows, each once, and tuples and unlabeled rows of them that share none."""
    rows = np.random.default_rng(seed).standard_normal((n * size + n, 3))
    places = np.arange(n * size).reshape(n, size)
    return rows, TupleData(places, np.arange(n * size, len(rows)))


# -- bags ------------------------------------------------------------------------------------------


def test_bags_are_the_tuples_by_size():
    data = ragged()
    bags = Bags.of(data, Law.dominant)
    assert bags.laws == [Law.dominant(2), Law.dominant(3)]
    np.testing.assert_array_equal(bags.parts[0].tuples, data.tuples[::2, :2])
    np.testing.assert_array_equal(bags.parts[1].tuples, data.tuples[1::2])
    assert bags.n == 60
    assert sorted(bags.members) == sorted(data.tuples[data.tuples >= 0])
    assert bags.n_rows == 1 + max(data.tuples.max(), data.unlabeled.max())


def test_bags_give_their_indices_back():
    data = ragged()
    again = Bags.of(data, Law.dominant).data
    by_size = np.argsort(data.sizes, kind="stable")
    np.testing.assert_array_equal(again.tuples, data.tuples[by_size])
    np.testing.assert_array_equal(again.unlabeled, data.unlabeled)


def test_a_law_of_another_size_is_refused():
    with pytest.raises(UserError, match="law"):
        Bags.of(ragged(), lambda _: Law.dominant(3))


def test_values_of_all_tuples_are_split_by_part():
    bags = Bags.of(ragged(), Law.dominant)
    sizes = bags.split(bags.data.sizes)
    assert [set(part.tolist()) for part in sizes] == [{2}, {3}]
    chosen = bags.select([part == 3 for part in sizes], np.arange(60) < 10)
    assert [len(part.tuples) for part in chosen.parts] == [0, 30]
    assert len(chosen.unlabeled) == 10


def test_counts_take_the_place_of_the_law():
    data = ragged()
    low = np.arange(60) % 4 // 2
    bags = Bags.of(data, Law.dominant, (low, data.sizes - 1 + low))
    expected = {Law.between(2, 0, 1), Law.between(2, 1, 2), Law.between(3, 0, 2)}
    assert {*bags.laws} == expected | {Law.between(3, 1, 3)}
    assert not bags.complete
    np.testing.assert_array_equal(bags.unlabeled, data.unlabeled)


def test_members_of_complete_bags_are_the_unlabeled_rows():
    data = ragged()
    bags = Bags.of(data, Law.dominant, (1, 1), complete=True)
    assert bags.complete
    assert sorted(bags.unlabeled) == sorted(data.tuples[data.tuples >= 0])


@pytest.mark.parametrize(
    ("counts", "complete"),
    [
        ((1, 4), False),
        ((2, 1), False),
        ((0, 3), False),
        (([0, 1, 1, 2], [1, 2, 2, 2]), True),
        (([0, 1], 2), False),
        (3, False),
    ],
)
def test_counts_that_are_impossible_say_nothing_or_overlap_are_refused(counts, complete):
    data = TupleData(np.arange(12).reshape(4, 3), np.arange(1))
    with pytest.raises(UserError, match="counts"):
        Bags.of(data, Law.dominant, counts, complete)


# -- rows ------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.sampled_from(sorted(KINDS)))
def test_equal_rows_have_equal_numbers(contents, kind):
    rows = KINDS[kind](np.column_stack([contents, [1.0] * len(contents)]))
    numbers = row_numbers(rows).tolist()
    first_seen = list(dict.fromkeys(contents))
    assert numbers == [first_seen.index(content) for content in contents]


@pytest.mark.parametrize("kind", ["table", "sparse", "pictures"])
def test_a_sample_holds_each_row_once_and_no_other(kind):
    contents = np.random.default_rng(0).integers(1, 15, size=(40, 2)).astype(float)
    contents[20:] = contents[:20]
    data = ragged()
    rows = KINDS[kind](contents)
    sample = Sample.of(rows, data, Law.dominant)
    assert len({*row_numbers(sample.rows).tolist()}) == sample.rows.shape[0] <= 20

    def content(rows, places):
        chosen = rows[places]
        return (chosen.toarray() if sparse.issparse(chosen) else chosen).ravel()

    by_size = Bags.of(data, Law.dominant)
    np.testing.assert_array_equal(
        content(sample.rows, sample.bags.members), content(rows, by_size.members)
    )


def test_rows_of_some_bags_are_those_that_they_name():
    rows, data = gaussian()
    sample = Sample.of(rows, data, Law.dominant)
    few = sample.bags.select([np.arange(400) < 10], np.arange(400) < 20)
    part = sample.of_bags(few)
    assert part.rows.shape == (50, 3)
    np.testing.assert_array_equal(part.rows[part.bags.members], sample.rows[few.members])
    np.testing.assert_array_equal(part.unlabeled_rows, sample.rows[few.unlabeled])
    assert sample.of_bags(sample.bags).rows is sample.rows


def test_members_that_are_put_back_are_unlabeled_rows_too():
    rows, data = gaussian()
    sample = Sample.of(rows, data, Law.dominant).put_back()
    assert sorted(sample.bags.unlabeled) == list(range(len(rows)))


@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_unlabeled_rows_are_left_out(kind):
    rows, data = gaussian()
    drawn = np.random.default_rng(0).choice(data.unlabeled, 400)
    with pytest.warns(UserWarning, match="different rows"):
        once = without_repeats(KINDS[kind](rows), TupleData(data.tuples, drawn))
    assert sorted(once.unlabeled) == sorted({*drawn.tolist()})


def test_rows_of_few_values_or_of_one_pool_are_not_taken_for_repeated_ones():
    rows, data = gaussian()
    for coarse in (np.round(rows), np.sign(rows), np.zeros_like(rows)):
        assert without_repeats(coarse, data) is data
    pool = TupleData(data.tuples % 300, data.unlabeled % 300)
    assert without_repeats(rows, pool) is pool
    with pytest.warns(UserWarning, match=f"{pool.unlabeled.size} are counted"):
        once = without_repeats(rows, TupleData(pool.tuples, np.repeat(pool.unlabeled, 4)))
    assert np.array_equal(np.sort(once.unlabeled), np.sort(pool.unlabeled))


def test_different_rows_stand_in_the_order_of_their_first_appearance():
    rows = np.array([[2.0], [1.0], [2.0], [3.0], [9.0]])
    distinct, data = different_rows(rows, TupleData(np.array([[0, 2], [3, -1]]), np.array([1, 2])))
    np.testing.assert_array_equal(distinct, [[2.0], [1.0], [3.0]])
    np.testing.assert_array_equal(data.tuples, [[0, 0], [2, -1]])
    np.testing.assert_array_equal(data.unlabeled, [1, 0])


# -- tuples that share members ---------------------------------------------------------------------


def test_chosen_tuples_share_no_member():
    tuples = np.random.default_rng(0).integers(30, size=(80, 2))
    tuples[:9, 1] = -1
    chosen = tuples[disjoint_tuples(tuples)]
    members = chosen[chosen >= 0]
    assert len(members) == len(set(members.tolist())) > 15


def test_tuples_of_a_small_pool_that_unlabeled_rows_are_not_of_share_no_member():
    generator = np.random.default_rng(0)
    tuples = generator.integers(100, size=(200, 3))
    tuples[::2, 2] = -1
    apart = Bags.of(TupleData(tuples, np.arange(100, 300)), Law.dominant)
    with pytest.warns(UserWarning, match="share none"):
        kept = without_pool(apart)
    assert 20 < kept.n < 50
    assert len({*kept.members.tolist()}) == len(kept.members)
    np.testing.assert_array_equal(kept.unlabeled, apart.unlabeled)

    together = Bags.of(TupleData(tuples, generator.integers(100, size=200)), Law.dominant)
    assert without_pool(together) is together
