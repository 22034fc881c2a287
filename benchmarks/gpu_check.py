"""Exercise the CUDA path in one go: correctness against the CPU, then speed. At most 8 minutes on one GPU.

    python benchmarks/gpu_check.py                     # synthetic images of MNIST's and CIFAR-10's sizes
    python benchmarks/gpu_check.py --images results/datasets/mnist.npz
    python benchmarks/gpu_check.py --device cpu --small # the same steps on a CPU, tiny: what a test runs

Each check prints one JSON line with ``check``, ``ok`` (where it is a check) and its figures; the exit status is 1
when one failed. Timings discard a warm-up and are of training with an evaluation after every epoch.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch
from shared import Labelled

from mdpu.learn import Settings, Task, fit, trainer
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.device import choose_device, describe
from mdpu.learn.fitting import stack_bytes
from mdpu.learn.networks import load_network
from mdpu.pipeline.config import load_config
from mdpu.pipeline.data.images import ImageSet
from mdpu.pipeline.data.labels import binarize
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan

PLAN = Plan(load_config([REPOSITORY / "config.yaml"]))
MLP = replace(PLAN.settings("base", "mlp"), precision="bf16")
RESNET = replace(PLAN.settings("base", "resnet34"), precision="bf16")
MEASURES = ["objective", "true_positive_rate", "true_negative_rate"]
failed = False


def tell(check: str, ok: bool | None = None, **figures: object) -> None:
    """Print one result."""
    global failed
    failed = failed or ok is False
    print(json.dumps({"check": check, **({} if ok is None else {"ok": ok}), **figures}), flush=True)


def synthetic(train_count: int, test_count: int, shape: tuple[int, ...]) -> Labelled:
    """Return ten classes of noise around ten random images."""
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 256, (10, *shape))

    arrays = []
    for count in (train_count, test_count):
        labels = rng.integers(0, 10, count)
        noise = rng.integers(0, 256, (count, *shape), dtype=np.uint8)
        arrays += [((centres[labels] + noise.astype(np.int64)) // 2).astype(np.uint8), labels]
    names = [str(digit) for digit in range(10)]
    images = ImageSet(*arrays, names, "synthetic", "none")
    return Labelled(images, binarize(images, names[0::2], names[1::2]))


def trainer_of(data: Labelled, tasks: Sequence[Task], n: int) -> Callable[..., dict[Task, pd.DataFrame]]:
    """Return what trains tasks, or some of them, and gives their histories; each sample has `n` tuples."""
    samples = {task.sample: data.sample(task.tuple_size, task.prior, n, task.seed) for task in tasks}

    def train(settings: Settings, device: torch.device, some: Sequence[Task] = tasks, **options: Any) -> Any:
        given = {"evaluation": data.rates(), "device": device, **options}
        models = fit(some, data.images.train_images, samples, settings, **given)
        return {model.task: model.history for model in models}

    return train


def make_tasks(priors: Sequence[float], seeds: Sequence[int], tuple_size: int = 2) -> list[Task]:
    """Return tasks of the paper's methods, those of one prior and seed on one sample."""
    return [
        Task(method, tuple_size, prior, seed=seed, sample=f"{prior}/{seed}")
        for prior, method, seed in itertools.product(priors, ("ure", "relu", "abs"), seeds)
    ]


def largest_difference(one: dict[Task, pd.DataFrame], other: dict[Task, pd.DataFrame]) -> float:
    """Return the largest difference of any measure between two sets of histories."""
    return max(float(np.abs(one[task][MEASURES] - other[task][MEASURES]).to_numpy().max()) for task in one)


