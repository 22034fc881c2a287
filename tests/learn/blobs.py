"""Small trainings on images of two overlapping classes, made here."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mdpu.data import TupleData, draw_split
from mdpu.learn.device import choose_policy
from mdpu.learn.evaluation import TestRates
from mdpu.learn.networks import load_network
from mdpu.learn.task import Settings, Task
from mdpu.learn.trainer import TrainingData, train_stack
from mdpu.randomness import Stream

CPU, GPU = torch.device("cpu"), torch.device("cuda")
SIDE, EPOCHS = 6, 4
SETTINGS = Settings(
    epochs=EPOCHS,
    batch_size=25,
    learning_rate=0.002,
    weight_decay=0.01,
    precision="fp32",
    architecture={"hidden": [20, 12]},
)


@dataclass(frozen=True)
class Blobs:
    """Images (N, SIDE, SIDE), uint8, and their labels, +1 or -1, to train on and to test with."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int8]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int8]

    def rates(self) -> TestRates:
        """Return an evaluation on the test images."""
        return TestRates(self.test_images, self.test_labels, self.images, self.labels)


def draw_blobs(part, n):
    """Draw grey noise in a black frame, brighter on the left for one class and on the right for the other."""
    labels = np.where(np.arange(n) % 5 < 2, 1, -1).astype(np.int8)
    noise = Stream(1, f"{part} images").uniform(n, SIDE - 2, SIDE - 2)
    columns = np.where(np.arange(SIDE - 2) < SIDE // 2 - 1, 1, -1)
    inner = (90 + 40 * columns * labels[:, None, None] + 60 * noise).astype(np.uint8)
    return np.pad(inner, ((0, 0), (1, 1), (1, 1))), labels


def make_tasks(
    priors=(0.4, 0.6), methods=("ure", "abs", "relu-part"), losses=("logistic", "ramp"), seeds=(1, 2), **others
):
    """Return tasks on pairs; those of one prior and seed share a sample."""
    points = itertools.product(priors, methods, losses, seeds)
    return [
        Task(method, 2, prior, loss, seed, f"prior{prior}/seed{seed}", **others) for prior, method, loss, seed in points
    ]


def draw_sample(labels, prior, seed, tuples=60, unlabeled=77):
    """Return a sample of pairs; ragged on purpose: 60 of them in minibatches of 25, beside 77 unlabeled images."""
    split = draw_split(labels, 2, prior, tuples, unlabeled, seed)
    return TupleData(split.tuples, split.unlabeled)


def prepared(blobs, samples, device=CPU, network="mlp"):
    """Return the training data and the evaluation of stacks, as `fit` prepares them."""
    preparation = load_network(network).prepare(blobs.images)
    rates = blobs.rates()
    rates.prepare(preparation, device)
    labels = torch.from_numpy(blobs.labels).to(device)
    return TrainingData(preparation(blobs.images).to(device), preparation, samples, labels), rates


def complete(job, advance=lambda yielded: None):
    """Run a generator to its end: call `advance` with what it yields, and return what it returns."""
    while True:
        try:
            advance(next(job))
        except StopIteration as end:
            return end.value


class Trainer:
    """Trains stacks of one set of images and samples, without `fit` around them."""

    def __init__(self, blobs, samples):
        self.data, self.rates = prepared(blobs, samples)

    def epochs(self, stack, settings=SETTINGS, checkpoint=None):
        """Return the generator of a stack's epochs."""
        policy = choose_policy(CPU, settings.precision)
        return train_stack(stack, settings, self.data, policy, self.rates, checkpoint)

    def histories(self, stack, settings=SETTINGS, checkpoint=None, advance=lambda done: None):
        """Return the histories of a stack by task."""
        return complete(self.epochs(stack, settings, checkpoint), advance).histories

    def alone(self, task, settings=SETTINGS):
        """Return the history of a task that trains alone."""
        return self.histories(((task,),), settings)[task]


def assert_same_history(history, expected, tolerance=0.0):
    """Compare two histories, number by number: bit for bit, unless a tolerance is given."""
    assert list(history.columns) == list(expected.columns)
    np.testing.assert_allclose(history.to_numpy(float), expected.to_numpy(float), rtol=tolerance, atol=tolerance)
