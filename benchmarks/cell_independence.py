"""Ask whether trials are independent between cells: do the deviations of one seed go together?

A trial's deviation is its accuracy minus the mean of its cell. For each method two figures are printed: the share of
the deviations' variance that a common effect of the seed explains, and the mean correlation of two cells' deviations.
Beside each stands the interval that independent trials would give: the middle 95 % over 2,000 draws in which the seeds
of every cell are shuffled on their own.

    python benchmarks/cell_independence.py results/reference/first/runs.csv    # keyed by the seed alone
    snakemake --cores 2 --configfile config/quick.yaml config/independence.yaml -- results/independence/runs.csv
    python benchmarks/cell_independence.py results/independence/runs.csv
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mdpu.pipeline.files import read_csv
from mdpu.pipeline.plan import CELL

DRAWS = 2000


def seed_share(deviations: NDArray[np.float64]) -> float:
    """Return the share of the variance of deviations (cells, seeds) that the seeds' means explain."""
    standard = deviations / deviations.std(axis=1, keepdims=True)
    return float(np.square(standard.mean(axis=0)).sum() * len(standard) / np.square(standard).sum())


def mean_correlation(deviations: NDArray[np.float64]) -> float:
    """Return the mean correlation of the deviations of two cells."""
    correlations = np.corrcoef(deviations)
    return float(np.mean([correlations[pair] for pair in itertools.combinations(range(len(correlations)), 2)]))


def main() -> None:
    """Print the figures of every method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="runs.csv of a result")
    runs = read_csv(parser.parse_args().runs)
    draw = np.random.default_rng(0)
    print("| method | cells | seeds | variance explained by the seed | if independent | correlation | if independent |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for method, method_runs in runs.groupby("method"):
        cells = method_runs.pivot_table(index=list(CELL), columns="seed", values="accuracy").dropna()
        deviations = cells.sub(cells.mean(axis=1), axis=0).to_numpy()
        deviations = deviations[deviations.std(axis=1) > 0]
        if len(deviations) < 2 or deviations.shape[1] < 2:
            continue
        shuffled = [draw.permuted(deviations, axis=1) for _ in range(DRAWS)]
        columns = []
        for figure in (seed_share, mean_correlation):
            low, high = np.quantile([figure(each) for each in shuffled], [0.025, 0.975])
            columns += [f"{figure(deviations):.2f}", f"{low:.2f} to {high:.2f}"]
        print(f"| {method} | {len(deviations)} | {deviations.shape[1]} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
