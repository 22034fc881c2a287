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


def varying(smallest, largest):
    """Draw a list of numbers that are not all alike."""
    values = st.lists(st.floats(50, 100), min_size=smallest, max_size=largest)
    return values.filter(lambda numbers: np.ptp(numbers) > 1e-3)


@given(varying(2, 6), varying(2, 6), st.floats(0.6, 0.99))
def test_the_interval_is_scipys(first, second, level):
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(level)
    ends = welch_interval(trials_of(first), trials_of(second), level)
    np.testing.assert_allclose(ends, expected, rtol=1e-6, atol=1e-9)


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


VARIES = Trials(79, 0.5, 3)


@pytest.mark.parametrize("std", [np.nan, 0.5])
def test_a_single_trial_has_no_interval(std):
    low, _ = welch_interval(Trials(80, std, 1), VARIES, 0.95)
    assert np.isnan(low)


def test_two_constant_trials_have_an_interval_of_no_width():
    ends = welch_interval(Trials(80, 0.0, 3), Trials(79, 0.0, 3), 0.95)
    assert ends == (1, 1)


def test_beside_a_constant_trial_all_the_freedom_is_of_the_one_that_varies():
    low, high = welch_interval(Trials(80, 0.0, 3), VARIES, 0.95)
    half = stats.t.ppf(0.975, 2) * 0.5 / np.sqrt(3)
    assert low == pytest.approx(1 - half)
    assert high == pytest.approx(1 + half)


@given(varying(5, 8), st.integers(1, 6), st.floats(0.6, 0.99))
def test_the_prediction_interval_is_scipys_of_a_mean_with_both_errors(values, further, level):
    trials = trials_of(values)
    number = len(values)
    error = trials.std * np.sqrt(1 / number + 1 / further)
    expected = stats.t.interval(level, number - 1, trials.mean, error)
    ends = prediction_interval(trials, further, level)
    np.testing.assert_allclose(ends, expected, rtol=1e-9)


@given(varying(5, 8), varying(3, 3))
def test_equivalence_is_two_of_scipys_one_sided_tests(first, second):
    sides = []
    for shift, side in ((1.0, "greater"), (-1.0, "less")):
        shifted = np.add(first, shift)
        result = stats.ttest_ind(shifted, second, equal_var=False, alternative=side)
        sides.append(result.pvalue)
    p = equivalence_p(trials_of(first), trials_of(second), 1.0)
    assert float(p) == pytest.approx(max(sides), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("mean", "p"), [(79.5, 0), (78.5, 1)])
def test_without_noise_means_are_equivalent_if_they_are_within_the_margin(mean, p):
    assert equivalence_p(Trials(80, 0.0, 3), Trials(mean, 0.0, 3), 1.0) == p


def compared(names, **changes):
    """Return the only cell that was run, compared with the paper."""
    table = compare(summary_of(**changes), names, RULE)
    (cell,) = table[table["verdict"] != NOT_RUN].to_dict("records")
    return cell


def test_the_sharper_columns_need_enough_trials(names):
    cell = compared(names, mean=87.8, std=0.4, trials=FEWEST_TRIALS, diverged=1)
    for column in (
        "prediction_low",
        "prediction_high",
        "predicted",
        "equivalence_p",
        "equivalent",
    ):
        assert pd.isna(cell[column])


def test_the_sharper_columns_count_the_trials_that_finished(names):
    few = {"std": 0.4, "trials": FEWEST_TRIALS + 1, "diverged": 1}
    ours = Trials(87.8, 0.4, FEWEST_TRIALS)
    cell = compared(names, mean=87.8, **few)
    low, high = prediction_interval(ours, 3, 0.95)
    assert cell["prediction_low"] == pytest.approx(float(low))
    assert cell["prediction_high"] == pytest.approx(float(high))
    assert cell["predicted"]  # the paper's 87.91
    p = float(equivalence_p(ours, Trials(87.91, 0.40, 3), 1.0))
    assert cell["equivalence_p"] == pytest.approx(p)
    assert cell["equivalent"] == (p < 0.05)

    far = compared(names, mean=90.0, **few)
    assert not far["predicted"]
    assert not far["equivalent"]


CELL = {
    "dataset": "mnist",
    "variant": "base",
    "tuple_size": 2,
    "n": 10000,
    "prior": "0.4",
    "method": "ure",
    "loss": "logistic",
    "law": "dominant",
    "mean": 87.5,
    "std": 0.5,
    "trials": 3,
    "diverged": 0,
    "first_epoch": 91,
    "last_epoch": 100,
}


def summary_of(**changes):
    """Return a summary of one cell, MNIST pairs at prior 0.4 by URE (paper: 87.91 ± 0.40), with
    changes.
    """
    return pd.DataFrame([{**CELL, **changes}])


def test_every_published_number_has_a_row_in_every_reading(names):
    table = compare(summary_of().iloc[:0], names, RULE)
    assert set(table["verdict"]) == {NOT_RUN}
    assert len(table) == 504 + 2 * 72
    assert table["published_mean"].notna().all()
    assert not table.duplicated(["table", "prior", "dataset", "method"]).any()

    assert (table["reading"] == "as stated").sum() == 504
    implied = table[table["reading"] == "as the numbers imply"]
    datasets = implied[["published_dataset", "dataset"]].drop_duplicates()
    assert dict(datasets.to_numpy()) == {
        "emnist-letters": "emnist-letters-a-i",
        "emnist-balanced": "emnist-balanced-digits",
    }


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
    cell = compared(names, **changes)
    assert cell["verdict"] == verdict
    assert cell["reason"] == reason


def test_totals_count_every_comparison_once_per_division(names):
    table = compare(summary_of(), names, RULE)
    counted = totals(table).set_index(["by", "value"])
    verdicts = counted[list(VERDICTS)]
    assert verdicts.loc[("all", "all")].tolist() == [1, 0, 0, 0, 647]
    by_division = verdicts.sum(axis=1).groupby("by")
    assert (by_division.sum() == 648).all()

    tested = counted.loc[("all", "all"), ["tested", "predicted", "equivalent"]]
    assert tested.tolist() == [0, 0, 0]
    reproduced = verdicts[REPRODUCED]
    assert reproduced[("dataset", "mnist")] == 1
    assert reproduced[("table", 2)] == 1
    assert reproduced[("method", "abs")] == 0


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
