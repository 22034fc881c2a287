"""The estimator: scikit-learn's contract, the same numbers as the library's, and estimates without labels."""

from __future__ import annotations

import doctest
import pickle
import re
import warnings
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from scipy.special import expit, logit
from sklearn import config_context
from sklearn.base import ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_info, threadpool_limits

from mdpu.data import TupleData, draw_split
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier, TupleClassifier, classifiers
from mdpu.groups import TupleKFold, join_groups, negative_bag_risk, negative_risk
from mdpu.law import Law
from mdpu.learn import Settings, Task, fit
from mdpu.learn.stopping import HeldOutRisk
from mdpu.learn.stopping import _best as best_epoch
from mdpu.pipeline.files import REPOSITORY

PRIOR = 0.4
FEW = {
    "n_epochs": 3,
    "batch_size": 50,
    "hidden": (12,),
    "random_state": 0,
    "device": "cpu",
    "compare_prior": False,
}
LONGER = {"n_epochs": 25, "batch_size": 20, "learning_rate": 0.02, "weight_decay": 0.0}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
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
        self.tuples, self.unlabeled = self.images[split.tuples], self.images[split.unlabeled]
        self.test_images, self.test_labels = self.images[1200:], self.labels[1200:]


@pytest.fixture(scope="module")
def digits():
    return Digits()


@pytest.fixture(scope="module")
def trained(digits):
    """A classifier that has learned something."""
    return MDPUClassifier(PRIOR, n_epochs=40, random_state=0, device="cpu").fit(digits.tuples, digits.unlabeled)


def same_model(one, other, images):
    pd.testing.assert_frame_equal(one.history_, other.history_, check_exact=True)
    assert np.array_equal(one.decision_function(images), other.decision_function(images))


# -- scikit-learn's contract ------------------------------------------------------------------------


