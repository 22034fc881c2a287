r"""Make results/reference/quick.csv, the expected numbers of ./run, with tolerances from what rounding does to them.

Another CPU adds the same numbers in another order. URE hardly notices; the gradient of a corrected risk jumps where
the risk crosses zero, so that a difference in the last bit grows. The quick experiment is therefore trained in several
orders of summation: the expected mean of a cell is the mean over these, and the tolerance of a method is six times the
deviation of its cells from theirs (pooled over cells), but at least half a point. A wrong risk weight, split or
optimizer setting moves cells by several points.

    python benchmarks/make_quick_reference.py          # after ./run, which makes images, labels and splits
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from mdpu.learn import fit
from mdpu.learn.evaluation import TestRates
from mdpu.learn.networks import mlp
from mdpu.pipeline.config import load_config
from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.data.labels import read_labels
from mdpu.pipeline.evaluate.collect import run_accuracies, summarize
from mdpu.pipeline.history import run_history
from mdpu.pipeline.plan import CELL, Plan
from mdpu.pipeline.train import read_sample, task_of

ROOT = Path(__file__).resolve().parent.parent
ORDERS = 6
DEVIATIONS, LEAST = 6, 0.5


def in_order(order: int) -> AbstractContextManager[object]:
    """Return a context in which perceptrons take their pixels in the given order; order 0 is the one they have.

    The weights of the first layer move with the pixels. So nothing changes but the order in which products are added.
    """

    def prepare(images: NDArray[Any]) -> mlp.Vectors:
        vectors = mlp.prepare(images)
        return replace(vectors, pixels=np.random.default_rng(order).permutation(vectors.pixels))

    if order == 0:
        return nullcontext()
    return mock.patch.object(mlp, "NETWORK", replace(mlp.NETWORK, prepare=prepare))


def main() -> None:
    """Train, compare and write."""
    torch.set_num_threads(1)
    plan = Plan(load_config([ROOT / "config.yaml", ROOT / "config/quick.yaml"]))
    (dataset,) = plan.datasets
    images, labels = read_images(plan.layout.images(dataset)), read_labels(plan.layout.labels(dataset))
    rates = TestRates(images.test_images, labels["test"], images.train_images, labels["train"])
    samples = {name: read_sample(plan.layout.split(name)) for name in plan.splits}
    summaries = []
    for order in range(ORDERS):
        histories: list[pd.DataFrame] = []
        for job in plan.jobs.values():
            tasks = {task_of(plan, run): run for run in job.runs}
            settings = plan.settings(job.variant, job.network)
            with in_order(order):
                models = fit(
                    list(tasks),
                    images.train_images,
                    samples,
                    settings,
                    labels=labels["train"],
                    evaluation=rates,
                    device="cpu",
                )
            for model in models:
                history = run_history(model.task.method, model.history, rates.share_positive)
                histories.append(history.assign(**vars(tasks[model.task])))
        accuracies = run_accuracies(pd.concat(histories), plan.protocol.reporting())
        summaries.append(summarize(accuracies))
        print(f"order {order}: done", flush=True)
    cells = pd.concat(summaries).groupby(list(CELL))["mean"].agg(["mean", "var"]).reset_index()
    pooled = cells.groupby("method")["var"].mean() ** 0.5
    print(f"deviation of a cell's mean with the order of summation, in points:\n{pooled.round(3).to_string()}")
    tolerance = {method: max(LEAST, math.ceil(10 * DEVIATIONS * value) / 10) for method, value in pooled.items()}
    reference = cells.assign(mean=cells["mean"].round(3), tolerance=cells["method"].map(tolerance)).drop(columns="var")
    reference.to_csv(ROOT / "results/reference/quick.csv", index=False)
    print(reference.to_string(index=False))


if __name__ == "__main__":
    main()
