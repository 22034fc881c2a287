"""scikit-learn's face of the library: classifiers from tuples and unlabeled rows.

    classifier = MDPUClassifier(prior=0.4, random_state=0).fit(tuples, unlabeled)
    classifier.predict(rows)

`MDPUClassifier` takes tuples in which at least half of the members are of one class,
`TupleClassifier` tuples of any symmetric law. `Network` has the options of networks.
``docs/how-to/estimator.md`` has examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mdpu.data import TupleData, join_groups, sample_of
from mdpu.errors import UserError, check_choice, check_count, printable, warn
from mdpu.export import PlainModule
from mdpu.law import TINY, Law, check_share
from mdpu.learners.features import Standardisation
from mdpu.learners.joint import Bags, CountedTuples, Floats, held_out_loss, shifted
from mdpu.learners.linear import split_folds
from mdpu.learners.student import check_student, event_prior, fit_linear, fit_student
from mdpu.losses import LOSSES
from mdpu.methods import load_method
from mdpu.networks import Networks, choose_device, make_network, prepare
from mdpu.prior import PriorProfile, columns_apart, different_rows, estimate_prior, without_repeats
from mdpu.scores import Estimate, estimated_profile, estimated_risk, with_uncertain_prior
from mdpu.settings import Settings, Task
from mdpu.threads import one_thread
from mdpu.train import Trained, check_samples, train

CHOICES: dict[str, tuple[Any, ...]] = {
    "guess_prior": (False, True),
    "compare_prior": (True, False),
    "unlabeled_is": ("pool", "remainder"),
    "dominant": ("positive", "negative"),
}
LEARNERS = ("auto", "student", "linear", "network")
FEW = 20  # tuples or unlabeled rows
FEW_STEPS = 30
SHORT_FROM = (
    3000  # tuples from which on a short training is as accurate as 100 epochs at a constant rate
)
COMPARED_FROM = 100  # tuples; a quarter of fewer does not say which learner is better
COMPARED = 3000  # at most so many tuples train the learners that are compared
STUDENT_UP_TO = 20_000  # tuples; beyond it the kernel teacher takes minutes
# distance of the prior from 1/2 up to which a symmetric law may leave the classes exchanged
TIE = 0.05
SURE = (
    3.0  # standard errors, or log-odds of labelled rows, from which on the classes are told apart
)
# nats of a tuple below which, at priors from 0.75 on, every learner ended at the constant answer
LITTLE = 0.12


@dataclass(kw_only=True, eq=False, repr=False)
class Network(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """How a classifier trains a network: ``MDPUClassifier(learner=Network(n_epochs=50))``.

    A grid search names its parameters ``learner__n_epochs`` and the like.

    Parameters
    ----------
    network : str, Module or callable, optional
        A name of `mdpu.settings.NETWORKS`; or a PyTorch module, which is copied and trained from
        the weights that it has; or a function from the shape of a row to a module. A module takes
        vectors as (N, d) and pictures as (N, C, H, W), uint8 values divided by 255, and returns (N,
        1); parameters that need no gradient stay as they are. By default a perceptron on pixels or,
        in short trainings, on principal components.
    hidden : tuple of int
        Units of each hidden layer of the networks ``mlp`` and ``components``; others ignore it.
    short : bool, optional
        Whether training is short: 20 epochs of a one-cycle schedule on principal components. With
        many tuples that is as accurate as 100 epochs on all pixels at a constant rate, in a tenth
        of the time; with few it is not. By default it is short from 3,000 tuples on, and where
        tuples are broken, because longer training memorises them.
    n_epochs, batch_size : int, optional
        Number of epochs, and of tuples in a minibatch. By default `short` and the number of tuples
        decide: a short training of more than 50,000 sees a million in all, and each at least five
        times.
    learning_rate, weight_decay : float, optional
        Settings of Adam; the weight decay is an L2 penalty. By default `short` decides.
    rates : mapping from str to float, optional
        Factors of the learning rate for parts of a module, by the beginning of their parameters'
        names.
    method : str
        A name of `mdpu.methods` that sees no labels and scores rows. ``bag-relu`` uses what the
        members of a tuple say together; ``relu``, ``abs`` and ``ure`` are the paper's.
    loss : {'logistic', 'ramp', 'squared', 'hinge', 'usual-ramp', 'sigmoid'}
        A loss of Table I, or one of the last two. Methods on bags have their own loss and ignore
        it.
    standardize : bool
        Whether the columns of a table of floats are centred and scaled, and their outliers pulled
        in; missing values become the centre. The other learners always do this; without it, missing
        values are refused.
    precision : {'float32', 'bfloat16', 'tf32'}
        Precision of the matrix products.
    device : {'auto', 'cpu', 'cuda'}
    callbacks : sequence of callable
        Called after each epoch with the epoch, from 1, and its row of ``history_`` as a dict.
        Training stops after an epoch for which one returns True. An error in one ends `fit`.
    """

    network: Any = None
    hidden: Sequence[int] = (300, 300)
    short: bool | None = None
    n_epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    rates: Mapping[str, float] | None = None
    method: str = "bag-relu"
    loss: str = "logistic"
    standardize: bool = True
    precision: Literal["float32", "bfloat16", "tf32"] = "float32"
    device: str = "auto"
    callbacks: Sequence[Callable[[int, dict[str, float]], Any]] = ()

    def settings(self, n: int, broken: bool = False) -> Settings:
        """Return the settings of a training on `n` tuples, some of which may be broken.

        Raises
        ------
        UserError
            If a parameter is refused, whatever the data.
        """
        check_choice("standardize", self.standardize, (True, False))
        check_choice("short", self.short, (None, True, False))
        if not isinstance(self.callbacks, Sequence) or not all(map(callable, self.callbacks)):
            raise UserError(
                f"callbacks is {self.callbacks!r}; a list of functions of epoch and row is needed"
            )
        if isinstance(self.network, type):
            raise UserError(
                f"network is the {self.network}; give a module, or a function from a row's shape "
                "to one"
            )
        choose_device(self.device)
        method = load_method(self.method)
        if (
            method.objective is None
            or method.outputs > 1
            or method.sees_labels
            or method.estimates_prior
        ):
            raise UserError(
                f"method is {self.method}; it must score rows, see no labels and use the given "
                "prior"
            )
        check_choice("loss", self.loss, tuple(LOSSES))
        if self.n_epochs is not None:
            check_count("n_epochs", self.n_epochs)
        short = (n >= SHORT_FROM or broken) if self.short is None else self.short
        values = _defaults(n, short, broken)
        given = {
            name: getattr(self, name)
            for name in ("batch_size", "learning_rate", "weight_decay", "network", "rates")
        }
        given["epochs"] = self.n_epochs
        values |= {name: value for name, value in given.items() if value is not None}
        if values["network"] in ("mlp", "components"):
            values["architecture"] = {"hidden": self.hidden}
        return Settings(**values, precision=self.precision)

    def train(
        self,
        task: Task,
        rows: Any,
        sample: TupleData,
        seed: int | str,
        settings: Settings,
        stops: Callable[[], bool] = lambda: False,
    ) -> Trained:
        """Return the trained network, and warn of a training that cannot have learned anything.

        After each epoch `stops` is asked whether to stop.
        """
        if not isinstance(settings.network, str):
            _check_module(settings, rows[:2])

        def on_epoch_end(epoch: int, measures: Sequence[dict[str, float]]) -> bool:
            answers = [callback(epoch, measures[0]) for callback in self.callbacks]
            asked = any(isinstance(answer, bool | np.bool_) and answer for answer in answers)
            return stops() or asked

        (model,) = train(
            task,
            rows,
            [sample],
            [seed],
            settings,
            device=choose_device(self.device),
            on_epoch_end=on_epoch_end,
        )
        objective = model.history["objective"]
        n_steps = len(objective) * -(-len(sample.tuples) // settings.batch_size)
        if lost := int(objective.isna().sum()):
            warn(
                f"training diverged: the objective of the last {lost} epochs is not finite; lower "
                "learning_rate",
                ConvergenceWarning,
            )
        elif len(objective) > 2 and objective.nunique() == 1:
            warn(
                "training does not move: the objective is the same in every epoch; change network",
                ConvergenceWarning,
            )
        elif n_steps < FEW_STEPS:
            warn(
                f"{len(objective)} epochs with batch_size={settings.batch_size} are {n_steps} "
                "steps of the optimizer, "
                "too few to learn much; raise n_epochs or lower batch_size",
                ConvergenceWarning,
            )
        return model


def _defaults(n: int, short: bool, broken: bool) -> dict[str, Any]:
    """Return the settings of a training on `n` tuples that no parameter sets."""
    passes = max(5, -(-1_000_000 // n))
    if short:
        values = {
            "network": "components",
            "schedule": "one-cycle",
            "epochs": min(20, passes),
            "learning_rate": 3e-3,
        }
        values |= {
            "batch_size": min(500, max(64, n // 20)),
            "weight_decay": 6e-3 if broken else 3e-4,
        }
    else:
        values = {"network": "mlp", "epochs": min(100, passes), "learning_rate": 1e-3}
        values |= {"batch_size": 64 if n <= 10_000 else 256, "weight_decay": 5e-4}
    return values


def _check_module(settings: Settings, rows: NDArray[Any]) -> None:
    """Raise `UserError` unless a user's module can do a training step on two rows."""
    try:
        with torch.random.fork_rng([]):
            preparation = prepare(settings, rows)
            module = make_network(settings, preparation, 1, 0)
            if isinstance(module, torch.jit.ScriptModule):
                raise UserError(
                    "network is a scripted module (torch.jit); give the Python module it was made "
                    "from"
                )
            network = Networks([module], preparation, 1, torch.device("cpu"), settings)
            network(preparation(rows)[None]).sum().backward()
    except UserError:
        raise
    except Exception as error:  # a user's code may raise anything
        given = (
            "pictures (N, C, H, W)" if rows.ndim > 2 else f"float32 vectors (N, {rows.shape[1]})"
        )
        raise UserError(
            f"network does not train on rows of shape {rows.shape[1:]} "
            f"({printable(str(error))[:200]}); a module takes "
            f"{given} and returns (N, 1), and a function takes the shape of a row"
        ) from error


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


