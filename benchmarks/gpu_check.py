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
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from mdpu.data.images import ImageSet, read_images
from mdpu.data.labels import binarize
from mdpu.data.splits import draw_split
from mdpu.files import REPOSITORY
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.device import choose_device, describe
from mdpu.learn.schedule import complete
from mdpu.learn.trainer import TrainingData, make_stacks, stack_epochs, train
from mdpu.study.config import load_config
from mdpu.study.grid import Run
from mdpu.study.plan import Plan

PLAN = Plan(load_config([REPOSITORY / "config.yaml"]))
MLP = {**PLAN.protocol.training("base", "mlp"), "precision": "bf16"}
RESNET = {**PLAN.protocol.training("base", "resnet34"), "precision": "bf16"}
MEASURES = ["objective", "true_positive_rate", "true_negative_rate"]
failed = False


def tell(check: str, ok: bool | None = None, **figures: object) -> None:
    """Print one result."""
    global failed
    failed = failed or ok is False
    print(json.dumps({"check": check, **({} if ok is None else {"ok": ok}), **figures}), flush=True)


def synthetic(train_count: int, test_count: int, shape: tuple[int, ...]) -> ImageSet:
    """Return ten classes of noise around ten random images."""
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 256, (10, *shape))

    def part(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, 10, count)
        noise = rng.integers(0, 256, (count, *shape), dtype=np.uint8)
        return ((centres[labels] + noise.astype(np.int64)) // 2).astype(np.uint8), labels

    train_images, train_labels = part(train_count)
    test_images, test_labels = part(test_count)
    names = [str(digit) for digit in range(10)]
    return ImageSet(train_images, train_labels, test_images, test_labels, names, "synthetic", "none")


def prepare(images: ImageSet, network: str, runs: list[Run], device: torch.device):
    """Return training data and splits of the runs."""
    labels = binarize(images, images.classes[0::2], images.classes[1::2])
    splits = {
        run.split: draw_split(labels["train"], run.tuple_size, float(run.prior), run.n, run.n, run.seed)
        for run in {run.split: run for run in runs}.values()
    }
    return TrainingData.prepare(images, labels, network, device), splits


def collect(runs, settings, data, splits, device, **options):
    """Train runs and return their histories by run."""
    found: dict[Run, pd.DataFrame] = {}
    train(runs, settings, data, splits, device, found.__setitem__, **options)
    return found


def largest_difference(one, other) -> float:
    """Return the largest difference of any measure between two sets of histories."""
    return max(float(np.abs(one[run][MEASURES] - other[run][MEASURES]).to_numpy().max()) for run in one)


def synchronized_seconds(work, device: torch.device) -> float:
    """Return the wall time of `work`, the GPU's queue included."""
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def check_correctness(images: ImageSet, runs: list[Run], device: torch.device, epochs: int) -> None:
    """Compare the device with the CPU in float32, stacks with single runs, halves with wholes, and a resumed run."""
    settings = {**MLP, "precision": "fp32", "epochs": epochs}
    cpu_data, splits = prepare(images, "mlp", runs, torch.device("cpu"))
    data, _ = prepare(images, "mlp", runs, device)
    whole = collect(runs, settings, data, splits, device)
    on_cpu = collect(runs, settings, cpu_data, splits, torch.device("cpu"))
    difference = largest_difference(whole, on_cpu)
    tell("histories equal the CPU's, fp32", difference < 0.02, largest_difference=difference, epochs=epochs)
    alone = {run: collect([run], settings, data, splits, device)[run] for run in runs[:3]}
    difference = largest_difference(alone, whole)
    tell("a run's history does not depend on its cohort", difference < 0.02, largest_difference=difference)
    halved = collect(runs, settings, data, splits, device, memory=1)
    difference = largest_difference(halved, whole)
    tell("a cohort that memory splits gives the same", difference < 0.02, largest_difference=difference)

    stack = make_stacks(runs, "mlp", device)[0]
    straight = complete(stack_epochs(stack, settings, data, splits, device))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "stack.pt", "key", 0.0)

        def stop(_: int) -> None:
            if checkpoint.path.exists():
                raise KeyboardInterrupt

        try:
            complete(stack_epochs(stack, settings, data, splits, device, checkpoint), stop)
        except KeyboardInterrupt:
            resumed = complete(stack_epochs(stack, settings, data, splits, device, checkpoint=checkpoint))
            difference = largest_difference(resumed, straight)
            tell("a resumed stack gives the same", difference < 0.02, largest_difference=difference)
        else:
            tell("a resumed stack gives the same", False, why="no checkpoint was written")


