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
from mdpu.learners.linear import cross_fit, network_start, split_folds, start
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
        labels = law.draw(prior, n, Stream(seed, "blobs")) > 0
        self.labels = np.concatenate([labels.ravel(), generator.random(n) < prior])
        z = generator.standard_normal((len(self.labels), 5))
        z[:, 2] += np.where(self.labels, 2.0, -2.0)
        self.rows = z * [1, 1000, 10, 0.01, 1] + [0, 5000, -3, 0, 1]
        count = n * law.size
        tuples = np.arange(count).reshape(n, law.size)
        unlabeled = np.arange(count, count + n)
        self.data = TupleData(tuples, unlabeled)
        self.bags = Bags.of(self.data, lambda _: law)
        self.sample = Sample(self.rows, self.bags)

    def accuracy(self, scores):
        return np.mean((scores > 0) == self.labels)


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
    scores = LEARNERS[learner](data.sample, 1 / 3, 0)(data.rows)
    assert data.accuracy(scores) > 0.93
    # The scores are log-odds at the told prior: their mean probability is near it.
    assert expit(scores[data.bags.unlabeled]).mean() == pytest.approx(1 / 3, abs=0.06)
    if law == "dominant pairs":
        again = LEARNERS[learner](data.sample, 1 / 3, 0)(data.rows)
        np.testing.assert_array_equal(scores, again)


def test_a_start_finds_the_direction_where_the_mean_is_a_saddle():
    """Similar pairs are the same with the classes exchanged, so the sign is free."""
    data = Blobs(LAWS["similar pairs"], 0.5)
    z = Standardisation.learn(data.rows)(data.rows)
    model = start(z, JointObjective(data.bags, 0.5, len(z), Stream(0, "groups")), 0.5)
    assert abs(data.accuracy(z @ model[:-1] + model[-1]) - 0.5) > 0.43
    fit = cross_fit([z], data.bags, 0.5, seed=0, aligned=True)
    signs = np.sign(fit.coefficients[:, 2])
    assert abs(signs.sum()) == len(signs)


@pytest.mark.parametrize(
    ("law", "prior"),
    [
        (Law.exactly(3, 1), 1 / 3),
        (Law.exactly(3, 1), 0.4),
        (Law.similar(2), 0.5),
        (Law.similar(2), 0.4),
    ],
)
def test_a_network_starts_from_a_score_of_the_right_direction_and_scale(law, prior):
    """The sign of the first law is known, that of similar pairs is free at one half and hardly
    known at 0.4.
    """
    data = Blobs(law, prior)
    scores = network_start(data.rows, data.data, law, prior, 0)
    accuracy = data.accuracy(scores)
    assert accuracy > 0.93 or (law == SIMILAR and accuracy < 0.07)
    assert scores[data.bags.unlabeled].std() == pytest.approx(1)
    assert expit(scores[data.bags.unlabeled]).mean() == pytest.approx(prior)


@pytest.mark.parametrize("law", [Law.dominant(2), Law.dominant(3), Law.at_least(3, 1)])
def test_a_network_needs_no_start_where_the_law_rises(law):
    data = Blobs(law, 0.5, n=30)
    assert network_start(data.rows, data.data, law, 0.5, 0) is None


def test_sparse_rows_are_taken_as_they_are():
    data = Blobs(LAWS["dominant pairs"], 0.4)
    rows = sparse.csr_matrix(np.maximum(Standardisation.learn(data.rows)(data.rows), 0))
    sample = replace(data.sample, rows=rows)
    linear = Linear().learn(sample, 0.4, 0)
    assert data.accuracy(linear(rows)) > 0.9
    student = Student(LogisticRegression()).learn(sample, 0.4, 0)
    assert data.accuracy(student(rows)) > 0.9


@pytest.mark.parametrize(
    "student",
    [
        RandomForestClassifier(50, min_samples_leaf=5),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GaussianNB(),
    ],
)
def test_any_classifier_with_weights_is_a_student(student):
    data = Blobs(LAWS["dominant pairs"], 0.4, n=300)
    first, second = (Student(student).learn(data.sample, 0.4, 3)(data.rows) for _ in range(2))
    assert data.accuracy(first) > 0.93
    np.testing.assert_array_equal(first, second)


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
        ends = [model.student._bin_mapper.bin_thresholds_[place] for model in (by_weight, by_row)]
        assert len(ends[0]) == len(ends[1]) > 200
        bins = [np.searchsorted(own, column) for own in ends]
        # Rounded sums of weights may decide between two neighbours.
        assert np.mean(bins[0] != bins[1]) < 0.01


def test_soft_labels_of_unlabeled_rows_have_the_prior_as_their_mean():
    data = Blobs(LAWS["dominant pairs"], 0.4, n=200)
    fit = fit_teacher(data.sample, 0.4, 0).fit
    members, unlabeled = soft_labels(fit, data.bags, 0.4)
    assert unlabeled.mean() == pytest.approx(0.4)
    assert members.mean() > unlabeled.mean()


def test_missing_values_and_outliers_do_no_harm():
    data = Blobs(LAWS["dominant pairs"], 0.4)
    rows = data.rows.copy()
    rows[::10, 0] = np.nan
    rows[::50, 2] = 1e12
    for learner in (fit_teacher, LEARNERS["student"]):
        assert data.accuracy(learner(replace(data.sample, rows=rows), 0.4, 0)(rows)) > 0.9


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("width", [96, 600])
def test_wide_tables_keep_the_scale_of_each_column(width, more):
    """Columns of one value change nothing, however many; the same column in ten thousand units is
    one of many.
    """
    data = Blobs(LAWS["dominant pairs"], 0.4)
    units = 10.0 ** np.arange(width) / 10.0 ** (width // 2)
    rows = np.hstack([data.rows, more * data.rows[:, 2:3] * units.clip(1e-9, 1e9)])
    scores = fit_teacher(replace(data.sample, rows=rows), 0.4, 0)(rows)
    assert data.accuracy(scores) > 0.93
    if not more:
        np.testing.assert_allclose(scores, fit_teacher(data.sample, 0.4, 0)(data.rows), atol=1e-6)


def test_pixels_share_a_unit():
    """A pixel that hardly ever is not 0 stays small beside the others, which a column would not."""
    pixels = np.random.default_rng(0).integers(0, 255, (300, 11, 11)).astype(np.uint8)
    pixels[:, 0, 0] = np.arange(300) == 7
    for rows in (pixels, pixels.reshape(300, -1), pixels / 255.0):
        assert np.ptp(Standardisation.learn(rows).scale) == 0
    assert np.ptp(Standardisation.learn(pixels.reshape(300, -1) / 255.0).scale) > 0


def test_no_fold_learns_from_a_row_that_it_is_judged_by():
    generator = np.random.default_rng(0)
    bags = Bags.of(
        TupleData(generator.integers(300, size=(60, 2)), generator.integers(300, size=90)),
        lambda _: LAWS["similar pairs"],
    )
    for kept, held in split_folds(bags, 0, 3)[0]:
        seen = {*held.parts[0].tuples.ravel(), *held.unlabeled}
        assert not seen & {*kept.parts[0].tuples.ravel(), *kept.unlabeled}
