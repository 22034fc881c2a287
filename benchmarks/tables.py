"""Labelled tables, and tuples of any law drawn from them, for the benchmarks of the classifier."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits

from mdpu.law import Law
from mdpu.randomness import Stream

NAMES = ("magic", "cancer", "digits")
# Laws by the tuple size: at least half are positive, exactly one is, all members are of one class.
LAWS = {
    "dominant": Law.dominant,
    "one": lambda size: Law.exactly(size, 1),
    "similar": Law.similar,
}


@dataclass(frozen=True)
class Table:
    """Rows (N, d) and their labels, +1 or -1; a third is set aside for tests."""

    rows: np.ndarray
    labels: np.ndarray

    @classmethod
    def read(cls, name, magic=None):
        """Return a table by name; `magic` is the CSV file of the MAGIC telescope, whose last column is the class."""
        if name == "magic":
            frame = pd.read_csv(magic)
            return cls(frame.iloc[:, :-1].to_numpy(float), np.where(frame.iloc[:, -1] == "g", 1, -1))
        rows, classes = {"cancer": load_breast_cancer, "digits": load_digits}[name](return_X_y=True)
        return cls(rows, np.where(classes == 1 if name == "cancer" else classes % 2 == 0, 1, -1))

    def draw(self, law, size, prior, n, n_unlabeled, trial):
        """Return indices: tuples (n, size) of a law, unlabeled rows, both with replacement, and rows for tests."""
        stream = Stream(trial, "benchmark of tables")
        order = stream.permutation(len(self.rows))
        test, pool = order[: len(order) // 3], order[len(order) // 3 :]
        of_class = {label: pool[self.labels[pool] == label] for label in (1, -1)}

        def rows_of(positive):
            place = stream.uniform(*positive.shape)
            chosen = [of_class[label][(place * len(of_class[label])).astype(int)] for label in (1, -1)]
            return np.where(positive, *chosen)

        weights, tuples = np.array(LAWS[law](size).weights), np.zeros((0, size), int)
        while len(tuples) < n:
            positive = stream.uniform(4 * n, size) < prior
            passes = stream.uniform(4 * n) < weights[positive.sum(axis=1)]
            tuples = np.concatenate([tuples, rows_of(positive[passes])])
        return tuples[:n], rows_of(stream.uniform(n_unlabeled) < prior), test

    def accuracy(self, answers, test, prior):
        """Return the accuracy in % of answers on test rows, weighted so that the share of positives is the prior."""
        truth = self.labels[test] > 0
        weights = np.where(truth, prior / truth.mean(), (1 - prior) / (1 - truth.mean()))
        return 100 * float(np.average((np.asarray(answers) > 0) == truth, weights=weights))
