"""Every law against enumeration of all 2^M label vectors, in exact arithmetic."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy.optimize import least_squares
from scipy.special import expit
from scipy.stats import binom, chisquare

from mdpu.errors import UserError
from mdpu.law import Law, count_law, named_law
from mdpu.randomness import Stream

REPOSITORY = Path(__file__).resolve().parent.parent
CLOSE = 1e-9  # relative; the code works in doubles and logarithms
priors = st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100)
chances = st.fractions(0, 1, max_denominator=1000)
# exact as doubles
weights = st.one_of(st.sampled_from([0.0, 1.0]), st.integers(0, 64).map(lambda i: i / 64))


shares = st.sampled_from([0.0, 0.125, 0.5])  # of broken tuples


@st.composite
def random_laws(draw: st.DrawFn) -> Law:
    count = draw(st.integers(2, 7))
    several = st.lists(weights, min_size=count, max_size=count)
    return Law(tuple(draw(several.filter(lambda drawn: len(set(drawn)) > 1))))


@st.composite
def named_laws(draw: st.DrawFn) -> Law:
    size = draw(st.integers(2, 6))
    k = draw(st.integers(1, size))
    laws = [
        Law.dominant(size),
        Law.at_least(size, k),
        Law.exactly(size, k),
        Law.between(size, 1, k),
        Law.similar(size),
    ]
    return draw(st.sampled_from(laws))


plain_laws = st.one_of(random_laws(), named_laws())
laws = st.builds(Law.broken, plain_laws, shares)


def probability(labels: tuple[int, ...], r: list[Fraction]) -> Fraction:
    """Probability of labels, ones and zeros, of independent members."""
    chance = Fraction(1)
    for label, p in zip(labels, r, strict=True):
        chance *= p if label else 1 - p
    return chance


def vectors(r: list[Fraction]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every label vector of independent members, and its probability."""
    for labels in itertools.product((0, 1), repeat=len(r)):
        yield labels, probability(labels, r)


def weight(law: Law, labels: tuple[int, ...]) -> Fraction:
    return Fraction(law.weights[sum(labels)])


def enumerate_q(law: Law, r: list[Fraction]) -> Fraction:
    return sum((weight(law, labels) * chance for labels, chance in vectors(r)), Fraction(0))


