"""What both classifiers share: training, prediction, and what a sample says of its prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from mdpu.data import TupleData
from mdpu.errors import UserError, check_choice, check_share, warn
from mdpu.estimator.networks import check_module, choose_epochs, settings_of, train, usable_methods
from mdpu.estimator.samples import PROFILED, numbers, part_of, put_back, read, without_pool
from mdpu.groups import Estimate, estimated_risk, join_groups
from mdpu.law import Law
from mdpu.learn import Settings, Task
from mdpu.learn.checkpoint import KeptState
from mdpu.learn.device import choose_device
from mdpu.learn.fitting import LARGE, FittedNetwork
from mdpu.learn.method import CorrectedRisk
from mdpu.learn.methods import load_method
from mdpu.learn.modules import PlainModule
from mdpu.learn.task import Precision
from mdpu.learners.features import Standardisation, Standardised, kernel_maps
from mdpu.learners.joint import Bags, CountedTuples, Floats, WeightedTuples, only_used
from mdpu.learners.latent import PriorProfile, estimate_prior, profile_broken, rank
from mdpu.learners.student import check_student, event_prior, fit_linear, fit_student
from mdpu.learners.trees import fit_trees

FIT: dict[str, Callable[..., Any]] = {"student": fit_student, "linear": fit_linear, "trees": fit_trees}
LEARNERS = ("auto", "network", *FIT)
# Parameters that may change between two calls of `fit` of which the second goes on.
MAY_CHANGE = ("n_epochs", "device", "prior_shift", "callbacks", "verbose")
# Parameters that only networks have.
OF_NETWORKS = (
    *("method", "loss", "network", "hidden", "n_epochs", "early_stopping", "validation_fraction", "n_iter_no_change"),
    *("batch_size", "learning_rate", "weight_decay", "precision", "callbacks", "warm_start"),
)
SWITCHES = ("guess_prior", "compare_prior", "standardize", "early_stopping", "warm_start", "verbose")
FEW = 20  # tuples or unlabeled rows
FEW_STEPS = 30
PICTURES_FROM = 1000  # tuples of pictures from which on a network is trained; with 200, a student is more accurate
STUDENT_UP_TO = 20_000  # tuples of a table; beyond it the kernel teacher takes minutes
LITTLE = 0.12  # nats that a tuple says, below which every learner ended at the constant answer at priors of 0.75 on


@dataclass(frozen=True)
class Choice:
    """Which learner was trained, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        """Return both."""
        return f"{self.name} ({self.reason})"


