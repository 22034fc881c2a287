"""The estimator: scikit-learn's contract, the same numbers as the library's, and estimates without
labels.
"""

import doctest
import pickle
import re
import threading
import warnings
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
from mdpu.scores import TupleKFold, estimated_risk, negative_bag_risk, negative_risk, suspicious
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


class Digits:
    """Even digits against odd ones: pairs, unlabeled images, and labelled ones to test with."""

    def __init__(self, dtype=np.uint8, size=2):
        pixels, digits = load_digits(return_X_y=True)
        images = (pixels * 15).astype(np.uint8).reshape(-1, 8, 8)
        self.images = images if dtype == np.uint8 else (images / 255).astype(dtype)
        self.labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)
        split = draw_split(self.labels[:1200], size, PRIOR, 300, 500, 1)
        self.sample = TupleData(split.tuples, split.unlabeled)
        self.tuples = self.images[split.tuples]
        self.unlabeled = self.images[split.unlabeled]
        self.test_images = self.images[1200:]
        self.test_labels = self.labels[1200:]


@pytest.fixture(scope="module")
def digits():
    return Digits()


@pytest.fixture(scope="module")
def trained(digits):
    """A classifier that has learned something."""
    network = Network(n_epochs=40, device="cpu")
    return MDPUClassifier(PRIOR, learner=network, random_state=0).fit(
        digits.tuples, digits.unlabeled
    )


def same_model(one, other, images):
    pd.testing.assert_frame_equal(one.history_, other.history_, check_exact=True)
    assert np.array_equal(one.decision_function(images), other.decision_function(images))


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
    [MDPUClassifier(PRIOR, **few())],
    expected_failed_checks=lambda estimator: dict.fromkeys(
        (f"check_{name}" for name in re.findall(r"\w+", WITH_LABELS)),
        "the check gives class labels as y, which fit refuses",
    ),
    xfail_strict=True,
)
def test_scikit_learns_checks_without_a_detour(estimator, check):
    check(estimator)


# -- one implementation ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["bag-relu", "relu", "ure", "llp"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_history_and_scores_are_the_librarys(method, dtype):
    digits = Digits(dtype, size=3)
    classifier = MDPUClassifier(PRIOR, **few(method=method)).fit(digits.images, digits.sample)
    plain = Settings(epochs=3, batch_size=50, architecture={"hidden": [12]})
    (model,) = train(Task(method, 3, PRIOR), digits.images, [digits.sample], [0], plain)
    pd.testing.assert_frame_equal(classifier.history_, model.history, check_exact=True)
    scores = model.decision_function(digits.test_images)
    assert np.array_equal(classifier.decision_function(digits.test_images), scores)


def test_a_seed_decides_the_model_and_another_one_gives_another(digits):
    def fit(random_state):
        classifier = MDPUClassifier(PRIOR, **few() | {"random_state": random_state})
        return classifier.fit(digits.tuples, digits.unlabeled)

    same_model(fit(3), fit(np.int64(3)), digits.test_images)
    same_model(fit("a trial"), fit("a trial"), digits.test_images)
    same_model(fit(np.random.RandomState(3)), fit(np.random.RandomState(3)), digits.test_images)
    assert not fit(3).history_.equals(fit(4).history_)


# -- forms of the data -----------------------------------------------------------------------------


def test_images_with_groups_are_the_same_data_in_any_order(digits):
    """Tuples keep their order and unlabeled images theirs; where the images lie is of no matter."""
    images, groups = join_groups(digits.tuples, digits.unlabeled)
    whole = MDPUClassifier(PRIOR, **few()).fit(digits.tuples, digits.unlabeled)
    same_model(MDPUClassifier(PRIOR, **few()).fit(images, groups), whole, digits.test_images)
    order = np.argsort(groups, kind="stable")  # the unlabeled first
    numbers = np.where(groups < 0, -1, groups + 10**6)  # the first number is free
    same_model(
        MDPUClassifier(PRIOR, **few()).fit(images[order], numbers[order]), whole, digits.test_images
    )


def test_tuples_of_several_sizes(digits):
    """They are learned from in the order of their sizes."""
    ragged = [members[: 1 + i % 2] for i, members in enumerate(digits.tuples)]
    classifier = MDPUClassifier(PRIOR, **few()).fit(ragged, digits.unlabeled)
    images, sample = TupleData.gather(sorted(ragged, key=len), digits.unlabeled)
    plain = Settings(epochs=3, batch_size=50, architecture={"hidden": [12]})
    (model,) = train(Task("bag-relu", 2, PRIOR), images, [sample], [0], plain)
    pd.testing.assert_frame_equal(classifier.history_, model.history, check_exact=True)


