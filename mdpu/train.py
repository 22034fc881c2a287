"""The trainer: index rows, score them, minimise the method's objective with Adam, measure, again.

>>> images, sample = TupleData.gather(tuples, unlabeled)
>>> task = Task("relu", tuple_size=2, prior=0.5)
>>> [trained] = train(task, images, [sample], [1], Settings(epochs=50))
>>> trained.predict(images)

Several seeds of one task train at once through the same loop and the same objective, with a leading
axis S. That is for GPUs, where small networks wait for launches; on a CPU one after the other is as
fast. Every random number is derived from (seed, purpose, epoch), so a run does not depend on what
trains beside it, up to rounding.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from mdpu.checkpoint import Checkpoint
from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.methods import Batch, check_loss, load_method, named, objective_of
from mdpu.networks import (
    Networks,
    Preparation,
    TestSet,
    in_parts,
    make_network,
    precision_on,
    prepare,
)
from mdpu.optimizer import Adam, RunningMean
from mdpu.randomness import Stream
from mdpu.settings import Settings, Task, rate_factor

# Bytes of images in use from which on they are read where they lie, as memory maps are.
LARGE = 2**29
# Scores that training starts from fade over the first 1/3 of the epochs.
FADED = 3
# Trainings in threads would disturb each other's generators and precision, so one waits.
ALONE = threading.RLock()

OnEpochEnd = Callable[[int, list[dict[str, float]]], Any]


@dataclass(frozen=True)
class Trained:
    """A trained model.

    Attributes
    ----------
    task : Task
    seed : int or str
    module : Module or callable
        The network, for what `preparation` gives; or, for a method without one, a function from
        images (N, ...) to whether each is positive, or to shares of answers that say so.
    preparation : Preparation or None
    history : DataFrame
        One row per epoch: ``epoch``, from 1; ``objective``; the measures of the method and of the
        evaluation by name. From the first objective on that is not finite, all are missing.
    """

    task: Task
    seed: int | str
    module: Any
    preparation: Preparation | None
    history: pd.DataFrame

    def __getstate__(self) -> dict[str, Any]:
        """Return the model with its network on the CPU, so that it can be read where there is no
        GPU.
        """
        module = copy.deepcopy(self.module).cpu() if self.preparation else self.module
        return self.__dict__ | {"module": module}

    @torch.no_grad()
    def outputs(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Return the network's outputs, (N,) or (N, outputs), for images (N, ...) like those of the
        training.
        """
        if self.preparation is None:
            return np.where(self.module(images) > 0.5, 1, -1).astype(np.float32)
        device = next(self.module.parameters()).device
        outputs = []
        for part in in_parts(images, self.preparation.rows_at_once(torch.device("cpu"))):
            kept = self.preparation.keep(part, device)
            outputs.append(self.module(self.preparation.lay_out(kept)).float().cpu())
        values = torch.cat(outputs).numpy()
        return values.reshape(len(images)) if values.size == len(images) else values

    def decision_function(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Return the scores g(x), (N,), of images (N, ...); g(x) > 0 means positive.

        Raises
        ------
        UserError
            If the images are not like those of the training, or the method embeds images instead of
            scoring them.
        """
        outputs = self.outputs(images)
        if outputs.ndim > 1:
            raise UserError(
                f"method {self.task.method} embeds rows; it takes labelled prototypes to classify"
            )
        return outputs

    def predict(self, images: NDArray[Any]) -> NDArray[np.int8]:
        """Return +1 or -1 for each of the images (N, ...); for an unnamed method the sign is
        arbitrary.
        """
        return np.where(self.decision_function(images) > 0, 1, -1).astype(np.int8)


def train(
    task: Task,
    images: NDArray[Any],
    samples: Sequence[TupleData],
    seeds: Sequence[int | str],
    settings: Settings,
    *,
    labels: NDArray[np.int8] | None = None,
    evaluation: TestSet | None = None,
    device: torch.device | str = "cpu",
    on_epoch_end: OnEpochEnd | None = None,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 60.0,
) -> list[Trained]:
    """Train a model for each of S seeds, all of one task, and return them in this order.

    Parameters
    ----------
    task : Task
    images : ndarray, shape (N, ...), uint8 or float
        uint8 grey values are scaled to [0, 1]; floats are not scaled.
    samples : sequence of TupleData, length S
        The data of each model; all have equal numbers of tuples and of unlabeled images.
    seeds : sequence of int or str, length S
        Seeds of initial weights, minibatches and all other random numbers.
    settings : Settings
    labels : ndarray, int8, shape (N,), optional
        +1, -1 or 0, for the methods that see them, which are controls.
    evaluation : TestSet, optional
        The test at the end of each epoch.
    device : torch.device or str
    on_epoch_end : callable, optional
        Called with the epoch, from 1, and its measures by name, a mapping for each seed. If it
        returns true, this epoch is the last one.
    checkpoint : Path, optional
        Where unfinished training is written, not more often than every `checkpoint_seconds`, and
        resumed from by the same training. A loss or network that is a module is known by its
        ``repr``, a function by its address, so another process begins its training anew.

    Raises
    ------
    UserError
        If task, samples and images do not match, labels are missing, or the network does not fit
        the images.
    """
    method = load_method(task.method)
    if not len(samples) == len(seeds) > 0:
        raise UserError(
            f"there are {len(samples)} samples and {len(seeds)} seeds; give one seed for each "
            "sample"
        )
    if labels is None and method.sees_labels:
        raise UserError(f"method {task.method} is a control that sees true labels; give it labels")
    if callable(task.loss):
        check_loss(task.loss, task.method)
    check_samples(samples, len(images), task)
    if not method.trains_network:
        return _fit(task, images, samples, seeds, labels, settings.epochs, evaluation, on_epoch_end)

    device = torch.device(device)
    with _generators_and_precision(device, settings.precision):
        training = Training(task, images, samples, seeds, settings, labels, device)
        names = ["objective", *training.objective.measures]
        if evaluation:
            evaluation.place(training.preparation, device)
            names += [*evaluation.rates, *training.objective.test_measures]
        saved = Checkpoint(checkpoint, checkpoint_seconds, training.state)
        history = saved.restore(  # epochs, S, measures
            task,
            settings,
            names,
            seeds,
            images,
            labels,
            training.inputs.tuples,
            training.inputs.unlabeled,
        )

        for epoch in range(len(history), settings.epochs):
            record = training.run_epoch(epoch)  # (S, measures)
            if evaluation:
                record = torch.cat([record, training.evaluate(evaluation)], dim=1)
            history.append(record.tolist())
            saved.save_if_due(history, settings.epochs)
            if on_epoch_end:
                measures = [dict(zip(names, row, strict=True)) for row in history[-1]]
                if on_epoch_end(epoch + 1, measures):
                    break

        training.average.exchange()
        saved.remove()

    trained = []
    for s, (seed, module) in enumerate(zip(seeds, training.networks.trained(), strict=True)):
        table = _table(names, [rows[s] for rows in history])
        trained.append(Trained(task, seed, module, training.preparation, table))
    return trained


class Training:
    """What the epochs of a training share: S networks, their objective and optimizer, their data.

    Parameters are those of `train`.

    Attributes
    ----------
    networks : Networks
    objective : Objective
    optimizer : Adam
    average : RunningMean
    inputs : Inputs
    state : list of Tensor
        All that training changes.
    """

    def __init__(
        self,
        task: Task,
        images: Any,
        samples: Sequence[TupleData],
        seeds: Sequence[int | str],
        settings: Settings,
        labels: NDArray[np.int8] | None,
        device: torch.device,
    ) -> None:
        method = load_method(task.method)
        self.seeds = seeds
        self.settings = settings
        self.device = device
        self.preparation = prepare(settings, images)
        modules = [make_network(settings, self.preparation, method.outputs, s) for s in seeds]
        self.networks = Networks(modules, self.preparation, method.outputs, device, settings)
        self.objective = objective_of(task, seeds, device)
        parameters = [*self.networks.parameters, *self.objective.parameters]
        self.optimizer = Adam(parameters, settings, self.networks.rates)
        self.average = RunningMean(self.networks.state, method.ema_decay)
        weights = self.networks.state.values()
        self.state = [*weights, *self.optimizer.state, *self.average.state]

        self.inputs = Inputs(images, samples, self.preparation, device)
        self.ragged = any(sample.is_ragged for sample in samples)
        self.labels = None
        if method.sees_labels:
            self.labels = torch.from_numpy(cast(Any, labels)[self.inputs.used]).to(device)
        self.lead = self._start(samples, images)

        self.batch_size = settings.batch_size
        if settings.batch_counts != "tuples":
            self.batch_size = max(1, settings.batch_size // task.tuple_size)
        self.steps = math.ceil(self.inputs.tuples.shape[1] / self.batch_size)  # of an epoch

    def _start(self, samples: Sequence[TupleData], images: Any) -> Tensor | None:
        """Return the scores (S, rows) that training starts from, if the objective has some."""
        starts = []
        for sample, seed in zip(samples, self.seeds, strict=True):
            starts.append(self.objective.start(sample, seed, images))
        if all(scores is None for scores in starts):
            return None
        none = np.zeros(len(images))
        known = np.stack([none if scores is None else scores for scores in starts])
        of_used = torch.from_numpy(known[:, self.inputs.used])
        return of_used.float().to(self.device)

    def run_epoch(self, epoch: int) -> Tensor:
        """Train for an epoch; return the means of objective and measures over its tuples, (S, 1 +
        measures).
        """
        self.networks.module.train()
        drawn = Stream(self.seeds[0], "what modules draw", epoch).integers(2**31, 1)
        torch.manual_seed(int(drawn[0]))  # of dropout, for example
        n = self.inputs.tuples.shape[1]
        record = torch.zeros(len(self.seeds), 1 + len(self.objective.measures), device=self.device)

        batches = minibatches(
            self.seeds, self.inputs.tuples, self.inputs.unlabeled, self.batch_size, epoch
        )
        for step, (tuples, unlabeled) in enumerate(batches):
            rows = torch.cat([tuples.clamp(min=0).flatten(1), unlabeled], dim=1)  # (S, B M + B_U)
            scores = self.score(rows, epoch)  # (S, rows) or (S, rows, outputs)
            leaf = scores.detach().requires_grad_()
            objective, measures = self.objective(self.batch_of(leaf, rows, tuples))
            objective.sum().backward()
            self.descend(scores, cast(Tensor, leaf.grad), epoch * self.steps + step)

            values = [objective.detach()[:, None]]
            if measures is not None:
                values.append(measures)
            record += tuples.shape[1] / n * torch.cat(values, dim=1)
        return record

    def score(self, rows: Tensor, epoch: int) -> Tensor:
        """Return the networks' outputs for rows (S, R), and of a start what has not faded yet."""
        scores = self.networks(self.inputs(rows))
        weight = 1 - FADED * epoch / self.settings.epochs
        if self.lead is None or weight <= 0:
            return scores
        return scores + weight * self.lead.gather(1, rows)

    def batch_of(self, scores: Tensor, rows: Tensor, tuples: Tensor) -> Batch:
        """Return the scores of rows, of tuples (S, B, M) first, as an objective takes them."""
        size = tuples.shape[2]
        end = tuples.shape[1] * size
        sizes = (tuples >= 0).sum(dim=2) if self.ragged else None  # (S, B)
        labels = None
        if self.labels is not None:
            of_tuples = self.labels[rows[:, :end]].unflatten(1, (-1, size))
            labels = (of_tuples, self.labels[rows[:, end:]])
        return Batch(scores[:, :end].unflatten(1, (-1, size)), scores[:, end:], sizes, labels)

    def descend(self, scores: Tensor, gradient: Tensor, step: int) -> None:
        """Change the weights by the gradient of the objective with respect to the scores.

        Where a corrected risk is flat, no score has a gradient, and no weight would: only the decay
        acts.
        """
        if self.device.type != "cpu" or gradient.any():
            scores.backward(gradient)
        of_all = self.settings.epochs * self.steps
        self.optimizer.step(rate_factor(self.settings, step, of_all))
        self.average.update()

    def evaluate(self, test: TestSet) -> Tensor:
        """Return the measures on the test images, (S, measures)."""
        with self.average.in_place(), torch.no_grad():
            return torch.stack(self.objective.measure(self.networks.scores, test), dim=1)


def minibatches(
    seeds: Sequence[int | str], tuples: Tensor, unlabeled: Tensor, batch: int, epoch: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the indices of each minibatch of an epoch: of tuples (S, B, M) and of unlabeled images
    (S, B_U).

    There are ceil(n / batch). The unlabeled images are spread over them evenly, so an epoch sees
    every tuple and every unlabeled image once. A minibatch that would get no unlabeled image
    shares one with a neighbour.

    Parameters
    ----------
    seeds : sequence of int or str, length S
    tuples : Tensor, int64, shape (S, n, M)
    unlabeled : Tensor, int64, shape (S, n_unlabeled)
    batch : int
        Tuples per minibatch.
    epoch : int
    """
    n = tuples.shape[1]
    n_unlabeled = unlabeled.shape[1]
    drawn = []
    for seed in seeds:
        of_tuples = Stream(seed, "tuple order", epoch).permutation(n)
        of_unlabeled = Stream(seed, "unlabeled order", epoch).permutation(n_unlabeled)
        drawn.append(np.concatenate([of_tuples, of_unlabeled]))
    orders = torch.from_numpy(np.stack(drawn)).to(tuples.device)  # one transfer
    tuple_order, unlabeled_order = orders.split([n, n_unlabeled], dim=1)
    tuples = torch.take_along_dim(tuples, tuple_order.unsqueeze(-1), dim=1)
    unlabeled = torch.take_along_dim(unlabeled, unlabeled_order, dim=1)
    for first in range(0, n, batch):
        start, stop = (round(edge * n_unlabeled / n) for edge in (first, min(n, first + batch)))
        start = min(start, n_unlabeled - 1)
        yield tuples[:, first : first + batch], unlabeled[:, start : max(stop, start + 1)]


class Inputs:
    """The images that samples name, on the device, for the network; large ones are read when named.

    Attributes
    ----------
    used : ndarray, int64
        Rows of the images that samples name, in order.
    tuples : Tensor, int64, shape (S, n, M)
        Places among these, or -1.
    unlabeled : Tensor, int64, shape (S, n_unlabeled)
    """

    def __init__(
        self,
        images: Any,
        samples: Sequence[TupleData],
        preparation: Preparation,
        device: torch.device,
    ) -> None:
        tuples = np.stack([sample.tuples for sample in samples])
        unlabeled = np.stack([sample.unlabeled for sample in samples])
        used = np.unique(np.append(tuples, unlabeled))
        used = used[used >= 0]
        places = np.where(tuples < 0, -1, np.searchsorted(used, tuples))
        self.images = images
        self.used = used
        self.preparation = preparation
        self.device = device
        self.tuples = torch.from_numpy(places).to(device)
        self.unlabeled = torch.from_numpy(np.searchsorted(used, unlabeled)).to(device)

        value_size = np.dtype(preparation.kept_type(device)).itemsize
        n_bytes = value_size * len(used) * math.prod(images.shape[1:])
        self.kept = None if n_bytes > LARGE else preparation.keep(images[used], device)

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the images (S, B, ...) at places (S, B) among those in use."""
        if self.kept is None:
            read = self.images[self.used[rows.flatten().cpu().numpy()]]
            kept = self.preparation.keep(read, self.device)
        else:
            kept = self.kept.index_select(0, rows.flatten())
        return self.preparation.lay_out(kept).unflatten(0, rows.shape)


@contextmanager
def _generators_and_precision(device: torch.device, precision: str) -> Iterator[None]:
    """Leave torch's generators and switches as they are, and set the precision of float32
    products.
    """
    takes_tf32 = precision_on(device, precision) == "tf32"
    cudnn = torch.backends.cudnn
    with ALONE, torch.random.fork_rng([device] if device.type == "cuda" else []):
        precision_before = torch.get_float32_matmul_precision()
        tf32_before = cudnn.allow_tf32
        benchmark_before = cudnn.benchmark
        try:
            torch.set_float32_matmul_precision("high" if takes_tf32 else "highest")
            cudnn.allow_tf32 = takes_tf32
            # It times its convolutions once a shape and takes the fastest.
            cudnn.benchmark = device.type != "cpu"
            yield
        finally:
            torch.set_float32_matmul_precision(precision_before)
            cudnn.allow_tf32 = tf32_before
            cudnn.benchmark = benchmark_before


def check_samples(samples: Sequence[TupleData], rows: int, task: Task) -> None:
    """Raise `UserError` unless samples name existing rows, and fit the task that trains on them
    together.
    """
    for sample in samples:
        sample.check(rows)
        _check_task(task, sample.tuples.shape[1], sample.is_ragged)
        counts = (len(sample.tuples), len(sample.unlabeled))
        if counts != (len(samples[0].tuples), len(samples[0].unlabeled)):
            raise UserError(
                "samples that train together must have equal numbers of tuples and of unlabeled "
                "rows"
            )


def _check_task(task: Task, size: int, ragged: bool) -> None:
    """Raise `UserError` unless a task is for tuples of `size` rows, or for several sizes."""
    if ragged and task.law is not None:
        raise UserError("a law is for tuples of one size, but the sample's tuples have several")
    if ragged and not load_method(task.method).takes_ragged:
        raise UserError(
            f"method {task.method} learns from tuples of one size, but there are several; take "
            "another"
        )
    law_size = task.tuple_size if task.law is None else task.law.size
    if not size == task.tuple_size == law_size:
        law = "" if task.law is None else f", and the law is for {task.law.size}"
        raise UserError(f"tuple_size is {task.tuple_size}, but the tuples hold {size} rows{law}")


def _fit(
    task: Task,
    images: Any,
    samples: Sequence[TupleData],
    seeds: Sequence[int | str],
    labels: NDArray[np.int8] | None,
    epochs: int,
    evaluation: TestSet | None,
    on_epoch_end: OnEpochEnd | None,
) -> list[Trained]:
    """Fit a method without a network; its history has the same measures at every epoch, as lines in
    figures need.
    """
    fit = named(load_method(task.method).fit)
    measures = []
    trained = []
    for sample, seed in zip(samples, seeds, strict=True):
        objective, says_positive = fit(task, seed, sample, images, labels)
        measured = {"objective": float(objective)}
        if evaluation:
            answers = says_positive(evaluation.images)
            positive = evaluation.labels > 0
            rates = (answers[positive].mean(), 1 - answers[~positive].mean())
            measured |= dict(zip(evaluation.rates, map(float, rates), strict=True))
        table = _table(list(measured), [list(measured.values())] * epochs)
        trained.append(Trained(task, seed, says_positive, None, table))
        measures.append(measured)

    for epoch in range(1, epochs + 1):
        if on_epoch_end and on_epoch_end(epoch, measures):
            break
    return trained


def _table(names: Sequence[str], rows: Sequence[Sequence[float]]) -> pd.DataFrame:
    """Return measures (epochs, names) as a table with the epoch, from 1, and gaps once training has
    diverged.
    """
    values = np.array(rows, np.float64)
    is_finite = np.isfinite(values[:, 0])
    has_diverged = np.cumsum(~is_finite) > 0
    values[has_diverged] = np.nan
    table = pd.DataFrame(values, columns=list(names))
    table.insert(0, "epoch", np.arange(1, len(table) + 1))
    return table