class FromLabels(MDPUClassifier):
    """The estimator on what scikit-learn's checks give, which is labels.

    Every third image is unlabeled, the others make pairs of two that follow one another in their class; the larger
    class is the positive one. So all that the checks do with images, parameters and predictions reaches the estimator.
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
            raise ValueError(f"Only binary classification is supported: {len(classes)} classes, 1 class is too few")
        groups = np.full(len(y), -1)
        for number in (0, 1):
            places = np.flatnonzero(numbers == number)
            if number == 1:
                tuples = places[np.arange(len(places)) % 3 > 0]
                groups[tuples] = np.arange(len(tuples)) // 2
        super().fit(X, groups)
        self.classes_ = classes
        return self

    def predict(self, X):
        positive = super().predict(X) > 0
        return self.classes_[positive.astype(int)]

    def score(self, X, y, sample_weight=None):
        return ClassifierMixin.score(self, X, y, sample_weight)


@parametrize_with_checks(
    [FromLabels(PRIOR, **FEW | LONGER), FromLabels(PRIOR, learner="linear", compare_prior=False, random_state=0)]
)
def test_scikit_learns_checks_on_data_made_of_labels(estimator, check):
    check(estimator)


# The checks that give class labels as y where groups belong, which `fit` refuses; `FromLabels` passes all of them.
WITH_LABELS = """
classifier_data_not_an_array classifiers_classes classifiers_train decision_proba_consistency dict_unchanged
dont_overwrite_parameters dtype_object estimators_dtypes estimators_fit_returns_self estimators_nan_inf
estimators_overwrite_params estimators_pickle f_contiguous_array_estimator fit2d_1feature fit2d_predict1d
fit_check_is_fitted fit_idempotent fit_score_takes_y methods_sample_order_invariance methods_subset_invariance
n_features_in n_features_in_after_fitting pipeline_consistency positive_only_tag_during_fit readonly_memmap_input
supervised_y_2d
sample_weights_pandas_series sample_weights_not_an_array sample_weights_list all_zero_sample_weights_error
sample_weights_shape sample_weights_not_overwritten sample_weight_equivalence_on_dense_data
classifiers_one_label_sample_weights
"""


@parametrize_with_checks(
    [MDPUClassifier(PRIOR, **FEW)],
    expected_failed_checks=lambda estimator: dict.fromkeys(
        (f"check_{name}" for name in re.findall(r"\w+", WITH_LABELS)),
        "the check gives class labels as y, which fit refuses",
    ),
    xfail_strict=True,
)
def test_scikit_learns_checks_without_a_detour(estimator, check):
    check(estimator)


# -- one implementation -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["bag-relu", "relu", "ure", "llp"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_history_and_scores_are_the_librarys_bit_for_bit(method, dtype):
    """The library takes the sample as indices into all images, as the pipeline does, and so may the classifier.

    That way no pixel is in use in the one and not in the other. Products of other widths round otherwise.
    """
    digits = Digits(dtype, size=3)
    classifier = MDPUClassifier(PRIOR, method=method, **FEW).fit(digits.images, digits.sample)
    plain = Settings(epochs=3, batch_size=50, precision="fp32", architecture={"hidden": [12]})
    (model,) = fit([Task(method, 3, PRIOR)], digits.images, digits.sample, plain, device="cpu")
    pd.testing.assert_frame_equal(classifier.history_, model.history, check_exact=True)
    scores = model.decision_function(digits.test_images)
    assert np.array_equal(classifier.decision_function(digits.test_images), scores)


def test_a_seed_decides_the_model_and_another_one_gives_another(digits):
    def train(random_state):
        return MDPUClassifier(PRIOR, **FEW | {"random_state": random_state}).fit(digits.tuples, digits.unlabeled)

    same_model(train(3), train(np.int64(3)), digits.test_images)
    same_model(train("a trial"), train("a trial"), digits.test_images)
    same_model(train(np.random.RandomState(3)), train(np.random.RandomState(3)), digits.test_images)
    assert not train(3).history_.equals(train(4).history_)


# -- forms of the data ------------------------------------------------------------------------------


def test_images_with_groups_are_the_same_data_in_any_order(digits):
    """Tuples keep their order and unlabeled images theirs; where the images lie is of no matter."""
    images, groups = join_groups(digits.tuples, digits.unlabeled)
    whole = MDPUClassifier(PRIOR, **FEW).fit(digits.tuples, digits.unlabeled)
    same_model(MDPUClassifier(PRIOR, **FEW).fit(images, groups), whole, digits.test_images)
    order = np.argsort(groups, kind="stable")  # the unlabeled first
    numbers = np.where(groups < 0, -1, 7 * groups)
    same_model(MDPUClassifier(PRIOR, **FEW).fit(images[order], numbers[order]), whole, digits.test_images)


def test_tuples_of_several_sizes(digits):
    ragged = [members[: 1 + i % 2] for i, members in enumerate(digits.tuples)]
    classifier = MDPUClassifier(PRIOR, **FEW).fit(ragged, digits.unlabeled)
    plain = Settings(epochs=3, batch_size=50, precision="fp32", architecture={"hidden": [12]})
    (model,) = fit([Task("bag-relu", 2, PRIOR)], *TupleData.gather(ragged, digits.unlabeled), plain, device="cpu")
    pd.testing.assert_frame_equal(classifier.history_, model.history, check_exact=True)


# -- the other class --------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [PRIOR, None])
def test_dominant_negatives_are_dominant_positives_with_the_classes_exchanged(prior):
    digits = Digits(size=3)
    parameters = FEW | {"n_epochs": 20}
    positive = MDPUClassifier(prior, **parameters).fit(digits.tuples, digits.unlabeled)
    exchanged = None if prior is None else 1 - prior
    negative = MDPUClassifier(exchanged, dominant="negative", **parameters).fit(digits.tuples, digits.unlabeled)
    assert negative.prior_ == pytest.approx(1 - positive.prior_)
    if prior is None:
        assert negative.prior_estimate_.low == pytest.approx(1 - positive.prior_estimate_.high)
        assert positive.prior_estimate_.fits(PRIOR) and negative.prior_estimate_.fits(1 - PRIOR)
    scores = positive.decision_function(digits.test_images)
    np.testing.assert_allclose(negative.decision_function(digits.test_images), -scores, atol=1e-5)
    positive_estimate, negative_estimate = (
        c.risk_estimate(digits.tuples, digits.unlabeled) for c in (positive, negative)
    )
    assert negative_estimate.value == pytest.approx(positive_estimate.value)
    images, groups = join_groups(digits.tuples, digits.unlabeled)
    assert negative_risk(negative, images, groups) == pytest.approx(-negative_estimate.value)
    bag_scores = (negative_bag_risk(c, images, groups) for c in (positive, negative))
    assert next(bag_scores) == pytest.approx(next(bag_scores))


# -- probabilities ----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("method", ["bag-relu", "bag-likelihood", "relu"])
def test_probabilities_are_near_the_posterior_of_gaussians(method):
    data, test = Gaussians(4000, 4000), Gaussians(1, 2000, seed=1)
    parameters = FEW | {"hidden": (16,), "n_epochs": 20, "batch_size": 200, "learning_rate": 0.01}
    classifier = MDPUClassifier(PRIOR, method=method, **parameters).fit(data.tuples, data.unlabeled)
    probabilities = classifier.predict_proba(test.unlabeled)
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(classifier.predict(test.unlabeled) > 0, probabilities[:, 1] > 0.5)
    assert np.abs(probabilities[:, 1] - test.posterior(test.unlabeled)).mean() < 0.06
    classifier.set_params(prior_shift=0.8)
    shifted = classifier.predict_proba(test.unlabeled)[:, 1]
    assert np.abs(shifted - test.posterior(test.unlabeled, 0.8)).mean() < 0.06


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"method": "nnpu"}, "nnpu with the loss logistic"),
        ({"method": "noisy-or"}, "noisy-or"),
    ],
)
def test_scores_that_are_no_log_odds_give_no_probabilities(parameters, said, digits):
    classifier = MDPUClassifier(PRIOR, **FEW | {"n_epochs": 1}, **parameters).fit(digits.tuples, digits.unlabeled)
    with pytest.raises(UserError, match=f"predict_proba needs scores that are log-odds, but those of method {said}"):
        classifier.predict_proba(digits.test_images)
    with pytest.raises(UserError, match="prior_shift needs scores that are log-odds"):
        classifier.set_params(prior_shift=0.5).predict(digits.test_images)


# -- risk without labels ----------------------------------------------------------------------------


def threshold(prior, dominant="positive"):
    """A fitted classifier that calls an image positive where its first feature is above 0.3, whatever it learned."""
    classifier = MDPUClassifier(prior, dominant=dominant, n_epochs=1, hidden=(2,), random_state=0, device="cpu")
    data = Gaussians(4, 4)
    classifier.fit(data.tuples, data.unlabeled)
    classifier.predict = lambda images: np.where(images[:, 0] > 0.3, 1, -1)
    return classifier


@pytest.mark.parametrize("sizes", [(2,), (3,), (1, 4)])
@pytest.mark.parametrize("prior", [0.3, 0.6])
def test_the_estimate_of_the_risk_is_unbiased_and_its_interval_covers_it(sizes, prior):
    classifier = threshold(prior)
    estimates = []
    for seed in range(100):
        parts = [Gaussians(150, 300, prior, size, 1000 * size + seed) for size in sizes]
        tuples = [members for part in parts for members in part.tuples]
        estimates.append(classifier.risk_estimate(tuples, parts[0].unlabeled))
    many = Gaussians(1, 200_000, prior, seed=99)
    true = np.mean(classifier.predict(many.unlabeled) != many.labels)
    risks = np.array([estimate.value for estimate in estimates])
    error = risks.std(ddof=1) / len(risks) ** 0.5
    assert abs(risks.mean() - true) < 4 * error
    covered = np.mean([estimate.low <= true <= estimate.high for estimate in estimates])
    assert covered > 0.85


# -- scikit-learn's tools ---------------------------------------------------------------------------


@pytest.mark.parametrize("scorer", [negative_bag_risk, negative_risk])
@pytest.mark.parametrize("routing", [False, True])
def test_a_pipeline_scales_and_a_grid_search_chooses_without_labels(routing, scorer):
    data = Gaussians(200, 300)
    images, groups = join_groups(data.tuples * 100 + 1000, data.unlabeled * 100 + 1000)
    pipeline = make_pipeline(StandardScaler(), MDPUClassifier(PRIOR, **FEW | {"n_epochs": 15}))
    grid = {"mdpuclassifier__learning_rate": [1e-9, 0.02]}
    search = GridSearchCV(pipeline, grid, scoring=partial(scorer, prior=PRIOR), cv=TupleKFold(3))
    with config_context(enable_metadata_routing=routing):
        search.fit(images, groups)
    assert search.best_params_ == {"mdpuclassifier__learning_rate": 0.02}
    assert np.mean(search.predict(data.unlabeled * 100 + 1000) == data.labels) > 0.75


# -- modules ----------------------------------------------------------------------------------------


def linear(shape):
    """A linear network on vectors."""
    return torch.nn.Linear(shape[0], 1)


def convolutional(shape):
    """A small convolutional network on grey pictures."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 1)
    )


