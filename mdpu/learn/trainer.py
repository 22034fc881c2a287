"""Trains a cohort of runs as few, large tensor programs.

A cohort is cut into *stacks*: rectangles of K runs on each of S minibatch streams, where a stream is one
split, i.e. one prior and seed. How a cohort is cut depends on the device and never on the numbers: every
random number is derived from (seed, purpose, epoch), so a run's history is its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from mdpu.data.images import ImageSet
from mdpu.data.labels import Labels
from mdpu.data.splits import Split
from mdpu.errors import UserError
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.device import choose_dtype
from mdpu.learn.head import Batch, Head
from mdpu.learn.method import CorrectedRisk, FittedMethod, NetworkMethod
from mdpu.learn.methods import load_method
from mdpu.learn.networks import CHUNK, Network, ResNet34, StackedMLP, padded
from mdpu.learn.schedule import side_by_side
from mdpu.randomness import Stream
from mdpu.study.grid import Run, run_columns

TERMS = ("tuple_positive", "tuple_negative", "unlabeled_positive", "unlabeled_negative")
MEASURES = ("objective", *(f"risk_{term}" for term in TERMS), "true_positive_rate", "true_negative_rate")

Stack = tuple[tuple[Run, ...], ...]  # (K, S)
Rates = Mapping[Run, tuple[float, float]]  # learning rate and weight decay of runs that have their own


@dataclass(frozen=True)
class TrainingData:
    """Images on the device, as uint8; test images without those that are left out.

    Attributes
    ----------
    train_images, test_images : Tensor, uint8, shape (N, d) for an MLP or (N, H, W, C) for a ResNet
    test_labels : Tensor, int8, shape (N,)
        +1 or -1.
    train_labels : Tensor, int8, shape (N,), or None
        +1, -1 or 0, for the methods that see them or score by labelled prototypes; None where there
        are only methods that do neither.
    pixels : Tensor, int64, shape (d,), or None
        Which pixels of an image the rows of an MLP's images hold, and `image_size` their full number. A
        pixel that is 0 in every image (65 of MNIST's 784) cannot change a score and is left out.
    """

    train_images: Tensor
    test_images: Tensor
    test_labels: Tensor
    train_labels: Tensor | None
    pixels: Tensor | None = None
    image_size: int = 0

    @classmethod
    def prepare(cls, images: ImageSet, labels: Labels, network: str, device: torch.device) -> TrainingData:
        """Put an image set and its labels on the device in the layout of `network`."""
        kept = labels["test"] != 0

        train_images, test_images = torch.from_numpy(images.train_images), torch.from_numpy(images.test_images[kept])
        if network == "mlp":
            train_images, test_images = train_images.flatten(1), test_images.flatten(1)
            pixels = _pixels_in_use(train_images, test_images)
            train_images, test_images = train_images[:, pixels], test_images[:, pixels]
        elif train_images.dim() == 3:
            train_images, test_images = train_images.unsqueeze(-1), test_images.unsqueeze(-1)
        test_labels = torch.from_numpy(labels["test"][kept])
        return cls(
            train_images.to(device),
            test_images.to(device),
            test_labels.to(device),
            torch.from_numpy(labels["train"]).to(device) if "train" in labels else None,
            pixels if network == "mlp" else None,
            int(np.prod(images.train_images.shape[1:])),
        )


def _pixels_in_use(*images: Tensor) -> Tensor:
    """Return the columns that are not 0 everywhere."""
    return torch.stack([array.any(dim=0) for array in images]).any(dim=0).nonzero().squeeze(1)


def make_optimizer(
    parameters: Sequence[Tensor], stack: Stack, settings: Mapping[str, Any], rates: Rates
) -> tuple[torch.optim.Optimizer, list[tuple[int, int] | None]]:
    """Return torch's fused Adam, or AdamW where the settings decouple the weight decay.

    The parameters have the leading axes (K, S) if the stack holds more than one run.

    Returns
    -------
    optimizer : torch.optim.Optimizer
        One parameter group per part.
    parts : list
        What each group updates: None for all runs at once, where they share rate and decay, else the
        position (k, s) of a single run.
    """
    kind = torch.optim.AdamW if settings["optimizer"] == "adamw" else torch.optim.Adam
    default = settings["learning_rate"], settings["weight_decay"]
    wanted = {(k, s): rates.get(run, default) for k, row in enumerate(stack) for s, run in enumerate(row)}
    parts: list[tuple[int, int] | None] = [None] if len(set(wanted.values())) == 1 else list(wanted)
    groups = []
    for part in parts:
        rate, decay = wanted[part or (0, 0)]
        tensors = [parameter if part is None else parameter[part] for parameter in parameters]
        groups.append({"params": tensors, "lr": rate, "weight_decay": decay})
    return kind(groups, fused=True), parts


def make_stacks(
    runs: Sequence[Run], network: str, device: torch.device, fits: Callable[[int, int], bool] = lambda K, S: True
) -> list[Stack]:
    """Cut runs into stacks: on a GPU as few as are rectangular, on a CPU one per stream, a ResNet alone.

    The runs of a stack share their method's head.

    Parameters
    ----------
    runs : sequence of Run
    network : str
    device : torch.device
    fits : callable
        Whether a stack of K x S runs fits into memory; stacks that do not are halved until they do.
    """
    if network != "mlp":
        return [((run,),) for run in runs]
    streams: dict[tuple[Callable[..., Head], str], list[Run]] = {}
    for run in runs:
        streams.setdefault((_network_method(run).head, run.split), []).append(run)
    by_height: dict[object, list[list[Run]]] = {}
    for (head, split), stream in streams.items():
        by_height.setdefault((head, split if device.type == "cpu" else len(stream)), []).append(stream)
    stacks: list[Stack] = [tuple(zip(*group, strict=True)) for group in by_height.values()]
    done: list[Stack] = []
    while stacks:
        stack = stacks.pop(0)
        if fits(len(stack), len(stack[0])) or len(stack) == len(stack[0]) == 1:
            done.append(stack)
        else:
            stacks = [*halves(stack), *stacks]
    return done


def halves(stack: Stack) -> tuple[Stack, Stack]:
    """Cut a stack of more than one run in two, across its streams if it has several."""
    streams = len(stack[0])
    if streams > 1:
        return tuple(row[: streams // 2] for row in stack), tuple(row[streams // 2 :] for row in stack)
    return stack[: len(stack) // 2], stack[len(stack) // 2 :]


def stack_bytes(
    K: int, S: int, settings: Mapping[str, Any], tuple_size: int, n: int, n_unlabeled: int, d: int, outputs: int = 1
) -> int:
    """Estimate the memory of training K x S perceptrons, in bytes, all in float32."""
    batch = min(n, settings["batch_size"])
    rows = math.ceil(batch * (tuple_size + n_unlabeled / n))
    widths = [padded(units) for units in settings["hidden"]]
    weights = sum(inputs * units for inputs, units in itertools.pairwise([padded(d), *widths, outputs]))
    per_run = 6 * weights + 3 * max(rows, CHUNK) * (
        sum(widths) + outputs
    )  # weights: themselves, copy, gradient, Adam's two
    per_stream = 2 * rows * d + 2 * (n * tuple_size + n_unlabeled) + CHUNK * d
    return 4 * (K * S * per_run + S * per_stream)


def minibatches(
    seeds: Sequence[int], tuples: Tensor, unlabeled: Tensor, batch: int, epoch: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the image indices of each minibatch of an epoch.

    The number of minibatches is ceil(n / batch); the unlabeled images are spread over them evenly, so an
    epoch sees every tuple and every unlabeled image once.

    Parameters
    ----------
    seeds : sequence of int, length S
        Trial of each stream; streams of one trial are shuffled alike.
    tuples : Tensor, int64, shape (S, n, M)
    unlabeled : Tensor, int64, shape (S, n_unlabeled)
    batch : int
        Tuples per minibatch.
    epoch : int

    Yields
    ------
    of_tuples : Tensor, int64, shape (S, B * M)
    of_unlabeled : Tensor, int64, shape (S, B_U)
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
        of_tuples = tuples[:, step * batch : (step + 1) * batch].flatten(1)
        # Where unlabeled images are too few for every minibatch to get its own, one serves twice.
        start = min(start, n_unlabeled - 1)
        yield of_tuples, unlabeled[:, start : max(stop, start + 1)]


def build_network(
    stack: Stack, settings: Mapping[str, Any], data: TrainingData, dtype: torch.dtype, device: torch.device
) -> Network:
    """Return the network of a stack with its initial weights."""
    outputs = _network_method(stack[0][0]).outputs
    if settings["network"] == "mlp":
        seeds = [[run.seed for run in row] for row in stack]
        return StackedMLP(seeds, data.image_size, settings["hidden"], dtype, device, data.pixels, outputs)
    return ResNet34(stack[0][0].seed, settings["stem"], data.train_images.shape[3], dtype, device, outputs)


def _network_method(run: Run) -> CorrectedRisk | NetworkMethod:
    method = load_method(run.method)
    assert not isinstance(method, FittedMethod)
    return method


@torch.no_grad()
def stack_epochs(
    stack: Stack,
    settings: Mapping[str, Any],
    data: TrainingData,
    splits: Mapping[str, Split],
    device: torch.device,
    checkpoint: Checkpoint | None = None,
    rates: Rates = MappingProxyType({}),
) -> Generator[int, None, dict[Run, pd.DataFrame]]:
    """Train the runs of a stack, epoch by epoch, and return their histories.

    Parameters
    ----------
    stack : Stack
        K x S runs; the runs of a column share their split.
    settings : mapping
        Training settings, as `mdpu.study.protocol.Protocol.training` gives them.
    data : TrainingData
    splits : mapping from split name to Split
    device : torch.device
    checkpoint : Checkpoint, optional
        Where to take up training that was interrupted, and to save it from time to time.
    rates : mapping from Run to (learning rate, weight decay)
        Of the runs that do not follow the settings.

    Yields
    ------
    int
        After each epoch, the number of run-epochs done since the last time.

    Returns
    -------
    dict from Run to DataFrame
        One row per epoch, see `_frame`.
    """
    K, S = len(stack), len(stack[0])
    runs = [run for row in stack for run in row]
    of_stream = [splits[run.split] for run in stack[0]]
    seeds = [run.seed for run in stack[0]]
    tuples = torch.from_numpy(np.stack([split.tuples for split in of_stream])).to(device)  # (S, n, M)
    unlabeled = torch.from_numpy(np.stack([split.unlabeled for split in of_stream])).to(device)  # (S, n_U)
    n, tuple_size = tuples.shape[1:]
    batch = settings["batch_size"]
    if settings["batch_counts"] == "images":
        batch = max(1, batch // tuple_size)

    network = build_network(stack, settings, data, choose_dtype(settings["precision"], device), device)
    head = _network_method(runs[0]).head(runs, settings, device)
    train_labels = data.train_labels if _network_method(runs[0]).sees_labels else None
    of_head = [parameter.detach().unflatten(0, (K, S)) for parameter in head.parameters]
    optimizer, parts = make_optimizer([*network.parameters, *of_head], stack, settings, rates)
    history = torch.zeros(settings["epochs"], K * S, len(MEASURES), device=device)
    state = {**network.state(), **head.state()}
    start = checkpoint.restore(state, optimizer, history) if checkpoint else 0
    if start:
        yield K * S * start
    for epoch in range(start, settings["epochs"]):
        record = history[epoch]
        for of_tuples, of_unlabeled in minibatches(seeds, tuples, unlabeled, batch, epoch):
            rows = torch.cat([of_tuples, of_unlabeled], dim=1)  # (S, rows)
            images = data.train_images.index_select(0, rows.flatten()).unflatten(0, rows.shape)
            scores = network.forward(images)  # (K, S, rows) or (K, S, rows, outputs)
            leaf = scores.flatten(0, 1).requires_grad_()  # (R, rows, ...)
            labels = train_labels[rows].repeat(K, 1) if train_labels is not None else None  # (R, rows)
            with torch.enable_grad():
                objective, terms = head.objective(_batch(leaf, labels, of_tuples.shape[1], tuple_size))
                gradient, *head_gradients = torch.autograd.grad(objective.sum(), [leaf, *head.parameters])
            gradients = network.backward(gradient.view_as(scores))
            gradients += [of_parameter.unflatten(0, (K, S)) for of_parameter in head_gradients]
            for part, group in zip(parts, optimizer.param_groups, strict=True):
                for parameter, of_parameter in zip(group["params"], gradients, strict=True):
                    parameter.grad = of_parameter if part is None else of_parameter[part]
            optimizer.step()
            share = of_tuples.shape[1] / (n * tuple_size)
            record[:, 0] += share * objective.detach()
            record[:, 1:5] += torch.nan if terms is None else share * terms.detach()
        record[:, 5], record[:, 6] = head.rates(lambda images: network.scores(images).flatten(0, 1), data)
        if checkpoint and epoch + 1 < settings["epochs"]:
            checkpoint.save_if_due(state, optimizer, history, epoch + 1)
        yield K * S
    share_positive = float((data.test_labels > 0).float().mean())
    return {run: _frame(run, history[:, i].cpu().numpy(), share_positive) for i, run in enumerate(runs)}


def _batch(outputs: Tensor, labels: Tensor | None, members: int, tuple_size: int) -> Batch:
    """Return rows, `members` of tuples and the rest unlabeled, as heads take them."""

    def cut(rows: Tensor) -> tuple[Tensor, Tensor]:
        return rows[:, :members].unflatten(1, (-1, tuple_size)), rows[:, members:]

    return Batch(*cut(outputs), *(cut(labels) if labels is not None else ()))


def _frame(run: Run, measures: np.ndarray, share_positive: float) -> pd.DataFrame:
    """Return one run's history as a tidy table.

    Parameters
    ----------
    run : Run
    measures : ndarray, shape (epochs, len(MEASURES))
    share_positive : float
        Share of positives among the test images.

    Returns
    -------
    DataFrame
        One row per epoch: the run's key columns; epoch, from 1; the measures; risk; accuracy; and
        raw_accuracy, which differs from accuracy where the answers of an unnamed method are swapped to
        the better assignment, as its rates then are too. Risk terms are missing for a method that
        estimates no risk; from the first epoch whose objective is not finite, every measure is.
    """
    values = measures.astype(np.float64)
    values[np.cumsum(~np.isfinite(values[:, 0])) > 0] = np.nan
    frame = pd.DataFrame(values, columns=list(MEASURES))
    frame.insert(0, "epoch", np.arange(1, len(frame) + 1))
    frame["risk"] = frame[[f"risk_{term}" for term in TERMS]].sum(axis=1, skipna=False)
    rates = frame[["true_positive_rate", "true_negative_rate"]]
    share = np.array([share_positive, 1 - share_positive])
    frame["raw_accuracy"] = rates @ share
    if load_method(run.method).unnamed:
        frame[rates.columns] = rates.mask(frame["raw_accuracy"] < 0.5, 1 - rates)
    frame["accuracy"] = frame[rates.columns] @ share
    for position, (column, value) in enumerate(run_columns(run).items()):
        frame.insert(position, column, value)
    return frame


def fit_run(
    run: Run, method: FittedMethod, settings: Mapping[str, Any], data: TrainingData, split: Split
) -> pd.DataFrame:
    """Fit a method without a network and return its history: the same measures at every epoch.

    So the epochs that are averaged, and the lines of figures, are those of the methods it stands beside.
    """
    objective, true_positive_rate, true_negative_rate = method.fit(run, split, data)
    row = [objective, *[np.nan] * len(TERMS), true_positive_rate, true_negative_rate]
    return _frame(run, np.tile(row, (settings["epochs"], 1)), float((data.test_labels > 0).float().mean()))


def train(
    runs: Sequence[Run],
    settings: Mapping[str, Any],
    data: TrainingData,
    splits: Mapping[str, Split],
    device: torch.device,
    finished: Callable[[Run, pd.DataFrame], None],
    advance: Callable[[int], None] = lambda run_epochs: None,
    checkpoint_of: Callable[[Stack], Checkpoint | None] = lambda stack: None,
    memory: int | None = None,
    rates: Rates = MappingProxyType({}),
) -> None:
    """Train runs that share settings and data, handing over each history as soon as it is whole.

    Parameters
    ----------
    runs : sequence of Run
        Of one dataset, variant, tuple size and n.
    settings, data, splits, device, advance, rates
        As for `stack_epochs`, whose yields `advance` is called with.
    finished : callable
        Called with every run and its history.
    checkpoint_of : callable
        Gives the checkpoint of a stack, or None.
    memory : int, optional
        Bytes that a stack may take; a cohort that is larger trains in parts. Where an allocation on a GPU
        fails all the same, the stack is halved.

    Raises
    ------
    UserError
        If not even one run fits on the GPU, or a checkpoint is refused.
    """
    trained = []
    for run in runs:
        if isinstance(method := load_method(run.method), FittedMethod):
            finished(run, fit_run(run, method, settings, data, splits[run.split]))
            advance(settings["epochs"])
        else:
            trained.append(run)

    def needs(K: int, S: int) -> int:
        n, tuple_size = splits[runs[0].split].tuples.shape
        n_unlabeled = len(splits[runs[0].split].unlabeled)
        d, outputs = data.train_images.shape[1], max(_network_method(run).outputs for run in trained)
        return stack_bytes(K, S, settings, tuple_size, n, n_unlabeled, d, outputs)

    def fits(K: int, S: int) -> bool:
        return memory is None or settings["network"] != "mlp" or needs(K, S) <= memory

    def attempt(stack: Stack, checkpoint: Checkpoint | None) -> Generator[int, None, dict[Run, pd.DataFrame] | None]:
        try:
            return (yield from stack_epochs(stack, settings, data, splits, device, checkpoint, rates))
        except torch.OutOfMemoryError:
            return None

    stacks = make_stacks(trained, settings["network"], device, fits)
    workers = 1
    if device.type == "cpu" and settings["network"] == "mlp":
        largest = max((needs(len(stack), len(stack[0])) for stack in stacks), default=0)
        workers = workers_for(len(stacks), largest, memory)
    while stacks:
        checkpoints = {stack: checkpoint_of(stack) for stack in stacks}
        jobs = {stack: attempt(stack, checkpoint) for stack, checkpoint in checkpoints.items()}
        stacks = []
        with closing(side_by_side(jobs, workers)) as outcomes:
            for stack, outcome in outcomes:
                if isinstance(outcome, int):
                    advance(outcome)
                elif outcome is not None:
                    for run, history in outcome.items():
                        finished(run, history)
                    if checkpoint := checkpoints[stack]:
                        checkpoint.remove()
                elif len(stack) == len(stack[0]) == 1:
                    raise UserError(f"the GPU has too little memory for one run of {stack[0][0].name}")
                else:
                    torch.cuda.empty_cache()
                    stacks += halves(stack)


def workers_for(stacks: int, largest: int, memory: int | None) -> int:
    """Return how many stacks of perceptrons to train side by side on a CPU.

    As many as there are threads, since products of one thread lose nothing to waiting for another: a divisor of the
    threads, so that all of them work, and no more than there are stacks or than fit into memory.

    Parameters
    ----------
    stacks : int
        How many there are.
    largest : int
        Bytes of the largest.
    memory : int or None
        Bytes that all of them may take. `side_by_side` has up to 2 W - 1 of W workers under way.
    """
    threads = torch.get_num_threads()

    def possible(workers: int) -> bool:
        fit = memory is None or (min(stacks, 2 * workers - 1)) * largest <= memory
        return threads % workers == 0 and workers <= stacks and fit

    return max((workers for workers in range(2, threads + 1) if possible(workers)), default=1)
