"""Would another base learner, other trees or sharper labels make a better student?

Draws are those of ``default_learner.py`` from its tables, with the prior given. A line of the CSV
is a draw: its setting, and for each way the accuracy in %, on rows set aside and weighted to the
prior, and processor seconds of the fit. Lines that the CSV has are kept. Prints by half how far
each way is from the student as it is.

    OMP_NUM_THREADS=1 python benchmarks/student_bases.py student.csv --keel PROCESSED --rounds 2
"""

import argparse
import time
import warnings
from pathlib import Path

import default_learner
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mdpu.errors import UserError
from mdpu.learners.network import Network
from mdpu.learners.student import DEFAULT, Linear, Student, Trees, fit_teacher

AS_IT_IS = "student"
TABLES = default_learner.KEEL + default_learner.TABLES


class Sharper(Trees):
    """Trees that learn from labels whose odds are squared."""

    def fit(self, X, y, sample_weight=None):
        """Fit rows that stand twice, first as positives and then as negatives."""
        positive, negative = np.split(sample_weight**2, 2)
        sharp = positive / (positive + negative)
        return super().fit(X, y, sample_weight=np.concatenate([sharp, 1 - sharp]))


def trees(**changes):
    """Return the trees of the default student, with changes."""
    return clone(DEFAULT).set_params(**changes)


class Teacher:
    """The kernel machine that teaches the student, alone."""

    def learn(self, sample, prior, seed):
        """Return its scores as a function of rows."""
        return fit_teacher(sample, prior, seed)


WAYS = {
    AS_IT_IS: Student(),
    "trees of 4 leaves": Student(trees(max_leaf_nodes=4)),
    "trees of 16 leaves": Student(trees(max_leaf_nodes=16)),
    "120 trees": Student(trees(max_iter=120)),
    "120 trees at half the rate": Student(trees(max_iter=120, learning_rate=0.05)),
    "sharper labels": Student(Sharper(**DEFAULT.get_params())),
    "random forest": Student(RandomForestClassifier(200, min_samples_leaf=5)),
    "logistic regression": Student(make_pipeline(StandardScaler(), LogisticRegression())),
    "teacher": Teacher(),
    "linear": Linear(),
    "network": Network(),
}


def measure(table, setting):
    """Return the accuracy and the seconds of each way on a draw."""
    sample, test = default_learner.drawn(table, setting)
    prior = setting["prior"]
    measures = {}
    for name, learner in WAYS.items():
        begun = time.process_time()
        scorer = learner.learn(sample, prior, setting["draw"])
        measures[f"{name}_s"] = time.process_time() - begun
        scores = np.ravel(scorer(table.rows[test]))
        measures[name] = default_learner.accuracy_of(scores, table.labels[test], prior)
    return measures


def show(lines):
    """Print how far each way is from the student as it is, by half of the sets."""
    draws = pd.DataFrame(lines)
    for half, of_half in draws.groupby("half"):
        lead = of_half[list(WAYS)].sub(of_half[AS_IT_IS], axis=0)
        summary = lead.agg(["mean", "sem", "min"]).T
        seconds = [of_half[f"{name}_s"].mean() for name in WAYS]
        print(f"half {half}, {len(of_half)} draws")
        print(summary.assign(seconds=seconds).round(2).to_string())


def main():
    """Write a line per draw as it is made, then print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--keel", type=Path, required=True, help="folder of KEEL's .npz files")
    parser.add_argument("--first", type=int, default=100, help="number of the first round")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")

    lines = pd.read_csv(arguments.out).to_dict("records") if arguments.out.exists() else []
    done = {(line["draw"], line["set"]) for line in lines}
    rounds = range(arguments.first, arguments.first + arguments.rounds)
    for setting in default_learner.draws(TABLES, rounds):
        if (setting["draw"], setting["set"]) in done:
            continue
        try:
            measures = measure(default_learner.read(setting["set"], arguments), setting)
        except UserError as error:
            print(f"{setting['set']}, draw {setting['draw']}: {error}")
            continue
        lines.append({**setting, **measures})
        pd.DataFrame(lines).round(4).to_csv(arguments.out, index=False)

    show(lines)


if __name__ == "__main__":
    main()