def test_a_function_that_makes_a_module_starts_from_the_seed():
    data = Gaussians(300, 300)
    one, other = (
        MDPUClassifier(PRIOR, network=linear, standardize=False, **FEW | {"n_epochs": 30, "learning_rate": 0.05})
        for _ in range(2)
    )
    torch.manual_seed(5)
    one.fit(data.tuples, data.unlabeled)
    torch.manual_seed(6)
    other.fit(data.tuples, data.unlabeled)
    same_model(one, other, data.unlabeled)
    assert one.score(data.unlabeled, data.labels) > 0.75
    weight, bias = one.model_.network.module.module.parameters()
    expected = data.unlabeled @ weight.detach().numpy()[0] + bias.item()
    np.testing.assert_allclose(one.decision_function(data.unlabeled), expected, rtol=1e-4, atol=1e-5)


def test_a_module_on_pictures_is_copied_and_pickled(digits):
    module = convolutional((8, 8))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    classifier = MDPUClassifier(PRIOR, network=module, **FEW).fit(digits.tuples, digits.unlabeled)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert classifier.network is module
    same_model(pickle.loads(pickle.dumps(classifier)), classifier, digits.test_images)
    clone(classifier).fit(digits.tuples, digits.unlabeled)


class Idle(torch.nn.Linear):
    """A linear network, beside whose weights there is one that it does not use."""

    def __init__(self):
        super().__init__(2, 1)
        self.idle = torch.nn.Parameter(torch.zeros(1))


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        (3, "network is 3; a name, a PyTorch module or a function that makes one is needed"),
        ("zzz", "network 'zzz' is unknown; known are components, mlp, mlp-norm, resnet34"),
        (lambda shape: torch.nn.Flatten(), "the network has no parameter to train"),
        (lambda shape: torch.nn.Linear(2, 1).requires_grad_(False), "the network's parameter weight is frozen"),
        (lambda shape: torch.nn.Linear(2, 3), r"the network returns an array of shape \(2, 3\) for 2 rows"),
        (torch.nn.Linear(3, 1), r"network does not train on rows of shape \(2,\) \(.*\); a module takes float32 vec"),
        (torch.nn.Linear(2, 1).double(), "network does not train on rows of shape"),
        (torch.nn.LazyLinear(1), "network does not train on rows of shape"),
        (lambda: torch.nn.Linear(2, 1), "a function takes the shape of a row"),
        (lambda shape: Idle(), r"returns \(N, 1\), which depends on every parameter"),
    ],
)
def test_a_network_that_cannot_train_is_refused(network, sentence):
    data = Gaussians(20, 20)
    with pytest.raises(UserError, match=sentence):
        MDPUClassifier(PRIOR, network=network, **FEW).fit(data.tuples[:, :, :], np.tile(data.unlabeled, (3, 1)))


# -- learners ---------------------------------------------------------------------------------------


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
        self.tuples, self.unlabeled = self.rows[self.sample.tuples], self.rows[self.sample.unlabeled]

    def accuracy(self, classifier):
        return np.mean(classifier.predict(self.rows[1200:]) == self.labels[1200:])


@pytest.fixture(scope="module")
def table():
    return Table()


QUICK = {"compare_prior": False, "random_state": 0}


@pytest.mark.parametrize(
    ("learner", "least"),
    [("auto", 0.85), ("linear", 0.8), (LogisticRegression(max_iter=1000), 0.8), ("network", 0.8)],
)
def test_learners_of_a_table(learner, least, table):
    """The columns have different units, which all learners take as they come."""
    classifier = MDPUClassifier(PRIOR, learner=learner, **QUICK).fit(table.tuples, table.unlabeled)
    assert table.accuracy(classifier) > least
    probabilities = classifier.predict_proba(table.rows[1200:])[:, 1]
    assert np.array_equal(classifier.predict(table.rows[1200:]) > 0, probabilities > 0.5)
    copy = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(copy.decision_function(table.rows), classifier.decision_function(table.rows))


@pytest.mark.parametrize(
    ("parameters", "data", "learner", "reason"),
    [
        ({}, lambda t, d: (t.tuples, t.unlabeled), "student", "a table with 250 tuples"),
        ({"n_epochs": 2}, lambda t, d: (t.tuples, t.unlabeled), "network", "n_epochs is of networks"),
        ({"learner": "linear", "n_epochs": 2}, lambda t, d: (t.tuples, t.unlabeled), "linear", "as learner says"),
        ({}, lambda t, d: (sparse.csr_matrix(t.rows), t.sample), "linear", "sparse rows"),
        ({"learner": GaussianNB()}, lambda t, d: (t.tuples, t.unlabeled), "student", "learner=GaussianNB"),
    ],
)
def test_the_choice_of_a_learner_and_its_reason_are_shown(parameters, data, learner, reason, table, digits):
    classifier = MDPUClassifier(PRIOR, **QUICK, **parameters).fit(*data(table, digits))
    assert (classifier.learner_.name, classifier.learner_.reason) == (learner, reason)
    assert repr(classifier).endswith(f"# learner: {learner} ({reason})")


