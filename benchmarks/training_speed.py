"""Time the trainer against an ordinary loop, in pairs of one invocation, on MNIST-sized images.

The ordinary loop is what peers write: a DataLoader over tensors, float32, torch.optim.Adam, an evaluation after every
epoch. Both train URE, ReLU and ABS on pairs at prior 0.5, n = n_unlabeled = 10,000, one run after the other, on one
thread, whose processor time counts. Epochs of both alternate, so that other work on the machine slows both alike; the
first of each is warm-up. An epoch of the trainer costs less where a corrected risk is flat, so the figure is the mean
over a whole training.

    python benchmarks/training_speed.py --epochs 10                                          # on drawn images
    python benchmarks/training_speed.py --images results/datasets/mnist.npz --epochs 100

``--epochs 20 --out results/reference/speed.csv`` writes the one file from which the documents have these seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mdpu.data import draw_split
from mdpu.law import Law
from mdpu.losses import LOSSES
from mdpu.networks import TestSet
from mdpu.pipeline.device import describe
from mdpu.randomness import Stream
from mdpu.settings import Settings, Task
from mdpu.train import train

METHODS = ("ure", "relu", "abs")
N = 10_000


def drawn_images():
    """Return 60,000 and 10,000 grey images of two overlapping classes with a black frame, and their labels."""
    stream = Stream(1, "images of the benchmark")
    labels = np.where(stream.uniform(70_000) < 0.5, 1, -1)
    strokes = stream.uniform(2, 24, 24) < 0.25
    inner = 255 * stream.uniform(70_000, 24, 24) * (stream.uniform(70_000, 24, 24) < 0.2)
    inner += 60 * strokes[(labels > 0).astype(int)] * stream.uniform(70_000, 1, 1)
    images = np.pad(np.clip(inner, 0, 255).astype(np.uint8), ((0, 0), (2, 2), (2, 2)))
    return images[:60_000], labels[:60_000].astype(np.int8), images[60_000:], labels[60_000:].astype(np.int8)


def ordinary(method: str, sample, data, epochs: int, after_epoch: Callable[[], None]) -> float:
    """Train by an ordinary loop; return the accuracy of the last epoch."""
    x, test = (torch.from_numpy(images).float().flatten(1).div(255) for images in data[::2])
    positive = torch.from_numpy(data[3] > 0)
    order = torch.Generator().manual_seed(1)  # the trainer seeds torch's own at every epoch
    model = nn.Sequential(nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 1))
    adam = torch.optim.Adam(model.parameters(), lr=0.001, weight_decay=0.0005)
    weights, loss = Law.dominant(2).risk_weights(0.5), LOSSES["logistic"]
    tuples, unlabeled = (
        DataLoader(TensorDataset(x[rows]), batch_size=3000, shuffle=True, generator=order)
        for rows in (sample.tuples, sample.unlabeled)
    )
    for _ in range(epochs):
        for (own,), (others,) in zip(tuples, unlabeled, strict=True):
            scores = model(own.flatten(0, 1)).squeeze(1), model(others).squeeze(1)
            means = [loss(part, label).mean() for part in scores for label in (1, -1)]
            risk = sum(weight * mean for weight, mean in zip(weights, means, strict=True))
            risk = {"ure": risk, "relu": risk.clamp(min=0), "abs": risk.abs()}[method]
            adam.zero_grad()
            risk.backward()
            adam.step()
        with torch.no_grad():
            accuracy = ((model(test).squeeze(1) > 0) == positive).float().mean().item()
        after_epoch()
    return accuracy


def plain(method: str, sample, data, epochs: int, after_epoch: Callable[[], None]) -> float:
    """Train by the trainer; return the accuracy of the last epoch."""
    images, labels, test_images, test_labels = data
    test = TestSet(test_images, test_labels, images, labels)
    settings = Settings(epochs=epochs)
    [trained] = train(
        Task(method, 2, 0.5), images, [sample], [1], settings, evaluation=test, on_epoch_end=lambda *_: after_epoch()
    )
    rates = trained.history[[*test.rates]].iloc[-1]
    return float(test.share_positive * rates.iloc[0] + (1 - test.share_positive) * rates.iloc[1])


def in_turns(loops: dict[str, Callable[[Callable[[], None]], float]]) -> dict[str, tuple[float, list[float]]]:
    """Run loops an epoch each in turn; return what each returns, and the seconds of its epochs without the first."""
    turn, names = threading.Condition(), list(loops)
    active, found = [names[0]], {}

    def run(name: str) -> None:
        torch.set_num_threads(1)
        seconds: list[float] = []

        def wait() -> None:
            with turn:
                turn.wait_for(lambda: active[0] == name)

        def pass_on() -> None:
            with turn:
                active[0] = next((other for other in names if other != name and other not in found), name)
                turn.notify_all()

        def after_epoch() -> None:
            seconds.append(time.thread_time() - started[0])
            pass_on()
            wait()
            started[0] = time.thread_time()

        wait()
        started = [time.thread_time()]
        found[name] = loops[name](after_epoch), seconds[1:]
        pass_on()

    threads = [threading.Thread(target=run, args=(name,)) for name in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main() -> None:
    """Print the figures of each method as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", help="prepared grey images; drawn ones unless given")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, help="a file of comma-separated values for the seconds")
    arguments = parser.parse_args()
    if arguments.images:
        from shared import Labelled

        read = Labelled.read(arguments.images)
        data = (read.images.train_images, read.labels["train"], read.images.test_images, read.labels["test"])
    else:
        data = drawn_images()
    sample = draw_split(data[1], 2, 0.5, N, N, 1)
    result = {"device": describe(torch.device("cpu")), "epochs": arguments.epochs}
    rows = []
    for method in METHODS:
        loops = {
            loop.__name__: lambda hook, loop=loop, method=method: loop(method, sample, data, arguments.epochs, hook)
            for loop in (ordinary, plain)
        }
        found = in_turns(loops)
        means = {name: statistics.mean(seconds) for name, (_, seconds) in found.items()}
        for loop, mean in means.items():
            shared = {"epochs": arguments.epochs, "device": result["device"]}
            rows.append({"loop": loop, "method": method, "seconds": round(mean, 2), **shared})
        result[method] = {
            "seconds an epoch": {name: round(mean, 3) for name, mean in means.items()},
            "factor": round(means["ordinary"] / means["plain"], 2),
            "accuracy": {name: round(accuracy, 4) for name, (accuracy, _) in found.items()},
        }
    print(json.dumps(result, indent=2))
    if arguments.out:
        columns = ["loop", "method", "epochs", "seconds", "device"]
        pd.DataFrame(rows, columns=columns).sort_values("loop", kind="stable").to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