def synchronized_seconds(work, device: torch.device) -> float:
    """Return the wall time of `work`, the GPU's queue included."""
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def check_correctness(data: Labelled, n: int, device: torch.device, epochs: int) -> None:
    """Compare the device with the CPU in float32, stacks with single tasks, halves with wholes, and a resumed task."""
    settings = replace(MLP, precision="fp32", epochs=epochs)
    tasks = make_tasks((0.4, 0.6), (1, 2))
    train = trainer_of(data, tasks, n)
    whole = train(settings, device)
    difference = largest_difference(whole, train(settings, torch.device("cpu")))
    tell("histories equal the CPU's, fp32", difference < 0.02, largest_difference=difference, epochs=epochs)
    alone = {task: train(settings, device, [task])[task] for task in tasks[:3]}
    difference = largest_difference(alone, whole)
    tell("a task's history does not depend on its company", difference < 0.02, largest_difference=difference)
    sample = {tasks[0].sample: data.sample(2, tasks[0].prior, n, tasks[0].seed)}
    least = stack_bytes(((tasks[0],),), settings, load_network("mlp"), data.images.train_images.shape[1:], sample)
    difference = largest_difference(train(settings, device, memory=least), whole)
    tell("what memory splits gives the same", difference < 0.02, largest_difference=difference)

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "stack.pt", "key", 0.0)

        def stop(_: int) -> None:
            if checkpoint.path.exists():
                raise KeyboardInterrupt

        column = tasks[:1]  # one stack on any device
        options = {"checkpoint_of": lambda stack: checkpoint}
        drawn, trained = trainer.minibatches, []
        try:
            train(settings, device, column, advance=stop, **options)
        except KeyboardInterrupt:
            # A checkpoint that is not used would give the same numbers, so the epochs that are trained are counted.
            with mock.patch.object(trainer, "minibatches", lambda *of: trained.append(of[-1]) or drawn(*of)):
                difference = largest_difference(train(settings, device, column, **options), whole)
            same = difference < 0.02 and 0 < len(trained) < epochs and trained == list(range(trained[0], epochs))
            tell("a resumed stack gives the same", same, largest_difference=difference, epochs_trained=trained)
        else:
            tell("a resumed stack gives the same", False, why="no checkpoint was written")


def time_grey_half(data: Labelled, device: torch.device, small: bool) -> None:
    """Time the 540 grey runs of Tables II-V: five datasets' worth of n, pairs and triples, bf16."""
    settings, total, counted = replace(MLP, epochs=2 if small else 100), 0.0, 0
    sizes = [(60, 80)] if small else [(10_000, 12_000)] * 3 + [(7_000, 8_000), (4_000, 5_000)]
    priors, seeds = ((0.5,), (1,)) if small else ((0.4, 0.5, 0.6), (1, 2, 3))
    trainer_of(data, make_tasks((0.5,), (1,)), sizes[0][0])(replace(MLP, epochs=1), device)  # warm-up
    for tuple_size, pair in itertools.product((2, 3), sizes):
        for n in pair:
            tasks = make_tasks(priors, seeds, tuple_size)
            total += synchronized_seconds(partial(trainer_of(data, tasks, n), settings, device), device)
            counted += len(tasks)
    tell("grey half", runs=counted, epochs=settings.epochs, seconds=round(total, 2), target_seconds=60)


def time_resnet(device: torch.device, small: bool) -> None:
    """Time a ResNet-34 step on CIFAR-10's size against eager float32, and say its share of the bf16 product peak."""
    data = synthetic(64, 32, (32, 32, 3)) if small else synthetic(20_000, 1_000, (32, 32, 3))
    n, batch, epochs = (8, 4, 2) if small else (2_560, 256, 4)
    train, seconds = trainer_of(data, [Task("abs", 2, 0.5, seed=1)], n), {}
    for precision in ("fp32", "bf16"):
        settings = replace(RESNET, precision=precision, batch_size=batch)
        first, all_of_them = (
            synchronized_seconds(partial(train, replace(settings, epochs=count), device), device)
            for count in (1, epochs)
        )
        seconds[precision] = (all_of_them - first) / (math.ceil(n / batch) * (epochs - 1))
    flop = 3 * 2 * 1.16e9 * batch * 3  # ResNet-34 at 32x32 with the 3x3 stem: 1.16 GMAC an image
    tell(
        "ResNet-34 step, evaluation included",
        seconds={key: round(value, 4) for key, value in seconds.items()},
        times_eager_fp32=round(seconds["fp32"] / seconds["bf16"], 2),
        tflops_bf16=round(flop / seconds["bf16"] / 1e12, 2),
    )


def main() -> None:
    """Run all checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--device", default="cuda", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    shape, count = ((8, 8), 400) if arguments.small else ((28, 28), 60_000)
    data = Labelled.read(arguments.images) if arguments.images else synthetic(count, count // 6, shape)
    tell("device", name=describe(device), torch=torch.__version__, cuda=torch.version.cuda)
    check_correctness(data, 60 if arguments.small else 2_000, device, epochs=3)
    time_grey_half(data, device, arguments.small)
    time_resnet(device, arguments.small)
    sys.exit(failed)


if __name__ == "__main__":
    main()
