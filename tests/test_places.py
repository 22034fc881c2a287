"""Groups from places that differ, told by the scores and columns of their members."""

import numpy as np
import pytest
from placed_groups import labels_of_groups
from scipy.stats import betabinom, binom

from mdpu import places
from mdpu.data import TupleData
from mdpu.law import Law
from mdpu.scores import estimated_risk

PRIOR = 0.4
N = 400
UNLABELED = 600
APART = 2.5  # of the mean scores of both classes


def drawn(size, variance, seed, prior=PRIOR, broken=0.0):
    """Scores of tuples from places and of unlabeled rows, their sample, and the true error rate."""
    rng = np.random.default_rng(seed)
    members = labels_of_groups(rng, N, size, 60 * N, prior, variance, broken)
    unlabeled = rng.random(UNLABELED) < prior
    labels = np.append(members.ravel(), unlabeled)
    scores = rng.normal(size=len(labels)) + APART * (labels - 0.5)

    row = np.arange(len(labels))
    tuples = row[: N * size].reshape(N, size)
    sample = TupleData(tuples, row[N * size :])
    is_wrong = (scores > 0) != labels
    return scores, sample, is_wrong[sample.unlabeled].mean()


def judged(scores, sample, prior=PRIOR, rows=None, law_of=Law.dominant):
    """What is said of scores, at a given prior, and the error rate by the law."""
    error = estimated_risk(scores > 0, sample, prior, law_of, 0.95)
    held = places.HeldOut(scores, sample, law_of, error, prior)
    return places.judge_places(held, rows), error


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_the_law_of_places_is_that_of_beta_binomial_counts(size):
    law = places.placed(Law.dominant(size), 0.3, 0.2)
    number = np.arange(size + 1)
    is_kept = 2 * number >= size
    kept = is_kept * betabinom.pmf(number, size, 4 * 0.3, 4 * 0.7)
    expected = kept / kept.sum()
    np.testing.assert_allclose(law.counts(0.3), expected, atol=1e-12)


def test_places_without_variance_are_the_law_itself():
    law = Law.dominant(3).broken(0.1)
    assert places.placed(law, 0.4, 0.0) == law.at(0.4)
    nearly = places.placed(law, 0.4, 1e-6)
    np.testing.assert_allclose(nearly.counts(0.4), law.counts(0.4), atol=1e-4)


def test_broken_tuples_are_never_more_than_random_groups():
    law = places.with_broken(Law.dominant(2), 0.9, 0.5)  # one random pair of 100 breaks it
    assert law.counts(0.9)[0] <= binom.pmf(0, 2, 0.9)


def test_draws_by_the_law_are_seldom_taken_for_places():
    """At most 5 % of samples may be; 5 of 30 or more have then a chance of 2 %."""
    said = 0
    for seed in range(30):
        scores, sample, _ = drawn(2 + seed % 3, 0.0, seed)
        verdict, _ = judged(scores, sample)
        said += verdict.shares_differ
    assert said <= 4


@pytest.mark.parametrize("size", [2, 3, 5])
def test_places_are_found_and_the_interval_moves_to_the_truth(size):
    scores, sample, truth = drawn(size, 0.5, seed=size)
    verdict, by_law = judged(scores, sample)
    assert verdict.shares_differ
    assert verdict.variance >= 0.2
    assert by_law.high < truth
    assert verdict.error.low <= truth <= verdict.error.high


def test_the_dominant_class_may_be_the_negative_one():
    scores, sample, truth = drawn(3, 0.5, seed=1)

    def law_of(size):
        return Law.between(size, 0, size // 2)

    verdict, by_law = judged(-scores, sample, 1 - PRIOR, law_of=law_of)
    assert verdict.shares_differ
    assert by_law.high < truth <= verdict.error.high


def test_tuples_of_several_sizes_are_judged_together():
    scores, quintuples, truth = drawn(5, 0.5, seed=2)
    more, triples, _ = drawn(3, 0.5, seed=3)
    first = len(scores)
    padded = np.full((N, 5), -1)
    padded[:, :3] = triples.tuples + first
    tuples = np.concatenate([quintuples.tuples, padded])
    unlabeled = np.append(quintuples.unlabeled, triples.unlabeled + first)
    both = TupleData(tuples, unlabeled)

    verdict, _ = judged(np.append(scores, more), both)

    assert verdict.shares_differ
    assert verdict.error.low <= truth <= verdict.error.high


def test_a_column_of_the_place_is_found_and_others_are_not():
    scores, sample, _ = drawn(3, 0.0, seed=4)
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(len(scores), 6))
    verdict, _ = judged(scores, sample, rows=rows)
    assert not verdict.columns_differ
    assert verdict.columns == ()
    rows[: 3 * N, 2] += np.repeat(rng.normal(size=N), 3)
    rows[::50, 4] = np.nan
    verdict, _ = judged(scores, sample, rows=rows)
    assert verdict.columns_differ
    assert verdict.columns[0] == 2


def test_columns_of_the_class_are_not_alike():
    """Classes of members go along negatively, so a column that tells them is not that of a
    place.
    """
    for seed in range(5):
        scores, sample, _ = drawn(3, 0.0, seed)
        noise = np.random.default_rng(seed).normal(size=(3, len(scores)))
        columns = noise + scores
        verdict, _ = judged(scores, sample, rows=columns.T)
        assert not verdict.columns_differ


def test_where_the_law_itself_makes_members_alike_columns_say_nothing():
    scores, sample, _ = drawn(2, 0.0, seed=5)
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(len(scores), 2))
    shared = rng.normal(size=(N, 2))
    rows[sample.tuples] += shared[:, None]

    verdict, _ = judged(scores, sample, rows=rows, law_of=Law.similar)

    assert verdict.chance == 1
    assert verdict.columns == ()


def test_the_interval_with_broken_tuples_holds_the_truth():
    scores, sample, truth = drawn(3, 0.0, seed=6, broken=0.15)
    by_law = estimated_risk(scores > 0, sample, PRIOR, Law.dominant, 0.95)
    held = places.HeldOut(scores, sample, Law.dominant, by_law, PRIOR)
    allows = places.error_with_broken(held)
    assert allows.value < by_law.value
    assert allows.low <= truth <= allows.high


def test_many_tuples_are_judged_by_a_part(monkeypatch):
    scores, sample, truth = drawn(3, 0.5, seed=7)
    monkeypatch.setattr(places, "MOST_TUPLES", 300)
    verdict, _ = judged(scores, sample)
    assert verdict.shares_differ
    assert verdict.error.low <= truth <= verdict.error.high


def test_a_model_that_tells_no_rows_apart_tells_no_places():
    """Equal scores have no order, and those of another fold lie elsewhere for whole tuples."""
    scores, sample, _ = drawn(2, 0.0, seed=8)
    folds = np.arange(len(scores)) // 2 % 5
    error = estimated_risk(scores > 0, sample, PRIOR, Law.dominant, 0.95)
    equal = np.ones(len(scores))
    for values in (equal, 10 * folds, scores + 10 * folds):
        held = places.HeldOut(values, sample, Law.dominant, error, PRIOR, folds=folds)
        verdict = places.judge_places(held, None)
        assert not verdict.shares_differ
        assert not verdict.columns_differ


def test_broken_tuples_are_the_share_that_is_asked_for():
    law = places.with_broken(Law.dominant(3), 0.4, 0.1)
    assert law.counts(0.4)[:2].sum() == pytest.approx(0.1)