def collected(law: Law, prior: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Probability of each label vector in a tuple: of those that pass, and a share of those that
    are refused.
    """
    r = [prior] * law.size
    rate = enumerate_q(law, r)
    share = Fraction(law.refused)
    if share and abs(share - (1 - rate)) < Fraction(1, 1000):
        reject()  # tuples are nearly random groups

    drawn = {}
    for labels, chance in vectors(r):
        passes = weight(law, labels)
        factor = (1 - share) * passes / rate
        if share:
            factor += share * (1 - passes) / (1 - rate)
        drawn[labels] = chance * factor
    return drawn


def close(expected: Any, rel: float = CLOSE, abs: float = 1e-15) -> Any:
    """What equals a number that is close."""
    return pytest.approx(float(expected), rel=rel, abs=abs)


def members(law: Law, drawn: list[Fraction]) -> list[Fraction]:
    return list(itertools.islice(itertools.cycle(drawn), law.size))


# -- the joint law --------------------------------------------------------------------------------


@given(plain_laws, st.lists(chances, min_size=1, max_size=6))
def test_q_and_its_complement_equal_enumeration(law, drawn):
    """Relative: nothing is lost where q or 1 - q is tiny."""
    r = members(law, drawn)
    exact = enumerate_q(law, r)
    positive = np.array(r, dtype=float)
    negative = 1 - positive

    by_numpy = law.passes(positive, negative)
    by_torch = law.passes(torch.from_numpy(positive), torch.from_numpy(negative))

    for q, complement in (by_numpy, by_torch):
        assert float(q) == close(exact)
        assert float(complement) == close(1 - exact)


@given(plain_laws, st.lists(chances, min_size=1, max_size=6))
def test_the_gradient_of_q_equals_enumeration(law, drawn):
    """Where r is at most 1/1000 from 1, the rounding of 1 - r is 1e-13 of itself."""
    r = np.array(members(law, drawn), dtype=float).clip(1e-3, 1 - 1e-3)
    scores = torch.from_numpy(r).logit().requires_grad_()

    q, _ = law.passes(scores.sigmoid(), (-scores).sigmoid())
    (gradient,) = torch.autograd.grad(q, scores)

    rounded = [Fraction(p) for p in scores.detach().sigmoid().tolist()]
    slopes = []
    for place, p in enumerate(rounded):
        before = rounded[:place]
        after = rounded[place + 1 :]
        of_positive = enumerate_q(law, [*before, Fraction(1), *after])
        of_negative = enumerate_q(law, [*before, Fraction(0), *after])
        rise = of_positive - of_negative
        slopes.append(float(rise * p * (1 - p)))
    np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 51, 100])
@pytest.mark.parametrize("chance", [0.0, 1e-12, 0.3, 0.5, 1 - 1e-12, 1.0])
def test_equal_members_are_binomial_up_to_a_hundred(size, chance):
    positive = np.full(size, chance)
    q, complement = Law.dominant(size).passes(positive, 1 - positive)

    positives = binom(size, chance)
    most_refused = math.ceil(size / 2) - 1
    assert float(q) == close(positives.sf(most_refused))
    assert float(complement) == close(positives.cdf(most_refused))


@given(laws, priors)
def test_tuples_have_the_density_q_over_z_against_independent_draws(law, prior):
    """The identity itself, for instances of three kinds that overlap in class: labels are drawn
    first, kinds after.
    """
    of_positives = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    of_negatives = [Fraction(1, 10), Fraction(2, 10), Fraction(7, 10)]
    of_all = []
    r = []
    for positive, negative in zip(of_positives, of_negatives, strict=True):
        share = prior * positive + (1 - prior) * negative
        of_all.append(share)
        r.append(float(prior * positive / share))
    drawn = collected(law, prior)
    at_prior = law.at(float(prior))

    every = list(itertools.product(range(3), repeat=law.size))
    for kinds in every[:: max(1, 3 ** (law.size - 3))]:
        density = Fraction(0)
        for labels, chance in drawn.items():
            for kind, label in zip(kinds, labels, strict=True):
                chance *= of_positives[kind] if label else of_negatives[kind]
            density += chance
        ratio = density / math.prod(of_all[kind] for kind in kinds)

        members_r = np.array([r[kind] for kind in kinds])
        q, _ = at_prior.passes(members_r, 1 - members_r)
        predicted = q / law.rate(float(prior))
        assert float(predicted) == close(ratio, rel=1e-8, abs=1e-14)


@given(laws, priors)
def test_information_equals_the_divergences_by_enumeration(law, prior):
    drawn = collected(law, prior)
    joint = 0.0
    for labels, chance in vectors([prior] * law.size):
        if drawn[labels]:
            joint += float(drawn[labels]) * math.log(drawn[labels] / chance)

    marginal = 0.0
    for position in range(law.size):
        a = sum(chance for labels, chance in drawn.items() if labels[position])
        for share, expected in ((a, prior), (1 - a, 1 - prior)):
            if share:
                marginal += float(share) * math.log(share / expected)

    found_joint = law.joint_information(float(prior))
    found_marginal = law.marginal_information(float(prior))
    assert found_joint == close(joint, rel=1e-8, abs=1e-12)
    assert found_marginal == close(marginal, rel=1e-6, abs=1e-12)
    assert found_marginal <= found_joint * (1 + 1e-9) + 1e-12


# -- the labels of a tuple ------------------------------------------------------------------------


@given(laws, priors)
def test_counts_and_shares_equal_enumeration(law, prior):
    counts = [Fraction(0)] * (law.size + 1)
    for labels, chance in collected(law, prior).items():
        counts[sum(labels)] += chance
    a = sum(k * chance for k, chance in enumerate(counts)) / law.size

    found = law.counts(float(prior))
    mix = law.coefficients(float(prior))

    expected = np.array(counts, dtype=float)
    assert found == pytest.approx(expected, rel=CLOSE, abs=1e-15)
    assert mix.a == close(a)
    assert mix.b == close(1 - a)
    # Relative where the weights only rise or only fall: the code must not subtract nearly equal
    # numbers.
    steps = np.diff(law.weights)
    tolerance = 1e-13
    if not law.refused and ((steps >= 0).all() or (steps <= 0).all()):
        tolerance = 0
    assert mix.denominator == close(a - prior, abs=tolerance)


@given(laws, priors)
def test_weights_recover_the_classification_risk_whatever_the_losses(law, prior):
    """Theorem 1: the four expectations, weighted, add up to pi_+ E_+[l(+1)] + pi_- E_-[l(-1)]."""
    p = float(prior)
    try:
        weights = law.risk_weights(p)
    except UserError:
        return  # shares that equal the prior: see below
    # class-conditional expectations of l(g, +1), l(g, -1)
    positive = {1: 0.3, -1: 1.7}
    negative = {1: 2.3, -1: 0.2}
    a, b, _ = law.coefficients(p)
    mixed = {label: a * positive[label] + b * negative[label] for label in (1, -1)}
    unlabeled = {label: p * positive[label] + (1 - p) * negative[label] for label in (1, -1)}
    found = (
        weights.tuple_positive * mixed[1]
        + weights.tuple_negative * mixed[-1]
        + weights.unlabeled_positive * unlabeled[1]
        + weights.unlabeled_negative * unlabeled[-1]
    )
    assert found == pytest.approx(
        p * positive[1] + (1 - p) * negative[-1], abs=1e-8 * max(map(abs, weights))
    )


@given(
    st.floats(0.05, 0.95),
    st.just(0.0) | st.floats(1e-9, 1),
    st.lists(st.floats(-2, 2), min_size=6, max_size=6),
)
def test_two_sets_of_singles_give_the_risk(prior, share, drawn):
    """By enumeration of three points with random losses, as in UU learning (Lu et al., 2019) and,
    at share 1, PU.
    """
    if abs(share - prior) < 0.02:
        reject()
    odds = np.array([prior * (1 - share), (1 - prior) * share])
    law = Law(tuple(odds / odds.max()))
    positive = np.array([0.5, 0.3, 0.2])
    negative = np.array([0.1, 0.2, 0.7])
    losses = np.reshape(drawn, (2, 3))  # l(g, +1) and l(g, -1) of each point
    of_tuples = losses @ (share * positive + (1 - share) * negative)
    of_unlabeled = losses @ (prior * positive + (1 - prior) * negative)

    weights = law.risk_weights(prior)

    risk = weights @ np.concatenate([of_tuples, of_unlabeled])
    expected = prior * losses[0] @ positive + (1 - prior) * losses[1] @ negative
    assert law.coefficients(prior).a == pytest.approx(share, abs=1e-12)
    assert risk == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "law", [Law.exactly(3, 1), Law.similar(2).broken(0.1), Law((0.2, 0.9, 0.4, 0.4))]
)
def test_drawn_labels_follow_the_law(law):
    drawn = law.draw(0.4, 20_000, Stream(1, "test"))
    assert drawn.dtype == np.int8
    assert set(np.unique(drawn)) == {-1, 1}

    numbers = Counter(map(tuple, (drawn > 0).astype(int).tolist()))
    expected = {}
    for labels, chance in collected(law, Fraction(2, 5)).items():
        if chance:
            expected[labels] = 20_000 * float(chance)
    assert set(numbers) == set(expected)
    found = [numbers[labels] for labels in expected]
    assert chisquare(found, list(expected.values())).pvalue > 1e-4


@given(st.integers(1, 60), priors)
def test_coefficients_are_as_lemma_6_writes_them_for_longer_tuples(size, prior):
    p = prior
    q = 1 - prior
    total = Fraction(0)
    positives = Fraction(0)
    for k in range(size // 2 + 1):
        chance = p ** (size - k) * q**k
        total += math.comb(size, k) * chance
        positives += math.comb(size - 1, k) * chance
    a = positives / total

    found = Law.dominant(size).coefficients(float(p))
    assert found.a == close(a, rel=1e-8)
    assert found.b == close(1 - a, rel=1e-8)
    assert found.denominator == close(a - p, rel=1e-8)

    # Lu et al. (2018), Theorem 4, with class priors theta = a and theta' = pi_+
    expected = np.array([q * p, -p * q, -(1 - a) * p, a * q]) / (a - p)
    weights = Law.dominant(size).risk_weights(float(p))
    assert weights == pytest.approx(expected.astype(float), rel=1e-8, abs=1e-15)


@pytest.mark.parametrize("size", [100, 1_001, 20_000])
@pytest.mark.parametrize("prior", [1e-6, 0.1, 0.5])
def test_long_tuples_give_finite_weights(size, prior):
    law = Law.dominant(size)
    assert law.counts(prior).sum() == pytest.approx(1)
    assert prior < law.coefficients(prior).a <= 1
    assert np.isfinite(law.risk_weights(prior)).all()


# -- risks of answers -----------------------------------------------------------------------------


@given(st.integers(1, 4), st.floats(0.05, 0.95), st.floats(0, 1), st.floats(0, 1), st.data())
def test_both_risks_of_answers_are_unbiased(size, prior, rate, false_rate, data):
    """With infinitely many groups each is what it estimates, here by enumeration over labels and
    answers.
    """
    laws = [Law.dominant(size), Law.at_least(size, size), Law.exactly(size, 1)]
    law = data.draw(st.sampled_from(laws))
    counts = np.zeros(size + 1)
    wrong = 0.0
    for labels, chance in vectors([Fraction(prior)] * size):
        passes = weight(law, labels)
        yes = [rate if label else false_rate for label in labels]
        for answers in itertools.product((1, 0), repeat=size):
            both = float(chance * probability(answers, yes))
            counts[sum(answers)] += both * float(passes)
            wrong += both * (passes != weight(law, answers))
    counts /= counts.sum()

    unlabeled = prior * rate + (1 - prior) * false_rate
    assert law.bag_risk(counts, unlabeled, prior) == pytest.approx(wrong, abs=1e-9)
    if abs(law.coefficients(prior).denominator) > 1e-3:
        error = prior * (1 - rate) + (1 - prior) * false_rate
        of_members = counts @ np.arange(size + 1) / size
        assert law.error(of_members, unlabeled, prior) == pytest.approx(error, abs=1e-9)


# -- what can be known ----------------------------------------------------------------------------

IDENTIFIED = {
    ("all", None): [
        *map(Law.dominant, (2, 3, 4, 5, 20)),
        Law.at_least(3, 1),
        Law.at_least(3, 2),
        Law.exactly(3, 1),
        Law((0.5, 0.0, 0.0, 1.0)),
        Law.dominant(3).broken(0.1),
        Law.dominant(250),
    ],
    ("family", 0): [Law.dominant(1), Law.exactly(4, 4)],
    ("family", 0.5): [Law.similar(2).broken(0.1)],
    ("family", 1): [Law.exactly(4, 0), Law.dominant(2).broken(0.1), Law.at_least(3, 1).broken(0.1)],
    ("mirror", 0.5): [Law.exactly(4, 2), *map(Law.similar, (2, 4, 5)), Law.between(3, 1, 2)],
    ("mirror", 1 / 3): [Law((0.5, 0.0, 1.0))],
    ("mirror", 0.375): [Law((0.34, 0.04, 0.54))],
}
KNOWN = [(law, told) for told, laws in IDENTIFIED.items() for law in laws]


@pytest.mark.parametrize(("law", "expected"), KNOWN)
def test_what_is_identified(law, expected):
    found = law.identifies()
    what, centre = expected
    assert found.what == what
    assert found.centre == pytest.approx(centre)


@given(
    st.one_of(plain_laws, st.sampled_from([law for law, _ in KNOWN if not law.refused])),
    st.integers(0, 99),
)
def test_what_is_called_unidentified_fits_exactly(law, seed):
    """Another r' gives the same q up to a factor, wherever it stays between 0 and 1, and elsewhere
    as a polynomial.
    """
    what, centre = law.identifies()
    if what == "all":
        return
    r = np.random.default_rng(seed).random((9, law.size))
    factor = -1 if what == "mirror" else 0.7
    alike = centre + factor * (r - centre)

    q, _ = law.passes(r, 1 - r)
    q_alike, _ = law.passes(alike, 1 - alike)

    ratio = q_alike / q
    assert ratio == pytest.approx(np.full(9, ratio[0]), rel=1e-8)


@pytest.mark.parametrize(
    "law", [law for law, (what, _) in KNOWN if what == "all" and law.size < 6 and not law.refused]
)
def test_no_other_values_give_a_multiple_of_q_where_all_is_identified(law):
    """Theorem L2 by search: t q(u..v) = q(u'..v') at all mixtures of two values leaves t = 1, u' =
    u, v' = v.
    """
    u = 0.2
    v = 0.7
    mixtures = np.array(list(itertools.product((0, 1), repeat=law.size)))

    def q_of(first, second):
        r = np.where(mixtures, second, first)
        q, _ = law.passes(r, 1 - r)
        return q

    def mismatch(unknown):
        first, second = expit(np.clip(unknown[:2], -30, 30))
        return np.exp(unknown[2]) * q_of(u, v) - q_of(first, second)

    reached = False
    for start in itertools.product((-2.0, 0.0, 2.0), (-2.0, 0.0, 2.0), (-0.5, 0.5)):
        found = least_squares(mismatch, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        if found.cost < 1e-22:
            reached = True
            assert found.x[2] == pytest.approx(0, abs=1e-4)
            assert expit(found.x[:2]) == pytest.approx([u, v], abs=1e-4)
    assert reached


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: Law((1.0, 1.0, 1.0)),
        lambda: Law((0.0, 0.0)),
        lambda: Law((1.0,)),
        lambda: Law(()),
        lambda: Law((0.0, 1.5)),
        lambda: Law((0.0, math.nan)),
        lambda: Law.at_least(3, 0),
        lambda: Law.exactly(3, 5),
        lambda: Law.dominant(2).broken(1.0),
        lambda: Law.similar(2).broken(0.5).rate(0.5),
        lambda: Law.dominant(2).passes(np.ones(3), np.zeros(3)),
    ],
)
def test_what_is_no_law_is_refused(make):
    with pytest.raises(UserError):
        make()


@pytest.mark.parametrize(
    ("law", "prior"),
    [
        (Law.exactly(3, 1), 1 / 3),
        (Law.similar(2), 0.5),
        (Law.exactly(4, 2).broken(0.1), 0.5),
        (Law.dominant(5001), 0.9),
    ],
)
def test_shares_that_equal_the_prior_are_refused_with_the_methods_that_can(law, prior):
    with pytest.raises(UserError, match="bag-relu"):
        law.risk_weights(prior)


@pytest.mark.parametrize("size", [0, -1, 2.5, 2.0, "2", True, None])
def test_tuple_sizes_out_of_range_are_refused(size):
    with pytest.raises(UserError, match="tuple size"):
        Law.dominant(size)


@pytest.mark.parametrize("prior", [0, 1, 0.0, 1.0, -0.1, 1.5, math.nan, math.inf, "half"])
@pytest.mark.parametrize(
    "ask", [Law.rate, Law.counts, Law.coefficients, Law.risk_weights, Law.joint_information]
)
def test_priors_out_of_range_are_refused(ask, prior):
    with pytest.raises(UserError, match="prior"):
        ask(Law.dominant(2), prior)


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("dominant", 3, Law.dominant(3)),
        ("similar", 2, Law.similar(2)),
        ("at-least-1", 3, Law.at_least(3, 1)),
        ("exactly-1", 3, Law.exactly(3, 1)),
        ("between-1-2", 3, Law.between(3, 1, 2)),
        ("0,0.2,1", 2, Law((0.0, 0.2, 1.0))),
    ],
)
def test_a_text_names_a_law(name, size, expected):
    assert named_law(name, size) == expected


@pytest.mark.parametrize(
    "name",
    ["ordered", "exactly", "exactly-1-2", "exactly-x", "between-1", "0,1", "0,x,1", "broken-1"],
)
def test_texts_that_name_no_law_are_refused(name):
    with pytest.raises(UserError, match=name):
        named_law(name, 2)


# -- what the documents state ---------------------------------------------------------------------


def nats(law, prior):
    """Return the cell of a law's information in the documents."""
    joint = law.joint_information(prior)
    marginal = law.marginal_information(prior)
    return f"{joint:.3f} ({100 * marginal / joint:.0f} %)"


def test_the_table_of_information_in_the_documents():
    page = (REPOSITORY / "docs" / "explanation" / "bags.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (0\.\d) \| (.*) \|$", page, re.M)
    assert [prior for prior, _ in rows] == ["0.4", "0.5", "0.6"]
    for prior, cells in rows:
        expected = [nats(Law.dominant(size), float(prior)) for size in range(2, 8)]
        assert cells.split(" | ") == expected


def test_the_table_of_laws_in_the_documents():
    page = (REPOSITORY / "docs" / "explanation" / "laws.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|[^|]*\| `(Law[^`]*)` \|[^|]*\| (\S+) \| (.*) \| (.*) \|$", page, re.M)
    assert len(rows) >= 9
    for code, share, information, identified in rows:
        law = eval(code, {"Law": Law})
        assert share == f"{law.coefficients(0.4).a:.2f}"
        assert information == nats(law, 0.4)

        what = law.identifies().what
        if law.refused:
            assert identified == ("with the share" if what == "all" else "not with the share")
        else:
            assert identified == {"all": "yes", "mirror": "up to swapping", "family": "no"}[what]


def test_the_law_of_counts_is_a_law():
    r = np.random.default_rng(0).random((7, 4))
    assert count_law(r, 1 - r).sum(axis=-1) == pytest.approx(np.ones(7))
