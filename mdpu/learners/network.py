"""A network as a learner: how a classifier trains one, and the scores of a trained one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from mdpu.data import TupleData
from mdpu.errors import UserError, check_choice, check_count, printable, warn
from mdpu.learners import EndEpoch, Learner, never_stop
from mdpu.learners.features import Standardisation
from mdpu.methods import check_loss, load_method
from mdpu.networks import Networks, choose_device, make_network, prepare
from mdpu.sample import Sample
from mdpu.settings import Settings, Task
from mdpu.threads import one_thread
from mdpu.train import Trained, train

FEW_STEPS = 30
# tuples from which on a short training is as accurate as 100 epochs at a constant rate
SHORT_FROM = 3000


@dataclass(kw_only=True, eq=False, repr=False)
class Network(Learner, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
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
    loss : {'logistic', 'ramp', 'squared', 'hinge', 'usual-ramp', 'sigmoid'} or callable
        A loss of Table I, or one of the last two. Methods on bags have their own loss and ignore
        it. A function is minimised in place of the method's loss, of which the running mean of the
        weights stays: it takes the scores of tuples (B, M), or a list of scores (M_i,) if they have
        several sizes, and those of unlabeled rows (B_U,), and returns a tensor of one number.
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

    name: ClassVar[str] = "network"

    network: Any = None
    hidden: Sequence[int] = (300, 300)
    short: bool | None = None
    n_epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    rates: Mapping[str, float] | None = None
    method: str = "bag-relu"
    loss: str | Callable[..., Any] = "logistic"
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
        self._check_parameters()
        short = self.short
        if short is None:
            short = n >= SHORT_FROM or broken
        values = _defaults(n, short, broken)
        told = {
            "network": self.network,
            "epochs": self.n_epochs,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "weight_decay": self.weight_decay,
            "rates": self.rates,
        }
        values |= {name: value for name, value in told.items() if value is not None}
        if values["network"] in ("mlp", "components"):
            values["architecture"] = {"hidden": self.hidden}
        return Settings(**values, precision=self.precision)

    def _check_parameters(self) -> None:
        """Raise `UserError` if a parameter is refused, whatever the data."""
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
        if self.n_epochs is not None:
            check_count("n_epochs", self.n_epochs)
        choose_device(self.device)
        method = load_method(self.method)
        scores_rows = method.trains_network and method.outputs == 1
        if not scores_rows or method.sees_labels or method.estimates_prior:
            raise UserError(
                f"method is {self.method}; it must score rows, see no labels and use the given "
                "prior"
            )
        check_loss(self.loss, self.method)

    @property
    def takes_sparse(self) -> bool:
        """Whether rows may be a sparse matrix."""
        return False

    @property
    def takes_missing(self) -> bool:
        """Whether rows may have missing values."""
        return self.standardize is True

    def check(self, sample: Sample) -> None:
        """Raise `UserError` if networks cannot learn from a sample."""
        if sample.bags.complete or not (len(sample.bags.parts) == 1 or sample.is_dominant):
            raise UserError(
                "learner is a network, and networks learn from tuples of one law; take "
                "learner='student' or 'linear', "
                "or in a loop of your own a TupleLoss for each pair of counts"
            )
        check_pictures(sample.rows)

    def epochs(self, sample: Sample) -> int:
        """Return the number of epochs of a training."""
        return self._settings_for(sample).epochs

    def learn(
        self, sample: Sample, prior: float, seed: int | str, end_epoch: EndEpoch = never_stop
    ) -> NetworkScore:
        """Train the network, and warn of a training that cannot have learned anything."""
        settings = self._settings_for(sample)
        rows = sample.rows
        is_table = rows.ndim == 2 and np.issubdtype(rows.dtype, np.floating)
        standardisation = None
        if self.standardize and is_table:
            standardisation = Standardisation.learn(rows, components=None)
        inputs = network_inputs(rows, standardisation)
        if not isinstance(settings.network, str):
            _check_module(settings, inputs[:2])

        with _threads_for(settings):
            trained = self._train(
                inputs, sample.bags.data, self._task(sample, prior), seed, settings, end_epoch
            )
        _warn_of_training(trained.history, sample.bags.n, settings)
        return NetworkScore(trained, standardisation)

    def _settings_for(self, sample: Sample) -> Settings:
        is_broken = any(law.refused > 0 for law in sample.bags.laws)
        return self.settings(sample.bags.n, is_broken)

    def _task(self, sample: Sample, prior: float) -> Task:
        """Return what is to be learned."""
        laws = sample.bags.laws
        largest = max(law.size for law in laws)
        law = None if sample.is_dominant else laws[0]
        return Task(self.method, largest, prior, self.loss, law)

    def _train(
        self,
        inputs: NDArray[Any],
        data: TupleData,
        task: Task,
        seed: int | str,
        settings: Settings,
        end_epoch: EndEpoch,
    ) -> Trained:
        def on_epoch_end(epoch: int, measures: Sequence[dict[str, float]]) -> bool:
            answers = [callback(epoch, measures[0]) for callback in self.callbacks]
            is_asked = any(isinstance(answer, bool | np.bool_) and answer for answer in answers)
            return end_epoch() or is_asked

        (trained,) = train(
            task,
            inputs,
            [data],
            [seed],
            settings,
            device=choose_device(self.device),
            on_epoch_end=on_epoch_end,
        )
        return trained


@dataclass(frozen=True)
class NetworkScore:
    """The scores of a trained network.

    Attributes
    ----------
    trained : Trained
    standardisation : Standardisation, optional
        Of the columns of a table of floats.
    """

    trained: Trained
    standardisation: Standardisation | None

    @property
    def module(self) -> torch.nn.Module:
        """The trained network, which takes prepared rows."""
        return self.trained.module

    def __call__(self, rows: Any) -> NDArray[Any]:
        """Return the scores (N,) of rows."""
        return self.trained.decision_function(network_inputs(rows, self.standardisation))


def network_inputs(rows: Any, standardisation: Standardisation | None) -> Any:
    """Return rows as the network takes them; those of a table standardised, without gaps."""
    if standardisation is not None:
        return standardisation(rows).astype(np.float32)
    check_pictures(rows)
    return rows


def check_pictures(rows: Any) -> None:
    """Raise `UserError` if pictures have missing values: a network takes those of tables only."""
    if rows.ndim > 2 and np.issubdtype(rows.dtype, np.floating) and np.isnan(rows).any():
        raise UserError(
            "pictures hold missing values (NaN), which a network cannot take; fill them, or take "
            "learner='student' or 'linear', where they become the mean of their pixel"
        )


def _threads_for(settings: Settings) -> AbstractContextManager[Any]:
    """Return one thread for small networks, where threads wait for one another longer than they
    work.
    """
    is_small = settings.network in ("mlp", "components")
    return one_thread() if is_small else nullcontext()


def _warn_of_training(history: Any, n: int, settings: Settings) -> None:
    """Warn if a training diverged, stood still, or was too short to learn much."""
    objective = history["objective"]
    n_epochs = len(objective)
    n_steps = n_epochs * -(-n // settings.batch_size)
    n_lost = int(objective.isna().sum())
    if n_lost:
        warn(
            f"training diverged: the objective of the last {n_lost} epochs is not finite; lower "
            "learning_rate",
            ConvergenceWarning,
        )
    elif n_epochs > 2 and objective.nunique() == 1:
        warn(
            "training does not move: the objective is the same in every epoch; change network",
            ConvergenceWarning,
        )
    elif n_steps < FEW_STEPS:
        warn(
            f"{n_epochs} epochs with batch_size={settings.batch_size} are {n_steps} "
            "steps of the optimizer, "
            "too few to learn much; raise n_epochs or lower batch_size",
            ConvergenceWarning,
        )


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
        taken = (
            "pictures (N, C, H, W)" if rows.ndim > 2 else f"float32 vectors (N, {rows.shape[1]})"
        )
        raise UserError(
            f"network does not train on rows of shape {rows.shape[1:]} "
            f"({printable(str(error))[:200]}); a module takes "
            f"{taken} and returns (N, 1), and a function takes the shape of a row"
        ) from error
