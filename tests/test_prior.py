"""The latent-class profile: its likelihood by enumeration, its maximum by another optimiser, and
what it says.
"""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax

from mdpu import prior as prior_module
from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.prior import (
    BINS,
    DRAWS,
    GATE,
    INFLATION,
    NARROW,
    SHARED,
    Counts,
    collected,
    columns_apart,
    estimate_prior,
    log_likelihood,
    maximise,
    profile,
    rank,
    starting_laws,
)
from mdpu.randomness import Stream
from mdpu.sample import Sample

DOMINANT = {size: Law.dominant(size) for size in (1, 2, 3, 5)}
ONE = Law.exactly(3, 1)
P = np.array([0.1, 0.3, 0.6])
N = np.array([0.55, 0.3, 0.15])


def chance(law, pattern, prior, p, n):
    """Probability of the bins of a collected tuple, over all label vectors of its members."""
    labels = np.array(list(product([0, 1], repeat=len(pattern))))
    members = np.where(labels, prior * p[pattern], (1 - prior) * n[pattern])
    weights = np.array(law.at(prior).weights)[labels.sum(axis=1)]
    return float(weights @ members.prod(axis=1)) / law.rate(prior)


def expected_counts(law, prior, n=1000, n_unlabeled=1000, p=P):
    """The counts that there are on average."""
    patterns = np.array(list(product(range(BINS), repeat=law.size)))
    chances = [chance(law, pattern, prior, p, N) for pattern in patterns]
    assert sum(chances) == pytest.approx(1)

    in_order = np.sort(patterns, axis=1)
    kinds, which = np.unique(in_order, axis=0, return_inverse=True)
    numbers = n * np.bincount(which.ravel(), chances)
    unlabeled = n_unlabeled * (prior * p + (1 - prior) * N)
    return Counts([kinds], [numbers], [law], unlabeled)


def verdict_and_interval(estimate):
    return estimate.verdict, estimate.low, estimate.high


@pytest.mark.parametrize(
    "law",
    [
        DOMINANT[2],
        DOMINANT[3],
        Law((0, 1, 0, 0.3)),
        DOMINANT[3].broken(0.2),
    ],
)
def test_the_likelihood_is_that_of_all_label_vectors(law):
    counts = expected_counts(law, 0.4)
    p = np.array([0.2, 0.2, 0.6])
    n = np.array([0.5, 0.4, 0.1])
    prior = 0.3
    priors = np.array([prior])
    weights = [collected([law], priors)]

    values, _ = log_likelihood(counts, priors, np.array([[p, n]]), weights)

    of_patterns = [np.log(chance(law, pattern, prior, p, n)) for pattern in counts.patterns[0]]
    of_bins = np.log(prior * p + (1 - prior) * n)
    expected = counts.numbers[0] @ of_patterns + counts.unlabeled @ of_bins
    assert values[0] == pytest.approx(expected)


def test_priors_that_are_taken_in_parts_have_the_same_likelihood(monkeypatch):
    law = DOMINANT[3]
    counts = expected_counts(law, 0.4)
    priors, starts = starting_laws(counts, np.linspace(0.2, 0.6, 7))
    weights = [collected([law] * len(priors), priors)]
    whole = log_likelihood(counts, priors, starts, weights)
    monkeypatch.setattr(prior_module, "AT_ONCE", 500)
    for part, expected in zip(log_likelihood(counts, priors, starts, weights), whole, strict=True):
        np.testing.assert_allclose(part, expected)


@pytest.mark.parametrize("law", [DOMINANT[2], DOMINANT[3], ONE])
@pytest.mark.parametrize("prior", [0.1, 0.35, 0.7])
def test_em_climbs_to_the_maximum_of_another_optimiser(law, prior):
    counts = expected_counts(law, 0.4)
    priors, starts = starting_laws(counts, np.array([prior]))
    weights = [collected([law] * len(priors), priors)]

    laws = starts
    values = []
    for _ in range(4):
        value, laws = log_likelihood(counts, priors, laws, weights)
        values.append(value)
    assert (np.diff(values, axis=0) > -1e-9).all()

    def negative(x):
        laws = softmax(x.reshape(1, 2, BINS), axis=2)
        value, _ = log_likelihood(counts, priors[:1], laws, [weights[0][:1]])
        return -value[0]

    generator = np.random.default_rng(0)
    fits = [minimize(negative, generator.standard_normal(2 * BINS)) for _ in range(8)]
    maxima, *_ = maximise(counts, priors, starts, weights)
    assert maxima.max() > -min(fit.fun for fit in fits) - 0.02


