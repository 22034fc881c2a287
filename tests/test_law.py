"""Every law against enumeration of all 2^M label vectors, in exact arithmetic."""

import itertools
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy.optimize import least_squares
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


@st.composite
def random_laws(draw: st.DrawFn, largest: int = 6, broken: bool = True) -> Law:
    count = draw(st.integers(1, largest)) + 1
    own = draw(
        st.lists(weights, min_size=count, max_size=count).filter(lambda drawn: len(set(drawn)) > 1)
    )
    return Law(tuple(own), draw(st.sampled_from([0.0, 0.125, 0.5])) if broken else 0.0)


@st.composite
def named_laws(draw: st.DrawFn, broken: bool = True) -> Law:
    size = draw(st.integers(2, 6))
    k = draw(st.integers(1, size))
    law = draw(
        st.sampled_from(
            [
                Law.dominant(size),
                Law.at_least(size, k),
                Law.exactly(size, k),
                Law.between(size, 1, k),
                Law.similar(size),
            ]
        )
    )
    return law.broken(draw(st.sampled_from([0.0, 0.125, 0.5]))) if broken else law


laws = st.one_of(random_laws(), named_laws())
plain_laws = st.one_of(random_laws(broken=False), named_laws(broken=False))


def vectors(r: list[Fraction]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every label vector, ones and zeros, of independent members, and its probability."""
    for labels in itertools.product((0, 1), repeat=len(r)):
        yield (
            labels,
            math.prod(
                (p if y else 1 - p for p, y in zip(r, labels, strict=True)), start=Fraction(1)
            ),
        )


def weight(law: Law, labels: tuple[int, ...]) -> Fraction:
    return Fraction(law.weights[sum(labels)])


def enumerate_q(law: Law, r: list[Fraction]) -> Fraction:
    return sum((weight(law, labels) * chance for labels, chance in vectors(r)), Fraction(0))


def collected(law: Law, prior: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Probability of each label vector in a tuple: of those that pass, and a share of those that
    are refused.
    """
    rate = enumerate_q(law, [prior] * law.size)
    e = Fraction(law.refused)
    if e and abs(e - (1 - rate)) < Fraction(1, 1000):
        reject()  # tuples are nearly random groups
    return {
        labels: chance
        * (
            (1 - e) * weight(law, labels) / rate
            + (e * (1 - weight(law, labels)) / (1 - rate) if e else 0)
        )
        for labels, chance in vectors([prior] * law.size)
    }


def members(law: Law, drawn: list[Fraction]) -> list[Fraction]:
    return list(itertools.islice(itertools.cycle(drawn), law.size))


# -- the joint law --------------------------------------------------------------------------------


@given(plain_laws, st.lists(chances, min_size=1, max_size=6))
def test_q_its_complement_and_its_gradient_equal_enumeration(law, drawn):
    r = members(law, drawn)
    floats = np.array([float(p) for p in r])
    exact = enumerate_q(law, r)
    # Relative: nothing is lost where q or 1 - q is tiny. Fractions such as 1/3 are rounded on the
    # way in, and so is 1 - r, by at most half a unit in the last place of 1: where r is at most
    # 1/1000 from 1, 1e-13 of itself.
    for q, other in (
        law.passes(floats, 1 - floats),
        law.passes(*map(torch.from_numpy, (floats, 1 - floats))),
    ):
        assert float(q) == pytest.approx(float(exact), rel=CLOSE)
        assert float(other) == pytest.approx(float(1 - exact), rel=CLOSE)
    scores = torch.logit(torch.from_numpy(floats.clip(1e-3, 1 - 1e-3))).requires_grad_()
    p = [Fraction(own) for own in scores.detach().sigmoid().tolist()]
    q, _ = law.passes(scores.sigmoid(), (-scores).sigmoid())
    (gradient,) = torch.autograd.grad(q, scores)
    ends = [
        [enumerate_q(law, [*p[:i], Fraction(end), *p[i + 1 :]]) for end in (0, 1)]
        for i in range(law.size)
    ]
    slopes = [
        float((high - low) * own * (1 - own)) for (low, high), own in zip(ends, p, strict=True)
    ]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 51, 100])
