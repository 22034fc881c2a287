"""The law, the coefficients and the weights against enumeration of all label vectors, in exact arithmetic."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpu.errors import UserError
from mdpu.theory import coefficients, risk_weights, tuple_law

sizes = st.integers(1, 8)
priors = st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000)
CLOSE = 1e-9  # relative; the code works in doubles and logarithms


def enumerate_law(size: int, prior: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Probability of each of the 2^M label vectors, given that positives are no fewer than negatives."""
    kept = {
        labels: prior ** labels.count(1) * (1 - prior) ** labels.count(-1)
        for labels in itertools.product((1, -1), repeat=size)
        if sum(labels) >= 0
    }
    total = sum(kept.values())
    return {labels: chance / total for labels, chance in kept.items()}


@given(sizes, priors)
def test_law_equals_enumeration(size, prior):
    expected = Counter()
    for labels, chance in enumerate_law(size, prior).items():
        expected[labels.count(-1)] += chance
    found = tuple_law(size, float(prior))
    assert len(found) == size // 2 + 1 == len(expected)
    for negatives, chance in enumerate(found):
        assert chance == pytest.approx(float(expected[negatives]), rel=CLOSE)


@given(sizes, priors)
def test_a_is_the_chance_that_any_one_member_is_positive(size, prior):
    law = enumerate_law(size, prior)
    found = coefficients(size, float(prior))
    for position in range(size):
        a = sum(chance for labels, chance in law.items() if labels[position] == 1)
        assert found.a == pytest.approx(float(a), rel=CLOSE)
        assert found.b == pytest.approx(float(1 - a), rel=CLOSE, abs=1e-15)


@given(sizes, priors)
def test_denominator_equals_enumeration_and_its_two_closed_forms(size, prior):
    a = sum(chance for labels, chance in enumerate_law(size, prior).items() if labels[0] == 1)
    exact = a * (1 - prior) - (1 - a) * prior
    assert exact == a - prior > 0
    found = coefficients(size, float(prior))
    assert found.a + found.b == pytest.approx(1, rel=1e-15)
    # Relative, hence also where a - pi_+ is tiny: the code must not subtract nearly equal numbers.
    assert found.denominator == pytest.approx(float(exact), rel=CLOSE)


@given(sizes, priors)
def test_weights_recover_the_classification_risk_whatever_the_losses(size, prior):
    """Theorem 1: the four expectations, weighted, add up to pi_+ E_+[l(+1)] + pi_- E_-[l(-1)]."""
    a = sum(chance for labels, chance in enumerate_law(size, prior).items() if labels[0] == 1)
    weights = risk_weights(size, float(prior))
    # Class-conditional expectations of l(g, +1) and l(g, -1), arbitrary numbers.
    positive, negative = {1: Fraction(3, 10), -1: Fraction(17, 10)}, {1: Fraction(23, 10), -1: Fraction(2, 10)}
    tuple_losses = {label: float(a * positive[label] + (1 - a) * negative[label]) for label in (1, -1)}
    unlabeled_losses = {label: float(prior * positive[label] + (1 - prior) * negative[label]) for label in (1, -1)}
    found = (
        weights.tuple_positive * tuple_losses[1]
        + weights.tuple_negative * tuple_losses[-1]
        + weights.unlabeled_positive * unlabeled_losses[1]
        + weights.unlabeled_negative * unlabeled_losses[-1]
    )
    cancelled = max(map(abs, weights.as_tuple()))
    assert found == pytest.approx(float(prior * positive[1] + (1 - prior) * negative[-1]), abs=1e-9 * cancelled)


