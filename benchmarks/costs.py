"""Processor seconds and memory of a fit by the number of groups: pairs of a table of ten columns.

Each fit runs in a process of its own, on one thread; its memory is the most that the process held
beyond the most that it had held before, which says nothing where making the rows took more. The
prior is told, and compared with the data, as it is by default. The student ends at 100,000.

    OMP_NUM_THREADS=1 python benchmarks/costs.py
"""

import argparse
import multiprocessing
import resource
import time
import warnings
from pathlib import Path

import pandas as pd
from sklearn.datasets import make_classification

from mdpu.data import draw_split
from mdpu.estimator import MDPUClassifier

NUMBERS = [10**3, 10**4, 10**5, 10**6]
# Each learner, and the most groups that it is timed on.
LEARNERS = {"linear": 10**6, "student": 10**5, "network": 10**6}


def fit(learner, n):
    """Return processor seconds, GiB and what was trained."""
    warnings.simplefilter("ignore")
    rows, sides = make_classification(10 * n, 10, n_informative=6, random_state=0)
    labels = (2 * sides - 1).astype("int8")
    split = draw_split(labels, 2, prior=0.4, n=n, n_unlabeled=n, trial=0)
    classifier = MDPUClassifier(0.4, learner=learner, random_state=0)

    held = most_memory()
    begun = time.process_time()
    classifier.fit(rows, split)
    seconds = time.process_time() - begun
    return {
        "seconds": round(seconds, 1),
        "gib": round(most_memory() - held, 2),
        "trained": classifier.learner_.name,
    }


def most_memory():
    """Return the most memory that this process has held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main():
    """Write a line for each learner and number, as they are made."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results/reference/costs.csv"))
    parser.add_argument("--numbers", nargs="+", type=int, default=NUMBERS)
    arguments = parser.parse_args()

    lines = []
    for n in arguments.numbers:
        for learner, most in LEARNERS.items():
            if n > most:
                continue
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                measures = pool.apply(fit, (learner, n))
            lines.append({"learner": learner, "n": n, **measures})
            pd.DataFrame(lines).to_csv(arguments.out, index=False)
            print(lines[-1], flush=True)


if __name__ == "__main__":
    main()
