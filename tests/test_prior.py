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
    members = np.where(labels, prior * p[pattern], (1 - prior) * n[pattern]).prod(axis=1)
    return float(np.array(law.at(prior).weights)[labels.sum(axis=1)] @ members) / law.rate(prior)


def expected_counts(law, prior, n=1000, n_unlabeled=1000, p=P, other=N):
    """The counts that there are on average."""
    size = law.size
    patterns = np.array(list(product(range(BINS), repeat=size)))
    chances = np.array([chance(law, pattern, prior, p, other) for pattern in patterns])
    assert chances.sum() == pytest.approx(1)
    kinds, which = np.unique(np.sort(patterns, axis=1), axis=0, return_inverse=True)
    numbers = n * np.bincount(which.ravel(), chances)
    return Counts([kinds], [numbers], [law], n_unlabeled * (prior * p + (1 - prior) * other))


@pytest.mark.parametrize(
    "law", [DOMINANT[2], DOMINANT[3], Law((0, 1, 0, 0.3)), DOMINANT[3].broken(0.2)]
)
def test_the_likelihood_is_that_of_all_label_vectors(law):
    counts = expected_counts(law, 0.4)
    p = np.array([0.2, 0.2, 0.6])
    n = np.array([0.5, 0.4, 0.1])
    prior = 0.3
    logs = [np.log(chance(law, pattern, prior, p, n)) for pattern in counts.patterns[0]]
    by_hand = counts.numbers[0] @ logs + counts.unlabeled @ np.log(prior * p + (1 - prior) * n)
    found, _ = log_likelihood(
        counts, np.array([prior]), np.array([[p, n]]), [collected([law], np.array([prior]))]
    )
    assert found[0] == pytest.approx(by_hand)


@pytest.mark.parametrize("law", [DOMINANT[2], DOMINANT[3], ONE])
@pytest.mark.parametrize("prior", [0.1, 0.35, 0.7])
def test_em_climbs_to_the_maximum_of_another_optimiser(law, prior):
    counts = expected_counts(law, 0.4)
    priors, starts = starting_laws(counts, np.array([prior]))
    weights = [collected([law] * len(priors), priors)]
    laws = starts
    values = [log_likelihood(counts, priors, laws, weights)[0]]
    for _ in range(3):
        laws = log_likelihood(counts, priors, laws, weights)[1]
        values.append(log_likelihood(counts, priors, laws, weights)[0])
    assert (np.diff(values, axis=0) > -1e-9).all()

    def negative(x):
        own = softmax(x.reshape(1, 2, BINS), axis=2)
        return -log_likelihood(counts, priors[:1], own, [weights[0][:1]])[0][0]

    generator = np.random.default_rng(0)
    best = max(-minimize(negative, generator.standard_normal(2 * BINS)).fun for _ in range(8))
    assert maximise(counts, priors, starts, weights)[0].max() > best - 0.02


@pytest.mark.parametrize("prior", [0.3, 0.5])
@pytest.mark.parametrize("law", [DOMINANT[2], DOMINANT[3], DOMINANT[5], DOMINANT[3].broken(0.1)])
def test_average_counts_have_the_prior_within_the_interval(law, prior):
    found = profile(expected_counts(law, prior, 3000, 3000))
    assert found.verdict == "known"
    assert found.low < prior < found.high
    assert found.prior == pytest.approx(prior, abs=0.05)
    assert found.deviance.min() == 0


def test_sizes_together_tell_more_than_each():
    pairs, triples = (expected_counts(DOMINANT[size], 0.4) for size in (2, 3))
    both = Counts(
        pairs.patterns + triples.patterns,
        pairs.numbers + triples.numbers,
        pairs.laws + triples.laws,
        pairs.unlabeled,
    )
    widths = [profile(counts).high - profile(counts).low for counts in (both, pairs, triples)]
    assert widths[0] < min(widths[1:])