# -- the other class -------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [PRIOR, None])
def test_dominant_negatives_are_dominant_positives_with_the_classes_exchanged(prior):
    digits = Digits(size=3)
    parameters = few(n_epochs=20)
    positive = MDPUClassifier(prior, **parameters).fit(digits.tuples, digits.unlabeled)
    exchanged = None if prior is None else 1 - prior
    negative = MDPUClassifier(exchanged, dominant="negative", **parameters).fit(
        digits.tuples, digits.unlabeled
    )
    assert negative.prior_ == pytest.approx(1 - positive.prior_)
    if prior is None:
        assert negative.prior_estimate_.low == pytest.approx(1 - positive.prior_estimate_.high)
        assert positive.prior_estimate_.fits(PRIOR) and negative.prior_estimate_.fits(1 - PRIOR)
    scores = positive.decision_function(digits.test_images)
    np.testing.assert_allclose(negative.decision_function(digits.test_images), -scores, atol=1e-5)
    one, other = (c.risk_estimate(digits.tuples, digits.unlabeled) for c in (positive, negative))
    assert other.value == pytest.approx(one.value)
    images, groups = join_groups(digits.tuples, digits.unlabeled)
    assert negative_risk(negative, images, groups) == pytest.approx(-other.value)
    bag_scores = (negative_bag_risk(c, images, groups) for c in (positive, negative))
    assert next(bag_scores) == pytest.approx(next(bag_scores))


# -- probabilities ---------------------------------------------------------------------------------


class Gaussians:
    """Features of unit variance around +1 and -1 along one direction; the log-odds are known."""

    def __init__(self, n, n_unlabeled, prior=PRIOR, size=2, seed=0):
        generator = np.random.default_rng(seed)

        def features(positive):
            centres = np.where(positive, 1.0, -1.0)[..., None] * np.array([1.0, 0.0])
            return (generator.standard_normal((*positive.shape, 2)) + centres).astype(np.float32)

        members = generator.random((10 * n, size)) < prior
        self.tuples = features(members[2 * members.sum(axis=1) >= size][:n])
        self.labels = np.where(generator.random(n_unlabeled) < prior, 1, -1)
        self.unlabeled = features(self.labels > 0)
        self.prior = prior

    def posterior(self, images, prior=None):
        return expit(2 * images[:, 0] + logit(prior or self.prior))


@pytest.mark.parametrize("method", ["bag-relu", "relu"])
def test_probabilities_are_near_the_posterior_of_gaussians(method):
    data = Gaussians(4000, 4000)
    test = Gaussians(1, 2000, seed=1)
    own = {
        "hidden": (16,),
        "n_epochs": 20,
        "batch_size": 200,
        "learning_rate": 0.01,
        "short": False,
    }
    classifier = MDPUClassifier(PRIOR, **few(method=method, **own)).fit(data.tuples, data.unlabeled)
    probabilities = classifier.predict_proba(test.unlabeled)
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(classifier.predict(test.unlabeled) > 0, probabilities[:, 1] > 0.5)
    assert np.abs(probabilities[:, 1] - test.posterior(test.unlabeled)).mean() < 0.06
    suspects = suspicious(classifier, data.tuples[:50], data.unlabeled).tuples
    classifier.set_params(prior_shift=0.8)
    assert np.allclose(
        suspicious(classifier, data.tuples[:50], data.unlabeled).tuples["q"],
        suspects["q"],
        atol=1e-4,
    )
    shifted = classifier.predict_proba(test.unlabeled)[:, 1]
    assert np.abs(shifted - test.posterior(test.unlabeled, 0.8)).mean() < 0.06


@pytest.mark.parametrize(
    "parameters", [{"method": "nnpu"}, {"method": "bag-em"}, {"method": "relu", "loss": "ramp"}]
)
def test_scores_that_are_no_log_odds_give_no_probabilities(parameters, digits):
    classifier = MDPUClassifier(PRIOR, **few(n_epochs=1, **parameters)).fit(
        digits.tuples, digits.unlabeled
    )
    with pytest.raises(UserError, match=f"predict_proba.*{parameters['method']}"):
        classifier.predict_proba(digits.test_images)
    with pytest.raises(UserError, match="prior_shift"):
        classifier.set_params(prior_shift=0.5).predict(digits.test_images)


# -- scikit-learn's tools --------------------------------------------------------------------------


