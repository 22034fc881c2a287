"""The largest n without replacement, against enumeration, against draws, and against known values."""

from __future__ import annotations

import itertools
from math import prod
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mdpu.errors import UserError
from mdpu.pipeline.config import load_config
from mdpu.pipeline.data.pools import DEMANDS, expected_largest_n, probability_of_fit
from mdpu.pipeline.data.splits import draw_split
from mdpu.pipeline.evaluate.largest_n import largest_n_table, training_counts
from mdpu.pipeline.files import REPOSITORY, read_json, write_json
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.largest_n import HEADER, largest_n_latex, largest_n_markdown, largest_n_rows, probability
from mdpu.theory import coefficients


@pytest.mark.parametrize(
    ("dataset", "prior", "largest"),
    [("mnist", 0.6, 12639), ("emnist-balanced-digits", 0.6, 5142), ("emnist-letters-a-i", 0.6, 8228)],
)
def test_the_limits_that_explain_the_papers_odd_n(dataset, prior, largest):
    """Triples of the paper's larger n just fit where the pool is what its numbers imply."""
    counts = load_config([REPOSITORY / "config.yaml"])["definitions"]["datasets"][dataset]["counts"]["train"]
    assert expected_largest_n(counts["positive"], counts["negative"], 3, prior, "tuples") == largest


def possible_demands(size: int, prior: float, n: int, n_unlabeled: int):
    """Yield positives and negatives in n tuples and in n_unlabeled images, with their probability."""
    dominant = [labels for labels in itertools.product((1, 0), repeat=size) if 2 * sum(labels) >= size]
    chances = np.array([prior ** sum(labels) * (1 - prior) ** (size - sum(labels)) for labels in dominant])
    chances /= chances.sum()
    for tuples in itertools.product(range(len(dominant)), repeat=n):
        tuple_positives = sum(sum(dominant[t]) for t in tuples)
        for images in itertools.product((1, 0), repeat=n_unlabeled):
            chance = prod(chances[t] for t in tuples) * prod(prior if image else 1 - prior for image in images)
            yield tuple_positives, n * size - tuple_positives, sum(images), n_unlabeled - sum(images), chance


@pytest.mark.parametrize("demand", DEMANDS)
@pytest.mark.parametrize(("size", "n", "n_unlabeled"), [(1, 3, 2), (2, 3, 4), (3, 2, 3), (4, 2, 1)])
@pytest.mark.parametrize(("positives", "negatives"), [(4, 2), (3, 3), (6, 1), (2, 6), (20, 20)])
def test_the_probability_of_a_fit_is_that_of_enumerating_all_draws(positives, negatives, size, n, n_unlabeled, demand):
    prior, expected = 0.4, 0.0
    for tuple_pos, tuple_neg, other_pos, other_neg, chance in possible_demands(size, prior, n, n_unlabeled):
        needed = {
            "tuples": (tuple_pos, tuple_neg),
            "overlapping": (max(tuple_pos, other_pos), max(tuple_neg, other_neg)),
            "disjoint": (tuple_pos + other_pos, tuple_neg + other_neg),
        }[demand]
        expected += chance * (needed[0] <= positives and needed[1] <= negatives)
    found = probability_of_fit(positives, negatives, size, prior, n, demand, n_unlabeled)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("overlap", [True, False])
def test_splits_can_be_drawn_as_often_as_the_probability_says(overlap):
    """Exact binomial test at 1e-6 on 400 trials."""
    labels = np.array([1] * 60 + [-1] * 50, dtype=np.int8)
    n = 26 if overlap else 20
    chance = probability_of_fit(60, 50, 3, 0.6, n, "overlapping" if overlap else "disjoint")
    assert 0.2 < chance < 0.8
    fits = 0
    for seed in range(400):
        try:
            draw_split(labels, 3, 0.6, n, n, seed, replacement=False, overlap=overlap)
        except UserError:
            continue
        fits += 1
    assert stats.binomtest(fits, 400, chance).pvalue > 1e-6


@given(
    positives=st.integers(1, 5000),
    negatives=st.integers(1, 5000),
    size=st.integers(1, 6),
    prior=st.floats(0.05, 0.95),
    demand=st.sampled_from(DEMANDS),
)
def test_expected_demand_fits_at_the_largest_n_and_not_beyond(positives, negatives, size, prior, demand):
    largest = expected_largest_n(positives, negatives, size, prior, demand)
    c = coefficients(size, prior)
    for n, fits in ((largest, True), (largest + 1, False)):
        tuples, unlabeled = (n * size * c.a, n * size * c.b), (n * prior, n * (1 - prior))
        needed = {
            "tuples": tuples,
            "overlapping": tuple(map(max, tuples, unlabeled)),
            "disjoint": (tuples[0] + unlabeled[0], tuples[1] + unlabeled[1]),
        }[demand]
        slack = 1e-9 * (1 if fits else -1)
        assert (needed[0] <= positives * (1 + slack) and needed[1] <= negatives * (1 + slack)) == fits


