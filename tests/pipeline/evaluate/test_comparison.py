"""The verdicts: the interval, the rule, and every published number in every reading."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.comparison import (
    ALL_DIVERGED,
    BEYOND,
    CLOSE,
    DIFFERS,
    FEWEST_TRIALS,
    INCONCLUSIVE,
    INSIDE,
    NO_INTERVAL,
    NOT_RUN,
    REPRODUCED,
    SOME_DIVERGED,
    TOO_WIDE,
    VERDICTS,
    WIDER,
    WITHIN,
    Trials,
    compare,
    equivalence_p,
    judge,
    prediction_interval,
    spreads,
    totals,
    welch_interval,
)
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan

RULE = {"level": 0.95, "margin": 1.0, "wider_margin": 2.0}


@pytest.fixture(scope="module")
def names():
    return Plan(load_config()).published_names


def trials_of(values):
    return Trials(np.mean(values), np.std(values, ddof=1), len(values))


@given(
    first=st.lists(st.floats(50, 100), min_size=2, max_size=6).filter(
        lambda values: np.ptp(values) > 1e-3
    ),
    second=st.lists(st.floats(50, 100), min_size=2, max_size=6).filter(
        lambda values: np.ptp(values) > 1e-3
    ),
    level=st.floats(0.6, 0.99),
)
def test_the_interval_is_scipys(first, second, level):
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(level)
    low, high = welch_interval(trials_of(first), trials_of(second), level)
    np.testing.assert_allclose([low, high], expected, rtol=1e-6, atol=1e-9)


def test_without_deviation_there_is_an_interval_only_if_two_trials_say_so():
    varies = Trials(79, 0.5, 3)
    for single in (Trials(80, np.nan, 1), Trials(80, 0.5, 1)):
        low, _ = welch_interval(single, varies, 0.95)
        assert np.isnan(low)

    constant = Trials(80, 0.0, 3)
    low, high = welch_interval(constant, Trials(79, 0.0, 3), 0.95)
    assert [low, high] == [1, 1]

    low, high = welch_interval(constant, varies, 0.95)  # all the freedom is of the one that varies
    half = stats.t.ppf(0.975, 2) * 0.5 / np.sqrt(3)
    assert [low, high] == pytest.approx([1 - half, 1 + half])


@pytest.mark.parametrize(
    ("difference", "low", "high", "verdict", "reason"),
    [
        (-1.0, -3.0, 1.0, REPRODUCED, WITHIN),
        (0.5, -3.0, 4.0, REPRODUCED, WITHIN),
        (0.5, -3.1, 4.1, INCONCLUSIVE, TOO_WIDE),
        (0.5, 0.1, 0.9, REPRODUCED, INSIDE),
        (0.8, 0.3, 1.3, CLOSE, WIDER),
        (-1.5, -3.0, 0.5, CLOSE, WIDER),
        (2.0, 1.5, 2.5, CLOSE, WIDER),
        (-2.1, -6.0, 1.8, INCONCLUSIVE, TOO_WIDE),
        (2.1, 0.1, 4.1, DIFFERS, BEYOND),
        (0.0, np.nan, np.nan, INCONCLUSIVE, NO_INTERVAL),
        (25.4, np.nan, np.nan, INCONCLUSIVE, NO_INTERVAL),
    ],
)
def test_the_rule(difference, low, high, verdict, reason):
    verdicts, reasons = judge([difference], [low], [high], 1.0, 2.0)
    assert verdicts[0] == verdict
    assert reasons[0] == reason


samples = st.lists(st.floats(50, 100), min_size=5, max_size=8).filter(
    lambda values: np.ptp(values) > 1e-3
)


@given(samples, st.integers(1, 6), st.floats(0.6, 0.99))
def test_the_prediction_interval_is_scipys_of_a_mean_with_both_errors(values, further, level):
    count = len(values)
    error = np.std(values, ddof=1) * np.sqrt(1 / count + 1 / further)
    expected = stats.t.interval(level, count - 1, np.mean(values), error)
    low, high = prediction_interval(trials_of(values), further, level)
    np.testing.assert_allclose([float(low), float(high)], expected, rtol=1e-9)


@given(
    samples, st.lists(st.floats(50, 100), min_size=3, max_size=3).filter(lambda v: np.ptp(v) > 1e-3)
)
def test_equivalence_is_two_of_scipys_one_sided_tests(first, second):
    sides = [
        stats.ttest_ind(np.add(first, shift), second, equal_var=False, alternative=side).pvalue
        for shift, side in ((1.0, "greater"), (-1.0, "less"))
    ]
    assert float(equivalence_p(trials_of(first), trials_of(second), 1.0)) == pytest.approx(
        max(sides), rel=1e-6, abs=1e-12
    )


@pytest.mark.parametrize("trials", [FEWEST_TRIALS - 1, FEWEST_TRIALS])
def test_the_sharper_columns_need_enough_trials(names, trials):
    summary = summary_of(mean=87.8, std=0.4, trials=trials + 1, diverged=1)
    cell = compare(summary, names, RULE).query("verdict != 'not run'").iloc[0]
    columns = ["prediction_low", "prediction_high", "predicted", "equivalence_p", "equivalent"]
    if trials < FEWEST_TRIALS:
        assert cell[columns].isna().all()
        return
    expected = prediction_interval(Trials(87.8, 0.4, trials), 3, 0.95)
    assert cell[columns[:2]].tolist() == pytest.approx([float(end) for end in expected])
    assert cell["predicted"]  # the paper's 87.91
    assert cell["equivalence_p"] == pytest.approx(
        float(equivalence_p(Trials(87.8, 0.4, trials), Trials(87.91, 0.40, 3), 1.0))
    )
    assert cell["equivalent"] == (cell["equivalence_p"] < 0.05)
    far = compare(summary.assign(mean=90.0), names, RULE).query("verdict != 'not run'").iloc[0]
    assert (far["predicted"], far["equivalent"]) == (False, False)


def summary_of(**changes):
    """Return a summary of one cell, MNIST pairs at prior 0.4 by URE (paper: 87.91 ± 0.40), with
    changes.
    """
    cell = {
        "dataset": "mnist",
        "variant": "base",
        "tuple_size": 2,
        "n": 10000,
        "prior": "0.4",
        "method": "ure",
    }
    cell |= {
        "loss": "logistic",
        "law": "dominant",
        "mean": 87.5,
        "std": 0.5,
        "trials": 3,
        "diverged": 0,
    }
    return pd.DataFrame([{**cell, "first_epoch": 91, "last_epoch": 100, **changes}])


def test_every_published_number_has_a_row_in_every_reading(names):
    found = compare(summary_of().iloc[:0], names, RULE)
    assert set(found["verdict"]) == {NOT_RUN}
    assert len(found) == 504 + 2 * 72
    assert len(found[found["reading"] == "as stated"]) == 504
    others = found.loc[found["reading"] == "as the numbers imply", ["published_dataset", "dataset"]]
    assert set(others.itertuples(index=False, name=None)) == {
        ("emnist-letters", "emnist-letters-a-i"),
        ("emnist-balanced", "emnist-balanced-digits"),
    }
    assert not found.duplicated(["table", "prior", "dataset", "method"]).any()
    assert found["published_mean"].notna().all()


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        ({"mean": 95.0}, DIFFERS, BEYOND),
        ({"std": np.nan, "trials": 1}, INCONCLUSIVE, NO_INTERVAL),
        ({"std": np.nan, "trials": 3, "diverged": 2}, INCONCLUSIVE, NO_INTERVAL),
        ({"std": 9.0}, INCONCLUSIVE, TOO_WIDE),
        ({"diverged": 1}, CLOSE, SOME_DIVERGED),
        ({"diverged": 1, "mean": 95.0}, DIFFERS, BEYOND),
        ({"mean": np.nan, "std": np.nan, "diverged": 3}, DIFFERS, ALL_DIVERGED),
        ({"mean": 87.91, "std": 0.0}, REPRODUCED, INSIDE),
    ],
)
def test_trials_that_are_missing_or_diverged_are_told(names, changes, verdict, reason):
    found = compare(summary_of(**changes), names, RULE)
    cell = found[found["verdict"] != NOT_RUN].iloc[0]
    assert (cell["verdict"], cell["reason"]) == (verdict, reason)


def test_totals_count_every_comparison_once_per_division(names):
    counted = totals(compare(summary_of(), names, RULE)).set_index(["by", "value"])
    verdicts = list(VERDICTS)
    every = counted.loc[("all", "all")]
    assert every[verdicts].tolist() == [1, 0, 0, 0, 647]
    assert every[["tested", "predicted", "equivalent"]].tolist() == [0, 0, 0]
    by_division = counted[verdicts].sum(axis=1).groupby("by")
    assert (by_division.sum() == 648).all()
    assert counted.loc[("dataset", "mnist"), REPRODUCED] == 1
    assert counted.loc[("table", 2), REPRODUCED] == 1
    assert counted.loc[("method", "abs"), REPRODUCED] == 0


def test_deviations_are_pooled_over_the_cells_with_two_trials(names):
    single = summary_of(std=np.nan, trials=1, prior="0.6")
    summary = pd.concat([summary_of(std=1.0), summary_of(std=3.0, prior="0.5"), single])
    spread = spreads(compare(summary, names, RULE)).set_index("method").loc["ure"]
    same_cells = "table == 2 and dataset == 'mnist' and method == 'ure' and prior < '0.6'"
    published = published_cells().query(same_cells)["published_std"]
    ours = np.sqrt((1 + 9) / 2)
    paper = np.sqrt((published**2).mean())
    assert spread["cells"] == 2
    assert spread["ours"] == pytest.approx(ours)
    assert spread["paper"] == pytest.approx(paper)
    assert spread["ratio"] == pytest.approx(ours / paper)
    assert spread["larger"] == 2  # the paper's are 0.40 and 1.07


def split_numbers(text: str) -> tuple[list[str], list[float]]:
    """Return the words between the numbers of a text, and the numbers."""
    decimals = r"\b\d+\.\d\b"
    return re.split(decimals, text), [float(number) for number in re.findall(decimals, text)]


@pytest.mark.slow
def test_the_documented_error_rates_are_those_that_the_benchmark_prints():
    script = REPOSITORY / "benchmarks" / "error_rates.py"
    done = subprocess.run(
        [sys.executable, script], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    document = (REPOSITORY / "docs" / "explanation" / "comparison.md").read_text(encoding="utf-8")
    table = next(part for part in document.split("\n\n") if part.startswith("| rule |"))

    words, shares = split_numbers(table.strip())
    printed_words, printed_shares = split_numbers(done.stdout.strip())

    assert printed_words == words
    # One of 2,000 tables can lie on the edge of its interval, where rounding decides: 0.05 points.
    assert printed_shares == pytest.approx(shares, abs=0.11)
