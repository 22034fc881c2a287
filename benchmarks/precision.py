"""What precision and rounding do to the accuracy: the same runs in float32, in bf16, and added up in another order.

A corrected risk has a gradient that jumps where the risk crosses zero, so that a difference in the last bit of a sum
grows until two trainings of one run are as different as two trials. How much that is must be known before a difference
between precisions means anything. So each run is trained in every precision, and in every order: an order permutes the
pixels together with the first layer's weights, which changes nothing but the order in which products are added.

    python benchmarks/precision.py --images results/datasets/mnist.npz --seeds 1 2 3 --orders 2

Prints the accuracy of every training (mean of the last 10 epochs, in percent), then per method the mean paired
difference from float32 in the first order, its standard error, and the number of pairs.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from mdpu.config import load_config
from mdpu.data.images import read_images
from mdpu.data.labels import binarize
from mdpu.data.splits import draw_split
from mdpu.experiment import Plan, Run
from mdpu.files import REPOSITORY
from mdpu.learn.device import choose_device, describe
from mdpu.learn.trainer import TrainingData, train

METHODS = ("ure", "relu", "abs")


def in_order(data: TrainingData, order: int) -> TrainingData:
    """Return the data with its pixels in the given order; order 0 is the one they have."""
    if order == 0:
        return data
    assert data.pixels is not None
    places = torch.from_numpy(np.random.default_rng(order).permutation(len(data.pixels))).to(data.train_images.device)
    return replace(
        data,
        train_images=data.train_images[:, places],
        test_images=data.test_images[:, places],
        pixels=data.pixels[places],
    )


def main() -> None:
    """Train and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--orders", type=int, default=2)
    parser.add_argument("--tuple-size", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device, images = choose_device(arguments.device), read_images(arguments.images)
    plan = Plan(load_config([REPOSITORY / "config.yaml"]))
    sides = plan.dataset("mnist")
    labels = binarize(images, sides["positive"], sides["negative"])
    whole = TrainingData.prepare(images, labels, "mlp", device)
    found = []

    def finished(run: Run, history: pd.DataFrame) -> None:
        accuracy = 100 * history["accuracy"].tail(10).mean()
        found.append((run.method, run.seed, precision, order, accuracy))
        print(f"{run.method} seed {run.seed} {precision} order {order}: {accuracy:.2f}", flush=True)

    print(describe(device), "torch", torch.__version__)
    for seed in arguments.seeds:
        runs = [
            Run("mnist", "base", arguments.tuple_size, 10_000, "0.5", method, "logistic", seed) for method in METHODS
        ]
        split = draw_split(labels["train"], arguments.tuple_size, 0.5, 10_000, 10_000, seed)
        for precision in arguments.precisions:
            for order in range(arguments.orders):
                settings = {**plan.training("base", "mlp"), "precision": precision}
                train(runs, settings, in_order(whole, order), {runs[0].split: split}, device, finished)
    table = pd.DataFrame(found, columns=["method", "seed", "precision", "order", "accuracy"])
    keys = ["method", "seed"]
    exact = table[(table["precision"] == "fp32") & (table["order"] == 0)].set_index(keys)["accuracy"]
    table["difference"] = table["accuracy"] - table.set_index(keys).index.map(exact).to_numpy()
    compared = table[(table["precision"] != "fp32") | (table["order"] > 0)]
    for by in (["precision", "method"], ["precision"]):
        print(compared.groupby(by)["difference"].agg(["mean", "sem", "std", "count"]).round(2).to_string())


if __name__ == "__main__":
    main()
