"""The class prior from bags: the calibration on scores whose law is known, and the whole on blobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import approx_fprime
from scipy.special import expit

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.learn import prior as module
from mdpu.learn.fitting import fit
from mdpu.learn.prior import brief_estimate, calibrate, estimate_prior
from mdpu.learn.task import Settings, Task
from mdpu.randomness import Stream


def draw(generator: np.random.Generator, size: int, prior: float, n: int, n_unlabeled: int, spread: float, law=None):
    """Members' and unlabeled images' true log-odds: Gaussian features of unit variance, 2 * spread apart."""

    def log_odds(labels: np.ndarray) -> np.ndarray:
        features = generator.standard_normal(labels.shape) + np.where(labels, spread, -spread)
        return 2 * spread * features + np.log(prior / (1 - prior))

    tuples = (law or Law.dominant(size)).draw(prior, n, Stream(size, "tuples")) > 0
    return log_odds(tuples), log_odds(generator.random(n_unlabeled) < prior)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("prior", [0.3, 0.5, 0.7])
def test_calibration_finds_the_prior_whatever_scale_and_shift_the_scores_have(size: int, prior: float) -> None:
    tuples, unlabeled = draw(np.random.default_rng(size), size, prior, 20_000, 20_000, 1.5)
    found = calibrate(0.2 * tuples - 1, 0.2 * unlabeled - 1)
    # Of the nine cases the largest deviations are 0.012 of the prior, 6 % of the scale and 0.015 nats.
    assert found.prior == pytest.approx(prior, abs=0.03)
    assert found.scale == pytest.approx(5, rel=0.15)
    expected = np.log(Law.dominant(size).passes(expit(tuples), expit(-tuples))[0]).mean() - np.log(
        Law.dominant(size).rate(prior)
    )
    assert found.information == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("law", [Law.exactly(3, 1), Law.comparison(), Law((0.0, 0.6, 0.9, 1.0))])
def test_calibration_takes_any_law_that_identifies_the_prior(law: Law) -> None:
    tuples, unlabeled = draw(np.random.default_rng(1), law.size, 0.4, 20_000, 20_000, 1.5, law)
    assert calibrate(0.2 * tuples - 1, 0.2 * unlabeled - 1, law=law).prior == pytest.approx(0.4, abs=0.03)


def test_the_prior_is_not_estimated_where_the_classes_are_known_up_to_a_swap() -> None:
    images, sample = blobs(2, 0.5, 100, 1.0)
    with pytest.raises(UserError, match="fit several priors"):
        estimate_prior(images, sample, Settings(epochs=1), law=Law.similar(2))


@pytest.mark.parametrize("law", [None, Law.exactly(3, 1), Law((0.2, 1.0, 0.0, 0.5))])
def test_gradient_of_the_likelihood(monkeypatch: pytest.MonkeyPatch, law: Law | None) -> None:
    tuples, unlabeled = draw(np.random.default_rng(0), 3, 0.4, 200, 300, 1.0)
    seen = []

    def spy(function, start, **options):
        seen.append(function)
        return original(function, start, **options)

    original = module.minimize
    monkeypatch.setattr(module, "minimize", spy)
    calibrate(tuples, unlabeled, law=law)
    for point in ([0.0, 0.0], [0.5, -0.7], [-1.0, 1.0]):
        numeric = approx_fprime(np.array(point), lambda x: seen[0](x)[0], 1e-7)
        assert seen[0](np.array(point))[1] == pytest.approx(numeric, abs=1e-5)


def blobs(size: int, prior: float, n: int, spread: float, seed: int = 0) -> tuple[np.ndarray, TupleData]:
    """Images of 4 x 4 grey values, the two classes `spread` standard deviations from their middle."""
    generator = np.random.default_rng(seed)
    groups = generator.random((20 * n, size)) < prior
    tuples = groups[2 * groups.sum(axis=1) >= size][:n]
    unlabeled = generator.random(n) < prior

    def picture(labels: np.ndarray) -> np.ndarray:
        direction = np.resize([1.0, -1.0], 16) / 4
        values = (
            generator.standard_normal((*labels.shape, 16)) + np.where(labels, spread, -spread)[..., None] * direction
        )
        return np.clip(128 + 20 * values, 0, 255).astype(np.uint8).reshape(*labels.shape, 4, 4)

    return TupleData.gather(picture(tuples), picture(unlabeled))


SETTINGS = Settings(epochs=15, batch_size=500, precision="fp32", architecture={"hidden": [32]})


@pytest.mark.parametrize(("size", "prior"), [(2, 0.4), (3, 0.6)])
def test_the_prior_of_blobs(size: int, prior: float) -> None:
    images, sample = blobs(size, prior, 4000, 2.0)
    found = estimate_prior(images, sample, SETTINGS, held_out=0.3, resamples=50, device="cpu")
    assert found.prior == pytest.approx(prior, abs=0.06)
    assert found.low < found.prior < found.high and found.high - found.low < 0.2
    assert found.known and found.fits(found.prior) and not found.fits(found.high + 0.01)
    if size == 3:
        assert estimate_prior(images, sample, SETTINGS, held_out=0.3, resamples=50, device="cpu") == found


def test_of_a_sample_that_says_nothing_the_prior_is_not_known() -> None:
    images, sample = blobs(2, 0.5, 1000, 0.0)
    settings = Settings(epochs=2, architecture={"hidden": [16]})
    found = estimate_prior(images, sample, settings, resamples=2, device="cpu")
    assert not found.known and found.fits(0.01)


def test_a_method_that_estimates_the_prior_is_told_the_estimate_and_nothing_else() -> None:
    images, sample = blobs(2, 0.4, 2000, 2.0)
    settings = replace(SETTINGS, epochs=20)
    estimate = brief_estimate(images, sample, settings, 3, torch.device("cpu"))
    assert estimate.prior == pytest.approx(0.4, abs=0.1)
    told = Task("bag-relu", 2, estimate.prior, seed=3)
    free = [Task("bag-free", 2, prior, seed=3) for prior in (0.4, 0.7)]
    models = fit([told, *free], images, sample, settings, device="cpu", estimate_prior=brief_estimate)
    histories = [model.history for model in models]
    for history in histories[1:]:
        pd.testing.assert_frame_equal(history, histories[0].assign(**estimate.measures()))
