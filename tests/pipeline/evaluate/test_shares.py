"""Intervals of shares over dependent cases: what they are in plain cases, and their coverage in
hard ones.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mdpu.pipeline.evaluate.comparison import share_interval

clusters = st.integers(2, 8).flatmap(
    lambda count: st.lists(
        st.integers(1, 40).flatmap(lambda cases: st.tuples(st.integers(0, cases), st.just(cases))),
        min_size=count,
        max_size=count,
    )
)


def coverage(share, correlation, seeds, cells=36, rounds=500):
    """Return how often the interval holds the truth where all cells of a seed are moved by a common
    effect.
    """
    random = np.random.default_rng(1)
    places = share + random.normal(size=cells)  # cells differ in how likely they hold
    truth = stats.norm.cdf(places).mean()
    of_seed = np.sqrt(correlation) * random.normal(size=(rounds, seeds, 1))
    of_case = np.sqrt(1 - correlation) * random.normal(size=(rounds, seeds, cells))
    holds = places + of_seed + of_case > 0
    cases = np.full(seeds, cells)
    held = 0
    for hold in holds.sum(axis=2):
        low, high = share_interval(hold, cases, 0.95)
        held += low <= truth <= high
    return held / rounds


@given(clusters, st.floats(0.6, 0.99))
def test_the_interval_holds_the_share_and_lies_within_zero_and_one(counts, level):
    hold, cases = np.array(counts).T
    low, high = share_interval(hold, cases, level)
    assert 0 <= low <= hold.sum() / cases.sum() <= high <= 1


@given(clusters)
def test_failures_mirror_what_holds(counts):
    hold, cases = np.array(counts).T
    low, high = share_interval(hold, cases, 0.95)
    assert share_interval(cases - hold, cases, 0.95) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize("hold", [0, 12])
def test_where_all_seeds_agree_each_counts_as_one_case(hold):
    expected = stats.binomtest(3 * hold // 12, 3).proportion_ci(0.95, "exact")
    assert share_interval([hold] * 3, [12] * 3, 0.95) == pytest.approx(
        (expected.low, expected.high)
    )


def test_no_interval_is_narrower_than_that_of_independent_cases():
    expected = stats.binomtest(30, 40).proportion_ci(0.95, "exact")
    low, high = share_interval([15, 15], [20, 20], 0.95)  # two seeds agree by luck
    assert low <= expected.low + 1e-9
    assert high >= expected.high - 1e-9


def test_one_seed_has_no_interval():
    assert np.isnan(share_interval([3], [4], 0.95)).all()
    assert np.isnan(share_interval([3, 0], [4, 0], 0.95)).all()


@pytest.mark.parametrize("seeds", [3, 10])
@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.93), (0.6, 0.91), (0.9, 0.86)])
def test_it_covers_though_the_cells_of_a_seed_depend_on_one_another(
    seeds, share, correlation, least
):
    assert coverage(share, correlation, seeds) > least
