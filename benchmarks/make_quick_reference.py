"""Make results/reference/quick.csv: the expected numbers of ./run, with tolerances for rounding.

Another CPU adds the same numbers in another order. URE hardly notices; the gradient of a corrected
risk jumps where the risk crosses zero, so a difference in the last bit grows. The quick experiment
is therefore trained several times with its grey values scaled by a few units in their last place:
the expected mean of a cell is the mean over these, and the tolerance of a method is six times the
deviation of its cells from theirs (pooled over cells), but at least half a point. A wrong risk
weight, split or optimizer setting moves cells by several points.

    OMP_NUM_THREADS=1 python benchmarks/make_quick_reference.py
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch

from mdpu.data import draw_split
from mdpu.methods import load_method
from mdpu.networks import TestSet
from mdpu.pipeline.config import load_config
from mdpu.pipeline.data.labels import binarize
from mdpu.pipeline.data.sources import SOURCES
from mdpu.pipeline.evaluate.collect import run_accuracies, summarize
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.job import run_history
from mdpu.pipeline.plan import CELL, Plan
from mdpu.settings import Task
from mdpu.train import train

TIMES = 6
UNIT = 2.0**-22  # of a grey value: two units in the last place
DEVIATIONS = 6
LEAST = 0.5  # points


def summary_of(plan: Plan, time: int) -> pd.DataFrame:
    """Train all runs with the grey values times 1 + `time` `UNIT`, and return the cells."""
    images = SOURCES["digits"].read([])
    labels = binarize(images, plan.dataset("digits"))
    shades = shades_of(images.train_images, time)
    test_shades = shades_of(images.test_images, time)
    evaluation = TestSet(test_shades, labels["test"], shades, labels["train"])
    settings = plan.protocol.settings("base", "mlp")

    histories = []
    for run in plan.runs:
        prior = float(run.prior)
        sample = draw_split(labels["train"], run.tuple_size, prior, run.n, run.n, run.trial)
        (model,) = train(
            Task(run.method, run.tuple_size, prior, run.loss),
            shades,
            [sample],
            [run.trial],
            settings,
            labels=labels["train"],
            evaluation=evaluation,
        )
        unnamed = load_method(run.method).unnamed
        history = run_history(unnamed, model.history, evaluation.share_positive)
        histories.append(history.assign(**vars(run)))
    return summarize(run_accuracies(pd.concat(histories), plan.protocol.reporting))


def shades_of(images: np.ndarray, time: int) -> np.ndarray:
    """Return grey values from 0 to 1, times 1 + `time` `UNIT`."""
    return np.float32(1 + time * UNIT) * (images.astype(np.float32) / 255)


def tolerances_of(cells: pd.DataFrame) -> dict[str, float]:
    """Return the tolerance of each method in points, by the variances of its cells."""
    deviations = cells.groupby("method")["var"].mean() ** 0.5
    print(f"deviation of a cell's mean by rounding, in points:\n{deviations.round(3).to_string()}")
    tolerances = {}
    for method, deviation in deviations.items():
        tenths = math.ceil(10 * DEVIATIONS * deviation)
        tolerances[method] = max(LEAST, tenths / 10)
    return tolerances


def main() -> None:
    """Train, compare and write."""
    torch.set_num_threads(1)
    plan = Plan(load_config([REPOSITORY / "config" / "quick.yaml"]))
    trained = pd.concat(summary_of(plan, time) for time in range(TIMES))
    cells = trained.groupby(list(CELL))["mean"].agg(["mean", "var"]).reset_index()

    reference = cells.drop(columns="var")
    reference["mean"] = cells["mean"].round(3)
    reference["tolerance"] = cells["method"].map(tolerances_of(cells))
    reference.to_csv(REPOSITORY / "results" / "reference" / "quick.csv", index=False)
    print(reference.to_string(index=False))


if __name__ == "__main__":
    main()
