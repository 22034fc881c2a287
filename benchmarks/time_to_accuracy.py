"""Seconds until a classifier is as good as the paper's best number, and as 100 epochs of bag-relu.

    ./run reference && ./run paper --configfile config/fast.yaml
    python benchmarks/time_to_accuracy.py --out results/reference/time_to_accuracy.csv

Accuracies per epoch are those of the runs of both configurations, of the same splits. Seconds are measured here, on
one thread: each kind of training is repeated for a few epochs, and its epochs cost alike. They are processor seconds of
the process, laying out the images included, which other work on the machine hardly changes.

A row is a cell: ``paper`` is the highest number that the paper has for it, ``final`` the accuracy of `bag-relu` after
100 epochs, the mean of the last ten; ``until_paper`` and ``until_final`` the seconds from which on a run is at least at
``paper``, or at most 0.3 points below its trial's ``final``, empty where it ends below; ``times`` how many times less
than `bag-relu` that is, with the 95 % t interval of the trials' logarithms, and ``lost`` the points below ``final`` at
the end.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import t
from shared import Labelled

from mdpu.learn import Task, fit
from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.collect import read_histories
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.files import REPOSITORY, write_csv
from mdpu.pipeline.plan import Plan

# What is compared: the configuration that its runs are of, and their method.
KINDS = {
    "relu": ("reference", "relu"),
    "bag-relu": ("reference", "bag-relu"),
    "fast": ("fast", "bag-relu"),
}
FOLDERS = {"reference": "paper-reference", "fast": "fast"}
WITHIN = 0.3  # points
CELL = ["dataset", "tuple_size", "prior"]


def read_plan(name: str) -> Plan:
    """Return the plan of a configuration that is laid over the paper's."""
    return Plan(load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / f"{name}.yaml"]))


def seconds(plan: Plan, labelled: Labelled, network: str, method: str, tuple_size: int, n: int) -> tuple[float, float]:
    """Return the processor seconds before the first epoch, and those of an epoch."""
    settings = plan.settings("base", network)
    sample = labelled.sample(tuple_size, 0.5, n, 0)

    def measured(epochs: int) -> float:
        started = time.process_time()
        task = Task(method, tuple_size, 0.5)
        fit([task], labelled.images.train_images, sample, replace(settings, epochs=epochs), device="cpu")
        return time.process_time() - started

    measured(1)  # imports and memory
    few, many = min(measured(2) for _ in range(3)), min(measured(12) for _ in range(3))
    return few - 2 * (many - few) / 10, (many - few) / 10


def epochs_until(accuracies: NDArray[np.float64], target: float) -> float:
    """Return the number of epochs from which on accuracies, one per epoch, are at least at a target, or nan."""
    below = np.flatnonzero(accuracies < target)
    needed = below[-1] + 2 if len(below) else 1
    return float(needed) if needed <= len(accuracies) else np.nan


def main() -> None:
    """Measure all cells, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=REPOSITORY / "results")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    plans = {name: read_plan(name) for name in FOLDERS}
    of_fast = {(run.dataset, run.tuple_size, run.n, run.prior) for run in plans["fast"].runs}
    curves: dict[str, dict[tuple[Any, ...], dict[int, NDArray[np.float64]]]] = {}
    for kind, (name, method) in KINDS.items():
        usual = ("base", method, "logistic")
        runs = [run for run in plans[name].runs if (run.variant, run.method, run.loss) == usual]
        runs = [run for run in runs if (run.dataset, run.tuple_size, run.n, run.prior) in of_fast]
        histories = read_histories(runs, asked.results / FOLDERS[name] / "metrics.parquet")
        curves[kind] = {}
        for (*cell, seed), own in histories.groupby([*CELL, "n", "seed"], sort=False):
            curves[kind].setdefault(tuple(cell), {})[seed] = 100 * own.sort_values("epoch")["accuracy"].to_numpy()
    best = published_cells().groupby(["dataset", "tuple_size", "prior", "n"])["published_mean"].max()
    labelled: dict[str, Labelled] = {}  # one dataset at a time
    table, costs = [], {}
    for cell in curves["fast"]:
        dataset, size, _, n = cell
        definition = plans["fast"].dataset(dataset)
        for kind, (name, method) in KINDS.items():
            if (dataset, size, kind) not in costs:
                if dataset not in labelled:
                    images = asked.results / "datasets" / f"{definition['source']}.npz"
                    sides = (list(map(str, definition[side])) for side in ("positive", "negative"))
                    labelled = {dataset: Labelled.read(images, *sides)}
                network = plans[name].network(dataset)
                costs[dataset, size, kind] = seconds(plans[name], labelled[dataset], network, method, size, n)
        finals = {seed: curve[-10:].mean() for seed, curve in curves["bag-relu"][cell].items()}
        paper = best[definition.get("published", dataset), *cell[1:]]
        until = {}
        for kind in KINDS:
            before, epoch = costs[dataset, size, kind]
            trials = {seed: curves[kind][cell][seed] for seed in finals}
            ends = {seed: curve[-1] if kind == "fast" else curve[-10:].mean() for seed, curve in trials.items()}
            at_paper = [before + epoch * epochs_until(curve, paper) for curve in trials.values()]
            until[kind] = [before + epoch * epochs_until(trials[seed], finals[seed] - WITHIN) for seed in finals]
            row = dict(zip([*CELL, "n"], cell, strict=True)) | {"kind": kind, "paper": paper, "trials": len(trials)}
            row |= {"seconds": before + epoch * max(map(len, trials.values())), "accuracy": np.mean([*ends.values()])}
            row |= {"lost": np.mean([finals[seed] - ends[seed] for seed in finals])}
            row |= {"until_paper": np.mean(at_paper), "until_final": np.mean(until[kind])}
            table.append(row)
        for row, kind in zip(table[-len(KINDS) :], KINDS, strict=True):
            ratios = np.log(np.divide(until["bag-relu"], until[kind]))
            half = t.ppf(0.975, len(ratios) - 1) * ratios.std(ddof=1) / np.sqrt(len(ratios))
            row |= {"times": np.exp(ratios.mean()), "times_low": np.exp(ratios.mean() - half)}
            row |= {"times_high": np.exp(ratios.mean() + half)}
            print(row, flush=True)
    write_csv(pd.DataFrame(table).round(4), asked.out)


if __name__ == "__main__":
    main()