@pytest.mark.parametrize(("scorer", "routing"), [(negative_bag_risk, False), (negative_risk, True)])
def test_a_pipeline_scales_and_a_grid_search_chooses_without_labels(scorer, routing):
    data = Gaussians(200, 300)
    images, groups = join_groups(data.tuples * 100 + 1000, data.unlabeled * 100 + 1000)
    pipeline = make_pipeline(StandardScaler(), MDPUClassifier(PRIOR, **few(n_epochs=15)))
    grid = {"mdpuclassifier__learner__learning_rate": [1e-9, 0.02]}
    search = GridSearchCV(pipeline, grid, scoring=partial(scorer, prior=PRIOR), cv=TupleKFold(3))
    with config_context(enable_metadata_routing=routing):
        search.fit(images, groups)
    assert search.best_params_ == {"mdpuclassifier__learner__learning_rate": 0.02}
    assert np.mean(search.predict(data.unlabeled * 100 + 1000) == data.labels) > 0.75


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
    data = Gaussians(300, 300)
    own = {"network": linear, "standardize": False, "n_epochs": 30, "learning_rate": 0.05}
    one, other = (MDPUClassifier(PRIOR, **few(**own)) for _ in range(2))
    torch.manual_seed(5)
    one.fit(data.tuples, data.unlabeled)
    torch.manual_seed(6)
    state = torch.get_rng_state()
    other.fit(data.tuples, data.unlabeled)
    assert torch.equal(torch.get_rng_state(), state)
    same_model(one, other, data.unlabeled)
    assert one.score(data.unlabeled, data.labels) > 0.75
    weight, bias = one.model_.module.parameters()
    expected = data.unlabeled @ weight.detach().numpy()[0] + bias.item()
    np.testing.assert_allclose(
        one.decision_function(data.unlabeled), expected, rtol=1e-4, atol=1e-5
    )


def test_a_module_on_pictures_is_copied_and_pickled(digits):
    network = convolutional((8, 8))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    classifier = MDPUClassifier(PRIOR, **few(network=network)).fit(digits.tuples, digits.unlabeled)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert classifier.learner.network is network
    same_model(pickle.loads(pickle.dumps(classifier)), classifier, digits.test_images)
    clone(classifier).fit(digits.tuples, digits.unlabeled)


@pytest.mark.parametrize("dominant", ["positive", "negative"])
def test_the_plain_module_scores_as_the_classifier(dominant, table):
    classifier = MDPUClassifier(PRIOR, dominant=dominant, prior_shift=0.7, **few()).fit(
        table.tuples, table.unlabeled
    )
    scores = classifier.module_(torch.from_numpy(table.rows)).detach().numpy()
    np.testing.assert_allclose(
        scores, classifier.decision_function(table.rows), rtol=1e-3, atol=1e-4
    )
    classifier.set_params(learner="linear").fit(table.tuples, table.unlabeled)
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
    data = Gaussians(20, 20)
    with pytest.raises(
        UserError, match="scripted" if isinstance(network, torch.jit.ScriptModule) else "network"
    ):
        MDPUClassifier(PRIOR, **few(network=network)).fit(data.tuples, data.unlabeled)


# -- learners --------------------------------------------------------------------------------------


class Table:
    """Digits as a table of floats, half of whose columns have other units, and triples of them."""

    def __init__(self, n=250, prior=PRIOR, size=3, law=None, seed=1):
        pixels, digits = load_digits(return_X_y=True)
        self.rows = pixels * np.resize([1, 1000], 64) + 7.0
        self.labels = np.where(digits % 2 == 0, 1, -1)
        generator = np.random.default_rng(seed)
        classes = {label: np.flatnonzero(self.labels[:1200] == label) for label in (1, -1)}
        weights = 2 * np.arange(size + 1) >= size if law is None else np.array(law)

        def rows_of(positive):
            chosen = [generator.choice(classes[label], positive.shape) for label in (1, -1)]
            return np.where(positive, *chosen)

        positive = generator.random((40 * n, size)) < prior
        positive = positive[generator.random(len(positive)) < weights[positive.sum(axis=1)]][:n]
        self.sample = TupleData(rows_of(positive), rows_of(generator.random(2 * n) < prior))
        self.tuples = self.rows[self.sample.tuples]
        self.unlabeled = self.rows[self.sample.unlabeled]

    def first(self, n):
        return TupleData(self.sample.tuples[:n], self.sample.unlabeled)

    def accuracy(self, classifier):
        return np.mean(classifier.predict(self.rows[1200:]) == self.labels[1200:])


@pytest.fixture(scope="module")
def table():
    return Table()


@pytest.mark.parametrize("learner", ["linear", few(n_epochs=5)["learner"]])
def test_copies_an_origin_far_off_and_rows_that_no_tuple_names_change_nothing(learner, table):
    arrays = MDPUClassifier(PRIOR, learner=learner, **QUICK)
    indices = MDPUClassifier(PRIOR, learner=learner, **QUICK)
    far = table.rows.astype(np.int64) + 2**33  # float32 would round it to 1024
    with in_float64():
        arrays.fit(table.tuples, table.unlabeled)
        indices.fit(np.concatenate([far[:1200], 1000 * far]), table.sample)
        scores = arrays.decision_function(table.rows[1200:])
        far_scores = indices.decision_function(far[1200:])
    np.testing.assert_allclose(far_scores, scores, atol=1e-3)


