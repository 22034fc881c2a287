"""Trains a cohort of runs as few, large tensor programs.

A cohort is cut into *stacks*: rectangles of K runs on each of S minibatch streams, where a stream is one
split, i.e. one prior and seed. How a cohort is cut depends on the device and never on the numbers: every
random number is derived from (seed, purpose, epoch), so a run's history is its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from mdpu.data.images import ImageSet
from mdpu.data.labels import Labels
from mdpu.data.splits import Split
from mdpu.experiment import Run, run_columns
from mdpu.learn.device import choose_dtype
from mdpu.learn.methods import load_method
from mdpu.learn.networks import Network, ResNet34, StackedMLP
from mdpu.learn.risk import RiskHead
from mdpu.randomness import Stream
from mdpu.theory import risk_weights

TERMS = ("tuple_positive", "tuple_negative", "unlabeled_positive", "unlabeled_negative")
MEASURES = ("objective", *(f"risk_{term}" for term in TERMS), "true_positive_rate", "true_negative_rate")

Stack = tuple[tuple[Run, ...], ...]  # (K, S)


@dataclass(frozen=True)
class TrainingData:
    """Images on the device, as uint8; test images without those that are left out.

    Attributes
    ----------
    train_images, test_images : Tensor, uint8, shape (N, d) for an MLP or (N, H, W, C) for a ResNet
    test_labels : Tensor, int8, shape (N,)
        +1 or -1.
    """

    train_images: Tensor
    test_images: Tensor
    test_labels: Tensor

    @classmethod
    def prepare(cls, images: ImageSet, labels: Labels, network: str, device: torch.device) -> TrainingData:
        """Put an image set and its labels on the device in the layout of `network`."""
        kept = labels["test"] != 0

        def layout(array: np.ndarray) -> Tensor:
            tensor = torch.from_numpy(array)
            if network == "mlp":
                return tensor.flatten(1).to(device)
            return (tensor if tensor.dim() == 4 else tensor.unsqueeze(-1)).to(device)

        return cls(
            layout(images.train_images),
            layout(images.test_images[kept]),
            torch.from_numpy(labels["test"][kept]).to(device),
        )


class Adam:
    """Adam (Kingma and Ba 2015) with a learning rate and a weight decay per run.

    Parameters
    ----------
    parameters : list of Tensor
        Updated in place.
    learning_rate, weight_decay : Tensor
        Of a shape that broadcasts against every parameter.
    decoupled : bool
        Weight decay apart from the gradient (AdamW) instead of as L2 penalty.
    """

    def __init__(
        self, parameters: list[Tensor], learning_rate: Tensor, weight_decay: Tensor, decoupled: bool = False
    ) -> None:
        self.parameters, self.learning_rate, self.weight_decay = parameters, learning_rate, weight_decay
        self.decoupled = decoupled
        self.first = [torch.zeros_like(parameter) for parameter in parameters]
        self.second = [torch.zeros_like(parameter) for parameter in parameters]
        self.steps = 0

    def step(self, gradients: list[Tensor], beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> None:
        """Update the parameters in place, given the gradient of each."""
        self.steps += 1
        rate = self.learning_rate / (1 - beta1**self.steps)
        correction = math.sqrt(1 - beta2**self.steps)
        for parameter, gradient, first, second in zip(self.parameters, gradients, self.first, self.second, strict=True):
            if self.decoupled:
                parameter.mul_(1 - self.learning_rate * self.weight_decay)
            else:
                gradient = gradient.addcmul(parameter, self.weight_decay)
            first.lerp_(gradient, 1 - beta1)
            second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            denominator = second.sqrt().div_(correction).add_(eps)
            parameter.sub_(first.div(denominator).mul_(rate))


def make_stacks(runs: Sequence[Run], network: str, device: torch.device) -> list[Stack]:
    """Cut runs into stacks: on a GPU as few as are rectangular, on a CPU one per stream, a ResNet alone."""
    if network != "mlp":
        return [((run,),) for run in runs]
    streams: dict[str, list[Run]] = {}
    for run in runs:
        streams.setdefault(run.split, []).append(run)
    if device.type == "cpu":
        return [tuple((run,) for run in stream) for stream in streams.values()]
    by_height: dict[int, list[list[Run]]] = {}
    for stream in streams.values():
        by_height.setdefault(len(stream), []).append(stream)
    return [tuple(zip(*group, strict=True)) for group in by_height.values()]


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
        yield of_tuples, unlabeled[:, start : max(stop, start + 1)]


def build_network(
    stack: Stack, settings: Mapping[str, Any], data: TrainingData, dtype: torch.dtype, device: torch.device
) -> Network:
    """Return the network of a stack with its initial weights."""
    if settings["network"] == "mlp":
        seeds = [[run.seed for run in row] for row in stack]
        return StackedMLP(seeds, data.train_images.shape[1], settings["hidden"], dtype, device)
    return ResNet34(stack[0][0].seed, settings["stem"], data.train_images.shape[3], dtype, device)


@torch.no_grad()
def train_stack(
    stack: Stack,
    settings: Mapping[str, Any],
    data: TrainingData,
    splits: Mapping[str, Split],
    device: torch.device,
    advance: Callable[[int], None] = lambda runs: None,
) -> dict[Run, pd.DataFrame]:
    """Train the runs of a stack and return their histories.

    Parameters
    ----------
    stack : Stack
        K x S runs; the runs of a column share their split.
    settings : mapping
        Training settings, as `mdpu.experiment.Plan.training` gives them.
    data : TrainingData
    splits : mapping from split name to Split
    device : torch.device
    advance : callable
        Called after every epoch with the number of runs.

    Returns
    -------
    dict from Run to DataFrame
        One row per epoch: the run's key columns, epoch (from 1), the measures, risk and accuracy. From
        the first epoch whose objective is not finite, the measures are missing.
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
    shape = (K, S, 1, 1) if settings["network"] == "mlp" else ()
    rate, decay = (
        torch.full((K, S), settings[key], device=device).view(shape) for key in ("learning_rate", "weight_decay")
    )
    adam = Adam(network.parameters, rate, decay, decoupled=settings["optimizer"] == "adamw")
    head = RiskHead(
        [load_method(run.method) for run in runs],
        [risk_weights(run.tuple_size, float(run.prior)) for run in runs],
        [run.loss for run in runs],
        device,
    )
    positive = data.test_labels > 0
    history = torch.zeros(settings["epochs"], K * S, len(MEASURES), device=device)
    for epoch, record in enumerate(history):
        for of_tuples, of_unlabeled in minibatches(seeds, tuples, unlabeled, batch, epoch):
            scores = network.forward(data.train_images[torch.cat([of_tuples, of_unlabeled], dim=1)])  # (K, S, rows)
            leaf = scores.flatten(0, 1).requires_grad_()  # (R, rows)
            with torch.enable_grad():
                objective, terms = head(*leaf.split([of_tuples.shape[1], of_unlabeled.shape[1]], dim=1))
                (gradient,) = torch.autograd.grad(objective.sum(), leaf)
            adam.step(network.backward(gradient.view_as(scores)))
            share = of_tuples.shape[1] / (n * tuple_size)
            record[:, 0] += share * objective.detach()
            record[:, 1:5] += share * terms.detach()
        says_positive = network.scores(data.test_images).flatten(0, 1) > 0  # (R, N)
        record[:, 5] = says_positive[:, positive].float().mean(dim=1)
        record[:, 6] = 1 - says_positive[:, ~positive].float().mean(dim=1)
        advance(K * S)
    share_positive = float(positive.float().mean())
    return {run: _frame(run, history[:, i].cpu().numpy(), share_positive) for i, run in enumerate(runs)}