def test_a_symmetric_law_has_the_larger_class_and_its_mirror_image():
    found = profile(expected_counts(Law.similar(2), 0.3, 3000, 3000))
    assert found.symmetric and found.low < 0.7 < found.high and found.priors.min() >= 0.5 - 1e-9
    assert found.fits(0.3) and found.fits(0.7) and found.mirrored() is found


@pytest.mark.parametrize("law", [DOMINANT[1], Law.exactly(2, 2), Law((0, 1 / 3, 2 / 3, 1))])
def test_a_law_that_leaves_the_prior_free_gives_none(law):
    """Single rows, all-positive tuples, and weights that rise by equal steps."""
    found = profile(expected_counts(law, 0.4))
    assert (found.verdict, found.low, found.high) == ("not known", 0.0, 1.0)


def test_bins_that_say_nothing_give_no_prior():
    found = profile(expected_counts(DOMINANT[3], 0.4, p=N))
    assert (found.verdict, found.low, found.high) == ("not known", 0.0, 1.0)
    assert found.gate < 1e-3


def test_little_data_bound_the_prior_or_say_nothing():
    assert profile(expected_counts(DOMINANT[2], 0.3, 150, 150)).verdict != "known"
    with pytest.raises(UserError, match="level"):
        profile(expected_counts(DOMINANT[2], 0.3), level=95)


@pytest.mark.parametrize("law", [DOMINANT[2], DOMINANT[3]])
def test_a_sample_that_does_not_tell_the_prior_says_how_large_a_one_does(law):
    """On average counts, which have no noise: about the double of the least size that does."""
    small = profile(expected_counts(law, 0.4, 200, 400))
    tuples, unlabeled = small.enough
    assert unlabeled == pytest.approx(2 * tuples, rel=0.1)
    known = [profile(expected_counts(law, 0.4, n, 2 * n)).known for n in (200, tuples // 4, tuples)]
    assert known == [False, False, True]


def test_how_many_tuples_tell_the_prior_is_not_said_where_nothing_tells_it():
    for law, p in ((DOMINANT[2], N), (DOMINANT[1], P), (Law.exactly(2, 2), P)):
        nothing = profile(expected_counts(law, 0.4, p=p))
        assert nothing.verdict == "not known" and nothing.enough is None


def gaussians(law, prior, n, seed):
    """Features of two classes, 3 standard deviations apart, as a sample of collected groups."""
    stream = Stream(seed, "gaussians")
    generator = np.random.default_rng(seed)
    labels = np.concatenate([law.draw(prior, n, stream).ravel() > 0, generator.random(n) < prior])
    features = generator.standard_normal((len(labels), 3)) + np.where(labels, 1.5, -1.5)[
        :, None
    ] * [1, 0, 0]
    places = np.arange(n * law.size).reshape(n, law.size)
    return features, TupleData(places, np.arange(n * law.size, len(labels))), law


@pytest.mark.parametrize(("law", "prior"), [(DOMINANT[2], 0.4), (DOMINANT[3], 0.4), (ONE, 1 / 3)])
def test_from_rows_to_the_prior(law, prior):
    """The share of positives in the last law is the prior, so that the mean of members says
    nothing.
    """
    rows, sample, law = gaussians(law, prior, 600, 1)
    found = estimate_prior(rows, sample, law, 0)
    assert found.known and found.low < prior < found.high
    assert found == estimate_prior(rows, sample, lambda size: law, 0)
    assert found.n == found.n_unlabeled == 600


def test_pictures_of_bytes_are_rows_too():
    rows, sample, law = gaussians(DOMINANT[3], 0.4, 600, 1)
    rows = np.clip(rows * 20 + 128, 0, 255).astype(np.uint8).reshape(-1, 3, 1)
    assert estimate_prior(rows, sample, law, "trial").fits(0.4)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "prior"), [(DOMINANT[2], 0.4), (DOMINANT[3], 0.5), (ONE, 1 / 3)])
def test_the_interval_covers(law, prior):
    """Of an interval that covers in 95 %, 8 or fewer of 12 cover in one of 500 trials."""
    found = [estimate_prior(*gaussians(law, prior, 600, seed), seed) for seed in range(12)]
    assert sum(one.fits(prior) for one in found) > 8