@pytest.mark.parametrize("learner", ["linear", LogisticRegression(max_iter=1000), "network"])
def test_learners_of_a_table(learner, table):
    """The columns have different units, which all learners take as they come."""
    classifier = MDPUClassifier(PRIOR, learner=learner, **QUICK).fit(table.tuples, table.unlabeled)
    assert table.accuracy(classifier) > 0.8
    probabilities = classifier.predict_proba(table.rows[1200:])[:, 1]
    assert np.array_equal(classifier.predict(table.rows[1200:]) > 0, probabilities > 0.5)
    copy = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(
        copy.decision_function(table.rows), classifier.decision_function(table.rows)
    )


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
    classifier = MDPUClassifier(PRIOR, learner=learner, **QUICK).fit(*data(table, digits))
    assert classifier.learner_.name == chosen
    assert repr(classifier).endswith(f"# learner: {classifier.learner_}")


def test_the_default_is_the_learner_that_it_names(table):
    fitted = MDPUClassifier(PRIOR, **QUICK).fit(table.rows, table.sample)
    same = MDPUClassifier(PRIOR, learner=fitted.learner_.name, **QUICK)
    same.fit(table.rows, table.sample)
    scores = fitted.decision_function(table.rows)
    assert np.array_equal(same.decision_function(table.rows), scores)


@pytest.mark.parametrize("counted", [False, True])
def test_the_default_takes_counts_and_tuples_of_several_sizes(counted, table):
    few = table.first(100)
    unlabeled = table.unlabeled
    if counted:
        positives = (table.labels[few.tuples] > 0).sum(axis=1)
        fitted = TupleClassifier(PRIOR, **QUICK).fit(
            table.rows[few.tuples], unlabeled, (positives, positives)
        )
    else:
        ragged = [members[: 2 + place % 2] for place, members in enumerate(table.rows[few.tuples])]
        ragged[0] = np.concatenate(ragged[:2])  # the only group of its size
        fitted = MDPUClassifier(PRIOR, **QUICK).fit(ragged, unlabeled)
    assert fitted.learner_.name == "student"
    assert table.accuracy(fitted) > 0.8


def test_a_learner_that_cannot_take_the_data_is_refused(table):
    rows = sparse.csr_matrix(table.rows)
    with pytest.raises(TypeError, match="toarray"):
        MDPUClassifier(PRIOR, learner=Network(), **QUICK).fit(rows, table.sample)


def test_a_frame_with_missing_values_keeps_its_names(table):
    rows, groups = join_groups(table.tuples[:100], table.unlabeled)
    frame = pd.DataFrame(rows, columns=[f"pixel {k}" for k in range(64)])
    frame.iloc[::7, 3] = np.nan
    classifier = MDPUClassifier(PRIOR, **QUICK).fit(frame, groups)
    assert list(classifier.feature_names_in_) == list(frame.columns)
    new = pd.DataFrame(table.rows[1200:], columns=frame.columns)
    assert np.mean(classifier.predict(new) == table.labels[1200:]) > 0.8
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(new.rename(columns={"pixel 0": "zzz"}))


