"""Data in scikit-learn's form, folds that cut no tuple, and scores without labels against what labels say."""

from __future__ import annotations

import pickle
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import KFold

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.groups import (
    MEASURES,
    LabelFreeScorer,
    TupleKFold,
    broken_share,
    join_groups,
    least_cost_threshold,
    negative_risk,
    read_groups,
    risk_by_prior,
    scores_without_labels,
)
from mdpu.law import Law
from mdpu.randomness import Stream


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 5))
def test_groups_name_each_image_once(sizes, n_unlabeled):
    numbers = np.arange(sum(sizes) + n_unlabeled, dtype=float)[:, None]
    tuples = np.split(numbers[: sum(sizes)], np.cumsum(sizes)[:-1])
    images, groups = join_groups(tuples, numbers[sum(sizes) :])
    assert sorted(images[:, 0]) == list(numbers[:, 0])
    for number, members in enumerate(tuples):
        assert np.array_equal(images[groups == number], members)
    assert np.array_equal(images[groups == -1], numbers[sum(sizes) :])
    sample, expected = read_groups(groups), TupleData.gather(tuples, numbers[sum(sizes) :])[1]
    assert np.array_equal(sample.tuples, expected.tuples)
    assert np.array_equal(sample.unlabeled, expected.unlabeled)


@given(st.lists(st.integers(1, 4), min_size=4, max_size=9), st.integers(4, 9), st.integers(2, 4))
def test_folds_cut_no_tuple_and_hold_each_image_out_once(sizes, n_unlabeled, folds):
    groups = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(n_unlabeled, -1)])
    held_out = []
    for train, test in TupleKFold(folds, random_state=1).split(None, groups):
        held_out += test.tolist()
        assert sorted([*train, *test]) == list(range(len(groups)))
        assert set(groups[train]) & set(groups[test]) == {-1}
        tuples, unlabeled = len(np.unique(groups[test])) - 1, np.sum(groups[test] == -1)
        assert tuples in (len(sizes) // folds, -(-len(sizes) // folds))
        assert unlabeled in (n_unlabeled // folds, -(-n_unlabeled // folds))
    assert sorted(held_out) == list(range(len(groups)))


@pytest.mark.parametrize("n_splits", [1, 5])
def test_folds_without_a_tuple_are_refused(n_splits):
    with pytest.raises(UserError, match=f"n_splits is {n_splits}; with 4 tuples, 2 to 4 are possible"):
        next(TupleKFold(n_splits).split(None, np.array([0, 1, 2, 3, *[-1] * 9])))


def test_frames_keep_their_columns_and_sparse_rows_stay_sparse():
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [6.0, 7, 8, 9, 10]})
    rows, groups = join_groups([frame[:2], frame[2:4]], frame[4:])
    assert list(rows.columns) == ["a", "b"] and groups.tolist() == [0, 0, 1, 1, -1]
    matrix = sparse.csr_matrix(frame)
    rows, groups = join_groups([matrix[:2], matrix[2:4]], matrix[4:])
    assert sparse.issparse(rows) and groups.tolist() == [0, 0, 1, 1, -1]


PAIRS, ROWS = np.zeros((4, 2, 3)), np.zeros((5, 3))
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})


@pytest.mark.parametrize(
    ("tuples", "unlabeled", "sentence"),
    [
        (ROWS, PAIRS, "if they are swapped, give the tuples (n, M, ...) first"),
        (ROWS, ROWS, "(5, 3) have no more axes than unlabeled rows (5, 3); tuples have one more, (n, M, ...)"),
        (
            [FRAME, FRAME[["b", "a"]]],
            FRAME,
            "the columns of tuple 1 are not those of the unlabeled rows, or",
        ),
        (
            [FRAME[["a"]]],
            FRAME,
            "tuple 0 is a DataFrame of shape (2, 1), but the unlabeled rows are a DataFrame of shape",
        ),
        (
            [FRAME, FRAME],
            FRAME.to_numpy(),
            "tuple 0 is a DataFrame of shape (2, 2), but the unlabeled rows are a ndarray",
        ),
        (
            [sparse.csr_matrix(FRAME)],
            ROWS,
            "tuple 0 is a csr_matrix of shape (2, 2), but the unlabeled rows are a ndarr",
        ),
        (FRAME, FRAME, "tuples are DataFrame and unlabeled rows DataFrame; give an array (n, M, ...), or a list"),
    ],
)
def test_tuples_and_unlabeled_rows_that_do_not_match_are_refused(tuples, unlabeled, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)):
        join_groups(tuples, unlabeled)


