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
    groups = number_groups(
        np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(n_unlabeled, -1)])
    )
    held_out = []
    for train, test in TupleKFold(folds, random_state=1).split(None, groups):
        held_out += test.tolist()
        assert sorted([*train, *test]) == list(range(len(groups)))
        assert set(groups[train]) & set(groups[test]) == {-1}
        tuples = len(np.unique(groups[test])) - 1
        unlabeled = np.sum(groups[test] == -1)
        assert tuples in (len(sizes) // folds, -(-len(sizes) // folds))
        assert unlabeled in (n_unlabeled // folds, -(-n_unlabeled // folds))
    assert sorted(held_out) == list(range(len(groups)))


@pytest.mark.parametrize(
    "kind", [np.asarray, pd.DataFrame, sparse.csr_matrix, sparse.csc_matrix, np.ndarray.tolist]
)
def test_equal_unlabeled_rows_are_held_out_together(kind):
    rows = np.arange(60.0).reshape(30, 2)
    groups = number_groups(np.append(np.repeat(np.arange(5), 2), [-1] * 20))
    rows[15:] = np.repeat(rows[10:15], 3, axis=0)  # five rows, four times each
    for train, test in TupleKFold(3).split(kind(rows), groups):
        held = rows[test[groups[test] == -1], 0]
        assert len(held) in (4, 8) and not set(held) & set(rows[train[groups[train] == -1], 0])
    with pytest.raises(UserError, match="5 different unlabeled rows"):
        next(TupleKFold(6).split(kind(rows), number_groups(np.append(np.arange(10), [-1] * 20))))


# -- scores without labels -------------------------------------------------------------------------

DOMINANT = {size: Law.dominant(size) for size in (1, 2, 3)}
ONE_OF_THREE = {3: Law.exactly(3, 1)}
CUT = 0.3


class Scored:
    """Gaussian scores around +1 and -1, and a classifier that calls them positive above `CUT`."""

    def __init__(self, laws, prior, n=200, n_unlabeled=300, seed=0):
        generator = np.random.default_rng(seed)

        def scores(labels):
            return generator.standard_normal(labels.shape) + np.where(labels, 1.0, -1.0)

        self.tuples = []
        for law in laws.values():
            labels = law.draw(prior, n // len(laws), Stream(seed, "scored")) > 0
            self.tuples += list(scores(labels)[:, :, None])
        self.labels = generator.random(n_unlabeled) < prior
        self.unlabeled = scores(self.labels)[:, None]
        self.classifier = SimpleNamespace(
            prior_=prior,
            law_of=laws.get,
            _prior_shift=lambda asked: 0.0,
            decision_function=lambda rows: rows[:, 0] - CUT,
            predict=lambda rows: np.where(rows[:, 0] > CUT, 1, -1),
        )

    def truth(self):
        """What labels say, of many rows."""
        scores = self.unlabeled[:, 0]
        yes = self.unlabeled[:, 0] > CUT
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
    answers = np.tri(101, 100, -1)  # of which none, one, ... and all are positive
    covers = [
        (e := interval(own.mean(), variance_of_mean(own), 0.95)).low <= share <= e.high
        for own in answers
    ]
    assert binom.pmf(np.arange(101), 100, share) @ covers > 0.93


@pytest.mark.parametrize(
    ("laws", "prior"),
    [(DOMINANT, 0.4), ({2: DOMINANT[2]}, 0.6), ({3: DOMINANT[3]}, 0.3), (ONE_OF_THREE, 0.6)],
)
def test_scores_without_labels_are_unbiased_and_their_intervals_cover(laws, prior):
    """Of 200 samples each interval of 95 % misses at most 9 %: a right one does so once in a
    hundred such tests.
    """
    truth = Scored(laws, prior, n_unlabeled=300_000, seed=99).truth()
    found = {name: [] for name in MEASURES}
    for seed in range(200):
        data = Scored(laws, prior, seed=seed)
        for name, estimate in scores_without_labels(
            data.classifier, data.tuples, data.unlabeled
        ).items():
            found[name].append((estimate.value, estimate.low, estimate.high))
    for name, values in found.items():
        value, low, high = np.array(values).T
        assert abs(value.mean() - truth[name]) < 4 * value.std() / 200**0.5 + 0.005, name
        assert np.mean((low <= truth[name]) & (truth[name] <= high)) >= 0.91, name


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_copies_of_unlabeled_rows_make_no_score_surer(kind):
    data = Scored({3: DOMINANT[3]}, 0.4)
    data.classifier.decision_function = lambda rows: np.asarray(rows)[:, 0] - CUT
    once = scores_without_labels(data.classifier, *join_groups(data.tuples, data.unlabeled))
    rows, groups = join_groups(data.tuples, np.repeat(data.unlabeled, 4, axis=0))
    with pytest.warns(UserWarning, match="300 different rows"):
        again = scores_without_labels(data.classifier, kind(rows), groups)
    assert {name: one.low for name, one in again.items()} == pytest.approx(
        {k: one.low for k, one in once.items()}
    )


@pytest.mark.parametrize(("laws", "prior"), [(DOMINANT, 0.4), (ONE_OF_THREE, 0.6)])
def test_the_estimated_risk_is_unbiased_and_its_interval_covers(laws, prior):
    found = []
    for seed in range(200):
        data = Scored(laws, prior, seed=seed)
        rows, groups = join_groups(data.tuples, data.unlabeled)
        answers = data.classifier.decision_function(rows) > 0
        found.append(estimated_risk(answers, sample_of(groups), prior, laws.get, 0.95))
    wrong = prior * norm.cdf(CUT - 1) + (1 - prior) * norm.sf(CUT + 1)
    values = np.array([one.value for one in found])
    assert abs(values.mean() - wrong) < 4 * values.std() / 200**0.5
    assert np.mean([one.low <= wrong <= one.high for one in found]) >= 0.91


def test_the_bag_risk_is_the_share_of_bags_on_the_wrong_side():
    """A classifier that is always right has none, one that says yes to all has those that the law
    refuses.
    """
    data = Scored({2: DOMINANT[2]}, 0.4, n=4000, n_unlabeled=20_000)
    always = SimpleNamespace(
        **vars(data.classifier) | {"decision_function": lambda rows: np.ones(len(rows))}
    )
    expected = 1 - DOMINANT[2].rate(0.4)
    assert -negative_bag_risk(always, data.tuples, data.unlabeled) == pytest.approx(
        expected, abs=1e-9
    )
    assert -negative_bag_risk(data.classifier, data.tuples, data.unlabeled) < expected


def test_scorers_take_groups_and_a_threshold():
    data = Scored({3: DOMINANT[3]}, 0.4)
    rows, groups = join_groups(np.stack(data.tuples), data.unlabeled)
    whole = scores_without_labels(data.classifier, rows, groups)
    assert LabelFreeScorer("auc")(data.classifier, rows, groups) == whole["auc"].value
    strict = LabelFreeScorer("recall", threshold=1.0)(data.classifier, rows, groups)
    assert strict < whole["recall"].value
    assert pickle.loads(pickle.dumps(LabelFreeScorer("precision"))) == LabelFreeScorer("precision")


def test_a_threshold_follows_the_costs():
    data = Scored({3: DOMINANT[3]}, 0.4, n=4000, n_unlabeled=8000)
    thresholds = [
        least_cost_threshold(data.classifier, data.tuples, data.unlabeled, false_positive=cost)
        for cost in (0.2, 1, 5)
    ]
    # The best are those of the posterior: (log cost + logit 0.6) / 2, less the cut.
    expected = (np.log([0.2, 1, 5]) + np.log(0.6 / 0.4)) / 2 - CUT
    np.testing.assert_allclose(thresholds, expected, atol=0.35)


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (lambda d: scores_without_labels(d.classifier, d.unlabeled, np.stack(d.tuples)), "tuples"),
        (
            lambda d: scores_without_labels(d.classifier, d.tuples, d.unlabeled, threshold="0"),
            "threshold",
        ),
        (lambda d: scores_without_labels(d.classifier, d.tuples, d.unlabeled, prior=1.5), "prior"),
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
            lambda d: least_cost_threshold(d.classifier, d.tuples, d.unlabeled, false_positive="1"),
            "false_positive",
        ),
        (
            lambda d: least_cost_threshold(d.classifier, d.tuples, d.unlabeled, false_positive=0),
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
        data = Scored({3: law}, 0.4, 400, 400, seed)
        is_broken = (law.draw(0.4, 400, Stream(seed, "scored")) > 0).sum(axis=1) < 2
        found = suspicious(data.classifier, np.stack(data.tuples), data.unlabeled)
        covered.append(found.number.low <= is_broken.sum() <= found.number.high)
        areas.append(roc_auc_score(is_broken[found.tuples["tuple"]], found.tuples["factor"]))
        assert found.tuples["factor"].is_monotonic_decreasing
    assert sum(covered) > 8 and np.mean(areas) > 0.8


def test_the_number_of_broken_tuples_is_known_of_larger_tuples_beside_unlabeled_rows():
    data = Scored({2: DOMINANT[2], 3: DOMINANT[3]}, 0.4)
    both = suspicious(data.classifier, data.tuples, data.unlabeled)
    assert both.number.low == 0 and both.tuples["probability"].between(0, 1).all()
    seldom = Scored({5: Law.dominant(5)}, 0.955)  # random groups break the law in 0.1 %
    few = suspicious(seldom.classifier, seldom.tuples, seldom.unlabeled).number
    assert few.low <= few.value <= few.high
    alone = suspicious(data.classifier, data.tuples)
    pairs = suspicious(data.classifier, data.tuples[:50], data.unlabeled)
    for found in (alone, pairs):
        assert found.number is None and found.tuples["probability"].isna().all()
    rows, groups = join_groups(data.tuples, data.unlabeled)
    assert suspicious(data.classifier, rows, groups).tuples.equals(both.tuples)


@pytest.mark.parametrize("groups", [None, "unlabeled"])
def test_scores_that_are_no_log_odds_name_no_suspects(groups):
    data = Scored({3: DOMINANT[3]}, 0.4)
    network = MDPUClassifier(
        0.4, learner=Network(n_epochs=1, method="ure", loss="ramp"), compare_prior=False
    )
    with pytest.warns(UserWarning):
        network.fit(np.stack(data.tuples), data.unlabeled)
    with pytest.raises(UserError, match="log-odds"):
        suspicious(network, np.stack(data.tuples), None if groups is None else data.unlabeled)
