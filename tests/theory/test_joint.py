"""The joint law of a tuple against enumeration of all label vectors, in exact arithmetic."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from mdpu.errors import UserError
from mdpu.pipeline.files import REPOSITORY
from mdpu.theory import coefficients, tuple_law
from mdpu.theory.joint import (
    dominance,
    dominance_gradient,
    dominance_rate,
    joint_information,
    marginal_information,
    non_dominance,
    positives_law,
    prior_of_dominance_rate,
)

chances = st.fractions(0, 1, max_denominator=1000)
members = st.lists(chances, min_size=1, max_size=8)
sizes = st.integers(1, 8)
priors = st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100)
CLOSE = 1e-10


def vectors(r: list[Fraction]) -> list[tuple[tuple[int, ...], Fraction]]:
    """Every label vector of independent members and its probability."""
    return [
        (labels, math.prod((p if y > 0 else 1 - p for p, y in zip(r, labels, strict=True)), start=Fraction(1)))
        for labels in itertools.product((1, -1), repeat=len(r))
    ]


def dominant(labels: tuple[int, ...]) -> bool:
    """The paper's condition, said of labels: no fewer positives than negatives."""
    return sum(labels) >= 0


def enumerate_q(r: list[Fraction]) -> Fraction:
    return sum((chance for labels, chance in vectors(r) if dominant(labels)), Fraction(0))


@given(members)
def test_q_and_its_complement_equal_enumeration(r):
    exact = enumerate_q(r)
    floats = [float(p) for p in r]
    # Relative: nothing is lost where q or 1 - q is tiny. Fractions such as 1/3 are rounded on the way in, and so is
    # 1 - r, by at most half a unit in the last place of 1: where r is at most 1/1000 from 1, 1e-13 of itself.
    assert float(dominance(floats)) == pytest.approx(float(exact), rel=CLOSE)
    assert float(non_dominance(floats)) == pytest.approx(float(1 - exact), rel=CLOSE)


@given(members)
def test_law_of_the_number_of_positives_equals_enumeration(r):
    expected = [Fraction(0)] * (len(r) + 1)
    for labels, chance in vectors(r):
        expected[labels.count(1)] += chance
    assert positives_law([float(p) for p in r]) == pytest.approx([float(p) for p in expected], rel=CLOSE)


@given(members)
def test_gradient_equals_enumeration(r):
    """A slope: q is linear in each r_i, so its slope is q at r_i = 1 less q at r_i = 0, exactly."""
    exact = [
        float(enumerate_q([*r[:i], Fraction(1), *r[i + 1 :]]) - enumerate_q([*r[:i], Fraction(0), *r[i + 1 :]]))
        for i in range(len(r))
    ]
    assert dominance_gradient([float(p) for p in r]) == pytest.approx(exact, rel=CLOSE, abs=0)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 51, 100])
@pytest.mark.parametrize("chance", [0.0, 1e-12, 0.3, 0.5, 1 - 1e-12, 1.0])
def test_equal_members_are_binomial_up_to_a_hundred(size, chance):
    need = math.ceil(size / 2)
    q, complement = dominance(np.full(size, chance)), non_dominance(np.full(size, chance))
    assert float(q) == pytest.approx(binom.sf(need - 1, size, chance), rel=1e-9)
    assert float(complement) == pytest.approx(binom.cdf(need - 1, size, chance), rel=1e-9)
    slopes = dominance_gradient(np.full(size, chance))
    assert slopes == pytest.approx(np.full(size, binom.pmf(need - 1, size - 1, chance)), rel=1e-9)


def test_leading_axes_are_bags_of_their_own_and_members_have_no_order():
    r = np.random.default_rng(0).random((3, 4, 5))
    q, slopes = dominance(r), dominance_gradient(r)
    assert q.shape == (3, 4) and slopes.shape == r.shape
    for bag in np.ndindex(3, 4):
        assert q[bag] == dominance(r[bag])
        assert q[bag] == pytest.approx(float(dominance(r[bag][::-1])), rel=1e-14)
        assert slopes[bag] == pytest.approx(dominance_gradient(r[bag][::-1])[::-1], rel=1e-14)