@dataclass(kw_only=True, eq=False, repr=False)
class TupleEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What both classifiers share. Inside, scores are those of the class that `_own` names."""

    prior: float | None = field(default=None, kw_only=False)
    broken: float | Literal["estimate"] = 0.0
    learner: Any = "auto"
    guess_prior: bool = False
    compare_prior: bool = True
    unlabeled_is: Literal["pool", "remainder"] = "pool"
    standardize: bool = True
    method: str = "bag-relu"
    loss: str = "logistic"
    network: Any = None
    hidden: Sequence[int] = (300, 300)
    n_epochs: int | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.2
    n_iter_no_change: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    precision: Precision = "fp32"
    device: str = "auto"
    prior_shift: float | None = None
    callbacks: Sequence[Callable[[int, dict[str, float]], Any]] = ()
    warm_start: bool = False
    random_state: Any = None
    verbose: bool = False

    # What `fit` learns.
    model_: Any = field(init=False)
    prior_: float = field(init=False)
    prior_estimate_: PriorProfile | None = field(init=False)
    broken_: float = field(init=False)
    broken_estimate_: Estimate | None = field(init=False)
    learner_: Choice = field(init=False)
    state_: KeptState = field(init=False)
    standardisation_: Standardisation | None = field(init=False)
    _counts: tuple[ArrayLike, ArrayLike] | None = field(init=False)
    _ndim: int = field(init=False)

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn's tools and checks ask of an estimator."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        tags.input_tags.sparse, tags.input_tags.allow_nan = self._takes("sparse"), self._takes("allow_nan")
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters, and the learner once it is chosen."""
        text = str(super().__repr__(N_CHAR_MAX))
        return f"{text}  # learner: {self.learner_}" if hasattr(self, "learner_") else text

    # -- training ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on tuples and unlabeled rows: ``fit(tuples, unlabeled)``.

        ``fit(rows, groups)`` is the form for scikit-learn's tools, ``fit(rows, sample)`` that of the library. A call
        that fails or is interrupted leaves what was learned before.

        Parameters
        ----------
        X : ndarray, shape (n, M, ...), or sequence of n ndarrays or frames, shapes (M_i, ...)
            The members of each tuple: uint8 grey values, or numbers. In the other forms rows (N, ...), those of tuples
            and the unlabeled ones.
        y : ndarray, shape (n_unlabeled, ...), or int64, shape (N,), or TupleData
            Unlabeled rows. Or, for each row, the number of its tuple, from 0, and -1 where it is unlabeled. Or the
            indices of both in the rows, where one may stand more than once and others not at all.
        sample_weight : ndarray, shape (N,), or pair of ndarrays, shapes (n,) and (n_unlabeled,), optional
            How much each row counts, members of a tuple alike; or each tuple and each unlabeled row. The learners
            ``linear`` and ``student`` take weights, with a told `prior`, which is not compared with the sample then.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        UserError
            If a parameter is refused, parameters and data do not fit together, or `prior` is None and the sample does
            not tell it.
        """
        return self._fit_or_restore(X, y, None, sample_weight)

    def _fit_or_restore(self, X: Any, y: Any, counts: tuple[ArrayLike, ArrayLike] | None, sample_weight: Any) -> Self:
        before = dict(self.__dict__)
        try:
            self._counts = counts
            return self._fit(X, y, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        goes_on = self.warm_start and hasattr(self, "state_")
        if not goes_on:
            self.broken_, self.broken_estimate_ = self._told_broken(), None
        rows, sample = self._sample(X, y, sample_weight, reset=not goes_on)
        choice = self._choose_learner(rows, sample)
        if sample_weight is not None and choice.name in ("network", "trees"):
            raise UserError(f"the learner {choice} takes no sample_weight; take learner='student' or 'linear'")
        seed = self.model_.task.seed if goes_on else self._seed()
        with threadpool_limits(1):  # on small matrices, threads that wait for each other take most of the time
            is_part = choice.name == "network" and len(sample.tuples) > PROFILED
            used, own_sample = only_used(rows, part_of(sample, seed) if is_part else sample)
            if self.broken == "estimate" and not goes_on:
                self._estimate_broken(used, own_sample, seed)
            bags = Bags.of(own_sample, self._own_law)
            if bags.complete:
                estimate, own = None, self.prior or event_prior(used, bags, seed)
            else:
                estimate = self._turned(self.prior_estimate_) if goes_on else self._profile(used, own_sample, seed)
                own = self._told(estimate)
            if self.prior is not None and estimate is not None and not estimate.fits(own):
                self._warn_of_told_prior(estimate, used, own_sample, seed)
            self._check_information(own, bags)
            if choice.name != "network":
                student = {} if isinstance(self.learner, str) else {"student": self.learner}
                self.model_ = FIT[choice.name](used, bags, own, seed, **student)
                for name in ("history_", "n_iter_", "state_", "validation_history_", "standardisation_"):
                    self.__dict__.pop(name, None)
        if choice.name == "network":
            self._fit_network(rows, sample, own, seed, goes_on)
        self.learner_ = choice
        self.prior_estimate_ = self._turned(estimate)
        self.prior_ = float(self._own(own))
        self.classes_ = np.array([-1, 1])
        self._warn_of_constant_answers(rows, sample)
        return self

    def _check_parameters(self) -> None:
        """Raise `UserError` if a parameter is refused, whatever the data."""
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise UserError(f"{name} is {getattr(self, name)!r}; True or False is needed")
        if not isinstance(self.callbacks, Sequence) or not all(map(callable, self.callbacks)):
            raise UserError(f"callbacks is {self.callbacks!r}; a list of functions of epoch and row is needed")
        choose_device(self.device)
        if self.warm_start and self.early_stopping:
            raise UserError(
                "early_stopping chooses the number of epochs anew, and warm_start goes on; give one of them"
            )
        self._settings()
        check_choice("method", self.method, usable_methods())
        check_choice("unlabeled_is", self.unlabeled_is, ("pool", "remainder"))
        for name in ("prior", "prior_shift"):
            if getattr(self, name) is not None:
                check_share(name, getattr(self, name))

    def _sample(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, TupleData]:
        """Return rows and the sample to learn from: with counts or weights, and with members put back if need be."""
        rows, sample = self._read(X, y, reset)
        if self._counts is not None:
            sample = CountedTuples.of(sample, self._counts, complete=y is None)
        if sample_weight is not None:
            if self.prior is None or self.broken == "estimate" or self._counts is not None:
                raise UserError(
                    "sample_weight needs a told prior, and excludes counts and broken='estimate'; give numbers for both"
                )
            sample = WeightedTuples.of(sample, sample_weight)
        if self.unlabeled_is == "remainder" and not (isinstance(sample, CountedTuples) and sample.complete):
            sample = put_back(sample)
        if len(sample.unlabeled) < 2:
            raise UserError("one unlabeled row says nothing of positives; give as many as there are tuples")
        for part, what in ((sample.tuples, "tuples"), (sample.unlabeled, "unlabeled rows")):
            if len(part) < FEW:
                warn(f"{len(part)} {what} are too few to learn from or to judge by; give {FEW} or more")
        return rows, sample

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, TupleData]:
        """Return rows and the sample that names them; groups alone, of which counts are known, are unlabeled too."""
        if y is None and self._counts is not None:
            X, y = join_groups(X, X[0])
        return read(X, y, partial(self._checked, reset=reset))

    def _choose_learner(self, rows: Any, sample: TupleData) -> Choice:
        """Return the learner that `learner` names, or the one that did best on data of this kind.

        ``benchmarks/learners.py`` has the figures.
        """
        if not isinstance(self.learner, str):
            check_student(self.learner)
            return Choice("student", f"learner={type(self.learner).__name__}")
        check_choice("learner", self.learner, LEARNERS)
        counted, n = isinstance(sample, CountedTuples), len(sample.tuples)
        if counted and (self.learner == "network" or self._network_parameters()):
            raise UserError(
                "networks learn from tuples of one law; take learner='student', 'linear' or 'trees', or in a loop "
                "of your own a TupleLoss for each pair of counts"
            )
        if self.learner != "auto":
            return Choice(self.learner, "as learner says")
        if changed := self._network_parameters():
            return Choice("network", f"{', '.join(changed)} {'is' if len(changed) == 1 else 'are'} of networks")
        if sparse.issparse(rows):
            return Choice("linear", "sparse rows")
        if counted:
            return Choice("student", "tuples with counts")
        if rows.ndim > 2 and n >= PICTURES_FROM:
            return Choice("network", "pictures")
        if n <= STUDENT_UP_TO:
            return Choice("student", f"{'a table' if rows.ndim == 2 else 'pictures'} with {n} tuples")
        return Choice("network", f"a table with {n} tuples, more than {STUDENT_UP_TO}")

    def _network_parameters(self) -> list[str]:
        """Return the parameters of networks that have another value than their default."""
        defaults = {one.name: one.default for one in fields(self)}
        return [name for name in OF_NETWORKS if repr(getattr(self, name)) != repr(defaults[name])]

    def _takes(self, what: Literal["sparse", "allow_nan"]) -> bool:
        """Whether rows may be a sparse matrix, or have missing values."""
        if not isinstance(self.learner, str):
            is_one = isinstance(self.learner, BaseEstimator)
            return is_one and bool(getattr(self.learner.__sklearn_tags__().input_tags, what))
        others = ("linear",) if what == "sparse" else ("student", "trees", "linear")
        return self.learner in others or (self.learner == "auto" and not self._network_parameters())

    # -- networks ---------------------------------------------------------------------------------

    def _fit_network(self, rows: Any, sample: TupleData, own: float, seed: int | str, goes_on: bool) -> None:
        if not goes_on:
            table = self.standardize and rows.ndim == 2 and np.issubdtype(rows.dtype, np.floating)
            self.standardisation_ = Standardisation.learn(rows, components=None) if table else None
        elif not isinstance(self.model_, FittedNetwork):
            raise UserError("training cannot go on, because the last one was of no network; fit without warm_start")
        elif rows.shape[1:] != self.model_.preparation.shape:
            raise UserError(
                f"rows have the shape {rows.shape[1:]}, but training goes on from {self.model_.preparation.shape}; fit "
                "without warm_start"
            )
        n, size = sample.tuples.shape
        settings, law = self._settings(n), self._own_law(size)
        rows = self._for_network(rows)
        if not isinstance(settings.network, str):
            check_module(settings.network, rows[:2], choose_device(self.device))
        task = Task(self.method, size, own, self.loss, seed, law=None if law == Law.dominant(size) else law)
        parameters = self.get_params()
        if self.early_stopping:
            chosen = choose_epochs(task, rows, sample, settings, parameters)
            settings = replace(settings, epochs=chosen.epoch)
            self.validation_history_ = chosen.history
        key = repr({name: value for name, value in parameters.items() if name not in MAY_CHANGE})
        state = self.state_ if goes_on else KeptState(key)
        if state.key != key:
            raise UserError("training cannot go on, because parameters have changed since; fit without warm_start")
        self.model_ = train(task, rows, sample, settings, parameters, state if self.warm_start else None)
        if self.warm_start:
            self.state_ = state
        self.history_ = self.model_.history
        self.n_iter_ = len(self.history_)
        steps = self.n_iter_ * -(-n // settings.batch_size)
        if steps < FEW_STEPS and not self.early_stopping:
            warn(
                f"n_epochs={settings.epochs} with batch_size={settings.batch_size} are {steps} steps of the optimizer, "
                "too few to learn much; raise n_epochs or lower batch_size",
                ConvergenceWarning,
            )

    def _for_network(self, rows: Any) -> Any:
        learned = getattr(self, "standardisation_", None)
        if learned is None:
            return rows
        standardised = Standardised(rows, learned)
        return standardised if rows.nbytes > LARGE else standardised[:]

    def _settings(self, n: int = 0) -> Settings:
        """Return the settings of a network's training on so many tuples."""
        return settings_of(self.get_params(), n, broken=getattr(self, "broken_", 0.0) > 0)

    # -- data -------------------------------------------------------------------------------------

    def _checked(self, X: Any, *, reset: bool, **options: Any) -> Any:
        """Return rows as scikit-learn checks them, in the types that learners take."""
        finite = "allow-nan" if self._takes("allow_nan") else True
        form = "csr" if self._takes("sparse") else False
        if not reset and (ndim := getattr(X, "ndim", 1)) not in (1, self._ndim):
            raise UserError(
                f"rows have {ndim} axes, but the classifier was trained on rows with {self._ndim}; give single "
                "rows, such as tuples.reshape(-1, *tuples.shape[2:])"
            )
        try:
            rows: Any = validate_data(
                self, X, reset=reset, allow_nd=True, accept_sparse=form, ensure_all_finite=finite, **options
            )
            rows = rows if sparse.issparse(rows) else numbers(rows)
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            of = [*X.select_dtypes(exclude="number")] if hasattr(X, "select_dtypes") else "rows"
            raise UserError(
                f"{of} hold text or categories; put an encoder before the classifier in a Pipeline, such as "
                "make_column_transformer((OneHotEncoder(), columns), remainder='passthrough')"
            ) from None
        if reset:
            self._ndim = len(rows.shape)
        return rows

    def law_of(self, size: int) -> Law:
        """Return the law of the tuples of one size."""
        raise NotImplementedError

    def _own_law(self, size: int) -> Law:
        """Return the law in terms of the class whose scores are learned."""
        return self.law_of(size)

    def _told_broken(self) -> float:
        """Return the share of broken tuples that `broken` gives, 0 where it is to be estimated."""
        if self.broken != "estimate" and self.broken != 0:
            check_share("broken", self.broken)
        elif self.broken == "estimate" and self.prior is None:
            raise UserError("broken='estimate' finds the share at a told prior; give prior, or the share")
        if self.broken != 0 and getattr(self, "_counts", None) is not None:
            raise UserError("broken is the share of tuples that break a law, but counts were given; leave one out")
        return 0.0 if self.broken == "estimate" else float(self.broken)

    def _broken(self, law: Law) -> Law:
        """Return a law with the share of broken tuples, if there is one."""
        share = self.broken_ if hasattr(self, "broken_") else self._told_broken()
        return law.broken(share) if share else law

    @property
    def _sign(self) -> int:
        """1, or -1 if the class whose scores are learned is the negative one."""
        return 1

    def _own(self, prior: float) -> float:
        """Return the prior of the own class given that of the positive one, or the other way round."""
        return prior if self._sign > 0 else 1 - prior

    def _turned(self, estimate: PriorProfile | None) -> PriorProfile | None:
        """Return an estimate of the own class's prior as one of the positive class's, or the other way round."""
        return estimate if estimate is None or self._sign > 0 else estimate.mirrored()

    def _seed(self) -> int | str:
        """Return the seed: integers and texts as they are, so that a task of the library can have the same."""
        if isinstance(self.random_state, str):
            return self.random_state
        if isinstance(self.random_state, int | np.integer) and self.random_state >= 0:
            return int(self.random_state)
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError:
            raise UserError(
                f"random_state is {self.random_state!r}; an integer of at least 0, a RandomState, a text or None is "
                "needed"
            ) from None

    # -- the prior --------------------------------------------------------------------------------

    def _estimate_broken(self, rows: Any, sample: TupleData, seed: int | str) -> None:
        """Estimate the share of broken tuples at the told prior; it is taken as 0 unless its interval excludes 0."""
        counts = rank(_ranked(rows, seed), Bags.of(without_pool(rows, sample), self._own_law), seed)
        found = Estimate(*profile_broken(counts, self._told(None)), 0.95)
        self.broken_, self.broken_estimate_ = found.value if found.low > 0 else 0.0, found

    def _profile(self, rows: Any, sample: TupleData, seed: int | str) -> PriorProfile | None:
        """Return what the sample says of the own class's prior, unless it is told and not to be compared."""
        has_weights = isinstance(sample, WeightedTuples)
        if self.prior is not None and (not self.compare_prior or self.broken == "estimate" or has_weights):
            return None  # a share that was estimated at the prior says nothing about it
        sample = sample if isinstance(sample, CountedTuples) else without_pool(rows, sample)
        return estimate_prior(_ranked(rows, seed), Bags.of(sample, self._own_law), seed=seed)

    def _told(self, estimate: PriorProfile | None) -> float:
        """Return the own class's prior as it is told, or estimated where the sample tells it.

        Raises
        ------
        UserError
            If it does not, and no guess is asked for.
        """
        if self.prior is not None:
            return self._own(float(self.prior))
        assert estimate is not None
        if estimate.known:
            if estimate.symmetric:
                warn(
                    "the law is the same with the classes exchanged, so +1 is the larger class of the two that were "
                    "found; which one that is, nothing in the data says"
                )
            return estimate.prior
        ends = sorted((self._own(estimate.low), self._own(estimate.high)))
        says = (
            "nothing of the prior"
            if estimate.verdict == "not known"
            else f"only that the prior lies between {ends[0]:.2f} and {ends[1]:.2f}"
        )
        if not self.guess_prior:
            raise UserError(
                f"{estimate.n} tuples and {estimate.n_unlabeled} unlabeled rows say {says}; give prior, more tuples, "
                "or larger tuples, or set guess_prior=True"
            )
        guess = min(max(estimate.prior, 0.02), 0.98)
        warn(f"the data say {says}, and {self._own(guess):.2f} is a guess; give prior or more tuples")
        return guess

    def _warn_of_told_prior(self, estimate: PriorProfile, rows: Any, sample: TupleData, seed: int | str) -> None:
        """Warn of a told prior that does not fit, and say so if it would with the members put back."""
        ends = sorted((self._own(estimate.low), self._own(estimate.high)))
        text = (
            f"prior is {self.prior}, but tuples and unlabeled rows speak for {ends[0]:.2f} to {ends[1]:.2f}; check "
            "prior, or whether the unlabeled rows were drawn as they come"
        )
        if self.unlabeled_is == "pool":
            whole = self._profile(rows, put_back(sample), seed)
            if whole is not None and whole.known and whole.fits(self._told(None)):
                text += '; they would fit as what the tuples left of a pool: see unlabeled_is="remainder"'
        warn(text)

    def _check_information(self, own: float, bags: Bags) -> None:
        """Raise `UserError` if tuples break the law as often as random groups; warn if they say too little.

        They say little at a prior near 0 or 1.
        """
        by_chance = max(1 - replace(part.law, refused=0.0).rate(own) for part in bags.parts)
        if self.broken_ >= by_chance:
            raise UserError(
                f"a share of {self.broken_:.2f} of the tuples is broken, but of random groups at prior "
                f"{self._own(own):.2f} no more than {by_chance:.2f} break the law; check broken and prior"
            )
        most = max(part.law.joint_information(own) for part in bags.parts)
        if max(own, 1 - own) >= 0.75 and most < LITTLE:
            warn(
                f"at prior {self._own(own):.2f} a tuple says {most:.2f} nats of its members' classes; learners seldom "
                f"beat the constant answer here, which is right in {100 * max(own, 1 - own):.0f} %: compare with it, "
                "or take larger or stricter tuples"
            )

    def _warn_of_constant_answers(self, rows: Any, sample: TupleData) -> None:
        answers = self._scores(rows[sample.unlabeled[:2000]]) > 0
        if len(answers) > 1 and answers.all() | ~answers.any():
            warn(
                "every unlabeled row gets the same answer; the classifier has learned no difference: give more tuples, "
                "check prior, or take another learner"
            )

    # -- prediction -------------------------------------------------------------------------------

    def _scores(self, rows: Any) -> NDArray[Any]:
        """Return the own class's scores (N,) of rows that are checked."""
        if isinstance(self.model_, FittedNetwork):
            return self.model_.decision_function(self._for_network(rows))
        with threadpool_limits(1):
            return np.asarray(self.model_(rows))

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Return scores (N,) of rows (N, ...): positive where the answer is +1.

        Raises
        ------
        UserError
            If the rows are unlike those of the training; or `prior_shift` is given and the method's scores are not
            log-odds.
        """
        check_is_fitted(self)
        scores = self._sign * self._scores(self._checked(X, reset=False))
        if self.prior_shift is None:
            return scores.astype(np.float32)
        self._check_posterior("prior_shift")
        check_share("prior_shift", self.prior_shift)
        return (scores + logit(self.prior_shift) - logit(self.prior_)).astype(np.float32)

    @property
    def module_(self) -> Any:
        """The trained network as a plain module on the CPU, from rows (N, ...) to scores (N,)."""
        check_is_fitted(self)
        if not isinstance(self.model_, FittedNetwork):
            raise AttributeError(f"module_ is of networks, but the learner is {self.learner_}")
        shift = 0.0 if self.prior_shift is None else float(logit(self.prior_shift) - logit(self.prior_))
        model = self.model_
        return PlainModule(
            model.network.plain(), model.preparation, self.standardisation_, float(self._sign), shift
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
        """Raise `UserError` unless the scores that were learned are log-odds, as those of the joint objective are."""
        if not isinstance(self.model_, FittedNetwork):
            return
        task = self.model_.task
        method = load_method(task.method)
        if not method.gives_log_odds(task.loss):
            loss = f" with the loss {task.loss}" if isinstance(method, CorrectedRisk) else ""
            raise UserError(
                f"{asked} needs scores that are log-odds, but those of method {task.method}{loss} are not; take method "
                "bag-relu, or relu with the loss logistic"
            )

    # -- evaluation -------------------------------------------------------------------------------

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on rows (N, ...) with true labels (N,), -1 or +1.

        Raises
        ------
        UserError
            If `y` holds anything else, such as groups: `risk_estimate` and `negative_bag_risk` need no labels.
        """
        if y is None or not np.isin(np.asarray(y), (-1, 1)).all():
            raise UserError(
                "score needs true labels, -1 or +1, as y; without labels use risk_estimate, or "
                "scoring=negative_bag_risk"
            )
        return float(super().score(X, y, sample_weight))

    def risk_estimate(self, X: Any, y: Any, *, level: float = 0.95) -> Estimate:
        """Estimate the error rate at the training prior from tuples and unlabeled rows, without labels.

        Theorem 1 holds for any loss, the 0-1 loss among them: Eq. 11 with the shares of positive answers among members
        of tuples and among unlabeled rows. Tuples of several sizes give one estimate for each size, and their mean
        by numbers. Rows that the classifier was trained on give too low an estimate.

        Parameters
        ----------
        X, y
            As for `fit`, in either form.
        level : float
            Of the interval, in (0, 1).

        Raises
        ------
        UserError
            As `fit` and `decision_function`.
        """
        check_is_fitted(self)
        check_share("level", level)
        rows, sample = self._read(X, y, reset=False)
        return estimated_risk(self.predict(rows) > 0, sample, self.prior_, self.law_of, level)


def _ranked(rows: Any, seed: int | str) -> Any:
    """Return features (N, d) of which a linear score ranks the rows."""
    if sparse.issparse(rows):
        return rows
    z = Standardisation.learn(rows)(rows)
    return kernel_maps(z, seed, (1.0,))[0].transform(z)