@pytest.mark.parametrize("chance", [0.0, 1e-12, 0.3, 0.5, 1 - 1e-12, 1.0])
def test_equal_members_are_binomial_up_to_a_hundred(size, chance):
    law = Law.dominant(size)
    need = math.ceil(size / 2)
    equal = np.full(size, chance)
    q, other = law.passes(equal, 1 - equal)
    assert float(q) == pytest.approx(binom.sf(need - 1, size, chance), rel=1e-9)
    assert float(other) == pytest.approx(binom.cdf(need - 1, size, chance), rel=1e-9)


@given(laws, priors)
def test_tuples_have_the_density_q_over_z_against_independent_draws(law, prior):
    """The identity itself, for instances of three kinds that overlap in class: labels are drawn
    first, kinds after.
    """
    given_positive = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    given_negative = [Fraction(1, 10), Fraction(2, 10), Fraction(7, 10)]
    share = [
        prior * p + (1 - prior) * m for p, m in zip(given_positive, given_negative, strict=True)
    ]
    r = [prior * p / s for p, s in zip(given_positive, share, strict=True)]
    drawn = collected(law, prior)
    told = law.at(float(prior))
    for kinds in list(itertools.product(range(3), repeat=law.size))[:: max(1, 3 ** (law.size - 3))]:
        density = sum(
            chance
            * math.prod(
                (given_positive if y else given_negative)[x]
                for x, y in zip(kinds, labels, strict=True)
            )
            for labels, chance in drawn.items()
        )
        ratio = density / math.prod(share[x] for x in kinds)
        own = np.array([float(r[x]) for x in kinds])
        predicted = told.passes(own, 1 - own)[0] / law.rate(float(prior))
        assert float(predicted) == pytest.approx(float(ratio), rel=1e-8, abs=1e-14)


@given(laws, priors)
def test_information_equals_the_divergences_by_enumeration(law, prior):
    drawn = collected(law, prior)
    chances = vectors([prior] * law.size)
    joint = sum(
        float(p) * math.log(p / chance) for labels, chance in chances if (p := drawn[labels])
    )
    assert law.joint_information(float(prior)) == pytest.approx(joint, rel=1e-8, abs=1e-12)
    marginal = 0.0
    for position in range(law.size):
        a = sum(chance for labels, chance in drawn.items() if labels[position])
        for part, own in ((a, prior), (1 - a, 1 - prior)):
            marginal += float(part) * math.log(part / own) if part else 0.0
    assert law.marginal_information(float(prior)) == pytest.approx(marginal, rel=1e-6, abs=1e-12)
    assert (
        law.marginal_information(float(prior))
        <= law.joint_information(float(prior)) * (1 + 1e-9) + 1e-12
    )


# -- the labels of a tuple ------------------------------------------------------------------------


