"""scikit-learn's face of the library: classifiers from tuples and unlabeled rows.

>>> classifier = MDPUClassifier(prior=0.4, random_state=0).fit(tuples, unlabeled)
>>> classifier.predict(rows)

`MDPUClassifier` takes tuples at least half of whose members are of one class, `TupleClassifier` tuples of any symmetric
law. ``docs/how-to/estimator.md`` has examples.
"""

from __future__ import annotations

import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mdpu.data import Joined
from mdpu.errors import UserError, check_share, printable
from mdpu.groups import Estimate, estimated_risk, join_groups, read_groups, speak_of_rows
from mdpu.law import Law
from mdpu.learn import Sample, Settings, Task, methods
from mdpu.learn.checkpoint import Checkpoint, KeptState
from mdpu.learn.device import choose_device
from mdpu.learn.fitting import LARGE, FittedNetwork, fit
from mdpu.learn.method import CorrectedRisk, FittedMethod
from mdpu.learn.methods import load_method
from mdpu.learn.modules import PlainModule, module_architecture
from mdpu.learn.network import Architecture, Policy, check_choice, check_type
from mdpu.learn.stopping import choose_epoch
from mdpu.learn.task import Precision, check_sample
from mdpu.learn.trainer import head_of
from mdpu.learners.features import Standardisation, Standardised, kernel_maps
from mdpu.learners.joint import Bags, CountedTuples, Floats, WeightedTuples
from mdpu.learners.latent import PriorProfile, disjoint_tuples, estimate_prior, profile_broken, rank
from mdpu.learners.student import check_student, event_prior, fit_linear, fit_student
from mdpu.learners.trees import fit_trees
from mdpu.losses import LOSSES
from mdpu.progress import Steps
from mdpu.randomness import Stream
from mdpu.streaming import Shuffle

LEARNERS = ("auto", "network", "student", "linear", "trees")
# Parameters that may change between two calls of `fit` of which the second goes on.
MAY_CHANGE = ("n_epochs", "device", "prior_shift", "callbacks", "verbose")
# Parameters that only networks have.
OF_NETWORKS = (
    *("method", "loss", "network", "hidden", "n_epochs", "early_stopping", "validation_fraction", "n_iter_no_change"),
    *("batch_size", "learning_rate", "weight_decay", "precision", "callbacks", "warm_start"),
)
ONE_CYCLE_FROM = 3000  # tuples from which on it is as accurate as 100 epochs at a constant rate
SWITCHES = ("guess_prior", "compare_prior", "standardize", "early_stopping", "warm_start", "verbose")
FEW = 20  # tuples or unlabeled rows
FEW_STEPS = 30
PICTURES_FROM = 1000  # tuples of pictures from which on a network is trained; with 200, a student is more accurate
STUDENT_UP_TO = 20_000  # tuples of a table; beyond it the kernel teacher takes minutes
PROFILED = 20_000  # tuples that the prior is compared with, at most, where a network is trained
LITTLE = 0.12  # nats that a tuple says, below which every learner ended at the constant answer at priors of 0.75 on
POOL = 0.02  # share of members that recur, from which on tuples are taken for draws from a small pool


