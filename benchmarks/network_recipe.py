"""The default network of the classifiers: one-cycle beside 100 epochs at a constant rate, and where training is hard.

    python benchmarks/network_recipe.py size --images results/datasets/{mnist,fashion-mnist,emnist-letters}.npz
    python benchmarks/network_recipe.py broken singular --images results/datasets/{mnist,fashion-mnist}.npz

Each adds rows to results/reference/recipe.csv, of which `docs/tables.py` makes tables: accuracies on the test images in
%, and processor seconds on one thread. ``size`` takes pairs and triples at prior 0.5, ``broken`` triples of which 20 %
break the rule, told the share or not, and ``singular`` triples with exactly one positive at prior 1/3.
"""

import argparse
import csv
import itertools
import warnings
from pathlib import Path

import torch
from loops import CLASSES, accuracy, timed
from shared import Labelled

from mdpu import estimator
from mdpu.data import TupleData, draw_split
from mdpu.estimator import MDPUClassifier, TupleClassifier
from mdpu.law import Law

COLUMNS = ("what", "dataset", "tuple_size", "prior", "n", "trial", "recipe", "accuracy", "cpu_seconds", "share")


def size(sizes):
    """Return the cases that compare both recipes, by the number of tuples."""
    for n, M in itertools.product(sizes, (2, 3)):
        for kind, options in (("one-cycle", {}), ("constant", {"warm_start": True})):
            yield kind, Law.dominant(M), n, MDPUClassifier(0.5, **options)


def broken(sizes):
    """Return the cases of broken triples, told the share, and not."""
    for n, share in itertools.product(sizes, (0.2, "estimate")):
        yield f"told {share}", Law.dominant(3).broken(0.2), n, MDPUClassifier(0.5, broken=share)


def singular(sizes):
    """Return the case in which the class share of members is the prior."""
    law = Law.exactly(3, 1)
    for n in sizes:
        yield "one-cycle", law, n, TupleClassifier(1 / 3, law=law)


CASES = {case.__name__: case for case in (size, broken, singular)}


def main():
    """Read the arguments, train and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=CASES)
    parser.add_argument("--images", nargs="+", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/reference/recipe.csv"))
    parser.add_argument("--trials", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--n", type=int, nargs="+", default=[10_000])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    estimator.ONE_CYCLE_FROM = 0  # below the number from which on it is the default, too
    begins = not arguments.out.exists()
    with arguments.out.open("a", newline="", buffering=1) as opened:
        writer = csv.DictWriter(opened, COLUMNS, lineterminator="\n")
        if begins:
            writer.writeheader()
        for path, what, trial in itertools.product(arguments.images, arguments.what, arguments.trials):
            labelled = Labelled.read(path, *CLASSES.get(path.stem, ()))
            for recipe, law, n, classifier in CASES[what](arguments.n):
                drawn = draw_split(labelled.labels["train"], law, classifier.prior, n, n, trial)
                sample, images = TupleData(drawn.tuples, drawn.unlabeled), labelled.images.train_images
                classifier.set_params(random_state=trial, compare_prior=False, device="cpu")
                fitted, taken = timed(lambda given=(classifier, images, sample): given[0].fit(*given[1:]))
                row = {
                    "what": what,
                    "dataset": path.stem,
                    "tuple_size": law.size,
                    "prior": round(classifier.prior, 3),
                    "n": n,
                }
                row |= {"trial": trial, "recipe": recipe, "accuracy": accuracy(fitted.decision_function, labelled)}
                row |= {"cpu_seconds": taken["cpu_seconds"], "share": fitted.broken_}
                writer.writerow({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