# -- groups are no labels -----------------------------------------------------------------------------


def test_labels_are_no_groups():
    with pytest.raises(UserError, match="y holds -1 and \\+1, which are labels"):
        read_groups(np.array([1, -1, 1, 1, -1]))


@pytest.mark.parametrize("plain", [False, True])
def test_folds_that_cut_tuples_are_noticed(plain):
    _, groups = join_groups(np.zeros((30, 2, 1)), np.zeros((30, 1)))
    own = np.asarray(groups) if plain else groups
    train, _ = next(KFold(3, shuffle=True, random_state=0).split(own))
    with pytest.raises(UserError, match=r"tuples are cut.*TupleKFold"):
        read_groups(own[train])
    for train, test in TupleKFold(3).split(None, own):
        assert len(read_groups(own[train]).tuples) + len(read_groups(own[test]).tuples) == 30


def test_a_metric_of_labels_refuses_groups():
    _, groups = join_groups(np.zeros((5, 2, 1)), np.zeros((5, 1)))
    with pytest.raises(UserError, match="numbers of tuples, not labels; take scoring=negative_bag_risk"):
        accuracy_score(groups, np.ones(15))
    assert np.unique(groups).tolist() == [-1, 0, 1, 2, 3, 4]
    copy = pickle.loads(pickle.dumps(groups))
    assert np.array_equal(copy, groups) and np.array_equal(copy.sizes, groups.sizes)
    assert type(groups + 1) is np.ndarray


# -- scores without labels ----------------------------------------------------------------------------

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
            decision_function=lambda rows: rows[:, 0] - CUT,
            predict=lambda rows: np.where(rows[:, 0] > CUT, 1, -1),
        )

    def truth(self):
        """What labels say, of many rows."""
        scores, yes = self.unlabeled[:, 0], self.unlabeled[:, 0] > CUT
        recall, specificity = yes[self.labels].mean(), 1 - yes[~self.labels].mean()
        return {
            "auc": roc_auc_score(self.labels, scores),
            "balanced_accuracy": (recall + specificity) / 2,
            "precision": self.labels[yes].mean(),
            "recall": recall,
        }


@pytest.mark.parametrize(
    ("laws", "prior"), [(DOMINANT, 0.4), ({2: DOMINANT[2]}, 0.6), ({3: DOMINANT[3]}, 0.3), (ONE_OF_THREE, 0.6)]
)
def test_scores_without_labels_are_unbiased_and_their_intervals_cover(laws, prior):
    """Of 200 samples each interval of 95 % misses at most 9 %: a right one does so once in a hundred such tests."""
    truth = Scored(laws, prior, n_unlabeled=300_000, seed=99).truth()
    found = {name: [] for name in MEASURES}
    for seed in range(200):
        data = Scored(laws, prior, seed=seed)
        for name, estimate in scores_without_labels(data.classifier, data.tuples, data.unlabeled).items():
            found[name].append((estimate.value, estimate.low, estimate.high))
    for name, values in found.items():
        value, low, high = np.array(values).T
        assert abs(value.mean() - truth[name]) < 4 * value.std() / 200**0.5 + 0.005, name
        assert np.mean((low <= truth[name]) & (truth[name] <= high)) >= 0.91, name


def test_scorers_take_groups_and_a_threshold():
    data = Scored({3: DOMINANT[3]}, 0.4)
    rows, groups = join_groups(np.stack(data.tuples), data.unlabeled)
    whole = scores_without_labels(data.classifier, rows, groups)
    assert LabelFreeScorer("auc")(data.classifier, rows, groups) == whole["auc"].value
    strict = LabelFreeScorer("recall", threshold=1.0)(data.classifier, rows, groups)
    assert strict < whole["recall"].value
    assert pickle.loads(pickle.dumps(LabelFreeScorer("precision"))) == LabelFreeScorer("precision")
    with pytest.raises(UserError, match="measure is 'f1'; it must be one of auc, "):
        LabelFreeScorer("f1")


