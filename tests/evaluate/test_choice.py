"""The label-free estimates by which an epoch is chosen, against enumeration over labels and answers."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpu.evaluate.choice import bag_risk, choose_epochs, member_risk, summarize_regret
from mdpu.study.grid import Run, run_columns

RATES = st.floats(0.0, 1.0)
PRIORS = st.floats(0.05, 0.95)


def expected_counts(size: int, prior: float, rate: float, false_rate: float) -> tuple[pd.DataFrame, float, float]:
    """Return what an infinite number of bags would show of a classifier with these rates, by enumeration.

    The rest are its share of bags on the wrong side, and its error rate.
    """
    counts, dominant_share, wrong = np.zeros(size + 1), 0.0, 0.0
    for labels in itertools.product((1, 0), repeat=size):
        weight = prod(prior if label else 1 - prior for label in labels)
        dominant = 2 * sum(labels) >= size
        dominant_share += weight * dominant
        for answers in itertools.product((1, 0), repeat=size):
            yes = [rate if label else false_rate for label in labels]
            chance = weight * prod(y if answer else 1 - y for y, answer in zip(yes, answers, strict=True))
            wrong += chance * (dominant != (2 * sum(answers) >= size))
            if dominant:
                counts[sum(answers)] += chance
    shares = {f"validation_tuples_{k}": [share] for k, share in enumerate(counts / dominant_share)}
    unlabeled = {"validation_unlabeled": [prior * rate + (1 - prior) * false_rate]}
    return pd.DataFrame(shares | unlabeled), wrong, prior * (1 - rate) + (1 - prior) * false_rate


@given(size=st.integers(2, 4), prior=PRIORS, rate=RATES, false_rate=RATES)
def test_both_estimates_are_unbiased(size: int, prior: float, rate: float, false_rate: float) -> None:
    metrics, wrong, error = expected_counts(size, prior, rate, false_rate)
    assert bag_risk(metrics, size, prior).item() == pytest.approx(wrong, abs=1e-9)
    assert member_risk(metrics, size, prior).item() == pytest.approx(error, abs=1e-9)


def metrics_of(run: Run, classifiers: list[tuple[float, float]]) -> pd.DataFrame:
    """Return a history whose epochs are classifiers, given by true-positive and false-positive rate."""
    frames = [expected_counts(run.tuple_size, float(run.prior), *rates)[0] for rates in classifiers]
    history = pd.concat(frames, ignore_index=True).assign(
        epoch=range(1, len(classifiers) + 1),
        others_true_positive_rate=[rate for rate, _ in classifiers],
        others_true_negative_rate=[1 - false_rate for _, false_rate in classifiers],
    )
    return history.assign(**run_columns(run))


def test_the_best_epoch_is_chosen_where_the_bags_are_without_noise() -> None:
    run = Run("mnist", "base", 3, 10, "0.4", "bag-relu", "logistic", 1)
    metrics = metrics_of(run, [(0.7, 0.3), (0.95, 0.1), (0.8, 0.2), (0.6, 0.4)])
    (row,) = choose_epochs(metrics, {"base": 0.0}, 2).to_dict("records")
    assert (row["bags_epoch"], row["members_epoch"]) == (2, 2)
    assert row["best"] == row["bags"] == row["members"] == pytest.approx(100 * (0.4 * 0.95 + 0.6 * 0.9))
    assert row["last"] == pytest.approx((80 + 60) / 2)
    (cell,) = summarize_regret(choose_epochs(metrics, {"base": 0.0}, 2)).to_dict("records")
    assert (cell["bags"], cell["last"]) == (0, pytest.approx(row["best"] - 70))


def test_a_choice_uses_the_prior_that_the_method_is_told_or_estimates() -> None:
    """Told 0.8 instead of 0.2, both estimates prefer calling everything positive."""
    told = Run("mnist", "offset", 2, 10, "0.2", "bag-relu", "logistic", 1)
    classifiers = [(1.0, 1.0), (0.3, 0.0)]
    metrics = metrics_of(told, classifiers)
    assert choose_epochs(metrics, {"offset": 0.6}, 1)["bags_epoch"].item() == 1
    assert choose_epochs(metrics, {"offset": 0.0}, 1)["bags_epoch"].item() == 2
    assert choose_epochs(metrics.assign(estimated_prior=0.8), {"offset": 0.0}, 1)["bags_epoch"].item() == 1


def test_runs_without_a_score_are_left_out() -> None:
    run = Run("mnist", "base", 2, 10, "0.5", "siamese", "logistic", 1)
    metrics = metrics_of(run, [(0.7, 0.3)]).assign(others_true_positive_rate=np.nan)
    assert choose_epochs(metrics, {"base": 0.0}, 1).empty
    assert choose_epochs(metrics.drop(columns="validation_unlabeled"), {"base": 0.0}, 1).empty
