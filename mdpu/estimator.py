"""scikit-learn's face of the library: a classifier from dominant tuples and unlabeled images.

>>> classifier = MDPUClassifier(prior=0.4, random_state=0).fit(tuples, unlabeled)
>>> classifier.predict(images)

It trains through `mdpu.learn.fit`, as the pipeline does. ``docs/how-to/estimator.md`` has examples.
"""

from __future__ import annotations

import math
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mdpu.errors import UserError
from mdpu.learn import Sample, Settings, Task, methods
from mdpu.learn.checkpoint import KeptState
from mdpu.learn.device import choose_device
from mdpu.learn.fitting import FittedNetwork, fit
from mdpu.learn.losses import LOSSES
from mdpu.learn.method import CorrectedRisk, FittedMethod
from mdpu.learn.methods import load_method
from mdpu.learn.modules import module_architecture
from mdpu.learn.network import check_choice
from mdpu.learn.prior import SHARE_OF_EPOCHS, estimate_prior
from mdpu.learn.stopping import choose_epoch
from mdpu.learn.task import Precision, PriorEstimate
from mdpu.progress import Steps
from mdpu.randomness import Stream
from mdpu.theory import check_prior
from mdpu.theory.held_out import bag_risk, member_risk

Floats = NDArray[np.float64]
HeldOutEstimate = Callable[[ArrayLike, ArrayLike, float], Floats]
Groups = NDArray[np.int64]
UNLABELED = -1
# Parameters that may change between two calls of `fit` of which the second goes on.
MAY_CHANGE = ("n_epochs", "device", "prior_shift", "verbose")


@dataclass(frozen=True)
class RiskEstimate:
    """The 0-1 risk of a classifier, estimated without labels.

    Attributes
    ----------
    risk : float
        Unbiased estimate of the error rate at the training prior, for classifiers that did not see these tuples and
        images. It is not clipped: noise can take it below 0 or above 1.
    low, high : float
        Interval of `level`, percentiles of a bootstrap over tuples and unlabeled images.
    level : float
    """

    risk: float
    low: float
    high: float
    level: float


class MDPUClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier learned from tuples, at least half of whose members are positive, and unlabeled images.

    Parameters
    ----------
    prior : float, optional
        Share of positives among the unlabeled images, in (0, 1). By default it is estimated from the data
        (`mdpu.learn.prior.estimate_prior`), which takes tuples of one size, of at least two.
    method : str
        A file of ``mdpu/learn/methods`` that sees no labels and scores images. ``bag-relu`` and the other methods on
        bags use what the members of a tuple say together; ``relu``, ``abs`` and ``ure`` are the paper's.
    dominant : {'positive', 'negative'}
        The class that at least half of each tuple's members are of.
    loss : {'logistic', 'ramp', 'squared', 'hinge'}
        Of Table I. Methods on bags have a loss of their own and ignore it.
    network : str, Module or callable
        A file of ``mdpu/learn/networks``; or a PyTorch module, which is copied and trained from the weights that it
        has; or a function from the shape of an image to a module. A module takes vectors as (N, d) and pictures as
        (N, C, H, W), uint8 values divided by 255, and returns (N, 1).
    hidden : tuple of int
        Units of each hidden layer of the network ``mlp``; others ignore it.
    n_epochs : int
        Number of epochs; with `early_stopping`, the largest number.
    early_stopping : bool
        Whether held-out bags choose the number of epochs (`mdpu.learn.stopping`). The classifier is trained twice then:
        on a part of the data, to choose, and on all of it for as many epochs.
    validation_fraction : float
        Share of tuples and unlabeled images that early stopping holds out, in (0, 1).
    n_iter_no_change : int, optional
        Epochs without a better estimate after which the first of the two trainings ends; by default it does not.
    batch_size : int
        Tuples of a minibatch.
    learning_rate, weight_decay : float
        Of Adam; the weight decay is an L2 penalty.
    precision : {'fp32', 'tf32', 'bf16', 'auto'}
        Of the products. ``auto`` takes bf16 where the hardware multiplies it, which is faster; ``fp32`` gives the same
        model on more machines.
    device : {'auto', 'cpu', 'cuda'}
    prior_shift : float, optional
        Prior where the classifier will be used, if it is another than that of the unlabeled images. It moves the
        scores by the difference of the log-odds of the two priors, and can be set after `fit`.
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
    prior_estimate_ : PriorEstimate or None
        The estimate with its interval, where `prior` was None. It is an estimate of the dominant class's prior.
    history_ : DataFrame
        One row per epoch: ``epoch``, from 1, ``objective``, and what the method records.
    n_iter_ : int
        Epochs that the classifier was trained for.
    validation_history_ : DataFrame
        With early stopping, the estimate of each epoch: ``epoch`` and ``bag_risk``.
    model_ : mdpu.learn.fitting.FittedNetwork
        What the library trained.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where images were given as a frame.

    Notes
    -----
    scikit-learn's tools cut `X` and `y` by rows, so `fit` takes the data as one array of images too, with the number of
    its tuple for each; see `fit` and `join_groups`. In that form a `Pipeline` scales the images, and `GridSearchCV`
    works with ``cv=TupleKFold()`` and ``scoring=negative_risk``.
    """

    model_: FittedNetwork
    prior_: float
    prior_estimate_: PriorEstimate | None
    state_: KeptState

    def __init__(
        self,
        prior: float | None = None,
        *,
        method: str = "bag-relu",
        dominant: Literal["positive", "negative"] = "positive",
        loss: str = "logistic",
        network: Any = "mlp",
        hidden: Sequence[int] = (300, 300),
        n_epochs: int = 100,
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        n_iter_no_change: int | None = None,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        weight_decay: float = 5e-4,
        precision: Precision = "fp32",
        device: str = "auto",
        prior_shift: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.prior = prior
        self.method = method
        self.dominant = dominant
        self.loss = loss
        self.network = network
        self.hidden = hidden
        self.n_epochs = n_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.precision = precision
        self.device = device
        self.prior_shift = prior_shift
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn's tools and checks ask of an estimator."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags

    # -- training ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> MDPUClassifier:
        """Train on tuples and unlabeled images: ``fit(tuples, unlabeled)``.

        ``fit(images, groups)`` is the form for scikit-learn's tools, ``fit(images, sample)`` that of the library.

        Parameters
        ----------
        X : ndarray, shape (n, M, ...), or sequence of n ndarrays, shapes (M_i, ...)
            The members of each tuple: uint8 grey values, or numbers, which are taken as they are. In the other forms
            images (N, ...), those of tuples and the unlabeled ones.
        y : ndarray, shape (n_unlabeled, ...), or int64, shape (N,), or Sample
            Unlabeled images. Or, for each image, the number of its tuple, from 0, and -1 where it is unlabeled. Or the
            indices of both in the images, where one may stand more than once and others not at all.

        Returns
        -------
        MDPUClassifier
            Itself.

        Raises
        ------
        UserError
            If a parameter is refused, or parameters and data do not fit together.
        """
        if self.warm_start and self.early_stopping:
            raise UserError(
                "early_stopping chooses the number of epochs anew, and warm_start goes on; give one of them"
            )
        images, sample = self._read(X, y, reset=True)
        settings, method = self._settings(), self._method()
        goes_on = self.warm_start and hasattr(self, "state_")
        seed = self.model_.task.seed if goes_on else self._seed()
        estimate = self.prior_estimate_ if goes_on else None
        if self.prior is not None:
            told = self._own(check_prior(self.prior))
        else:
            estimate = estimate or self._estimate_prior(images, sample, settings, seed)
            told = estimate.prior
        task = Task(method, sample.tuples.shape[1], told, self.loss, seed)
        if self.early_stopping:
            settings = replace(settings, epochs=self._choose_epoch(task, images, sample, settings))
        key = repr({name: value for name, value in self.get_params().items() if name not in MAY_CHANGE})
        state = self.state_ if goes_on else KeptState(key)
        if state.key != key:
            raise UserError("training cannot go on, because parameters have changed since; fit without warm_start")
        with self._progress("training", settings.epochs) as advance:
            (model,) = fit(
                [task],
                images,
                sample,
                settings,
                device=self.device,
                advance=advance,
                checkpoint_of=lambda stack: state if self.warm_start else None,
            )
        assert isinstance(model, FittedNetwork)
        if self.warm_start:
            self.state_ = state
        self.model_ = model
        self.prior_estimate_ = estimate
        self.prior_ = float(self._own(told))
        self.history_ = self.model_.history
        self.n_iter_ = len(self.history_)
        self.classes_ = np.array([-1, 1])
        if (lost := self.history_["objective"].isna().sum()) > 0:
            text = f"training diverged: the objective of the last {lost} epochs is not finite; lower learning_rate"
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        return self

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[NDArray[Any], Sample]:
        """Return images (N, ...) and the sample that names them, whatever form they were given in."""
        if y is None:
            raise UserError("requires y to be passed, but the target y is None; give unlabeled images, or groups")
        if not isinstance(y, Sample) and np.ndim(y) != 1:
            X, y = join_groups(X, y)
        images = _numbers(validate_data(self, X, reset=reset, allow_nd=True, ensure_min_samples=2))
        if isinstance(y, Sample):
            return images, y
        groups = np.asarray(y)
        if len(images) != len(groups):
            raise UserError(f"X holds {len(images)} images, but y the groups of {len(groups)}; give one for each")
        return images, read_groups(groups)

    def _settings(self) -> Settings:
        """Return the settings of the training."""
        choose_device(self.device)
        check_choice("dominant", self.dominant, ("positive", "negative"))
        check_choice("loss", self.loss, tuple(LOSSES))
        return Settings(
            epochs=self.n_epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            precision=self.precision,
            network=self.network if isinstance(self.network, str) else module_architecture(self.network),
            architecture={"hidden": self.hidden} if isinstance(self.network, str) and self.network == "mlp" else {},
        )

    def _method(self) -> str:
        """Return the method, or raise `UserError` unless it scores images without having seen labels."""
        check_choice("method", self.method, usable_methods())
        return self.method

    def _seed(self) -> int | str:
        """Return the seed: integers and texts as they are, so that a task of the library can have the same."""
        if isinstance(self.random_state, str):
            return self.random_state
        if isinstance(self.random_state, int | np.integer) and self.random_state >= 0:
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _estimate_prior(
        self, images: NDArray[Any], sample: Sample, settings: Settings, seed: int | str
    ) -> PriorEstimate:
        """Return the dominant class's prior, from a share of the epochs as `bag-free` trains.

        Of tuples of several sizes, those of the commonest one of at least two are used.
        """
        if sample.is_ragged:
            sizes = (sample.tuples >= 0).sum(axis=1)
            common = np.bincount(sizes[sizes > 1], minlength=2)
            size = int(common.argmax())
            sample = Sample(sample.tuples[sizes == size, :size], sample.unlabeled)
        brief = replace(settings, epochs=math.ceil(SHARE_OF_EPOCHS * settings.epochs))
        with self._progress("estimating the prior", brief.epochs) as advance:
            estimate = estimate_prior(images, sample, brief, seed=seed, device=self.device, advance=advance)
        if not estimate.known:
            text = f"the data say nothing of the prior, and {estimate.prior:.2f} is a guess; give prior or more tuples"
            warnings.warn(text, UserWarning, stacklevel=3)
        return estimate

    def _choose_epoch(self, task: Task, images: NDArray[Any], sample: Sample, settings: Settings) -> int:
        """Return the number of epochs that held-out bags choose, and keep their estimates."""
        if not 0 < self.validation_fraction < 1:
            raise UserError(f"validation_fraction is {self.validation_fraction}; a number between 0 and 1 is needed")
        if self.n_iter_no_change is not None and self.n_iter_no_change < 1:
            raise UserError(f"n_iter_no_change is {self.n_iter_no_change}; at least 1 is needed, or None")
        with self._progress("choosing the number of epochs", settings.epochs) as advance:
            chosen = choose_epoch(
                task,
                images,
                sample,
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

    def _own(self, prior: float) -> float:
        """Return the prior of the dominant class given that of the positive one, or the other way round."""
        return prior if self.dominant == "positive" else 1 - prior

    # -- prediction -------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Return scores (N,) of images (N, ...): positive where the answer is +1.

        Raises
        ------
        UserError
            If the images are unlike those of the training; or `prior_shift` is given and the method's scores are not
            log-odds.
        """
        check_is_fitted(self)
        images = _numbers(validate_data(self, X, reset=False, allow_nd=True))
        scores = self.model_.decision_function(images)
        if self.dominant == "negative":
            scores = -scores
        if self.prior_shift is None:
            return scores
        self._check_posterior("prior_shift")
        return (scores + logit(check_prior(self.prior_shift)) - logit(self.prior_)).astype(np.float32)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 or +1 for each of the images (N, ...); raises as `decision_function`."""
        return np.where(self.decision_function(X) > 0, 1, -1)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities (N, 2) of -1 and +1 for images (N, ...).

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
        """Raise `UserError` unless the scores that were learned are log-odds."""
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
        """Return the accuracy on images (N, ...) with true labels (N,), -1 or +1.

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

    def risk_estimate(self, X: Any, y: Any, *, level: float = 0.95, resamples: int = 1000) -> RiskEstimate:
        """Estimate the error rate at the training prior from tuples and unlabeled images, without labels.

        Theorem 1 holds for any loss, the 0-1 loss among them: Eq. 11 with the shares of positive answers among members
        of tuples and among unlabeled images. Tuples of several sizes give one estimate for each size, and their mean
        by numbers. Images that the classifier was trained on give too low an estimate.

        Parameters
        ----------
        X, y
            As for `fit`, in either form.
        level : float
            Of the interval, in (0, 1).
        resamples : int
            Of the bootstrap.

        Raises
        ------
        UserError
            As `fit` and `decision_function`.
        """
        check_is_fitted(self)
        images, sample = self._read(X, y, reset=False)
        risks = _risks(self.predict(images) > 0, sample, self.prior_, self.dominant, resamples)
        if not 0 < level < 1:
            raise UserError(f"level is {level}; a number between 0 and 1 is needed")
        low, high = np.quantile(risks[1:], [(1 - level) / 2, (1 + level) / 2]) if resamples else risks[[0, 0]]
        return RiskEstimate(float(risks[0]), float(low), float(high), level)


