"""The theorems on a problem whose risk is known: the problem itself, the answers, and planted mistakes."""

from __future__ import annotations

import math
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from mdpu.errors import UserError
from mdpu.learn.losses import LOSSES
from mdpu.pipeline.config import load_config
from mdpu.pipeline.experiments.bounds import QUESTIONS, correction, error, find_question, mixture, tuple_size, unbiased
from mdpu.pipeline.experiments.bounds.question import Simulation
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.kind import load_kind
from mdpu.pipeline.plan import Plan
from mdpu.theory import risk_weights
from mdpu.theory.bounds import Sample
from mdpu.theory.joint import joint_information, marginal_information

REFERENCE = REPOSITORY / "results" / "reference" / "bounds"
NAMES = {question: f"bounds-{question}" for question in QUESTIONS}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


# -- the problem ----------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [-3.0, 0.0, 0.7])
@pytest.mark.parametrize("label", [1, -1])
def test_quadrature_gives_the_expectation_over_a_class(label, threshold):
    def weighted_loss(x: float) -> float:
        return math.log1p(math.exp(-min(1, max(-1, x - threshold)))) * norm.pdf(x, label)

    pieces = [(-np.inf, threshold - 1), (threshold - 1, threshold + 1), (threshold + 1, np.inf)]
    expected = sum(quad(weighted_loss, low, high, epsabs=1e-13)[0] for low, high in pieces)
    assert mixture.expectation(lambda z: mixture.loss(z, 1), label, threshold) == pytest.approx(expected, abs=1e-11)


def test_loss_is_bounded_and_lipschitz_as_assumed():
    scores = torch.linspace(-1, 1, 2001, dtype=torch.float64, requires_grad=True)
    losses = LOSSES["logistic"](scores, 1)
    (slope,) = torch.autograd.grad(losses.sum(), scores)
    assert losses.max().item() == pytest.approx(mixture.ASSUMPTIONS.loss_bound, rel=1e-12)
    assert slope.abs().max().item() == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-12)
    assert mixture.ASSUMPTIONS.lipschitz == 1 / (1 + math.exp(-1))


@pytest.mark.parametrize("n", [1, 10, 100])
def test_rademacher_complexity_is_at_most_as_assumed(n):
    rng = np.random.default_rng(n)
    scores = mixture.scored(rng.normal(rng.choice([-1, 1], (2000, n))), mixture.THRESHOLDS)  # (2000, n, T)
    signs = rng.choice([-1, 1], (2000, n))
    sums = np.einsum("rn,rnt->rt", signs, scores) / n
    assert sums.max(axis=1).mean() <= mixture.ASSUMPTIONS.complexity / math.sqrt(n)


def test_draws_follow_the_mixture_and_differ_by_name():
    sample = Sample(3, 0.7, 50, 80)
    drawn = mixture.draw(sample, 400, "one")
    assert drawn.members.shape == (400, 50, 3) and drawn.unlabeled.shape == (400, 80)
    assert drawn.unlabeled.mean() == pytest.approx(2 * 0.7 - 1, abs=0.03)
    assert drawn.unlabeled.var() == pytest.approx(1 + 4 * 0.7 * 0.3, abs=0.05)
    assert not np.isin(drawn.members, mixture.draw(sample, 400, "two").members).any()
    np.testing.assert_array_equal(drawn.unlabeled, mixture.draw(sample, 400, "one").unlabeled)


def test_trials_that_do_not_fit_into_memory_together_are_drawn_in_parts(monkeypatch):
    monkeypatch.setattr(mixture, "MOST_NUMBERS", 30 * 4)  # four trials of 30 numbers each
    tuples, unlabeled = mixture.estimates(Sample(2, 0.5, 10, 10), 10, "some", 0.0)
    assert tuples.shape == unlabeled.shape == (10,)
    assert len(set(tuples)) == len(set(unlabeled)) == 10


# -- Theorem 1 ------------------------------------------------------------------------------------

FEW = Simulation([1, 2, 3, 8], [0.2, 0.5, 0.8], [40], 1500)


def errors_in_units(rows: pd.DataFrame) -> pd.Series:
    return rows["error"] / rows["deviation"] * np.sqrt(rows["trials"])


