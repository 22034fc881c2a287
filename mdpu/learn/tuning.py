"""Learning rate and weight decay, chosen from a grid without true labels.

A part of the tuples and of the unlabeled images is held out. On it the unbiased estimator with the 0-1 loss
(Theorem 1 holds for any loss) rates each grid point. The test set is not used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.learn.evaluation import HeldOut, positive_shares
from mdpu.learn.fitting import fit_each
from mdpu.learn.task import Settings, Task


def hold_out(sample: TupleData, share: float) -> tuple[TupleData, TupleData]:
    """Hold out the last `share` of a sample's tuples and unlabeled images; return the rest, and the held-out part.

    With replacement an image may be drawn for both parts. Such images are removed from the rest.

    Raises
    ------
    UserError
        If one of the two parts would have no tuple or no unlabeled image.
    """
    cut, cut_unlabeled = (round((1 - share) * len(part)) for part in (sample.tuples, sample.unlabeled))
    held = TupleData(sample.tuples[cut:], sample.unlabeled[cut_unlabeled:])
    images = np.union1d(held.tuples[held.tuples >= 0], held.unlabeled)
    tuples, unlabeled = sample.tuples[:cut], sample.unlabeled[:cut_unlabeled]
    kept = TupleData(tuples[~np.isin(tuples, images).any(axis=1)], unlabeled[~np.isin(unlabeled, images)])
    for part, what in ((kept, "to train on"), (held, "held out")):
        if not len(part.tuples) or not len(part.unlabeled):
            counts = f"{len(part.tuples)} tuples and {len(part.unlabeled)} unlabeled rows are {what}"
            raise UserError(
                f"with a share of {share} held out, {counts}; change that share (validation_fraction, tuning.held_out) "
                "or take more"
            )
    return kept, held


def tune(
    tasks: Sequence[Task],
    images: NDArray[Any],
    sample: TupleData,
    settings: Settings,
    grid: Mapping[str, Sequence[float]],
    held_out: float,
    average_last: int,
    *,
    device: torch.device | str = "auto",
    advance: Callable[[int], None] = lambda task_epochs: None,
    memory: int | None = None,
) -> pd.DataFrame:
    """Train each task at every point of a grid and estimate the error rates.

    Parameters
    ----------
    tasks : sequence of Task
        One per method.
    images, sample, settings, device, advance, memory
        As for `mdpu.learn.fitting.fit_each`.
    grid : mapping
        ``learning_rate`` and ``weight_decay``, the values of each.
    held_out : float
        Share of tuples and of unlabeled images that the estimate uses.
    average_last : int
        Number of last epochs that the estimate is averaged over.

    Returns
    -------
    DataFrame
        One row per method and grid point: method, learning_rate, weight_decay, estimated_error (missing
        if training diverged) and chosen, true for the lowest estimate of each method. If a method diverged
        everywhere, none of its rows is chosen.

    Raises
    ------
    UserError
        If a part of the sample would be empty, and for the reasons of `mdpu.learn.fitting.fit_each`.
    """
    kept, held = hold_out(sample, held_out)
    points = list(itertools.product(grid["learning_rate"], grid["weight_decay"]))
    at_points = [replace(task, learning_rate=rate, weight_decay=decay) for task in tasks for rate, decay in points]
    evaluation = HeldOut(images, held, ("tuple_rate", "unlabeled_rate"), positive_shares)
    rows = []
    for model in fit_each(
        at_points, images, kept, settings, evaluation=evaluation, device=device, advance=advance, memory=memory
    ):
        task, last = model.task, model.history.tail(average_last)
        error = task.law_of(task.tuple_size).error(last["tuple_rate"], last["unlabeled_rate"], task.prior)
        rows.append(
            {
                "method": task.method,
                "learning_rate": task.learning_rate,
                "weight_decay": task.weight_decay,
                "estimated_error": error.mean(skipna=False),
            }
        )
    table = pd.DataFrame(rows).sort_values(["method", "learning_rate", "weight_decay"], ignore_index=True)
    lowest = table.dropna(subset="estimated_error").groupby("method")["estimated_error"].idxmin()
    table["chosen"] = table.index.isin(lowest)
    return table


def chosen_rates(table: pd.DataFrame, methods: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the learning rate and weight decay that `tune` chose, by method.

    Raises
    ------
    UserError
        If a method that was tuned diverged at every point of the grid.
    """
    tuned = set(table["method"]) & set(methods)
    rows = table[table["chosen"]].to_dict("records")
    chosen = {row["method"]: (float(row["learning_rate"]), float(row["weight_decay"])) for row in rows}
    if lost := sorted(tuned - chosen.keys()):
        raise UserError(f"method {lost[0]} diverged at every point of tuning.grid; add smaller learning rates")
    return {method: chosen[method] for method in tuned}
