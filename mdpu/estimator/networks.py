"""How a classifier trains a network: the recipe, callbacks, and what is worth a warning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mdpu.data import TupleData
from mdpu.errors import UserError, check_choice, check_count, check_share, printable, warn
from mdpu.learn import Settings, Task
from mdpu.learn.checkpoint import Checkpoint, KeptState
from mdpu.learn.fitting import FittedNetwork, fit
from mdpu.learn.methods import available_methods, load_method
from mdpu.learn.modules import module_architecture
from mdpu.learn.network import Architecture, Policy
from mdpu.learn.stopping import ChosenEpoch, choose_epoch
from mdpu.learn.trainer import head_of
from mdpu.losses import LOSSES
from mdpu.progress import Steps
from mdpu.randomness import Stream

ONE_CYCLE_FROM = 3000  # tuples from which on it is as accurate as 100 epochs at a constant rate


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


def settings_of(parameters: Mapping[str, Any], n: int, *, broken: bool) -> Settings:
    """Return the settings of a training on `n` tuples: the recipe, and what a classifier's parameters say otherwise.

    Raises
    ------
    UserError
        If a parameter is refused.
    """
    check_choice("loss", parameters["loss"], tuple(LOSSES))
    if isinstance(parameters["network"], type):
        raise UserError(
            f"network is the class {parameters['network'].__name__}; give a module, or a function from the shape of a "
            "row to a module"
        )
    values = recipe(n, broken=broken, goes_on=parameters["warm_start"] or parameters["early_stopping"])
    given = {name: parameters[name] for name in ("batch_size", "learning_rate", "weight_decay", "network")}
    given["epochs"] = parameters["n_epochs"]
    values |= {name: value for name, value in given.items() if value is not None}
    epochs, network = values["epochs"], values["network"]
    check_count("n_epochs", epochs)
    if not isinstance(network, str):
        values["network"] = module_architecture(network)
    elif network in ("mlp", "components"):
        values["architecture"] = {"hidden": parameters["hidden"]}
    return Settings(**values | {"epochs": int(epochs)}, precision=parameters["precision"])


def usable_methods() -> list[str]:
    """Return the methods that score rows, see no labels and take a prior."""
    found = {name: load_method(name) for name in available_methods()}
    # The classifier estimates the prior by itself, and keeps the interval.
    return [name for name, own in found.items() if own.tunable and not getattr(own, "estimates_prior", False)]


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


def train(
    task: Task, rows: Any, sample: TupleData, settings: Settings, parameters: Mapping[str, Any], kept: KeptState | None
) -> FittedNetwork:
    """Return the trained network, and warn of a training that cannot have learned anything."""
    watch = Watch(task, kept, parameters["callbacks"])
    with _progress("training", settings.epochs, parameters["verbose"]) as advance:

        def after_epochs(count: int) -> None:
            advance(count)
            watch.advance(count)

        (model,) = fit(
            [task],
            rows,
            sample,
            settings,
            device=parameters["device"],
            advance=after_epochs,
            checkpoint_of=lambda stack: watch,
        )
    assert isinstance(model, FittedNetwork)
    objective = model.history["objective"]
    if (lost := objective.isna().sum()) > 0:
        warn(
            f"training diverged: the objective of the last {lost} epochs is not finite; lower learning_rate",
            ConvergenceWarning,
        )
    elif len(objective) > 2 and objective.nunique() == 1:
        warn("training does not move: the objective is the same in every epoch; change network", ConvergenceWarning)
    return model


def choose_epochs(
    task: Task, rows: Any, sample: TupleData, settings: Settings, parameters: Mapping[str, Any]
) -> ChosenEpoch:
    """Return the number of epochs that held-out bags choose; a file may be sorted by class, so rows are shuffled."""
    check_share("validation_fraction", parameters["validation_fraction"])
    patience = parameters["n_iter_no_change"]
    if patience is not None:
        check_count("n_iter_no_change", patience)
    order = Stream(task.seed, "order of what is held out")
    shuffled = TupleData(
        sample.tuples[order.permutation(len(sample.tuples))],
        sample.unlabeled[order.permutation(len(sample.unlabeled))],
    )
    with _progress("choosing the number of epochs", settings.epochs, parameters["verbose"]) as advance:
        return choose_epoch(
            task,
            rows,
            shuffled,
            settings,
            held_out=parameters["validation_fraction"],
            patience=patience,
            device=parameters["device"],
            advance=advance,
        )


@contextmanager
def _progress(what: str, epochs: int, verbose: bool) -> Iterator[Callable[[int], None]]:
    """Yield what counts epochs."""
    if not verbose:
        yield lambda task_epochs: None
        return
    with Steps(what, epochs, "epochs") as steps:
        yield steps.advance
