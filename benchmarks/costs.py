"""Processor seconds and memory of a fit by the number of groups: pairs of a table of ten columns.

Each fit runs in a process of its own, on one thread; its memory is the most that the process held beyond the most that
it had held before, which says nothing where making the rows took more. The prior is told, and compared with the data,
as it is by default. The student ends at 100,000; beyond 20,000 ``auto`` is the network.

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

MOST = {"linear": 10**6, "student": 10**5, "network": 10**6, "auto": 10**5}


def fit(learner, n):
    """Return processor seconds, GiB and what was trained."""
    warnings.simplefilter("ignore")
    rows, sides = make_classification(10 * n, 10, n_informative=6, random_state=0)
    split = draw_split((2 * sides - 1).astype("int8"), 2, prior=0.4, n=n, n_unlabeled=n, trial=0)
    classifier = MDPUClassifier(0.4, learner=learner, random_state=0)
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    classifier.fit(rows, split)
    seconds, after = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": round(seconds, 1),
        "gib": round((after - before) / 2**20, 2),
        "trained": classifier.learner_.name,
    }


def main():
    """Write a line for each learner and number, as they are made."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results/reference/costs.csv"))
    parser.add_argument("--numbers", nargs="+", type=int, default=[10**3, 10**4, 10**5, 10**6])
    arguments, lines = parser.parse_args(), []
    for n in arguments.numbers:
        for learner in (name for name, most in MOST.items() if n <= most):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                lines.append({"learner": learner, "n": n, **pool.apply(fit, (learner, n))})
            pd.DataFrame(lines).to_csv(arguments.out, index=False)
            print(lines[-1], flush=True)


if __name__ == "__main__":
    main()
