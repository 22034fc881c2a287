"""Time the trainer against an ordinary loop, in pairs of one invocation, on MNIST-sized images.

The ordinary loop is what peers write: a DataLoader over tensors, float32, torch.optim.Adam, an
evaluation after every epoch. Both train URE, ReLU and ABS on pairs at prior 0.5, n = n_unlabeled =
10,000, one run after the other, on one thread, whose processor time counts. Epochs of both
alternate, so that other work on the machine slows both alike; the first of each is warm-up. An
epoch of the trainer costs less where a corrected risk is flat, so the figure is the mean over a
whole training.

    python benchmarks/training_speed.py --epochs 10                                # on drawn images
    python benchmarks/training_speed.py --images results/datasets/mnist.npz --epochs 100

``--epochs 20 --out results/reference/speed.csv`` writes the one file from which the documents have
these seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from shared import LabelledImages, accuracies_of
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from mdpu.data import TupleData, draw_split
from mdpu.law import Law
from mdpu.losses import LOSSES
from mdpu.pipeline.device import describe
from mdpu.randomness import Stream
from mdpu.settings import Settings, Task
from mdpu.train import train

N = 10_000
# How each method corrects the risk.
METHODS: dict[str, Callable[[Tensor], Tensor]] = {
    "ure": lambda risk: risk,
    "relu": lambda risk: risk.clamp(min=0),
    "abs": lambda risk: risk.abs(),
}
Hook = Callable[[], None]


class Job(NamedTuple):
    """What both loops train."""

    method: str
    sample: TupleData
    data: LabelledImages
    epochs: int


def drawn_images() -> LabelledImages:
    """Return 60,000 and 10,000 grey images of two overlapping classes with a black frame."""
    stream = Stream(1, "images of the benchmark")
    side = (stream.uniform(70_000) < 0.5).astype(int)
    strokes = stream.uniform(2, 24, 24) < 0.25  # a pattern for each side
    images = speckles(stream)
    images += 60 * strokes[side] * stream.uniform(70_000, 1, 1)

    images = np.clip(images, 0, 255).astype(np.uint8)
    images = np.pad(images, ((0, 0), (2, 2), (2, 2)))
    labels = np.array([-1, 1], np.int8)[side]
    return LabelledImages(
        images[:60_000],
        labels[:60_000],
        images[60_000:],
        labels[60_000:],
    )


def speckles(stream: Stream) -> np.ndarray:
    """Return images (70,000, 24, 24) in which a fifth of the pixels are grey at random."""
    shades = stream.uniform(70_000, 24, 24)
    visible = stream.uniform(70_000, 24, 24) < 0.2
    return 255 * shades * visible


# -- the two loops: each returns the accuracy of the last epoch ------------------------------------


def train_ordinarily(job: Job, after_epoch: Hook) -> float:
    """Train by an ordinary loop."""
    images = as_rows(job.data.train_images)
    test = as_rows(job.data.test_images)
    positive = torch.from_numpy(job.data.test_labels > 0)

    layers = [nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 1)]
    model = nn.Sequential(*layers, nn.Flatten(0))
    adam = torch.optim.Adam(model.parameters(), lr=0.001, weight_decay=0.0005)
    weights = Law.dominant(2).risk_weights(0.5)

    order = torch.Generator().manual_seed(1)  # the trainer seeds torch's own at every epoch
    batches = {"batch_size": 3000, "shuffle": True, "generator": order}
    tuples = DataLoader(TensorDataset(images[job.sample.tuples]), **batches)
    unlabeled = DataLoader(TensorDataset(images[job.sample.unlabeled]), **batches)

    for _ in range(job.epochs):
        for (some_tuples,), (some_unlabeled,) in zip(tuples, unlabeled, strict=True):
            members = some_tuples.flatten(0, 1)
            risk = risk_of(model(members), model(some_unlabeled), weights)
            adam.zero_grad()
            METHODS[job.method](risk).backward()
            adam.step()

        with torch.no_grad():
            right = (model(test) > 0) == positive
        accuracy = right.float().mean().item()
        after_epoch()
    return accuracy


def as_rows(images: np.ndarray) -> Tensor:
    """Return images as rows (N, pixels) from 0 to 1."""
    return torch.from_numpy(images).float().flatten(1).div(255)


def risk_of(members: Tensor, unlabeled: Tensor, weights: Sequence[float]) -> Tensor:
    """Return the weighted risk of a minibatch by the scores of members and of unlabeled images."""
    loss = LOSSES["logistic"]
    means = [
        loss(members, 1).mean(),
        loss(members, -1).mean(),
        loss(unlabeled, 1).mean(),
        loss(unlabeled, -1).mean(),
    ]
    return sum(weight * mean for weight, mean in zip(weights, means, strict=True))


def train_by_mdpu(job: Job, after_epoch: Hook) -> float:
    """Train by the trainer."""
    test = job.data.test_set()
    [trained] = train(
        Task(job.method, 2, 0.5),
        job.data.train_images,
        [job.sample],
        [1],
        Settings(epochs=job.epochs),
        evaluation=test,
        on_epoch_end=lambda *_: after_epoch(),
    )
    return float(accuracies_of(trained.history, test).iloc[-1])


LOOPS = {"ordinary": train_ordinarily, "plain": train_by_mdpu}


# -- in turns -------------------------------------------------------------------------------------


class Turns:
    """A turn that goes from thread to thread, by their names, until they are over."""

    def __init__(self, names: Iterable[str]) -> None:
        self._waiting = threading.Condition()
        self._names = list(names)
        self._turn = self._names[0]

    def wait(self, name: str) -> None:
        """Wait until it is the turn of a thread."""
        with self._waiting:
            self._waiting.wait_for(lambda: self._turn == name)

    def pass_on(self, name: str, over: bool = False) -> None:
        """Give the turn to the next thread that is not over."""
        with self._waiting:
            place = self._names.index(name)
            following = [*self._names[place + 1 :], *self._names[:place]]
            self._turn = following[0] if following else name
            if over:
                self._names.remove(name)
            self._waiting.notify_all()


def in_turns(loops: dict[str, Callable[[Hook], float]]) -> dict[str, tuple[float, list[float]]]:
    """Run loops an epoch each in turn.

    Returns what each loop returns, and the seconds of its epochs without the first.
    """
    turns = Turns(loops)
    results = {}

    def run(name: str) -> None:
        torch.set_num_threads(1)
        seconds: list[float] = []

        def after_epoch() -> None:
            nonlocal begun
            seconds.append(time.thread_time() - begun)
            turns.pass_on(name)
            turns.wait(name)
            begun = time.thread_time()

        turns.wait(name)
        begun = time.thread_time()
        accuracy = loops[name](after_epoch)
        results[name] = (accuracy, seconds[1:])
        turns.pass_on(name, over=True)

    threads = [threading.Thread(target=run, args=(name,)) for name in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def compare(job: Job) -> dict[str, Any]:
    """Return the seconds and accuracies of both loops, and the factor between the seconds."""
    means = {}
    accuracies = {}
    results = in_turns({name: partial(loop, job) for name, loop in LOOPS.items()})
    for name, (accuracy, seconds) in results.items():
        means[name] = statistics.mean(seconds)
        accuracies[name] = round(accuracy, 4)
    return {
        "seconds an epoch": {name: round(mean, 3) for name, mean in means.items()},
        "factor": round(means["ordinary"] / means["plain"], 2),
        "accuracy": accuracies,
    }


def main() -> None:
    """Print the figures of each method as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--images", help="prepared grey images; without it, they are drawn")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, help="a CSV file for the seconds")
    arguments = parser.parse_args()

    data = LabelledImages.read(arguments.images) if arguments.images else drawn_images()
    sample = draw_split(data.train_labels, 2, 0.5, N, N, 1)
    about = {"epochs": arguments.epochs, "device": describe(torch.device("cpu"))}
    figures = {method: compare(Job(method, sample, data, arguments.epochs)) for method in METHODS}
    print(json.dumps(about | figures, indent=2))
    if arguments.out:
        write_seconds(arguments.out, figures, about)


def write_seconds(path: Path, figures: dict[str, dict[str, Any]], about: dict[str, Any]) -> None:
    """Write the seconds of an epoch by loop and method."""
    rows = []
    for loop in LOOPS:
        for method, figure in figures.items():
            seconds = round(figure["seconds an epoch"][loop], 2)
            row = {"loop": loop, "method": method, "epochs": about["epochs"], "seconds": seconds}
            rows.append({**row, "device": about["device"]})
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main()
