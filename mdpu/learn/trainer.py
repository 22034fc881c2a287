"""Trains a stack of models as one tensor program: minibatches, forward, objective, backward, step.

A stack is a rectangle of K tasks on each of S streams of minibatches; a stream is one sample and seed. A task's numbers
do not depend on the other tasks: every random number is derived from (seed, purpose, epoch), and on a CPU the rest of
the stack does not affect rounding. There each product belongs to one model, each objective to one head, and one thread
computes every sum and every step, because the rounding of a sum depends on its number of parts, and that of a vector on
its start. On CPUs of one kind a history is therefore the same bit for bit, however the tasks are cut into stacks.
`mdpu.learn.reference` does the same for one task in the plainest way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.optim.adam import adam

from mdpu.data import TupleData
from mdpu.learn.evaluation import Evaluation
from mdpu.learn.head import Batch, Head
from mdpu.learn.method import CorrectedRisk, FittedMethod, NetworkMethod
from mdpu.learn.methods import load_method
from mdpu.learn.network import Network, Policy, Preparation
from mdpu.learn.networks import load_network
from mdpu.learn.risk import CorrectedRiskHead
from mdpu.learn.start import fading, linear_score
from mdpu.learn.task import Settings, Task, rate_factor, tuples_per_batch
from mdpu.randomness import Stream

if TYPE_CHECKING:
    from mdpu.learn.checkpoint import Checkpoint

Stack = tuple[tuple[Task, ...], ...]  # (K, S)


@dataclass(frozen=True)
class TrainingData:
    """What all stacks share.

    Attributes
    ----------
    images : Tensor, shape (N, ...), or InPlace
        What has ``index_select``, on the device, laid out for the network.
    preparation : Preparation
    samples : mapping from str to TupleData
        By the names that tasks have in `Task.sample`.
    labels : Tensor, int8, shape (N,), or None
        +1, -1 or 0, for methods that see them.
    priors : mapping from Task to float
        The estimated priors of tasks whose methods estimate one; they replace those of the tasks.
    """

    images: Any
    preparation: Preparation
    samples: Mapping[str, TupleData]
    labels: Tensor | None = None
    priors: Mapping[Task, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Trained:
    """A stack at the end of its training.

    Attributes
    ----------
    network : Network
        K x S models.
    histories : dict from Task to DataFrame
        A row per epoch: ``epoch``, from 1, ``objective`` and the measures of head and evaluation by name. From the
        first epoch whose objective is not finite, all are missing.
    """

    network: Network
    histories: dict[Task, pd.DataFrame]


def network_method(task: Task) -> CorrectedRisk | NetworkMethod:
    """Return the method of a task that trains a network."""
    method = load_method(task.method)
    assert not isinstance(method, FittedMethod)
    return method


def head_of(task: Task) -> Callable[..., Head]:
    """Return what makes a task's head. All corrected risks have one, so that their runs train in one stack."""
    method = network_method(task)
    return CorrectedRiskHead if isinstance(method, CorrectedRisk) else method.head


def make_heads(tasks: Sequence[Task], policy: Policy) -> list[Head]:
    """Return the heads of a stack: one for all tasks, or one for each."""
    make = head_of(tasks[0])
    return [make(tasks, policy.device)] if policy.shared_objective else [make([task], policy.device) for task in tasks]


class Adam:
    """Adam, or AdamW where weight decay is decoupled, as ``torch.optim.Adam(fused=True)`` computes it, bit for bit.

    The class of torch imports its compiler, which takes 1.9 s of every process; the function that it calls does not.

    Parameters
    ----------
    groups : sequence of (list of Tensor, float, float)
        Parameters with their learning rate and weight decay.
    decoupled : bool
    """

    def __init__(self, groups: Sequence[tuple[list[Tensor], float, float]], decoupled: bool) -> None:
        self.groups, self.decoupled = groups, decoupled
        self._moments = [
            [[torch.zeros_like(parameter) for parameter in parameters] for parameters, _, _ in groups] for _ in range(2)
        ]
        self._steps = [
            [torch.zeros((), dtype=torch.float32, device=parameter.device) for parameter in parameters]
            for parameters, _, _ in groups
        ]

    def state(self) -> dict[str, Tensor]:
        """Return what training changes, by name."""
        kinds = {"mean": self._moments[0], "square": self._moments[1], "step": self._steps}
        return {
            f"Adam {kind} {group} {place}": value
            for kind, groups in kinds.items()
            for group, values in enumerate(groups)
            for place, value in enumerate(values)
        }

    def step(self, gradients: Sequence[Sequence[Tensor]], factor: float = 1.0) -> None:
        """Change the parameters, given the gradients of each group and a factor of the learning rates."""
        for (parameters, rate, decay), own, means, squares, steps in zip(
            self.groups, gradients, *self._moments, self._steps, strict=True
        ):
            # The fused function pairs values by their place in memory, so strides must be equal.
            laid_out = [
                gradient if gradient.stride() == parameter.stride() else torch.empty_like(parameter).copy_(gradient)
                for parameter, gradient in zip(parameters, own, strict=True)
            ]
            adam(
                parameters,
                laid_out,
                means,
                squares,
                [],
                steps,
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=rate * factor,
                weight_decay=decay,
                eps=1e-8,
                maximize=False,
                decoupled_weight_decay=self.decoupled,
            )


