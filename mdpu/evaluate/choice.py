"""The epoch that held-out bags choose without labels, beside the best one and the protocol's last epochs.

Bags are those of `mdpu.study.validation`: they come from one half of the test images, and accuracies here are on the
other half. Two estimates of the error choose, both from a classifier's answers alone: of single members, the unbiased
estimator of the paper with the 0-1 loss; and of whole bags, the PU risk of "is this bag dominant?".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from mdpu.learn.tuning import estimated_error
from mdpu.study.grid import AXES, CELL
from mdpu.theory.joint import dominance, dominance_rate, fewest_positives

CHOICES = ("bags", "members")
NEEDED = ("validation_unlabeled", "others_true_positive_rate", "others_true_negative_rate")


def tuple_counts(metrics: pd.DataFrame, tuple_size: int) -> pd.DataFrame:
    """Return the shares of validation tuples with 0 .. M positive answers, a column for each."""
    return metrics[[f"validation_tuples_{positives}" for positives in range(tuple_size + 1)]]


def member_risk(metrics: pd.DataFrame, tuple_size: int, prior: float) -> pd.Series:
    """Return the unbiased estimate of the error rate (Eq. 11, 0-1 loss) at each row of one tuple size."""
    fractions = np.arange(tuple_size + 1) / tuple_size
    share = (tuple_counts(metrics, tuple_size) * fractions).sum(axis=1, skipna=False)
    return estimated_error(tuple_size, prior, share, metrics["validation_unlabeled"])


def bag_risk(metrics: pd.DataFrame, tuple_size: int, prior: float) -> pd.Series:
    """Return the PU estimate of the share of bags that are put on the wrong side, at each row of one tuple size.

    Z P_T[no] + P_U[yes] - Z P_T[yes], where a bag is called dominant if at least half of its members are called
    positive. Answers on unlabeled images are independent, so P_U[yes] follows from their share of positive answers.

    Parameters
    ----------
    metrics : DataFrame
        Rows with the counts of `mdpu.learn.evaluation.count_answers`.
    tuple_size : int
    prior : float
        That the method is told, or estimates.
    """
    counts = tuple_counts(metrics, tuple_size)
    yes = counts.iloc[:, fewest_positives(tuple_size) :].sum(axis=1, skipna=False)
    share = metrics["validation_unlabeled"].to_numpy()
    unlabeled_yes = dominance(np.repeat(share.clip(0, 1)[:, None], tuple_size, axis=1))
    return dominance_rate(tuple_size, prior) * (1 - 2 * yes) + unlabeled_yes


RISKS: dict[str, Callable[[pd.DataFrame, int, float], pd.Series]] = {"bags": bag_risk, "members": member_risk}


def choose_epochs(metrics: pd.DataFrame, offsets: Mapping[str, float], average_last: int) -> pd.DataFrame:
    """Return what each choice of an epoch gives, run by run.

    Parameters
    ----------
    metrics : DataFrame
        As `mdpu.evaluate.collect.collect` returns it.
    offsets : mapping
        Assumed minus true prior, by variant.
    average_last : int
        Epochs of the protocol's mean.

    Returns
    -------
    DataFrame
        A row per run that has a score and did not diverge: the key columns; ``best``, the highest accuracy of any
        epoch in percent, at the training prior; ``last``, the mean of the last epochs; and for each of `CHOICES` its
        epoch (``bags_epoch``) and the accuracy there (``bags``). The regret of a choice is ``best`` minus it.
    """
    columns = [*AXES, "best", "last", *(name for choice in CHOICES for name in (f"{choice}_epoch", choice))]
    if not {*NEEDED} <= {*metrics.columns}:
        return pd.DataFrame(columns=columns)
    prior = metrics["prior"].astype(float)
    told = prior + metrics["variant"].map(offsets)
    if "estimated_prior" in metrics:
        told = metrics["estimated_prior"].fillna(told)
    positive, negative = metrics["others_true_positive_rate"], metrics["others_true_negative_rate"]
    shown = metrics.assign(told=told, elsewhere=100 * (prior * positive + (1 - prior) * negative))
    rows = []
    for key, run in shown.groupby(list(AXES), sort=False):
        if run["elsewhere"].isna().any():
            continue
        run = run.sort_values("epoch")
        size, told_prior = int(run["tuple_size"].iloc[0]), float(run["told"].iloc[0])
        chosen = {name: int(risk(run, size, told_prior).to_numpy().argmin()) for name, risk in RISKS.items()}
        rows.append(
            dict(zip(AXES, key, strict=True))
            | {"best": run["elsewhere"].max(), "last": run["elsewhere"].tail(average_last).mean()}
            | {f"{name}_epoch": run["epoch"].iloc[place] for name, place in chosen.items()}
            | {name: run["elsewhere"].iloc[place] for name, place in chosen.items()}
        )
    return pd.DataFrame(rows, columns=columns)


def summarize_regret(chosen: pd.DataFrame) -> pd.DataFrame:
    """Return the mean regret of each choice, and of the last epochs, per cell: ``bags``, ``members``, ``last``."""
    ways = ["last", *CHOICES]
    regret = chosen.assign(**{way: chosen["best"] - chosen[way] for way in ways})
    return regret.groupby(list(CELL), as_index=False, sort=False).agg(
        trials=("best", "size"), best=("best", "mean"), **{way: (way, "mean") for way in ways}
    )
