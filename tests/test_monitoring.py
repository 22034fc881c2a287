"""What is watched without labels, on scores whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mdpu.law import Law
from mdpu.monitoring import fitted_counts, watch
from mdpu.randomness import Stream

N = 40_000
LAWS = [Law.dominant(2), Law.dominant(3), Law.exactly(3, 1), Law.similar(2), Law.comparison(), Law.at_least(4, 3)]


def drawn(law: Law, prior: float, distance: float = 2.0) -> tuple[torch.Tensor, torch.Tensor]:
    """True log-odds of two Gaussians at -1 and 1 times a half of their distance, of tuples and unlabeled instances."""
    stream = Stream(0, "watched")
    labels = (
        torch.from_numpy(law.draw(prior, N, stream)).double(),
        2.0 * torch.from_numpy(stream.uniform(N) < prior) - 1,
    )
    torch.manual_seed(0)
    x = (labels[0] * distance / 2 + torch.randn(N, law.size), labels[1] * distance / 2 + torch.randn(N))
    return tuple(distance * values + np.log(prior / (1 - prior)) for values in x)


@pytest.mark.parametrize("law", LAWS)
def test_at_the_truth_the_model_has_the_told_prior_and_the_told_law(law):
    found = watch(law, 0.4, *drawn(law, 0.4))
    assert found["model_prior"] == pytest.approx(0.4, abs=0.01)
    assert found["law_gap"] < 0.05
    assert 0 < found["likelihood"] < law.joint_information(0.4)


def test_classes_that_are_apart_say_all_that_a_tuple_can():
    law = Law.dominant(3)
    assert watch(law, 0.4, *drawn(law, 0.4, 8.0))["likelihood"] == pytest.approx(law.joint_information(0.4), rel=0.01)


def test_a_constant_model_says_nothing_and_a_sure_one_is_finite():
    law = Law.dominant(2)
    assert watch(law, 0.4, torch.zeros(9, 2), torch.zeros(9))["likelihood"] == pytest.approx(0, abs=1e-12)
    sure = watch(law, 0.4, torch.full((9, 2), -1e4), torch.full((9,), -1e4))
    assert all(np.isfinite(list(sure.values())))


def test_another_law_or_prior_than_the_told_one_shows():
    tuples, unlabeled = drawn(Law.dominant(3), 0.4)
    np.testing.assert_allclose(fitted_counts(tuples, unlabeled), Law.dominant(3).counts(0.4), atol=0.03)
    truth = watch(Law.dominant(3), 0.4, tuples, unlabeled)
    for law, prior in ((Law.exactly(3, 2), 0.4), (Law.dominant(3), 0.8)):
        assert watch(law, prior, tuples, unlabeled)["law_gap"] > truth["law_gap"] + 0.1
