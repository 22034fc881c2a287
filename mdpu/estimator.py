"""scikit-learn's face of the library: classifiers from tuples and unlabeled rows.

    classifier = MDPUClassifier(prior=0.4, random_state=0).fit(tuples, unlabeled)
    classifier.predict(rows)

`MDPUClassifier` takes tuples in which at least half of the members are of one class,
`TupleClassifier` tuples of any symmetric law. `Network` has the options of networks.
``docs/how-to/estimator.md`` has examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mdpu.data import TupleData, join_groups, sample_of
from mdpu.errors import UserError, check_choice, warn
from mdpu.export import PlainModule
from mdpu.law import TINY, Law, check_share, named_law
from mdpu.learners import EndEpoch, Learner
from mdpu.learners.choice import Choice, default_learner, named_learner
from mdpu.learners.joint import Floats, shifted
from mdpu.learners.network import Network, NetworkScore
from mdpu.learners.student import event_prior
from mdpu.methods import OWN_LOSS, load_method
from mdpu.prior import PriorProfile, columns_apart, prior_of
from mdpu.sample import Sample, without_repeats
from mdpu.scores import (
    Estimate,
    estimated_profile,
    estimated_risk,
    of_pool,
    with_uncertain_prior,
)

__all__ = ["Choice", "MDPUClassifier", "Network", "TupleClassifier", "TupleEstimator"]

CHOICES: dict[str, tuple[Any, ...]] = {
    "guess_prior": (False, True),
    "compare_prior": (True, False),
    "unlabeled_is": ("pool", "remainder"),
    "dominant": ("positive", "negative"),
}
FEW = 20  # tuples or unlabeled rows
# distance of the prior from 1/2 up to which a symmetric law may leave the classes exchanged
TIE = 0.05
# standard errors, or log-odds of labelled rows, from which on the classes are told apart
SURE = 3.0
# nats of a tuple below which, at priors from 0.75 on, every learner ended at the constant answer
LITTLE = 0.12


def _check_columns(X: Any) -> None:
    """Raise `UserError` if columns of a frame have one name, or rows hold dates."""
    types = X.dtypes if hasattr(X, "columns") else [getattr(X, "dtype", None)]
    names = list(X.columns) if hasattr(X, "columns") else ["rows"]
    if repeated := sorted(
        {str(name) for name in names if names.count(name) > 1} if len({*names}) < len(names) else ()
    ):
        raise UserError(
            f"columns share a name: {', '.join(repeated)}; give each column a name of its own"
        )
    dates = [
        str(name)
        for name, dtype in zip(names, types, strict=True)
        if getattr(dtype, "kind", None) in ("m", "M")
    ]
    if dates:
        raise UserError(
            f"{', '.join(dates)}: dates are not numbers; give numbers made from them, such as "
            "dt.dayofweek"
        )


def _enough(estimate: PriorProfile) -> str:
    """Return how many tuples would tell the prior, in words after what those of the sample say."""
    if estimate.verdict == "does not fit":
        return ""
    if estimate.enough is None:
        return " (nor how many would be enough)"
    tuples, unlabeled = estimate.enough
    more = f"about {tuples:,} tuples with {unlabeled:,} unlabeled rows like these"
    return f" ({more} would probably be enough)"


def _rows_and_groups(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Return rows (N, ...) and groups (N,) of either form that `fit` takes."""
    try:
        y = y if hasattr(y, "ndim") else np.asarray(y)
    except ValueError:
        raise UserError(
            "y holds rows of several shapes; if tuples and unlabeled rows are swapped, "
            "give the tuples first"
        ) from None
    if y.ndim != 1:
        X, y = join_groups(X, y)
    return X, np.asarray(y)


def _signs(y: Any) -> NDArray[np.int64] | None:
    """Return labels -1 and +1, 0 and 1, or False and True as -1 and +1; None if `y` has others."""
    labels = np.asarray(y)
    values = {*labels.ravel().tolist()}
    if values <= {-1, 1} or values <= {0, 1}:
        return np.where(labels == 1, 1, -1)
    return None