def test_a_learner_that_cannot_take_the_data_is_refused(table):
    rows = sparse.csr_matrix(table.rows)
    with pytest.raises(TypeError, match=r"Use '.toarray\(\)' to convert"):
        MDPUClassifier(PRIOR, learner="trees", **QUICK).fit(rows, table.sample)
    with pytest.raises(UserError, match="SVC takes its probabilities from folds"):
        MDPUClassifier(PRIOR, learner=SVC(), **QUICK).fit(rows, table.sample)


def test_a_frame_with_missing_values_keeps_its_names(table):
    rows, groups = join_groups(table.tuples, table.unlabeled)
    frame = pd.DataFrame(rows, columns=[f"pixel {k}" for k in range(64)])
    frame.iloc[::7, 3] = np.nan
    classifier = MDPUClassifier(PRIOR, **QUICK).fit(frame, groups)
    assert list(classifier.feature_names_in_) == list(frame.columns)
    new = pd.DataFrame(table.rows[1200:], columns=frame.columns)
    assert np.mean(classifier.predict(new) == table.labels[1200:]) > 0.8
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(new.rename(columns={"pixel 0": "zzz"}))
    with pytest.raises(ValueError, match="contains NaN"):
        MDPUClassifier(PRIOR, learner="network", **QUICK).fit(frame, groups)


def test_exactly_one_of_three_is_learned_at_its_saddle():
    """At a prior of a third the mean member says nothing."""
    table = Table(600, 1 / 3, law=(0, 1, 0, 0))
    classifier = TupleClassifier(1 / 3, law=(0, 1, 0, 0), **QUICK).fit(table.tuples, table.unlabeled)
    assert table.accuracy(classifier) > 0.8
    with pytest.raises(UserError, match="members are positive as often as unlabeled"):
        classifier.risk_estimate(table.tuples, table.unlabeled)


@pytest.mark.parametrize("law", [Law.dominant, Law.dominant(3), (0, 0, 1, 1)])
@pytest.mark.parametrize("parameters", [{"learner": "linear"}, {"n_epochs": 8, "early_stopping": True}])
def test_the_dominant_law_is_one_of_all(law, parameters, table):
    own = TupleClassifier(PRIOR, law=law, **QUICK, **parameters).fit(table.tuples, table.unlabeled)
    dominant = MDPUClassifier(PRIOR, **QUICK, **parameters).fit(table.tuples, table.unlabeled)
    assert np.array_equal(own.decision_function(table.rows), dominant.decision_function(table.rows))
    assert own.risk_estimate(table.tuples, table.unlabeled) == dominant.risk_estimate(table.tuples, table.unlabeled)


@pytest.mark.parametrize(
    ("law", "sentence"),
    [
        ((0, 1), "law is one of 1 members, but a tuple has 3; give a function from the size, as Law.dominant"),
        ((0, 1, 1, 2), "are not all between 0 and 1"),
        ((1, 1, 1, 1), "lets every group pass alike says nothing"),
        ("similar", "law is 'similar'; a Law is needed, or the weights"),
    ],
)
def test_a_law_that_is_none_is_refused(law, sentence, table):
    with pytest.raises(UserError, match=re.escape(sentence)):
        TupleClassifier(PRIOR, law=law, **QUICK).fit(table.tuples, table.unlabeled)


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_the_share_of_broken_triples_is_found_and_trained_by(share):
    table = Table(2000, law=Law.dominant(3).broken(share).at(PRIOR).weights)
    asking = MDPUClassifier(PRIOR, broken="estimate", learner="linear", **QUICK).fit(table.tuples, table.unlabeled)
    found = asking.broken_estimate_
    assert found.low <= share <= found.high < share + 0.15
    assert asking.broken_ == (found.value if share else 0)
    law = Law.dominant(3).broken(asking.broken_)
    assert asking.law_of(3) == law
    told = TupleClassifier(PRIOR, law=law, learner="linear", **QUICK).fit(table.tuples, table.unlabeled)
    assert np.array_equal(asking.decision_function(table.rows), told.decision_function(table.rows))


def test_networks_train_for_fewer_epochs_where_tuples_are_broken(table):
    """Unless a parameter says otherwise."""
    one = MDPUClassifier(PRIOR, broken=0.2, learner="network", **QUICK).fit(table.tuples, table.unlabeled)
    other = clone(one).set_params(n_epochs=3).fit(table.tuples, table.unlabeled)
    assert (one.n_iter_, other.n_iter_) == (20, 3)


def test_of_a_remainder_the_members_are_put_back(table):
    """As if all rows of the pool had been given as unlabeled ones."""
    rest = MDPUClassifier(PRIOR, learner="linear", unlabeled_is="remainder", **QUICK).fit(table.rows, table.sample)
    pool = np.concatenate([table.sample.unlabeled, table.sample.tuples.ravel()])
    whole = MDPUClassifier(PRIOR, learner="linear", **QUICK).fit(table.rows, TupleData(table.sample.tuples, pool))
    assert np.array_equal(rest.decision_function(table.rows), whole.decision_function(table.rows))


@pytest.fixture(scope="module")
def left():
    """Pairs taken out of a pool at 0.5, and its remainder, whose share of positives is a third."""
    table, generator = Table(600, 0.5, 2), np.random.default_rng(0)
    rest = [
        generator.choice(np.flatnonzero(table.labels[:1200] == label), count) for label, count in ((1, 400), (-1, 800))
    ]
    return table.rows, TupleData(table.sample.tuples, np.concatenate(rest))


