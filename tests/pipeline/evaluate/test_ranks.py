"""Average ranks, Friedman's test, and the diagram."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpu.pipeline.evaluate.evidence import table_cells
from mdpu.pipeline.evaluate.published import published_cells, published_summary
from mdpu.pipeline.evaluate.ranks import (
    Ranking,
    accuracy_blocks,
    nemenyi_quantile,
    rank,
    rank_error,
    rank_table,
    rankings,
)
from mdpu.pipeline.plan import ROW


def blocks(rows, methods=("ure", "relu", "abs")):
    return pd.DataFrame(rows, columns=list(methods))


def test_friedman_is_the_textbooks():
    rows = np.array([[9.0, 8, 7], [9, 7, 8], [6, 5, 4], [9, 8, 1]])
    found = rank(blocks(rows), 0.05)
    n, k = rows.shape
    ranks = (-rows).argsort(axis=1).argsort(axis=1) + 1
    expected = 12 * n / (k * (k + 1)) * (((ranks.mean(0)) ** 2).sum() - k * (k + 1) ** 2 / 4)
    assert found.friedman_statistic == pytest.approx(expected)


# Demsar (2006), Table 5a, for two to ten methods.
DEMSAR = {
    0.05: [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164],
    0.10: [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920],
}


@pytest.mark.parametrize("alpha", DEMSAR)
def test_the_quantiles_are_demsars(alpha):
    assert [nemenyi_quantile(alpha, methods) for methods in range(2, 11)] == pytest.approx(DEMSAR[alpha], abs=1.1e-3)


@pytest.mark.parametrize(
    ("alpha", "critical", "groups"),
    [(0.05, 1.25, [["both", "m", "cf", "C4.5"]]), (0.10, 1.12, [["both", "m", "cf"], ["cf", "C4.5"]])],
)
def test_demsars_own_example(alpha, critical, groups):
    """Section 3.2.2: four versions of C4.5 on 14 data sets, told apart at 0.10 but not at 0.05."""
    average = pd.Series({"both": 1.964, "m": 2.000, "cf": 2.893, "C4.5": 3.143})
    difference = nemenyi_quantile(alpha, 4) * rank_error(4, 14)
    assert difference == pytest.approx(critical, abs=5e-3)
    assert Ranking(14, average, 9.28, 0.03, difference, alpha, pd.DataFrame()).groups() == groups


@given(st.lists(st.floats(1, 6), min_size=3, max_size=8), st.floats(0.1, 4))
def test_groups_are_the_largest_that_are_not_told_apart(values, critical):
    average = pd.Series(sorted(values), index=[f"m{place}" for place in range(len(values))])
    found = Ranking(9, average, 0.0, 1.0, critical, 0.05, pd.DataFrame()).groups()
    names = list(average.index)
    runs = [names[first:last] for first, last in itertools.combinations(range(len(names) + 1), 2) if last > first + 1]
    alike = [run for run in runs if average[run[-1]] <= average[run[0]] + critical]
    largest = [run for run in alike if not any(set(run) < set(other) for other in alike)]
    assert found == largest


@pytest.mark.parametrize(
    "rows", [[[1, 2, 3]], [[1, 2, 3], [np.nan, 2, 3]], []], ids=["one block", "one complete block", "none"]
)
def test_too_few_blocks_are_not_ranked(rows):
    assert rank(blocks(rows).astype(float), 0.05) is None


def test_blocks_are_the_rows_of_the_tables_or_datasets():
    cells = published_summary()
    rows, datasets = accuracy_blocks(cells, "row"), accuracy_blocks(cells, "dataset")
    assert rows.shape == (84, 6)
    assert datasets.shape == (7, 6)
    mnist_cells = cells[(cells["dataset"] == "mnist") & (cells["method"] == "ure")]
    assert datasets.loc["mnist", "ure"] == pytest.approx(mnist_cells["mean"].mean())
    # What stands in no row of a table has no say: Figure 4's n, variants, other losses, other methods.
    rows_of_tables = {tuple(row) for row in cells[list(ROW)].itertuples(index=False)}
    others = [{"variant": "x"}, {"loss": "ramp"}, {"method": "chance"}, {"n": 2000}]
    noise = pd.concat([cells, *(cells.assign(**other) for other in others)])
    pd.testing.assert_frame_equal(accuracy_blocks(table_cells(noise, rows_of_tables), "row"), rows)


def test_the_papers_ranks_by_hand():
    found = rankings(published_summary().iloc[:0], frozenset(), 0.05)
    assert found["ours", "row"] is found["ours", "dataset"] is None
    cells = published_cells()
    by_hand = cells.groupby(["table", "prior", "dataset"])["published_mean"].rank(ascending=False)
    expected = by_hand.groupby(cells["method"]).mean()
    pd.testing.assert_series_equal(
        found["paper", "row"].average_ranks.sort_index(), expected, check_names=False, check_index_type=False
    )
    table = rank_table(found)
    assert set(table["source"]) == {"paper"}
    assert table.groupby("unit")["blocks"].first().to_dict() == {"dataset": 7, "row": 84}
