"""What the loops share: pairs of digits with an even member, unlabeled digits, a network."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from mdpu.data import TupleData, draw_split
from mdpu.law import Law

LAW = Law.dominant(2)
PRIOR = 0.5
TEST = slice(1200, None)  # the last 597 digits


def read(n: int = 800) -> tuple[np.ndarray, np.ndarray, TupleData, TupleData]:
    """Return images (1797, 8, 8) from 0 to 1, labels, data to learn from, and data to watch."""
    pixels, digits = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32).reshape(-1, 8, 8)
    labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)

    to_learn = labels.copy()
    to_learn[900:] = 0  # left out
    to_watch = labels.copy()
    to_watch[:900] = 0
    to_watch[TEST] = 0
    train = draw_split(to_learn, LAW, PRIOR, n, 2 * n, trial=0)
    held_out = draw_split(to_watch, LAW, PRIOR, n, 2 * n, trial=0)
    return images, labels, train, held_out


def perceptron() -> nn.Module:
    """Return a network from images (N, 8, 8) to scores (N,), log-odds."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 100),
        nn.ReLU(),
        nn.Linear(100, 1),
        nn.Flatten(0),
    )


def accuracy_of(scores: torch.Tensor, labels: np.ndarray) -> float:
    """Return the accuracy, from 0 to 1, of scores (1797,) on the digits that test."""
    answers = scores[TEST].numpy() > 0
    return float(np.mean(answers == (labels[TEST] > 0)))