@dataclass(frozen=True)
class Choice:
    """Which learner was trained, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        """Return both."""
        return f"{self.name} ({self.reason})"


class Watch(Checkpoint):
    """The history of a training while it is written, from which callbacks get the row of each epoch.

    Parameters
    ----------
    task : Task
        The only one.
    kept : KeptState, optional
        Which training goes on from, and which keeps its end.
    callbacks : sequence of callable
    """

    def __init__(self, task: Task, kept: KeptState | None, callbacks: Sequence[Callable[..., Any]]) -> None:
        self.kept, self.callbacks = kept, callbacks
        head: Any = head_of(task)
        self.names = ("objective", *head.measures)
        self.epoch = 0

    def restore(self, state: Mapping[str, torch.Tensor], history: torch.Tensor) -> int:
        """Return the epochs that are done, and look at the history from now on."""
        self.history, self.epoch = history, 0
        self.resumed = self.kept.restore(state, history) if self.kept else 0
        return self.resumed

    def save_if_due(self, state: Mapping[str, torch.Tensor], history: torch.Tensor, epochs: int) -> None:
        """Keep the state where it is to be kept."""
        if self.kept:
            self.kept.save_if_due(state, history, epochs)

    def remove(self) -> None:
        """Nothing was written."""

    def advance(self, count: int) -> None:
        """Call the callbacks after another epoch."""
        self.epoch += count
        if self.callbacks and self.epoch > self.resumed:
            row = dict(zip(self.names, self.history[self.epoch - 1, 0].tolist(), strict=True))
            for callback in self.callbacks:
                callback(self.epoch, row)


@dataclass(kw_only=True, eq=False, repr=False)
class _TupleEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
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
        y : ndarray, shape (n_unlabeled, ...), or int64, shape (N,), or Sample
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
            with speak_of_rows():
                return self._fit(X, y, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
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
        self._settings(), self._method()
        check_choice("unlabeled_is", self.unlabeled_is, ("pool", "remainder"))
        for name in ("prior", "prior_shift"):
            if getattr(self, name) is not None:
                check_share(name, getattr(self, name))
        goes_on = self.warm_start and hasattr(self, "state_")
        if not goes_on:
            self.broken_, self.broken_estimate_ = self._told_broken(), None
        rows, sample = self._read(X, y, reset=not goes_on)
        if self._counts is not None:
            sample = CountedTuples.of(sample, self._counts, complete=y is None)
        if sample_weight is not None:
            if self.prior is None or self.broken == "estimate" or self._counts is not None:
                raise UserError(
                    "sample_weight needs a told prior, and excludes counts and broken='estimate'; give numbers for both"
                )
            sample = WeightedTuples.of(sample, sample_weight)
        complete = isinstance(sample, CountedTuples) and sample.complete
        if self.unlabeled_is == "remainder" and not complete:
            sample = _put_back(sample)
        if len(sample.unlabeled) < 2:
            raise UserError("one unlabeled row says nothing of positives; give as many as there are tuples")
        for part, what in ((sample.tuples, "tuples"), (sample.unlabeled, "unlabeled rows")):
            if len(part) < FEW:
                _warn(f"{len(part)} {what} are too few to learn from or to judge by; give {FEW} or more")
        choice = self._choose_learner(rows, sample)
        if sample_weight is not None and choice.name in ("network", "trees"):
            raise UserError(f"the learner {choice} takes no sample_weight; take learner='student' or 'linear'")
        seed = self._seed() if not goes_on else self.model_.task.seed
        is_part = choice.name == "network" and len(sample.tuples) > PROFILED
        used, own_sample = _only_used(rows, _part(sample, seed) if is_part else sample)
        if self.broken == "estimate" and not goes_on:
            counts = rank(_ranked(used, seed), self._bags(self._without_pool(used, own_sample)), seed)
            found = Estimate(*profile_broken(counts, self._told(None)), 0.95)
            self.broken_, self.broken_estimate_ = found.value if found.low > 0 else 0.0, found
        bags = self._bags(own_sample)
        if complete:
            estimate, own = None, self.prior or event_prior(used, bags, seed)
        else:
            estimate = self._turned(self.prior_estimate_) if goes_on else self._profile(used, own_sample, seed)
            own = self._told(estimate)
        is_rest = False
        if self.prior is not None and estimate is not None and not estimate.fits(own) and self.unlabeled_is == "pool":
            whole = self._profile(used, _put_back(own_sample), seed)
            is_rest = whole is not None and whole.known and whole.fits(own)
        self._warn_of_prior(estimate, own, bags, is_rest)
        if choice.name == "network":
            self._fit_network(rows, sample, own, seed, goes_on)
        else:
            self.model_ = self._fit_other(choice.name, used, bags, own, seed)
            for name in ("history_", "n_iter_", "state_", "validation_history_", "standardisation_"):
                self.__dict__.pop(name, None)
        self.learner_ = choice
        self.prior_estimate_ = self._turned(estimate)
        self.prior_ = float(self._own(own))
        self.classes_ = np.array([-1, 1])
        self._warn_of_constant_answers(rows, sample)
        return self

    def _choose_learner(self, rows: Any, sample: Sample) -> Choice:
        """Return the learner that `learner` names, or the one that did best on data of this kind.

        ``benchmarks/learners.py`` has the figures.
        """
        counted = isinstance(sample, CountedTuples)
        if isinstance(self.learner, str):
            check_choice("learner", self.learner, LEARNERS)
            if counted and (self.learner == "network" or self._network_parameters()):
                raise UserError(
                    "networks learn from tuples of one law; take learner='student', 'linear' or 'trees', or in a loop "
                    "of your own a TupleLoss for each pair of counts"
                )
        else:
            check_student(self.learner)
            return Choice("student", f"learner={type(self.learner).__name__}")
        if self.learner != "auto":
            return Choice(self.learner, "as learner says")
        if changed := self._network_parameters():
            return Choice("network", f"{', '.join(changed)} {'is' if len(changed) == 1 else 'are'} of networks")
        if sparse.issparse(rows):
            return Choice("linear", "sparse rows")
        if counted:
            return Choice("student", "tuples with counts")
        if rows.ndim > 2 and len(sample.tuples) >= PICTURES_FROM:
            return Choice("network", "pictures")
        if len(sample.tuples) <= STUDENT_UP_TO:
            what = "a table" if rows.ndim == 2 else "pictures"
            return Choice("student", f"{what} with {len(sample.tuples)} tuples")
        return Choice("network", f"a table with {len(sample.tuples)} tuples, more than {STUDENT_UP_TO}")

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

    def _fit_other(self, name: str, rows: Any, bags: Bags, own: float, seed: int | str) -> Any:
        """Return the scores of a learner that is no network."""
        if name == "student":
            return fit_student(STUDENT if isinstance(self.learner, str) else self.learner, rows, bags, own, seed)
        return fit_linear(rows, bags, own, seed) if name == "linear" else fit_trees(rows, bags, own, seed)

    # -- networks ---------------------------------------------------------------------------------

    def _fit_network(self, rows: Any, sample: Sample, own: float, seed: int | str, goes_on: bool) -> None:
        settings, method = self._settings(len(sample.tuples)), self._method()
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
        rows = self._for_network(rows)
        if not isinstance(settings.network, str):
            check_module(settings.network, rows[:2], choose_device(self.device))
        size = sample.tuples.shape[1]
        law = self._own_law(size)
        task = Task(method, size, own, self.loss, seed, law=None if law == Law.dominant(size) else law)
        if self.early_stopping:
            settings = replace(settings, epochs=self._choose_epoch(task, rows, sample, settings))
        key = repr({name: value for name, value in self.get_params().items() if name not in MAY_CHANGE})
        state = self.state_ if goes_on else KeptState(key)
        if state.key != key:
            raise UserError("training cannot go on, because parameters have changed since; fit without warm_start")
        watch = Watch(task, state if self.warm_start else None, self.callbacks)
        with self._progress("training", settings.epochs) as advance:

            def after_epochs(count: int) -> None:
                advance(count)
                watch.advance(count)

            (model,) = fit(
                [task],
                rows,
                sample,
                settings,
                device=self.device,
                advance=after_epochs,
                checkpoint_of=lambda stack: watch if self.warm_start or self.callbacks else None,
            )
        assert isinstance(model, FittedNetwork)
        if self.warm_start:
            self.state_ = state
        self.model_ = model
        self.history_ = self.model_.history
        self.n_iter_ = len(self.history_)
        objective = self.history_["objective"]
        if (lost := objective.isna().sum()) > 0:
            _warn(
                f"training diverged: the objective of the last {lost} epochs is not finite; lower learning_rate",
                ConvergenceWarning,
            )
        elif len(objective) > 2 and objective.nunique() == 1:
            _warn(
                "training does not move: the objective is the same in every epoch; change network", ConvergenceWarning
            )
        steps = self.n_iter_ * -(-len(sample.tuples) // settings.batch_size)
        if steps < FEW_STEPS and not self.early_stopping:
            _warn(
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
        """Return the settings of the training on so many tuples."""
        check_choice("loss", self.loss, tuple(LOSSES))
        if isinstance(self.network, type):
            raise UserError(
                f"network is the class {self.network.__name__}; give a module, or a function from the shape of a row "
                "to a module"
            )
        values = recipe(n, broken=getattr(self, "broken_", 0.0) > 0, goes_on=self.warm_start or self.early_stopping)
        given = {name: getattr(self, name) for name in ("batch_size", "learning_rate", "weight_decay", "network")}
        values |= {name: value for name, value in (given | {"epochs": self.n_epochs}).items() if value is not None}
        epochs, network = values["epochs"], values["network"]
        if isinstance(epochs, bool) or not isinstance(epochs, int | np.integer) or epochs < 1:
            raise UserError(f"n_epochs is {self.n_epochs!r}; an integer of at least 1 is needed")
        if not isinstance(network, str):
            values["network"] = module_architecture(network)
        elif network in ("mlp", "components"):
            values["architecture"] = {"hidden": self.hidden}
        return Settings(**values | {"epochs": int(epochs)}, precision=self.precision)

    def _method(self) -> str:
        """Return the method, or raise `UserError` unless it scores rows without having seen labels."""
        check_choice("method", self.method, usable_methods())
        return self.method

    def _choose_epoch(self, task: Task, rows: NDArray[Any], sample: Sample, settings: Settings) -> int:
        """Return the number of epochs that held-out bags choose, and keep their estimates."""
        check_share("validation_fraction", self.validation_fraction)
        if self.n_iter_no_change is not None:
            check_type("n_iter_no_change", self.n_iter_no_change, int)
            if self.n_iter_no_change < 1:
                raise UserError(f"n_iter_no_change is {self.n_iter_no_change}; at least 1 is needed, or None")
        # The last rows are held out, and a file may be sorted by class.
        order = Stream(task.seed, "order of what is held out")
        shuffled = Sample(
            sample.tuples[order.permutation(len(sample.tuples))],
            sample.unlabeled[order.permutation(len(sample.unlabeled))],
        )
        with self._progress("choosing the number of epochs", settings.epochs) as advance:
            chosen = choose_epoch(
                task,
                rows,
                shuffled,
                settings,
                held_out=self.validation_fraction,
                patience=self.n_iter_no_change,
                device=self.device,
                advance=advance,
            )
        self.validation_history_ = chosen.history
        return chosen.epoch

    @contextmanager
    def _progress(self, what: str, epochs: int) -> Iterator[Callable[[int], None]]:
        """Yield what counts epochs."""
        if not self.verbose:
            yield lambda task_epochs: None
            return
        with Steps(what, epochs, "epochs") as steps:
            yield steps.advance

    # -- data -------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, Sample]:
        """Return rows (N, ...) and the sample that names them, whatever form they were given in."""
        if y is None and self._counts is not None:
            X, y = join_groups(X, X[0])  # the unlabeled rows are the members, see `CountedTuples`
        if y is None:
            raise UserError("requires y to be passed, but the target y is None; give unlabeled rows, or groups")
        if not isinstance(y, Sample) and not hasattr(y, "ndim"):
            try:
                y = np.asarray(y)
            except ValueError:
                raise UserError(
                    "y holds rows of several shapes; if tuples and unlabeled rows are swapped, give the tuples first"
                ) from None
        if not isinstance(y, Sample) and y.ndim != 1:
            if _is_large_pair(X, y):
                rows = Joined(self._checked(X.reshape(-1, *X.shape[2:]), reset), self._checked(y, False))
                members = X.shape[0] * X.shape[1]
                return rows, Sample(np.arange(members).reshape(X.shape[:2]), np.arange(members, len(rows)))
            X, y = join_groups(X, y)
        rows = self._checked(X, reset, ensure_min_samples=2)
        if isinstance(y, Sample):
            if not all(np.issubdtype(part.dtype, np.integer) for part in (y.tuples, y.unlabeled)):
                raise UserError("the sample's numbers of rows are no integers; give integers")
            check_sample(y, rows.shape[0], ())
            return rows, y
        groups = y if isinstance(y, np.ndarray) else np.asarray(y)
        if rows.shape[0] != len(groups) and np.issubdtype(groups.dtype, np.integer):
            raise UserError(f"X holds {rows.shape[0]} rows, but y the groups of {len(groups)}; give one for each")
        return rows, read_groups(groups)

    def _checked(self, X: Any, reset: bool, **options: Any) -> Any:
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
            rows = rows if sparse.issparse(rows) else _numbers(rows)
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

    def _bags(self, sample: Sample) -> Bags:
        """Return the tuples of a sample by size and law."""
        if isinstance(sample, CountedTuples):
            return Bags.counted(sample)
        if isinstance(sample, WeightedTuples):
            return Bags.weighted(sample, self._own_law)
        return Bags.of(sample.tuples, sample.unlabeled, self._own_law)

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

    def _profile(self, rows: Any, sample: Sample, seed: int | str) -> PriorProfile | None:
        """Return what the sample says of the own class's prior, unless it is told and not to be compared."""
        has_weights = isinstance(sample, WeightedTuples)
        if self.prior is not None and (not self.compare_prior or self.broken == "estimate" or has_weights):
            return None  # a share that was estimated at the prior says nothing about it
        sample = sample if isinstance(sample, CountedTuples) else self._without_pool(rows, sample)
        return estimate_prior(_ranked(rows, seed), self._bags(sample), seed=seed)

    def _without_pool(self, rows: Any, sample: Sample) -> Sample:
        """Return the sample without tuples that share members, where members recur and unlabeled rows are others.

        Tuples and unlabeled rows that are drawn from one finite pool need no care.
        """
        identity = _identity(rows)
        present = sample.tuples >= 0
        members = identity[sample.tuples[present]]
        distinct = np.unique(members)
        recurring = 1 - len(distinct) / len(members)
        common = float(np.isin(np.unique(identity[sample.unlabeled]), distinct).mean())
        if recurring < POOL or common >= recurring:
            return sample
        chosen = disjoint_tuples(sample.tuples, identity)
        _warn(
            f"the members of {len(sample.tuples)} tuples are {len(distinct)} different rows, and recur; as these are "
            f"no independent draws, the prior is judged by {chosen.sum()} tuples that share none"
        )
        return Sample(sample.tuples[chosen], sample.unlabeled)

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
                _warn(
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
        _warn(f"the data say {says}, and {self._own(guess):.2f} is a guess; give prior or more tuples")
        return guess

    def _warn_of_prior(self, estimate: PriorProfile | None, own: float, bags: Bags, is_rest: bool) -> None:
        """Warn of a told prior that does not fit, or would with the members put back, and of tuples that say little."""
        if self.prior is not None and estimate is not None and not estimate.fits(own):
            ends = sorted((self._own(estimate.low), self._own(estimate.high)))
            _warn(
                f"prior is {self.prior}, but tuples and unlabeled rows speak for {ends[0]:.2f} to {ends[1]:.2f}; check "
                "prior, or whether the unlabeled rows were drawn as they come"
                + (
                    '; they would fit as what the tuples left of a pool: see unlabeled_is="remainder"'
                    if is_rest
                    else ""
                )
            )
        least = max(part.law.joint_information(own) for part in bags.parts)
        if max(own, 1 - own) >= 0.75 and least < LITTLE:
            _warn(
                f"at prior {self._own(own):.2f} a tuple says {least:.2f} nats of its members' classes; learners seldom "
                f"beat the constant answer here, which is right in {100 * max(own, 1 - own):.0f} %: compare with it, "
                "or take larger or stricter tuples"
            )

    def _warn_of_constant_answers(self, rows: Any, sample: Sample) -> None:
        answers = self._scores(rows[sample.unlabeled[:2000]]) > 0
        if len(answers) > 1 and answers.all() | ~answers.any():
            _warn(
                "every unlabeled row gets the same answer; the classifier has learned no difference: give more tuples, "
                "check prior, or take another learner"
            )

    # -- prediction -------------------------------------------------------------------------------

    def _scores(self, rows: Any) -> NDArray[Any]:
        """Return the own class's scores (N,) of rows that are checked."""
        if isinstance(self.model_, FittedNetwork):
            with speak_of_rows():
                return self.model_.decision_function(self._for_network(rows))
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


STUDENT = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.1, max_leaf_nodes=8)