def test_a_network_takes_the_gaps_of_a_table_and_refuses_those_of_pictures(table, digits):
    rows = table.rows.copy()
    rows[::7, 3] = np.nan
    for learner in ("network", Network(n_epochs=20)):
        classifier = MDPUClassifier(PRIOR, learner=learner, **QUICK).fit(rows, table.sample)
        assert np.isfinite(classifier.decision_function(rows)).all()
        assert table.accuracy(classifier) > 0.8
    with pytest.raises(ValueError, match="contains NaN"):
        MDPUClassifier(PRIOR, learner=Network(standardize=False), **QUICK).fit(rows, table.sample)

    pictures = digits.images / 255
    whole = MDPUClassifier(PRIOR, **few()).fit(pictures, digits.sample)
    pictures[:, 0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        whole.predict(pictures)
    with pytest.raises(UserError, match="pictures"):
        MDPUClassifier(PRIOR, learner="network", **QUICK).fit(pictures, digits.sample)


def test_exactly_one_of_three_is_learned_at_its_saddle():
    """At a prior of a third the mean member says nothing."""
    table = Table(600, 1 / 3, law=(0, 1, 0, 0))
    classifier = TupleClassifier(1 / 3, law=(0, 1, 0, 0), learner="linear", **QUICK)
    classifier.fit(table.tuples, table.unlabeled)
    assert table.accuracy(classifier) > 0.8
    with pytest.raises(UserError, match="members are positive as often as unlabeled"):
        classifier.risk_estimate(table.tuples, table.unlabeled)


@pytest.mark.parametrize("learner", ["linear", Network(n_epochs=8)])
def test_the_dominant_law_is_one_of_all(learner, table):
    data = table.tuples, table.unlabeled
    dominant = MDPUClassifier(PRIOR, learner=learner, **QUICK).fit(*data)
    for law in (Law.dominant, Law.dominant(3), (0, 0, 1, 1)):
        own = TupleClassifier(PRIOR, law=law, learner=learner, **QUICK).fit(*data)
        assert np.array_equal(
            own.decision_function(table.rows), dominant.decision_function(table.rows)
        )
        assert own.risk_estimate(*data) == dominant.risk_estimate(*data)


@pytest.mark.parametrize(
    "law", [(0, 1), (0, 1, 1, 2), (1, 1, 1, 1), "unlike", 3, Law.dominant(3).broken(0.3)]
)
def test_a_law_that_is_none_is_refused(law, table):
    with pytest.raises(UserError, match="law"):
        TupleClassifier(PRIOR, law=law, broken=0.1, **QUICK).fit(table.tuples, table.unlabeled)


@pytest.mark.parametrize("learner", ["linear", Network(n_epochs=8, short=False)])
def test_a_told_share_of_broken_tuples_is_that_of_the_law(learner, table):
    told = MDPUClassifier(PRIOR, broken=0.1, learner=learner, **QUICK).fit(
        table.tuples, table.unlabeled
    )
    law = Law.dominant(3).broken(0.1)
    assert told.law_of(3) == law
    own = TupleClassifier(PRIOR, law=law, learner=learner, **QUICK).fit(
        table.tuples, table.unlabeled
    )
    assert np.array_equal(told.decision_function(table.rows), own.decision_function(table.rows))


def test_training_is_short_where_tuples_are_broken_or_many():
    network = Network()
    kinds = [
        network.settings(n, broken) for n, broken in ((1000, False), (1000, True), (4000, False))
    ]
    assert [(own.network, own.schedule, own.epochs) for own in kinds] == [
        ("mlp", "constant", 100),
        ("components", "one-cycle", 20),
        ("components", "one-cycle", 20),
    ]
    assert network.set_params(short=False).settings(4000, broken=True).network == "mlp"
    assert network.set_params(n_epochs=3, short=True).settings(100).epochs == 3


def test_of_a_remainder_the_members_are_put_back(table):
    """As if all rows of the pool had been given as unlabeled ones."""
    rest = MDPUClassifier(PRIOR, learner="linear", unlabeled_is="remainder", **QUICK).fit(
        table.rows, table.sample
    )
    pool = np.concatenate([table.sample.unlabeled, table.sample.tuples.ravel()])
    whole = MDPUClassifier(PRIOR, learner="linear", **QUICK).fit(
        table.rows, TupleData(table.sample.tuples, pool)
    )
    assert np.array_equal(rest.decision_function(table.rows), whole.decision_function(table.rows))


@pytest.fixture(scope="module")
def left():
    """Pairs taken out of a pool at 0.5, and its remainder, whose share of positives is a third."""
    table = Table(600, 0.5, 2)
    generator = np.random.default_rng(0)
    labels = table.labels[:1200]
    rest = [
        generator.choice(np.flatnonzero(labels == side), count)
        for side, count in ((1, 400), (-1, 800))
    ]
    return table.rows, TupleData(table.sample.tuples, np.concatenate(rest))


def test_a_remainder_that_nobody_told_is_seen_by_the_told_prior(left):
    with pytest.warns(UserWarning, match="unlabeled_is"):
        MDPUClassifier(0.5, learner="linear", random_state=0).fit(*left)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = MDPUClassifier(0.5, learner="linear", random_state=0, unlabeled_is="remainder").fit(
            *left
        )
    assert told.prior_estimate_.fits(0.5)


def test_the_estimated_prior_is_that_of_the_pool_only_where_a_remainder_is_told(left):
    told = MDPUClassifier(learner="linear", random_state=0, unlabeled_is="remainder").fit(*left)
    assert told.prior_estimate_.known and told.prior_estimate_.fits(0.5)
    with pytest.raises(UserError, match="prior"):
        MDPUClassifier(learner="linear", random_state=0).fit(*left)


# -- the prior -------------------------------------------------------------------------------------


NOISE = np.random.default_rng(0).standard_normal((200, 2))


def test_a_prior_that_the_sample_tells_is_used(table):
    classifier = MDPUClassifier(learner="linear", random_state=0).fit(table.tuples, table.unlabeled)
    estimate = classifier.prior_estimate_
    assert estimate.known and classifier.prior_ == estimate.prior and estimate.fits(PRIOR)
    told = MDPUClassifier(estimate.prior, learner="linear", random_state=0).fit(
        table.tuples, table.unlabeled
    )
    assert told.prior_estimate_ == estimate
    assert np.array_equal(
        told.decision_function(table.rows), classifier.decision_function(table.rows)
    )


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
            table.tuples, table.unlabeled
        )
    assert classifier.prior_ > 0.5 and classifier.prior_estimate_.fits(0.3)
    assert abs(table.accuracy(classifier) - 0.5) > 0.25