def test_a_threshold_follows_the_costs():
    data = Scored({3: DOMINANT[3]}, 0.4, n=4000, n_unlabeled=8000)
    thresholds = [
        least_cost_threshold(data.classifier, data.tuples, data.unlabeled, false_positive=cost) for cost in (0.2, 1, 5)
    ]
    # The best are those of the posterior: (log cost + logit 0.6) / 2, less the cut.
    expected = (np.log([0.2, 1, 5]) + np.log(0.6 / 0.4)) / 2 - CUT
    np.testing.assert_allclose(thresholds, expected, atol=0.35)
    with pytest.raises(UserError, match="costs are 0 and 1"):
        least_cost_threshold(data.classifier, data.tuples, data.unlabeled, false_positive=0, false_negative=1)


def test_the_risk_by_prior_goes_through_the_estimate_and_says_which_answers_change():
    data = Scored({3: DOMINANT[3]}, 0.4)
    rows, groups = join_groups(np.stack(data.tuples), data.unlabeled)
    table = risk_by_prior(data.classifier, rows, groups, [0.2, 0.4, 0.6])
    assert table["risk"][1] == pytest.approx(-negative_risk(data.classifier, rows, groups))
    assert table["changed"].tolist()[1] == 0 and (table["changed"][[0, 2]] > 0).all()
    assert (table["low"] < table["risk"]).all() and (table["risk"] < table["high"]).all()
    with pytest.raises(UserError, match=r"prior 1\.5"):
        risk_by_prior(data.classifier, rows, groups, [1.5])


def test_the_risk_by_prior_leaves_out_only_priors_at_which_members_say_nothing():
    data = Scored(ONE_OF_THREE, 0.4)
    assert risk_by_prior(data.classifier, data.tuples, data.unlabeled, [0.2, 1 / 3, 0.6])["prior"].tolist() == [
        0.2,
        0.6,
    ]
    with pytest.raises(UserError, match="at least two tuples and two unlabeled rows"):
        risk_by_prior(data.classifier, data.tuples[:1], data.unlabeled)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda d: scores_without_labels(d.classifier, d.unlabeled, np.stack(d.tuples)), "if they are swapped, give"),
        (
            lambda d: scores_without_labels(d.classifier, d.tuples, d.unlabeled, threshold="0"),
            "threshold is '0'; a numb",
        ),
        (
            lambda d: scores_without_labels(LogisticRegression(), d.tuples, d.unlabeled),
            "LogisticRegression is no class",
        ),
        (lambda d: risk_by_prior(d.classifier, d.tuples, d.unlabeled, level=95), "level is 95; one number between 0"),
        (
            lambda d: least_cost_threshold(d.classifier, d.tuples, d.unlabeled, false_positive="1"),
            "false_positive is '1'; a number",
        ),
        (lambda d: next(TupleKFold(2.5).split(None, np.arange(9))), "n_splits is 2.5; an integer is needed"),
        (
            lambda d: next(TupleKFold(random_state=None).split(None, np.arange(9))),
            "random_state is None; an integer is",
        ),
        (lambda d: next(TupleKFold().split(None, np.array([1, -1, 1, 1]))), "y holds -1 and +1, which are labels"),
    ],
)
def test_misuse_of_scores_and_folds_ends_in_a_sentence(call, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)):
        call(Scored({3: DOMINANT[3]}, 0.4))


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_share_of_broken_triples_is_estimated_from_scores_of_any_scale(share):
    data = Scored({3: DOMINANT[3].broken(share)}, 0.4, n=5000, n_unlabeled=5000)
    data.classifier.law_of = DOMINANT.get
    found = broken_share(data.classifier, data.tuples, data.unlabeled)
    assert found.low <= share <= found.high and found.high - found.low < 0.15
    assert found.value == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("law", [Law.dominant(2), Law.at_least(3, 1)])
def test_a_share_that_is_not_identified_is_refused(law):
    data = Scored({law.size: law}, 0.4)
    with pytest.raises(UserError, match="share of broken tuples is not identified"):
        broken_share(data.classifier, data.tuples, data.unlabeled)