# -- data in the form of scikit-learn -----------------------------------------------------------------


def join_groups(tuples: Any, unlabeled: Any) -> tuple[NDArray[Any], Groups]:
    """Return all images as one array (N, ...), and for each the number of its tuple, from 0, or -1 if it is unlabeled.

    Parameters
    ----------
    tuples : ndarray, shape (n, M, ...), or sequence of n ndarrays, shapes (M_i, ...)
    unlabeled : ndarray, shape (n_unlabeled, ...)

    Raises
    ------
    UserError
        If the members and the unlabeled images differ in shape or type, or there are none.
    """
    members = tuples if isinstance(tuples, np.ndarray) else [np.asarray(images) for images in tuples]
    images, sample = Sample.gather(members, np.asarray(unlabeled))
    groups = np.full(len(images), UNLABELED)
    present = sample.tuples >= 0
    groups[sample.tuples[present]] = np.nonzero(present)[0]
    return images, groups


class TupleKFold:
    """Folds for cross-validation of images with groups: no tuple is cut, and each fold has its share of both kinds.

    Parameters
    ----------
    n_splits : int
    random_state : int
    """

    def __init__(self, n_splits: int = 5, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: ArrayLike, groups: Any = None) -> Iterator[tuple[Groups, Groups]]:
        """Yield indices of the images to train on and of those that are held out; `y` are the groups as for `fit`.

        Raises
        ------
        UserError
            If there are fewer tuples or unlabeled images than folds.
        """
        own = np.asarray(y)
        numbers, places = np.unique(own, return_inverse=True)
        unlabeled = np.flatnonzero(own == UNLABELED)
        for count, what in ((np.sum(numbers != UNLABELED), "tuples"), (len(unlabeled), "unlabeled images")):
            if not 2 <= self.n_splits <= count:
                raise UserError(f"n_splits is {self.n_splits}; with {count} {what}, 2 to {count} are possible")
        order = Stream(self.random_state, "fold of each tuple").permutation(len(numbers))
        order = order[numbers[order] != UNLABELED]
        fold_of_number = np.zeros(len(numbers), np.int64)
        fold_of_number[order] = np.arange(len(order)) % self.n_splits
        folds = fold_of_number[places]
        shuffled = Stream(self.random_state, "fold of each unlabeled image").permutation(len(unlabeled))
        folds[unlabeled[shuffled]] = np.arange(len(unlabeled)) % self.n_splits
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def negative_risk(estimator: Any, X: Any, y: ArrayLike, *, prior: float | None = None) -> float:
    """Return minus the label-free estimate of the error rate: a scorer, higher is better.

    Parameters
    ----------
    estimator : MDPUClassifier, or Pipeline that ends in one
        Fitted.
    X : array_like, shape (N, ...)
        Held-out images, as the estimator's ``predict`` takes them.
    y : ndarray, int64, shape (N,)
        Their groups, as for `MDPUClassifier.fit`.
    prior : float, optional
        Prior of the estimate, by default the classifier's. Give it by `functools.partial` where the classifiers to be
        compared estimate theirs: risks at different priors do not compare.
    """
    return -_scored(estimator, X, y, prior, member_risk)


