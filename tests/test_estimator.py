"""The estimator: scikit-learn's contract, the same numbers as the library's, and estimates without
labels.
"""

import doctest
import pickle
import re
import threading
import warnings
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from precision import in_float64
from scipy import sparse
from scipy.special import expit, logit
from sklearn import config_context
from sklearn.base import ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_info, threadpool_limits

from mdpu import estimator as module
from mdpu.data import TupleData, draw_split, join_groups, number_groups, sample_of
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier, Network, TupleClassifier
from mdpu.law import Law
from mdpu.losses import TupleLoss
from mdpu.scores import (
    TupleKFold,
    estimated_risk,
    negative_bag_risk,
    negative_risk,
    scores_without_labels,
    suspicious,
)
from mdpu.settings import Settings, Task
from mdpu.threads import one_thread
from mdpu.train import train

PRIOR = 0.4
QUICK = {"compare_prior": False, "random_state": 0}


def few(**parameters):
    """A small network that trains for three epochs, unless the parameters say otherwise."""
    own = {"n_epochs": 3, "batch_size": 50, "hidden": (12,), "device": "cpu"} | parameters
    return {"learner": Network(**own)} | QUICK


LONGER = {"n_epochs": 25, "batch_size": 20, "learning_rate": 0.02, "weight_decay": 0.0}


@pytest.fixture(scope="module", autouse=True)
def torch_on_one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small(**parameters):
    """Return a classifier with such a network."""
    return MDPUClassifier(PRIOR, **few(**parameters))


def quick(learner="linear", **parameters):
    """Return a classifier that trains in a moment, with a prior that is told."""
    told = {"prior": PRIOR, "learner": learner} | QUICK
    return MDPUClassifier(**told | parameters)


@contextmanager
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


PIXELS = [f"pixel {k}" for k in range(64)]


class Digits:
    """Even digits against odd ones: pairs, unlabeled images, and labelled ones to test with."""

    def __init__(self, dtype=np.uint8, size=2):
        pixels, digits = load_digits(return_X_y=True)
        images = (pixels * 15).astype(np.uint8).reshape(-1, 8, 8)
        if dtype != np.uint8:
            images = (images / 255).astype(dtype)
        labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)
        split = draw_split(labels[:1200], size, PRIOR, 300, 500, 1)
        self.images = images
        self.sample = TupleData(split.tuples, split.unlabeled)
        self.tuples = images[split.tuples]
        self.unlabeled = images[split.unlabeled]
        self.data = (self.tuples, self.unlabeled)
        self.test_images = images[1200:]
        self.test_labels = labels[1200:]


@pytest.fixture(scope="module")
def digits():
    return Digits()


@pytest.fixture(scope="module")
def trained(digits):
    """A classifier that has learned something."""
    network = Network(n_epochs=40, device="cpu")
    return MDPUClassifier(PRIOR, learner=network, random_state=0).fit(*digits.data)


def same_scores(left, right, rows):
    np.testing.assert_array_equal(left.decision_function(rows), right.decision_function(rows))


def same_model(left, right, images):
    pd.testing.assert_frame_equal(left.history_, right.history_, check_exact=True)
    same_scores(left, right, images)


# -- scikit-learn's contract -----------------------------------------------------------------------


class FromLabels(MDPUClassifier):
    """The estimator on what scikit-learn's checks give, which is labels.

    Every third image is unlabeled, the others make pairs of two that follow one another in their
    class; the larger class is the positive one. So all that the checks do with images, parameters
    and predictions reaches the estimator.
    """

    def fit(self, X, y):
        if y is None:
            return super().fit(X, y)
        tags = self.__sklearn_tags__().input_tags
        finite = "allow-nan" if tags.allow_nan else True
        X, y = validate_data(self, X, y, accept_sparse=tags.sparse, ensure_all_finite=finite)
        check_classification_targets(y)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) != 2:
            raise ValueError(
                f"Only binary classification is supported: {len(classes)} classes, 1 class is too "
                "few"
            )
        groups = np.full(len(y), -1)
        for number in (0, 1):
            places = np.flatnonzero(numbers == number)
            if number == 1:
                tuples = places[np.arange(len(places)) % 3 > 0]
                groups[tuples] = np.arange(len(tuples)) // 2
        super().fit(X, number_groups(groups))
        self.classes_ = classes
        return self

    def predict(self, X):
        positive = super().predict(X) > 0
        return self.classes_[positive.astype(int)]

    def score(self, X, y, sample_weight=None):
        return ClassifierMixin.score(self, X, y, sample_weight)


@parametrize_with_checks(
    [
        FromLabels(PRIOR, **few(**LONGER)),
        FromLabels(PRIOR, learner="linear", compare_prior=False, random_state=0),
    ]
)
def test_scikit_learns_checks_on_data_made_of_labels(estimator, check):
    """In float32 a row's score hangs on its place in the batch by more than a check allows."""
    with in_float64():
        check(estimator)


# The checks that give class labels as y where groups belong, which `fit` refuses; `FromLabels`
# passes all of them.
WITH_LABELS = """
classifier_data_not_an_array classifiers_classes classifiers_train decision_proba_consistency
dict_unchanged dont_overwrite_parameters dtype_object estimators_dtypes estimators_fit_returns_self
estimators_nan_inf estimators_overwrite_params estimators_pickle f_contiguous_array_estimator
fit2d_1feature fit2d_predict1d fit_check_is_fitted fit_idempotent fit_score_takes_y
methods_sample_order_invariance methods_subset_invariance n_features_in n_features_in_after_fitting
pipeline_consistency positive_only_tag_during_fit readonly_memmap_input supervised_y_2d
"""


@parametrize_with_checks(
    [small()],
    expected_failed_checks=lambda estimator: dict.fromkeys(
        (f"check_{name}" for name in re.findall(r"\w+", WITH_LABELS)),
        "the check gives class labels as y, which fit refuses",
    ),
    xfail_strict=True,
)
def test_scikit_learns_checks_without_a_detour(estimator, check):
    check(estimator)


# -- one implementation ----------------------------------------------------------------------------


def library_model(method, size, images, sample):
    """Return what the library trains where the classifier has such a network."""
    settings = Settings(epochs=3, batch_size=50, architecture={"hidden": [12]})
    [model] = train(Task(method, size, PRIOR), images, [sample], [0], settings)
    return model


