"""The joint objective against enumeration of all labels and against numerical derivatives."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit

from mdpu.data import TupleData
from mdpu.law import Law
from mdpu.learners.joint import (
    JointObjective,
    posteriors,
    shifted,
)
from mdpu.randomness import Stream
from mdpu.sample import Bags


@st.composite
def laws(draw):
    """Draw weights of a law of one to four members that lets something pass."""
    size = draw(st.integers(1, 4))
    weights = np.array(
        draw(st.lists(st.sampled_from([0.0, 0.2, 1.0]), min_size=size + 1, max_size=size + 1))
    )
    return np.maximum(weights, 0.01 * (np.arange(size + 1) == 0)) if not weights.any() else weights


def by_enumeration(weights, r):
    """Weight of each label vector of independent members with probabilities r, and the vectors."""
    labels = np.array(list(product([0, 1], repeat=len(r))))
    return weights[labels.sum(axis=1)] * np.where(labels, r, 1 - r).prod(axis=1), labels


@given(laws(), st.data())
def test_q_and_posteriors_are_those_of_all_label_vectors(weights, data):
    scores = np.array(
        data.draw(st.lists(st.floats(-4, 4), min_size=len(weights) - 1, max_size=len(weights) - 1))
    )
    probabilities, labels = by_enumeration(weights, expit(scores))
    q, g = posteriors(weights, scores[None])
    assert q[0] == pytest.approx(probabilities.sum())
    np.testing.assert_allclose(g[0], probabilities @ labels / probabilities.sum())


@pytest.mark.parametrize(
    "law", [Law.dominant, lambda m: Law.exactly(m, 1), lambda m: Law.dominant(m).broken(0.1)]
)
def test_the_derivative_of_the_objective(law):
    """Pairs and triples of which rows recur, also among the unlabeled ones."""
    generator = np.random.default_rng(0)
    tuples = generator.integers(20, size=(12, 3))
    tuples[:5, 2] = -1
    bags = Bags.of(TupleData(tuples, generator.integers(20, size=15)), law)
    objective = JointObjective(bags, 0.35, 20, Stream(0, "groups"))
    scores = generator.standard_normal(20)
    numeric = approx_fprime(scores, lambda x: objective(x)[0], 1e-7)
    np.testing.assert_allclose(objective(scores)[1], numeric, atol=1e-6)


def counted(seed=0, n=60):
    """Pairs and triples with bounds that partition their counts, of 40 rows."""
    generator = np.random.default_rng(seed)
    tuples = generator.integers(40, size=(n, 3))
    tuples[: n // 2, 2] = -1
    low = generator.integers(2, size=n)
    high = np.where(low == 0, 0, (tuples >= 0).sum(axis=1))
    return TupleData(tuples, np.arange(1)), low, high


def test_complete_bags_have_the_log_loss_of_what_was_observed():
    data, lowest, highest = counted()
    bags = Bags.of(data, Law.dominant, (lowest, highest), complete=True)
    objective = JointObjective(bags, 0.35, 40, Stream(0, "groups"))
    scores = np.random.default_rng(1).standard_normal(40)
    expected = 0.0
    for members, low, high in zip(data.tuples, lowest, highest, strict=True):
        r = expit(scores[members[members >= 0]])
        probabilities, labels = by_enumeration(np.ones(len(r) + 1), r)
        within = (low <= labels.sum(axis=1)) & (labels.sum(axis=1) <= high)
        expected -= np.log(probabilities[within].sum()) / 60
    value, gradient = objective(scores)
    assert value == pytest.approx(expected) and objective.bag_loss(scores) == pytest.approx(
        expected
    )
    np.testing.assert_allclose(
        gradient, approx_fprime(scores, lambda x: objective(x)[0], 1e-7), atol=1e-6
    )


def test_a_constant_score_of_the_prior_has_the_loss_of_a_coin():
    bags = Bags.of(
        TupleData(np.arange(12).reshape(4, 3), np.arange(12, 20)), lambda m: Law.at_least(m, 2)
    )
    scores = np.full(20, np.log(0.4 / 0.6))
    assert JointObjective(bags, 0.4, 20, Stream(0, "groups")).bag_loss(scores) == pytest.approx(
        2 * np.log(2)
    )


def test_a_shift_gives_the_mean():
    scores = np.random.default_rng(0).standard_normal(50) * 4
    assert expit(scores + shifted(scores, 0.2)).mean() == pytest.approx(0.2)