@given(laws, priors)
def test_counts_and_shares_equal_enumeration(law, prior):
    drawn = collected(law, prior)
    counts = [
        sum((p for labels, p in drawn.items() if sum(labels) == k), Fraction(0))
        for k in range(law.size + 1)
    ]
    assert law.counts(float(prior)) == pytest.approx(
        [float(p) for p in counts], rel=CLOSE, abs=1e-15
    )
    a = sum(p * Fraction(sum(labels), law.size) for labels, p in drawn.items())
    mix = law.coefficients(float(prior))
    assert (mix.a, mix.b) == pytest.approx((float(a), float(1 - a)), rel=CLOSE, abs=1e-15)
    steps = np.diff(law.weights)
    alone = not law.refused and ((steps >= 0).all() or (steps <= 0).all())
    # Relative where the weights only rise or only fall: the code must not subtract nearly equal
    # numbers.
    assert mix.denominator == pytest.approx(float(a - prior), rel=CLOSE, abs=0 if alone else 1e-13)


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
    st.floats(0.05, 0.95),
    st.lists(st.floats(-2, 2), min_size=6, max_size=6),
)
def test_two_sets_of_singles_give_the_risk_at_a_third_prior(prior, share, target, drawn):
    """By enumeration of three points with random losses, as in UU learning (Lu et al., 2019) and,
    at share 1, PU.
    """
    if abs(share - prior) < 0.02:
        reject()
    odds = prior * (1 - share), (1 - prior) * share
    law = Law(tuple(weight / max(odds) for weight in odds))
    losses = np.reshape(drawn, (2, 3))  # l(g, +1) and l(g, -1) of each point
    assert law.coefficients(prior).a == pytest.approx(share, abs=1e-12)
    # densities of the classes
    positive = np.array([0.5, 0.3, 0.2])
    negative = np.array([0.1, 0.2, 0.7])
    sets = [losses @ (s * positive + (1 - s) * negative) for s in (share, prior)]
    expected = target * losses[0] @ positive + (1 - target) * losses[1] @ negative
    assert law.risk_weights(prior, target) @ np.concatenate(sets) == pytest.approx(
        expected, abs=1e-9
    )


@pytest.mark.parametrize(
    "law", [Law.exactly(3, 1), Law.similar(2).broken(0.1), Law((0.2, 0.9, 0.4, 0.4))]
)
def test_drawn_labels_follow_the_law(law):
    drawn = law.draw(0.4, 20_000, Stream(1, "test"))
    assert drawn.dtype == np.int8 and set(np.unique(drawn)) == {-1, 1}
    expected = collected(law, Fraction(2, 5))
    places = np.unique((drawn > 0) @ (2 ** np.arange(law.size)[::-1]), return_counts=True)
    assert [list(expected.values())[place] > 0 for place in places[0]] == [True] * len(places[0])
    positive = [float(p) for p in expected.values() if p]
    assert len(positive) == len(places[1])
    assert chisquare(places[1], 20_000 * np.array(positive) / sum(positive)).pvalue > 1e-4


@given(st.integers(1, 60), priors)
def test_coefficients_are_as_lemma_6_writes_them_for_longer_tuples(size, prior):
    p = prior
    q = 1 - prior
    most = size // 2
    total = sum(math.comb(size, k) * p ** (size - k) * q**k for k in range(most + 1))
    a = sum(math.comb(size - 1, k) * p ** (size - k) * q**k for k in range(most + 1)) / total
    found = Law.dominant(size).coefficients(float(p))
    assert (found.a, found.b) == pytest.approx((float(a), float(1 - a)), rel=1e-8, abs=1e-15)
    assert found.denominator == pytest.approx(float(a - p), rel=1e-8)
    # Lu et al. (2018), Theorem 4, with class priors theta = a and theta' = pi_+
    theta = a
    apart = a - p
    expected = (
        (1 - p) * p / apart,
        -p * (1 - p) / apart,
        -(1 - theta) * p / apart,
        theta * (1 - p) / apart,
    )
    assert Law.dominant(size).risk_weights(float(p)) == pytest.approx(
        tuple(map(float, expected)), rel=1e-8, abs=1e-15
    )


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
    law = data.draw(
        st.sampled_from([Law.dominant(size), Law.at_least(size, size), Law.exactly(size, 1)])
    )
    counts = np.zeros(size + 1)
    passing = 0.0
    wrong = 0.0
    for labels, chance in vectors([Fraction(prior)] * size):
        passes, passing = weight(law, labels), passing + float(chance * weight(law, labels))
        for answers in itertools.product((1, 0), repeat=size):
            yes = [rate if label else false_rate for label in labels]
            both = float(chance) * math.prod(
                y if answer else 1 - y for y, answer in zip(yes, answers, strict=True)
            )
            wrong += both * (passes != weight(law, answers))
            counts[sum(answers)] += both * float(passes)
    unlabeled = prior * rate + (1 - prior) * false_rate
    assert law.bag_risk(counts / passing, unlabeled, prior) == pytest.approx(wrong, abs=1e-9)
    if abs(law.coefficients(prior).denominator) > 1e-3:
        error = prior * (1 - rate) + (1 - prior) * false_rate
        members = counts / passing @ np.arange(size + 1) / size
        assert law.error(members, unlabeled, prior) == pytest.approx(error, abs=1e-9)


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
    assert (found.what, found.centre) == (
        expected[0],
        pytest.approx(expected[1]) if expected[1] is not None else None,
    )


