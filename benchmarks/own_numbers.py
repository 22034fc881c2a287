"""Train random partitions of a job and count the histories whose bits differ from those of tasks trained alone.

A partition is some of the tasks in random order, with 1 to 4 threads, with memory for all or for a few, undisturbed or
killed once and taken up again. Tasks are of every method that trains a network and of every loss, with small
perceptrons on images made here.

    python benchmarks/own_numbers.py      # 200 partitions: 50 for each precision and tuple size
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from mdpu.data import TupleData
from mdpu.learn import Settings, Task, TestRates, fit, fit_each
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.device import cpu_model, resolve_precision
from mdpu.learn.fitting import stack_bytes
from mdpu.learn.method import FittedMethod
from mdpu.learn.methods import available_methods, load_method
from mdpu.learn.networks import load_network
from mdpu.learn.prior import brief_estimate
from mdpu.randomness import Stream

CPU = torch.device("cpu")
LOSSES = ("logistic", "ramp", "squared", "hinge")


class Job:
    """Tasks on two samples at two priors in a precision, and the history that each has alone.

    They are trained on 700 images of two overlapping classes, whose sizes are odd on purpose.
    """

    def __init__(self, precision: str, tuple_size: int) -> None:
        self.labels = np.where(np.arange(700) % 5 < 2, 1, -1).astype(np.int8)
        bright = np.where(np.arange(7) < 3, 40, -40) * self.labels[:, None, None]
        self.images = (90 + bright + 90 * Stream(1, "made").uniform(700, 9, 7)).clip(0, 255).astype(np.uint8)
        own = {"batch_size": 47, "learning_rate": 3e-3, "architecture": {"hidden": (37, 20)}}
        self.settings, n = Settings(epochs=3, precision=precision, **own), 151
        keys = [f"{prior}/{seed}" for prior in (0.4, 0.6) for seed in (1, 2)]
        draws = {key: Stream(key, "sample") for key in keys}
        self.samples = {
            key: TupleData(stream.integers(len(self.images), n, tuple_size), stream.integers(len(self.images), n + 26))
            for key, stream in draws.items()
        }
        methods = [name for name in available_methods() if not isinstance(load_method(name), FittedMethod)]
        self.tasks = tuple(
            Task(method, tuple_size, float(key.split("/")[0]), loss, key, key)
            for method in methods
            for loss in (LOSSES if method in ("ure", "abs", "relu-part", "supervised") else LOSSES[:1])
            for key in keys
        )

    @property
    def options(self) -> dict[str, object]:
        """What every training is given."""
        evaluation = TestRates(self.images[:333], self.labels[:333], self.images, self.labels)
        return {"labels": self.labels, "evaluation": evaluation, "device": CPU, "estimate_prior": brief_estimate}

    @functools.cache  # noqa: B019  (a training job lives as long as the program)
    def alone(self, task: Task) -> pd.DataFrame:
        """Return the history of a task trained alone, with one thread."""
        torch.set_num_threads(1)
        return fit([task], self.images, self.samples, self.settings, **self.options)[0].history


@dataclass(frozen=True)
class Partition:
    """What is trained together, and how.

    Attributes
    ----------
    tasks : tuple of Task
    threads : int
    small_memory : bool
        Whether the memory holds a few models only, so that the tasks train in parts.
    killed_after : int or None
        Epochs of stacks after which the training is killed, to be taken up from its checkpoints.
    """

    tasks: tuple[Task, ...]
    threads: int
    small_memory: bool
    killed_after: int | None


class Killed(Exception):
    """Stands for what ends a process."""


def differing(job: Job, partition: Partition, folder: Path) -> list[Task]:
    """Return the tasks of a partition whose history is not, bit for bit, the one that they have alone."""
    expected = {task: job.alone(task) for task in partition.tasks}
    torch.set_num_threads(partition.threads)
    left = partition.killed_after

    def advance(_: int) -> None:
        nonlocal left
        if left is not None:
            left -= 1
            if left == 0:
                raise Killed

    def checkpoint_of(stack: tuple[tuple[Task, ...], ...]) -> Checkpoint:
        key = "-".join(str(job.tasks.index(task)) for row in stack for task in row)
        return Checkpoint(folder / f"{hash(key)}.pt", key, 0)

    histories: dict[Task, pd.DataFrame] = {}
    while len(histories) < len(partition.tasks):
        # A process that comes after a kill trains what has no history yet, in another cut.
        missing = [task for task in partition.tasks if task not in histories]
        try:
            for model in fit_each(
                missing,
                job.images,
                job.samples,
                job.settings,
                **job.options,
                advance=advance,
                checkpoint_of=checkpoint_of,
                memory=few_models(job) if partition.small_memory else None,
            ):
                histories[model.task] = model.history
        except Killed:
            left = None
    return [task for task in partition.tasks if not histories[task].equals(expected[task])]


def few_models(job: Job) -> int:
    """Return the bytes that three of the training job's largest models take."""
    network, shape = load_network(job.settings.network), job.images.shape[1:]
    return 3 * max(stack_bytes(((task,),), job.settings, network, shape, job.samples) for task in job.tasks)


def main() -> None:
    """Train partitions and print a line of JSON for each training job, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=200)
    arguments = parser.parse_args()
    draw, total, compared = random.Random(1), 0, 0
    precisions = dict.fromkeys(["fp32", resolve_precision("auto", CPU)])
    cases = [(precision, size) for precision in precisions for size in (2, 3)]
    for precision, size in cases:
        job, bad, histories = Job(precision, size), 0, 0
        for _ in range(arguments.partitions // len(cases)):
            count = draw.choice([1, 2, 3, 5, 9, 20, len(job.tasks)])
            partition = Partition(
                tuple(draw.sample(job.tasks, min(count, len(job.tasks)))),
                draw.randint(1, 4),
                draw.random() < 0.3,
                draw.choice([None, None, draw.randint(1, 3 * count)]),
            )
            with tempfile.TemporaryDirectory() as folder:
                bad += len(differing(job, partition, Path(folder)))
            histories += len(partition.tasks)
        figures = {"precision": precision, "tuple_size": size, "histories": histories, "differing": bad}
        print(json.dumps(figures), flush=True)
        total, compared = total + bad, compared + histories
    print(json.dumps({"cpu": cpu_model(), "histories": compared, "differing": total}))


if __name__ == "__main__":
    main()