# -- the classifiers -------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class TupleEstimator(CallbackSupportMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Shared by both classifiers. Inside, scores and priors are those of the class that the law
    favours (`_sign`).
    """

    prior: float | None = field(default=None, kw_only=False)
    broken: float = 0.0
    learner: Any = "auto"
    guess_prior: bool = False
    compare_prior: bool = True
    unlabeled_is: Literal["pool", "remainder"] = "pool"
    prior_shift: float | None = None
    random_state: Any = None

    # Attributes that `fit` learns.
    model_: Any = field(init=False)
    prior_: float = field(init=False)
    prior_estimate_: PriorProfile | None = field(init=False)
    learner_: Choice = field(init=False)
    _counts: tuple[ArrayLike, ArrayLike] | None = field(init=False)
    _moved = 0.0  # added to the scores if the classes were exchanged

    def __sklearn_tags__(self) -> Any:
        """Return the tags that scikit-learn's tools and checks ask for."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.allow_nan = self._takes_missing
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters, and the learner once it is chosen."""
        text = str(super().__repr__(N_CHAR_MAX))
        return f"{text}  # learner: {self.learner_}" if hasattr(self, "learner_") else text

    # -- training ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Train on tuples and unlabeled rows: ``fit(tuples, unlabeled)``.

        ``fit(rows, groups)`` is the form for scikit-learn's tools, ``fit(rows, sample)`` that of
        the library. A call that fails or is interrupted leaves what was learned before.

        Parameters
        ----------
        X : ndarray, shape (n, M, ...), or sequence of n ndarrays or frames, shapes (M_i, ...)
            The members of each tuple: uint8 grey values, or numbers. In the other forms rows (N,
            ...), those of tuples and the unlabeled ones.
        y : ndarray, shape (n_unlabeled, ...), or int64, shape (N,), or TupleData
            Unlabeled rows. Or, for each row, the number of its tuple as `mdpu.data.number_groups`
            gives it, and -1 where it is unlabeled. Or the indices of both in the rows, where one
            may stand more than once and others not at all.

        Raises
        ------
        UserError
            If a parameter is refused, parameters and data do not fit together, or `prior` is None
            and the sample is not enough to estimate it.
        """
        return self._fit_or_restore(X, y, None)

    def _fit_or_restore(self, X: Any, y: Any, counts: tuple[ArrayLike, ArrayLike] | None) -> Self:
        before = dict(self.__dict__)
        try:
            self._counts = counts
            for name in ("_exchanged", "_moved"):
                self.__dict__.pop(name, None)
            return self._fit(X, y)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    # Inside of what restores the old model, so that callbacks end before it is there again.
    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(self, X: Any, y: Any) -> Self:
        self._check_parameters()
        sample = self._sample(X, y)
        learner, reason = self._chosen(sample)
        seed = self._seed()
        self._begin_callbacks(sample)

        prior, estimate = self._prior(sample, seed)
        self._check_law(prior, sample)
        self._learn(learner, sample, prior, seed)
        if self._compares_told_prior(sample):
            with self._task("prior"):
                estimate = self._compare_told_prior(prior, sample, seed)

        self._warn_of_little_information(prior, sample)
        self._warn_of_constant_answers(sample)
        self.learner_ = Choice(learner.name, reason)
        self.prior_estimate_ = estimate.mirrored() if estimate and self._sign < 0 else estimate
        self.prior_ = float(self._mirrored(prior))
        self._name_classes(sample)
        self.classes_ = np.array([-1, 1])
        self._callback_fit_ctx.call_on_fit_task_end(estimator=self)
        return self

    def _chosen(self, sample: Sample) -> tuple[Learner, str]:
        """Return the learner to take, and why."""
        learner = named_learner(self.learner)
        if learner is None:
            return default_learner(sample)
        learner.check(sample)
        if isinstance(self.learner, str):
            return learner, "as learner says"
        return learner, f"learner={type(self.learner).__name__}"

    def _learn(self, learner: Learner, sample: Sample, prior: float, seed: int | str) -> None:
        """Train a learner on the whole sample."""
        with self._task(learner.name, learner.epochs(sample)) as end_epoch:
            self.model_ = learner.learn(sample, prior, seed, end_epoch)
        for name in ("history_", "n_iter_"):
            self.__dict__.pop(name, None)
        if isinstance(self.model_, NetworkScore):
            self.history_ = self.model_.trained.history
            self.n_iter_ = len(self.history_)

    def _compares_told_prior(self, sample: Sample) -> bool:
        """Whether a given prior is compared with the sample's estimate."""
        return self.prior is not None and self.compare_prior and not sample.bags.complete

    # -- callbacks --------------------------------------------------------------------------------

    def _begin_callbacks(self, sample: Sample) -> None:
        """Tell the callbacks of ``set_callbacks`` that `fit` begins, and how many parts it has."""
        parts = 1
        if self.prior is None or self._compares_told_prior(sample):
            parts += 1
        self._init_callback_context(max_subtasks=parts).call_on_fit_task_begin(estimator=self)

    @contextmanager
    def _task(self, name: str, parts: int = 0) -> Iterator[EndEpoch]:
        """Tell the callbacks that a part of `fit` begins and ends.

        What it gives tells them that one of the part's own `parts` ended, and returns whether a
        callback asks to stop.
        """
        task = self._callback_fit_ctx.subcontext(name, max_subtasks=parts)
        task.call_on_fit_task_begin(estimator=self)

        def end_part() -> bool:
            part = task.subcontext("epoch").call_on_fit_task_begin(estimator=self)
            return bool(part.call_on_fit_task_end(estimator=self))

        yield end_part
        task.call_on_fit_task_end(estimator=self)

    def _check_parameters(self) -> None:
        """Raise `UserError` if a parameter is refused, whatever the data."""
        for name, choices in CHOICES.items():
            check_choice(name, getattr(self, name, choices[0]), choices)
        for name in ("prior", "prior_shift"):
            if getattr(self, name) is not None:
                check_share(name, getattr(self, name))
        if self.broken != 0:
            check_share("broken", self.broken)
            if self._counts is not None:
                raise UserError(
                    "broken is the share of tuples that break a law, but counts were given; leave "
                    "one out"
                )
        learner = named_learner(self.learner)
        if isinstance(learner, Network):
            learner.settings(FEW)

    # -- rows and tuples --------------------------------------------------------------------------

    def _sample(self, X: Any, y: Any) -> Sample:
        """Return the sample to learn from, with the members put back if need be."""
        rows, data = self._read(X, y, reset=True)
        complete = y is None
        sample = Sample.of(rows, data, self._learned_law, self._counts, complete)
        if self.unlabeled_is == "remainder" and not complete:
            sample = sample.put_back()
        n_unlabeled = len(sample.bags.unlabeled)
        if n_unlabeled < 2:
            raise UserError(
                "one unlabeled row says nothing of positives; give as many as there are tuples"
            )
        for count, what in ((sample.bags.n, "tuples"), (n_unlabeled, "unlabeled rows")):
            if count < FEW:
                warn(f"{count} {what} are too few to learn from or to judge by; give {FEW} or more")
        return sample

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, TupleData]:
        """Return rows (N, ...), and the indices of tuples and unlabeled rows, in whatever form they
        were given.
        """
        if y is None:
            y = self._one_unlabeled(X)
        if not isinstance(y, TupleData):
            X, y = _rows_and_groups(X, y)
        rows = self._checked(X, reset=reset, ensure_min_samples=2)
        if isinstance(y, TupleData):
            y.check(rows.shape[0])
            return rows, y
        if rows.shape[0] != len(y) and np.issubdtype(y.dtype, np.integer):
            raise UserError(
                f"X holds {rows.shape[0]} rows, but y the groups of {len(y)}; give one for each"
            )
        return rows, sample_of(y)

    def _one_unlabeled(self, X: Any) -> Any:
        """Return what stands for unlabeled rows where there are counts alone: the members are
        unlabeled too.
        """
        if self._counts is None:
            raise UserError(
                "requires y to be passed, but the target y is None; give unlabeled rows, or groups"
            )
        if hasattr(X, "columns"):
            raise UserError(
                "with counts alone, X is a list with the rows of each group, but it is one frame"
            )
        return X[0]

    def _checked(self, X: Any, *, reset: bool, **options: Any) -> Any:
        """Return rows as scikit-learn checks them, in the types that learners take."""
        if not reset and (ndim := getattr(X, "ndim", 1)) not in (1, 1 + len(self._row_shape)):
            raise UserError(
                f"rows have {ndim} axes, but the classifier was trained on rows with "
                f"{1 + len(self._row_shape)}; "
                "give single rows, such as tuples.reshape(-1, *tuples.shape[2:])"
            )
        _check_columns(X)
        options |= {
            "accept_sparse": "csr" if self._takes_sparse else False,
            "ensure_all_finite": "allow-nan" if self._takes_missing else True,
        }
        try:
            rows: Any = validate_data(self, X, reset=reset, allow_nd=True, **options)
            if (
                not sparse.issparse(rows)
                and rows.dtype != np.uint8
                and not np.issubdtype(rows.dtype, np.floating)
            ):
                rows = rows.astype(np.float64 if rows.dtype.itemsize > 2 else np.float32)
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            of = [*X.select_dtypes(exclude="number")] if hasattr(X, "select_dtypes") else "rows"
            raise UserError(
                f"{of} hold text or categories; put an encoder before the classifier in a "
                "Pipeline, such as "
                "make_column_transformer((OneHotEncoder(), columns), remainder='passthrough')"
            ) from None
        if reset:
            self._row_shape: tuple[int, ...] = tuple(rows.shape[1:])
        elif tuple(rows.shape[1:]) != self._row_shape:
            raise UserError(
                f"rows have the shape {tuple(rows.shape[1:])}, but the classifier was trained on "
                f"rows of {self._row_shape}"
            )
        return rows

    @property
    def _takes_sparse(self) -> bool:
        """Whether rows may be a sparse matrix."""
        return self._tag_of_learner("takes_sparse")

    @property
    def _takes_missing(self) -> bool:
        """Whether rows may have missing values."""
        return self._tag_of_learner("takes_missing")

    def _tag_of_learner(self, name: str) -> bool:
        """Return a tag of the learner; scikit-learn asks before `fit` can refuse one."""
        try:
            learner = named_learner(self.learner)
        except UserError:
            return False
        return learner is None or bool(getattr(learner, name))

    def _seed(self) -> int | str:
        """Return the seed: integers and texts as they are, so that a run of the library can have
        the same.
        """
        if isinstance(self.random_state, str):
            return self.random_state
        if isinstance(self.random_state, int | np.integer) and self.random_state >= 0:
            return int(self.random_state)
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError:
            raise UserError(
                f"random_state is {self.random_state!r}; an integer of at least 0, a RandomState, "
                "a text or None is needed"
            ) from None

    # -- laws -------------------------------------------------------------------------------------

    def law_of(self, size: int) -> Law:
        """Return the law of the tuples of one size."""
        raise NotImplementedError

    def _learned_law(self, size: int) -> Law:
        """Return the law in terms of the class whose scores are learned."""
        return self.law_of(size)

    @property
    def _sign(self) -> int:
        """1, or -1 if the class whose scores are learned is the negative one."""
        return 1

    def _mirrored(self, prior: float) -> float:
        """Return the prior of the learned class given that of the positive one, or the other way
        round.
        """
        return prior if self._sign > 0 else 1 - prior

    # -- the prior --------------------------------------------------------------------------------

    def _prior(self, sample: Sample, seed: int | str) -> tuple[float, PriorProfile | None]:
        """Return the prior of the learned class, and its estimate if it is not told."""
        if self.prior is not None:
            return self._mirrored(float(self.prior)), None
        with self._task("prior"):
            if sample.bags.complete:
                return event_prior(sample, seed), None
            estimate = prior_of(sample, seed)
        return self._estimated(estimate, sample), estimate

    def _estimated(self, estimate: PriorProfile, sample: Sample) -> float:
        """Return the estimated prior of the learned class.

        Raises
        ------
        UserError
            If the sample is not enough to estimate it, and no guess is asked for.
        """
        if estimate.known:
            if estimate.symmetric and getattr(self, "positive_by", None) is None:
                warn(
                    "the law is the same with the classes exchanged, so +1 is the larger class of "
                    "the two that were "
                    "found; the data do not say which one that is; set positive_by to decide it"
                )
            return estimate.prior

        says = self._said_of_prior(estimate, sample)
        remedy = "give prior (--prior), more tuples, or larger tuples"
        if estimate.verdict == "does not fit":
            remedy = "leave out columns that say where a row comes from, or draw both alike"
        if not self.guess_prior:
            raise UserError(
                f"{estimate.n} tuples and {estimate.n_unlabeled} unlabeled rows say "
                f"{says}; {remedy}, or set guess_prior=True (--guess-prior)"
            )
        guess = min(max(estimate.prior, 0.02), 0.98)
        guessed = f"{self._mirrored(guess):.2f}"
        warn(f"the data say {says}, and {guessed} is a guess; {remedy}")
        return guess

    def _said_of_prior(self, estimate: PriorProfile, sample: Sample) -> str:
        """Return what a sample says of the prior that is not enough, and how many tuples would
        be.
        """
        if estimate.verdict == "does not fit":
            return f"no prior: {self._apart(sample)}"
        says = "nothing about the prior"
        if estimate.verdict == "bound only":
            low, high = self._ends(estimate)
            says = (
                "only that, if they differ by the class alone, the prior lies between "
                f"{low:.2f} and {high:.2f}"
            )
        return says + _enough(estimate)

    def _ends(self, estimate: PriorProfile) -> tuple[float, float]:
        """Return the ends of the interval of the positive class's prior."""
        low, high = sorted((self._mirrored(estimate.low), self._mirrored(estimate.high)))
        return low, high

    def _apart(self, sample: Sample) -> str:
        """Return the sentence for tuples and unlabeled rows that the law fits at no prior."""
        names = getattr(self, "feature_names_in_", None)
        columns = []
        for place, area in columns_apart(sample.rows, sample.bags.members, sample.bags.unlabeled):
            name = place if names is None else names[place]
            columns.append(f"{name} ({area:.2f})")
        sentence = (
            "the law fits at none, so they differ by more than the class, or tuples break the law"
        )
        if columns:
            sentence += f"; the columns that tell them apart best are {', '.join(columns)}"
        return sentence

    def _compare_told_prior(self, prior: float, sample: Sample, seed: int | str) -> PriorProfile:
        """Return the sample's estimate of the prior; warn if the given prior does not fit.

        The warning says so if the prior would fit with the members put back.
        """
        estimate = prior_of(sample, seed)
        if estimate.verdict == "does not fit":
            text = f"tuples and unlabeled rows support no prior: {self._apart(sample)}"
        elif not estimate.fits(prior):
            low, high = self._ends(estimate)
            text = (
                f"prior is {self.prior}, but tuples and unlabeled rows, if they differ by the "
                "class alone, "
                f"support {low:.2f} to {high:.2f}; check prior, or whether the unlabeled "
                "rows were drawn as "
                "they come"
            )
        else:
            return estimate

        if self.unlabeled_is == "pool":
            whole = prior_of(sample.put_back(), seed)
            if whole.known and whole.fits(prior):
                text += (
                    "; they would fit as what the tuples left of a pool: see "
                    'unlabeled_is="remainder"'
                )
        warn(text)
        return estimate

    def _check_law(self, prior: float, sample: Sample) -> None:
        """Raise `UserError` if tuples break the law as often as random groups."""
        if not self.broken:
            return
        by_chance = max(1 - replace(law, refused=0.0).rate(prior) for law in sample.bags.laws)
        if self.broken >= by_chance:
            raise UserError(
                f"broken is {self.broken:.2f}, but only a share {by_chance:.2f} of random groups "
                f"at prior {self._mirrored(prior):.2f} breaks the law; check broken and prior"
            )

    def _name_classes(self, sample: Sample) -> None:
        """Exchange the classes if something says that they are the other way round."""

    def _warn_of_little_information(self, prior: float, sample: Sample) -> None:
        """Warn of a prior near 0 or 1, where tuples say little."""
        most = max(law.joint_information(prior) for law in sample.bags.laws)
        constant = max(prior, 1 - prior)
        if constant >= 0.75 and most < LITTLE:
            warn(
                f"at prior {self._mirrored(prior):.2f} a tuple says {most:.2f} nats of its "
                "members' classes; "
                "learners seldom beat the constant answer here, which is right in "
                f"{100 * constant:.0f} %: compare with it, or take larger or stricter tuples"
            )

    def _warn_of_constant_answers(self, sample: Sample) -> None:
        answers = self._scores(sample.rows[sample.bags.unlabeled[:2000]]) > 0
        if len(answers) > 1 and answers.all() | ~answers.any():
            warn(
                "every unlabeled row gets the same answer; the classifier has learned no "
                "difference: give more tuples, check prior, or take another learner"
            )

    # -- prediction -------------------------------------------------------------------------------

    def _scores(self, rows: Any) -> NDArray[Any]:
        """Return the learned class's scores (N,) of rows that are checked."""
        return np.asarray(self.model_(rows))

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Return scores (N,) of rows (N, ...): positive where the answer is +1.

        Raises
        ------
        UserError
            If the rows are unlike those of the training; or `prior_shift` is given and the method's
            scores are not log-odds.
        """
        check_is_fitted(self)
        return self._shown_scores(self._checked(X, reset=False))

    def _shown_scores(self, rows: Any) -> NDArray[np.float32]:
        """Return the scores (N,) of `decision_function` of rows that are checked."""
        scores = self._sign * self._scores(rows)
        return (scores + self._moved + self._prior_shift()).astype(np.float32)

    def _prior_shift(self, asked: str | None = None) -> float:
        """Return the number that `prior_shift` adds to scores; it, and what is `asked`, need
        log-odds.
        """
        if asked or self.prior_shift is not None:
            self._check_posterior(asked or "prior_shift")
        if self.prior_shift is None:
            return 0.0
        check_share("prior_shift", self.prior_shift)
        return float(logit(self.prior_shift) - logit(self.prior_))

    @property
    def module_(self) -> PlainModule:
        """The trained network as a plain module on the CPU, from rows (N, ...) to scores (N,)."""
        check_is_fitted(self)
        model = self.model_
        if not isinstance(model, NetworkScore) or model.trained.preparation is None:
            raise AttributeError(
                f"module_ exists for networks only; the learner is {self.learner_}"
            )
        shift = self._moved + self._prior_shift()
        return PlainModule(
            model.module,
            model.trained.preparation,
            model.standardisation,
            float(self._sign),
            shift,
        ).eval()

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 or +1 for each of the rows (N, ...); raises as `decision_function`."""
        return np.where(self.decision_function(X) > 0, 1, -1)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities (N, 2) of -1 and +1 for rows (N, ...).

        Raises
        ------
        UserError
            If the method's scores are not log-odds; and as `decision_function`.
        """
        check_is_fitted(self)
        self._check_posterior("predict_proba")
        scores = self.decision_function(X).astype(np.float64)
        return np.stack([expit(-scores), expit(scores)], axis=1)

    def _check_posterior(self, asked: str) -> None:
        """Raise `UserError` unless the scores that were learned are log-odds, as those of the joint
        objective are.
        """
        if not isinstance(self.model_, NetworkScore):
            return
        task = self.model_.trained.task
        if not load_method(task.method).gives_log_odds(task.loss):
            loss = task.loss if isinstance(task.loss, str) else OWN_LOSS
            raise UserError(
                f"{asked} needs scores that are log-odds, but those of method {task.method} with "
                f"the loss {loss} are not; take method bag-relu, or relu, with the loss logistic"
            )

    # -- evaluation -------------------------------------------------------------------------------

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on rows (N, ...): that with true labels, or an estimate from groups.

        With groups it is one less the `risk_estimate`, at the prior of this classifier. So it
        compares learners, but no priors: to choose between these, or between classifiers that
        estimate theirs, give one prior to all, as
        ``scoring=partial(negative_bag_risk, prior=0.4)``.

        Parameters
        ----------
        X : array_like, shape (N, ...)
        y : array_like, shape (N,)
            True labels: -1 or +1, 0 or 1, False or True. Or groups, as `fit` takes them; values of
            -1 and 1 alone are labels.
        sample_weight : array_like, shape (N,), optional
            Weights of rows with labels.

        Raises
        ------
        UserError
            If `y` holds neither; or weights are given with groups.
        """
        labels = _signs(y)
        if labels is not None:
            return float(super().score(X, labels, sample_weight))
        groups = np.asarray(y)
        if groups.ndim != 1 or not np.issubdtype(groups.dtype, np.integer):
            raise UserError(
                "score needs true labels as y, -1 or +1, 0 or 1, or groups of join_groups or "
                "number_groups with cv=TupleKFold(); tuples and unlabeled rows are for "
                "risk_estimate"
            )
        if sample_weight is not None:
            raise UserError("sample_weight is for true labels, but y holds groups; leave it out")
        value = 1 - self.risk_estimate(X, groups).value
        if self.prior is None and getattr(self, "prior_estimate_", None) is not None:
            warn(
                f"score is an accuracy at the estimated prior {self.prior_:.3g}; scores at other "
                "priors do not compare with it: give prior, or "
                "scoring=partial(negative_bag_risk, prior=...)"
            )
        return value

    def risk_estimate(self, X: Any, y: Any, *, level: float = 0.95) -> Estimate:
        """Estimate the error rate at the training prior from tuples and unlabeled rows, without
        labels.

        Theorem 1 holds for any loss, the 0-1 loss among them: Eq. 11 with the shares of positive
        answers among members of tuples and among unlabeled rows. Tuples of several sizes give one
        estimate for each size, and their mean by numbers. Rows that the classifier was trained on
        give too low an estimate. If the prior was estimated, the interval includes its uncertainty.

        Parameters
        ----------
        X, y
            As for `fit`, in either form.
        level : float
            Confidence level of the interval, in (0, 1).
        """
        check_is_fitted(self)
        check_share("level", level)
        rows, data = self._read(X, y, reset=False)
        data = of_pool(self, without_repeats(rows, data))
        answers = self._shown_scores(rows) > 0
        by_prior = partial(estimated_risk, answers, data, law_of=self.law_of, level=level)
        told = self.prior_
        profile = estimated_profile(self)
        return with_uncertain_prior(lambda prior: {"risk": by_prior(prior)}, told, profile, level)[
            "risk"
        ]


