"""Trains tasks and returns the models: the interface of the library.

>>> images, sample = TupleData.gather(tuples, unlabeled)
>>> [fitted] = fit([Task("relu-part", tuple_size=2, prior=0.5)], images, sample, Settings(epochs=50))
>>> fitted.predict(images)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from mdpu.data import TupleData
from mdpu.errors import UserError, is_out_of_memory
from mdpu.law import Law
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.device import choose_device, choose_policy, float32_products, spread
from mdpu.learn.evaluation import Evaluation
from mdpu.learn.head import Head
from mdpu.learn.method import Answers, FittedMethod, NetworkMethod
from mdpu.learn.methods import load_method
from mdpu.learn.network import Architecture, Network, Policy, Preparation, in_parts
from mdpu.learn.networks import load_network
from mdpu.learn.stacks import halves, make_stacks, side_by_side, workers_for
from mdpu.learn.task import PriorEstimate, Settings, Task, check_sample, tuples_per_batch
from mdpu.learn.trainer import Stack, Trained, TrainingData, make_history, network_method, train_stack

LARGE = 2**28  # bytes of images from which on they are not copied
EstimatePrior = Callable[[NDArray[Any], TupleData, Settings, int | str, torch.device, Law | None], PriorEstimate]


@dataclass(frozen=True)
class Fitted:
    """A trained model.

    Attributes
    ----------
    task : Task
    history : DataFrame
        One row per epoch: ``epoch``, from 1, ``objective``, and the measures of head and evaluation by name. If the
        method estimated the prior, the estimate as well (`mdpu.learn.task.PriorEstimate.measures`).
    """

    task: Task
    history: pd.DataFrame

    def predict(self, images: NDArray[Any]) -> NDArray[np.int8]:
        """Return +1 or -1 for each of the images (N, ...), which must be like those of the training."""
        raise NotImplementedError


@dataclass(frozen=True)
class FittedNetwork(Fitted):
    """A trained network.

    Attributes
    ----------
    network : Network
        One model (K = S = 1).
    preparation : Preparation
        The layout of the network's images.
    device : torch.device
        The device that it computes on. A model that was trained on a GPU is stored as one on the CPU, so that it can be
        read without a GPU.
    """

    network: Network
    preparation: Preparation
    device: torch.device

    def __getstate__(self) -> dict[str, Any]:
        """Return the model on the CPU, to be stored."""
        cpu = torch.device("cpu")
        return self.__dict__ | {"network": self.network.take(0, 0, cpu), "device": cpu}

    @torch.no_grad()
    def outputs(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Return the network's outputs, (N,) or (N, outputs), for images (N, ...)."""
        # A memory map may be read-only, which torch warns of.
        own = (np.require(part, requirements="W") for part in in_parts(images))
        parts = (self.preparation(part).to(self.device) for part in own)
        return np.concatenate([self.network.scores(part)[0, 0].cpu().numpy() for part in parts])

    def decision_function(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Return the scores g(x), (N,), of images (N, ...); g(x) > 0 means positive.

        Raises
        ------
        UserError
            If the images are not like those of the training, or the method embeds images instead of scoring them.
        """
        outputs = self.outputs(images)
        if outputs.ndim > 1:
            raise UserError(
                f"method {self.task.method} embeds rows and gives no score; it takes labelled prototypes to classify"
            )
        return outputs

    def predict(self, images: NDArray[Any]) -> NDArray[np.int8]:
        """Return +1 or -1 for each of the images (N, ...); errors are those of `decision_function`."""
        return np.where(self.decision_function(images) > 0, 1, -1).astype(np.int8)


@dataclass(frozen=True)
class FittedAnswers(Fitted):
    """The fitted answers of a method without a network."""

    answers: Answers

    def predict(self, images: NDArray[Any]) -> NDArray[np.int8]:
        """Return +1 or -1 for each of the images (N, ...); for an unnamed method the sign is arbitrary."""
        return np.where(self.answers.says_positive(images), 1, -1).astype(np.int8)


@dataclass(frozen=True)
class InPlace:
    """Images that are laid out when a minibatch names them: large arrays and memory maps are read where they lie."""

    images: Any
    preparation: Preparation
    device: torch.device

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def index_select(self, axis: int, rows: torch.Tensor) -> torch.Tensor:
        """Return the images of the rows (n,), laid out on the device."""
        return self.preparation(self.images[rows.cpu().numpy()]).to(self.device)


def fit(
    tasks: Sequence[Task],
    images: NDArray[Any],
    samples: TupleData | Mapping[str, TupleData],
    settings: Settings | None = None,
    **options: Any,
) -> list[Fitted]:
    """Train tasks together and return the models in the order of the tasks; parameters are those of `fit_each`."""
    fitted = {model.task: model for model in fit_each(tasks, images, samples, settings, **options)}
    return [fitted[task] for task in tasks]


def fit_each(
    tasks: Sequence[Task],
    images: NDArray[Any],
    samples: TupleData | Mapping[str, TupleData],
    settings: Settings | None = None,
    *,
    labels: NDArray[np.int8] | None = None,
    evaluation: Evaluation | None = None,
    device: torch.device | str = "auto",
    advance: Callable[[int], None] = lambda task_epochs: None,
    checkpoint_of: Callable[[Stack], Checkpoint | None] = lambda stack: None,
    memory: int | None = None,
    policy: Policy | None = None,
    estimate_prior: EstimatePrior | None = None,
) -> Iterator[Fitted]:
    """Train tasks together, and yield each model as soon as it is trained.

    Parameters
    ----------
    tasks : sequence of Task
    images : ndarray, shape (N, ...), uint8 or float
        uint8 grey values are scaled to [0, 1]; floats are not scaled.
    samples : TupleData, or mapping from name to TupleData
        What the tasks are trained on: one sample for all, or samples by the names in `Task.sample`. Samples of one
        tuple size have equal numbers of tuples and of unlabeled images.
    settings : Settings, optional
    labels : ndarray, int8, shape (N,), optional
        +1, -1 or 0, for the methods that see them, which are controls.
    evaluation : Evaluation, optional
        What is measured at the end of each epoch.
    device : torch.device or {'auto', 'cpu', 'cuda'}
    advance : callable
        Called with the number of task-epochs done since the last call.
    checkpoint_of : callable
        From a stack to its checkpoint, or None.
    memory : int, optional
        Bytes that training may take, without the images; larger stacks train in parts. If an allocation on a GPU fails
        nevertheless, the stack is halved.
    policy : Policy, optional
        How stacks are computed; by default as `mdpu.learn.device.choose_policy` says for device and precision.
    estimate_prior : callable, optional
        From (images, sample, settings, seed, device, law) to the prior that methods without a given one take, as
        `mdpu.learn.prior.brief_estimate`.

    Raises
    ------
    UserError
        If a task, its sample and the images do not match, labels are missing, or even a single model needs too much
        memory.
    """
    settings = settings or Settings()
    named = {task.sample: samples for task in tasks} if isinstance(samples, TupleData) else samples
    _check(tasks, images, named, labels)
    if policy is None:
        device = device if isinstance(device, torch.device) else spread(choose_device(device))
        policy = choose_policy(device, settings.precision)
    to_train = []
    for task in tasks:
        if isinstance(method := load_method(task.method), FittedMethod):
            yield _fit_answers(task, method, images, named[task.sample], settings, evaluation)
            advance(settings.epochs)
        else:
            to_train.append(task)
    if not to_train:
        return
    architecture = load_network(settings.network)

    def needs(stack: Stack) -> int:
        return stack_bytes(stack, settings, architecture, images.shape[1:], named)

    def attempt(stack: Stack, policy: Policy, checkpoint: Checkpoint | None) -> Generator[int, None, Trained | None]:
        try:
            return (yield from train_stack(stack, settings, data, policy, evaluation, checkpoint))
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return None

    with float32_products(settings.precision):
        preparation = architecture.prepare(images)
        estimates = _estimate_priors(to_train, images, named, settings, policy, estimate_prior)
        data = _lay_out(images, named, preparation, labels, evaluation, policy.device, estimates)
        at_least = torch.get_num_threads() if policy.side_by_side else 1
        stacks = make_stacks(
            to_train,
            architecture.stacks,
            policy.stack_by,
            lambda stack: memory is None or needs(stack) <= memory,
            at_least,
        )
        for stack in stacks:
            if memory is not None and (bytes_needed := needs(stack)) > memory and policy.device.type == "cpu":
                raise UserError(
                    f"training {stack[0][0].method} with the network {settings.network} takes about "
                    f"{bytes_needed / 2**20:.0f} MB, but {memory / 2**20:.0f} MB are allowed; raise memory_mb or lower "
                    "batch_size"
                )
        workers = workers_for(len(stacks), max(map(needs, stacks)), memory) if policy.side_by_side else 0
        if workers:
            policy = replace(policy, threads=torch.get_num_threads() // workers)
        while stacks:
            checkpoints = {stack: checkpoint_of(stack) for stack in stacks}
            jobs = {stack: attempt(stack, policy, checkpoint) for stack, checkpoint in checkpoints.items()}
            stacks = []
            with closing(side_by_side(jobs, workers)) as outcomes:
                for stack, outcome in outcomes:
                    if isinstance(outcome, int):
                        advance(outcome)
                    elif outcome is not None:
                        yield from _models(stack, outcome, estimates, preparation, policy.device)
                        if checkpoint := checkpoints[stack]:
                            checkpoint.remove()
                    elif len(stack) == len(stack[0]) == 1:
                        raise UserError(f"the GPU has too little memory for one model of method {stack[0][0].method}")
                    else:
                        torch.cuda.empty_cache()
                        stacks += halves(stack)


def _lay_out(
    images: NDArray[Any],
    samples: Mapping[str, TupleData],
    preparation: Preparation,
    labels: NDArray[np.int8] | None,
    evaluation: Evaluation | None,
    device: torch.device,
    estimates: Mapping[Task, PriorEstimate],
) -> TrainingData:
    """Return what all stacks share, on the device; lay out the images of the evaluation too."""
    try:
        if evaluation:
            evaluation.prepare(preparation, device)
        seen = None if labels is None else torch.from_numpy(labels).to(device)
        laid_out = InPlace(images, preparation, device) if images.nbytes > LARGE else preparation(images).to(device)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(
            "the rows do not fit into the GPU's free memory; end what else uses it, or train on the CPU"
        ) from None
    return TrainingData(laid_out, preparation, samples, seen, {task: own.prior for task, own in estimates.items()})


def stack_bytes(
    stack: Stack,
    settings: Settings,
    architecture: Architecture,
    shape: tuple[int, ...],
    samples: Mapping[str, TupleData],
) -> int:
    """Return the bytes that the training of a stack takes: its network, and the indices of its streams."""
    sample = samples[stack[0][0].sample]
    n, tuple_size = sample.tuples.shape
    batch = min(n, tuples_per_batch(settings, tuple_size))
    rows = -(-batch * (n * tuple_size + len(sample.unlabeled)) // n)
    K, S = len(stack), len(stack[0])
    own = architecture.read(settings.architecture)
    indices = 8 * S * (n * tuple_size + len(sample.unlabeled))
    return architecture.memory(own, shape, rows, network_method(stack[0][0]).outputs, K, S) + indices


def _check(
    tasks: Sequence[Task], images: NDArray[Any], samples: Mapping[str, TupleData], labels: NDArray[np.int8] | None
) -> None:
    """Raise `UserError` unless tasks, images, samples and labels match."""
    if len(set(tasks)) < len(tasks):
        raise UserError("two tasks are equal; they would be one model")
    for name in {task.sample for task in tasks}:
        if name not in samples:
            raise UserError(f"no sample is called {name!r}; there are {', '.join(map(repr, samples))}")
        check_sample(samples[name], len(images), [task for task in tasks if task.sample == name])
    for task in tasks:
        method = load_method(task.method)
        if labels is None and getattr(method, "sees_labels", False):
            raise UserError(f"method {task.method} is a control that sees true labels; give it labels")
        if samples[task.sample].is_ragged and not method.takes_ragged:
            raise UserError(f"method {task.method} learns from tuples of one size, but there are several; take another")


def _estimate_priors(
    tasks: Sequence[Task],
    images: NDArray[Any],
    samples: Mapping[str, TupleData],
    settings: Settings,
    policy: Policy,
    estimate_prior: EstimatePrior | None,
) -> dict[Task, PriorEstimate]:
    """Return the estimates of the tasks whose methods estimate the prior; tasks of one sample and seed share theirs."""

    def estimate(task: Task) -> Generator[int, None, PriorEstimate]:
        yield 0
        assert estimate_prior is not None
        return estimate_prior(images, samples[task.sample], settings, task.seed, policy.device, task.law)

    sharing: dict[tuple[str, int | str], list[Task]] = {}
    for task in tasks:
        method = load_method(task.method)
        if isinstance(method, NetworkMethod) and method.estimates_prior:
            if estimate_prior is None:
                raise UserError(
                    f"method {task.method} estimates the prior; give fit a function for it, such as "
                    "estimate_prior=mdpu.learn.prior.brief_estimate"
                )
            sharing.setdefault((task.sample, task.seed), []).append(task)
    jobs = {key: estimate(shared[0]) for key, shared in sharing.items()}
    workers = min(len(jobs), torch.get_num_threads()) if policy.side_by_side else 0
    with closing(side_by_side(jobs, workers)) as outcomes:
        estimates = {key: outcome for key, outcome in outcomes if not isinstance(outcome, int)}
    return {task: estimates[key] for key, shared in sharing.items() for task in shared}


def _fit_answers(
    task: Task,
    method: FittedMethod,
    images: NDArray[Any],
    sample: TupleData,
    settings: Settings,
    evaluation: Evaluation | None,
) -> FittedAnswers:
    """Fit a method without a network; its history has the same measures at every epoch.

    So averages over epochs and lines in figures work as for the other methods.
    """
    answers = method.fit(task, sample, images)
    head = AnswersHead([task], torch.device("cpu"))
    names, row = ["objective"], [answers.objective]
    if evaluation:
        evaluation.prepare(Unprepared(images.shape[1:]), head.device)
        measured = evaluation(head, lambda given: torch.from_numpy(answers.says_positive(given.numpy()))[None].float())
        names += evaluation.measures(head)
        row += measured[0].tolist()
    return FittedAnswers(task, make_history(names, np.tile(np.array(row), (settings.epochs, 1))), answers)


class AnswersHead(Head):
    """The head of given answers: 1.0 for positive, 0.0 for negative."""


@dataclass(frozen=True)
class Unprepared:
    """The preparation that leaves images unchanged."""

    shape: tuple[int, ...]

    def __call__(self, images: NDArray[Any]) -> torch.Tensor:
        """Return images as a tensor."""
        return torch.from_numpy(images)


def _models(
    stack: Stack,
    trained: Trained,
    estimates: Mapping[Task, PriorEstimate],
    preparation: Preparation,
    device: torch.device,
) -> Iterator[FittedNetwork]:
    """Yield the models of a stack one by one; an estimated prior is the same at every epoch of a history."""
    for k, row in enumerate(stack):
        for s, task in enumerate(row):
            history = trained.histories[task]
            if task in estimates:
                history = history.assign(**estimates[task].measures())
            yield FittedNetwork(task, history, trained.network.take(k, s), preparation, device)