@given(sizes, priors)
def test_tuples_have_the_density_q_over_z_against_independent_draws(size, prior):
    """The identity itself, for images of three kinds that overlap in class.

    A kind has a share p(x) of each class's images. Tuples are drawn class first, as Lemma 5 has it, images after.
    """
    given_positive = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    given_negative = [Fraction(1, 10), Fraction(2, 10), Fraction(7, 10)]
    size = min(size, 4)  # 3^M kinds times 2^M labels
    share = [prior * p + (1 - prior) * m for p, m in zip(given_positive, given_negative, strict=True)]
    r = [prior * p / s for p, s in zip(given_positive, share, strict=True)]
    law = [Fraction(math.comb(size, k)) * prior ** (size - k) * (1 - prior) ** k for k in range(size // 2 + 1)]
    vector_law = [p / sum(law) / math.comb(size, k) for k, p in enumerate(law)]  # a label vector with k negatives
    for kinds in itertools.product(range(3), repeat=size):
        density = sum(
            vector_law[labels.count(-1)]
            * math.prod((given_positive if y > 0 else given_negative)[x] for x, y in zip(kinds, labels, strict=True))
            for labels in itertools.product((1, -1), repeat=size)
            if dominant(labels)
        )
        ratio = density / math.prod(share[x] for x in kinds)
        predicted = dominance([float(r[x]) for x in kinds]) / dominance_rate(size, float(prior))
        assert float(predicted) == pytest.approx(float(ratio), rel=1e-9)


@given(sizes, priors)
def test_z_is_the_normaliser_of_the_tuple_law(size, prior):
    exact = enumerate_q([prior] * size)
    assert dominance_rate(size, float(prior)) == pytest.approx(float(exact), rel=CLOSE)
    # P(no negatives) = pi_+^M / Z
    assert float(prior) ** size / dominance_rate(size, float(prior)) == pytest.approx(tuple_law(size, float(prior))[0])


@given(st.integers(1, 30), priors)
def test_the_prior_is_read_off_z(size, prior):
    rate = dominance_rate(size, float(prior))
    if 1e-6 < rate < 1 - 1e-6:
        assert prior_of_dominance_rate(size, rate) == pytest.approx(float(prior), rel=1e-8)


@given(sizes, priors)
def test_information_equals_the_divergences_by_enumeration(size, prior):
    drawn = vectors([prior] * size)
    rate = sum(chance for labels, chance in drawn if dominant(labels))
    joint = sum(float(chance / rate) * math.log(1 / rate) for labels, chance in drawn if dominant(labels))
    assert joint_information(size, float(prior)) == pytest.approx(joint, rel=1e-9)
    a = sum(chance / rate for labels, chance in drawn if dominant(labels) and labels[0] == 1)
    marginal = size * (
        float(a) * math.log(a / prior) + (float(1 - a) * math.log((1 - a) / (1 - prior)) if a < 1 else 0.0)
    )
    assert marginal_information(size, float(prior)) == pytest.approx(marginal, rel=1e-6, abs=1e-15)


@given(st.integers(1, 40), priors)
def test_members_by_themselves_never_say_more_than_the_tuple(size, prior):
    joint, marginal = joint_information(size, float(prior)), marginal_information(size, float(prior))
    assert 0 <= marginal <= joint * (1 + 1e-9)
    assert (size == 1) == (marginal == pytest.approx(joint, rel=1e-9, abs=0)) or joint < 1e-12


@pytest.mark.parametrize(
    ("prior", "joint", "marginal", "kept"), [(0.4, 0.446, 0.205, 46), (0.5, 0.288, 0.113, 39), (0.6, 0.174, 0.057, 33)]
)
def test_information_of_a_pair_as_the_documents_state_it(prior, joint, marginal, kept):
    assert joint_information(2, prior) == pytest.approx(joint, abs=0.0005)
    assert marginal_information(2, prior) == pytest.approx(marginal, abs=0.0005)
    assert round(100 * marginal_information(2, prior) / joint_information(2, prior)) == kept


def test_a_pair_is_its_complement_of_rank_one_and_another_z_is_not():
    """Why the prior is identified: 1 - (Z' / Z) q has rank one for Z' = Z alone.

    It is Theorem 2 of ``docs/explanation/bags.md``.
    """
    r = np.array([0.1, 0.35, 0.8])
    grid = np.stack(np.meshgrid(r, r, indexing="ij"), axis=-1)
    q = dominance(grid)
    for scale, rank in ((1.0, 1), (0.9, 2), (1.1, 2)):
        assert np.linalg.matrix_rank(1 - scale * q, tol=1e-10) == rank


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7])
def test_no_other_pair_of_values_gives_a_multiple_of_q(size):
    """Theorem 2 by search: t q(u..v) = q(u'..v') at all M + 1 mixtures of two values leaves t = 1, u' = u, v' = v."""
    from scipy.optimize import least_squares

    u, v = 0.2, 0.7
    mixtures = [[1] * k + [0] * (size - k) for k in range(size + 1)]

    def mismatch(unknown):
        other = np.array([1 / (1 + np.exp(-unknown[0])), 1 / (1 + np.exp(-unknown[1]))])
        return [
            np.exp(unknown[2]) * dominance(np.where(m, v, u)) - dominance(np.where(m, other[1], other[0]))
            for m in mixtures
        ]

    for start in itertools.product((-2.0, 0.0, 2.0), (-2.0, 0.0, 2.0), (-0.5, 0.5)):
        found = least_squares(mismatch, start, xtol=1e-14, ftol=1e-14, gtol=1e-14)
        if found.cost < 1e-16:
            assert found.x[2] == pytest.approx(0, abs=1e-5)
            assert 1 / (1 + np.exp(-found.x[:2])) == pytest.approx([u, v], abs=1e-5)
            break
    else:
        pytest.fail("the true values were not found from any start")