@dataclass(kw_only=True, eq=False, repr=False)
class MDPUClassifier(TupleEstimator):
    """A classifier learned from tuples, at least half of whose members are positive, and unlabeled
    rows.

    Parameters
    ----------
    prior : float, optional
        Share of positives among the unlabeled rows, in (0, 1). By default it is estimated
        (`PriorProfile` has the limits). `fit` refuses a sample that is not enough to estimate it.
    dominant : {'positive', 'negative'}
        The class that at least half of each tuple's members are of.
    broken : float
        Share of the tuples, in [0, 1), that break the rule.
    learner : {'auto', 'student', 'linear', 'network'}, Network or scikit-learn classifier
        ``student``: boosted trees on the soft labels of a kernel machine; any scikit-learn
        classifier with ``sample_weight`` and ``predict_proba`` can replace them. ``linear``: a
        linear model of the joint objective. ``network``: as a `Network` with other parameters.
        ``auto`` is the student. It is the network for 1,000 tuples of pictures or more, and for
        more than 20,000 tuples of any rows, where the student would take minutes; of so many sparse
        rows it is the linear model. Networks do not take tuples of several sizes or with several
        counts, nor sparse rows. Learners without a network take one thread.
    guess_prior : bool
        Whether `fit` guesses the prior if the sample is not enough to estimate it, instead of
        refusing the sample.
    compare_prior : bool
        Whether `fit` compares a given `prior` with its estimate, and warns if they do not fit.
    unlabeled_is : {'pool', 'remainder'}
        Whether the unlabeled rows are draws from the pool, or the rest of the pool after the tuples
        were taken out. In the second case the members are put back, also where scores are
        estimated from groups, and `prior` is that of the whole pool.
    prior_shift : float, optional
        Prior where the classifier will be used, if it differs from that of the unlabeled rows. It
        moves the scores by the difference of the log-odds of the two priors, and can be set after
        `fit`.
    random_state : int, RandomState, str or None
        Seed of all random numbers of `fit`. A text names a trial, as in the pipeline.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        -1 and +1.
    prior_ : float
        The prior, given or estimated.
    prior_estimate_ : PriorProfile or None
        The sample's estimate of the prior of the positive class, with its interval. None if `prior`
        is given and `compare_prior` is False.
    learner_ : Choice
        The learner and the reason for it.
    history_ : DataFrame
        One row per epoch, for networks: ``epoch``, from 1, ``objective``, and the measures of the
        method.
    n_iter_ : int
        Epochs that a network was trained for.
    module_ : Module
        A plain PyTorch module, for networks: from rows (N, ...) as they are, standardisation
        included, to the scores of `decision_function`.
    model_ : callable
        What the learner learned: from rows, as `fit` checks them, to scores of the learned class.

    Notes
    -----
    scikit-learn's tools cut `X` and `y` by rows, so `fit` also takes the data as one array of rows,
    with each row's tuple as a number; see `fit`, `join_groups` and `number_groups`. The numbers
    carry the sizes of the tuples, so that `fit` refuses any that a splitter has cut. In that form a
    `Pipeline` scales the rows, and `GridSearchCV` works with ``cv=TupleKFold()`` and
    ``scoring=negative_risk``.

    Examples
    --------
    Triples of digits are kept if at least two are even:

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> images, digits = load_digits(return_X_y=True)
    >>> even, rng = digits % 2 == 0, np.random.default_rng(0)
    >>> groups = rng.integers(1200, size=(1500, 3))
    >>> tuples = images[groups[even[groups].sum(axis=1) >= 2]]
    >>> unlabeled = images[rng.integers(1200, size=1000)]
    >>> classifier = MDPUClassifier(random_state=0).fit(tuples, unlabeled)
    >>> classifier.predict(images[1200:1206])
    array([-1, -1, -1, -1, -1,  1])
    >>> classifier.score(images[1200:], np.where(even[1200:], 1, -1)) > 0.9
    True
    """

    dominant: Literal["positive", "negative"] = "positive"

    def law_of(self, size: int) -> Law:
        """Return the law of the tuples of one size: at least half of the members are of the
        dominant class.
        """
        law = Law.dominant(size) if self.dominant == "positive" else Law.between(size, 0, size // 2)
        return law.broken(self.broken)

    def _learned_law(self, size: int) -> Law:
        return Law.dominant(size).broken(self.broken)

    @property
    def _sign(self) -> int:
        return 1 if self.dominant == "positive" else -1


@dataclass(kw_only=True, eq=False, repr=False)
class TupleClassifier(TupleEstimator):
    """A classifier learned from tuples of any symmetric law and unlabeled rows.

    A random group of M rows with k positives is collected as a tuple with the weight w_k. Weights
    (0, 1, 0) are dissimilar pairs, (1, 0, 1) similar ones, (0, 1, 0, 0) triples with exactly one
    positive.

    Parameters
    ----------
    prior : float, optional
        Share of positives among the unlabeled rows, in (0, 1). By default it is estimated, see
        `PriorProfile`. `fit` refuses a sample that is not enough to estimate it.
    law : Law, array_like, str or callable
        The law, or its weights w_0 .. w_M. For tuples of several sizes, from which networks do not
        learn, a name of `mdpu.law.named_law` such as ``at-least-1``, or a function from a tuple
        size to a law, such as ``Law.dominant``.
    positive_by : int, str or (rows, labels), optional
        Decides which class is +1 if the law stays the same when the classes are exchanged, as that
        of similar pairs does: a column by number or name, whose mean is larger among positives; or
        a few rows with labels, -1 or +1.
    **parameters
        The other parameters, and the attributes, are those of `MDPUClassifier`.
    """

    law: Any = (0, 1, 1)
    positive_by: Any = None
    _exchanged = False

    @property
    def _sign(self) -> int:
        return -1 if self._exchanged else 1

    def _check_law(self, prior: float, sample: Sample) -> None:
        """Warn of classes that nothing tells apart as well, and refuse a `positive_by` that cannot
        do so.
        """
        super()._check_law(prior, sample)
        symmetric = all(law.is_symmetric for law in sample.bags.laws)
        if self.positive_by is None:
            near = max(TIE, sample.bags.n**-0.5)
            if symmetric and self.prior is not None and abs(prior - 0.5) <= near:
                warn(
                    f"the law is the same with the classes exchanged, and prior {self.prior} is "
                    "too near 1/2 to tell them apart; set positive_by to a column with a larger "
                    "mean among positives, or to labelled rows"
                )
            return
        if not symmetric:
            raise UserError(
                "positive_by is given, but the law tells the classes apart; leave it out"
            )
        if not isinstance(self.positive_by, tuple) or len(self.positive_by) != 2:
            self._column(sample.rows)

    def _column(self, rows: Any) -> Floats:
        """Return the column (N,) that `positive_by` names."""
        names = [*getattr(self, "feature_names_in_", ())]
        place = names.index(self.positive_by) if self.positive_by in names else self.positive_by
        if rows.ndim != 2 or isinstance(place, bool) or place not in range(rows.shape[1]):
            raise UserError(
                f"positive_by is {self.positive_by!r}; give a column's number or name, or (rows, "
                "labels)"
            )
        column: Any = rows[:, [place]]
        return np.asarray(column.sum(axis=1), np.float64).ravel()  # of sparse rows too

    def _name_classes(self, sample: Sample) -> None:
        """Exchange the classes if `positive_by` says so, and move the scores to the prior again if
        it was given.
        """
        if self.positive_by is None:
            return
        scores = self._scores(sample.unlabeled_rows)
        if isinstance(self.positive_by, tuple):
            evidence = self._evidence_of_labels(*self.positive_by)
            clear = abs(evidence.sum())
        else:
            evidence = self._evidence_of_column(sample, scores)
            clear = abs(evidence.sum()) / max(float(np.sqrt((evidence**2).sum())), TINY)
        if clear < SURE:
            warn(
                "positive_by hardly tells the classes apart; give another column, or more labelled "
                "rows"
            )
        if evidence.sum() < 0:
            self._exchange_classes(scores)

    def _evidence_of_labels(self, rows: Any, labels: ArrayLike) -> Floats:
        """Return the log-likelihood that each labelled row adds for the classes as they are."""
        scores = self._scores(self._checked(rows, reset=False))
        labels = np.asarray(labels)
        if labels.shape != scores.shape or not np.isin(labels, (-1, 1)).all():
            raise UserError(
                "positive_by must be (rows, labels) with a label, -1 or +1, for each row"
            )
        return np.asarray(scores * labels)

    def _evidence_of_column(self, sample: Sample, scores: NDArray[Any]) -> Floats:
        """Return what each unlabeled row adds to the covariance of the column and the
        probability.
        """
        column = self._column(sample.unlabeled_rows)
        present = ~np.isnan(column)
        column = column[present]
        probability = expit(scores[present])
        return (column - column.mean()) * (probability - probability.mean())

    def _exchange_classes(self, scores: NDArray[Any]) -> None:
        """Call the other class positive; `scores` are those of the unlabeled rows."""
        self._exchanged = True
        if self.prior_estimate_ is not None and self.prior is None:
            self.prior_ = 1 - self.prior_
            self.prior_estimate_ = replace(self.prior_estimate_, symmetric=False).mirrored()
        else:
            self._moved = float(shifted(-scores.astype(np.float64), self.prior_))

    def fit(self, X: Any, y: Any = None, counts: tuple[ArrayLike, ArrayLike] | None = None) -> Self:
        """Train on tuples and unlabeled rows, or on tuples whose numbers of positives were observed
        within bounds.

        Parameters
        ----------
        X, y
            As for `MDPUClassifier.fit`. With `counts`, `y` may be left out if all groups were
            collected, whatever was observed of them. Then the members are draws at the prior, which
            need not be given, and the log loss of the observations is minimised.
        counts : (low, high), optional
            The least and the largest number of positives in each tuple, numbers or integers (n,);
            they take the place of `law`. Equal ones are exact counts (label proportions), (1, size)
            and (0, 0) the positive and negative bags of multiple-instance learning. The bounds may
            depend on the number of positives only in that they contain it. Networks learn from
            them only where all tuples have the same.

        Raises
        ------
        UserError
            As `MDPUClassifier.fit`, and if counts are impossible, say nothing, or overlap where `y`
            is left out.
        """
        return self._fit_or_restore(X, y, counts)

    def law_of(self, size: int) -> Law:
        """Return the law of the tuples of one size.

        Raises
        ------
        UserError
            If `law` is no law, or is for another size; or if the classifier was trained on counts.
        """
        if getattr(self, "_counts", None) is not None:
            raise UserError(
                "the classifier was trained on counts, not on a law; scores without labels need a "
                "law"
            )
        law: Any = self.law
        if isinstance(law, str):
            law = named_law(law, size)
        try:
            law = law(size) if callable(law) else law
            law = law if isinstance(law, Law) else Law(tuple(law))
        except (TypeError, ValueError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(
                f"law is {self.law!r}; a Law is needed, or weights w_0 .. w_M, like (0, 1, 1), or "
                "a name, like at-least-1"
            ) from None
        if law.size != size:
            raise UserError(
                f"law is for {law.size} members, but a tuple has {size}; give a name, like "
                "at-least-1, or a function from the size, like Law.dominant, for tuples of several "
                "sizes"
            )
        if self.broken and law.refused:
            raise UserError(
                "law says how many tuples are broken, and so does broken; leave one out"
            )
        return law.broken(self.broken) if self.broken else law
