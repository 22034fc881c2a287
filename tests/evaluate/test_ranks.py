"""Average ranks, Friedman's test, and the diagram."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from mdpu.evaluate.evidence import table_cells
from mdpu.evaluate.published import METHODS, published_cells, published_summary
from mdpu.evaluate.ranks import accuracy_blocks, rank, rank_table, rankings
from mdpu.report.figures.common import save_figure
from mdpu.report.rank_figure import rank_figure
from mdpu.study.grid import ROW


def blocks(rows, methods=("ure", "relu", "abs")):
    return pd.DataFrame(rows, columns=list(methods))


def test_ranks_are_averaged_and_ties_shared():
    found = rank(blocks([[1, 2, 3], [1, 3, 2], [2, 2, 1]]), 0.05)
    assert found.average.to_dict() == pytest.approx({"relu": (2 + 1 + 1.5) / 3, "abs": 2, "ure": (3 + 3 + 1.5) / 3})
    assert found.average.index.tolist() == ["relu", "abs", "ure"]


def test_friedman_is_the_textbooks():
    rows = np.array([[9.0, 8, 7], [9, 7, 8], [6, 5, 4], [9, 8, 1]])
    found = rank(blocks(rows), 0.05)
    n, k = rows.shape
    ranks = (-rows).argsort(axis=1).argsort(axis=1) + 1
    expected = 12 * n / (k * (k + 1)) * (((ranks.mean(0)) ** 2).sum() - k * (k + 1) ** 2 / 4)
    assert found.statistic == pytest.approx(expected)


def test_the_critical_difference_is_demsars():
    """Demsar (2006), Table 5a: q_0.05 is 2.343 for three methods and 2.850 for six."""
    random = np.random.default_rng(0)
    three = rank(blocks(random.normal(size=(10, 3))), 0.05)
    assert three.critical_difference == pytest.approx(2.343 * math.sqrt(3 * 4 / 60), rel=1e-3)
    six = rank(blocks(random.normal(size=(7, 6)), METHODS), 0.05)
    assert six.critical_difference == pytest.approx(2.850 * math.sqrt(6 * 7 / 42), rel=1e-3)


def test_nemenyi_agrees_with_the_critical_difference():
    random = np.random.default_rng(3)
    found = rank(blocks(random.normal(size=(12, 6)) + np.arange(6) / 2, METHODS), 0.05)
    for first in METHODS:
        for second in METHODS:
            apart = abs(found.average[first] - found.average[second]) > found.critical_difference
            assert (found.nemenyi.loc[first, second] < 0.05) == apart


@pytest.mark.parametrize(
    "rows", [[[1, 2, 3]], [[1, 2, 3], [np.nan, 2, 3]], []], ids=["one block", "one complete block", "none"]
)
def test_too_few_blocks_are_not_ranked(rows):
    assert rank(blocks(rows).astype(float), 0.05) is None


def test_two_methods_are_not_ranked():
    assert rank(blocks([[1, 2], [2, 3], [4, 5]], ("ure", "abs")), 0.05) is None


def test_blocks_are_the_rows_of_the_tables_or_datasets():
    cells = published_summary()
    rows, datasets = accuracy_blocks(cells, "row"), accuracy_blocks(cells, "dataset")
    assert rows.shape == (84, 6)
    assert datasets.shape == (7, 6)
    of_mnist = cells[(cells["dataset"] == "mnist") & (cells["method"] == "ure")]
    assert datasets.loc["mnist", "ure"] == pytest.approx(of_mnist["mean"].mean())
    # What stands in no row of a table has no say: Figure 4's n, variants, other losses, other methods.
    of_tables = {tuple(row) for row in cells[list(ROW)].itertuples(index=False)}
    others = [{"variant": "x"}, {"loss": "ramp"}, {"method": "chance"}, {"n": 2000}]
    noise = pd.concat([cells, *(cells.assign(**other) for other in others)])
    pd.testing.assert_frame_equal(accuracy_blocks(table_cells(noise, of_tables), "row"), rows)


def test_the_papers_ranks_by_hand():
    found = rankings(published_summary().iloc[:0], frozenset(), 0.05)
    assert found["ours", "row"] is found["ours", "dataset"] is None
    cells = published_cells()
    by_hand = cells.groupby(["table", "prior", "dataset"])["published_mean"].rank(ascending=False)
    expected = by_hand.groupby(cells["method"]).mean()
    pd.testing.assert_series_equal(
        found["paper", "row"].average.sort_index(), expected, check_names=False, check_index_type=False
    )
    table = rank_table(found)
    assert set(table["source"]) == {"paper"}
    assert table.groupby("unit")["blocks"].first().to_dict() == {"dataset": 7, "row": 84}


def test_the_diagram_names_every_method_and_is_the_same_each_time(tmp_path):
    found = rankings(published_summary().iloc[:0], frozenset(), 0.05)
    for name in ("first", "second"):
        save_figure(rank_figure(found), tmp_path / f"{name}.svg")
    sayings = ("Our runs, over rows: not run", "average rank over 84 rows", "average rank over 7 datasets")
    text = (tmp_path / "first.svg").read_text(encoding="utf-8")
    for title in ("URE", "ReLU", "ABS", "Siamese", "Contrastive", "K-Means", *sayings):
        assert title in text
    for suffix in ("svg", "pdf"):
        assert (tmp_path / f"first.{suffix}").read_bytes() == (tmp_path / f"second.{suffix}").read_bytes()