@pytest.mark.parametrize("prior", [0.3, 0.5])
@pytest.mark.parametrize("law", [DOMINANT[2], DOMINANT[3], DOMINANT[5], DOMINANT[3].broken(0.1)])
def test_average_counts_have_the_prior_within_the_interval(law, prior):
    found = profile(expected_counts(law, prior, 3000, 3000))
    assert found.verdict == "known"
    assert found.low < prior < found.high
    assert found.prior == pytest.approx(prior, abs=0.05)
    assert found.deviance.min() == 0


def test_sizes_together_tell_more_than_each():
    pairs = expected_counts(DOMINANT[2], 0.4)
    triples = expected_counts(DOMINANT[3], 0.4)
    both = Counts(
        pairs.patterns + triples.patterns,
        pairs.numbers + triples.numbers,
        pairs.laws + triples.laws,
        pairs.unlabeled,
    )

    def width(counts):
        estimate = profile(counts)
        return estimate.high - estimate.low

    assert width(both) < min(width(pairs), width(triples))


def test_a_symmetric_law_has_the_larger_class_and_its_mirror_image():
    found = profile(expected_counts(Law.similar(2), 0.3, 3000, 3000))
    assert found.symmetric
    assert found.low < 0.7 < found.high
    assert found.priors.min() >= 0.5 - 1e-9
    assert found.fits(0.3)
    assert found.fits(0.7)
    assert found.mirrored() is found


@pytest.mark.parametrize("law", [DOMINANT[1], Law.exactly(2, 2), Law((0, 1 / 3, 2 / 3, 1))])
def test_a_law_that_leaves_the_prior_free_gives_none(law):
    """Single rows, all-positive tuples, and weights that rise by equal steps."""
    found = profile(expected_counts(law, 0.4))
    assert verdict_and_interval(found) == ("not known", 0.0, 1.0)


def test_bins_that_say_nothing_give_no_prior():
    found = profile(expected_counts(DOMINANT[3], 0.4, p=N))
    assert verdict_and_interval(found) == ("not known", 0.0, 1.0)
    assert found.gate < 1e-3


def test_little_data_bound_the_prior_or_say_nothing():
    assert profile(expected_counts(DOMINANT[2], 0.3, 150, 150)).verdict != "known"
    with pytest.raises(UserError, match="level"):
        estimate_prior(*gaussians(DOMINANT[2], 0.3, 30, 0), level=95)


@pytest.mark.parametrize("law", [DOMINANT[2], DOMINANT[3]])
def test_a_sample_that_does_not_tell_the_prior_says_how_large_a_one_does(law):
    """On average counts, which have no noise: about the double of the least size that does."""

    def profile_of(n):
        return profile(expected_counts(law, 0.4, n, 2 * n))

    small = profile_of(200)
    assert not small.known

    tuples, unlabeled = small.enough
    assert unlabeled == pytest.approx(2 * tuples, rel=0.1)
    assert not profile_of(tuples // 4).known
    assert profile_of(tuples).known


@pytest.mark.parametrize(("law", "p"), [(DOMINANT[2], N), (DOMINANT[1], P), (Law.exactly(2, 2), P)])
def test_how_many_tuples_tell_the_prior_is_not_said_where_nothing_tells_it(law, p):
    nothing = profile(expected_counts(law, 0.4, p=p))
    assert nothing.verdict == "not known"
    assert nothing.enough is None


def gaussians(law, prior, n, seed):
    """Features of two classes, 3 standard deviations apart, as a sample of collected groups."""
    generator = np.random.default_rng(seed)
    of_members = law.draw(prior, n, Stream(seed, "gaussians")).ravel() > 0
    of_unlabeled = generator.random(n) < prior
    is_positive = np.concatenate([of_members, of_unlabeled])
    rows = generator.standard_normal((len(is_positive), 3))
    rows[:, 0] += np.where(is_positive, 1.5, -1.5)

    members, unlabeled = np.split(np.arange(len(rows)), [n * law.size])
    return rows, TupleData(members.reshape(n, law.size), unlabeled), law


@pytest.mark.parametrize(("law", "prior"), [(DOMINANT[2], 0.4), (DOMINANT[3], 0.4), (ONE, 1 / 3)])
def test_from_rows_to_the_prior(law, prior):
    """The share of positives in the last law is the prior, so that the mean of members says
    nothing.
    """
    rows, sample, law = gaussians(law, prior, 600, 1)
    found = estimate_prior(rows, sample, law, 0)
    assert found.known
    assert found.low < prior < found.high
    assert found.n == 600
    assert found.n_unlabeled == 600
    assert found == estimate_prior(rows, sample, lambda size: law, 0)


def test_pictures_of_bytes_are_rows_too():
    rows, sample, law = gaussians(DOMINANT[3], 0.4, 600, 1)
    rows = np.clip(rows * 20 + 128, 0, 255).astype(np.uint8).reshape(-1, 3, 1)
    assert estimate_prior(rows, sample, law, "trial").fits(0.4)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "prior"), [(DOMINANT[2], 0.4), (DOMINANT[3], 0.5), (ONE, 1 / 3)])
