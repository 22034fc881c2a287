"""The two label-free estimates of an error, against enumeration over labels and answers."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpu.theory.held_out import bag_risk, member_risk

RATES = st.floats(0.0, 1.0)


@given(size=st.integers(1, 4), prior=st.floats(0.05, 0.95), rate=RATES, false_rate=RATES)
def test_both_estimates_are_unbiased(size: int, prior: float, rate: float, false_rate: float) -> None:
    """With an infinite number of bags each is what it estimates."""
    counts, dominant_share, wrong = np.zeros(size + 1), 0.0, 0.0
    for labels in itertools.product((1, 0), repeat=size):
        weight = prod(prior if label else 1 - prior for label in labels)
        dominant = 2 * sum(labels) >= size
        dominant_share += weight * dominant
        for answers in itertools.product((1, 0), repeat=size):
            yes = [rate if label else false_rate for label in labels]
            chance = weight * prod(y if answer else 1 - y for y, answer in zip(yes, answers, strict=True))
            wrong += chance * (dominant != (2 * sum(answers) >= size))
            counts[sum(answers)] += chance * dominant
    unlabeled = prior * rate + (1 - prior) * false_rate
    error = prior * (1 - rate) + (1 - prior) * false_rate
    assert bag_risk(counts / dominant_share, unlabeled, prior) == pytest.approx(wrong, abs=1e-9)
    assert member_risk(counts / dominant_share, unlabeled, prior) == pytest.approx(error, abs=1e-9)


def test_estimates_of_many_classifiers_are_those_of_each() -> None:
    counts, unlabeled = np.array([[0.1, 0.3, 0.6], [0.2, 0.5, 0.3]]), np.array([0.5, 0.4])
    for risk in (bag_risk, member_risk):
        alone = [float(risk(*pair, 0.4)) for pair in zip(counts, unlabeled, strict=True)]
        assert risk(counts, unlabeled, 0.4).tolist() == pytest.approx(alone)