@given(sizes, priors)
def test_weights_equal_those_of_learning_from_two_unlabeled_sets(size, prior):
    """Lu et al. (2018), Theorem 4, with class priors theta = a, theta' = pi_+ and test prior pi = pi_+."""
    theta = sum(chance for labels, chance in enumerate_law(size, prior).items() if labels[0] == 1)
    other = prior
    apart = theta - other
    expected = (
        (1 - other) * prior / apart,
        -other * (1 - prior) / apart,
        -(1 - theta) * prior / apart,
        theta * (1 - prior) / apart,
    )
    found = risk_weights(size, float(prior)).as_tuple()
    assert found == pytest.approx(tuple(map(float, expected)), rel=CLOSE, abs=1e-15)


@given(priors)
def test_points_are_positive_unlabeled_learning(prior):
    """M = 1 gives du Plessis et al. (2015): pi_+ E_P[l(+1) - l(-1)] + E_U[l(-1)]."""
    p = float(prior)
    found = coefficients(1, p)
    assert (found.a, found.b, found.denominator) == pytest.approx((1, 0, 1 - p), rel=1e-15)
    assert risk_weights(1, p).as_tuple() == pytest.approx((p, -p, 0, 1), rel=1e-14)


@given(priors)
def test_pairs_and_triples_are_as_lemmas_2_and_4_write_them(prior):
    p, q = prior, 1 - prior
    pair, triple = coefficients(2, float(p)), coefficients(3, float(p))
    assert pair.a == pytest.approx(float((p**2 + p * q) / (p**2 + 2 * p * q)), rel=CLOSE)
    assert pair.b == pytest.approx(float(p * q / (p**2 + 2 * p * q)), rel=CLOSE)
    assert triple.a == pytest.approx(float((p**3 + 2 * p**2 * q) / (p**3 + 3 * p**2 * q)), rel=CLOSE)
    assert triple.b == pytest.approx(float(p**2 * q / (p**3 + 3 * p**2 * q)), rel=CLOSE)


@given(st.integers(1, 60), priors)
def test_coefficients_are_as_lemma_6_writes_them_for_longer_tuples(size, prior):
    p, q, most = prior, 1 - prior, size // 2
    total = sum(math.comb(size, k) * p ** (size - k) * q**k for k in range(most + 1))
    a = sum(math.comb(size - 1, k) * p ** (size - k) * q**k for k in range(most + 1)) / total
    b = sum(math.comb(size - 1, k - 1) * p ** (size - k) * q**k for k in range(1, most + 1)) / total
    found = coefficients(size, float(p))
    assert (found.a, found.b) == pytest.approx((float(a), float(b)), rel=1e-8, abs=1e-15)


@pytest.mark.parametrize("size", [100, 1_001, 20_000])
@pytest.mark.parametrize("prior", [1e-6, 0.1, 0.5])
def test_long_tuples_give_finite_weights(size, prior):
    law = tuple_law(size, prior)
    assert np.isfinite(law).all()
    assert law.sum() == pytest.approx(1)
    found = coefficients(size, prior)
    assert prior < found.a <= 1
    assert found.denominator > 0
    assert np.isfinite(risk_weights(size, prior).as_tuple()).all()


@pytest.mark.parametrize("function", [coefficients, risk_weights])
def test_tuples_too_long_to_tell_from_unlabeled_data_are_refused(function):
    with pytest.raises(UserError, match=r"tuple size 5001 .* prior 0\.9"):
        function(5001, 0.9)


@pytest.mark.parametrize("function", [tuple_law, coefficients, risk_weights])
@pytest.mark.parametrize("size", [0, -1, 2.5, 2.0, "2", True, None])
def test_tuple_sizes_out_of_range_are_refused(function, size):
    with pytest.raises(UserError, match=r"tuple size .* is not an integer of at least 1"):
        function(size, 0.5)


@pytest.mark.parametrize("function", [tuple_law, coefficients, risk_weights])
@pytest.mark.parametrize("prior", [0, 1, 0.0, 1.0, -0.1, 1.5, math.nan, math.inf])
def test_priors_out_of_range_are_refused(function, prior):
    with pytest.raises(UserError, match=r"prior .* is not strictly between 0 and 1"):
        function(2, prior)