def test_a_remainder_that_nobody_told_is_seen_by_the_told_prior(left):
    with pytest.warns(UserWarning, match='would fit as what the tuples left of a pool: see unlabeled_is="remainder"'):
        MDPUClassifier(0.5, learner="linear", random_state=0).fit(*left)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = MDPUClassifier(0.5, learner="linear", random_state=0, unlabeled_is="remainder").fit(*left)
    assert told.prior_estimate_.fits(0.5)


def test_the_estimated_prior_is_that_of_the_pool_only_where_a_remainder_is_told(left):
    told = MDPUClassifier(learner="linear", random_state=0, unlabeled_is="remainder").fit(*left)
    assert told.prior_estimate_.known and told.prior_estimate_.fits(0.5)
    with pytest.raises(UserError, match=r"say only that the prior lies between 0.00 and 0.[0-3]\d; give prior"):
        MDPUClassifier(learner="linear", random_state=0).fit(*left)


# -- the prior --------------------------------------------------------------------------------------


NOISE = np.random.default_rng(0).standard_normal((200, 2))


def test_a_prior_that_the_sample_tells_is_used(table):
    classifier = MDPUClassifier(learner="linear", random_state=0).fit(table.tuples, table.unlabeled)
    estimate = classifier.prior_estimate_
    assert estimate.known and classifier.prior_ == estimate.prior and estimate.fits(PRIOR)
    told = MDPUClassifier(estimate.prior, learner="linear", random_state=0).fit(table.tuples, table.unlabeled)
    assert told.prior_estimate_ == estimate
    assert np.array_equal(told.decision_function(table.rows), classifier.decision_function(table.rows))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (lambda t: (NOISE[:120].reshape(60, 2, 2), NOISE[120:]), "nothing of the prior"),
        (lambda t: (t.tuples[:40, :1], t.unlabeled), "nothing of the prior"),
        (lambda t: (t.tuples[:60, :2], t.unlabeled[:100]), "the prior"),
    ],
)
def test_a_prior_that_the_sample_does_not_tell_is_refused_unless_a_guess_is_asked_for(data, sentence, table):
    with pytest.raises(UserError, match=f"{sentence}.*; give prior, more tuples, or larger tuples, or set guess"):
        MDPUClassifier(random_state=0).fit(*data(table))
    with pytest.warns(UserWarning, match=r"is a guess; give prior or more tuples"):
        guessed = MDPUClassifier(learner="linear", guess_prior=True, random_state=0).fit(*data(table))
    assert 0 < guessed.prior_ < 1 and guessed.prior_estimate_.verdict != "known"


def test_a_symmetric_law_leaves_the_names_of_the_classes_open():
    table = Table(800, 0.7, 2, law=(1, 0, 1))
    with pytest.warns(UserWarning, match=r"\+1 is the larger class"):
        classifier = TupleClassifier(law=(1, 0, 1), random_state=0).fit(table.tuples, table.unlabeled)
    assert classifier.prior_ > 0.5 and classifier.prior_estimate_.fits(0.3)
    assert abs(table.accuracy(classifier) - 0.5) > 0.25


def test_members_that_recur_in_a_small_pool_are_noticed(table):
    """The unlabeled rows are others; where they come from the same pool, all is as it should be."""
    generator = np.random.default_rng(0)
    few = TupleData(table.sample.tuples[generator.integers(20, size=250)], table.sample.unlabeled)
    with pytest.warns(UserWarning, match="the members of 250 tuples are .* different rows, and recur"):
        MDPUClassifier(PRIOR, learner="linear", random_state=0).fit(table.rows, few)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MDPUClassifier(PRIOR, learner="linear", random_state=0).fit(table.rows, table.sample)


# -- what misleads is warned of ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "data", "sentence"),
    [
        (
            {"prior": 0.8},
            lambda t: (t.tuples, t.unlabeled),
            r"prior is 0.8, but tuples and unlabeled rows speak for 0.\d",
        ),
        (
            {"prior": 0.8},
            lambda t: (t.tuples, t.unlabeled),
            "seldom beat the constant answer here, which is right in 80 %",
        ),
        ({"prior": 0.4}, lambda t: (t.tuples[:4], t.unlabeled), "4 tuples are too few to learn from or to judge by"),
        ({"n_epochs": 2}, lambda t: (t.tuples, t.unlabeled), "n_epochs=2 with batch_size=64 are 8 steps of the optim"),
        (
            {"n_epochs": 4, "network": lambda shape: torch.nn.Sequential(torch.nn.Linear(64, 1), Zero())},
            lambda t: (t.tuples, t.unlabeled),
            "training does not move: the objective is the same in every epoch",
        ),
        (
            {"learner": "linear"},
            lambda t: (np.zeros_like(t.tuples), np.zeros_like(t.unlabeled)),
            "every unlabeled row gets the same answer",
        ),
    ],
)
def test_what_misleads_is_warned_of(parameters, data, sentence, table):
    with pytest.warns(UserWarning, match=sentence) as caught:
        MDPUClassifier(**{"prior": PRIOR, "random_state": 0, "learner": "auto"} | parameters).fit(*data(table))
    assert {Path(warning.filename).name for warning in caught} == {"test_estimator.py"}


class Zero(torch.nn.Module):
    """A layer that lets no gradient through."""

    def forward(self, scores):
        """Return zeros."""
        return 0 * scores


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_a_fit_that_fails_leaves_the_old_model(interruption, table, monkeypatch):
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK).fit(table.tuples, table.unlabeled)
    before, scores = dict(vars(classifier)), classifier.decision_function(table.rows)

    def fail(*data):
        raise interruption

    monkeypatch.setattr(classifier, "_choose_learner", fail)
    with pytest.raises(interruption):
        classifier.fit(table.tuples[:, :, :5], table.unlabeled[:, :5])
    monkeypatch.undo()
    assert vars(classifier) == before
    assert np.array_equal(classifier.decision_function(table.rows), scores)