@dataclass(kw_only=True, eq=False, repr=False)
class TupleClassifier(_TupleEstimator):
    """A classifier learned from tuples of any symmetric law and unlabeled rows.

    A random group of M rows with k positives is collected as a tuple with the weight w_k. Weights (0, 1, 0) are
    dissimilar pairs, (1, 0, 1) similar ones, (0, 1, 0, 0) triples with exactly one positive.

    Parameters
    ----------
    prior : float, optional
        Share of positives among the unlabeled rows, in (0, 1). By default it is estimated, see `PriorProfile`; a
        sample that does not tell it is refused.
    law : Law, array_like or callable
        The law, or its weights w_0 .. w_M; or a function from a tuple size to a law, such as ``Law.dominant``, for
        tuples of several sizes, from which networks do not learn.
    **parameters
        The others are those of `MDPUClassifier`.

    Attributes
    ----------
    classes_, prior_, prior_estimate_, learner_, model_
        As those of `MDPUClassifier`.
    """

    law: Any = (0, 1, 1)

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, counts: tuple[ArrayLike, ArrayLike] | None = None
    ) -> Self:
        """Train on tuples and unlabeled rows, or on tuples whose numbers of positives were observed within bounds.

        Parameters
        ----------
        X, y, sample_weight
            As for `MDPUClassifier.fit`. With `counts`, `y` may be left out where all groups were collected, whatever
            was observed of them: then the members are draws at the prior, which need not be told, and the log loss of
            the observations is minimised.
        counts : (low, high), optional
            The least and the largest number of positives in each tuple, numbers or integers (n,); they take the place
            of `law`. Equal ones are exact counts (label proportions), (1, size) and (0, 0) the positive and negative
            bags of multiple-instance learning. Which bounds were given may depend on the number only in that they hold
            it. Networks do not learn from them.

        Raises
        ------
        UserError
            As `MDPUClassifier.fit`, and if counts are impossible, say nothing, or overlap where `y` is left out.
        """
        return self._fit_or_restore(X, y, counts, sample_weight)

    def law_of(self, size: int) -> Law:
        """Return the law of the tuples of one size.

        Raises
        ------
        UserError
            If `law` is none, or one of another size, or one in which the order of members counts; or if the classifier
            was trained on counts.
        """
        if getattr(self, "_counts", None) is not None:
            raise UserError("the classifier was trained on counts, not on a law; scores without labels need a law")
        try:
            law = self.law(size) if callable(self.law) else self.law
            law = law if isinstance(law, Law) else Law(tuple(law))
        except (TypeError, ValueError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"law is {self.law!r}; a Law is needed, or the weights w_0 .. w_M, as (0, 1, 1)") from None
        if law.size != size:
            raise UserError(
                f"law is one of {law.size} members, but a tuple has {size}; give a function from the size, as "
                "Law.dominant, for tuples of several sizes"
            )
        if law.ordered:
            raise UserError(
                "the learners of the classifier take the members of a tuple in any order, which counts in this law; "
                "train a network by it with mdpu.learn.fit or mdpu.losses.TupleLoss"
            )
        return self._broken(law)