def _check_pictures(rows: Any) -> None:
    """Raise `UserError` if pictures have missing values: a network takes those of tables only."""
    if rows.ndim > 2 and np.issubdtype(rows.dtype, np.floating) and np.isnan(rows).any():
        raise UserError(
            "pictures hold missing values (NaN), which a network cannot take; fill them, or take "
            "learner='student' or 'linear', where they become the mean of their pixel"
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


def _is_complete(sample: TupleData) -> bool:
    """Whether all groups were collected, and only bounds on their numbers of positives are
    known.
    """
    return isinstance(sample, CountedTuples) and sample.complete


def _put_back(sample: TupleData) -> TupleData:
    """Return a sample with its members among the unlabeled rows as well."""
    members = sample.tuples[sample.tuples >= 0]
    return replace(sample, unlabeled=np.concatenate([sample.unlabeled, members]))


def _signs(y: Any) -> NDArray[np.int64] | None:
    """Return labels -1 and +1, 0 and 1, or False and True as -1 and +1; None if `y` has others."""
    labels = np.asarray(y)
    values = {*labels.ravel().tolist()}
    if values <= {-1, 1} or values <= {0, 1}:
        return np.where(labels == 1, 1, -1)
    return None


@dataclass(frozen=True)
class Choice:
    """Which learner was trained, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        """Return both."""
        return f"{self.name} ({self.reason})"


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
    standardisation_: Standardisation | None = field(init=False)
    _counts: tuple[ArrayLike, ArrayLike] | None = field(init=False)
    _moved = 0.0  # added to the scores if the classes were exchanged

    def __sklearn_tags__(self) -> Any:
        """Return the tags that scikit-learn's tools and checks ask for."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        tags.input_tags.sparse = self._takes("sparse")
        tags.input_tags.allow_nan = self._takes("allow_nan")
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
        rows, sample = self._sample(X, y)
        choice = self._choose_learner(rows, sample)
        seed = self._seed()
        self._begin_callbacks(choice, rows, sample)
        estimate = None
        if self.prior is not None:
            prior = self._mirrored(float(self.prior))
        elif _is_complete(sample):
            with self._task("prior"):
                prior = event_prior(rows, Bags.of(sample, self._learned_law), seed)
        else:
            with self._task("prior"):
                estimate = estimate_prior(rows, sample, self._learned_law, seed)
            prior = self._estimated(estimate, rows, sample)
        if self.broken:
            self._check_broken(prior, sample)
        if isinstance(self, TupleClassifier):
            self._check_tie(prior, rows, sample)
        if choice.name == "auto":
            choice = self._compare(rows, sample, prior, seed)
        for name in ("history_", "n_iter_", "standardisation_"):
            self.__dict__.pop(name, None)
        if choice.name == "network":
            self._fit_network(rows, sample, prior, seed)
        else:
            self._fit_learner(choice.name, rows, Bags.of(sample, self._learned_law), prior, seed)
        if self.prior is not None and self.compare_prior and not _is_complete(sample):
            with self._task("prior"):
                estimate = self._compare_told_prior(prior, rows, sample, seed)
        self._warn_of_little_information(prior, sample)
        self._warn_of_constant_answers(rows, sample)
        self.learner_ = choice
        self.prior_estimate_ = estimate.mirrored() if estimate and self._sign < 0 else estimate
        self.prior_ = float(self._mirrored(prior))
        if isinstance(self, TupleClassifier) and self.positive_by is not None:
            self._name_classes(rows, sample)
        self.classes_ = np.array([-1, 1])
        self._callback_fit_ctx.call_on_fit_task_end(estimator=self)
        return self

    def _begin_callbacks(self, choice: Choice, rows: Any, sample: TupleData) -> None:
        """Tell the callbacks of ``set_callbacks`` that `fit` begins, and how many parts it has."""
        parts = 1
        if choice.name == "auto":
            parts += len(self._compared(rows, sample))
        if self.prior is None or (self.compare_prior and not _is_complete(sample)):
            parts += 1
        self._init_callback_context(max_subtasks=parts).call_on_fit_task_begin(estimator=self)

    @contextmanager
    def _task(self, name: str, parts: int = 0) -> Iterator[Callable[[], bool]]:
        """Tell the callbacks that a part of `fit` begins and ends.

        What it gives tells them that one of the part's own `parts` ended, and returns whether a
        callback asks to stop.
        """
        if not hasattr(self, "_callback_fit_ctx"):  # benchmarks train without `fit`
            yield lambda: False
            return
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
        if isinstance(self.learner, str):
            check_choice("learner", self.learner, LEARNERS)
        elif isinstance(self.learner, Network):
            self.learner.settings(FEW)
        else:
            check_student(self.learner)

    def _sample(self, X: Any, y: Any) -> tuple[Any, TupleData]:
        """Return the different rows and the sample to learn from, with counts or with members put
        back if need be.
        """
        rows, sample = self._read(X, y, reset=True)
        if self._counts is not None:
            sample = CountedTuples.of(sample, self._counts, complete=y is None)
        if self.unlabeled_is == "remainder" and not _is_complete(sample):
            sample = _put_back(sample)
        if len(sample.unlabeled) < 2:
            raise UserError(
                "one unlabeled row says nothing of positives; give as many as there are tuples"
            )
        for part, what in ((sample.tuples, "tuples"), (sample.unlabeled, "unlabeled rows")):
            if len(part) < FEW:
                warn(
                    f"{len(part)} {what} are too few to learn from or to judge by; give {FEW} or "
                    "more"
                )
        return different_rows(rows, sample)

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, TupleData]:
        """Return rows (N, ...) and the sample that names them, whatever form they were given in."""
        if y is None and self._counts is None:
            raise UserError(
                "requires y to be passed, but the target y is None; give unlabeled rows, or groups"
            )
        complete = y is None
        if complete and hasattr(X, "columns"):
            raise UserError(
                "with counts alone, X is a list with the rows of each group, but it is one frame"
            )
        if complete:  # groups alone, whose counts are known, are unlabeled too
            y = X[0]
        if not isinstance(y, TupleData):
            try:
                y = y if hasattr(y, "ndim") else np.asarray(y)
            except ValueError:
                raise UserError(
                    "y holds rows of several shapes; if tuples and unlabeled rows are swapped, "
                    "give the tuples first"
                ) from None
            if y.ndim != 1:
                X, y = join_groups(X, y)
        rows = self._checked(X, reset=reset, ensure_min_samples=2)
        if isinstance(y, TupleData):
            check_samples([y], rows.shape[0])
            return rows, without_repeats(rows, y)
        if rows.shape[0] != len(y) and np.issubdtype(np.asarray(y).dtype, np.integer):
            raise UserError(
                f"X holds {rows.shape[0]} rows, but y the groups of {len(y)}; give one for each"
            )
        sample = sample_of(np.asarray(y))
        return rows, sample if complete else without_repeats(rows, sample)

    def _checked(self, X: Any, *, reset: bool, **options: Any) -> Any:
        """Return rows as scikit-learn checks them, in the types that learners take."""
        if not reset and (ndim := getattr(X, "ndim", 1)) not in (1, self._ndim):
            raise UserError(
                f"rows have {ndim} axes, but the classifier was trained on rows with {self._ndim}; "
                "give single rows, such as tuples.reshape(-1, *tuples.shape[2:])"
            )
        _check_columns(X)
        options |= {
            "accept_sparse": "csr" if self._takes("sparse") else False,
            "ensure_all_finite": "allow-nan" if self._takes("allow_nan") else True,
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
            self._ndim: int = len(rows.shape)
        return rows

    def _takes(self, what: Literal["sparse", "allow_nan"]) -> bool:
        """Whether rows may be a sparse matrix, or have missing values."""
        if isinstance(self.learner, str):
            return what == "allow_nan" or self.learner != "network"
        if isinstance(self.learner, Network):
            return what == "allow_nan" and self.learner.standardize is True
        if not isinstance(self.learner, BaseEstimator):
            return False
        return bool(getattr(self.learner.__sklearn_tags__().input_tags, what))

    def _choose_learner(self, rows: Any, sample: TupleData) -> Choice:
        """Return the learner that `learner` names, or "auto" where several must be compared."""
        counted = isinstance(sample, CountedTuples)
        n = len(sample.tuples)
        is_network = (
            self.learner == "network"
            if isinstance(self.learner, str)
            else isinstance(self.learner, Network)
        )
        if counted and is_network:
            raise UserError(
                "learner is a network, and networks learn from tuples of one law; take "
                "learner='student' or 'linear', "
                "or in a loop of your own a TupleLoss for each pair of counts"
            )
        if is_network:
            _check_pictures(rows)
        if not isinstance(self.learner, str):
            return Choice(
                "network" if is_network else "student", f"learner={type(self.learner).__name__}"
            )
        if self.learner != "auto":
            return Choice(self.learner, "as learner says")
        if n < COMPARED_FROM:
            return Choice(
                "linear" if sparse.issparse(rows) else "student",
                f"{n} tuples, too few to compare learners",
            )
        alike = self._suits_networks(rows, sample)
        if n > STUDENT_UP_TO and (alike or sparse.issparse(rows)):
            return Choice(
                "network" if alike else "linear", f"{n} tuples, more than {STUDENT_UP_TO}"
            )
        return Choice("auto", "to be compared")

    @staticmethod
    def _suits_networks(rows: Any, sample: TupleData) -> bool:
        """Return whether networks can learn from a sample: rows are dense and finite, tuples of one
        size and law.
        """
        dense = not (isinstance(sample, CountedTuples) or sample.is_ragged or sparse.issparse(rows))
        return dense and (rows.ndim == 2 or bool(np.isfinite(rows).all()))

    def _compared(self, rows: Any, sample: TupleData) -> list[str]:
        """Return the learners that "auto" compares."""
        networks = ["network"] if self._suits_networks(rows, sample) else []
        return ["student", "linear", *networks]

    def _compare(self, rows: Any, sample: TupleData, prior: float, seed: int | str) -> Choice:
        """Return the learner with the least loss on a quarter of the sample, of those trained on
        the rest.

        ``benchmarks/learners.py`` has the figures.
        """
        bags = Bags.of(sample, self._learned_law)
        kept, held = split_folds(bags, seed, 4, COMPARED)[0][0]
        places = np.unique(
            np.concatenate([held.unlabeled, *(part.tuples.ravel() for part in held.parts)])
        )
        scores = np.zeros(rows.shape[0])
        losses = {}
        for name in self._compared(rows, sample):
            if name == "network":
                part = TupleData(kept.parts[0].tuples, kept.unlabeled)
                self._fit_network(rows, part, prior, seed, len(sample.tuples))
            else:
                self._fit_learner(name, rows, kept, prior, seed)
            scores[places] = self._scores(rows[places])
            losses[name] = held_out_loss(scores, held, prior, seed)
        best = min(losses, key=lambda name: losses[name])
        found = ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items())
        return Choice(best, f"least held-out loss: {found}")

    def _fit_learner(self, name: str, rows: Any, bags: Bags, prior: float, seed: int | str) -> None:
        with self._task(name), one_thread():
            if name == "linear":
                self.model_ = fit_linear(rows, bags, prior, seed)
            else:
                student = {} if isinstance(self.learner, str) else {"student": self.learner}
                self.model_ = fit_student(rows, bags, prior, seed, **student)

    def _fit_network(
        self, rows: Any, sample: TupleData, prior: float, seed: int | str, n: int | None = None
    ) -> None:
        """Train the network of `learner`, or the default one, with the settings for n tuples."""
        network = self.learner if isinstance(self.learner, Network) else Network()
        size = sample.tuples.shape[1]
        law = self._learned_law(size)
        settings = network.settings(n or len(sample.tuples), broken=self.broken > 0)
        table = network.standardize and rows.ndim == 2 and np.issubdtype(rows.dtype, np.floating)
        self.standardisation_ = Standardisation.learn(rows, components=None) if table else None
        task = Task(
            network.method, size, prior, network.loss, None if law == Law.dominant(size) else law
        )
        # where threads wait for one another longer than they work
        small = settings.network in ("mlp", "components")
        threads = one_thread() if small else nullcontext()
        with self._task("network", settings.epochs) as end_epoch, threads:
            inputs = self._for_network(rows)
            self.model_ = network.train(task, inputs, sample, seed, settings, end_epoch)
        self.history_ = self.model_.history
        self.n_iter_ = len(self.history_)

    def _for_network(self, rows: Any) -> Any:
        """Return rows as the network takes them; those of a table standardised, without gaps."""
        if self.standardisation_ is not None:
            return self.standardisation_(rows).astype(np.float32)
        _check_pictures(rows)
        return rows

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

    def _estimated(self, estimate: PriorProfile, rows: Any, sample: TupleData) -> float:
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
        ends = sorted((self._mirrored(estimate.low), self._mirrored(estimate.high)))
        says = {
            "not known": "nothing about the prior",
            "bound only": "only that, if they differ by the class alone, the prior lies between "
            f"{ends[0]:.2f} and "
            f"{ends[1]:.2f}",
            "does not fit": f"no prior: {self._apart(rows, sample)}",
        }[estimate.verdict]
        enough = _enough(estimate)
        if not self.guess_prior:
            raise UserError(
                f"{estimate.n} tuples and {estimate.n_unlabeled} unlabeled rows say "
                f"{says}{enough}; give prior (--prior), more tuples, or larger tuples, or set "
                "guess_prior=True (--guess-prior)"
            )
        guess = min(max(estimate.prior, 0.02), 0.98)
        shown = f"{self._mirrored(guess):.2f}"
        warn(f"the data say {says}{enough}, and {shown} is a guess; give prior or more tuples")
        return guess

    def _apart(self, rows: Any, sample: TupleData) -> str:
        """Return the sentence for tuples and unlabeled rows that the law fits at no prior."""
        names = getattr(self, "feature_names_in_", None)
        best = [
            f"{at if names is None else names[at]} ({area:.2f})"
            for at, area in columns_apart(rows, sample)
        ]
        named = f"; the columns that tell them apart best are {', '.join(best)}" if best else ""
        return (
            "the law fits at none, so they differ by more than the class, or tuples break the law"
            + named
        )

    def _compare_told_prior(
        self, prior: float, rows: Any, sample: TupleData, seed: int | str
    ) -> PriorProfile:
        """Return the sample's estimate of the prior; warn if the given prior does not fit.

        The warning says so if the prior would fit with the members put back.
        """
        estimate = estimate_prior(rows, sample, self._learned_law, seed)
        misfits = estimate.verdict == "does not fit"
        if misfits or not estimate.fits(prior):
            ends = sorted((self._mirrored(estimate.low), self._mirrored(estimate.high)))
            text = (
                f"tuples and unlabeled rows support no prior: {self._apart(rows, sample)}"
                if misfits
                else f"prior is {self.prior}, but tuples and unlabeled rows, if they differ by the "
                "class alone, "
                f"support {ends[0]:.2f} to {ends[1]:.2f}; check prior, or whether the unlabeled "
                "rows were drawn as "
                "they come"
            )
            if self.unlabeled_is == "pool":
                whole = estimate_prior(rows, _put_back(sample), self._learned_law, seed)
                if whole.known and whole.fits(prior):
                    text += (
                        "; they would fit as what the tuples left of a pool: see "
                        'unlabeled_is="remainder"'
                    )
            warn(text)
        return estimate

    def _check_broken(self, prior: float, sample: TupleData) -> None:
        """Raise `UserError` if tuples break the law as often as random groups."""
        laws = [
            replace(self._learned_law(size), refused=0.0)
            for size in np.unique(sample.sizes).tolist()
        ]
        by_chance = max(1 - law.rate(prior) for law in laws)
        if self.broken >= by_chance:
            raise UserError(
                f"broken is {self.broken:.2f}, but only a share {by_chance:.2f} of random groups "
                f"at prior {self._mirrored(prior):.2f} breaks the law; check broken and prior"
            )

    def _warn_of_little_information(self, prior: float, sample: TupleData) -> None:
        """Warn of a prior near 0 or 1, where tuples say little."""
        most = max(
            part.law.joint_information(prior) for part in Bags.of(sample, self._learned_law).parts
        )
        told = self._mirrored(prior)
        constant = max(prior, 1 - prior)
        if constant >= 0.75 and most < LITTLE:
            warn(
                f"at prior {told:.2f} a tuple says {most:.2f} nats of its members' classes; "
                "learners seldom beat the constant answer here, which is right in "
                f"{100 * constant:.0f} %: compare with it, or take larger or stricter tuples"
            )

    def _warn_of_constant_answers(self, rows: Any, sample: TupleData) -> None:
        answers = self._scores(rows[sample.unlabeled[:2000]]) > 0
        if len(answers) > 1 and answers.all() | ~answers.any():
            warn(
                "every unlabeled row gets the same answer; the classifier has learned no "
                "difference: give more tuples, check prior, or take another learner"
            )

    # -- prediction -------------------------------------------------------------------------------

    def _scores(self, rows: Any) -> NDArray[Any]:
        """Return the learned class's scores (N,) of rows that are checked."""
        if isinstance(self.model_, Trained):
            return self.model_.decision_function(self._for_network(rows))
        with one_thread():
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
        scores = self._sign * self._scores(self._checked(X, reset=False))
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
        if not isinstance(self.model_, Trained) or self.model_.preparation is None:
            raise AttributeError(
                f"module_ exists for networks only; the learner is {self.learner_}"
            )
        shift = self._moved + self._prior_shift()
        return PlainModule(
            self.model_.module,
            self.model_.preparation,
            self.standardisation_,
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
        if not isinstance(self.model_, Trained):
            return
        task = self.model_.task
        if not load_method(task.method).gives_log_odds(task.loss):
            raise UserError(
                f"{asked} needs scores that are log-odds, but those of method {task.method} with "
                f"the loss {task.loss} "
                "are not; take method bag-relu, or relu with the loss logistic"
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
        rows, sample = self._read(X, y, reset=False)
        answers = self.predict(rows) > 0
        by_prior = partial(estimated_risk, answers, sample, law_of=self.law_of, level=level)
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
        linear model of the joint objective, which takes sparse rows. ``network``: as a `Network`
        with other parameters. ``auto`` trains all three on three quarters of the sample, takes the
        one that best tells the tuples of the last quarter from groups of its unlabeled rows, and
        trains it on the whole. Tuples of several sizes, with counts or of sparse rows have no
        network. With fewer than 100 tuples it is the student, or for sparse rows the linear model;
        with more than 20,000 it is the network, where possible. Nothing but this parameter and the
        data decides the family of models. Learners without a network take one thread.
    guess_prior : bool
        Whether `fit` guesses the prior if the sample is not enough to estimate it, instead of
        refusing the sample.
    compare_prior : bool
        Whether `fit` compares a given `prior` with its estimate, and warns if they do not fit.
    unlabeled_is : {'pool', 'remainder'}
        Whether the unlabeled rows are draws from the pool, or the rest of the pool after the tuples
        were taken out. In the second case the members are put back, and `prior` is that of the
        whole pool.
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
    model_ : mdpu.train.Trained or callable
        The trained model inside.

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
        return law.broken(self.broken) if self.broken else law

    def _learned_law(self, size: int) -> Law:
        law = Law.dominant(size)
        return law.broken(self.broken) if self.broken else law

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
    law : Law, array_like or callable
        The law, or its weights w_0 .. w_M; or a function from a tuple size to a law, such as
        ``Law.dominant``, for tuples of several sizes, from which networks do not learn.
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

    def _check_tie(self, prior: float, rows: Any, sample: TupleData) -> None:
        """Warn of classes that nothing tells apart, and refuse a `positive_by` that cannot do
        so.
        """
        laws = [part.law.weights for part in Bags.of(sample, self._learned_law).parts]
        symmetric = all(weights == weights[::-1] for weights in laws)
        if self.positive_by is None:
            if (
                symmetric
                and self.prior is not None
                and abs(prior - 0.5) <= max(TIE, len(sample.tuples) ** -0.5)
            ):
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
            self._column(rows)

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

    def _name_classes(self, rows: Any, sample: TupleData) -> None:
        """Exchange the classes if `positive_by` says so, and move the scores to the prior again if
        it was given.
        """
        scores = self._scores(rows[sample.unlabeled])
        if isinstance(self.positive_by, tuple):
            given, labels = self.positive_by
            own, labels = self._scores(self._checked(given, reset=False)), np.asarray(labels)
            if labels.shape != own.shape or not np.isin(labels, (-1, 1)).all():
                raise UserError(
                    "positive_by must be (rows, labels) with a label, -1 or +1, for each row"
                )
            excess = own * labels  # of log-likelihood
            clear = abs(excess.sum())
        else:
            column = self._column(rows[sample.unlabeled])
            seen = ~np.isnan(column)
            excess = (column[seen] - column[seen].mean()) * (
                expit(scores[seen]) - expit(scores[seen]).mean()
            )
            clear = abs(excess.sum()) / max(float(np.sqrt((excess**2).sum())), TINY)
        if clear < SURE:
            warn(
                "positive_by hardly tells the classes apart; give another column, or more labelled "
                "rows"
            )
        if excess.sum() < 0:
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
            depend on the number of positives only in that they contain it. Networks do not learn
            from them.

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
        try:
            law = self.law(size) if callable(self.law) else self.law
            law = law if isinstance(law, Law) else Law(tuple(law))
        except (TypeError, ValueError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(
                f"law is {self.law!r}; a Law is needed, or weights w_0 .. w_M, like (0, 1, 1)"
            ) from None
        if law.size != size:
            raise UserError(
                f"law is for {law.size} members, but a tuple has {size}; give a function from the "
                "size, like Law.dominant, for tuples of several sizes"
            )
        if self.broken and law.refused:
            raise UserError(
                "law says how many tuples are broken, and so does broken; leave one out"
            )
        return law.broken(self.broken) if self.broken else law