@given(
    st.one_of(plain_laws, st.sampled_from([law for law, _ in KNOWN if not law.refused])),
    st.integers(0, 99),
)
def test_what_is_called_unidentified_fits_exactly(law, seed):
    """Another r' gives the same q up to a factor, wherever it stays between 0 and 1, and elsewhere
    as a polynomial.
    """
    found = law.identifies()
    r = np.random.default_rng(seed).random((9, law.size))
    c = found.centre
    for other in {
        "all": [],
        "mirror": [2 * (c or 0) - r],
        "family": [(c or 0) + 0.7 * (r - (c or 0))],
    }[found.what]:
        ratio = law.passes(other, 1 - other)[0] / law.passes(r, 1 - r)[0]
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

    def mismatch(unknown):
        low, high = 1 / (1 + np.exp(-np.clip(unknown[:2], -30, 30)))
        pairs = (
            (mixtures * (b - a) + a, scale)
            for a, b, scale in ((u, v, np.exp(unknown[2])), (low, high, 1.0))
        )
        ours, others = (scale * law.passes(r, 1 - r)[0] for r, scale in pairs)
        return ours - others

    reached = False
    for start in itertools.product((-2.0, 0.0, 2.0), (-2.0, 0.0, 2.0), (-0.5, 0.5)):
        found = least_squares(mismatch, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        if found.cost < 1e-22:
            reached = True
            assert found.x[2] == pytest.approx(0, abs=1e-4)
            assert 1 / (1 + np.exp(-found.x[:2])) == pytest.approx([u, v], abs=1e-4)
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


def test_the_table_of_information_in_the_documents():
    page = (REPOSITORY / "docs" / "explanation" / "bags.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (0\.\d) \| (.*) \|$", page, re.M)
    assert [prior for prior, _ in rows] == ["0.4", "0.5", "0.6"]
    for prior, cells in rows:
        pairs = [
            (law.joint_information(float(prior)), law.marginal_information(float(prior)))
            for law in map(Law.dominant, range(2, 8))
        ]
        assert cells.split(" | ") == [
            f"{joint:.3f} ({100 * marginal / joint:.0f} %)" for joint, marginal in pairs
        ]


def test_the_table_of_laws_in_the_documents():
    page = (REPOSITORY / "docs" / "explanation" / "laws.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|[^|]*\| `(Law[^`]*)` \|[^|]*\| (\S+) \| (.*) \| (.*) \|$", page, re.M)
    assert len(rows) >= 9
    for code, share, nats, identified in rows:
        law = eval(code, {"Law": Law})
        joint = law.joint_information(0.4)
        marginal = law.marginal_information(0.4)
        assert (share, nats) == (
            f"{law.coefficients(0.4).a:.2f}",
            f"{joint:.3f} ({100 * marginal / joint:.0f} %)",
        )
        what = law.identifies().what
        if law.refused:
            assert identified == ("with the share" if what == "all" else "not with the share")
        else:
            assert identified == {"all": "yes", "mirror": "up to swapping", "family": "no"}[what]


def test_the_law_of_counts_is_a_law():
    r = np.random.default_rng(0).random((7, 4))
    assert count_law(r, 1 - r).sum(axis=-1) == pytest.approx(np.ones(7))