COLUMN = 42  # its mean is larger among even digits


@pytest.mark.parametrize("law", [(1, 0, 1), (0, 1, 0)])
def test_what_tells_the_classes_of_a_symmetric_law_apart(law):
    """At prior 1/2 some samples end with the classes exchanged, which a column or labelled rows
    mend.
    """
    found = []
    for seed in (1, 2):
        table = Table(500, 0.5, 2, law, seed)
        with pytest.warns(UserWarning, match="positive_by"):
            plain = TupleClassifier(
                0.5, law=law, learner="linear", **{**QUICK, "random_state": seed}
            )
            found.append(table.accuracy(plain.fit(table.tuples, table.unlabeled)))
        labelled = table.rows[:12], table.labels[:12]
        for by in (COLUMN, labelled):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                named = clone(plain).set_params(positive_by=by).fit(table.tuples, table.unlabeled)
            assert table.accuracy(named) > 0.75 and named.prior_ == 0.5
            assert named.predict_proba(table.unlabeled)[:, 1].mean() == pytest.approx(0.5, abs=0.05)
        opposite = clone(plain).set_params(positive_by=(labelled[0], -labelled[1]))
        assert table.accuracy(opposite.fit(table.tuples, table.unlabeled)) < 0.25
    assert all(abs(one - 0.5) > 0.25 for one in found)


def test_the_estimated_prior_of_a_symmetric_law_is_that_of_the_class_that_is_named():
    table = Table(800, 0.3, 2, law=(1, 0, 1))
    parameters = {
        "law": (1, 0, 1),
        "learner": "linear",
        "positive_by": "pixel 42",
        "random_state": 0,
    }
    rows, groups = join_groups(table.tuples, table.unlabeled)
    frame = pd.DataFrame(rows, columns=[f"pixel {k}" for k in range(64)])
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
    rows, groups = join_groups(table.tuples, table.unlabeled)
    frame = pd.DataFrame(rows[:, 16:48], columns=[f"pixel {k}" for k in range(32)])
    frame["device"] = np.random.default_rng(0).normal(np.where(groups < 0, 0.0, 3.0))
    with pytest.raises(UserError, match="device") as refused:
        MDPUClassifier(learner="linear", random_state=0).fit(frame, groups)
    assert "leave out columns" in str(refused.value) and "more tuples" not in str(refused.value)
    with pytest.warns(UserWarning, match="device"):
        told = MDPUClassifier(PRIOR, learner="linear", random_state=0).fit(frame, groups)
    assert told.prior_estimate_.verdict == "does not fit" and told.prior_estimate_.misfit > 1


def test_the_interval_of_the_risk_holds_what_is_uncertain_of_an_estimated_prior():
    """Of intervals that cover in 95 %, 8 or fewer of 12 cover in one of 500 trials."""
    prior = 0.3
    covered = []
    for seed in range(12):
        data = Gaussians(500, 500, prior, 3, seed)
        other = Gaussians(2000, 2000, prior, 3, 100 + seed)
        classifier = MDPUClassifier(learner="linear", guess_prior=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier.fit(data.tuples, data.unlabeled)
        found = classifier.risk_estimate(other.tuples, other.unlabeled)
        told = estimated_risk(
            *sample_and_answers(classifier, other), classifier.prior_, classifier.law_of, 0.95
        )
        assert found.low <= told.low < told.high <= found.high and found.value == told.value
        many = Gaussians(1, 100_000, prior, 3, 999)
        wrong = np.mean(classifier.predict(many.unlabeled) != np.where(many.labels > 0, 1, -1))
        covered.append(found.low <= wrong <= found.high)
    assert sum(covered) > 8


def sample_and_answers(classifier, data):
    rows, groups = join_groups(data.tuples, data.unlabeled)
    return classifier.predict(rows) > 0, sample_of(groups)


def test_members_that_recur_in_a_small_pool_are_noticed(table):
    """The unlabeled rows are others; where they come from the same pool, all is as it should be."""
    generator = np.random.default_rng(0)
    few = TupleData(table.sample.tuples[generator.integers(20, size=250)], table.sample.unlabeled)
    with pytest.warns(UserWarning, match="recur"):
        MDPUClassifier(PRIOR, learner="linear", random_state=0).fit(table.rows, few)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MDPUClassifier(PRIOR, learner="linear", random_state=0).fit(table.rows, table.sample)


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
    with pytest.warns(UserWarning) as caught:
        MDPUClassifier(prior, learner=learner, random_state=0).fit(*data(table))
    assert all(word in " ".join(str(warning.message) for warning in caught) for word in words)
    assert {Path(warning.filename).name for warning in caught} == {"test_estimator.py"}


class Zero(torch.nn.Linear):
    """A network that lets no gradient through."""

    def __init__(self):
        super().__init__(64, 1)

    def forward(self, rows):
        """Return zeros."""
        return 0 * super().forward(rows)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_a_fit_that_fails_leaves_the_old_model(interruption, table, monkeypatch):
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK).fit(table.tuples, table.unlabeled)
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