def make_optimizer(
    network: Sequence[Tensor], heads: Sequence[Sequence[Tensor]], stack: Stack, settings: Settings
) -> tuple[Adam, list[tuple[int, int] | None]]:
    """Return Adam, or AdamW where the settings decouple the weight decay.

    Parameters
    ----------
    network : sequence of Tensor
        Parameters of the network, with the leading axes (K, S) if the stack holds more than one task.
    heads : sequence of sequence of Tensor
        Parameters of each head.
    stack : Stack
    settings : Settings

    Returns
    -------
    optimizer : Adam
        One parameter group per part.
    parts : list
        What each group updates, as `part_tensors` takes it: None for all tasks at once, where they share rate and
        decay, else the position (k, s) of a single one.
    """
    rates = {(k, s): task.rates(settings) for k, row in enumerate(stack) for s, task in enumerate(row)}
    parts: list[tuple[int, int] | None] = [None] if len(set(rates.values())) == 1 else list(rates)
    groups = [(part_tensors(part, network, heads, stack), *rates[part or (0, 0)]) for part in parts]
    return Adam(groups, decoupled=settings.optimizer == "adamw"), parts


def part_tensors(
    part: tuple[int, int] | None, network: Sequence[Tensor], heads: Sequence[Sequence[Tensor]], stack: Stack
) -> list[Tensor]:
    """Return the tensors of a part of the stack, its network's and its head's: parameters, or gradients of them."""
    if part is None:
        return [*network, *(tensor for head in heads for tensor in head)]
    k, s = part
    position = k * len(stack[0]) + s
    head = [tensor[position] for tensor in heads[0]] if len(heads) == 1 else heads[position]
    return [*(tensor[k, s] for tensor in network), *head]


