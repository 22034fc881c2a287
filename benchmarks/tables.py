"""Labelled tables, texts and images, and tuples of any law drawn from them, for the benchmarks of the classifier."""

from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from natural import reviews
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

from mdpu.data import TupleData
from mdpu.law import Law
from mdpu.randomness import Stream

FILES = {"magic": "the CSV of MAGIC", "reviews": "the folder of review-sentences.txt", "mnist": "mnist.npz"}
IMAGES = 9000  # of MNIST
# What is positive among the classes, or targets, of scikit-learn's sets.
SETS = {
    "cancer": (load_breast_cancer, lambda classes: classes == 1),
    "digits": (load_digits, lambda classes: classes % 2 == 0),
    "wine": (load_wine, lambda classes: classes == 1),
    "diabetes": (load_diabetes, lambda progress: progress > 140),
}
LAWS = {"dominant": Law.dominant, "one": lambda size: Law.exactly(size, 1)}


def parser(description, out):
    """Return a parser with the files that the sets need, and the CSV."""
    arguments = ArgumentParser(description=description)
    arguments.add_argument("--out", type=Path, default=Path("results/reference") / out)
    for name, what in FILES.items():
        arguments.add_argument(f"--{name}", help=f"{what}; without it, this set is left out")
    return arguments


@dataclass(frozen=True)
class Table:
    """Rows (N, ...), dense or sparse, and their labels, +1 or -1; a third is set aside for tests."""

    rows: Any
    labels: np.ndarray

    @classmethod
    def read(cls, name, path=None):
        """Return a set by its name, from the path of its file where `FILES` has it."""
        if name == "magic":
            frame = pd.read_csv(path)
            rows, positive = frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1] == "g"
        elif name == "reviews":
            (natural,) = reviews(Path(path))
            rows, positive = natural.x, natural.labels
        elif name == "mnist":
            with np.load(path) as images:
                rows, positive = images["train_images"][:IMAGES], images["train_labels"][:IMAGES] % 2 == 0
        else:
            load, is_positive = SETS[name]
            rows, classes = load(return_X_y=True)
            positive = is_positive(classes)
        return cls(rows, np.where(positive, 1, -1))

    def split(self, trial):
        """Return the places of rows to draw from and of those that are set aside."""
        order = Stream(trial, "parts of a table").permutation(len(self.labels))
        return order[len(order) // 3 :], order[: len(order) // 3]

    def draw(self, places, laws, prior, n, stream):
        """Return n tuples, as many by each law, and n unlabeled rows, drawn from places with replacement."""
        of_class = [places[self.labels[places] == label] for label in (1, -1)]

        def rows_of(positive):
            chosen = stream.uniform(*positive.shape)
            return np.where(positive, *(own[(chosen * len(own)).astype(int)] for own in of_class))

        tuples = np.full((n, max(law.size for law in laws)), -1)
        for first, law in enumerate(laws):
            own = tuples[first :: len(laws), : law.size]
            own[:] = rows_of(law.draw(prior, len(own), stream) > 0)
        return TupleData(tuples, rows_of(stream.uniform(n) < prior))

    def accuracy(self, answers, test, prior):
        """Return the accuracy in % of answers on test rows, weighted so that the share of positives is the prior."""
        truth = self.labels[test] > 0
        weights = np.where(truth, prior / truth.mean(), (1 - prior) / (1 - truth.mean()))
        return 100 * float(np.average((np.asarray(answers) > 0) == truth, weights=weights))
