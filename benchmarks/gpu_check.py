"""Check the trainer where there is a GPU: seeds at once are the seeds one by one, resumed is
undisturbed, and speed.

Every method that trains a network trains three seeds at once on the GPU, each seed by itself there,
and each on the CPU, on drawn images. Histories must agree as far as rounding goes, which short
trainings do not magnify much. Then seconds an epoch are measured for 1, 3 and 9 seeds of the
perceptron at once, in float32, TF32 and bfloat16, and for ResNet-34. It takes two minutes and ends
with an exit status of 1 if a check fails.

    python benchmarks/gpu_check.py --device cuda
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from mdpu.data import draw_split
from mdpu.methods import available_methods, load_method
from mdpu.networks import TestSet, choose_device
from mdpu.pipeline.device import describe
from mdpu.randomness import Stream
from mdpu.settings import Settings, Task
from mdpu.train import train

TOLERANCE = 5e-3  # of measures, three epochs after the beginning
SEEDS = [1, 2, 3]


class Killed(Exception):
    """Ends a training in its midst."""


def draw(n, shape, part):
    """Return images of two classes, the left or the right half of which is brighter, and their
    labels.
    """
    stream = Stream(1, part)
    labels = np.where(stream.uniform(n) < 0.5, 1, -1).astype(np.int8)
    images = 160 * stream.uniform(n, *shape)
    half = shape[1] // 2
    images[labels > 0, :, :half] += 60
    images[labels < 0, :, half:] += 60
    return images.astype(np.uint8), labels


def difference(one, other):
    """Return the largest difference of two histories."""
    return float(np.abs(one.history.to_numpy(float) - other.history.to_numpy(float)).max())


def checks(device):
    """Yield, for each check, its name and the largest difference that it found."""
    (images, labels), (test, sides) = draw(2000, (14, 14), "train"), draw(500, (14, 14), "test")
    samples = [draw_split(labels, 2, 0.4, 600, 700, seed) for seed in SEEDS]
    settings = Settings(epochs=3, batch_size=200, architecture={"hidden": [64, 32]})

    def run(method, positions, where, **others):
        task = Task(method, 2, 0.4)
        evaluation = TestSet(test, sides, images, labels)
        own = [samples[i] for i in positions], [SEEDS[i] for i in positions]
        return train(
            task,
            images,
            *own,
            settings,
            labels=labels,
            evaluation=evaluation,
            device=where,
            **others,
        )

    for method in available_methods():
        if not load_method(method).trains_network:
            continue
        at_once = run(method, range(3), device)
        yield (
            f"{method}: at once and one by one",
            max(difference(at_once[i], run(method, [i], device)[0]) for i in range(3)),
        )
        yield (
            f"{method}: GPU and CPU",
            max(difference(at_once[i], run(method, [i], "cpu")[0]) for i in range(3)),
        )
    undisturbed = run("bag-relu", range(3), device)
    with tempfile.TemporaryDirectory() as folder:
        options = {"checkpoint": Path(folder) / "run.pt", "checkpoint_seconds": 0}

        def kill(epoch, rows):
            raise Killed

        try:
            run("bag-relu", range(3), device, on_epoch_end=kill, **options)
        except Killed:
            resumed = run("bag-relu", range(3), device, **options)
    yield "killed and resumed", max(map(difference, undisturbed, resumed))


def seconds_of(device, network, precision, count, n, shape, epochs):
    """Return the seconds of an epoch of so many seeds at once, without the first epoch."""
    (images, labels), (test, sides) = draw(4 * n, shape, "train"), draw(10_000, shape, "test")
    sample = draw_split(labels, 2, 0.5, n, n, 1)
    ends = []
    settings = Settings(
        epochs,
        batch_size=256 if network == "resnet34" else 3000,
        network=network,
        precision=precision,
    )

    def note(epoch, rows):
        if device.type == "cuda":
            torch.cuda.synchronize()
        ends.append(time.perf_counter())

    evaluation = TestSet(test, sides, images, labels)
    options = {"evaluation": evaluation, "device": device, "on_epoch_end": note}
    train(Task("relu", 2, 0.5), images, [sample] * count, list(range(count)), settings, **options)
    return (ends[-1] - ends[0]) / (epochs - 1)


def main() -> int:
    """Print what was found as JSON; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--without-speed", action="store_true")
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    found = dict(checks(device))
    failed = [name for name, value in found.items() if not value <= TOLERANCE]
    speed = {}
    if not arguments.without_speed:
        for precision in ("float32", "tf32", "bfloat16"):
            for count in (1, 3, 9):
                seconds = seconds_of(device, "mlp", precision, count, 10_000, (28, 28), 10)
                speed[f"mlp, {precision}, {count} seeds"] = round(seconds, 4)
            seconds = seconds_of(device, "resnet34", precision, 1, 5_000, (32, 32, 3), 2)
            speed[f"resnet34, {precision}"] = round(seconds, 2)
    print(
        json.dumps(
            {"device": describe(device), "checks": found, "failed": failed, "seconds": speed},
            indent=2,
        )
    )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
