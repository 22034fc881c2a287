"""Any scikit-learn classifier as a student of a kernel teacher: soft labels as sample weights.

The teacher, a kernel machine of the joint objective, scores each row by models that did not see it.
The joint law turns the scores of a tuple into each member's probability of being positive. The
student then sees every row twice, as a positive with that weight and as a negative with the rest.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier

from mdpu.errors import UserError
from mdpu.learners import EndEpoch, Learner, never_stop
from mdpu.learners.features import Standardisation, kernel_maps
from mdpu.learners.joint import Floats, posteriors, shifted, weights_at
from mdpu.learners.linear import CrossFit, cross_fit
from mdpu.randomness import Stream
from mdpu.sample import Bags, Sample
from mdpu.threads import one_thread

# Their probabilities come from folds of their own, which hold one copy of a row and are scored on
# the other.
INNER_FOLDS = ("SVC", "NuSVC", "CalibratedClassifierCV")
TOPICS = 100  # directions that sparse rows are projected on for the trees
SURE = 1e-6  # a student's probability keeps this distance from 0 and 1


class Trees(HistGradientBoostingClassifier):  # type: ignore[misc]
    """Boosted trees whose bins hold equal numbers of rows, not equal weights.

    A student sees each row twice, with weights that add up to 1, so both are the same bins. From
    weights scikit-learn 1.9 finds the ends of bins one by one, which takes minutes for 2,000
    columns. It also refuses a column without any value, which says nothing and is made constant.
    """

    def _bin_data(self, X: Any, *weights: Any, is_training_data: bool) -> Any:
        """Return the bins of rows; a scikit-learn without this step does not call it."""
        if is_training_data:
            X = np.where(np.isnan(X).all(axis=0), 0.0, X)
        return super()._bin_data(X, *[None] * len(weights), is_training_data=is_training_data)


DEFAULT = Trees(max_iter=60, learning_rate=0.1, max_leaf_nodes=8)


@dataclass(frozen=True)
class LinearScore:
    """A linear score of raw or sparse features, or of a kernel's.

    Attributes
    ----------
    prepare : callable
        From rows to features.
    fit : CrossFit
    kernel : Nystroem, optional
    """

    prepare: Any
    fit: CrossFit
    kernel: Any = None

    def __call__(self, rows: Any) -> Floats:
        """Return the scores (N,) of rows."""
        with one_thread():
            features = self.prepare(rows)
            if self.kernel is not None:
                features = self.kernel.transform(features)
            return self.fit.scores(features)


@dataclass(frozen=True)
class StudentScore:
    """The log-odds of a fitted student, moved from the share of positives that it saw to the
    prior.
    """

    student: Any
    offset: float
    project: TruncatedSVD | None = None  # of sparse rows, for the trees

    def __call__(self, rows: Any) -> Floats:
        """Return the scores (N,) of rows."""
        column = list(self.student.classes_).index(1)
        with one_thread():
            if self.project is not None:
                rows = self.project.transform(rows)
            if not sparse.issparse(rows):
                rows = rows.reshape(len(rows), -1)
            positive = self.student.predict_proba(rows)[:, column]
        return np.asarray(logit(np.clip(positive, SURE, 1 - SURE)) + self.offset)


# -- the linear model ------------------------------------------------------------------------------


class Linear(Learner):
    """A linear model of the joint objective; sparse rows are taken as they are."""

    name: ClassVar[str] = "linear"

    def learn(
        self, sample: Sample, prior: float, seed: int | str, end_epoch: EndEpoch = never_stop
    ) -> LinearScore:
        """Fit the model, on one thread."""
        with one_thread():
            return fit_linear(sample, prior, seed)


def fit_linear(sample: Sample, prior: float, seed: int | str) -> LinearScore:
    """Fit a linear model of the joint objective."""
    prepare = _preparation(sample)
    return LinearScore(prepare, cross_fit([prepare(sample.rows)], sample.bags, prior, seed=seed))


def event_prior(sample: Sample, seed: int | str) -> float:
    """Return the mean of r over the members of complete bags, each scored by a linear model that
    did not see it.
    """
    features = _preparation(sample)(sample.rows)
    scores = cross_fit([features], sample.bags, 0.5, seed=seed).tuple_scores
    return float(np.concatenate([expit(of_part).ravel() for of_part in scores]).mean())


def _preparation(sample: Sample) -> Any:
    """Return the function from rows to the features of a linear model."""
    return sparse.csr_matrix if sample.is_sparse else Standardisation.learn(sample.rows)


# -- the student -----------------------------------------------------------------------------------


def fit_teacher(sample: Sample, prior: float, seed: int | str) -> LinearScore:
    """Fit the kernel teacher, or for sparse rows the linear model."""
    if sample.is_sparse:
        return fit_linear(sample, prior, seed)
    prepare = Standardisation.learn(sample.rows)
    z = prepare(sample.rows)
    kernels = kernel_maps(z, seed)
    features = [kernel.transform(z) for kernel in kernels]
    fit = cross_fit(features, sample.bags, prior, seed=seed)
    return LinearScore(prepare, fit, kernels[fit.features])


def check_student(student: Any) -> Any:
    """Return a classifier that can learn from soft labels, or raise `UserError`."""
    if (
        isinstance(student, type)
        or not isinstance(student, BaseEstimator)
        or not is_classifier(student)
    ):
        raise UserError(
            f"learner is {student!r}; it must be 'auto', 'network', 'student', 'linear', a "
            "Network, or a scikit-learn classifier such as RandomForestClassifier()"
        )
    last = getattr(student, "_final_estimator", student)
    name = type(last).__name__
    if name in INNER_FOLDS:
        raise UserError(
            f"learner {name} cross-validates its probabilities, but a row is in the data twice, so "
            "folds share it; take one without folds, such as HistGradientBoostingClassifier or "
            "LogisticRegression"
        )
    if not hasattr(last, "predict_proba"):
        raise UserError(
            f"learner {name} gives no probabilities; take a classifier with predict_proba"
        )
    if "sample_weight" not in inspect.signature(last.fit).parameters:
        raise UserError(
            f"learner {name} takes no sample_weight, so it cannot learn from soft labels; take "
            "another"
        )
    return student


def soft_labels(fit: CrossFit, bags: Bags, prior: float) -> tuple[Floats, Floats]:
    """Return the probability of being positive of each member, in the order of `Bags.members`, and
    of each unlabeled row, from held-out scores.

    The scores are shifted so that the mean over the unlabeled rows is the prior. Complete bags have
    none of these.
    """
    shift = shifted(fit.unlabeled_scores, prior)
    of_members = []
    for law, scores in zip(bags.laws, fit.tuple_scores, strict=True):
        _, probabilities = posteriors(weights_at(law, prior), scores + shift)
        of_members.append(probabilities.ravel())

    unlabeled = fit.unlabeled_scores
    if bags.complete:
        unlabeled = unlabeled[:0]
    return np.concatenate(of_members), np.asarray(expit(unlabeled + shift))


@dataclass(frozen=True)
class Student(Learner):
    """A classifier that learns from the soft labels of a kernel machine.

    Attributes
    ----------
    classifier : estimator
        A scikit-learn classifier with ``sample_weight`` and ``predict_proba``; it is cloned. By
        default boosted trees, for which sparse rows are projected.
    """

    name: ClassVar[str] = "student"
    classifier: Any = DEFAULT

    @property
    def takes_sparse(self) -> bool:
        """Whether rows may be a sparse matrix."""
        return self.classifier is DEFAULT or self._takes("sparse")

    @property
    def takes_missing(self) -> bool:
        """Whether rows may have missing values."""
        return self.classifier is DEFAULT or self._takes("allow_nan")

    def _takes(self, what: str) -> bool:
        """Return an input tag of the classifier, False for a function or a class in its place."""
        if not isinstance(self.classifier, BaseEstimator):
            return False
        return bool(getattr(self.classifier.__sklearn_tags__().input_tags, what))

    def learn(
        self, sample: Sample, prior: float, seed: int | str, end_epoch: EndEpoch = never_stop
    ) -> StudentScore:
        """Fit the teacher and the student, on one thread.

        `seed` is that of the teacher, and of the student if its ``random_state`` is None.
        """
        with one_thread():
            if self.classifier is DEFAULT and sample.is_sparse:
                return self._learn_from_sparse(sample, prior, seed)
            return self._learn(sample, prior, seed)

    def _learn_from_sparse(self, sample: Sample, prior: float, seed: int | str) -> StudentScore:
        n_columns = sample.rows.shape[1]
        n_topics = max(1, min(TOPICS, n_columns - 1))
        state = int(Stream(seed, "projection").integers(2**31 - 1, 1)[0])
        project = TruncatedSVD(n_topics, random_state=state)
        project.set_output(transform="default")
        project.fit(sample.rows)
        dense = replace(sample, rows=project.transform(sample.rows))
        return replace(self._learn(dense, prior, seed), project=project)

    def _learn(self, sample: Sample, prior: float, seed: int | str) -> StudentScore:
        teacher = fit_teacher(sample, prior, seed)
        of_members, of_unlabeled = soft_labels(teacher.fit, sample.bags, prior)
        positive = np.concatenate([of_members, of_unlabeled])
        unlabeled = sample.bags.unlabeled[: len(of_unlabeled)]
        rows = sample.rows[np.concatenate([sample.bags.members, unlabeled])]
        if sample.is_sparse:
            twice = sparse.vstack([rows, rows])
        else:
            flat = rows.reshape(len(rows), -1)
            twice = np.concatenate([flat, flat])

        labels = np.repeat([1, -1], len(positive))
        weights = np.concatenate([positive, 1 - positive])
        student = _seeded(clone(check_student(self.classifier)), seed)
        student.fit(twice, labels, **{_weight_name(student): weights})
        return StudentScore(student, float(logit(prior) - logit(positive.mean())))


def _weight_name(student: Any) -> str:
    """Return the name of the argument for weights, which a pipeline expects after the name of its
    last step.
    """
    steps: Sequence[Any] | None = getattr(student, "steps", None)
    return "sample_weight" if steps is None else f"{steps[-1][0]}__sample_weight"


def _seeded(student: Any, seed: int | str) -> Any:
    """Return the student with a random state from the seed wherever it has none."""
    number = int(Stream(seed, "student").integers(2**31 - 1, 1)[0])
    unset = {
        name: number
        for name, value in student.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    }
    return student.set_params(**unset)