def test_about_half_of_all_draws_fit_at_the_largest_n_by_expected_numbers():
    largest = expected_largest_n(29492, 30508, 3, 0.6, "tuples")
    assert probability_of_fit(29492, 30508, 3, 0.6, largest, "tuples") == pytest.approx(0.5, abs=0.05)
    assert probability_of_fit(29492, 30508, 3, 0.6, 12000, "tuples") > 1 - 1e-9
    assert probability_of_fit(29492, 30508, 3, 0.6, 13000, "tuples") < 1e-9


# -- the table ------------------------------------------------------------------------------------


def paper(**selection) -> Plan:
    return Plan({**load_config([REPOSITORY / "config.yaml"]), **selection})


def test_counts_come_from_the_configuration_or_else_from_the_labels(tmp_path):
    plan = paper(datasets=["mnist"])
    assert training_counts(plan, tmp_path)["mnist"] == {"positive": 29492, "negative": 30508}
    del plan.config["definitions"]["datasets"]["mnist"]["counts"]["train"]["negative"]
    assert plan.uncounted == ["mnist"]
    with pytest.raises(UserError, match=r"mnist\.json does not exist"):
        training_counts(plan, tmp_path)
    write_json(tmp_path / "mnist.json", {"counts": {"train": {"positive": 5, "negative": 6, "dropped": 7}}})
    assert training_counts(plan, tmp_path)["mnist"] == {"positive": 5, "negative": 6}


def test_the_table_has_the_papers_n_for_both_readings_of_a_published_row(tmp_path):
    plan = paper(datasets=["mnist", "emnist-letters"], experiments=["table2", "table5", "misspecification"])
    table = largest_n_table(plan, training_counts(plan, tmp_path))
    row = table.set_index(["dataset", "tuple_size", "prior", "n"]).loc["mnist", 3, "0.6", 12000]
    assert row["published"]
    assert (row["largest_tuples"], row["largest_overlapping"], row["largest_disjoint"]) == (12639, 12639, 10054)
    assert row["fit_tuples"] == pytest.approx(1)
    assert row["fit_disjoint"] == pytest.approx(0, abs=1e-9)
    assert len(table) == 2 * 2 * 3 * 2
    assert set(table.loc[table["dataset"] == "emnist-letters", "n"]) == {7000, 8000}


def test_a_dataset_that_the_paper_lacks_gets_the_n_of_its_runs(tmp_path):
    config = load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"])
    table = largest_n_table(Plan(config), training_counts(Plan(config), tmp_path))
    assert set(table["n"]) == {800}
    assert not table["published"].any()


def test_the_table_is_shown_with_a_row_per_prior_and_both_n_in_it(tmp_path):
    plan = paper(datasets=["mnist"], experiments=["table4"])
    table = largest_n_table(plan, training_counts(plan, tmp_path))
    rows = largest_n_rows(table, {"mnist": "M&M"})
    assert rows[0][:4] == ["M&M", "3", "0.4", "10,000 / 12,000"]
    assert rows[2] == ["", "3", "0.6", "10,000 / 12,000", *["12,639 (yes / yes)"] * 2, "10,054 (99.0 % / no)"]
    assert len(rows) == 3
    latex = largest_n_latex(table, {"mnist": "M&M"})
    assert r"{\textbf{M\&M}} \\" in latex
    assert r"3 & 0.6 & 12000 & 12639 & yes & 12639 & yes & 10054 & no \\" in latex
    assert largest_n_markdown(table, {"mnist": "M&M"}).count("\n") == 2 + 2 + 3
    assert all(len(row) == len(HEADER) for row in rows)


@pytest.mark.parametrize(("value", "text"), [(1.0, "yes"), (0.9999, "yes"), (0.999, "99.9 %"), (0.0001, "no")])
def test_a_probability_is_a_word_only_where_it_is_certain(value, text):
    assert probability(value) == text


@pytest.mark.slow
def test_the_finished_run_has_the_largest_n_of_its_own_labels(finished):
    """The tiny configuration gives no counts, so they are those of the labels."""
    counts = read_json(finished.results / "labels/digits.json")["counts"]["train"]
    table = pd.read_csv(finished.results / "largest_n.csv", dtype={"prior": str})
    assert {(row.tuple_size, row.prior, row.n) for row in table.itertuples()} == {
        (2, "0.4", 60),
        (2, "0.5", 60),
        (3, "0.5", 60),
    }
    for row in table.itertuples():
        expected = expected_largest_n(
            counts["positive"], counts["negative"], row.tuple_size, float(row.prior), "disjoint"
        )
        assert row.largest_disjoint == expected
    assert {path.suffix for path in Path(finished.results).glob("largest_n.*")} == {".csv", ".md", ".tex"}
