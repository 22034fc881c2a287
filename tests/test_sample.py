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


def ragged(n=60, n_rows=40):
    """Return pairs and triples in turns, of rows that recur."""
    generator = np.random.default_rng(0)
    tuples = generator.integers(n_rows, size=(n, 3))
    tuples[::2, 2] = -1
    return TupleData(tuples, generator.integers(n_rows, size=n))


def gaussian(n=400, size=3):
    """Return rows, each once, and tuples and unlabeled rows of them that share none."""
    rows = np.random.default_rng(3).standard_normal((n * size + n, 3))
    places = np.arange(len(rows))
    tuples = places[:-n].reshape(n, size)
    return rows, TupleData(tuples, places[-n:])


# -- bags ------------------------------------------------------------------------------------------


def sorted_members(data):
    return sorted(data.tuples[data.tuples >= 0])


def test_bags_are_the_tuples_by_size():
    data = ragged()
    bags = Bags.of(data, Law.dominant)
    assert bags.laws == [Law.dominant(2), Law.dominant(3)]
    assert bags.n == 60
    largest = max(data.tuples.max(), data.unlabeled.max())
    assert bags.n_rows == 1 + largest

    pairs, triples = bags.parts
    np.testing.assert_array_equal(pairs.tuples, data.tuples[::2, :2])
    np.testing.assert_array_equal(triples.tuples, data.tuples[1::2])
    assert sorted(bags.members) == sorted_members(data)


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
    of_pairs, of_triples = bags.split(bags.data.sizes)
    assert {*of_pairs} == {2}
    assert {*of_triples} == {3}


def test_tuples_and_unlabeled_rows_are_chosen_by_part():
    bags = Bags.of(ragged(), Law.dominant)
    no_pair = np.zeros(30, bool)
    chosen = bags.select([no_pair, ~no_pair], np.arange(60) < 10)
    pairs, triples = chosen.parts
    assert len(pairs.tuples) == 0
    assert len(triples.tuples) == 30
    assert len(chosen.unlabeled) == 10


def test_counts_take_the_place_of_the_law():
    data = ragged()
    low = np.arange(60) // 2 % 2
    high = data.sizes - 1 + low
    bags = Bags.of(data, Law.dominant, (low, high))

    assert len(bags.laws) == 4
    for size in (2, 3):
        assert Law.between(size, 0, size - 1) in bags.laws
        assert Law.between(size, 1, size) in bags.laws
    assert not bags.complete
    np.testing.assert_array_equal(bags.unlabeled, data.unlabeled)


def test_members_of_complete_bags_are_the_unlabeled_rows():
    data = ragged()
    bags = Bags.of(data, Law.dominant, (1, 1), complete=True)
    assert bags.complete
    assert sorted(bags.unlabeled) == sorted_members(data)


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
    rows = KINDS[kind](np.column_stack([contents, np.ones(len(contents))]))
    first_seen = list(dict.fromkeys(contents))
    expected = [first_seen.index(content) for content in contents]
    assert row_numbers(rows).tolist() == expected


@pytest.mark.parametrize("kind", [list, lambda texts: np.array(texts, object), pd.Series])
def test_equal_texts_have_equal_numbers(kind):
    texts = kind(["good", "bad", "go" + "od", ""])
    rows = texts if hasattr(texts, "shape") else np.asarray(texts)
    assert row_numbers(rows).tolist() == [0, 1, 0, 2]
    assert row_numbers(rows, np.array([3, 1])).tolist() == [0, 1]


def values_at(rows, places):
    chosen = rows[places]
    if sparse.issparse(chosen):
        chosen = chosen.toarray()
    return chosen.ravel()


@pytest.mark.parametrize("kind", ["table", "sparse", "pictures"])
def test_a_sample_holds_each_row_once_and_no_other(kind):
    contents = np.random.default_rng(0).integers(1, 15, size=(40, 2)).astype(float)
    contents[20:] = contents[:20]
    data = ragged()
    rows = KINDS[kind](contents)

    sample = Sample.of(rows, data, Law.dominant)

    numbers = row_numbers(sample.rows)
    assert len({*numbers.tolist()}) == len(numbers) <= 20
    by_size = Bags.of(data, Law.dominant)
    np.testing.assert_array_equal(
        values_at(sample.rows, sample.bags.members), values_at(rows, by_size.members)
    )


def test_rows_of_some_bags_are_those_that_they_name():
    rows, data = gaussian()
    sample = Sample.of(rows, data, Law.dominant)
    place = np.arange(400)
    few = sample.bags.select([place < 10], place < 20)

    part = sample.of_bags(few)

    assert part.rows.shape == (50, 3)
    members = part.rows[part.bags.members]
    np.testing.assert_array_equal(members, sample.rows[few.members])
    np.testing.assert_array_equal(part.unlabeled_rows, sample.rows[few.unlabeled])
    assert sample.of_bags(sample.bags).rows is sample.rows


def test_members_that_are_put_back_are_unlabeled_rows_too():
    rows, data = gaussian()
    sample = Sample.of(rows, data, Law.dominant).put_back()
    assert sorted(sample.bags.unlabeled) == list(range(len(rows)))


@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_unlabeled_rows_are_left_out(kind):
    rows, data = gaussian()
    rows = KINDS[kind](rows)
    drawn = np.random.default_rng(0).choice(data.unlabeled, 400)
    data = TupleData(data.tuples, drawn)
    with pytest.warns(UserWarning, match="different rows"):
        once = without_repeats(rows, data)
    assert sorted(once.unlabeled) == sorted({*drawn})


@pytest.mark.parametrize("coarsen", [np.round, np.sign, np.zeros_like])
def test_rows_of_few_values_are_not_taken_for_repeated_ones(coarsen):
    rows, data = gaussian()
    assert without_repeats(coarsen(rows), data) is data


def test_rows_of_one_pool_are_not_taken_for_repeated_ones():
    rows, data = gaussian()
    pool = TupleData(data.tuples % 300, data.unlabeled % 300)
    assert without_repeats(rows, pool) is pool

    repeated = TupleData(pool.tuples, np.repeat(pool.unlabeled, 4))
    with pytest.warns(UserWarning, match=f"{len(pool.unlabeled)} are counted"):
        once = without_repeats(rows, repeated)
    assert sorted(once.unlabeled) == sorted(pool.unlabeled)


def test_different_rows_stand_in_the_order_of_their_first_appearance():
    values = np.array([2, 1, 2, 3, 9])
    tuples = np.array(
        [
            [0, 2],
            [3, -1],
        ]
    )
    unlabeled = np.array([1, 2])
    data = TupleData(tuples, unlabeled)

    distinct, data = different_rows(values[:, None], data)

    assert distinct.ravel().tolist() == [2, 1, 3]
    assert data.tuples.tolist() == [[0, 0], [2, -1]]
    assert data.unlabeled.tolist() == [1, 0]


# -- tuples that share members ---------------------------------------------------------------------


def test_chosen_tuples_share_no_member():
    tuples = np.random.default_rng(0).integers(30, size=(80, 2))
    tuples[:9, 1] = -1
    chosen = tuples[disjoint_tuples(tuples)]
    members = chosen[chosen >= 0]
    assert len(members) == len({*members.tolist()}) > 15


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


def test_tuples_and_unlabeled_rows_of_one_pool_stay_as_they_are():
    generator = np.random.default_rng(0)
    tuples = generator.integers(100, size=(200, 3))
    unlabeled = generator.integers(100, size=200)
    bags = Bags.of(TupleData(tuples, unlabeled), Law.dominant)
    assert without_pool(bags) is bags