def test_folds_that_cut_tuples_and_groups_taken_for_labels_are_refused(table):
    rows, groups = join_groups(table.tuples, table.unlabeled)
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK)
    grid = GridSearchCV(classifier, {"prior": [0.3, 0.4]}, error_score="raise")
    for splitter in (KFold(3, shuffle=True, random_state=0), StratifiedKFold(3)):
        with pytest.raises(UserError, match="TupleKFold"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes with few members
            grid.set_params(cv=splitter, scoring=negative_risk).fit(rows, groups)
    with pytest.raises(UserError, match="BaggingClassifier"):
        BaggingClassifier(classifier, n_estimators=1, random_state=0).fit(rows, groups)
    with pytest.raises(UserError, match="number_groups"):
        classifier.fit(rows, np.where(groups < 0, -1, groups // 10**6))


@pytest.mark.parametrize("values", [(-1, 1), (0, 1), (False, True), (0.0, 1.0)])
def test_labels_of_three_kinds_give_one_accuracy(values, table):
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK).fit(table.tuples, table.unlabeled)
    labels = np.where(table.labels > 0, values[1], values[0])
    right = np.mean(classifier.predict(table.rows) == table.labels)
    assert classifier.score(table.rows, labels) == right
    assert classifier.score(table.rows, labels.tolist()) == right


def test_labels_of_other_kinds_are_refused(table):
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK).fit(table.tuples, table.unlabeled)
    for values in (("no", "yes"), ("-1", "1"), (0.5, 2), (None, None)):
        wrong = np.where(table.labels > 0, values[1], values[0])
        with pytest.raises(UserError, match="labels"):
            classifier.score(table.rows, wrong)


def test_the_default_scorer_estimates_the_accuracy_from_groups(table):
    rows, groups = join_groups(table.tuples, table.unlabeled)
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK)
    folds = TupleKFold(3)
    scores = cross_val_score(classifier, rows, groups, cv=folds)
    expected = cross_val_score(classifier, rows, groups, cv=folds, scoring=negative_risk)
    np.testing.assert_allclose(scores, 1 + expected, rtol=0, atol=1e-12)
    fitted = classifier.fit(rows, groups)
    with pytest.raises(UserError, match="sample_weight"):
        fitted.score(rows, groups, np.ones(len(rows)))
    with pytest.warns(UserWarning, match="estimated prior"):
        clone(classifier).set_params(prior=None).fit(rows, groups).score(rows, groups)


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
    classifier.fit(table.tuples, table.unlabeled)
    assert [name for name in watch.told if name != "epoch"] == ["setup", *parts, "fit", "teardown"]
    assert watch.parts == len(parts)


def test_a_callback_of_scikit_learn_stops_a_network_and_ends_with_a_training_that_fails(digits):
    watch = Watch(epochs=2)
    classifier = MDPUClassifier(PRIOR, **few(n_epochs=9)).set_callbacks(watch)
    classifier.fit(digits.tuples, digits.unlabeled)
    assert classifier.n_iter_ == 2
    before = dict(vars(classifier))

    def fail(epoch, row):
        raise RuntimeError("stop")

    classifier.set_params(learner__callbacks=[fail])
    before["learner"] = classifier.learner
    with pytest.raises(RuntimeError, match="stop"):
        classifier.fit(digits.tuples, digits.unlabeled)
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
        MDPUClassifier(PRIOR, learner=Threads(), **QUICK).fit(table.tuples, table.unlabeled)
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
    classifier = MDPUClassifier(PRIOR, **few()).set_params(**{name: value})
    with pytest.raises(UserError, match=name.split("__")[-1]) as error:
        classifier.fit(digits.tuples, digits.unlabeled)
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
        MDPUClassifier(PRIOR, **few()).fit(*data(digits))


@pytest.mark.parametrize("level", [0, 95])
def test_a_level_is_a_share(level, trained, digits):
    with pytest.raises(UserError, match="level"):
        trained.risk_estimate(digits.tuples, digits.unlabeled, level=level)


def test_tuples_are_not_predicted_as_rows(table):
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK).fit(table.tuples, table.unlabeled)
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
    classifier = MDPUClassifier(PRIOR, learner=learner, **QUICK)
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
    frame = pd.DataFrame({"pixel": table.rows[:, 20], "other": column}).set_axis(names, axis=1)
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK)
    with pytest.raises(UserError, match=said):
        classifier.fit(frame, table.sample)
    with pytest.raises(UserError, match=said):
        classifier.fit([frame[:3], frame[3:6]], frame[6:])


