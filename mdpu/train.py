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
import hashlib
import io
import math
import os
import sys
import threading
import time
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
from torch.optim.adam import adam

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.methods import Batch, Objective, load_method, named
from mdpu.networks import (
    Networks,
    Preparation,
    TestSet,
    in_parts,
    make_network,
    precision_on,
    prepare,
)
from mdpu.randomness import Stream
from mdpu.settings import Settings, Task, rate_factor

LARGE = (
    2**29
)  # bytes of images in use from which on they are read where they lie, as memory maps are
FADED = 3  # scores that training starts from fade over the first 1/3 of the epochs
ALONE = (
    threading.RLock()
)  # trainings in threads would disturb each other's generators and precision, so one waits
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
        found = []
        for part in in_parts(images, self.preparation.rows_at_once(torch.device("cpu"))):
            kept = self.preparation.keep(part, device)
            found.append(self.module(self.preparation.lay_out(kept)).float().cpu())
        outputs = torch.cat(found).numpy()
        return outputs.reshape(len(images)) if outputs.size == len(images) else outputs

    def decision_function(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Return the scores g(x), (N,), of images (N, ...); g(x) > 0 means positive.

        Raises
        ------
        UserError
            If the images are not like those of the training, or the method embeds images instead of
            scoring them.
        """
        if (outputs := self.outputs(images)).ndim > 1:
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
        resumed from.

    Raises
    ------
    UserError
        If task, samples and images do not match, labels are missing, or the network does not fit
        the images.
    """
    method, device = load_method(task.method), torch.device(device)
    if not len(samples) == len(seeds) > 0:
        raise UserError(
            f"there are {len(samples)} samples and {len(seeds)} seeds; give one seed for each "
            "sample"
        )
    if labels is None and method.sees_labels:
        raise UserError(f"method {task.method} is a control that sees true labels; give it labels")
    check_samples(samples, len(images), task)
    if method.objective is None:
        return _fit(task, images, samples, seeds, labels, settings.epochs, evaluation, on_epoch_end)
    with _generators_and_precision(device, settings.precision):
        preparation = prepare(settings, images)
        modules = [make_network(settings, preparation, method.outputs, seed) for seed in seeds]
        networks = Networks(modules, preparation, method.outputs, device, settings)
        objective: Objective = named(method.objective)(task, method, seeds, device)
        optimizer = Adam([*networks.parameters, *objective.parameters], settings, networks.rates)
        average = RunningMean(networks.state, method.ema_decay)
        if evaluation:
            evaluation.place(preparation, device)

        inputs = _Images(images, samples, preparation, device)
        # (S, n, M), (S, n_U): places among the images in use
        tuples = inputs.tuples
        unlabeled = inputs.unlabeled
        y = (
            torch.from_numpy(labels[inputs.used]).to(device)
            if labels is not None and method.sees_labels
            else None
        )
        ragged = any((sample.tuples < 0).any() for sample in samples)
        starts = [
            objective.start(sample, seed, images)
            for sample, seed in zip(samples, seeds, strict=True)
        ]
        lead = None  # scores (S, rows) that training starts from
        if any(scores is not None for scores in starts):
            known = [np.zeros(len(images)) if scores is None else scores for scores in starts]
            lead = torch.from_numpy(np.stack(known)[:, inputs.used]).float().to(device)
        n, size = tuples.shape[1:]
        batch = (
            settings.batch_size
            if settings.batch_counts == "tuples"
            else max(1, settings.batch_size // size)
        )
        steps = math.ceil(n / batch)

        names = ["objective", *objective.measures]
        if evaluation:
            names += [*evaluation.rates, *objective.test_measures]
        saved = Checkpoint(
            checkpoint,
            checkpoint_seconds,
            [*networks.state.values(), *optimizer.state, *average.state],
        )
        history = saved.restore(
            task, settings, names, seeds, images, labels, tuples, unlabeled
        )  # epochs, S, measures

        for epoch in range(len(history), settings.epochs):
            networks.module.train()
            torch.manual_seed(
                int(Stream(seeds[0], "what modules draw", epoch).integers(2**31, 1)[0])
            )  # e.g. dropout
            record = torch.zeros(len(seeds), 1 + len(objective.measures), device=device)
            for step, (members, others) in enumerate(
                minibatches(seeds, tuples, unlabeled, batch, epoch)
            ):
                sizes = (members >= 0).sum(dim=2) if ragged else None  # (S, B)
                members = members.clamp(min=0).flatten(1)
                rows = torch.cat([members, others], dim=1)  # (S, B M + B_U)
                scores = networks(inputs(rows))  # (S, rows) or (S, rows, outputs)
                if lead is not None and (weight := 1 - FADED * epoch / settings.epochs) > 0:
                    scores = scores + weight * lead.gather(1, rows)

                leaf = scores.detach().requires_grad_()
                cut = members.shape[1]
                labelled = (
                    None
                    if y is None
                    else (y[rows[:, :cut]].unflatten(1, (-1, size)), y[rows[:, cut:]])
                )
                given = Batch(
                    leaf[:, :cut].unflatten(1, (-1, size)), leaf[:, cut:], sizes, labelled
                )
                value, recorded = objective(given)  # (S,), (S, measures)
                value.sum().backward()
                # Where a corrected risk is flat, no score has a gradient, and no weight would: only
                # the decay acts.
                if device.type != "cpu" or cast(Tensor, leaf.grad).any():
                    scores.backward(leaf.grad)
                optimizer.step(rate_factor(settings, epoch * steps + step, settings.epochs * steps))
                average.update()

                found = [value.detach()[:, None], *([] if recorded is None else [recorded])]
                record += cut / (n * size) * torch.cat(found, dim=1)  # the mean over the tuples

            if evaluation:
                with average.in_place(), torch.no_grad():
                    measured = torch.stack(objective.measure(networks.scores, evaluation), dim=1)
                record = torch.cat([record, measured], dim=1)
            history.append(record.tolist())
            saved.save_if_due(history, settings.epochs)
            if on_epoch_end and on_epoch_end(
                epoch + 1, [dict(zip(names, row, strict=True)) for row in history[-1]]
            ):
                break
        average.exchange()
        saved.remove()
    tables = [_table(names, [rows[s] for rows in history]) for s in range(len(seeds))]
    trained = zip(seeds, networks.trained(), tables, strict=True)
    return [Trained(task, seed, module, preparation, table) for seed, module, table in trained]


def minibatches(
    seeds: Sequence[int | str], tuples: Tensor, unlabeled: Tensor, batch: int, epoch: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the indices of each minibatch of an epoch: of tuples (S, B, M) and of unlabeled images
    (S, B_U).

    There are ceil(n / batch). The unlabeled images are spread over them evenly, so an epoch sees
    every tuple and every unlabeled image once. With fewer unlabeled images than minibatches, an
    image is used twice.

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


class Adam:
    """Adam, or AdamW where the settings decouple the weight decay, as
    ``torch.optim.Adam(fused=True)`` computes it.

    That class imports torch's compiler, which takes 1.9 s of every process; the function that it
    calls does not.
    """

    def __init__(
        self, parameters: Sequence[Tensor], settings: Settings, rates: Sequence[float] = ()
    ) -> None:
        self.parameters = list(parameters)
        self.settings = settings
        own = [*rates, *[1.0] * (len(parameters) - len(rates))]  # factors of the learning rate
        self.places = {
            rate: [place for place, one in enumerate(own) if one == rate]
            for rate in dict.fromkeys(own)
        }
        self.moments = [[torch.zeros_like(parameter) for parameter in parameters] for _ in range(2)]
        self.steps = [torch.zeros((), device=parameter.device) for parameter in parameters]
        self.state = [*self.parameters, *self.moments[0], *self.moments[1], *self.steps]

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """Change the parameters by their gradients, zero where there is none, at a rate times
        `factor`.
        """
        gradients = list[Tensor]()
        settings = self.settings
        for parameter in self.parameters:
            gradients.append(
                torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            )
            parameter.grad = None
        options: Any = {
            "amsgrad": False,
            "beta1": 0.9,
            "beta2": 0.999,
            "eps": 1e-8,
            "maximize": False,
            "fused": True,
        }
        options |= {
            "weight_decay": settings.weight_decay,
            "decoupled_weight_decay": settings.optimizer == "adamw",
        }
        for rate, places in self.places.items():
            lists = (self.parameters, gradients, *self.moments, self.steps)
            weights, own, first, second, steps = (
                [each[place] for place in places] for each in lists
            )
            adam(
                weights,
                own,
                first,
                second,
                [],
                steps,
                lr=settings.learning_rate * factor * rate,
                **options,
            )


class RunningMean:
    """The running mean of weights and of running statistics over the steps, which some methods use
    as their model.

    At step t it keeps the share min(decay, (1 + t) / (10 + t)) of its past, so it soon forgets the
    first weights. With a decay of 0 there is no mean, at no cost.
    """

    def __init__(self, state: dict[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.values = [
            value.detach() for value in state.values() if decay and value.is_floating_point()
        ]
        self.means = [value.clone() for value in self.values]
        self.steps = torch.zeros((), dtype=torch.int64)
        self.state = [*self.means, self.steps]

    def update(self) -> None:
        """Include the weights of a step."""
        if self.decay:
            new = max(1 - self.decay, 9 / (10 + int(self.steps)))
            for mean, value in zip(self.means, self.values, strict=True):
                mean.lerp_(value, new)
            self.steps += 1

    def exchange(self) -> None:
        """Exchange the mean and the weights."""
        for mean, value in zip(self.means, self.values, strict=True):
            kept = value.clone()
            value.copy_(mean)
            mean.copy_(kept)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the mean as the weights within the block."""
        self.exchange()
        yield
        self.exchange()


class Checkpoint:
    """Unfinished training in one file, which begins with the SHA-256 of the rest; without a path it
    does nothing.

    Parameters
    ----------
    path : Path or None
    seconds : float
        Shortest time between two writes.
    state : sequence of Tensor
        The tensors that training changes, in their first state.
    """

    def __init__(self, path: Path | None, seconds: float, state: Sequence[Tensor]) -> None:
        self.path = path
        self.seconds = seconds
        self.state = [value.detach() for value in state]
        self.last = time.monotonic()
        self.key = ""

    def restore(self, *trained: Any) -> list[Any]:
        """Restore the state and return the history, which is empty without a file of the same
        training.

        Two trainings are the same if their data, their settings and their states at the beginning
        are.
        """
        if self.path is None:
            return []
        digest = hashlib.sha256()
        for part in (*trained, *self.state):
            part = part.detach().cpu().numpy() if isinstance(part, Tensor) else part
            digest.update(
                np.ascontiguousarray(part).data
                if isinstance(part, np.ndarray)
                else repr(part).encode()
            )
        self.key = digest.hexdigest()
        if not self.path.exists():
            return []
        try:
            content = self.path.read_bytes()
            saved = torch.load(io.BytesIO(content[32:]), map_location="cpu", weights_only=True)
            usable = (
                hashlib.sha256(content[32:]).digest() == content[:32] and saved["key"] == self.key
            )
        except Exception:  # of many types; torch's own text recommends loading the file unsafely
            usable = False
        if not usable:
            print(
                f"checkpoint {self.path} is not of this training; it begins anew", file=sys.stderr
            )
            return []
        for value, kept in zip(self.state, saved["state"], strict=True):
            value.copy_(kept)
        return list(saved["history"])

    def save_if_due(self, history: list[Any], epochs: int) -> None:
        """Write the state, unless training is finished or the last write is too recent."""
        if (
            self.path is None
            or len(history) == epochs
            or time.monotonic() - self.last < self.seconds
        ):
            return
        buffer = io.BytesIO()
        torch.save(
            {"key": self.key, "history": history, "state": [value.cpu() for value in self.state]},
            buffer,
        )
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(hashlib.sha256(buffer.getbuffer()).digest())
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise UserError(
                f"the checkpoint {self.path} could not be written: {error.strerror}"
            ) from None
        self.last = time.monotonic()

    def remove(self) -> None:
        """Delete the file, if there is one, and unfinished ones of processes that were killed as
        they wrote it.
        """
        if self.path is not None:
            for path in (self.path, *self.path.parent.glob(f".{self.path.name}.*.part")):
                path.unlink(missing_ok=True)


class _Images:
    """The images that samples name, on the device, for the network; large ones are read when named.

    `used` are their rows in order; `tuples` (S, n, M) and `unlabeled` (S, n_unlabeled) are places
    among these, or -1.
    """

    def __init__(
        self,
        images: Any,
        samples: Sequence[TupleData],
        preparation: Preparation,
        device: torch.device,
    ) -> None:
        tuples, unlabeled = (
            np.stack([getattr(own, part) for own in samples]) for part in ("tuples", "unlabeled")
        )
        used = np.unique(np.append(tuples, unlabeled))
        used = used[used >= 0]
        self.images = images
        self.used = used
        self.preparation = preparation
        self.device = device
        self.tuples = torch.from_numpy(np.where(tuples < 0, -1, np.searchsorted(used, tuples))).to(
            device
        )
        self.unlabeled = torch.from_numpy(np.searchsorted(used, unlabeled)).to(device)
        size = np.dtype(preparation.kept_type(device)).itemsize
        is_large = size * len(used) * math.prod(images.shape[1:]) > LARGE
        self.kept = None if is_large else preparation.keep(images[used], device)

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the images (S, B, ...) at places (S, B) among those in use."""
        if self.kept is None:
            named = self.images[self.used[rows.flatten().cpu().numpy()]]
            kept = self.preparation.keep(named, self.device)
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
        before = torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.benchmark
        try:
            torch.set_float32_matmul_precision("high" if takes_tf32 else "highest")
            cudnn.allow_tf32 = takes_tf32
            cudnn.benchmark = (
                device.type != "cpu"
            )  # times its convolutions once a shape and takes the fastest
            yield
        finally:
            torch.set_float32_matmul_precision(before[0])
            cudnn.allow_tf32 = before[1]
            cudnn.benchmark = before[2]


def check_samples(samples: Sequence[TupleData], rows: int, task: Task | None = None) -> None:
    """Raise `UserError` unless samples name existing rows, and fit the task that trains on them
    together.
    """
    for sample in samples:
        for name, indices, least in (
            ("tuples", sample.tuples, -1),
            ("unlabeled rows", sample.unlabeled, 0),
        ):
            if (
                not isinstance(indices, np.ndarray)
                or indices.ndim != 1 - least
                or indices.dtype.kind not in "iu"
            ):
                raise UserError(
                    f"the sample's {name} are no array of integers with {1 - least} axes"
                )
            if not indices.size:
                raise UserError(f"the sample holds no {name}")
            if indices.min() < least or indices.max() >= rows:
                raise UserError(
                    f"the sample's {name} name rows that do not exist; there are {rows}"
                )
        present = sample.tuples >= 0
        if not present[:, 0].all() or (present[:, 1:] > present[:, :-1]).any():
            raise UserError("a tuple of the sample has no member, or has -1 before its last member")
        if task is None:
            continue
        if not present.all() and task.law is not None:
            raise UserError("a law is for tuples of one size, but the sample's tuples have several")
        if not present.all() and not load_method(task.method).takes_ragged:
            raise UserError(
                f"method {task.method} learns from tuples of one size, but there are several; take "
                "another"
            )
        if sample.tuples.shape[1] != task.tuple_size or (
            task.law is not None and task.law.size != task.tuple_size
        ):
            law = "" if task.law is None else f", and the law is for {task.law.size}"
            raise UserError(
                f"tuple_size is {task.tuple_size}, but the tuples hold {sample.tuples.shape[1]} "
                f"rows{law}"
            )
        if (len(sample.tuples), len(sample.unlabeled)) != (
            len(samples[0].tuples),
            len(samples[0].unlabeled),
        ):
            raise UserError(
                "samples that train together must have equal numbers of tuples and of unlabeled "
                "rows"
            )


def _fit(
    task: Task,
    images: Any,
    samples: Any,
    seeds: Any,
    labels: Any,
    epochs: int,
    evaluation: Any,
    hook: Any,
) -> list[Trained]:
    """Fit a method without a network; its history has the same measures at every epoch, as lines in
    figures need.
    """
    rows = []
    trained = []
    for sample, seed in zip(samples, seeds, strict=True):
        objective, says_positive = named(load_method(task.method).fit)(
            task, seed, sample, images, labels
        )
        rows.append({"objective": float(objective)})
        if evaluation:
            answers = says_positive(evaluation.images)
            positive = evaluation.labels > 0
            rates = answers[positive].mean(), 1 - answers[~positive].mean()
            rows[-1] |= dict(zip(evaluation.rates, map(float, rates), strict=True))
        table = _table(list(rows[-1]), [list(rows[-1].values())] * epochs)
        trained.append(Trained(task, seed, says_positive, None, table))
    for epoch in range(1, epochs + 1):
        if hook and hook(epoch, rows):
            break
    return trained


def _table(names: Sequence[str], rows: Sequence[Sequence[float]]) -> pd.DataFrame:
    """Return measures (epochs, names) as a table with the epoch, from 1, and gaps once training has
    diverged.
    """
    values = np.array(rows, np.float64)
    values[np.cumsum(~np.isfinite(values[:, 0])) > 0] = np.nan
    table = pd.DataFrame(values, columns=list(names))
    table.insert(0, "epoch", np.arange(1, len(table) + 1))
    return table
