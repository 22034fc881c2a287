"""The joint objective against enumeration of all labels and against numerical derivatives."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit, logit

from mdpu.data import TupleData
from mdpu.law import Law
from mdpu.learners.joint import JointObjective, posteriors, shifted
from mdpu.randomness import Stream
from mdpu.sample import Bags


@st.composite
def laws(draw):
    """Draw weights of a law of one to four members that lets something pass."""
    size = draw(st.integers(1, 4))
    weight = st.sampled_from([0.0, 0.2, 1.0])
    weights = draw(st.lists(weight, min_size=size + 1, max_size=size + 1))
    if not any(weights):
        weights[0] = 0.01
    return np.array(weights)


def by_enumeration(weights, r):
    """Weight of each label vector of independent members with probabilities r, and the vectors."""
    labels = np.array(list(product([0, 1], repeat=len(r))))
    probabilities = np.where(labels, r, 1 - r).prod(axis=1)
    return weights[labels.sum(axis=1)] * probabilities, labels


def numeric_gradient(objective, scores):
    return approx_fprime(scores, lambda x: objective(x)[0], 1e-7)


@given(laws(), st.data())
def test_q_and_posteriors_are_those_of_all_label_vectors(weights, data):
    size = len(weights) - 1
    drawn = data.draw(st.lists(st.floats(-4, 4), min_size=size, max_size=size))
    scores = np.array(drawn)

    q, posterior = posteriors(weights, scores[None])

    probabilities, labels = by_enumeration(weights, expit(scores))
    expected = probabilities.sum()
    assert q[0] == pytest.approx(expected)
    np.testing.assert_allclose(posterior[0], probabilities @ labels / expected)


def exactly_one(size):
    return Law.exactly(size, 1)


def dominant_with_broken(size):
    return Law.dominant(size).broken(0.1)


@pytest.mark.parametrize("law_of", [Law.dominant, exactly_one, dominant_with_broken])
def test_the_derivative_of_the_objective(law_of):
    """Pairs and triples of which rows recur, also among the unlabeled ones."""
    generator = np.random.default_rng(0)
    tuples = generator.integers(20, size=(12, 3))
    tuples[:5, 2] = -1
    unlabeled = generator.integers(20, size=15)
    bags = Bags.of(TupleData(tuples, unlabeled), law_of)
    objective = JointObjective(bags, 0.35, 20, Stream(0, "groups"))
    scores = generator.standard_normal(20)

    _, gradient = objective(scores)

    np.testing.assert_allclose(gradient, numeric_gradient(objective, scores), atol=1e-6)


def counted(n=60):
    """Pairs and triples with bounds that partition their counts, of 40 rows."""
    generator = np.random.default_rng(0)
    tuples = generator.integers(40, size=(n, 3))
    tuples[: n // 2, 2] = -1
    data = TupleData(tuples, np.arange(1))
    low = generator.integers(2, size=n)
    high = np.where(low == 0, 0, data.sizes)
    return data, low, high


def probability_of_counts(low, high, r):
    """Return how likely low to high of the members are positive, which r are the chances of."""
    no_law = np.ones(len(r) + 1)
    probabilities, labels = by_enumeration(no_law, r)
    count = labels.sum(axis=1)
    return probabilities[(low <= count) & (count <= high)].sum()


def test_complete_bags_have_the_log_loss_of_what_was_observed():
    data, lowest, highest = counted()
    bags = Bags.of(data, Law.dominant, (lowest, highest), complete=True)
    objective = JointObjective(bags, 0.35, 40, Stream(0, "groups"))
    scores = np.random.default_rng(1).standard_normal(40)

    value, gradient = objective(scores)

    seen = []
    for members, low, high in zip(data.tuples, lowest, highest, strict=True):
        r = expit(scores[members[members >= 0]])
        seen.append(probability_of_counts(low, high, r))
    expected = -np.log(seen).mean()
    assert value == pytest.approx(expected)
    assert objective.bag_loss(scores) == pytest.approx(expected)
    np.testing.assert_allclose(gradient, numeric_gradient(objective, scores), atol=1e-6)


def at_least_two(size):
    return Law.at_least(size, 2)


@pytest.mark.parametrize(("size", "count"), [(20, 20), (60, 3), (100, 90)])
def test_large_groups_with_exact_counts_have_their_share_as_posterior(size, count):
    """The probability of the count may be below 1e-17."""
    weights = np.array(Law.exactly(size, count).weights)
    _, posterior = posteriors(weights, np.zeros((1, size)))
    np.testing.assert_allclose(posterior, count / size)

    bags = Bags.of(
        TupleData(np.arange(size)[None], np.arange(size)),
        Law.dominant,
        (np.array([count]), np.array([count])),
        complete=True,
    )
    objective = JointObjective(bags, 0.5, size, Stream(0, "groups"))
    scores = np.full(size, logit(0.2))
    _, gradient = objective(scores)
    np.testing.assert_allclose(gradient, numeric_gradient(objective, scores), atol=1e-4)


def test_a_constant_score_of_the_prior_has_the_loss_of_a_coin():
    tuples = np.arange(12).reshape(4, 3)
    data = TupleData(tuples, np.arange(12, 20))
    bags = Bags.of(data, at_least_two)
    objective = JointObjective(bags, 0.4, 20, Stream(0, "groups"))
    scores = np.full(20, logit(0.4))
    loss = objective.bag_loss(scores)
    assert loss == pytest.approx(2 * np.log(2))


def test_a_shift_gives_the_mean():
    scores = np.random.default_rng(0).standard_normal(50) * 4
    assert expit(scores + shifted(scores, 0.2)).mean() == pytest.approx(0.2)