def test_a_training_that_diverges_is_warned_of(digits):
    images = digits.tuples.astype(np.float64) * 1e30, digits.unlabeled.astype(np.float64) * 1e30
    with pytest.warns(ConvergenceWarning, match="diverged"):
        MDPUClassifier(PRIOR, **few(method="ure", loss="squared")).fit(*images)


# -- a loss of one's own -------------------------------------------------------------------------


def test_a_loss_of_ones_own_enters_the_classifier(digits):
    shapes = set()

    def loss(tuples, unlabeled):
        shapes.add((tuples.ndim, tuples.shape[1], unlabeled.ndim))
        return TupleLoss(Law.dominant(2), PRIOR)(tuples, unlabeled)

    classifier = MDPUClassifier(PRIOR, **few(loss=loss, **LONGER))
    classifier.fit(digits.tuples, digits.unlabeled)
    assert shapes == {(2, 2, 1)}
    assert classifier.score(digits.test_images, digits.test_labels) > 0.8
    with pytest.raises(UserError, match="your own"):
        classifier.predict_proba(digits.test_images)


# -- callbacks -------------------------------------------------------------------------------------


def test_callbacks_get_each_row_of_the_history_and_one_that_returns_true_stops(digits):
    """The model is that without them."""
    rows = []
    stops = [lambda epoch, row: np.bool_(epoch == 2), lambda epoch, row: "goes on"]
    callbacks = [lambda *own: rows.append(own), *stops]
    stopped = MDPUClassifier(PRIOR, **few(n_epochs=9, callbacks=callbacks)).fit(
        digits.tuples, digits.unlabeled
    )
    assert stopped.n_iter_ == len(stopped.history_) == 2
    short = MDPUClassifier(PRIOR, **few(n_epochs=2)).fit(digits.tuples, digits.unlabeled)
    same_model(stopped, short, digits.test_images)
    given = pd.DataFrame([{"epoch": epoch} | row for epoch, row in rows])
    pd.testing.assert_frame_equal(given, stopped.history_, check_exact=True)


# -- counts that were observed ---------------------------------------------------------------------


def counted_data(n, size=4, prior=0.4, seed=0):
    """Gaussian rows of groups, and their labels."""
    generator = np.random.default_rng(seed)
    labels = generator.random((n, size)) < prior
    rows = generator.standard_normal((n, size, 3))
    rows[..., 0] += np.where(labels, 1.5, -1.5)
    return rows, labels


COUNTS = {
    "proportions": lambda k, split: (k, k),
    "positive and negative bags": lambda k, split: (k > 0, np.where(k > 0, 4, 0)),
    "bounds of several annotators": lambda k, split: (
        np.where(k < split, 0, split),
        np.where(k < split, split - 1, 4),
    ),
}


@pytest.mark.parametrize(
    ("kind", "learner"), [*((kind, "linear") for kind in COUNTS), ("proportions", "student")]
)
def test_counts_take_the_place_of_a_law(kind, learner):
    """Where all groups are observed, without unlabeled rows and without the prior; the best
    possible is 93.7 %.
    """
    rows, labels = counted_data(400)
    split = np.random.default_rng(1).integers(1, 4, size=400)
    several = kind.startswith("bounds")
    counts = COUNTS[kind](labels.sum(axis=1), split)
    unlabeled = counted_data(500, 1, seed=2)[0][:, 0] if several else None
    own = TupleClassifier(0.4 if several else None, learner=learner, **QUICK).fit(
        rows, unlabeled, counts=counts
    )
    test, truth = (part[:, 0] for part in counted_data(3000, 1, seed=3))
    assert own.score(test, np.where(truth, 1, -1)) > 0.915
    assert own.prior_ == pytest.approx(0.4, abs=0.05)
    with pytest.raises(UserError, match="counts"):
        own.law_of(4)


def test_counts_that_differ_are_for_neither_networks_nor_broken_tuples():
    rows, _ = counted_data(30)
    low = np.arange(len(rows)) % 2
    with pytest.raises(UserError, match="learner"):
        TupleClassifier(0.4, learner="network").fit(rows, rows[:, 0], counts=(low, low + 1))
    with pytest.raises(UserError, match="broken"):
        TupleClassifier(0.4, broken=0.1).fit(rows, rows[:, 0], counts=(1, 2))
    with pytest.raises(UserError, match="frame"):
        TupleClassifier(0.4).fit(pd.DataFrame(rows[:, 0]), counts=(1, 2))
    with pytest.raises(UserError, match="requires y"):
        TupleClassifier(0.4).fit(rows)
