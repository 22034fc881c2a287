"""Linear models, teacher and student: what they learn of laws of which some hide in the mean of
members.
"""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.ensemble._hist_gradient_boosting import binning
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.learners.features import Standardisation
from mdpu.learners.joint import JointObjective
from mdpu.learners.linear import cross_fit, exchange, in_minority, network_start, split_folds, start
from mdpu.learners.student import Linear, Student, check_student, fit_teacher, soft_labels
from mdpu.randomness import Stream
from mdpu.sample import Bags, Sample

ONE = Law.exactly(3, 1)
SIMILAR = Law.similar(2)
LAWS = {"dominant pairs": Law.dominant(2), "exactly one of three": ONE, "similar pairs": SIMILAR}


class Blobs:
    """Two classes, four standard deviations apart along one of five features of very different
    units.
    """

    def __init__(self, law, prior, n=600, seed=0):
        generator = np.random.default_rng(seed)
        members = law.draw(prior, n, Stream(seed, "blobs")) > 0
        unlabeled = generator.random(n) < prior
        self.labels = np.append(members.ravel(), unlabeled)

        count = len(self.labels)
        z = generator.standard_normal((count, 5))
        z[:, 2] += np.where(self.labels, 2, -2)
        units = [1, 1000, 10, 0.01, 1]
        zeros = [0, 5000, -3, 0, 1]
        self.rows = z * units + zeros

        places = np.arange(count)
        tuples = places[:-n].reshape(n, -1)
        self.data = TupleData(tuples, places[-n:])
        self.bags = Bags.of(self.data, lambda _: law)
        self.sample = Sample(self.rows, self.bags)

    def accuracy(self, scores):
        return np.mean((scores > 0) == self.labels)

    def standardised(self):
        return Standardisation.learn(self.rows)(self.rows)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prior", [0.5, 0.56, 0.7])
@pytest.mark.parametrize("law", [SIMILAR, Law.exactly(2, 1)])
def test_folds_of_a_symmetric_law_name_the_same_class(law, prior, seed):
    """By chance alone three folds would agree in a quarter of the cases at prior 1/2."""
    data = Blobs(law, prior, n=200, seed=seed)
    z = data.standardised()
    fit = cross_fit([z], data.bags, prior, seed=seed)
    scores = z @ fit.coefficients.T + fit.intercepts  # (N, folds)

    assert (np.corrcoef(scores.T)[0] > 0).all()
    shares = expit(scores[data.bags.unlabeled]).mean(axis=0)
    assert np.ptp(shares) < 0.15


@pytest.mark.parametrize(
    ("signs", "minority"),
    [
        ([1, 1, 1], [False, False, False]),
        ([1, -1, 1], [False, True, False]),
        ([-1, 1, 1], [True, False, False]),  # the first fold may be the one that differs
        ([1, -1, -1, -1], [True, False, False, False]),
    ],
)
def test_the_folds_that_differ_from_most_are_found(signs, minority):
    scores = np.random.default_rng(0).normal(size=50)
    of_folds = (
        np.outer(signs, scores) + np.arange(len(signs))[:, None]
    )  # an offset is no difference
    assert in_minority(of_folds).tolist() == minority


def test_exchanged_classes_have_the_odds_of_the_other_class():
    """Odds pi p / (1 - pi) q become pi q / (1 - pi) p, in the models as in their scores."""
    random = np.random.default_rng(0)
    features = random.normal(size=(20, 3))
    models = random.normal(size=(2, 4))
    scores = features @ models[:, :-1].T + models[:, -1]
    ratio = np.exp(scores) * 0.3 / 0.7  # p / q

    changed, changed_scores = exchange(np.array([False, True]), models, scores.T, 0.7)

    np.testing.assert_allclose(features @ changed[:, :-1].T + changed[:, -1], changed_scores.T)
    np.testing.assert_allclose(changed_scores[0], scores[:, 0])
    np.testing.assert_allclose(np.exp(changed_scores[1]), 0.7 / 0.3 / ratio[:, 1])