def test_unlabeled_rows_may_be_sorted_by_class(table):
    """The last rows are not what early stopping holds out."""
    order = np.argsort(table.labels[table.sample.unlabeled])
    parameters = {"learner": "network", "early_stopping": True, "n_epochs": 20, "n_iter_no_change": 8}
    classifier = MDPUClassifier(PRIOR, **QUICK, **parameters).fit(table.tuples, table.unlabeled[order])
    assert table.accuracy(classifier) > 0.75


def test_a_constant_model_is_not_the_best_epoch():
    assert best_epoch([0.3, -0.1, 0.2, 0.25], [False, True, False, False]) == 3
    assert best_epoch([0.3, -0.1], [True, True]) == 2


@pytest.mark.parametrize(
    "search", [{"cv": 3, "scoring": negative_bag_risk}, {"cv": TupleKFold(3), "scoring": "accuracy"}]
)
def test_a_search_in_the_habit_of_labels_is_refused(search, table):
    rows, groups = join_groups(table.tuples, table.unlabeled)
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK)
    grid = GridSearchCV(classifier, {"prior": [0.3, 0.4]}, error_score="raise", **search)
    with pytest.raises(UserError, match=r"TupleKFold\(\)"):
        grid.fit(rows, groups)


# -- what is refused --------------------------------------------------------------------------------


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


def test_the_example_of_the_classifier_gives_what_it_says():
    found = doctest.testmod(classifiers)
    assert found.attempted > 5 and not found.failed


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"prior": 1.5}, "prior is 1.5; one number between 0 and 1 is needed"),
        ({"method": "supervised"}, "method is 'supervised'; it must be one of abs, "),
        ({"method": "bag-free"}, "method is 'bag-free'"),
        ({"loss": "zzz"}, "loss is 'zzz'; it must be one of logistic"),
        ({"dominant": "zzz"}, "dominant is 'zzz'; it must be one of positive, negative"),
        ({"device": "zzz"}, "device is 'zzz'; it must be one of auto, cpu, cuda"),
        ({"precision": "fp8"}, "precision is 'fp8'; it must be one of"),
        ({"n_epochs": 0}, "n_epochs is 0; an integer of at least 1 is needed"),
        ({"prior": [0.4]}, "prior is [0.4]; one number between 0 and 1 is needed"),
        ({"network": torch.nn.Linear}, "network is the class Linear; give a module, or a function"),
        ({"learner": "zzz"}, "learner is 'zzz'; it must be one of auto, network, student, linear, trees"),
        (
            {"broken": 0.9},
            "a share of 0.90 of the tuples is broken, but of random groups at prior 0.40 no more than 0.36",
        ),
        ({"broken": "zzz"}, "broken is 'zzz'; one number"),
        ({"broken": 1.0}, "broken is 1.0; one number"),
        ({"broken": "estimate"}, "the share of broken tuples is not identified: under this law other shares fit"),
        ({"broken": "estimate", "prior": None}, "broken='estimate' finds the share at a told prior; give prior"),
        ({"unlabeled_is": "zzz"}, "unlabeled_is is 'zzz'; it must be one of pool, remainder"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; a positive number is needed"),
        ({"prior": None, "batch_size": 2.5}, "batch_size is 2.5; an integer is needed"),
        ({"prior_shift": 2}, "prior_shift is 2; one number between 0 and 1 is needed"),
        ({"standardize": "no"}, "standardize is 'no'; True or False is needed"),
        (
            {"callbacks": print},
            "callbacks is <built-in function print>; a list of functions of epoch and row is needed",
        ),
        ({"random_state": 1.5}, "random_state is 1.5; an integer of at least 0, a RandomState, a text or None"),
        ({"learner": None}, "learner is None; 'auto', 'network',"),
        ({"learner": LogisticRegression}, "linear_model._logistic.LogisticRegression'>; 'auto', 'network',"),
        (
            {"early_stopping": True, "n_iter_no_change": "5"},
            "n_iter_no_change is '5'; an integer of at least 1 is needed",
        ),
        (
            {"early_stopping": True, "validation_fraction": 1e-6},
            "validation_fraction, tuning.held_out) or take more",
        ),
    ],
)
def test_parameters_are_refused_by_name_and_value(parameters, sentence, digits):
    with pytest.raises(UserError, match=re.escape(sentence)) as error:
        MDPUClassifier(**{"prior": PRIOR, **FEW, **parameters}).fit(digits.tuples, digits.unlabeled)
    assert isinstance(error.value, ValueError)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (lambda d: (d.tuples, d.unlabeled[:, :5]), "tuples hold rows of shape (8, 8) and type uint8, but the unl"),
        (lambda d: (d.tuples[:0], d.unlabeled), "tuples and unlabeled rows are both needed"),
        (lambda d: (d.images, np.zeros(len(d.images), int)), "y names no unlabeled row, -1; it names tuples only"),
        (lambda d: (d.images, np.full(len(d.images), -1)), "y names no tuple; it names unlabeled rows only"),
        (
            lambda d: (d.images, np.full(len(d.images), -2)),
            "y holds neither unlabeled rows (n_unlabeled, ...) nor groups",
        ),
        (lambda d: (d.images, np.array([0, -1])), "X holds 1797 rows, but y the groups of 2; give one for each"),
        (lambda d: (d.unlabeled, d.tuples), "if they are swapped, give the tuples (n, M, ...) first"),
        (lambda d: (d.unlabeled, [d.images[:2], d.images[:3]]), "unlabeled rows are swapped, give the tuples first"),
        (lambda d: (d.tuples, d.unlabeled[:, 0, 0] / 255), "y holds neither unlabeled rows (n_unlabeled, ...) nor gro"),
        (lambda d: (d.tuples, d.unlabeled[:1]), "one unlabeled row says nothing of positives; give as many as there a"),
        (lambda d: (d.tuples, {}), "tuples are ndarray and unlabeled rows ndarray; give an array (n, M, ...), or a li"),
        (lambda d: (None, d.unlabeled), "tuples are NoneType and unlabeled rows ndarray; give an array"),
        (
            lambda d: (d.images, TupleData(np.array([[0, 2000]]), np.arange(9))),
            "tuples name rows that are not there; the",
        ),
        (
            lambda d: (d.images, TupleData(np.array([[0.0, 2.0]]), np.arange(9))),
            "numbers of rows are no integers; give in",
        ),
    ],
)
def test_data_are_refused_in_one_sentence(data, sentence, digits):
    with pytest.raises(UserError, match=re.escape(sentence)) as error:
        MDPUClassifier(PRIOR, **FEW).fit(*data(digits))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("level", [0, 95])