def negative_bag_risk(estimator: Any, X: Any, y: ArrayLike, *, prior: float | None = None) -> float:
    """Return minus the label-free estimate of the share of bags on the wrong side: a scorer, higher is better.

    It takes tuples as wholes. Epochs that it chose lost half as much accuracy as those that the other estimate chose
    (docs/explanation/findings.md). Its value is no error rate of single images. Parameters are those of
    `negative_risk`.
    """
    return -_scored(estimator, X, y, prior, bag_risk)


def _scored(estimator: Any, X: Any, y: ArrayLike, prior: float | None, estimate: HeldOutEstimate) -> float:
    """Return the estimate of a classifier's, or of a pipeline's, risk on groups."""
    classifier = getattr(estimator, "_final_estimator", estimator)
    sample = read_groups(np.asarray(y))
    told = classifier.prior_ if prior is None else check_prior(prior)
    return float(_risks(estimator.predict(X) > 0, sample, told, classifier.dominant, 0, estimate)[0])


# -- helpers --------------------------------------------------------------------------------------


def usable_methods() -> list[str]:
    """Return the methods that score images, see no labels and take a prior."""
    names = (file.name.replace("_", "-") for file in pkgutil.iter_modules(methods.__path__))
    return sorted(name for name in names if _is_usable(name))