LEARNERS = {
    "linear": Linear().learn,
    "teacher": fit_teacher,
    "student": Student(HistGradientBoostingClassifier(max_iter=20)).learn,
}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("law", ["dominant pairs", "exactly one of three"])
def test_each_learner_learns(law, learner):
    """A constant score is a saddle of the second law at 1/3."""
    data = Blobs(LAWS[law], 1 / 3)
    learn = LEARNERS[learner]

    scores = learn(data.sample, 1 / 3, 0)(data.rows)

    assert data.accuracy(scores) > 0.93
    # The scores are log-odds at the told prior: their mean probability is near it.
    probabilities = expit(scores[data.bags.unlabeled])
    assert probabilities.mean() == pytest.approx(1 / 3, abs=0.06)
    if law == "dominant pairs":
        again = learn(data.sample, 1 / 3, 0)(data.rows)
        np.testing.assert_array_equal(scores, again)


def test_a_start_finds_the_direction_where_the_mean_is_a_saddle():
    """Similar pairs are the same with the classes exchanged, so the sign is free."""
    data = Blobs(SIMILAR, 0.5)
    z = data.standardised()
    objective = JointObjective(data.bags, 0.5, len(z), Stream(0, "groups"))

    *slopes, intercept = start(z, objective, 0.5)
    accuracy = data.accuracy(z @ slopes + intercept)
    assert abs(accuracy - 0.5) > 0.43

    fit = cross_fit([z], data.bags, 0.5, seed=0, aligned=True)
    signs = np.sign(fit.coefficients[:, 2])
    assert abs(signs.sum()) == len(signs)


@pytest.mark.parametrize(
    ("law", "prior"),
    [
        (ONE, 1 / 3),
        (ONE, 0.4),
        (SIMILAR, 0.5),
        (SIMILAR, 0.4),
    ],
)
def test_a_network_starts_from_a_score_of_the_right_direction_and_scale(law, prior):
    """The sign of the first law is known, that of similar pairs is free at one half and hardly
    known at 0.4.
    """
    data = Blobs(law, prior)
    scores = network_start(data.rows, data.data, law, prior, 0)

    accuracy = data.accuracy(scores)
    if law == SIMILAR:
        accuracy = max(accuracy, 1 - accuracy)
    assert accuracy > 0.93

    unlabeled = scores[data.bags.unlabeled]
    assert unlabeled.std() == pytest.approx(1)
    assert expit(unlabeled).mean() == pytest.approx(prior)


@pytest.mark.parametrize("law", [Law.dominant(2), Law.dominant(3), Law.at_least(3, 1)])
def test_a_network_needs_no_start_where_the_law_rises(law):
    data = Blobs(law, 0.5, n=30)
    assert network_start(data.rows, data.data, law, 0.5, 0) is None


def dominant_pairs(n=600):
    return Blobs(Law.dominant(2), 0.4, n)


def scores_on(rows, learn, data):
    """Return the scores of other rows in place of those of the blobs, learned from them."""
    sample = replace(data.sample, rows=rows)
    return learn(sample, 0.4, 0)(rows)


def test_sparse_rows_are_taken_as_they_are():
    data = dominant_pairs()
    rows = sparse.csr_matrix(data.standardised().clip(0))
    for learner in (Linear(), Student(LogisticRegression())):
        scores = scores_on(rows, learner.learn, data)
        assert data.accuracy(scores) > 0.9


@pytest.mark.parametrize(
    "student",
    [
        RandomForestClassifier(50, min_samples_leaf=5),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GaussianNB(),
    ],
)
def test_any_classifier_with_weights_is_a_student(student):
    data = dominant_pairs(n=300)
    learner = Student(student)
    first = learner.learn(data.sample, 0.4, 3)(data.rows)
    again = learner.learn(data.sample, 0.4, 3)(data.rows)
    assert data.accuracy(first) > 0.93
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("student", "name"),
    [
        (SVC(), "SVC"),
        (RidgeClassifier(), "RidgeClassifier"),
        (KNeighborsClassifier(), "KNeighborsClassifier"),
        (LinearRegression(), "learner"),
        (3, "learner"),
    ],
)
def test_a_classifier_that_cannot_learn_from_soft_labels_is_refused(student, name):
    with pytest.raises(UserError, match=name):
        check_student(student)