def test_a_level_is_a_share(level, trained, digits):
    with pytest.raises(UserError, match=f"level is {level}; .* is needed"):
        trained.risk_estimate(digits.tuples, digits.unlabeled, level=level)


def test_tuples_are_not_predicted_as_rows(table):
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK).fit(table.tuples, table.unlabeled)
    with pytest.raises(UserError, match="rows have 3 axes, but the classifier was trained on rows with 2; give single"):
        classifier.predict(table.tuples)


@pytest.mark.parametrize("learner", ["linear", LogisticRegression()])
def test_categories_of_a_frame_take_an_encoder(learner, table):
    """As they are, they are refused in a sentence that names one."""
    frame = pd.DataFrame({"pixel": table.rows[:, 20], "kind": np.where(table.rows[:, 36] > 50, "dark", "light")})
    frame["kind"] = pd.Categorical(frame["kind"])
    data = join_groups([frame.iloc[rows] for rows in table.sample.tuples], frame.iloc[table.sample.unlabeled])
    classifier = MDPUClassifier(PRIOR, learner=learner, **QUICK)
    with pytest.raises(UserError, match=r"\['kind'\] hold text or categories; put an encoder before the classifier"):
        classifier.fit(*data)
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    assert make_pipeline(encoder, classifier).fit(*data).predict(frame).shape == (len(frame),)


def test_a_training_that_diverges_is_warned_of(digits):
    images = digits.tuples.astype(np.float64) * 1e30, digits.unlabeled.astype(np.float64) * 1e30
    with pytest.warns(ConvergenceWarning, match="training diverged: the objective of the last . epochs is not finite"):
        MDPUClassifier(PRIOR, method="ure", loss="squared", **FEW).fit(*images)


# -- documentation ----------------------------------------------------------------------------------


def test_the_examples_of_the_documentation_run():
    page = Path(REPOSITORY, "docs", "how-to", "estimator.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/how-to/estimator.md", "exec"), names)
    assert names["accuracy"] > 0.85


# -- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["linear", "student"])
def test_what_has_no_weight_is_not_there(learner, table):
    """In the form of pairs and in that of a number for each row, whatever the unit of the weights."""
    weights = np.where(np.arange(250) < 200, 0.5, 0), np.where(np.arange(500) < 400, 0.5, 0)
    rows, groups = join_groups(table.tuples, table.unlabeled)
    of_rows = np.concatenate([np.repeat(weights[0], 3), weights[1]])
    kept, pairs, by_row = (
        MDPUClassifier(PRIOR, learner=learner, **QUICK).fit(*data).decision_function(table.rows)
        for data in (
            (table.tuples[:200], table.unlabeled[:400], (np.ones(200), np.ones(400))),
            (table.tuples, table.unlabeled, weights),
            (rows, groups, of_rows),
        )
    )
    assert np.array_equal(kept, pairs) and np.array_equal(kept, by_row)


def test_tuples_of_large_weight_lead(table):
    """Among tuples of which 200 break the law, 50 that do not weigh more."""
    broken = np.concatenate(
        [table.tuples[:50], table.unlabeled[np.argsort(table.labels[table.sample.unlabeled])[:200], None][:, [0, 0, 0]]]
    )
    weights = np.where(np.arange(250) < 50, 1000, 1), np.ones(500)
    classifier = MDPUClassifier(PRIOR, learner="linear", **QUICK)
    alike, weighted = (clone(classifier).fit(broken, table.unlabeled, own) for own in (None, weights))
    assert table.accuracy(weighted) > table.accuracy(alike) + 0.2


@pytest.mark.parametrize(
    ("parameters", "weights", "sentence"),
    [
        (
            {"learner": "network"},
            "right",
            "the learner network (as learner says) takes no sample_weight; take learner=",
        ),
        ({"learner": "trees"}, "right", "the learner trees (as learner says) takes no sample_weight; take learner="),
        ({"prior": None}, "right", "sample_weight needs a told prior"),
        (
            {},
            np.ones(249),
            "sample_weight holds a number of at least 0 for each row; or it is the pair of those of the 25",
        ),
        ({}, (np.ones(250), -np.ones(500)), "sample_weight holds a number of at least 0"),
        ({}, np.arange(1250), "members of a tuple have different values of sample_weight; give them one"),
    ],
)
def test_weights_that_are_none_are_refused(parameters, weights, sentence, table):
    own = (np.ones(250), np.ones(500)) if isinstance(weights, str) else weights
    with pytest.raises(UserError, match=re.escape(sentence)):
        MDPUClassifier(**{"prior": PRIOR, "learner": "linear", **QUICK, **parameters}).fit(
            table.tuples, table.unlabeled, own
        )