def minibatches(
    seeds: Sequence[int | str], tuples: Tensor, unlabeled: Tensor, batch: int, epoch: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the image indices of each minibatch of an epoch.

    The number of minibatches is ceil(n / batch). The unlabeled images are spread over them evenly, so an
    epoch sees every tuple and every unlabeled image once.

    Parameters
    ----------
    seeds : sequence of int or str, length S
        Seed of each stream; streams of one seed are shuffled alike.
    tuples : Tensor, int64, shape (S, n, M)
    unlabeled : Tensor, int64, shape (S, n_unlabeled)
    batch : int
        Tuples per minibatch.
    epoch : int

    Yields
    ------
    members : Tensor, int64, shape (S, B * M)
    others : Tensor, int64, shape (S, B_U)
    """
    n, n_unlabeled = tuples.shape[1], unlabeled.shape[1]

    def order(purpose: str, size: int) -> Tensor:
        drawn = {seed: Stream(seed, purpose, epoch).permutation(size) for seed in set(seeds)}
        return torch.from_numpy(np.stack([drawn[seed] for seed in seeds])).to(tuples.device)

    tuples = torch.take_along_dim(tuples, order("tuple order", n).unsqueeze(-1), dim=1)
    unlabeled = torch.take_along_dim(unlabeled, order("unlabeled order", n_unlabeled), dim=1)
    steps = math.ceil(n / batch)
    for step in range(steps):
        start, stop = (round(edge * n_unlabeled / n) for edge in (step * batch, min(n, (step + 1) * batch)))
        members = tuples[:, step * batch : (step + 1) * batch].flatten(1)
        # With fewer unlabeled images than minibatches, an image is used twice.
        start = min(start, n_unlabeled - 1)
        yield members, unlabeled[:, start : max(stop, start + 1)]


@torch.no_grad()
def train_stack(
    stack: Stack,
    settings: Settings,
    data: TrainingData,
    policy: Policy,
    evaluation: Evaluation | None = None,
    checkpoint: Checkpoint | None = None,
) -> Generator[int, None, Trained]:
    """Train the tasks of a stack, epoch by epoch.

    Parameters
    ----------
    stack : Stack
        K x S tasks; those of a column share sample and seed, and all share tuple size and head.
    settings : Settings
    data : TrainingData
    policy : Policy
    evaluation : Evaluation, optional
        What is measured at the end of each epoch; its images are prepared.
    checkpoint : Checkpoint, optional
        Where to resume interrupted training, and where to save it from time to time.

    Yields
    ------
    int
        After each epoch, the number of task-epochs done since the last yield.

    Returns
    -------
    Trained
    """
    K, S, device = len(stack), len(stack[0]), policy.device
    tasks = [task for row in stack for task in row]
    samples = [data.samples[task.sample] for task in stack[0]]
    seeds = [task.seed for task in stack[0]]
    tuples = torch.from_numpy(np.stack([sample.tuples for sample in samples])).to(device)  # (S, n, M)
    unlabeled = torch.from_numpy(np.stack([sample.unlabeled for sample in samples])).to(device)  # (S, n_U)
    n, tuple_size = tuples.shape[1:]
    ragged = any(sample.is_ragged for sample in samples)
    batch = tuples_per_batch(settings, tuple_size)
    steps = math.ceil(n / batch)
    method = network_method(tasks[0])
    architecture = load_network(settings.network)
    network = architecture.build(
        [[task.seed for task in row] for row in stack],
        architecture.read(settings.architecture),
        data.preparation,
        method.outputs,
        policy,
    )
    told = [replace(task, prior=data.priors.get(task, task.prior)) for task in tasks]
    heads = make_heads(told, policy)
    lead = starting_scores(told, samples, data.images)
    labels_seen = data.labels if method.sees_labels else None
    names = ("objective", *heads[0].measures, *(evaluation.measures(heads[0]) if evaluation else ()))
    recorded = 1 + len(heads[0].measures)
    history = torch.zeros(settings.epochs, K * S, len(names), device=device)

    head_parameters = [[parameter.detach() for parameter in head.parameters] for head in heads]
    optimizer, parts = make_optimizer(network.parameters, head_parameters, stack, settings)
    head_state = {f"{place} {name}": value for place, head in enumerate(heads) for name, value in head.state().items()}
    mean = RunningMean([*network.parameters, *network.buffers], method.ema_decay)
    state = {**network.state(), **head_state, **mean.state(), **optimizer.state()}
    start = checkpoint.restore(state, history) if checkpoint else 0
    if start:
        yield K * S * start
    for epoch in range(start, settings.epochs):
        record = history[epoch]  # (R, names)
        for step, (members, others) in enumerate(minibatches(seeds, tuples, unlabeled, batch, epoch)):
            sizes = count_members(members, tuple_size).repeat(K, 1) if ragged else None  # (R, B)
            rows = torch.cat([members.clamp(min=0), others], dim=1)  # (S, rows)
            with policy.all_threads():
                images = data.images.index_select(0, rows.flatten()).unflatten(0, rows.shape)
            scores = network.forward(images)  # (K, S, rows) or (K, S, rows, outputs)
            if lead is not None and (weight := fading(epoch, settings.epochs)):
                scores = scores + weight * lead.gather(2, rows.expand(K, -1, -1))
            labels = labels_seen[rows].repeat(K, 1) if labels_seen is not None else None  # (R, rows)
            gradient, head_gradients = torch.empty_like(scores).flatten(0, 1), []  # (R, rows, ...)
            share = members.shape[1] / (n * tuple_size)
            for part, head in zip(rows_by_head(heads, K * S), heads, strict=True):
                leaf = scores.flatten(0, 1)[part].requires_grad_()
                own_labels, own_sizes = (None if values is None else values[part] for values in (labels, sizes))
                with torch.enable_grad():
                    objective, extra = head.objective(
                        cut_batch(leaf, own_labels, members.shape[1], tuple_size, own_sizes)
                    )
                    gradient[part], *own_gradients = torch.autograd.grad(objective.sum(), [leaf, *head.parameters])
                head_gradients.append(own_gradients)
                record[part, 0] += share * objective.detach()
                if extra is not None:
                    record[part, 1:recorded] += share * extra.detach()
            gradients = network.backward(gradient.view_as(scores))
            factor = rate_factor(settings, epoch * steps + step, settings.epochs * steps)
            optimizer.step([part_tensors(place, gradients, head_gradients, stack) for place in parts], factor)
            mean.update()
        if evaluation:
            outputs = once(lambda images: network.scores(images).flatten(0, 1))
            with mean.in_place():
                for part, head in zip(rows_by_head(heads, K * S), heads, strict=True):
                    record[part, recorded:] = evaluation(head, rows_of(outputs, part))
        if checkpoint:
            checkpoint.save_if_due(state, history, epoch + 1)
        yield K * S
    mean.exchange()
    return Trained(network, {task: make_history(names, history[:, i].cpu().numpy()) for i, task in enumerate(tasks)})


def starting_scores(tasks: Sequence[Task], samples: Sequence[TupleData], images: Any) -> Tensor | None:
    """Return the scores (K, S, N) that training starts from, or None where all start from the networks alone."""
    heads = [head_of(task)([task], images.device) for task in tasks]
    own = [linear_score(head, images, samples[i % len(samples)]) for i, head in enumerate(heads)]
    if all(score is None for score in own):
        return None
    zero = torch.zeros(len(images), device=images.device)
    return torch.stack([zero if score is None else score for score in own]).unflatten(0, (-1, len(samples)))


class RunningMean:
    """The running mean of weights, and of a network's buffers, over the steps, which some methods use as their model.

    At step t it keeps the share min(decay, (1 + t) / (10 + t)) of its past, so it soon forgets the first weights.

    Parameters
    ----------
    parameters : sequence of Tensor
        What training changes.
    decay : float
        In [0, 1); with 0 there is no mean, at no cost.
    """

    def __init__(self, parameters: Sequence[Tensor], decay: float) -> None:
        self.decay = decay
        self.parameters = list(parameters) if decay else []
        self.means = [parameter.clone() for parameter in self.parameters]
        self.steps = torch.zeros((), dtype=torch.int64)

    def state(self) -> dict[str, Tensor]:
        """Return what training changes, by name."""
        return {"steps of the mean": self.steps} | {f"mean {place}": mean for place, mean in enumerate(self.means)}

    def update(self) -> None:
        """Include the weights of a step."""
        steps = int(self.steps)
        new = 1 - min(self.decay, (1 + steps) / (10 + steps))
        for mean, parameter in zip(self.means, self.parameters, strict=True):
            mean.lerp_(parameter, new)
        self.steps += 1

    def exchange(self) -> None:
        """Exchange the mean and the weights."""
        for mean, parameter in zip(self.means, self.parameters, strict=True):
            kept = parameter.clone()
            parameter.copy_(mean)
            mean.copy_(kept)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the mean as the weights within the block."""
        self.exchange()
        try:
            yield
        finally:
            self.exchange()


def rows_by_head(heads: Sequence[Head], count: int) -> list[slice]:
    """Return the rows of each head among those of `count` tasks."""
    height = count // len(heads)
    return [slice(start, start + height) for start in range(0, count, height)]


def rows_of(outputs: Callable[[Tensor], Tensor], part: slice) -> Callable[[Tensor], Tensor]:
    """Return a function that returns the outputs of only some tasks."""
    return lambda images: outputs(images)[part]


def once(outputs: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a function that keeps its last outputs, in case the same images come again."""
    last: list[Tensor] = []

    def kept(images: Tensor) -> Tensor:
        if not last or last[0] is not images:
            last[:] = [images, outputs(images)]
        return last[1]

    return kept


def count_members(members: Tensor, tuple_size: int) -> Tensor:
    """Return the number of members of each tuple, (S, B), from indices (S, B * M) that are -1 where there is none."""
    return (members.unflatten(1, (-1, tuple_size)) >= 0).sum(dim=2)


def cut_batch(
    outputs: Tensor, labels: Tensor | None, count: int, tuple_size: int, sizes: Tensor | None = None
) -> Batch:
    """Return rows, the first `count` of tuples and the rest unlabeled, as a batch for heads."""

    def cut(rows: Tensor) -> tuple[Tensor, Tensor]:
        return rows[:, :count].unflatten(1, (-1, tuple_size)), rows[:, count:]

    tuple_labels, unlabeled_labels = cut(labels) if labels is not None else (None, None)
    return Batch(*cut(outputs), tuple_labels, unlabeled_labels, sizes)


def make_history(names: Sequence[str], measures: np.ndarray) -> pd.DataFrame:
    """Return measures (epochs, names), the objective first, as a table with the epoch."""
    values = measures.astype(np.float64)
    values[np.cumsum(~np.isfinite(values[:, 0])) > 0] = np.nan
    history = pd.DataFrame(values, columns=list(names))
    history.insert(0, "epoch", np.arange(1, len(history) + 1))
    return history