def test_noise_and_a_handful_of_tuples_are_not_known():
    rows, sample, law = gaussians(DOMINANT[2], 0.4, 300, 0)
    noise = np.random.default_rng(1).standard_normal(rows.shape)
    assert estimate_prior(noise, sample, law).verdict == "not known"
    assert estimate_prior(np.zeros_like(rows), sample, law).verdict == "not known"
    assert estimate_prior(*gaussians(DOMINANT[2], 0.4, 4, 0)).verdict == "not known"


@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.csr_matrix, lambda rows: rows.reshape(-1, 3, 1)]
)
def test_repeated_unlabeled_rows_count_once(kind):
    """Each row four times is the same sample as each once, and a bootstrap is that of its different
    rows.
    """
    rows, sample, law = gaussians(DOMINANT[3], 0.4, 400, 3)
    once = estimate_prior(kind(rows), sample, law)
    unlabeled = np.arange(len(rows), len(rows) + 1600)
    copies = np.concatenate([rows, np.repeat(rows[sample.unlabeled], 4, axis=0)])
    with pytest.warns(UserWarning, match="400 different rows"):
        assert estimate_prior(kind(copies), TupleData(sample.tuples, unlabeled), law) == once


def test_folds_are_drawn_again_where_one_draw_passes_narrowly(monkeypatch):
    """The profile of several draws is that of their mean, and the interval is wider than a clear
    one's.
    """
    drawn = []
    monkeypatch.setattr(
        prior_module, "rank", lambda sample, seed: drawn.append(seed) or rank(sample, seed)
    )
    for n, times in ((150, DRAWS), (1200, 1)):
        rows, sample, law = gaussians(DOMINANT[2], 0.5, n, 0)
        drawn.clear()
        found = estimate_prior(rows, sample, law, 0)
        assert len(drawn) == times == len(set(drawn)) and (GATE < found.gate < NARROW * GATE) == (
            times > 1
        )
        whole = Sample.of(rows, sample, lambda size, law=law: law)
        assert found == profile(*(rank(whole, seed) for seed in drawn))
        assert found.inflation > INFLATION if times > 1 else found.inflation == INFLATION


def test_the_interval_is_widest_at_the_gate():
    """Counts of ever more tuples pass it ever more clearly."""
    found = [profile(expected_counts(DOMINANT[2], 0.5, n, n)) for n in (120, 200, 400, 1500)]
    inflations = [one.inflation for one in found]
    assert inflations == sorted(inflations, reverse=True) and inflations[-1] == INFLATION
    assert all(INFLATION <= one <= SHARED for one in inflations)


@pytest.mark.slow
def test_intervals_cover_with_repeated_rows():
    """Of intervals that cover in 95 %, 8 or fewer of 12 cover in one of 500 trials."""
    found = []
    for seed in range(12):
        rows, sample, law = gaussians(DOMINANT[3], 0.5, 400, seed)
        drawn = np.random.default_rng(seed).choice(sample.unlabeled[:200], 800)
        with pytest.warns(UserWarning, match="different rows"):
            found.append(estimate_prior(rows, TupleData(sample.tuples, drawn), law, seed))
    assert sum(one.fits(0.5) for one in found) > 8


@pytest.mark.parametrize("size", [2, 3])
def test_a_shift_of_tuples_fits_at_no_prior(size):
    """The law's own samples fit; of tuples that are moved along a feature without a class none
    does.
    """
    rows, sample, law = gaussians(DOMINANT[size], 0.5, 800, 1)
    assert 0 < estimate_prior(rows, sample, law).misfit < 1
    rows[sample.tuples.ravel(), 1] += 3.0
    found = estimate_prior(rows, sample, law)
    assert (found.verdict, found.low, found.high) == ("does not fit", 0.0, 1.0)
    (best, area), *_ = columns_apart(rows, sample.tuples.ravel(), sample.unlabeled)
    assert best == 1 and area > 0.95
    assert columns_apart(sparse.csr_matrix(rows), sample.tuples.ravel(), sample.unlabeled) == []