# -- callbacks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["bag-relu", "relu"])
def test_callbacks_get_each_row_of_the_history(method, digits):
    """The model is that without them; after a warm start they get the new epochs alone."""
    rows = []
    watched = MDPUClassifier(PRIOR, method=method, callbacks=[lambda *own: rows.append(own)], warm_start=True, **FEW)
    watched.fit(digits.tuples, digits.unlabeled)
    plain = MDPUClassifier(PRIOR, method=method, **FEW).fit(digits.tuples, digits.unlabeled)
    same_model(watched, plain, digits.test_images)
    assert [epoch for epoch, _ in rows] == [1, 2, 3]
    watched.set_params(n_epochs=5).fit(digits.tuples, digits.unlabeled)
    assert [epoch for epoch, _ in rows] == [1, 2, 3, 4, 5]
    given = pd.DataFrame([{"epoch": epoch} | row for epoch, row in rows])
    pd.testing.assert_frame_equal(given, watched.history_, check_exact=True)


def test_an_error_in_a_callback_ends_the_training_and_leaves_the_old_model(digits):
    def interrupt(epoch, row):
        if epoch == 2:
            raise KeyboardInterrupt

    classifier = MDPUClassifier(PRIOR, **FEW).fit(digits.tuples, digits.unlabeled)
    before = classifier.decision_function(digits.test_images)
    with pytest.raises(KeyboardInterrupt):
        classifier.set_params(callbacks=[interrupt], random_state=1).fit(digits.tuples, digits.unlabeled)
    assert np.array_equal(classifier.decision_function(digits.test_images), before)


# -- how many epochs --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["relu", "bag-relu"])
def test_training_goes_on_to_the_numbers_of_one_call(method, digits):
    once = MDPUClassifier(PRIOR, method=method, **FEW | {"n_epochs": 6}).fit(digits.tuples, digits.unlabeled)
    twice = MDPUClassifier(PRIOR, method=method, warm_start=True, **FEW | {"n_epochs": 2})
    twice.fit(digits.tuples, digits.unlabeled)
    assert twice.n_iter_ == 2
    twice = pickle.loads(pickle.dumps(twice))
    twice.set_params(n_epochs=6).fit(digits.tuples, digits.unlabeled)
    same_model(twice, once, digits.test_images)


def test_training_goes_on_neither_backwards_nor_with_another_network(digits):
    classifier = MDPUClassifier(PRIOR, warm_start=True, **FEW).fit(digits.tuples, digits.unlabeled)
    with pytest.raises(UserError, match="3 epochs already"):
        classifier.set_params(n_epochs=2).fit(digits.tuples, digits.unlabeled)
    with pytest.raises(UserError, match="have changed since"):
        classifier.set_params(n_epochs=5, hidden=(7,)).fit(digits.tuples, digits.unlabeled)
    with pytest.raises(UserError, match="give one of them"):
        classifier.set_params(early_stopping=True).fit(digits.tuples, digits.unlabeled)
    with pytest.raises(ValueError, match="X has 5 features, but MDPUClassifier is expecting 8"):
        classifier.set_params(early_stopping=False).fit(digits.tuples[:, :, :5], digits.unlabeled[:, :5])


def test_held_out_bags_choose_the_number_of_epochs(digits):
    stopped = MDPUClassifier(PRIOR, early_stopping=True, **FEW | {"n_epochs": 8})
    stopped.fit(digits.tuples, digits.unlabeled)
    risks = stopped.validation_history_["bag_risk"]
    assert len(risks) == 8
    assert stopped.n_iter_ == len(stopped.history_) == 1 + risks.argmin()
    whole = MDPUClassifier(PRIOR, **FEW | {"n_epochs": stopped.n_iter_}).fit(digits.tuples, digits.unlabeled)
    same_model(stopped, whole, digits.test_images)


def test_the_estimate_of_held_out_bags_of_several_sizes_is_their_mean(digits):
    """Of a classifier that calls everything positive, a bag is wrong if it is not dominant."""
    sample = TupleData(np.array([[0, 1, 2], [3, 4, -1], [5, 6, -1], [7, 8, -1]]), np.arange(9, 19))
    risk = HeldOutRisk(digits.images, sample, Task("bag-relu", 3, 0.4))
    risk.prepare(torch.from_numpy, torch.device("cpu"))
    found = risk(None, lambda images: torch.ones(1, len(images)))
    not_dominant = [1 - Law.dominant(size).rate(0.4) for size in (3, 2, 2, 2)]
    assert found.item() == pytest.approx(np.mean(not_dominant), abs=1e-6)


# -- counts that were observed ------------------------------------------------------------------------


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
    "bounds of several annotators": lambda k, split: (np.where(k < split, 0, split), np.where(k < split, split - 1, 4)),
}


@pytest.mark.parametrize("learner", ["linear", "student", "trees"])
@pytest.mark.parametrize("kind", COUNTS)
def test_counts_take_the_place_of_a_law(kind, learner):
    """Where all groups are observed, without unlabeled rows and without the prior; the best possible is 93.7 %."""
    rows, labels = counted_data(400)
    split = np.random.default_rng(1).integers(1, 4, size=400)
    several = kind.startswith("bounds")
    counts = COUNTS[kind](labels.sum(axis=1), split)
    unlabeled = counted_data(500, 1, seed=2)[0][:, 0] if several else None
    own = TupleClassifier(0.4 if several else None, learner=learner, random_state=0).fit(rows, unlabeled, counts=counts)
    test, truth = (part[:, 0] for part in counted_data(3000, 1, seed=3))
    assert own.score(test, np.where(truth, 1, -1)) > 0.915
    assert own.prior_ == pytest.approx(0.4, abs=0.05)
    with pytest.raises(UserError, match="trained on counts"):
        own.law_of(4)


def test_networks_and_tuples_without_counts_are_refused_what_they_cannot_do():
    rows, _ = counted_data(30)
    with pytest.raises(UserError, match="networks learn from tuples of one law; take learner='student'"):
        TupleClassifier(0.4, learner="network").fit(rows, rows[:, 0], counts=(1, 2))
    with pytest.raises(UserError, match="counts were given"):
        TupleClassifier(0.4, broken=0.1).fit(rows, rows[:, 0], counts=(1, 2))
    with pytest.raises(UserError, match="requires y"):
        TupleClassifier(0.4).fit(rows)
