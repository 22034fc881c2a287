"""Epochs chosen without labels, and the regret of the choice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mdpu.law import Law
from mdpu.pipeline.experiments.choice import choose_epochs, choose_settings, summarize_regret
from mdpu.pipeline.plan import Run


def expected_counts(size: int, prior: float, rate: float, false_rate: float) -> pd.DataFrame:
    """Return what an infinite number of bags would show of a classifier with these rates."""
    counts = sum(
        share
        * np.convolve(
            stats.binom.pmf(range(size - negatives + 1), size - negatives, rate),
            stats.binom.pmf(range(negatives + 1), negatives, false_rate),
        )
        for negatives, share in enumerate(Law.dominant(size).counts(prior)[::-1])
    )
    shares = {f"validation_tuples_{positives}": [share] for positives, share in enumerate(counts)}
    return pd.DataFrame(shares | {"validation_unlabeled": [prior * rate + (1 - prior) * false_rate]})


def metrics_of(run: Run, classifiers: list[tuple[float, float]]) -> pd.DataFrame:
    """Return a history whose epochs are classifiers, given by true-positive and false-positive rate."""
    frames = [expected_counts(run.tuple_size, float(run.prior), *rates) for rates in classifiers]
    history = pd.concat(frames, ignore_index=True).assign(
        epoch=range(1, len(classifiers) + 1),
        others_true_positive_rate=[rate for rate, _ in classifiers],
        others_true_negative_rate=[1 - false_rate for _, false_rate in classifiers],
    )
    return history.assign(**vars(run))


def test_the_best_epoch_is_chosen_where_the_bags_are_without_noise() -> None:
    run = Run("mnist", "base", 3, 10, "0.4", "bag-relu", "logistic", 1)
    metrics = metrics_of(run, [(0.7, 0.3), (0.95, 0.1), (0.8, 0.2), (0.6, 0.4)])
    (row,) = choose_epochs(metrics, {"base": 0.0}, 2).to_dict("records")
    assert row["best"] == row["bags"] == row["members"] == pytest.approx(100 * (0.4 * 0.95 + 0.6 * 0.9))
    assert row["protocol"] == pytest.approx((80 + 60) / 2)
    (cell,) = summarize_regret(choose_epochs(metrics, {"base": 0.0}, 2)).to_dict("records")
    assert (cell["bags"], cell["protocol"]) == (0, pytest.approx(row["best"] - 70))


def test_a_choice_uses_the_prior_that_the_method_is_told_or_estimates() -> None:
    """Told 0.8 instead of 0.2, both estimates prefer calling everything positive, which 20 % are."""
    told = Run("mnist", "offset", 2, 10, "0.2", "bag-relu", "logistic", 1)
    classifiers = [(1.0, 1.0), (0.3, 0.0)]
    metrics = metrics_of(told, classifiers)
    assert choose_epochs(metrics, {"offset": 0.6}, 1)["bags"].item() == pytest.approx(20)
    assert choose_epochs(metrics, {"offset": 0.0}, 1)["bags"].item() == pytest.approx(86)
    assert choose_epochs(metrics.assign(estimated_prior=0.8), {"offset": 0.0}, 1)["bags"].item() == pytest.approx(20)


def trial_of(classifiers: dict[str, list[tuple[float, float]]], method: str = "relu", seed: int = 1) -> pd.DataFrame:
    """Return the histories of the variants of one trial."""
    runs = {name: Run("mnist", name, 3, 10, "0.4", method, "logistic", seed) for name in classifiers}
    return pd.concat([metrics_of(run, classifiers[name]) for name, run in runs.items()], ignore_index=True)


def test_the_variant_that_ends_best_is_chosen_where_the_bags_are_without_noise() -> None:
    """The fast one has the best epoch, but its last two are worse; each trial chooses for itself."""
    first = trial_of(
        {"base": [(0.7, 0.3)] * 3, "fast": [(0.95, 0.05), (0.6, 0.4), (0.6, 0.4)], "slow": [(0.8, 0.2)] * 3}
    )
    second = trial_of({"base": [(0.9, 0.2)] * 3, "slow": [(0.8, 0.2)] * 3}, seed=2)
    metrics = pd.concat([first, second], ignore_index=True)
    chosen = choose_settings(metrics, dict.fromkeys(("base", "fast", "slow"), 0.0), 2)
    assert chosen["variant"].tolist() == ["base", "base"]
    assert chosen["protocol"].tolist() == pytest.approx([70, 84])
    assert chosen["bags"].tolist() == chosen["members"].tolist() == chosen["best"].tolist() == pytest.approx([80, 84])
    (cell,) = summarize_regret(chosen).to_dict("records")
    assert (cell["bags"], cell["protocol"]) == pytest.approx((0, 5))


def test_a_trial_whose_base_diverged_is_left_out_and_other_variants_are_not_chosen() -> None:
    metrics = trial_of({"base": [(0.7, 0.3)], "slow": [(0.8, 0.2)]})
    lost = metrics["variant"] == "slow"
    spoiled = metrics.assign(others_true_positive_rate=metrics["others_true_positive_rate"].mask(lost))
    offsets = {"base": 0.0, "slow": 0.0}
    assert choose_settings(spoiled, offsets, 1)["bags"].tolist() == pytest.approx([70])
    spoiled = metrics.assign(others_true_positive_rate=metrics["others_true_positive_rate"].mask(~lost))
    assert choose_settings(spoiled, offsets, 1).empty
    assert choose_settings(metrics.drop(columns="validation_unlabeled"), offsets, 1).empty