def test_bins_of_the_trees_are_those_of_weights_that_add_up_to_one(monkeypatch):
    """And they are found without looking for each end among weights, which takes minutes."""
    data = Blobs(LAWS["dominant pairs"], 1 / 3)
    trees = HistGradientBoostingClassifier(max_iter=1)
    by_weight = Student(trees).learn(data.sample, 1 / 3, 0)
    slow = Mock(wraps=binning._weighted_percentile)
    monkeypatch.setattr(binning, "_weighted_percentile", slow)
    by_row = Student().learn(data.sample, 1 / 3, 0)
    assert not slow.called

    for place, column in enumerate(data.rows.T):
        expected = by_weight.student._bin_mapper.bin_thresholds_[place]
        thresholds = by_row.student._bin_mapper.bin_thresholds_[place]
        assert len(thresholds) == len(expected) > 200
        bins = np.searchsorted(thresholds, column)
        # Rounded sums of weights may decide between two neighbours.
        assert np.mean(bins != np.searchsorted(expected, column)) < 0.01


def test_soft_labels_of_unlabeled_rows_have_the_prior_as_their_mean():
    data = dominant_pairs(n=200)
    fit = fit_teacher(data.sample, 0.4, 0).fit
    members, unlabeled = soft_labels(fit, data.bags, 0.4)
    assert unlabeled.mean() == pytest.approx(0.4)
    assert members.mean() > unlabeled.mean()


def test_missing_values_and_outliers_do_no_harm():
    data = dominant_pairs()
    rows = data.rows.copy()
    rows[::10, 0] = np.nan
    rows[::50, 2] = 1e12
    for learn in (fit_teacher, LEARNERS["student"]):
        scores = scores_on(rows, learn, data)
        assert data.accuracy(scores) > 0.9


@pytest.mark.parametrize("known", [0, 1])
def test_a_column_with_a_value_in_no_row_or_one_does_no_harm(known):
    data = dominant_pairs()
    empty = np.full((len(data.rows), 1), np.nan)
    empty[:known] = 1.0
    scores = scores_on(np.hstack([data.rows, empty]), Student().learn, data)
    assert data.accuracy(scores) > 0.9


@pytest.mark.parametrize("width", [96, 600])
def test_columns_of_one_value_change_nothing_however_many(width):
    data = dominant_pairs()
    constant = np.zeros((len(data.rows), width))
    rows = np.hstack([data.rows, constant])
    scores = scores_on(rows, fit_teacher, data)
    expected = scores_on(data.rows, fit_teacher, data)
    np.testing.assert_allclose(scores, expected, atol=1e-6)


@pytest.mark.parametrize("width", [96, 600])
def test_the_same_column_in_many_units_is_one_of_many(width):
    data = dominant_pairs()
    powers = np.arange(width) - width // 2
    units = 10.0 ** powers.clip(-9, 9)
    copies = np.outer(data.rows[:, 2], units)
    rows = np.hstack([data.rows, copies])
    scores = scores_on(rows, fit_teacher, data)
    assert data.accuracy(scores) > 0.93


def test_pixels_share_a_unit():
    """A pixel that hardly ever is not 0 stays small beside the others, which a column would not."""
    generator = np.random.default_rng(0)
    pixels = generator.integers(255, size=(300, 11, 11), dtype=np.uint8)
    pixels[:, 0, 0] = np.arange(300) == 7
    flat = pixels.reshape(300, -1)

    for pictures in (pixels, flat, pixels / 255.0):
        assert np.ptp(Standardisation.learn(pictures).scale) == 0
    table = flat / 255.0
    assert np.ptp(Standardisation.learn(table).scale) > 0


def rows_of(bags):
    return {*bags.parts[0].tuples.ravel(), *bags.unlabeled}


def test_no_fold_learns_from_a_row_that_it_is_judged_by():
    generator = np.random.default_rng(0)
    tuples = generator.integers(300, size=(60, 2))
    unlabeled = generator.integers(300, size=90)
    bags = Bags.of(TupleData(tuples, unlabeled), lambda _: SIMILAR)
    folds, *_ = split_folds(bags, 0, 3)
    for kept, held in folds:
        assert not rows_of(held) & rows_of(kept)
