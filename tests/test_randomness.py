"""Streams: the numbers are pinned, because a split must be the same on every machine and in every
year.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mdpu.randomness import Stream


def test_uniform_numbers_are_the_pinned_ones():
    expected = ["0x1.6f158b4f6517ep-1", "0x1.457b7dbc95320p-5", "0x1.989a6c7bcbb83p-1"]
    assert [number.hex() for number in Stream(7, "golden", 3).uniform(3).tolist()] == expected


def test_integers_and_permutations_are_the_pinned_ones():
    assert Stream(7, "golden", 3).integers(1000, 3).tolist() == [716, 39, 798]
    assert Stream(7, "golden").permutation(10).tolist() == [1, 7, 9, 5, 6, 2, 4, 0, 8, 3]
    assert Stream(2**40, "x").integers(2**50, 2).tolist() == [312591051391302, 636416127526954]


def test_a_stream_goes_on_where_it_stopped():
    whole = Stream(1, "a")
    halves = Stream(1, "a")
    assert whole.uniform(2, 3).ravel().tolist() == [
        *halves.uniform(4).tolist(),
        *halves.uniform(2).tolist(),
    ]


def test_seed_purpose_and_index_each_name_another_stream():
    names = [(1, "a"), (2, "a"), (1, "b"), (1, "a", 0), (1, "a", 1), (1, "a", 1, 0), (1, "ab")]
    assert len({Stream(*name).uniform(1)[0] for name in names}) == len(names)
    assert Stream(np.int64(1), "a").uniform(1) == Stream(1, "a").uniform(1)


def test_numbers_are_uniform():
    """Kolmogorov-Smirnov at 1e-6, over 100,000 numbers; a true generator fails once in a million
    seeds.
    """
    numbers = Stream(3, "uniformity").uniform(100_000)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert stats.kstest(numbers, "uniform").pvalue > 1e-6


@given(st.integers(0, 2**63), st.integers(1, 50))
def test_permutations_hold_every_number_once(seed, n):
    assert sorted(Stream(seed, "order").permutation(n)) == list(range(n))


@given(st.integers(0, 2**63), st.integers(1, 2**40))
def test_integers_stay_below_their_bound(seed, high):
    drawn = Stream(seed, "integers").integers(high, 20)
    assert drawn.dtype == np.int64
    assert 0 <= drawn.min() <= drawn.max() < high
