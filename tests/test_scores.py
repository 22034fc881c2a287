"""Folds that cut no tuple, and scores without labels against what labels say."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mdpu.data import join_groups, number_groups, sample_of
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier, Network
from mdpu.law import Law
from mdpu.randomness import Stream
from mdpu.scores import (
    MEASURES,
    LabelFreeScorer,
    TupleKFold,
    estimated_risk,
    interval,
    least_cost_threshold,
    negative_bag_risk,
    negative_risk,
    scores_without_labels,
    suspicious,
    variance_of_mean,
)


@given(st.lists(st.integers(1, 4), min_size=4, max_size=9), st.integers(4, 9), st.integers(2, 4))
def test_folds_cut_no_tuple_and_hold_each_image_out_once(sizes, n_unlabeled, folds):
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    groups = number_groups(np.append(numbers, [-1] * n_unlabeled))
    places = list(range(len(groups)))

    held_out = []
    for train, test in TupleKFold(folds, random_state=1).split(None, groups):
        held_out += test.tolist()
        tuples = len(np.unique(groups[test])) - 1
        unlabeled = np.sum(groups[test] == -1)
        assert sorted([*train, *test]) == places
        assert set(groups[train]) & set(groups[test]) == {-1}
        assert abs(tuples - len(sizes) / folds) < 1
        assert abs(unlabeled - n_unlabeled / folds) < 1
    assert sorted(held_out) == places


KINDS = [np.asarray, pd.DataFrame, sparse.csr_matrix, sparse.csc_matrix, np.ndarray.tolist]


def rows_with_copies():
    """Return five pairs, five rows that stand four times each, and the groups of all."""
    rows = np.arange(60.0).reshape(30, 2)
    rows[15:] = np.repeat(rows[10:15], 3, axis=0)
    pairs = np.repeat(np.arange(5), 2)
    return rows, number_groups(np.append(pairs, [-1] * 20))


@pytest.mark.parametrize("kind", KINDS)
def test_equal_unlabeled_rows_are_held_out_together(kind):
    rows, groups = rows_with_copies()
    for train, test in TupleKFold(3).split(kind(rows), groups):
        trained_on = rows[train[groups[train] == -1], 0]
        held_out = rows[test[groups[test] == -1], 0]
        assert len(held_out) in (4, 8)
        assert not set(held_out) & set(trained_on)


@pytest.mark.parametrize("kind", KINDS)
def test_folds_need_as_many_different_unlabeled_rows(kind):
    rows, _ = rows_with_copies()
    ten_tuples = number_groups(np.append(np.arange(10), [-1] * 20))
    with pytest.raises(UserError, match="5 different unlabeled rows"):
        next(TupleKFold(6).split(kind(rows), ten_tuples))


# -- scores without labels -------------------------------------------------------------------------

DOMINANT = {size: Law.dominant(size) for size in (1, 2, 3)}
ONE_OF_THREE = {3: Law.exactly(3, 1)}
CUT = 0.3


class Scored:
    """Gaussian scores around +1 and -1, and a classifier that calls them positive above `CUT`."""

    def __init__(self, laws, prior, n=200, n_unlabeled=300, seed=0):
        self.generator = np.random.default_rng(seed)
        self.tuples = []
        for law in laws.values():
            labels = law.draw(prior, n // len(laws), Stream(seed, "scored")) > 0
            self.tuples += list(self.draw_rows(labels))
        self.labels = self.generator.random(n_unlabeled) < prior
        self.unlabeled = self.draw_rows(self.labels)
        self.data = (self.tuples, self.unlabeled)
        self.classifier = SimpleNamespace(
            prior_=prior,
            unlabeled_is="pool",
            law_of=laws.get,
            _prior_shift=lambda asked: 0.0,
            decision_function=lambda rows: np.asarray(rows)[:, 0] - CUT,
            predict=lambda rows: np.where(rows[:, 0] > CUT, 1, -1),
        )

    def draw_rows(self, is_positive):
        """Draw rows whose only column is the score, (..., 1)."""
        noise = self.generator.standard_normal(is_positive.shape)
        return (noise + np.where(is_positive, 1.0, -1.0))[..., None]

    def truth(self):
        """What labels say, of many rows."""
        scores = self.unlabeled[:, 0]
        yes = scores > CUT
        recall = yes[self.labels].mean()
        specificity = 1 - yes[~self.labels].mean()
        return {
            "auc": roc_auc_score(self.labels, scores),
            "balanced_accuracy": (recall + specificity) / 2,
            "precision": self.labels[yes].mean(),
            "recall": recall,
        }


@pytest.mark.parametrize("share", [0.001, 0.01, 0.05, 0.3])
def test_intervals_cover_the_share_of_answers_that_are_rare(share):
    """By enumeration; with the variance of the answers alone they would cover in 10 % at a share of
    0.001.
    """
    covers = []
    for answers in np.tri(101, 100, -1):  # of which none, one, ... and all are positive
        found = interval(answers.mean(), variance_of_mean(answers), 0.95)
        covers.append(found.low <= share <= found.high)
    assert binom.pmf(np.arange(101), 100, share) @ covers > 0.93


@pytest.mark.parametrize(
    ("laws", "prior"),
    [
        (DOMINANT, 0.4),
        ({2: DOMINANT[2]}, 0.6),
        ({3: DOMINANT[3]}, 0.3),
        (ONE_OF_THREE, 0.6),
    ],
)
def test_scores_without_labels_are_unbiased_and_their_intervals_cover(laws, prior):
    """Of 200 samples each interval of 95 % misses at most 9 %: a right one does so once in a
    hundred such tests.
    """
    truth = Scored(laws, prior, n_unlabeled=300_000, seed=99).truth()
    found = {name: [] for name in MEASURES}
    for seed in range(200):
        scored = Scored(laws, prior, seed=seed)
        estimates = scores_without_labels(scored.classifier, *scored.data)
        for name, estimate in estimates.items():
            found[name].append((estimate.value, estimate.low, estimate.high))

    for name, estimates in found.items():
        value, low, high = np.array(estimates).T
        covers = (low <= truth[name]) & (truth[name] <= high)
        error = abs(value.mean() - truth[name])
        assert error < 4 * value.std() / 200**0.5 + 0.005, name
        assert covers.mean() >= 0.91, name


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_copies_of_unlabeled_rows_make_no_score_surer(kind):
    scored = Scored({3: DOMINANT[3]}, 0.4)
    four_times = np.repeat(scored.unlabeled, 4, axis=0)
    rows, groups = join_groups(scored.tuples, four_times)

    once = scores_without_labels(scored.classifier, *join_groups(*scored.data))
    with pytest.warns(UserWarning, match="300 different rows"):
        again = scores_without_labels(scored.classifier, kind(rows), groups)

    for name in MEASURES:
        assert again[name].low == pytest.approx(once[name].low), name


@pytest.mark.parametrize(("laws", "prior"), [(DOMINANT, 0.4), (ONE_OF_THREE, 0.6)])
def test_the_estimated_risk_is_unbiased_and_its_interval_covers(laws, prior):
    risk = prior * norm.cdf(CUT - 1) + (1 - prior) * norm.sf(CUT + 1)
    values = []
    covers = []
    for seed in range(200):
        scored = Scored(laws, prior, seed=seed)
        rows, groups = join_groups(*scored.data)
        answers = scored.classifier.decision_function(rows) > 0
        estimate = estimated_risk(answers, sample_of(groups), prior, laws.get, 0.95)
        values.append(estimate.value)
        covers.append(estimate.low <= risk <= estimate.high)

    assert abs(np.mean(values) - risk) < 4 * np.std(values) / 200**0.5
    assert np.mean(covers) >= 0.91


def test_the_bag_risk_is_the_share_of_bags_on_the_wrong_side():
    """A classifier that says yes to all has those that the law refuses, a better one fewer."""
    scored = Scored({2: DOMINANT[2]}, 0.4, n=4000, n_unlabeled=20_000)
    always_yes = SimpleNamespace(**vars(scored.classifier))
    always_yes.decision_function = lambda rows: np.ones(len(rows))
    refused = 1 - DOMINANT[2].rate(0.4)

    risk_of_yes = -negative_bag_risk(always_yes, *scored.data)
    risk = -negative_bag_risk(scored.classifier, *scored.data)

    assert risk_of_yes == pytest.approx(refused, abs=1e-9)
    assert risk < refused


def test_scorers_take_groups_and_a_threshold():
    scored = Scored({3: DOMINANT[3]}, 0.4)
    rows, groups = join_groups(*scored.data)
    by_name = scores_without_labels(scored.classifier, rows, groups)

    auc = LabelFreeScorer("auc")(scored.classifier, rows, groups)
    strict_recall = LabelFreeScorer("recall", threshold=1.0)(scored.classifier, rows, groups)

    assert auc == by_name["auc"].value
    assert strict_recall < by_name["recall"].value


def test_scorers_can_be_pickled():
    scorer = LabelFreeScorer("precision")
    assert pickle.loads(pickle.dumps(scorer)) == scorer


def test_a_threshold_follows_the_costs():
    scored = Scored({3: DOMINANT[3]}, 0.4, n=4000, n_unlabeled=8000)
    costs = (0.2, 1, 5)
    thresholds = [
        least_cost_threshold(scored.classifier, *scored.data, false_positive=cost) for cost in costs
    ]
    # The best are those of the posterior: (log cost + logit 0.6) / 2, less the cut.
    expected = (np.log(costs) + np.log(0.6 / 0.4)) / 2 - CUT
    np.testing.assert_allclose(thresholds, expected, atol=0.35)


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (lambda d: scores_without_labels(d.classifier, d.unlabeled, np.stack(d.tuples)), "tuples"),
        (
            lambda d: scores_without_labels(d.classifier, *d.data, threshold="0"),
            "threshold",
        ),
        (lambda d: scores_without_labels(d.classifier, *d.data, prior=1.5), "prior"),
        (
            lambda d: scores_without_labels(LogisticRegression(), d.tuples, d.unlabeled),
            "LogisticRegression",
        ),
        (
            lambda d: negative_risk(
                make_pipeline(StandardScaler(), LogisticRegression()), d.tuples, d.unlabeled
            ),
            "Log",
        ),
        (
            lambda d: least_cost_threshold(d.classifier, *d.data, false_positive="1"),
            "false_positive",
        ),
        (
            lambda d: least_cost_threshold(d.classifier, *d.data, false_positive=0),
            "costs",
        ),
        (lambda d: next(TupleKFold(2.5).split(None, np.arange(9))), "n_splits"),
        (
            lambda d: next(TupleKFold(1).split(None, number_groups([0, 1, 2, 3, *[-1] * 9]))),
            "n_splits",
        ),
        (
            lambda d: next(TupleKFold(5).split(None, number_groups([0, 1, 2, 3, *[-1] * 9]))),
            "n_splits",
        ),
        (lambda d: next(TupleKFold(random_state=None).split(None, np.arange(9))), "random_state"),
        (lambda d: next(TupleKFold().split(None, np.array([1, -1, 1, 1]))), "labels"),
        (lambda d: LabelFreeScorer("f1"), "measure"),
    ],
)
def test_misuse_of_scores_and_folds_is_refused(call, key):
    with pytest.raises(UserError, match=key):
        call(Scored({3: DOMINANT[3]}, 0.4))


# -- broken tuples ---------------------------------------------------------------------------------


def test_broken_tuples_come_first_and_their_number_is_within_its_interval():
    """Of 12 intervals that cover in 95 %, 8 or fewer cover in one of 500 trials."""
    law = DOMINANT[3].broken(0.2)
    covered = []
    areas = []
    for seed in range(12):
        scored = Scored({3: law}, 0.4, 400, 400, seed)
        labels = law.draw(0.4, 400, Stream(seed, "scored"))
        is_broken = (labels > 0).sum(axis=1) < 2

        found = suspicious(scored.classifier, *scored.data)
        factors = found.tuples["factor"]
        covered.append(found.number.low <= is_broken.sum() <= found.number.high)
        areas.append(roc_auc_score(is_broken[found.tuples["tuple"]], factors))
        assert factors.is_monotonic_decreasing

    assert sum(covered) > 8
    assert np.mean(areas) > 0.8


@pytest.fixture(scope="module")
def of_two_sizes():
    return Scored({2: DOMINANT[2], 3: DOMINANT[3]}, 0.4)


def test_the_number_of_broken_tuples_is_known_of_larger_tuples_beside_unlabeled_rows(of_two_sizes):
    tuples, unlabeled = of_two_sizes.data
    both = suspicious(of_two_sizes.classifier, tuples, unlabeled)
    assert both.number.low == 0
    assert both.tuples["probability"].between(0, 1).all()

    alone = suspicious(of_two_sizes.classifier, tuples)
    pairs = suspicious(of_two_sizes.classifier, tuples[:50], unlabeled)
    for found in (alone, pairs):
        assert found.number is None
        assert found.tuples["probability"].isna().all()


def test_the_number_of_broken_tuples_is_within_its_interval_where_few_groups_break_the_law():
    scored = Scored({5: Law.dominant(5)}, 0.955)  # random groups do in 0.1 %
    number = suspicious(scored.classifier, *scored.data).number
    assert number.low <= number.value <= number.high


def test_rows_with_groups_have_the_suspects_of_tuples(of_two_sizes):
    of_tuples = suspicious(of_two_sizes.classifier, *of_two_sizes.data)
    of_groups = suspicious(of_two_sizes.classifier, *join_groups(*of_two_sizes.data))
    assert of_groups.tuples.equals(of_tuples.tuples)


@pytest.mark.parametrize("beside_unlabeled", [False, True])
def test_scores_that_are_no_log_odds_name_no_suspects(beside_unlabeled):
    scored = Scored({3: DOMINANT[3]}, 0.4)
    learner = Network(n_epochs=1, method="ure", loss="ramp")
    classifier = MDPUClassifier(0.4, learner=learner, compare_prior=False)
    with pytest.warns(UserWarning):
        classifier.fit(*scored.data)
    unlabeled = scored.unlabeled if beside_unlabeled else None
    with pytest.raises(UserError, match="log-odds"):
        suspicious(classifier, scored.tuples, unlabeled)