@dataclass(kw_only=True, eq=False, repr=False)
class MDPUClassifier(_TupleEstimator):
    """A classifier learned from tuples, at least half of whose members are positive, and unlabeled rows.

    Parameters
    ----------
    prior : float, optional
        Share of positives among the unlabeled rows, in (0, 1). By default it is estimated (`PriorProfile` has the
        limits); a sample that does not tell it is refused.
    dominant : {'positive', 'negative'}
        The class that at least half of each tuple's members are of.
    broken : float or 'estimate'
        Share of the tuples, in [0, 1), that break the rule. ``estimate`` finds it at a told `prior`, and takes it as 0
        unless its interval excludes 0. Pairs do not tell it: for any share other probabilities of the rows fit.
        Networks are trained shorter then, see `recipe`.
    learner : {'auto', 'network', 'student', 'linear', 'trees'} or estimator
        ``network`` trains what the parameters from `method` to `precision` say. ``student``: boosted trees on the soft
        labels of a kernel machine; any scikit-learn classifier with ``sample_weight`` and ``predict_proba`` takes their
        place. ``linear``: a linear model of the joint objective, which takes sparse rows. ``trees``: boosted trees of
        the joint objective. ``auto`` takes ``network`` for 1,000 tuples of pictures or more, or where one of its
        parameters is set, ``linear`` for sparse rows, and ``student`` for all else.
    guess_prior : bool
        Whether a prior that the sample does not tell is guessed instead of refused.
    compare_prior : bool
        Whether `fit` compares a told prior with what the tuples say, and warns.
    unlabeled_is : {'pool', 'remainder'}
        Whether the unlabeled rows are draws from the pool, or what was left of it when the tuples had been taken out.
        In the second case the members are put back, and `prior` is that of the whole pool.
    standardize : bool
        Whether a network sees the columns of a table of floats with their outliers pulled in, centred and scaled. The
        other learners do this by themselves.
    method : str
        A file of ``mdpu/learn/methods`` that sees no labels and scores rows. ``bag-relu`` and the other methods on
        bags use what the members of a tuple say together; ``relu``, ``abs`` and ``ure`` are the paper's.
    loss : {'logistic', 'ramp', 'squared', 'hinge', 'sigmoid'}
        Of Table I. Methods on bags have a loss of their own and ignore it.
    network : str, Module or callable, optional
        By default `recipe` chooses it, as it does `n_epochs`, `batch_size`, `learning_rate` and `weight_decay`. A file
        of ``mdpu/learn/networks``; or a PyTorch module, which is copied and trained from the weights that it has; or a
        function from the shape of a row to a module. A module takes vectors as (N, d) and pictures as (N, C, H, W),
        uint8 values divided by 255, and returns (N, 1).
    hidden : tuple of int
        Units of each hidden layer of the networks ``mlp`` and ``components``; others ignore it.
    n_epochs : int, optional
        Number of epochs; with `early_stopping`, the largest number.
    early_stopping : bool
        Whether held-out bags choose the number of epochs (`mdpu.learn.stopping`). The classifier is trained twice then:
        on a part of the data, to choose, and on all of it for as many epochs.
    validation_fraction : float
        Share of tuples and unlabeled rows that early stopping holds out, in (0, 1).
    n_iter_no_change : int, optional
        Epochs without a better estimate after which the first of the two trainings ends; by default it does not.
    batch_size : int, optional
        Tuples of a minibatch.
    learning_rate, weight_decay : float, optional
        Of Adam; the weight decay is an L2 penalty.
    precision : {'fp32', 'tf32', 'bf16', 'auto'}
        Of the products. ``auto`` takes bf16 where the hardware multiplies it, which is faster; ``fp32`` gives the same
        model on more machines.
    device : {'auto', 'cpu', 'cuda'}
    prior_shift : float, optional
        Prior where the classifier will be used, if it is another than that of the unlabeled rows. It moves the
        scores by the difference of the log-odds of the two priors, and can be set after `fit`.
    callbacks : sequence of callable
        Called after each epoch of a network's training with the epoch, from 1, and its row of `history_` as a dict. An
        error in one ends `fit`. The first of the two trainings of `early_stopping` calls none.
    warm_start : bool
        Whether `fit` goes on from the last call's state until `n_epochs` epochs in all. Where the data are the same,
        the result is that of one call, bit for bit on a CPU. It excludes `early_stopping`.
    random_state : int, RandomState, str or None
        Of the initial weights and of the order of minibatches. A text names a trial as those of the pipeline are.
    verbose : bool
        Whether to show progress, on the standard error.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        -1 and +1.
    prior_ : float
        As it was given or estimated.
    prior_estimate_ : PriorProfile or None
        What the sample says of the positive class's prior, with its interval; ``plot()`` draws it. None if the prior
        was told and `compare_prior` is False.
    broken_, broken_estimate_ : float, Estimate or None
        The share of broken tuples that was assumed, and what the sample says of it if that was asked for.
    learner_ : Choice
        The learner and the reason for it.
    history_ : DataFrame
        Of networks, one row per epoch: ``epoch``, from 1, ``objective``, and what the method records.
    n_iter_ : int
        Epochs that a network was trained for.
    validation_history_ : DataFrame
        With early stopping, the estimate of each epoch: ``epoch`` and ``bag_risk``.
    model_ : mdpu.learn.fitting.FittedNetwork or callable
        What the library trained.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where rows were given as a frame.

    Notes
    -----
    The property ``module_`` is the trained network as a plain PyTorch module: from rows (N, ...) as they are,
    standardisation included, to the scores of `decision_function`.

    scikit-learn's tools cut `X` and `y` by rows, so `fit` takes the data as one array of rows too, with the number of
    its tuple for each; see `fit` and `join_groups`. In that form a `Pipeline` scales the rows, and `GridSearchCV`
    works with ``cv=TupleKFold()`` and ``scoring=negative_risk``.
    """

    dominant: Literal["positive", "negative"] = "positive"

    def law_of(self, size: int) -> Law:
        """Return the law of the tuples of one size: at least half of the members are of the dominant class."""
        return self._broken(Law.dominant(size) if self.dominant == "positive" else Law.between(size, 0, size // 2))

    def _own_law(self, size: int) -> Law:
        return self._broken(Law.dominant(size))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        check_choice("dominant", self.dominant, ("positive", "negative"))
        return super()._fit(X, y, sample_weight)

    @property
    def _sign(self) -> int:
        return 1 if self.dominant == "positive" else -1


# -- helpers --------------------------------------------------------------------------------------


def check_module(network: Architecture, rows: NDArray[Any], device: torch.device) -> None:
    """Raise `UserError` unless a module that was brought along can do a training step on two rows."""
    try:
        prepare = network.prepare(rows)
        trial = network.build([[0]], network.read({}), prepare, 1, Policy(device, torch.float32))
        trial.backward(torch.ones_like(trial.forward(prepare(rows)[None].to(device))))
    except UserError:
        raise
    except Exception as error:  # whatever somebody's code raises
        given = "pictures (N, C, H, W)" if rows.ndim > 2 else f"float32 vectors (N, {rows.shape[1]})"
        raise UserError(
            f"network does not train on rows of shape {rows.shape[1:]} ({printable(str(error))[:200]}); a module takes "
            f"{given} and returns (N, 1), which depends on every parameter, and a function takes the shape of a row"
        ) from error


def usable_methods() -> list[str]:
    """Return the methods that score rows, see no labels and take a prior."""
    names = (file.name.replace("_", "-") for file in pkgutil.iter_modules(methods.__path__))
    return sorted(name for name in names if _is_usable(name))


def _is_usable(name: str) -> bool:
    method = load_method(name)
    if isinstance(method, FittedMethod) or method.sees_labels or method.outputs > 1:
        return False
    return not getattr(method, "estimates_prior", False)  # the classifier estimates it itself, and keeps the interval


def _numbers(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows as the library takes them: uint8 and floats as they are, other numbers as float32.

    Frames and memory maps may be read-only, which torch warns of; they are copied unless they are large.
    """
    if rows.dtype != np.uint8 and not np.issubdtype(rows.dtype, np.floating):
        return rows.astype(np.float32)
    return rows if rows.nbytes > LARGE else np.require(rows, requirements="W")


def _only_used(rows: Any, sample: Sample) -> tuple[Any, Sample]:
    """Return the rows that a sample names, and the sample of their new places."""
    present = sample.tuples >= 0
    places = np.concatenate([sample.tuples[present], sample.unlabeled])
    used, own = np.unique(places, return_inverse=True)
    tuples = np.full(sample.tuples.shape, -1)
    tuples[present] = own[: present.sum()]
    return rows[used], replace(sample, tuples=tuples, unlabeled=own[present.sum() :])


def _put_back(sample: Sample) -> Sample:
    """Return a sample with its members among the unlabeled rows as well."""
    present = sample.tuples >= 0
    unlabeled = np.concatenate([sample.unlabeled, sample.tuples[present]])
    if not isinstance(sample, WeightedTuples):
        return replace(sample, unlabeled=unlabeled)
    members = np.repeat(sample.tuple_weights, present.sum(axis=1))
    weights = np.concatenate([sample.unlabeled_weights, members])
    return replace(sample, unlabeled=unlabeled, unlabeled_weights=weights)


def _part(sample: Sample, seed: int | str) -> Sample:
    """Return a random part of a large sample, which tells the prior as well."""
    chosen = [
        rows[Shuffle(len(rows), seed, "part that tells the prior")(np.arange(min(len(rows), count)))]
        for rows, count in ((sample.tuples, PROFILED), (sample.unlabeled, 2 * PROFILED))
    ]
    return Sample(*chosen)


def _is_large_pair(tuples: Any, unlabeled: Any) -> bool:
    """Whether tuples (n, M, ...) and unlabeled rows are arrays alike that need no copy and are too large for one."""
    arrays = isinstance(tuples, np.ndarray) and isinstance(unlabeled, np.ndarray)
    if not arrays or tuples.shape[2:] != unlabeled.shape[1:] or tuples.dtype != unlabeled.dtype:
        return False
    return tuples.nbytes + unlabeled.nbytes > LARGE and tuples.dtype in (np.uint8, np.float32)


def recipe(n: int, *, broken: bool = False, goes_on: bool = False) -> dict[str, Any]:
    """Return how a network is trained on `n` tuples: settings by name, where no parameter says otherwise.

    With few tuples, 100 epochs on all pixels at a constant rate are more accurate. With many, 20 epochs of a one-cycle
    schedule on principal components are as accurate in a tenth of the time. Beyond 50,000 tuples, a million are seen in
    all, and each at least five times.

    Parameters
    ----------
    n : int
    broken : bool
        Whether tuples break the law; longer training, at a constant rate, learns the mistakes by heart.
    goes_on : bool
        Whether the number of epochs may change later, for which the rate must not depend on it.
    """
    passes = -(-1_000_000 // max(1, n))
    if goes_on or (n < ONE_CYCLE_FROM and not broken):
        batch_size = 64 if n <= 10_000 else 256
        return {
            "network": "mlp",
            "epochs": max(5, min(100, passes)),
            "batch_size": batch_size,
            "learning_rate": 1e-3,
            "weight_decay": 5e-4,
        }
    return {
        "network": "components",
        "schedule": "one-cycle",
        "epochs": max(5, min(20, passes)),
        "batch_size": min(500, max(64, n // 20)),
        "learning_rate": 3e-3,
        "weight_decay": 6e-3 if broken else 3e-4,
    }


def _ranked(rows: Any, seed: int | str) -> Any:
    """Return features (N, d) of which a linear score ranks the rows."""
    if sparse.issparse(rows):
        return rows
    z = Standardisation.learn(rows)(rows)
    return kernel_maps(z, seed, (1.0,))[0].transform(z)


def _identity(rows: Any) -> NDArray[np.int64]:
    """Return a number for each row (N,), equal for equal rows; sparse ones count as different."""
    if not isinstance(rows, np.ndarray):
        return np.arange(rows.shape[0])
    contents: dict[bytes, int] = {}
    return np.array([contents.setdefault(row.tobytes(), len(contents)) for row in np.ascontiguousarray(rows)])


def _warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn where the caller of the package stands."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "mdpu":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
