"""The epoch that held-out bags choose without labels, beside the best one and the protocol's last epochs.

Bags are those of `mdpu.study.validation`: they come from one half of the test images, and accuracies here are on the
other half. Both estimates of `mdpu.theory.held_out` choose: that of the error of bags, and that of their members.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mdpu.study.grid import AXES, CELL
from mdpu.theory.held_out import bag_risk, member_risk

RISKS = {"bags": bag_risk, "members": member_risk}
NEEDED = ("validation_unlabeled", "others_true_positive_rate", "others_true_negative_rate")


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
        epoch in percent, at the training prior; ``last``, the mean of the last epochs; and for each of `RISKS` its
        epoch (``bags_epoch``) and the accuracy there (``bags``). The regret of a choice is ``best`` minus it.
    """
    columns = [*AXES, "best", "last", *(name for choice in RISKS for name in (f"{choice}_epoch", choice))]
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
        counts = run[[f"validation_tuples_{positives}" for positives in range(run["tuple_size"].iloc[0] + 1)]]
        told_prior = float(run["told"].iloc[0])
        chosen = {
            name: int(risk(counts, run["validation_unlabeled"], told_prior).argmin()) for name, risk in RISKS.items()
        }
        rows.append(
            dict(zip(AXES, key, strict=True))
            | {"best": run["elsewhere"].max(), "last": run["elsewhere"].tail(average_last).mean()}
            | {f"{name}_epoch": run["epoch"].iloc[place] for name, place in chosen.items()}
            | {name: run["elsewhere"].iloc[place] for name, place in chosen.items()}
        )
    return pd.DataFrame(rows, columns=columns)


def summarize_regret(chosen: pd.DataFrame) -> pd.DataFrame:
    """Return the mean regret of each choice, and of the last epochs, per cell: ``bags``, ``members``, ``last``."""
    ways = ["last", *RISKS]
    regret = chosen.assign(**{way: chosen["best"] - chosen[way] for way in ways})
    return regret.groupby(list(CELL), as_index=False, sort=False).agg(
        trials=("best", "size"), best=("best", "mean"), **{way: (way, "mean") for way in ways}
    )
