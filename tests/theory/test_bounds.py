"""Theorems 2 and 3: coefficients in exact arithmetic at extremes, and the bounds against enumerated samples."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpu.errors import UserError
from mdpu.theory import coefficients, risk_weights
from mdpu.theory.bounds import (
    Assumptions,
    Sample,
    bias_bounds,
    deviation_bounds,
    error_bounds,
    log_denominator,
    negative_share,
    negatives_variance,
    scales,
)

SIZES = [1, 2, 3, 10, 501, 999, 1000]
PRIORS = [1e-6, 1e-3, 0.4, 0.5, 0.9, 1 - 1e-3, 1 - 1e-6]
sizes = st.integers(1, 1000)
priors = st.floats(1e-6, 1 - 1e-6)
ASSUMPTIONS = Assumptions(complexity=2.0, lipschitz=0.7, loss_bound=1.3)


def exact_law(size: int, prior: float) -> tuple[list[int], Fraction]:
    """Weights of k negatives in a dominant tuple, as integers, and the prior as a fraction."""
    exact = Fraction(prior)
    p, q = exact.numerator, exact.denominator - exact.numerator
    return [math.comb(size, k) * p ** (size - k) * q**k for k in range(size // 2 + 1)], exact


def log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


# -- coefficients at extremes ---------------------------------------------------------------------


def check_coefficients(size: int, prior: float) -> None:
    law, exact = exact_law(size, prior)
    total = sum(law)
    negatives = Fraction(sum(k * weight for k, weight in enumerate(law)), total)
    b = negatives / size
    assert log_denominator(size, prior) == pytest.approx(log(1 - b - exact), abs=1e-9)
    assert negative_share(size, prior) == pytest.approx(float(b), rel=1e-9)
    variance = Fraction(sum(k * k * weight for k, weight in enumerate(law)), total) - negatives**2
    assert negatives_variance(size, prior) == pytest.approx(float(variance), rel=1e-8)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("prior", PRIORS)
def test_coefficients_equal_exact_arithmetic_at_the_corners(size, prior):
    check_coefficients(size, prior)


@settings(max_examples=30)
@given(sizes, priors)
def test_coefficients_equal_exact_arithmetic(size, prior):
    check_coefficients(size, prior)


@given(st.integers(1, 60), st.floats(0.01, 0.9))
def test_scales_are_the_weights_of_the_estimator(size, prior):
    weights, scale = risk_weights(size, prior), scales(size, prior)
    assert scale.tuples == pytest.approx(weights.tuple_positive, rel=1e-9)
    assert scale.unlabeled_positive == pytest.approx(-weights.unlabeled_positive, rel=1e-9)
    assert scale.unlabeled_negative == pytest.approx(weights.unlabeled_negative, rel=1e-9)


@given(st.integers(1, 30), st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50), st.data())
def test_labels_of_a_tuple_vary_less_than_independent_ones(size, prior, data):
    """The lemma behind `by_members` and Theorem 3: E[(1 + u)^K] is at most that of K ~ Binomial(M, b)."""
    weights = [math.comb(size, k) * prior ** (size - k) * (1 - prior) ** k for k in range(size // 2 + 1)]
    law = [weight / sum(weights) for weight in weights]
    b = sum(k * chance for k, chance in enumerate(law)) / size
    u = data.draw(st.fractions(Fraction(-99, 100), 10, max_denominator=100))
    assert sum(chance * (1 + u) ** k for k, chance in enumerate(law)) <= (1 + u * b) ** size
    assert sum(chance * (k - size * b) ** 2 for k, chance in enumerate(law)) <= size * b * (1 - b)


# -- every bound at extremes ----------------------------------------------------------------------


def all_bounds(sample: Sample) -> list[float]:
    errors = error_bounds(sample, ASSUMPTIONS, 0.05)
    bounds = [errors.printed, errors.by_tuples, errors.by_members]
    for k, scope in itertools.product((0.0, 1.0), ("whole", "part")):
        for tuple_risk in (0.2, -0.1):
            bias = bias_bounds(sample, tuple_risk, 0.3, 1.3, k, scope)
            printed, deviation = deviation_bounds(sample, tuple_risk, 0.3, 1.3, k, scope, 0.05)
            assert (bias.printed is None) == (printed is None) == (tuple_risk < 0)
            assert bias.low <= bias.high
            bounds += [bias.low, bias.high, deviation]
            bounds += [] if printed is None else [bias.printed, printed]
    return bounds


@settings(max_examples=40)
@given(sizes, priors, st.integers(1, 10**9), st.integers(1, 10**9))
def test_bounds_are_numbers_for_any_size_and_prior(size, prior, n, n_unlabeled):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bounds = all_bounds(Sample(size, prior, n, n_unlabeled))
    assert all(bound >= 0 for bound in bounds), bounds


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("prior", PRIORS)
def test_more_data_never_loosen_a_bound(size, prior):
    few, many = all_bounds(Sample(size, prior, 10, 10)), all_bounds(Sample(size, prior, 1000, 1000))
    assert all(later <= earlier for earlier, later in zip(few, many, strict=True))


def test_bounds_beyond_every_double_are_infinite():
    errors = error_bounds(Sample(1000, 1 - 1e-6, 100, 100), ASSUMPTIONS, 0.05)
    assert errors.printed == errors.corrected == math.inf
    assert bias_bounds(Sample(1000, 1 - 1e-6, 100, 100), 0.1, 0.1, 1.3, 0, "whole").high == math.inf


# -- Theorem 2 ------------------------------------------------------------------------------------


@given(st.integers(1, 20), st.floats(0.05, 0.9), st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.001, 0.5))
def test_theorem_2_is_as_the_paper_prints_it(size, prior, n, n_unlabeled, delta):
    c = coefficients(size, prior)
    positive, negative = prior, 1 - prior
    rho, complexity, most = ASSUMPTIONS.lipschitz, ASSUMPTIONS.complexity, ASSUMPTIONS.loss_bound
    d = abs(c.a * negative - c.b * positive)
    both = abs(-c.b * positive) + abs(c.a * negative)
    tail = math.sqrt(math.log(4 / delta))
    printed = (
        2
        * positive
        * negative
        * (4 * math.sqrt(2) * rho * complexity + 2 * most * tail)
        / (d * math.sqrt(2 * size * n))
        + 2 * both * math.sqrt(8) * rho * complexity / (d * math.sqrt(2 * n_unlabeled))
        + 2 * both * most * tail / (d * math.sqrt(2 * n_unlabeled))
    )
    bounds = error_bounds(Sample(size, prior, n, n_unlabeled), ASSUMPTIONS, delta)
    assert bounds.printed == pytest.approx(printed, rel=1e-7)
    # Points are independent, and there the paper's proof holds; what is proved for tuples is never less.
    assert bounds.by_tuples >= bounds.printed
    assert (size == 1) == (bounds.by_tuples == pytest.approx(bounds.printed, rel=1e-12))
    assert bounds.by_members > bounds.printed


def test_long_tuples_are_bounded_through_their_members():
    def unlabeled_data_free(size: int) -> Sample:
        return Sample(size, 0.5, 100, 10**12)

    pair, long = (error_bounds(unlabeled_data_free(size), ASSUMPTIONS, 0.05) for size in (2, 100))
    assert pair.corrected == pair.by_tuples
    assert long.corrected == long.by_members < long.by_tuples / 2


# -- Theorem 3 ------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.floats(0.05, 0.8), st.integers(1, 300), st.sampled_from([0.0, 1.0]))
def test_theorem_3_is_as_the_paper_prints_it(size, prior, n, k):
    c = coefficients(size, prior)
    zeta, eta, most, slope = 0.2, 0.1, 1.3, 1.0
    weight = prior * (1 - prior)
    delta = math.exp(-2 * zeta**2 * size**2 * c.denominator**2 * n / (weight**2 * most**2))
    delta += math.exp(-2 * eta**2 * 2 * n / most**2)
    bias = ((slope + 1) * weight * size * most / c.denominator + (slope + 1) * most) * delta
    sample = Sample(size, prior, n, 2 * n)
    assert bias_bounds(sample, zeta, eta, most, k, "part").printed == pytest.approx(bias, rel=1e-6)
    spread = weight**2 / (size**2 * c.denominator**2 * n) + 1 / (2 * n)
    deviation = most * slope * math.sqrt(math.log(2 / 0.05) / 2 * spread) + bias
    assert deviation_bounds(sample, zeta, eta, most, k, "part", 0.05)[0] == pytest.approx(deviation, rel=1e-6)


def convolve(left: dict, right: dict) -> dict:
    """Law of the sum of two independent numbers."""
    law: dict[Fraction, Fraction] = {}
    for (x, p), (y, q) in itertools.product(left.items(), right.items()):
        law[x + y] = law.get(x + y, Fraction(0)) + p * q
    return law


def power(law: dict, times: int) -> dict:
    total = {Fraction(0): Fraction(1)}
    for _ in range(times):
        total = convolve(total, law)
    return total


def exact_parts(size: int, prior: Fraction, n: int, n_unlabeled: int, losses: dict, chance: dict) -> tuple[dict, dict]:
    """Laws of the estimates of R_MDP and R_U by enumeration, for images of two kinds.

    Parameters
    ----------
    losses : dict
        l(g(x), y) by kind x and label y.
    chance : dict
        P(x = 1 | y) by label y.
    """
    weights = [math.comb(size, k) * prior ** (size - k) * (1 - prior) ** k for k in range(size // 2 + 1)]
    law = [weight / sum(weights) for weight in weights]
    b = sum(k * p for k, p in enumerate(law)) / size
    d = 1 - b - prior
    on_tuple = {x: prior * (1 - prior) / d * (losses[x, 1] - losses[x, -1]) for x in (0, 1)}
    on_unlabeled = {x: (-b * prior * losses[x, 1] + (1 - b) * (1 - prior) * losses[x, -1]) / d for x in (0, 1)}
    member = {y: {on_tuple[0]: 1 - chance[y], on_tuple[1]: chance[y]} for y in (1, -1)}
    if on_tuple[0] == on_tuple[1]:
        member = {y: {on_tuple[0]: Fraction(1)} for y in (1, -1)}
    one: dict[Fraction, Fraction] = {}
    for k, p in enumerate(law):
        for value, share in convolve(power(member[1], size - k), power(member[-1], k)).items():
            one[value] = one.get(value, Fraction(0)) + p * share
    share = prior * chance[1] + (1 - prior) * chance[-1]
    image = {on_unlabeled[0]: 1 - share, on_unlabeled[1]: share}
    if on_unlabeled[0] == on_unlabeled[1]:
        image = {on_unlabeled[0]: Fraction(1)}
    return (
        {value / (n * size): p for value, p in power(one, n).items()},
        {value / n_unlabeled: p for value, p in power(image, n_unlabeled).items()},
    )


tenths = st.fractions(0, 1, max_denominator=10)


@settings(max_examples=60)
@given(
    st.integers(1, 4),
    st.fractions(Fraction(1, 10), Fraction(9, 10), max_denominator=10),
    st.integers(1, 3),
    st.tuples(tenths, tenths, tenths, tenths),
    st.tuples(tenths, tenths),
    st.sampled_from([0, 1]),
)
def test_corrected_theorem_3_holds_on_enumerated_samples(size, prior, n, loss_values, chances, k):
    """Bias and tails, exactly, for losses in [0, 1]: no sample is left out, so nothing is left to chance."""
    keys = [(0, 1), (0, -1), (1, 1), (1, -1)]
    losses, chance = dict(zip(keys, loss_values, strict=True)), dict(zip((1, -1), chances, strict=True))
    tuples, unlabeled = exact_parts(size, prior, n, n, losses, chance)
    tuple_risk, unlabeled_risk = (sum(x * p for x, p in law.items()) for law in (tuples, unlabeled))
    risk = tuple_risk + unlabeled_risk
    # Theorem 1, exactly.
    class_losses = {y: chance[y] * losses[1, y] + (1 - chance[y]) * losses[0, y] for y in (1, -1)}
    assert risk == prior * class_losses[1] + (1 - prior) * class_losses[-1]
    whole = convolve(tuples, unlabeled)
    sample = Sample(size, float(prior), n, n)

    def corrected(x: Fraction) -> Fraction:
        return x if x >= 0 else -k * x

    for scope, laws in (("whole", [whole]), ("part", [tuples, unlabeled])):
        bias = float(sum(p * (corrected(x) - x) for law in laws for x, p in law.items()))
        bounds = bias_bounds(sample, float(tuple_risk), float(unlabeled_risk), 1.0, k, scope)
        assert bounds.low - 1e-9 <= bias <= bounds.high + 1e-9
        for delta in (0.5, 0.05):
            _, most = deviation_bounds(sample, float(tuple_risk), float(unlabeled_risk), 1.0, k, scope, delta)
            if scope == "whole":
                beyond = sum(p for x, p in whole.items() if abs(corrected(x) - risk) > most + 1e-9)
            else:
                beyond = sum(
                    p * q
                    for (x, p), (y, q) in itertools.product(tuples.items(), unlabeled.items())
                    if abs(corrected(x) + corrected(y) - risk) > most + 1e-9
                )
            assert beyond <= delta


@pytest.mark.parametrize(("size", "n", "n_unlabeled"), [(1, 3, 60), (4, 6, 60), (2, 30, 3), (9, 3, 200)])
def test_tails_are_close_enough_to_their_bounds_to_tell_a_smaller_range(size, n, n_unlabeled):
    """The largest losses there are, on images that say nothing of their class: what the ranges of the proof allow.

    The bound holds, and one of half the width would not.
    """
    prior, delta = Fraction(1, 2), 0.05
    losses = {(0, 1): Fraction(1), (0, -1): Fraction(0), (1, 1): Fraction(0), (1, -1): Fraction(1)}
    parts = exact_parts(size, prior, n, n_unlabeled, losses, {1: Fraction(1, 2), -1: Fraction(1, 2)})
    tuple_risk, unlabeled_risk = (sum(x * p for x, p in law.items()) for law in parts)
    sample = Sample(size, float(prior), n, n_unlabeled)
    _, most = deviation_bounds(sample, float(tuple_risk), float(unlabeled_risk), 1.0, 1, "whole", delta)
    law = convolve(*parts)
    risk = sum(x * p for x, p in law.items())

    def beyond(distance: float) -> float:
        return float(sum(p for x, p in law.items() if abs(abs(x) - risk) > distance))

    assert beyond(most) <= delta < beyond(most / 2)


# -- mistakes of a user ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"tuple_size": 0}, "tuple size 0 is not an integer"),
        ({"prior": 1.0}, "not strictly between 0 and 1"),
        ({"n": 0}, "n is 0; at least 1 is needed"),
        ({"n_unlabeled": -1}, "n_unlabeled is -1; at least 1 is needed"),
    ],
)
def test_a_sample_out_of_range_is_refused(change, sentence):
    with pytest.raises(UserError, match=sentence):
        replace(Sample(2, 0.5, 10, 10), **change)


@pytest.mark.parametrize("delta", [0.0, 1.0, float("nan")])
def test_a_probability_out_of_range_is_refused(delta):
    with pytest.raises(UserError, match="probability of failure"):
        error_bounds(Sample(2, 0.5, 10, 10), ASSUMPTIONS, delta)
    with pytest.raises(UserError, match="probability of failure"):
        deviation_bounds(Sample(2, 0.5, 10, 10), 0.1, 0.1, 1.0, 0, "whole", delta)


def test_numbers_of_the_denominator_stay_exact_where_the_coefficients_refuse():
    with pytest.raises(UserError, match="too large"):
        coefficients(1000, 0.999)
    assert np.isfinite(log_denominator(1000, 0.999))