def _is_usable(name: str) -> bool:
    method = load_method(name)
    if isinstance(method, FittedMethod) or method.sees_labels or method.outputs > 1:
        return False
    return not getattr(method, "estimates_prior", False)  # the classifier estimates it itself, and keeps the interval


def _numbers(images: NDArray[Any]) -> NDArray[Any]:
    """Return images as the library takes them: uint8 and floats as they are, other numbers as float32.

    Frames and memory maps may be read-only, which torch warns of; they are copied.
    """
    if images.dtype != np.uint8 and not np.issubdtype(images.dtype, np.floating):
        return images.astype(np.float32)
    return np.require(images, requirements="W")


def read_groups(groups: Groups) -> Sample:
    """Return the sample that groups (N,) name in their images, tuples in the order of their numbers."""
    if not np.issubdtype(groups.dtype, np.integer) or groups.ndim != 1 or (groups < UNLABELED).any():
        raise UserError(
            f"y holds neither unlabeled images (n_unlabeled, ...) nor groups, but {groups.dtype} of shape "
            f"{groups.shape}; groups are an integer for each image, the number of its tuple or -1"
        )
    unlabeled = np.flatnonzero(groups == UNLABELED)
    members = np.flatnonzero(groups != UNLABELED)
    if not len(unlabeled) or not len(members):
        there = "tuple" if len(members) else "unlabeled image"
        raise UserError(f"y names no {'unlabeled image, -1' if len(members) else 'tuple'}; it names {there}s only")
    members = members[np.argsort(groups[members], kind="stable")]
    sizes = np.unique(groups[members], return_counts=True)[1]
    starts = np.cumsum(sizes) - sizes
    places = np.arange(sizes.max())
    within = places < sizes[:, None]  # (n, M)
    return Sample(np.where(within, members[np.where(within, starts[:, None] + places, 0)], -1), unlabeled)


def _risks(
    answers: NDArray[np.bool_],
    sample: Sample,
    prior: float,
    dominant: str,
    resamples: int,
    estimate: HeldOutEstimate = member_risk,
) -> Floats:
    """Return an estimated risk, and after it those of bootstrap resamples, (1 + resamples,).

    Parameters
    ----------
    answers : ndarray, bool, shape (N,)
        Which images are called positive.
    sample : Sample
        Tuples and unlabeled images among them.
    prior : float
        Of the positive class.
    dominant : {'positive', 'negative'}
    resamples : int
    estimate : callable
        `mdpu.theory.held_out.member_risk` or `bag_risk`. Tuples of several sizes give one estimate for each size, and
        their mean by numbers.
    """
    if dominant == "negative":
        answers, prior = ~answers, 1 - prior
    stream = Stream(0, "risk bootstrap")

    def means(rows: NDArray[Any]) -> Floats:
        resampled = [rows[stream.integers(len(rows), len(rows))].mean(axis=0) for _ in range(resamples)]
        return np.stack([rows.mean(axis=0), *resampled])

    unlabeled_rates = means(answers[sample.unlabeled])
    sizes = (sample.tuples >= 0).sum(axis=1)
    risks = np.zeros(1 + resamples)
    for size in np.unique(sizes).tolist():
        positives = answers[sample.tuples[sizes == size, :size]].sum(axis=1)
        count_shares = means(positives[:, None] == np.arange(size + 1))
        risks += np.mean(sizes == size) * estimate(count_shares, unlabeled_rates, prior)
    return risks
