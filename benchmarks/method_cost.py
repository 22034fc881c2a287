"""What a method costs beside ReLU: seconds and processor seconds per run and epoch, on real images.

Each method trains a stack of nine runs, three priors by three trials, as the tables do. The methods take turns in one
invocation, `--rounds` times, and the median of the rounds counts. A method that estimates the prior does so within its
training, so its figure depends on the number of epochs; the protocol has 100.

    python benchmarks/method_cost.py --images results/datasets/mnist.npz --methods bag-relu bag-free --epochs 100
"""

import argparse
import json
import platform
import statistics
import time
from dataclasses import replace
from pathlib import Path

import torch

from mdpu.data.images import read_images
from mdpu.data.labels import binarize
from mdpu.data.splits import draw_split
from mdpu.files import REPOSITORY
from mdpu.learn import Sample, Task, fit_each
from mdpu.learn.device import choose_device, describe
from mdpu.learn.evaluation import TestRates
from mdpu.study.config import load_config
from mdpu.study.plan import Plan

PRIORS = (0.4, 0.5, 0.6)
TRIALS = (1, 2, 3)


def samples_of(labels, tuple_size, n):
    """Return the splits of every prior and trial, by name."""
    splits = {
        f"{prior} {trial}": draw_split(labels["train"], tuple_size, prior, n, n, trial)
        for prior in PRIORS
        for trial in TRIALS
    }
    return {name: Sample(split.tuples, split.unlabeled) for name, split in splits.items()}


def cost(method, tuple_size, samples, images, labels, settings, device):
    """Return the seconds and processor seconds that a run of a method costs per epoch."""
    tasks = [
        Task(method, tuple_size, prior, seed=trial, sample=f"{prior} {trial}") for prior in PRIORS for trial in TRIALS
    ]
    rates = TestRates(images.test_images, labels["test"], images.train_images, labels["train"])
    wall, processor = time.perf_counter(), time.process_time()
    for _ in fit_each(tasks, images.train_images, samples, settings, evaluation=rates, device=device):
        pass
    run_epochs = len(tasks) * settings.epochs
    return (time.perf_counter() - wall) / run_epochs, (time.process_time() - processor) / run_epochs


def main():
    """Print a JSON line for every method and tuple size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", required=True)
    parser.add_argument("--methods", nargs="+", default=["bag-relu"])
    parser.add_argument("--tuple-sizes", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    torch.set_num_threads(arguments.threads)
    images = read_images(Path(arguments.images))
    labels = binarize(images, list(images.classes)[0::2], list(images.classes)[1::2])
    settings = replace(Plan(load_config([REPOSITORY / "config.yaml"])).settings("base", "mlp"), epochs=arguments.epochs)
    for tuple_size in arguments.tuple_sizes:
        samples = samples_of(labels, tuple_size, arguments.n)
        methods = ["relu", *(method for method in arguments.methods if method != "relu")]
        rounds = {method: [] for method in methods}
        for _ in range(arguments.rounds):
            for method in methods:
                rounds[method].append(cost(method, tuple_size, samples, images, labels, settings, device))
        medians = {
            method: [statistics.median(column) for column in zip(*costs, strict=True)]
            for method, costs in rounds.items()
        }
        for method, (seconds, processor_seconds) in medians.items():
            figures = {
                "method": method,
                "tuple_size": tuple_size,
                "epochs": arguments.epochs,
                "seconds_per_run_epoch": round(seconds, 4),
                "processor_seconds_per_run_epoch": round(processor_seconds, 4),
                "times_relu": round(seconds / medians["relu"][0], 3),
                "times_relu_processor": round(processor_seconds / medians["relu"][1], 3),
                "device": describe(device),
                "torch": torch.__version__,
                "python": platform.python_version(),
            }
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