def test_the_interval_covers(law, prior):
    """Of an interval that covers in 95 %, 8 or fewer of 12 cover in one of 500 trials."""
    covered = []
    for seed in range(12):
        estimate = estimate_prior(*gaussians(law, prior, 600, seed), seed)
        covered.append(estimate.fits(prior))
    assert sum(covered) > 8


def test_noise_and_a_handful_of_tuples_are_not_known():
    rows, sample, law = gaussians(DOMINANT[2], 0.4, 300, 0)
    noise = np.random.default_rng(1).standard_normal(rows.shape)
    of_noise = estimate_prior(noise, sample, law)
    of_zeros = estimate_prior(np.zeros_like(rows), sample, law)
    of_four = estimate_prior(*gaussians(law, 0.4, 4, 0))

    assert of_noise.verdict == "not known"
    assert of_zeros.verdict == "not known"
    assert of_four.verdict == "not known"


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(np.asarray, id="rows"),
        pytest.param(sparse.csr_matrix, id="sparse"),
        pytest.param(lambda rows: rows.reshape(-1, 3, 1), id="pictures"),
    ],
)
def test_repeated_unlabeled_rows_count_once(kind):
    """Each row four times is the same sample as each once, and a bootstrap is that of its different
    rows.
    """
    rows, sample, law = gaussians(DOMINANT[3], 0.4, 400, 3)
    copies = np.repeat(rows[sample.unlabeled], 4, axis=0)
    places = len(rows) + np.arange(len(copies))
    repeated = TupleData(sample.tuples, places)

    once = estimate_prior(kind(rows), sample, law)
    with pytest.warns(UserWarning, match="400 different rows"):
        four_times = estimate_prior(kind(np.concatenate([rows, copies])), repeated, law)

    assert four_times == once


@pytest.mark.parametrize(("n", "times"), [(150, DRAWS), (1200, 1)])
def test_folds_are_drawn_again_where_one_draw_passes_narrowly(n, times, monkeypatch):
    """The profile of several draws is that of their mean, and the interval is wider than a clear
    one's.
    """
    seeds = []

    def watched(sample, seed):
        seeds.append(seed)
        return rank(sample, seed)

    monkeypatch.setattr(prior_module, "rank", watched)
    rows, sample, law = gaussians(DOMINANT[2], 0.5, n, 0)
    found = estimate_prior(rows, sample, law, 0)

    whole = Sample.of(rows, sample, lambda size: law)
    draws = [rank(whole, seed) for seed in seeds]
    assert len(set(seeds)) == len(seeds) == times
    assert found == profile(*draws)
    if times > 1:
        assert GATE < found.gate < NARROW * GATE
        assert found.inflation > INFLATION
    else:
        assert found.gate >= NARROW * GATE
        assert found.inflation == INFLATION


def test_the_interval_is_widest_at_the_gate():
    """Counts of ever more tuples pass it ever more clearly."""
    inflations = []
    for n in (120, 200, 400, 1500):
        estimate = profile(expected_counts(DOMINANT[2], 0.5, n, n))
        inflations.append(estimate.inflation)
    assert inflations == sorted(inflations, reverse=True)
    assert inflations[0] <= SHARED
    assert inflations[-1] == INFLATION


@pytest.mark.slow
def test_intervals_cover_with_repeated_rows():
    """Of intervals that cover in 95 %, 8 or fewer of 12 cover in one of 500 trials."""
    covered = []
    for seed in range(12):
        rows, sample, law = gaussians(DOMINANT[3], 0.5, 400, seed)
        drawn = np.random.default_rng(seed).choice(sample.unlabeled[:200], 800)
        repeated = TupleData(sample.tuples, drawn)
        with pytest.warns(UserWarning, match="different rows"):
            estimate = estimate_prior(rows, repeated, law, seed)
        covered.append(estimate.fits(0.5))
    assert sum(covered) > 8


@pytest.mark.parametrize("size", [2, 3])
def test_a_shift_of_tuples_fits_at_no_prior(size):
    """The law's own samples fit; of tuples that are moved along a feature without a class none
    does.
    """
    rows, sample, law = gaussians(DOMINANT[size], 0.5, 800, 1)
    members = sample.tuples.ravel()
    fitting = estimate_prior(rows, sample, law)
    rows[members, 1] += 3.0
    shifted = estimate_prior(rows, sample, law)

    assert 0 < fitting.misfit < 1
    assert verdict_and_interval(shifted) == ("does not fit", 0.0, 1.0)

    (column, area), *_ = columns_apart(rows, members, sample.unlabeled)
    assert column == 1
    assert area > 0.95
    assert columns_apart(sparse.csr_matrix(rows), members, sample.unlabeled) == []