def _frame(run: Run, measures: np.ndarray, share_positive: float) -> pd.DataFrame:
    """Return one run's history as a tidy table; `measures` is (epochs, len(MEASURES))."""
    values = measures.astype(np.float64)
    values[np.cumsum(~np.isfinite(values[:, 0])) > 0] = np.nan
    frame = pd.DataFrame(values, columns=list(MEASURES))
    frame.insert(0, "epoch", np.arange(1, len(frame) + 1))
    frame["risk"] = frame[[f"risk_{term}" for term in TERMS]].sum(axis=1, skipna=False)
    frame["accuracy"] = (
        share_positive * frame["true_positive_rate"] + (1 - share_positive) * frame["true_negative_rate"]
    )
    for position, (column, value) in enumerate(run_columns(run).items()):
        frame.insert(position, column, value)
    return frame


def train(
    runs: Sequence[Run],
    settings: Mapping[str, Any],
    data: TrainingData,
    splits: Mapping[str, Split],
    device: torch.device,
    finished: Callable[[Run, pd.DataFrame], None],
    advance: Callable[[int], None] = lambda runs: None,
) -> None:
    """Train runs that share settings and data, handing each history to `finished` as soon as it is whole."""
    for stack in make_stacks(runs, settings["network"], device):
        for run, history in train_stack(stack, settings, data, splits, device, advance).items():
            finished(run, history)
