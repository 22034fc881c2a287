"""What precision and rounding do to the accuracy: the same runs in float32, in bf16, and added up in another order.

A corrected risk has a gradient that jumps where the risk crosses zero, so that a difference in the last bit of a sum
grows until two trainings of one run are as different as two trials. How much that is must be known before a difference
between precisions means anything. So each run is trained in every precision, and in every order: an order permutes the
pixels together with the first layer's weights, which changes nothing but the order in which products are added.

    python benchmarks/precision.py --images results/datasets/mnist.npz --seeds 1 2 3 --orders 2

Prints the accuracy of every training (mean of the last 10 epochs, in percent), then paired differences by method, mean,
standard error, deviation, number, and what the mean difference is at least (one-sided 95 % bound): of each precision
from float32 in the same order, and of the other orders from the first in float32. --out keeps the accuracies; files of
several invocations may be given to --read, which trains nothing.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from shared import Labelled, begin, machine, protocol_settings

from mdpu.learn import Task, fit
from mdpu.learn.networks import mlp

METHODS = ("ure", "relu", "abs")


def in_order(order: int) -> AbstractContextManager[object]:
    """Return a context in which perceptrons take their pixels in the given order; order 0 is the one they have."""

    def prepare(images: NDArray[Any]) -> mlp.Vectors:
        vectors = mlp.prepare(images)
        return replace(vectors, pixels=np.random.default_rng(order).permutation(vectors.pixels))

    if order == 0:
        return nullcontext()
    return mock.patch.object(mlp, "NETWORK", replace(mlp.NETWORK, prepare=prepare))


def train_all(arguments: argparse.Namespace) -> pd.DataFrame:
    """Train every run in every precision and order; return one row each."""
    device, data = begin(arguments), Labelled.read(arguments.images)
    rates, protocol = data.rates(), protocol_settings(arguments.epochs)
    shares = [rates.share_positive, 1 - rates.share_positive]
    rows = []
    print(*machine(device).values())
    for seed in arguments.seeds:
        tasks = [Task(method, arguments.tuple_size, 0.5, seed=seed) for method in METHODS]
        sample = data.sample(arguments.tuple_size, 0.5, arguments.n, seed)
        for precision, order in itertools.product(arguments.precisions, range(arguments.orders)):
            settings = replace(protocol, precision=precision)
            with in_order(order):
                models = fit(tasks, data.images.train_images, sample, settings, evaluation=rates, device=device)
            for task, history in ((model.task, model.history) for model in models):
                last = history[["true_positive_rate", "true_negative_rate"]].tail(10) @ shares
                rows.append((task.tuple_size, task.method, seed, precision, order, 100 * last.mean()))
                print(f"{task.method} seed {seed} {precision} order {order}: {rows[-1][-1]:.2f}", flush=True)
    return pd.DataFrame(rows, columns=["tuple_size", "method", "seed", "precision", "order", "accuracy"])


def differences(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield titles and tables of the paired differences: mean, sem, std and count by method."""
    wide = table.pivot_table(
        index=["tuple_size", "method", "seed"], columns=["precision", "order"], values="accuracy"
    ).sort_index(axis=1)
    exact = wide["fp32"]
    for precision in sorted(set(table["precision"]) - {"fp32"}):
        yield f"{precision} - fp32, same order", (wide[precision] - exact).stack().rename("difference").reset_index()
    others = exact.drop(columns=0)
    if len(others.columns):
        yield "fp32, other orders - first", others.sub(exact[0], axis=0).stack().rename("difference").reset_index()


def main() -> None:
    """Train, or read what was trained, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--orders", type=int, default=2)
    parser.add_argument("--tuple-size", type=int, default=2)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, help="if not those of the protocol")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="CSV of the accuracies to write")
    parser.add_argument("--read", type=Path, nargs="+", help="CSVs of accuracies to compare instead of training")
    arguments = parser.parse_args()
    if arguments.read:
        table = pd.concat(map(pd.read_csv, arguments.read))
    elif arguments.images:
        table = train_all(arguments)
    else:
        parser.error("give --images to train on, or --read")
    if arguments.out:
        table.to_csv(arguments.out, index=False, float_format="%.3f")
    for title, found in differences(table):
        figures = found.groupby("method")["difference"].agg(["mean", "sem", "std", "count"])
        figures["at least"] = figures["mean"] - stats.t.ppf(0.95, figures["count"] - 1) * figures["sem"]
        print(f"\n{title}\n{figures.round(2).to_string()}")


if __name__ == "__main__":
    main()