def test_the_estimate_is_unbiased_and_scatters_as_expected():
    rows = unbiased.measure(FEW)
    assert len(rows) == 12
    assert errors_in_units(rows).abs().max() < 4
    # The standard deviation of a standard deviation is about 1 / sqrt(2 trials), or 2 %.
    np.testing.assert_allclose(rows["observed_deviation"], rows["deviation"], rtol=0.1)
    assert ((rows["low"] < rows["error"]) & (rows["error"] < rows["high"])).all()


@pytest.mark.parametrize("weight", ["tuple_positive", "tuple_negative", "unlabeled_positive", "unlabeled_negative"])
def test_a_wrong_sign_in_the_weights_shows(monkeypatch, weight):
    def wrong(size, prior):
        weights = risk_weights(size, prior)
        return replace(weights, **{weight: -getattr(weights, weight)})

    monkeypatch.setattr(mixture, "risk_weights", wrong)
    rows = unbiased.measure(Simulation([2, 3], [0.5], [40], 500))
    assert (errors_in_units(rows).abs() > 20).all()


def test_the_figure_of_theorem_1_draws_its_rows():
    rows = unbiased.measure(replace(FEW, trials=20))
    left, right = unbiased.draw(rows).axes
    assert [container.get_label() for container in left.containers] == ["Points", "Pairs", "Triples", "8-tuples"]
    pairs = rows[rows["tuple_size"] == 2]
    points = left.containers[1][0]
    np.testing.assert_allclose(np.asarray(points.get_ydata(), float), pairs["error"] / pairs["deviation"])
    expected, observed = [np.asarray(line.get_ydata(), float) for line in right.lines if line.get_label() == "Pairs"]
    np.testing.assert_allclose(expected, pairs["deviation"])
    np.testing.assert_allclose(observed, pairs["observed_deviation"])


# -- Theorem 2 ------------------------------------------------------------------------------------


def test_errors_fall_at_the_rate_of_theorem_2_and_below_its_bound():
    rows = error.measure(Simulation([2, 3], [0.5], [50, 200, 800], 60))
    assert (rows["excess"] <= rows["deviation"]).all()
    assert (rows["deviation"] <= rows["corrected"]).all()
    assert (rows["printed"] < rows["corrected"]).all()
    for _, group in rows.groupby("tuple_size"):
        assert error.slope(group["n"], group["mean_deviation"])[0] == pytest.approx(-0.5, abs=0.12)
        assert error.slope(group["n"], group["corrected"])[0] == pytest.approx(-0.5, abs=1e-9)
        assert error.slope(group["n"], group["mean_excess"])[0] < -0.75


def test_the_interval_of_a_slope_is_that_of_the_regression():
    n = pd.Series([10, 100, 1000, 10000])
    middle, low, high = error.slope(n, n**-0.5 * [1.1, 0.9, 1.0, 1.05])
    assert low < -0.5 < high and middle == pytest.approx((low + high) / 2)
    exact = error.slope(n, 3.0 / np.sqrt(n))
    assert exact == pytest.approx((-0.5, -0.5, -0.5), abs=1e-9)


# -- Theorem 3 ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def biases():
    return correction.measure(Simulation([2, 5], [0.7], [30, 100, 300], 3000))


def test_the_corrected_bound_holds_and_the_printed_one_does_not(biases):
    assert (biases["bias"] <= biases["at_most"]).all()
    assert (biases["high"] >= biases["at_least"]).all()
    parts = biases[(biases["classifier"] == "equal parts") & (biases["scope"] == "part")].set_index(["tuple_size", "n"])
    assert parts.loc[(5, 100), "low"] > 4 * parts.loc[(5, 100), "printed"]
    assert parts.loc[(2, 300), "low"] > parts.loc[(2, 300), "printed"]


def test_theorem_3_does_not_apply_to_a_useful_classifier_whose_parts_stay_biased(biases):
    useful = biases[biases["classifier"] == "least risk"]
    assert (useful["tuple_risk"] < 0).all() and useful["printed"].isna().all()
    parts, whole = (useful[useful["scope"] == scope] for scope in ("part", "whole"))
    np.testing.assert_allclose(parts["bias"], -parts["tuple_risk"], rtol=0.02)
    assert (whole.loc[whole["n"] == 300, "bias"] < 1e-3).all()