@pytest.mark.parametrize("wrong", [[], [0.5, 1.1], [-0.1, 0.5], [float("nan"), 0.5], 0.5])
def test_what_is_no_tuple_of_probabilities_is_refused(wrong):
    with pytest.raises(UserError, match=r"member"):
        dominance(wrong)


@pytest.mark.parametrize("rate", [0.0, 1.0, float("nan")])
def test_a_share_of_bags_outside_the_unit_interval_is_refused(rate):
    with pytest.raises(UserError, match="not strictly between 0 and 1"):
        prior_of_dominance_rate(2, rate)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_tail_that_starts_at_the_wrong_count_is_noticed(size):
    """What the tests above must catch: counts of one more or one less give another Z and another a."""
    prior, need = 0.4, math.ceil(size / 2)
    counts = positives_law(np.full(size, prior))
    a = (np.arange(size + 1) * counts)[need:].sum() / size / counts[need:].sum()
    assert a == pytest.approx(coefficients(size, prior).a)
    for planted in (need - 1, need + 1):
        assert abs((np.arange(size + 1) * counts)[planted:].sum() / size / counts[planted:].sum() - a) > 0.01


def test_the_table_of_information_in_the_documents():
    page = (REPOSITORY / "docs" / "explanation" / "bags.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (0\.\d) \| (.*) \|$", page, re.M)
    assert [prior for prior, _ in rows] == ["0.4", "0.5", "0.6"]
    for prior, cells in rows:
        computed = [
            f"{(joint := joint_information(size, float(prior))):.3f} "
            f"({100 * marginal_information(size, float(prior)) / joint:.0f} %)"
            for size in range(2, 8)
        ]
        assert cells.split(" | ") == computed


def test_triples_say_most_an_image():
    for prior in (0.4, 0.5, 0.6):
        assert max(range(1, 21), key=lambda size: joint_information(size, prior) / size if size > 1 else 0) == 3
