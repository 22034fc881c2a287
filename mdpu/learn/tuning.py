"""Learning rate and weight decay chosen from a grid without true labels.

Part of the tuples and of the unlabeled images is held out, and the unbiased estimator with the 0-1 loss
(Theorem 1 holds for any loss) says how well a grid point does on them. The test set has no part in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from mdpu.data.images import ImageSet
from mdpu.data.splits import Split
from mdpu.learn.head import assumed_prior
from mdpu.learn.trainer import Rates, TrainingData, train
from mdpu.study.grid import Run
from mdpu.theory import risk_weights


def hold_out(split: Split, share: float) -> tuple[Split, Split]:
    """Cut the last `share` of a split's tuples and unlabeled images off; return what is left, and them."""
    cut, cut_unlabeled = (round((1 - share) * len(part)) for part in (split.tuples, split.unlabeled))
    return (
        Split(split.tuples[:cut], split.unlabeled[:cut_unlabeled]),
        Split(split.tuples[cut:], split.unlabeled[cut_unlabeled:]),
    )


def estimated_error(
    run: Run, settings: Mapping[str, Any], tuple_rate: pd.Series, unlabeled_rate: pd.Series
) -> pd.Series:
    """Return the unbiased estimate of the error rate from two rates of positive predictions (Eq. 11, 0-1 loss).

    Parameters
    ----------
    run : Run
        Gives tuple size and prior.
    settings : mapping
        Training settings; the estimate goes by the prior that the run's method is told, as the user knows no other.
    tuple_rate, unlabeled_rate : Series
        Share of tuple members, and of unlabeled images, that the classifier calls positive.
    """
    weights = risk_weights(run.tuple_size, assumed_prior(run, settings))
    return (
        weights.tuple_positive * (1 - tuple_rate)
        + weights.tuple_negative * tuple_rate
        + weights.unlabeled_positive * (1 - unlabeled_rate)
        + weights.unlabeled_negative * unlabeled_rate
    )


def tune(
    runs: Sequence[Run],
    grid: Mapping[str, Sequence[float]],
    held_out: float,
    average_last: int,
    settings: Mapping[str, Any],
    images: ImageSet,
    split: Split,
    device: torch.device,
    advance: Callable[[int], None] = lambda run_epochs: None,
    memory: int | None = None,
) -> pd.DataFrame:
    """Train the whole grid for each run as one cohort and estimate its error rates.

    Parameters
    ----------
    runs : sequence of Run
        One per method, all on one split.
    grid : mapping
        ``learning_rate`` and ``weight_decay``, the values of each.
    held_out : float
        Share of tuples and of unlabeled images that the estimate is made on.
    average_last : int
        Number of last epochs that the estimate is averaged over.
    settings, device, advance, memory
        As for `mdpu.learn.trainer.train`.
    images : ImageSet
        Its training images; true labels are not used.
    split : Split
        Of the runs.

    Returns
    -------
    DataFrame
        One row per method and grid point: method, learning_rate, weight_decay, estimated_error (missing
        where training diverged) and chosen, true for the lowest estimate of each method.
    """
    kept, held = hold_out(split, held_out)
    members = held.tuples.ravel()
    rows = np.concatenate([members, held.unlabeled])
    # The trainer scores whatever it is given as test images: with tuple members on the positive side and
    # unlabeled images on the negative one, its two rates are those that the estimate needs.
    sides = np.repeat(np.array([1, -1], dtype=np.int8), [len(members), len(held.unlabeled)])
    held_images = replace(images, test_images=images.train_images[rows], test_labels=images.train_labels[rows])
    data = TrainingData.prepare(held_images, {"test": sides}, settings["network"], device)
    points = list(itertools.product(grid["learning_rate"], grid["weight_decay"]))
    rates: Rates = {
        replace(run, variant=f"{run.variant}-lr{rate}-wd{decay}"): (rate, decay)
        for run in runs
        for rate, decay in points
    }
    found = []

    def finished(run: Run, history: pd.DataFrame) -> None:
        last = history.tail(average_last)
        error = estimated_error(run, settings, last["true_positive_rate"], 1 - last["true_negative_rate"])
        rate, decay = rates[run]
        found.append(
            {
                "method": run.method,
                "learning_rate": rate,
                "weight_decay": decay,
                "estimated_error": error.mean(skipna=False),
            }
        )

    splits = {run.split: kept for run in rates}
    train(list(rates), settings, data, splits, device, finished, advance, memory=memory, rates=rates)
    table = pd.DataFrame(found).sort_values(["method", "learning_rate", "weight_decay"], ignore_index=True)
    lowest = table.groupby("method")["estimated_error"].transform("idxmin")
    table["chosen"] = table.index == lowest
    return table


def chosen_rates(table: pd.DataFrame, runs: Sequence[Run]) -> Rates:
    """Return the learning rate and weight decay that `tune` chose for the method of each run, where it did."""
    rows = table[table["chosen"]].to_dict("records")
    chosen = {row["method"]: (float(row["learning_rate"]), float(row["weight_decay"])) for row in rows}
    return {run: chosen[run.method] for run in runs if run.method in chosen}