@pytest.mark.parametrize("method", ["bag-relu", "relu", "ure", "llp"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_history_and_scores_are_the_librarys(method, dtype):
    digits = Digits(dtype, size=3)

    classifier = small(method=method).fit(digits.images, digits.sample)

    model = library_model(method, 3, digits.images, digits.sample)
    pd.testing.assert_frame_equal(classifier.history_, model.history, check_exact=True)
    same_scores(classifier, model, digits.test_images)


@pytest.mark.parametrize(
    ("seed", "same_seed"),
    [
        (3, np.int64(3)),
        ("a trial", "a trial"),
        (np.random.RandomState(3), np.random.RandomState(3)),
    ],
)
def test_a_seed_decides_the_model(seed, same_seed, digits):
    first = small().set_params(random_state=seed).fit(*digits.data)
    second = small().set_params(random_state=same_seed).fit(*digits.data)
    same_model(first, second, digits.test_images)


def test_another_seed_gives_another_model(digits):
    first = small().set_params(random_state=3).fit(*digits.data)
    second = small().set_params(random_state=4).fit(*digits.data)
    assert not first.history_.equals(second.history_)


# -- forms of the data -----------------------------------------------------------------------------


def test_images_with_groups_are_the_same_data_in_any_order(digits):
    """Tuples keep their order and unlabeled images theirs; where the images lie is of no matter."""
    images, groups = join_groups(*digits.data)
    unlabeled_first = np.argsort(groups, kind="stable")
    from_elsewhere = np.where(groups < 0, -1, groups + 10**6)  # the first number is free

    arrays = small().fit(*digits.data)
    joined = small().fit(images, groups)
    moved = small().fit(images[unlabeled_first], from_elsewhere[unlabeled_first])

    same_model(joined, arrays, digits.test_images)
    same_model(moved, arrays, digits.test_images)


def test_tuples_of_several_sizes(digits):
    """They are learned from in the order of their sizes."""
    single = list(digits.tuples[::2, :1])
    pairs = list(digits.tuples[1::2])

    ragged = small().fit(pairs + single, digits.unlabeled)

    images, sample = TupleData.gather(single + pairs, digits.unlabeled)
    model = library_model("bag-relu", 2, images, sample)
    pd.testing.assert_frame_equal(ragged.history_, model.history, check_exact=True)


# -- the other class -------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [PRIOR, None])
def test_dominant_negatives_are_dominant_positives_with_the_classes_exchanged(prior):
    digits = Digits(size=3)
    parameters = few(n_epochs=20)
    exchanged_prior = None if prior is None else 1 - prior
    positive = MDPUClassifier(prior, **parameters)
    negative = MDPUClassifier(exchanged_prior, dominant="negative", **parameters)
    positive.fit(*digits.data)
    negative.fit(*digits.data)

    assert negative.prior_ == pytest.approx(1 - positive.prior_)
    if prior is None:
        assert negative.prior_estimate_.low == pytest.approx(1 - positive.prior_estimate_.high)
        assert positive.prior_estimate_.fits(PRIOR)
        assert negative.prior_estimate_.fits(1 - PRIOR)
    scores = positive.decision_function(digits.test_images)
    np.testing.assert_allclose(negative.decision_function(digits.test_images), -scores, atol=1e-5)

    images, groups = join_groups(*digits.data)
    risk = positive.risk_estimate(*digits.data).value
    bag_risk = negative_bag_risk(positive, images, groups)
    assert negative.risk_estimate(*digits.data).value == pytest.approx(risk)
    assert negative_risk(negative, images, groups) == pytest.approx(-risk)
    assert negative_bag_risk(negative, images, groups) == pytest.approx(bag_risk)


# -- probabilities ---------------------------------------------------------------------------------


class Gaussians:
    """Features of unit variance around +1 and -1 along one direction; the log-odds are known."""

    def __init__(self, n, n_unlabeled, prior=PRIOR, size=2, seed=0):
        self.prior = prior
        self.generator = np.random.default_rng(seed)

        is_positive = self.generator.random((10 * n, size)) < prior
        passed = 2 * is_positive.sum(axis=1) >= size
        self.tuples = self.draw_features(is_positive[passed][:n])

        is_positive = self.generator.random(n_unlabeled) < prior
        self.unlabeled = self.draw_features(is_positive)
        self.labels = np.where(is_positive, 1, -1)
        self.data = (self.tuples, self.unlabeled)

    def draw_features(self, is_positive):
        features = self.generator.standard_normal((*is_positive.shape, 2))
        features[..., 0] += np.where(is_positive, 1.0, -1.0)
        return features.astype(np.float32)

    def posterior(self, images, prior=None):
        return expit(2 * images[:, 0] + logit(prior or self.prior))


@pytest.mark.parametrize("method", ["bag-relu", "relu"])
def test_probabilities_are_near_the_posterior_of_gaussians(method):
    gaussians = Gaussians(4000, 4000)
    test = Gaussians(1, 2000, seed=1)
    suspected = (gaussians.tuples[:50], gaussians.unlabeled)
    network = {
        "hidden": (16,),
        "n_epochs": 20,
        "batch_size": 200,
        "learning_rate": 0.01,
        "short": False,
    }
    classifier = small(method=method, **network).fit(*gaussians.data)

    probabilities = classifier.predict_proba(test.unlabeled)
    error = np.abs(probabilities[:, 1] - test.posterior(test.unlabeled))
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(classifier.predict(test.unlabeled) > 0, probabilities[:, 1] > 0.5)
    assert error.mean() < 0.06

    passes = suspicious(classifier, *suspected).tuples["q"]
    classifier.set_params(prior_shift=0.8)
    passes_shifted = suspicious(classifier, *suspected).tuples["q"]
    probabilities = classifier.predict_proba(test.unlabeled)
    error = np.abs(probabilities[:, 1] - test.posterior(test.unlabeled, 0.8))
    assert np.allclose(passes_shifted, passes, atol=1e-4)
    assert error.mean() < 0.06


@pytest.mark.parametrize(
    "parameters", [{"method": "nnpu"}, {"method": "bag-em"}, {"method": "relu", "loss": "ramp"}]
)
def test_scores_that_are_no_log_odds_give_no_probabilities(parameters, digits):
    classifier = small(n_epochs=1, **parameters).fit(*digits.data)
    with pytest.raises(UserError, match=f"predict_proba.*{parameters['method']}"):
        classifier.predict_proba(digits.test_images)
    with pytest.raises(UserError, match="prior_shift"):
        classifier.set_params(prior_shift=0.5).predict(digits.test_images)


# -- scikit-learn's tools --------------------------------------------------------------------------


@pytest.mark.parametrize(("scorer", "routing"), [(negative_bag_risk, False), (negative_risk, True)])
def test_a_pipeline_scales_and_a_grid_search_chooses_without_labels(scorer, routing):
    gaussians = Gaussians(200, 300)
    far_tuples = gaussians.tuples * 100 + 1000
    far_unlabeled = gaussians.unlabeled * 100 + 1000
    pipeline = make_pipeline(StandardScaler(), small(n_epochs=15))
    grid = {"mdpuclassifier__learner__learning_rate": [1e-9, 0.02]}
    scoring = partial(scorer, prior=PRIOR)

    search = GridSearchCV(pipeline, grid, scoring=scoring, cv=TupleKFold(3))
    with config_context(enable_metadata_routing=routing):
        search.fit(*join_groups(far_tuples, far_unlabeled))

    assert search.best_params_ == {"mdpuclassifier__learner__learning_rate": 0.02}
    assert np.mean(search.predict(far_unlabeled) == gaussians.labels) > 0.75


# -- modules ---------------------------------------------------------------------------------------


def linear(shape):
    """A linear network on vectors."""
    return torch.nn.Linear(shape[0], 1)


def convolutional(shape):
    """A small convolutional network on grey pictures."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(144, 1),
    )


def test_a_function_that_makes_a_module_starts_from_the_seed():
    gaussians = Gaussians(300, 300)
    parameters = {
        "network": linear,
        "standardize": False,
        "n_epochs": 30,
        "learning_rate": 0.05,
    }
    torch.manual_seed(5)
    first = small(**parameters).fit(*gaussians.data)
    torch.manual_seed(6)
    state = torch.get_rng_state()
    second = small(**parameters).fit(*gaussians.data)

    assert torch.equal(torch.get_rng_state(), state)
    same_model(first, second, gaussians.unlabeled)
    assert first.score(gaussians.unlabeled, gaussians.labels) > 0.75

    weight, bias = first.model_.module.parameters()
    expected = gaussians.unlabeled @ weight.detach().numpy()[0] + bias.item()
    scores = first.decision_function(gaussians.unlabeled)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)


def test_a_module_on_pictures_is_copied_and_pickled(digits):
    network = convolutional((8, 8))
    before = deepcopy(network.state_dict())
    classifier = small(network=network).fit(*digits.data)

    after = network.state_dict()
    assert classifier.learner.network is network
    assert all(torch.equal(after[name], before[name]) for name in before)

    pickled = pickle.loads(pickle.dumps(classifier))
    same_model(pickled, classifier, digits.test_images)
    clone(classifier).fit(*digits.data)


@pytest.mark.parametrize("dominant", ["positive", "negative"])
def test_the_plain_module_scores_as_the_classifier(dominant, table):
    classifier = MDPUClassifier(PRIOR, dominant=dominant, prior_shift=0.7, **few()).fit(*table.data)
    scores = classifier.module_(torch.from_numpy(table.rows)).detach().numpy()
    np.testing.assert_allclose(
        scores, classifier.decision_function(table.rows), rtol=1e-3, atol=1e-4
    )
    classifier.set_params(learner="linear").fit(*table.data)
    with pytest.raises(AttributeError, match="module_"):
        _ = classifier.module_


@pytest.mark.parametrize(
    "network",
    [
        3,
        "zzz",
        torch.nn.Linear,
        torch.jit.script(torch.nn.Linear(2, 1)),
        lambda shape: torch.nn.Flatten(),
        lambda shape: torch.nn.Linear(2, 1).requires_grad_(False),
        lambda shape: torch.nn.Linear(2, 3),
        torch.nn.Linear(3, 1),
        torch.nn.Linear(2, 1).double(),
        lambda: torch.nn.Linear(2, 1),
    ],
)
def test_a_network_that_cannot_train_is_refused(network):
    gaussians = Gaussians(20, 20)
    with pytest.raises(
        UserError, match="scripted" if isinstance(network, torch.jit.ScriptModule) else "network"
    ):
        small(network=network).fit(*gaussians.data)


# -- learners --------------------------------------------------------------------------------------


class Table:
    """Digits as a table of floats, half of whose columns have other units, and triples of them."""

    def __init__(self, n=250, prior=PRIOR, size=3, law=None, seed=1):
        pixels, digits = load_digits(return_X_y=True)
        self.rows = pixels * np.resize([1, 1000], 64) + 7.0
        self.labels = np.where(digits % 2 == 0, 1, -1)
        self.test_rows = self.rows[1200:]
        self.test_labels = self.labels[1200:]
        self.generator = np.random.default_rng(seed)

        is_positive = self.generator.random((40 * n, size)) < prior
        weights = np.array(law or Law.dominant(size).weights)
        chances = weights[is_positive.sum(axis=1)]
        passed = self.generator.random(len(chances)) < chances
        tuples = self.draw_rows(is_positive[passed][:n])
        unlabeled = self.draw_rows(self.generator.random(2 * n) < prior)
        self.sample = TupleData(tuples, unlabeled)
        self.tuples = self.rows[tuples]
        self.unlabeled = self.rows[unlabeled]
        self.data = (self.tuples, self.unlabeled)

    def draw_rows(self, is_positive):
        """Draw the index of a row of each class."""
        labels = self.labels[:1200]
        shape = is_positive.shape
        positives = self.generator.choice(np.flatnonzero(labels == 1), shape)
        negatives = self.generator.choice(np.flatnonzero(labels == -1), shape)
        return np.where(is_positive, positives, negatives)

    def first(self, n):
        return TupleData(self.sample.tuples[:n], self.sample.unlabeled)

    def accuracy(self, classifier):
        return np.mean(classifier.predict(self.test_rows) == self.test_labels)


@pytest.fixture(scope="module")
def table():
    return Table()


@pytest.mark.parametrize("learner", ["linear", few(n_epochs=5)["learner"]])
def test_copies_an_origin_far_off_and_rows_that_no_tuple_names_change_nothing(learner, table):
    arrays = quick(learner)
    indices = quick(learner)
    far = table.rows.astype(np.int64) + 2**33  # float32 would round it to 1024
    with in_float64():
        arrays.fit(*table.data)
        indices.fit(np.concatenate([far[:1200], 1000 * far]), table.sample)
        scores = arrays.decision_function(table.test_rows)
        far_scores = indices.decision_function(far[1200:])
    np.testing.assert_allclose(far_scores, scores, atol=1e-3)


@pytest.mark.parametrize("learner", ["linear", LogisticRegression(max_iter=1000), "network"])
def test_learners_of_a_table(learner, table):
    """The columns have different units, which all learners take as they come."""
    classifier = quick(learner).fit(*table.data)
    assert table.accuracy(classifier) > 0.8

    probabilities = classifier.predict_proba(table.test_rows)[:, 1]
    assert np.array_equal(classifier.predict(table.test_rows) > 0, probabilities > 0.5)

    pickled = pickle.loads(pickle.dumps(classifier))
    same_scores(pickled, classifier, table.rows)


@pytest.mark.parametrize(
    ("learner", "data", "chosen"),
    [
        ("auto", lambda t, d: (t.tuples[:90], t.unlabeled), "student"),
        ("auto", lambda t, d: (sparse.csr_matrix(t.rows), t.first(90)), "student"),
        ("student", lambda t, d: (sparse.csr_matrix(t.rows), t.first(50)), "student"),
        ("linear", lambda t, d: (t.tuples, t.unlabeled), "linear"),
        (GaussianNB(), lambda t, d: (t.tuples, t.unlabeled), "student"),
        (Network(n_epochs=8), lambda t, d: (t.tuples, t.unlabeled), "network"),
    ],
)
def test_the_choice_of_a_learner_and_its_reason_are_shown(learner, data, chosen, table, digits):
    classifier = quick(learner).fit(*data(table, digits))
    assert classifier.learner_.name == chosen
    assert repr(classifier).endswith(f"# learner: {classifier.learner_}")


def test_the_default_is_the_learner_that_it_names(table):
    by_default = quick("auto").fit(table.rows, table.sample)
    named = quick(by_default.learner_.name).fit(table.rows, table.sample)
    same_scores(named, by_default, table.rows)


def test_the_default_takes_counts(table):
    few = table.first(100)
    positives = (table.labels[few.tuples] > 0).sum(axis=1)
    fitted = TupleClassifier(PRIOR, **QUICK)

    fitted.fit(table.rows[few.tuples], table.unlabeled, counts=(positives, positives))

    assert fitted.learner_.name == "student"
    assert table.accuracy(fitted) > 0.8


def test_the_default_takes_tuples_of_several_sizes(table):
    pairs = table.tuples[0:100:2, :2]
    triples = table.tuples[1:100:2]
    five = np.concatenate([pairs[0], triples[0]])  # the only group of its size

    fitted = quick("auto").fit([five, *pairs, *triples], table.unlabeled)

    assert fitted.learner_.name == "student"
    assert table.accuracy(fitted) > 0.8


def test_a_learner_that_cannot_take_the_data_is_refused(table):
    rows = sparse.csr_matrix(table.rows)
    with pytest.raises(TypeError, match="toarray"):
        quick(Network()).fit(rows, table.sample)


def test_a_frame_with_missing_values_keeps_its_names(table):
    rows, groups = join_groups(table.tuples[:100], table.unlabeled)
    frame = pd.DataFrame(rows, columns=PIXELS)
    frame.iloc[::7, 3] = np.nan
    new = pd.DataFrame(table.test_rows, columns=PIXELS)

    classifier = quick("auto").fit(frame, groups)

    assert list(classifier.feature_names_in_) == PIXELS
    assert np.mean(classifier.predict(new) == table.test_labels) > 0.8
    with without_warnings():
        classifier.score(frame, groups)
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(new.rename(columns={"pixel 0": "zzz"}))


def test_pictures_of_another_width_are_refused(digits):
    classifier = quick().fit(digits.images, digits.sample)
    with pytest.raises(UserError, match=r"\(8, 6\).*\(8, 8\)"):
        classifier.predict(digits.images[:, :, :6])


@pytest.mark.filterwarnings("ignore")
def test_rows_that_are_all_alike_have_one_answer():
    classifier = MDPUClassifier(0.95, compare_prior=False, learner="linear", random_state=0)
    classifier.fit(np.ones((60, 2, 2)), np.ones((100, 2)))
    assert (classifier.predict(np.ones((3, 2))) == 1).all()


def test_a_network_takes_the_gaps_of_a_table_and_refuses_those_of_pictures(table, digits):
    rows = table.rows.copy()
    rows[::7, 3] = np.nan
    for learner in ("network", Network(n_epochs=20)):
        classifier = quick(learner).fit(rows, table.sample)
        assert np.isfinite(classifier.decision_function(rows)).all()
        assert table.accuracy(classifier) > 0.8
    with pytest.raises(ValueError, match="contains NaN"):
        quick(Network(standardize=False)).fit(rows, table.sample)

    pictures = digits.images / 255
    whole = small().fit(pictures, digits.sample)
    pictures[:, 0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        whole.predict(pictures)
    with pytest.raises(UserError, match="pictures"):
        MDPUClassifier(PRIOR, learner="network", **QUICK).fit(pictures, digits.sample)


def test_exactly_one_of_three_is_learned_at_its_saddle():
    """At a prior of a third the mean member says nothing."""
    exactly_one = (0, 1, 0, 0)
    table = Table(600, 1 / 3, law=exactly_one)
    classifier = TupleClassifier(1 / 3, law=exactly_one, learner="linear", **QUICK)

    classifier.fit(*table.data)

    assert table.accuracy(classifier) > 0.8
    with pytest.raises(UserError, match="members are positive as often as unlabeled"):
        classifier.risk_estimate(*table.data)


@pytest.mark.parametrize("law", [Law.dominant, Law.dominant(3), (0, 0, 1, 1)])
@pytest.mark.parametrize("learner", ["linear", Network(n_epochs=8)])
def test_the_dominant_law_is_one_of_all(learner, law, table):
    dominant = quick(learner).fit(*table.data)
    by_law = TupleClassifier(PRIOR, law=law, learner=learner, **QUICK).fit(*table.data)
    same_scores(by_law, dominant, table.rows)
    assert by_law.risk_estimate(*table.data) == dominant.risk_estimate(*table.data)


@pytest.mark.parametrize(
    "law", [(0, 1), (0, 1, 1, 2), (1, 1, 1, 1), "unlike", 3, Law.dominant(3).broken(0.3)]
)
def test_a_law_that_is_none_is_refused(law, table):
    with pytest.raises(UserError, match="law"):
        TupleClassifier(PRIOR, law=law, broken=0.1, **QUICK).fit(*table.data)


@pytest.mark.parametrize("learner", ["linear", Network(n_epochs=8, short=False)])
def test_a_told_share_of_broken_tuples_is_that_of_the_law(learner, table):
    law = Law.dominant(3).broken(0.1)
    told = quick(learner, broken=0.1)
    by_law = TupleClassifier(PRIOR, law=law, learner=learner, **QUICK)

    told.fit(*table.data)
    by_law.fit(*table.data)

    assert told.law_of(3) == law
    same_scores(told, by_law, table.rows)


@pytest.mark.parametrize(
    ("n", "broken", "network", "schedule", "epochs"),
    [
        (1000, False, "mlp", "constant", 100),
        (1000, True, "components", "one-cycle", 20),
        (4000, False, "components", "one-cycle", 20),
    ],
)
def test_training_is_short_where_tuples_are_broken_or_many(n, broken, network, schedule, epochs):
    settings = Network().settings(n, broken)
    assert settings.network == network
    assert settings.schedule == schedule
    assert settings.epochs == epochs


def test_whether_training_is_short_and_its_epochs_can_be_said():
    assert Network(short=False).settings(4000, broken=True).network == "mlp"
    assert Network(n_epochs=3, short=True).settings(100).epochs == 3


def test_of_a_remainder_the_members_are_put_back(table):
    """As if all rows of the pool had been given as unlabeled ones."""
    remainder = table.sample.unlabeled
    pool = np.concatenate([remainder, table.sample.tuples.ravel()])
    of_remainder = quick(unlabeled_is="remainder")
    of_pool = quick()

    of_remainder.fit(table.rows, table.sample)
    of_pool.fit(table.rows, TupleData(table.sample.tuples, pool))

    same_scores(of_remainder, of_pool, table.rows)


def test_of_a_remainder_the_members_are_put_back_where_it_is_judged(table):
    pool = np.concatenate([table.sample.unlabeled, table.sample.tuples.ravel()])
    of_remainder = quick(unlabeled_is="remainder").fit(table.rows, table.sample)
    of_pool = quick().fit(table.rows, TupleData(table.sample.tuples, pool))
    left = join_groups(table.tuples, table.unlabeled)
    whole = join_groups(table.tuples, table.rows[pool])

    assert of_remainder.risk_estimate(*left) == of_pool.risk_estimate(*whole)
    judged = scores_without_labels(of_remainder, *left)
    for name, estimate in scores_without_labels(of_pool, *whole).items():
        assert judged[name].value == pytest.approx(estimate.value)
        assert judged[name].low == pytest.approx(estimate.low)


@pytest.fixture(scope="module")
def left():
    """Pairs taken out of a pool at 0.5, and its remainder, whose share of positives is a third."""
    table = Table(600, 0.5, 2)
    generator = np.random.default_rng(0)
    labels = table.labels[:1200]
    positives = generator.choice(np.flatnonzero(labels == 1), 400)
    negatives = generator.choice(np.flatnonzero(labels == -1), 800)
    remainder = np.concatenate([positives, negatives])
    return table.rows, TupleData(table.sample.tuples, remainder)


def test_a_remainder_that_nobody_told_is_seen_by_the_told_prior(left):
    untold = MDPUClassifier(0.5, learner="linear", random_state=0)
    told = clone(untold).set_params(unlabeled_is="remainder")
    with pytest.warns(UserWarning, match="unlabeled_is"):
        untold.fit(*left)
    with without_warnings():
        told.fit(*left)
    assert told.prior_estimate_.fits(0.5)


def test_the_estimated_prior_is_that_of_the_pool_only_where_a_remainder_is_told(left):
    untold = MDPUClassifier(learner="linear", random_state=0)
    told = clone(untold).set_params(unlabeled_is="remainder").fit(*left)
    assert told.prior_estimate_.known
    assert told.prior_estimate_.fits(0.5)
    with pytest.raises(UserError, match="prior"):
        untold.fit(*left)


# -- the prior -------------------------------------------------------------------------------------


NOISE = np.random.default_rng(0).standard_normal((200, 2))


def test_a_prior_that_the_sample_tells_is_used(table):
    untold = MDPUClassifier(learner="linear", random_state=0).fit(*table.data)
    estimate = untold.prior_estimate_
    assert estimate.known
    assert estimate.fits(PRIOR)
    assert untold.prior_ == estimate.prior

    told = clone(untold).set_params(prior=estimate.prior).fit(*table.data)
    assert told.prior_estimate_ == estimate
    same_scores(told, untold, table.rows)


@pytest.mark.parametrize(
    "data",
    [
        lambda t: (NOISE[:120].reshape(60, 2, 2), NOISE[120:]),
        lambda t: (t.tuples[:40, :1], t.unlabeled),
        lambda t: (t.tuples[:60, :2], t.unlabeled[:100]),
    ],
)
def test_a_prior_that_the_sample_does_not_tell_is_refused_unless_a_guess_is_asked_for(data, table):
    with pytest.raises(UserError, match="guess_prior"):
        MDPUClassifier(random_state=0).fit(*data(table))
    with pytest.warns(UserWarning, match="guess"):
        guessed = MDPUClassifier(learner="linear", guess_prior=True, random_state=0).fit(
            *data(table)
        )
    assert 0 < guessed.prior_ < 1 and guessed.prior_estimate_.verdict != "known"


def test_a_symmetric_law_leaves_the_names_of_the_classes_open():
    table = Table(800, 0.7, 2, law=(1, 0, 1))
    with pytest.warns(UserWarning, match=r"\+1 is the larger class"):
        classifier = TupleClassifier(law=(1, 0, 1), learner="linear", random_state=0).fit(
            *table.data
        )
    assert classifier.prior_ > 0.5 and classifier.prior_estimate_.fits(0.3)
    assert abs(table.accuracy(classifier) - 0.5) > 0.25


COLUMN = 42  # its mean is larger among even digits


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("law", [(1, 0, 1), (0, 1, 0)])
def test_what_tells_the_classes_of_a_symmetric_law_apart(law, seed):
    """At prior 1/2 some samples end with the classes exchanged, which a column or labelled rows
    mend.
    """
    table = Table(500, 0.5, 2, law, seed)
    rows = table.rows[:12]
    labels = table.labels[:12]
    unnamed = TupleClassifier(0.5, law=law, learner="linear", **QUICK)
    unnamed.set_params(random_state=seed)
    by_column = clone(unnamed).set_params(positive_by=COLUMN)
    by_rows = clone(unnamed).set_params(positive_by=(rows, labels))
    opposite = clone(unnamed).set_params(positive_by=(rows, -labels))

    with pytest.warns(UserWarning, match="positive_by"):
        unnamed.fit(*table.data)
    assert abs(table.accuracy(unnamed) - 0.5) > 0.25

    for named in (by_column, by_rows):
        with without_warnings():
            named.fit(*table.data)
        probabilities = named.predict_proba(table.unlabeled)[:, 1]
        assert named.prior_ == 0.5
        assert table.accuracy(named) > 0.75
        assert probabilities.mean() == pytest.approx(0.5, abs=0.05)

    opposite.fit(*table.data)
    assert table.accuracy(opposite) < 0.25


def test_the_estimated_prior_of_a_symmetric_law_is_that_of_the_class_that_is_named():
    table = Table(800, 0.3, 2, law=(1, 0, 1))
    parameters = {
        "law": (1, 0, 1),
        "learner": "linear",
        "positive_by": "pixel 42",
        "random_state": 0,
    }
    rows, groups = join_groups(*table.data)
    frame = pd.DataFrame(rows, columns=PIXELS)
    assert 0.2 < TupleClassifier(**parameters).fit(frame, groups).prior_ < 0.4


@pytest.mark.parametrize(
    ("law", "by"),
    [
        ((0, 1, 1), COLUMN),
        ((1, 0, 1), 64),
        ((1, 0, 1), "pixel"),
        ((1, 0, 1), (np.zeros((2, 64)), [1])),
    ],
)
def test_what_cannot_tell_the_classes_apart_is_refused(law, by, table):
    classifier = TupleClassifier(0.5, law=law, positive_by=by, learner="linear", **QUICK)
    with pytest.raises(UserError, match="positive_by"):
        classifier.fit(table.tuples[:, :2], table.unlabeled)


def test_tuples_and_rows_that_differ_by_more_than_the_class_are_not_read_as_a_prior(table):
    """Another device took the tuples, which a column shows: no prior is stated, and the column is
    named.
    """
    rows, groups = join_groups(*table.data)
    frame = pd.DataFrame(rows[:, 16:48], columns=PIXELS[16:48])
    means_of_device = np.where(groups < 0, 0.0, 3.0)
    frame["device"] = np.random.default_rng(0).normal(means_of_device)
    untold = MDPUClassifier(learner="linear", random_state=0)
    told = clone(untold).set_params(prior=PRIOR)

    with pytest.raises(UserError, match="device") as refused:
        untold.fit(frame, groups)
    with pytest.warns(UserWarning, match="device"):
        told.fit(frame, groups)

    assert "leave out columns" in str(refused.value)
    assert "more tuples" not in str(refused.value)
    assert told.prior_estimate_.verdict == "does not fit"
    assert told.prior_estimate_.misfit > 1


def test_the_interval_of_the_risk_holds_what_is_uncertain_of_an_estimated_prior():
    """Of intervals that cover in 95 %, 8 or fewer of 12 cover in one of 500 trials."""
    prior = 0.3
    many = Gaussians(1, 100_000, prior, 3, 999)
    covered = []
    for seed in range(12):
        train = Gaussians(500, 500, prior, 3, seed)
        test = Gaussians(2000, 2000, prior, 3, 100 + seed)
        classifier = MDPUClassifier(learner="linear", guess_prior=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier.fit(*train.data)

        estimate = classifier.risk_estimate(*test.data)
        rows, groups = join_groups(*test.data)
        answers = classifier.predict(rows) > 0
        sample = sample_of(groups)
        told = estimated_risk(answers, sample, classifier.prior_, classifier.law_of, 0.95)
        assert estimate.value == told.value
        assert estimate.low <= told.low < told.high <= estimate.high

        risk = np.mean(classifier.predict(many.unlabeled) != many.labels)
        covered.append(estimate.low <= risk <= estimate.high)
    assert sum(covered) > 8


def test_members_that_recur_in_a_small_pool_are_noticed(table):
    """The unlabeled rows are others; where they come from the same pool, all is as it should be."""
    generator = np.random.default_rng(0)
    recurring = table.sample.tuples[generator.integers(20, size=250)]
    classifier = MDPUClassifier(PRIOR, learner="linear", random_state=0)

    with pytest.warns(UserWarning, match="recur"):
        classifier.fit(table.rows, TupleData(recurring, table.sample.unlabeled))
    with without_warnings():
        classifier.fit(table.rows, table.sample)


# -- what misleads is warned of --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "learner", "data", "words"),
    [
        (0.8, "linear", lambda t: (t.tuples, t.unlabeled), ["prior is 0.8", "constant answer"]),
        (PRIOR, "linear", lambda t: (t.tuples[:4], t.unlabeled), ["4 tuples"]),
        (PRIOR, Network(n_epochs=2), lambda t: (t.tuples, t.unlabeled), ["n_epochs"]),
        (
            PRIOR,
            Network(n_epochs=8, network=lambda _: Zero()),
            lambda t: (t.tuples, t.unlabeled),
            ["objective"],
        ),
        (
            PRIOR,
            "linear",
            lambda t: (np.zeros_like(t.tuples), np.zeros_like(t.unlabeled)),
            ["same answer"],
        ),
    ],
)
def test_what_misleads_is_warned_of(prior, learner, data, words, table):
    """Where the caller stands, not inside the package."""
    classifier = MDPUClassifier(prior, learner=learner, random_state=0)
    with pytest.warns(UserWarning) as caught:
        classifier.fit(*data(table))

    said = " ".join(str(warning.message) for warning in caught)
    files = {Path(warning.filename).name for warning in caught}
    assert all(word in said for word in words)
    assert files == {"test_estimator.py"}


class Zero(torch.nn.Linear):
    """A network that lets no gradient through."""

    def __init__(self):
        super().__init__(64, 1)

    def forward(self, rows):
        """Return zeros."""
        return 0 * super().forward(rows)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_a_fit_that_fails_leaves_the_old_model(interruption, table, monkeypatch):
    classifier = quick().fit(*table.data)
    before = dict(vars(classifier))
    scores = classifier.decision_function(table.rows)

    def fail(*data):
        raise interruption

    monkeypatch.setattr(classifier, "_chosen", fail)
    with pytest.raises(interruption):
        classifier.fit(table.tuples[:, :, :5], table.unlabeled[:, :5])
    monkeypatch.undo()
    assert vars(classifier) == before
    assert np.array_equal(classifier.decision_function(table.rows), scores)


@pytest.mark.parametrize("splitter", [KFold(3, shuffle=True, random_state=0), StratifiedKFold(3)])
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_folds_that_cut_tuples_are_refused(splitter, table):
    grid = {"prior": [0.3, 0.4]}
    search = GridSearchCV(quick(), grid, scoring=negative_risk, cv=splitter, error_score="raise")
    with pytest.raises(UserError, match="TupleKFold"):
        search.fit(*join_groups(*table.data))


def test_groups_taken_for_labels_are_refused(table):
    rows, groups = join_groups(*table.data)
    without_sizes = np.where(groups < 0, -1, groups // 10**6)
    bagging = BaggingClassifier(quick(), n_estimators=1, random_state=0)
    with pytest.raises(UserError, match="BaggingClassifier"):
        bagging.fit(rows, groups)
    with pytest.raises(UserError, match="number_groups"):
        quick().fit(rows, without_sizes)


@pytest.mark.parametrize(
    ("negative", "positive"),
    [
        (-1, 1),
        (0, 1),
        (False, True),
        (0.0, 1.0),
    ],
)
def test_labels_of_three_kinds_give_one_accuracy(negative, positive, table):
    classifier = quick().fit(*table.data)
    labels = np.where(table.labels > 0, positive, negative)

    answers = classifier.predict(table.rows)
    accuracy = np.mean(answers == table.labels)

    assert classifier.score(table.rows, labels) == accuracy
    assert classifier.score(table.rows, labels.tolist()) == accuracy


@pytest.mark.parametrize(
    ("negative", "positive"),
    [
        ("no", "yes"),
        ("-1", "1"),
        (0.5, 2),
        (None, None),
    ],
)
def test_labels_of_other_kinds_are_refused(negative, positive, table):
    classifier = quick().fit(*table.data)
    labels = np.where(table.labels > 0, positive, negative)
    with pytest.raises(UserError, match="labels"):
        classifier.score(table.rows, labels)


def test_the_default_scorer_estimates_the_accuracy_from_groups(table):
    rows, groups = join_groups(*table.data)
    folds = TupleKFold(3)
    classifier = quick()

    accuracies = cross_val_score(classifier, rows, groups, cv=folds)
    risks = cross_val_score(classifier, rows, groups, cv=folds, scoring=negative_risk)

    np.testing.assert_allclose(accuracies, 1 + risks, rtol=0, atol=1e-12)


def test_a_score_from_groups_takes_no_weights_and_warns_of_an_estimated_prior(table):
    rows, groups = join_groups(*table.data)
    told = quick().fit(rows, groups)
    estimated = quick(prior=None).fit(rows, groups)
    with pytest.raises(UserError, match="sample_weight"):
        told.score(rows, groups, np.ones(len(rows)))
    with pytest.warns(UserWarning, match="estimated prior"):
        estimated.score(rows, groups)


class Watch:
    """A callback of scikit-learn that takes down what it is told, and may stop a network."""

    def __init__(self, epochs=99):
        self.epochs = epochs
        self.told = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        if context.parent is None:
            self.parts = context.max_subtasks

    def on_fit_task_end(self, estimator, context):
        self.told.append(context.task_name)
        return context.task_name == "epoch" and self.told.count("epoch") == self.epochs


@pytest.mark.parametrize(
    ("parameters", "parts"),
    [
        ({"learner": "linear", "compare_prior": False}, ["linear"]),
        ({"learner": "linear"}, ["linear", "prior"]),
        ({"learner": "linear", "prior": None}, ["prior", "linear"]),
    ],
)
def test_callbacks_follow_the_parts_of_a_training(parameters, parts, table):
    watch = Watch()
    parameters = {"prior": PRIOR, "random_state": 0} | parameters
    classifier = MDPUClassifier(**parameters).set_callbacks(watch)
    classifier.fit(*table.data)
    assert [name for name in watch.told if name != "epoch"] == ["setup", *parts, "fit", "teardown"]
    assert watch.parts == len(parts)


def test_a_callback_of_scikit_learn_stops_a_network_and_ends_with_a_training_that_fails(digits):
    watch = Watch(epochs=2)
    classifier = small(n_epochs=9).set_callbacks(watch)
    classifier.fit(*digits.data)
    assert classifier.n_iter_ == 2
    before = dict(vars(classifier))

    def fail(epoch, row):
        raise RuntimeError("stop")

    classifier.set_params(learner__callbacks=[fail])
    before["learner"] = classifier.learner
    with pytest.raises(RuntimeError, match="stop"):
        classifier.fit(*digits.data)
    assert watch.told.count("setup") == watch.told.count("teardown") == 2
    assert vars(classifier) == before


# -- what is refused -------------------------------------------------------------------------------


class Threads(LogisticRegression):
    """Takes down how many threads the libraries have while it is fitted."""

    seen: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append({pool["num_threads"] for pool in threadpool_info()})
        return super().fit(X, y, sample_weight)


def test_learners_of_small_tables_take_one_thread_and_leave_the_others(table):
    with threadpool_limits(2):
        before = threadpool_info()
        quick(Threads()).fit(*table.data)
        assert threadpool_info() == before
    assert Threads.seen == [{1}]


def test_threads_that_fit_at_once_leave_all_threads_to_the_process(table):
    """The last of them leaves after another came while it was inside."""

    def threads():
        return {
            (pool["user_api"], pool["num_threads"])
            for pool in threadpool_info()
            if pool["user_api"] == "blas"
        }

    inside = threading.Event()
    left = threading.Event()

    def late():
        with one_thread():
            inside.set()
            assert left.wait(60)

    with threadpool_limits(2):
        before = threads()
        other = threading.Thread(target=late)
        with one_thread():
            other.start()
            assert inside.wait(60) and {count for _, count in threads()} == {1}
        assert {count for _, count in threads()} == {1}
        left.set()
        other.join()
        assert threads() == before


def test_the_example_of_the_classifier_gives_what_it_says():
    found = doctest.testmod(module)
    assert found.attempted > 5 and not found.failed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prior", 1.5),
        ("prior", [0.4]),
        ("dominant", "zzz"),
        ("broken", "estimate"),
        ("broken", 1.0),
        ("broken", 0.9),
        ("learner", "zzz"),
        ("learner", None),
        ("learner", LogisticRegression),
        ("learner", SVC()),
        ("unlabeled_is", "zzz"),
        ("prior_shift", 2),
        ("guess_prior", "no"),
        ("random_state", 1.5),
        ("learner__method", "supervised"),
        ("learner__method", "bag-free"),
        ("learner__method", "siamese"),
        ("learner__loss", "zzz"),
        ("learner__loss", TupleLoss),
        ("learner__device", "zzz"),
        ("learner__n_epochs", 0),
        ("learner__hidden", (-1,)),
        ("learner__standardize", "no"),
        ("learner__short", "no"),
        ("learner__callbacks", print),
    ],
)
def test_parameters_are_refused_by_name(name, value, digits):
    classifier = small().set_params(**{name: value})
    with pytest.raises(UserError, match=name.split("__")[-1]) as error:
        classifier.fit(*digits.data)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    "data",
    [
        lambda d: (d.tuples, d.unlabeled[:, :5]),
        lambda d: (d.tuples[:0], d.unlabeled),
        lambda d: (d.images, np.full(len(d.images), -1)),
        lambda d: (d.images, np.array([0, -1])),
        lambda d: (d.unlabeled, [d.images[:2], d.images[:3]]),
        lambda d: (d.tuples, d.unlabeled[:, 0, 0] / 255),
        lambda d: (d.tuples, d.unlabeled[:1]),
        lambda d: (d.tuples, {}),
        lambda d: (None, d.unlabeled),
        lambda d: (d.images, TupleData(np.array([[0, 2000]]), np.arange(9))),
    ],
)
def test_data_that_are_none_are_refused(data, digits):
    with pytest.raises(UserError):
        small().fit(*data(digits))


@pytest.mark.parametrize("level", [0, 95])
def test_a_level_is_a_share(level, trained, digits):
    with pytest.raises(UserError, match="level"):
        trained.risk_estimate(*digits.data, level=level)


def test_tuples_are_not_predicted_as_rows(table):
    classifier = quick().fit(*table.data)
    with pytest.raises(UserError, match="axes"):
        classifier.predict(table.tuples)


@pytest.mark.parametrize("learner", ["linear", LogisticRegression()])
def test_categories_of_a_frame_take_an_encoder(learner, table):
    """As they are, they are refused in a sentence that names one."""
    frame = pd.DataFrame(
        {"pixel": table.rows[:, 20], "kind": np.where(table.rows[:, 36] > 50, "dark", "light")}
    )
    frame["kind"] = pd.Categorical(frame["kind"])
    data = join_groups(
        [frame.iloc[rows] for rows in table.sample.tuples], frame.iloc[table.sample.unlabeled]
    )
    classifier = quick(learner)
    with pytest.raises(UserError, match="kind"):
        classifier.fit(*data)
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    assert make_pipeline(encoder, classifier).fit(*data).predict(frame).shape == (len(frame),)


@pytest.mark.parametrize(
    ("column", "names", "said"),
    [
        (pd.date_range("2020-01-01", periods=1797), ["pixel", "taken"], "taken"),
        (pd.to_timedelta(np.arange(1797), "s"), ["pixel", "taken"], "taken"),
        (np.arange(1797), ["pixel", "pixel"], "pixel"),
    ],
)
def test_columns_that_no_learner_takes_are_named(column, names, said, table):
    frame = pd.DataFrame({"first": table.rows[:, 20], "second": column})
    frame.columns = names
    classifier = quick()
    with pytest.raises(UserError, match=said):
        classifier.fit(frame, table.sample)
    with pytest.raises(UserError, match=said):
        classifier.fit([frame[:3], frame[3:6]], frame[6:])


def test_a_training_that_diverges_is_warned_of(digits):
    images = digits.tuples.astype(np.float64) * 1e30, digits.unlabeled.astype(np.float64) * 1e30
    with pytest.warns(ConvergenceWarning, match="diverged"):
        small(method="ure", loss="squared").fit(*images)


# -- a loss of one's own -------------------------------------------------------------------------


def test_a_loss_of_ones_own_enters_the_classifier(digits):
    shapes = set()

    def loss(tuples, unlabeled):
        shapes.add((tuples.ndim, tuples.shape[1], unlabeled.ndim))
        return TupleLoss(Law.dominant(2), PRIOR)(tuples, unlabeled)

    classifier = small(loss=loss, **LONGER)
    classifier.fit(*digits.data)
    assert shapes == {(2, 2, 1)}
    assert classifier.score(digits.test_images, digits.test_labels) > 0.8
    with pytest.raises(UserError, match="your own"):
        classifier.predict_proba(digits.test_images)


# -- callbacks -------------------------------------------------------------------------------------


def test_callbacks_get_each_row_of_the_history_and_one_that_returns_true_stops(digits):
    """The model is that without them."""
    rows = []

    def take_down(epoch, row):
        rows.append({"epoch": epoch} | row)

    def stop_after_two(epoch, row):
        return np.bool_(epoch == 2)

    def go_on(epoch, row):
        return "goes on"

    callbacks = [take_down, stop_after_two, go_on]
    stopped = small(n_epochs=9, callbacks=callbacks).fit(*digits.data)
    short = small(n_epochs=2).fit(*digits.data)

    assert stopped.n_iter_ == 2
    assert len(stopped.history_) == 2
    same_model(stopped, short, digits.test_images)
    pd.testing.assert_frame_equal(pd.DataFrame(rows), stopped.history_, check_exact=True)


# -- counts that were observed ---------------------------------------------------------------------


COUNTS = {
    "proportions": lambda k, split: (k, k),
    "positive and negative bags": lambda k, split: (k > 0, np.where(k > 0, 4, 0)),
    "bounds of several annotators": lambda k, split: (
        np.where(k < split, 0, split),
        np.where(k < split, split - 1, 4),
    ),
}


def draw_counted(n, size=4, prior=0.4, seed=0):
    """Draw Gaussian rows of groups, and their labels."""
    generator = np.random.default_rng(seed)
    labels = np.where(generator.random((n, size)) < prior, 1, -1)
    rows = generator.standard_normal((n, size, 3))
    rows[..., 0] += 1.5 * labels
    return rows, labels


@pytest.mark.parametrize(
    ("kind", "learner"),
    [
        ("proportions", "linear"),
        ("proportions", "student"),
        ("positive and negative bags", "linear"),
        ("bounds of several annotators", "linear"),
    ],
)
def test_counts_take_the_place_of_a_law(kind, learner):
    """Where all groups are observed, without unlabeled rows and without the prior; the best
    possible is 93.7 %.
    """
    rows, labels = draw_counted(400)
    test_rows, test_labels = draw_counted(3000, 1, seed=3)
    prior = None
    unlabeled = None
    if kind.startswith("bounds"):
        prior = 0.4
        unlabeled = draw_counted(500, 1, seed=2)[0][:, 0]
    positives = (labels > 0).sum(axis=1)
    split = np.random.default_rng(1).integers(1, 4, size=400)
    counts = COUNTS[kind](positives, split)

    classifier = TupleClassifier(prior, learner=learner, **QUICK)
    classifier.fit(rows, unlabeled, counts=counts)

    assert classifier.score(test_rows[:, 0], test_labels[:, 0]) > 0.915
    assert classifier.prior_ == pytest.approx(0.4, abs=0.05)
    with pytest.raises(UserError, match="counts"):
        classifier.law_of(4)


def test_counts_that_differ_are_for_neither_networks_nor_broken_tuples():
    rows, _ = draw_counted(30)
    unlabeled = rows[:, 0]
    low = np.arange(30) % 2
    with pytest.raises(UserError, match="learner"):
        TupleClassifier(0.4, learner="network").fit(rows, unlabeled, counts=(low, low + 1))
    with pytest.raises(UserError, match="broken"):
        TupleClassifier(0.4, broken=0.1).fit(rows, unlabeled, counts=(1, 2))


def test_counts_are_of_groups_and_take_the_place_of_unlabeled_rows():
    rows, _ = draw_counted(30)
    with pytest.raises(UserError, match="frame"):
        TupleClassifier(0.4).fit(pd.DataFrame(rows[:, 0]), counts=(1, 2))
    with pytest.raises(UserError, match="requires y"):
        TupleClassifier(0.4).fit(rows)
