"""Time a training job against an ordinary loop, on MNIST-sized data, on this machine.

The ordinary loop is what peers write: one model at a time, a DataLoader over tensors, float32, torch.optim.Adam,
evaluation after every epoch. Both train the same runs (URE, ReLU and ABS on pairs, prior 0.5, n = n_unlabeled) on the
same images in one invocation; the first epoch of each is warm-up and discarded. Every measurement runs in a process of
its own, so that peak memory is its own too. An epoch of the ordinary loop always costs the same; one of the job costs
less while its runs are still equal, and where a corrected risk is flat. So the job's figure is the mean over a whole
training of --epochs, with the median beside it, and the ordinary loop is timed over --ordinary-epochs.

    python benchmarks/training_speed.py --images results/datasets/mnist.npz            # all of it, as JSON
    python benchmarks/training_speed.py --images ... --only ordinary job-bf16       # some of it
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import torch
from shared import Labelled, begin, machine, protocol_settings, training_parser
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mdpu.law import Law
from mdpu.learn import Task, fit_each
from mdpu.losses import LOSSES

SETTINGS = protocol_settings()
METHODS = ("ure", "relu", "abs")
CASES = {
    "ordinary": {"precision": "fp32"},
    "job-fp32": {"precision": "fp32"},
    "job-bf16": {"precision": "bf16"},
    "job-bf16-1-run": {"precision": "bf16", "runs": 1},
    "job-bf16-27-runs": {"precision": "bf16", "runs": 27},
    "job-bf16-108-runs": {"precision": "bf16", "runs": 108},
    "job-bf16-n2000": {"precision": "bf16", "n": 2000},
    "job-bf16-n5000": {"precision": "bf16", "n": 5000},
    "job-bf16-triples": {"precision": "bf16", "tuple_size": 3},
}


def ordinary_epochs(tasks, samples, data, epochs, device):
    """Train each task by itself; return the accuracy of the last epoch and the seconds of every task and epoch."""
    images = data.images
    train_images = torch.from_numpy(images.train_images).float().flatten(1).div(255)
    test_images = torch.from_numpy(images.test_images).float().flatten(1).div(255).to(device)
    test_labels = torch.from_numpy(data.labels["test"]).to(device)
    loss, seconds, accuracies = LOSSES["logistic"], [], []
    for task in tasks:
        sample = samples[task.sample]
        torch.manual_seed(task.seed)
        model = nn.Sequential(
            nn.Linear(train_images.shape[1], 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 1)
        ).to(device)
        adam = torch.optim.Adam(model.parameters(), lr=0.001, weight_decay=0.0005)
        w = Law.dominant(task.tuple_size).risk_weights(task.prior)
        tuples = DataLoader(TensorDataset(train_images[sample.tuples]), batch_size=3000, shuffle=True)
        unlabeled = DataLoader(TensorDataset(train_images[sample.unlabeled]), batch_size=3000, shuffle=True)
        for _ in range(epochs):
            start = time.perf_counter()
            for (x_tuples,), (x_unlabeled,) in zip(tuples, unlabeled, strict=True):
                tuple_scores = model(x_tuples.flatten(0, 1).to(device)).squeeze(1)
                unlabeled_scores = model(x_unlabeled.to(device)).squeeze(1)
                risk = (
                    w[0] * loss(tuple_scores, 1).mean()
                    + w[1] * loss(tuple_scores, -1).mean()
                    + w[2] * loss(unlabeled_scores, 1).mean()
                    + w[3] * loss(unlabeled_scores, -1).mean()
                )
                risk = {"ure": risk, "relu": risk.clamp(min=0), "abs": risk.abs()}[task.method]
                adam.zero_grad()
                risk.backward()
                adam.step()
            with torch.no_grad():
                accuracy = ((model(test_images).squeeze(1) > 0) == (test_labels > 0)).float().mean().item()
            seconds.append(time.perf_counter() - start)
        accuracies.append(accuracy)
    return accuracies, seconds


def job_epochs(tasks, samples, data, epochs, device, precision):
    """Train the tasks as one job; return the accuracies of the last epoch and the seconds per task and epoch.

    Stacks train side by side, so an epoch of all tasks is as many epochs of stacks, whichever they are.
    """
    rates, images = data.rates(), data.images.train_images
    settings = replace(SETTINGS, precision=precision, epochs=epochs)
    steps, accuracies, last = [], [], time.perf_counter()

    def advance(task_epochs: int) -> None:
        nonlocal last
        if device.type == "cuda":
            torch.cuda.synchronize()
        now = time.perf_counter()
        steps.append((now - last, task_epochs))
        last = now

    for model in fit_each(tasks, images, samples, settings, evaluation=rates, device=device, advance=advance):
        true_positive, true_negative = model.history[["true_positive_rate", "true_negative_rate"]].iloc[-1]
        accuracies.append(rates.share_positive * true_positive + (1 - rates.share_positive) * true_negative)
    stacks = len(steps) // epochs
    rounds = [steps[start : start + stacks] for start in range(0, len(steps), stacks)]
    return accuracies, [sum(seconds for seconds, _ in some) / sum(count for _, count in some) for some in rounds]


def product_peak(dtype, device):
    """Return the highest rate of an 8192 x 1024 x 1024 matrix product over a second, in GFLOP/s."""
    a, b = (torch.randn(shape, device=device).to(dtype) for shape in ((8192, 1024), (1024, 1024)))
    rates, end = [], time.perf_counter() + 1
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(5):
            a @ b
        if device.type == "cuda":
            torch.cuda.synchronize()
        rates.append(5 * 2 * 8192 * 1024 * 1024 / (time.perf_counter() - start) / 1e9)
    return max(rates)


def flops(tuple_size, n):
    """Return the floating point operations of one task and epoch without padding: training and evaluation."""
    forward = 784 * 300 + 300 * 300 + 300
    return 2 * ((2 * forward + 300 * 300 + 300) * n * (tuple_size + 1) + forward * 10_000)


def measure(name, arguments):
    """Return the figures of one case."""
    case = CASES[name]
    device = begin(arguments)
    data = Labelled.read(arguments.images)
    count, n, tuple_size = case.get("runs", 9), case.get("n", 10_000), case.get("tuple_size", 2)
    tasks = [Task(METHODS[i % 3], tuple_size, 0.5, seed=1 + i // 3, sample=str(1 + i // 3)) for i in range(count)]
    samples = data.samples(tuple_size, 0.5, n, {task.seed for task in tasks})
    epochs = arguments.ordinary_epochs if name == "ordinary" else arguments.epochs
    if name == "ordinary":
        accuracies, seconds = ordinary_epochs(tasks, samples, data, epochs, device)
    else:
        accuracies, seconds = job_epochs(tasks, samples, data, epochs, device, case["precision"])
    kept = [figure for i, figure in enumerate(seconds) if i % epochs]  # the first of each, or of all, is warm-up
    median, mean = statistics.median(kept), statistics.mean(kept)
    dtype = torch.bfloat16 if case["precision"] == "bf16" else torch.float32
    peak = product_peak(dtype, device)
    memory = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    return {
        "case": name,
        "runs": count,
        "n": n,
        "tuple_size": tuple_size,
        "epochs": epochs,
        "seconds_per_run_epoch": round(mean, 4),
        "median": round(median, 4),
        "peak_gflops": round(peak),
        "share_of_peak": round(flops(tuple_size, n) / mean / 1e9 / peak, 3),
        "peak_rss_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "peak_gpu_gib": round(memory / 2**30, 2),
        "accuracy": round(float(np.mean(accuracies)), 4),
        **machine(device),
    }


def main():
    """Measure every case in a process of its own and print the figures as JSON lines."""
    parser = training_parser(__doc__, SETTINGS.epochs)
    parser.add_argument("--ordinary-epochs", type=int, default=4, help="of the ordinary loop; the first is warm-up")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments)))
        return
    for name in arguments.only:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--one", name], check=True)


if __name__ == "__main__":
    main()
