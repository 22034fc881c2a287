"""How often the interval of the class prior covers, on tables, and how wide it is where the prior is said to be known.

Each line is a setting: a table, a law, the tuple size, the prior and the number of tuples, which is that of unlabeled
rows too. All constants of the method were frozen before.

    OMP_NUM_THREADS=1 python benchmarks/prior_coverage.py --magic magic_train.csv --repetitions 60
"""

import argparse
import time

import numpy as np
from tables import LAWS, NAMES, Table

from mdpu.learners.features import Standardisation, kernel_maps
from mdpu.learners.joint import Bags
from mdpu.learners.latent import estimate_prior

SETTINGS = [
    ("magic", "dominant", 2, 0.35, 1000),
    ("magic", "dominant", 2, 0.35, 200),
    ("magic", "dominant", 3, 0.5, 1000),
    ("cancer", "dominant", 2, 0.35, 200),
    ("digits", "dominant", 3, 0.4, 400),
    ("magic", "one", 3, 0.35, 1000),
    ("magic", "dominant", 2, 0.8, 1000),
    ("magic", "dominant", 5, 0.35, 1000),
]


def main():
    """Print a line of a Markdown table for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--magic", required=True)
    parser.add_argument("--tables", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--repetitions", type=int, default=60)
    arguments = parser.parse_args()
    print("| table | law | M | prior | n | covers | known | known that cover | width of the known | CPU s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, law, size, prior, n in (setting for setting in SETTINGS if setting[0] in arguments.tables):
        table, found, begun = Table.read(name, arguments.magic), [], time.process_time()
        for trial in range(arguments.repetitions):
            tuples, unlabeled, _ = table.draw(law, size, prior, n, n, trial)
            places = np.concatenate([tuples.ravel(), unlabeled])
            which, own = np.unique(places, return_inverse=True)
            rows = table.rows[which]
            z = Standardisation.learn(rows)(rows)
            features = kernel_maps(z, trial, (1.0,))[0].transform(z)
            bags = Bags.of(own[: n * size].reshape(n, size), own[n * size :], LAWS[law])
            found.append(estimate_prior(features, bags, seed=trial))
        covers = np.array([estimate.fits(prior) for estimate in found])
        known = np.array([estimate.known for estimate in found])
        widths = [estimate.high - estimate.low for estimate in found if estimate.known]
        width = f"{np.median(widths):.2f}" if widths else "-"
        seconds = (time.process_time() - begun) / len(found)
        numbers = f"{covers.sum()} of {len(found)} | {known.sum()} | {covers[known].sum()} | {width} | {seconds:.1f}"
        print(f"| {name} | {law} | {size} | {prior} | {n} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