def time_grey_half(images: ImageSet, device: torch.device, small: bool) -> None:
    """Time the 540 grey runs of Tables II-V: five datasets' worth of n, pairs and triples, bf16."""
    epochs, total, counted = (2 if small else 100), 0.0, 0
    sizes = [(60, 80)] if small else [(10_000, 12_000)] * 3 + [(7_000, 8_000), (4_000, 5_000)]
    priors = ["0.5"] if small else ["0.4", "0.5", "0.6"]
    seeds = (1,) if small else (1, 2, 3)
    warm = [Run("warm", "base", 2, sizes[0][0], "0.5", "abs", "logistic", 1)]
    data, splits = prepare(images, "mlp", warm, device)
    collect(warm, {**MLP, "epochs": 1}, data, splits, device)
    for position, (tuple_size, pair) in enumerate(itertools.product((2, 3), sizes)):
        for n in pair:
            runs = [
                Run(f"grey{position}", "base", tuple_size, n, prior, method, "logistic", seed)
                for prior, method, seed in itertools.product(priors, ("ure", "relu", "abs"), seeds)
            ]
            data, splits = prepare(images, "mlp", runs, device)
            work = lambda: collect(runs, {**MLP, "epochs": epochs}, data, splits, device)  # noqa: B023, E731
            total += synchronized_seconds(work, device)
            counted += len(runs)
    tell("grey half", runs=counted, epochs=epochs, seconds=round(total, 2), target_seconds=60)


def time_resnet(device: torch.device, small: bool) -> None:
    """Time a ResNet-34 step on CIFAR-10's size against eager float32, and say its share of the bf16 product peak."""
    images = synthetic(64, 32, (32, 32, 3)) if small else synthetic(20_000, 1_000, (32, 32, 3))
    n = 8 if small else 2_560
    run = Run("colour", "base", 2, n, "0.5", "abs", "logistic", 1)
    data, splits = prepare(images, "resnet34", [run], device)
    seconds = {}
    for precision in ("fp32", "bf16"):
        settings = {**RESNET, "precision": precision, "batch_size": 4 if small else 256}
        durations = [
            synchronized_seconds(
                lambda epochs=epochs, s=settings: complete(
                    stack_epochs(((run,),), {**s, "epochs": epochs}, data, splits, device)
                ),
                device,
            )
            for epochs in (1, 2 if small else 4)
        ]
        steps = -(-n // settings["batch_size"]) * ((2 if small else 4) - 1)
        seconds[precision] = (durations[1] - durations[0]) / steps
    flop = 3 * 2 * 1.16e9 * (4 if small else 256) * 3  # ResNet-34 at 32x32 with the 3x3 stem: 1.16 GMAC an image
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
    images = read_images(arguments.images) if arguments.images else synthetic(count, count // 6, shape)
    tell("device", name=describe(device), torch=torch.__version__, cuda=torch.version.cuda)
    n = 60 if arguments.small else 2_000
    base = Run("check", "base", 2, n, "0.5", "ure", "logistic", 1)
    runs = [
        replace(base, prior=prior, method=method, seed=seed)
        for prior, method, seed in itertools.product(("0.4", "0.6"), ("ure", "relu", "abs"), (1, 2))
    ]
    check_correctness(images, runs, device, epochs=3)
    time_grey_half(images, device, arguments.small)
    time_resnet(device, arguments.small)
    sys.exit(failed)


if __name__ == "__main__":
    main()