def test_the_second_classifier_has_equal_partial_risks(biases):
    equal = biases[biases["classifier"] == "equal parts"]
    np.testing.assert_allclose(equal["tuple_risk"], equal["unlabeled_risk"], rtol=1e-9)


# -- tuple size -----------------------------------------------------------------------------------


def test_rows_of_tuple_sizes_hold_equal_numbers_of_images():
    rows = tuple_size.measure(Simulation([1, 2, 3, 7], [0.4], [60], 5))
    assert list(rows["n"]) == [60, 30, 20, 8]
    for row in rows.itertuples():
        assert row.joint * row.tuple_size == pytest.approx(joint_information(row.tuple_size, row.prior))
        assert row.marginal * row.tuple_size == pytest.approx(marginal_information(row.tuple_size, row.prior))
        assert row.kept == pytest.approx(100 * row.marginal / row.joint)
    # Positive points say most, and triples more than pairs.
    assert rows.set_index("tuple_size")["deviation"].rank().loc[[1, 3, 2]].is_monotonic_increasing


# -- the kind -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plan():
    config = load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "bounds.yaml"])
    for name in config["experiments"]:
        simulation = config["definitions"]["experiments"][name]["simulation"]
        simulation |= {"tuple_size": [2, 3], "prior": [0.5], "n": [10, 20, 40], "trials": 30}
    return Plan(config)


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_experiment_becomes_its_files_and_a_section(plan, tmp_path, question):
    kind, experiment = load_kind("bounds"), plan.experiment(NAMES[question])
    kind.make(plan, experiment, {}, tmp_path)
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file() and path.name[0] != "."}
    assert made == set(kind.outputs(experiment.name))
    section = kind.section(plan, experiment, tmp_path)
    assert section["rows"] and all(len(row) == len(section["header"]) for row in section["rows"])
    assert all(isinstance(cell, str) for row in section["rows"] for cell in row)
    assert section["image"].startswith("data:image/svg+xml")


def test_its_files_depend_on_the_simulation(plan):
    settings = plan.experiment_settings("bounds-error")
    assert settings["question"] == "error" and settings["simulation"]["trials"] == 30


@pytest.mark.parametrize("key", ["question", "simulation"])
def test_an_experiment_without_a_question_or_a_simulation_is_refused(key):
    definition = {"kind": "bounds", "title": "x", "question": "error", "simulation": {}}
    del definition[key]
    with pytest.raises(UserError, match=f"where.{key}: an experiment of kind bounds needs it"):
        load_kind("bounds").check(definition, {}, "where")


# -- documents ------------------------------------------------------------------------------------


def test_the_printed_bound_fails_by_as_much_as_the_documents_state():
    rows = pd.read_csv(REFERENCE / "bounds-correction.csv").set_index(["classifier", "scope", "tuple_size", "n"])
    case = rows.loc[("equal parts", "part", 5, 300)]
    assert case["low"] / case["printed"] > 5e7 and case["bias"] / case["printed"] == pytest.approx(1.2e8, rel=0.1)


def test_the_largest_error_is_as_likely_as_the_documents_state():
    rows = pd.read_csv(REFERENCE / "bounds-unbiased.csv")
    largest = errors_in_units(rows.assign(deviation=rows["observed_deviation"])).abs().max()
    assert f"{largest:.2f}" == "3.04"
    assert f"{1 - (2 * norm.cdf(largest) - 1) ** len(rows):.0%}" == "6%"


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_reference_is_measured_again(question):
    """The same random numbers on every machine; a tie between two thresholds may fall differently on another one."""
    config = load_config([REPOSITORY / "config.yaml"])
    simulation = Simulation(**config["definitions"]["experiments"][NAMES[question]]["simulation"])
    measured = find_question(question).measure(simulation)
    recorded = pd.read_csv(REFERENCE / f"{NAMES[question]}.csv")
    pd.testing.assert_frame_equal(measured, recorded, check_dtype=False, rtol=1e-3, atol=1e-9)
