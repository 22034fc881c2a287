"""Learners of `MDPUClassifier` on tables: told the prior, without it, and beside labels.

Each line is a setting: a table, the tuple size, the prior, the number of tuples and of unlabeled rows. Accuracies in %
are means over the trials, on rows set aside and weighted to the prior. ``default`` has no prior; in brackets is how
often `fit` refused, and the mean is over the others. ``labels`` is gradient boosting on the unlabeled rows with their
labels, ``constant`` the larger class. Seconds are those of ``default`` on one thread.

    OMP_NUM_THREADS=1 python benchmarks/learners.py --magic magic_train.csv --trials 2
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from tables import NAMES, Table

from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier
from mdpu.learn import Sample

SETTINGS = [
    ("magic", 2, 0.35, 1000),
    ("cancer", 3, 0.5, 200),
    ("digits", 3, 0.4, 600),
    ("magic", 3, 0.5, 1000),
    ("cancer", 2, 0.35, 200),
    ("digits", 2, 0.4, 200),
    ("magic", 2, 0.35, 200),
    ("magic", 2, 0.8, 1000),
    ("magic", 5, 0.35, 1000),
    ("magic", 2, 0.6, 1000),
]
LEARNERS = ("student", "linear", "trees", "network")


def main():
    """Print a line of a Markdown table for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--magic", required=True)
    parser.add_argument("--tables", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--learners", nargs="+", default=LEARNERS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = ("table", "M", "prior", "n", "default", *arguments.learners, "labels", "constant", "s")
    print(f"| {' | '.join(columns)} |\n| --- {'| ---: ' * (len(columns) - 1)}|")
    for name, size, prior, n in (setting for setting in SETTINGS if setting[0] in arguments.tables):
        table, seconds, refused = Table.read(name, arguments.magic), [], 0
        reached = {column: [] for column in ("default", *arguments.learners, "labels")}
        for trial in range(arguments.trials):
            tuples, unlabeled, test = table.draw("dominant", size, prior, n, n, trial)
            sample, begun = Sample(tuples, unlabeled), time.process_time()
            try:
                default = MDPUClassifier(random_state=trial).fit(table.rows, sample)
                reached["default"].append(table.accuracy(default.predict(table.rows[test]), test, prior))
            except UserError:
                refused += 1
            seconds.append(time.process_time() - begun)
            for learner in arguments.learners:
                told = MDPUClassifier(prior, learner=learner, compare_prior=False, random_state=trial, device="cpu")
                answers = told.fit(table.rows, sample).predict(table.rows[test])
                reached[learner].append(table.accuracy(answers, test, prior))
            supervised = HistGradientBoostingClassifier().fit(table.rows[unlabeled], table.labels[unlabeled])
            reached["labels"].append(table.accuracy(supervised.predict(table.rows[test]), test, prior))
        cells = [f"{np.mean(values):.1f}" if values else "-" for values in reached.values()]
        cells[0] += f" ({refused})"
        cells += [f"{100 * max(prior, 1 - prior):.1f}", f"{np.mean(seconds):.1f}"]
        print(f"| {name} | {size} | {prior} | {n} |", *(f"{cell} |" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
