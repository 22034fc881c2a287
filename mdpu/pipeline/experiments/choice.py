"""What it costs to choose the epoch, or hyper-parameters, without labels: regret against the best, by method.

Held-out bags choose (`mdpu.pipeline.validation`), which come from one half of the test images; accuracies here are on
the other half. Both estimates of `mdpu.law.Law` choose: that of the error of bags, and that of their members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from mdpu.law import Law, named_law
from mdpu.learn.methods import load_method
from mdpu.pipeline.config import BASE
from mdpu.pipeline.experiments import check_base, rows_kind
from mdpu.pipeline.plan import AXES, CELL, Experiment, Plan
from mdpu.pipeline.report.drawing import size_name

RISKS = {"bags": Law.bag_risk, "members": Law.member_risk}
NEEDED = ("validation_unlabeled", "others_true_positive_rate", "others_true_negative_rate")
WAYS = ("protocol", *RISKS)
AMONG = {"title": "What is chosen: an epoch of each run, or a variant of each trial.", "enum": ["epochs", "variants"]}
KEYS = {"among": AMONG}
EPOCHS = """\
Regret in points: the accuracy of the best epoch minus that of the epoch chosen, on the half of the test images from
which no bag is drawn. The last epochs are the protocol's mean. The other two choices use 2,000 held-out tuples and
2,000 unlabeled images of the other half, and no label: the epoch with the lowest estimated error of bags, or of their
members. A number is the mean over cells and trials; in brackets is the largest of a cell.
"""
VARIANTS = """\
Regret in points: the accuracy with the best hyper-parameters minus that with those chosen, on the half of the test
images from which no bag is drawn; both are means of the last epochs. The protocol's are those of every other table.
The other two choices use 2,000 held-out tuples and 2,000 unlabeled images of the other half, and no label: the
hyper-parameters with the lowest estimated error of bags, or of their members. They are chosen trial by trial. A number
is the mean over cells and trials; in brackets is the largest of a cell. Tried are {tried}.
"""
HEADERS = {
    "epochs": ["Tuples", "Method", "Runs", "Best epoch, %", "Last epochs", "By bags", "By members"],
    "variants": ["Tuples", "Method", "Trials", "Best, %", "By the protocol", "By bags", "By members"],
}


def choose_epochs(metrics: pd.DataFrame, offsets: Mapping[str, float], average_last: int) -> pd.DataFrame:
    """Return what each choice of an epoch gives, for each run that has a score and did not diverge.

    `offsets` are assumed minus true prior, by variant. ``best`` is the highest accuracy of any epoch in percent, at the
    training prior, ``protocol`` the mean of the last epochs. Each of `RISKS` has the accuracy at the epoch that it
    chooses. The regret of a choice is ``best`` minus it.
    """
    rows = [
        dict(zip(AXES, key, strict=True)) | _choice(run, run["elsewhere"].tail(average_last).mean())
        for key, run in _estimated_runs(metrics, offsets)
    ]
    return pd.DataFrame(rows, columns=[*AXES, "best", *WAYS])


def choose_settings(metrics: pd.DataFrame, offsets: Mapping[str, float], average_last: int) -> pd.DataFrame:
    """Return what each choice among the variants of a trial gives, for each trial whose base variant did not diverge.

    Estimates and accuracies are means over the last epochs. A variant that diverged is not chosen. Columns are those of
    `choose_epochs`, with variants for epochs.
    """
    measured = ["elsewhere", *RISKS]
    runs = [
        dict(zip(AXES, key, strict=True)) | run[measured].tail(average_last).mean().to_dict()
        for key, run in _estimated_runs(metrics, offsets)
    ]
    trial, rows = [axis for axis in AXES if axis != "variant"], []
    for key, variants in pd.DataFrame(runs, columns=[*AXES, *measured]).groupby(trial, sort=False):
        base = variants.loc[variants["variant"] == BASE, "elsewhere"]
        if len(base):
            rows.append(dict(zip(trial, key, strict=True)) | {"variant": BASE} | _choice(variants, base.item()))
    return pd.DataFrame(rows, columns=[*AXES, "best", *WAYS])


def _choice(options: pd.DataFrame, protocol: float) -> dict[str, float]:
    """Return what the best of some options, the protocol's and those with the least risks give."""
    reached = options["elsewhere"]
    chosen = {name: reached.iloc[int(options[name].argmin())] for name in RISKS}
    return {"best": reached.max(), "protocol": protocol, **chosen}


def _estimated_runs(
    metrics: pd.DataFrame, offsets: Mapping[str, float]
) -> Iterator[tuple[tuple[object, ...], pd.DataFrame]]:
    """Yield the key and the epochs of each run that has a score and did not diverge.

    ``elsewhere`` is the accuracy on images of which no bag is drawn, in percent; each of `RISKS` has a column too.
    """
    if not {*NEEDED} <= {*metrics.columns}:
        return
    prior = metrics["prior"].astype(float)
    told = prior + metrics["variant"].map(offsets)
    if "estimated_prior" in metrics:
        told = metrics["estimated_prior"].fillna(told)
    positive, negative = metrics["others_true_positive_rate"], metrics["others_true_negative_rate"]
    shown = metrics.assign(told=told, elsewhere=100 * (prior * positive + (1 - prior) * negative))
    for key, run in shown.groupby(list(AXES), sort=False):
        if run["elsewhere"].isna().any():
            continue
        run = run.sort_values("epoch")
        counts = run[[f"validation_tuples_{positives}" for positives in range(run["tuple_size"].iloc[0] + 1)]]
        told_prior = float(run["told"].iloc[0])
        law = named_law(run["law"].iloc[0], run["tuple_size"].iloc[0])
        risks = {name: risk(law, counts, run["validation_unlabeled"], told_prior) for name, risk in RISKS.items()}
        yield key, run.assign(**risks)


def summarize_regret(chosen: pd.DataFrame) -> pd.DataFrame:
    """Return the mean regret of each choice, and of the protocol, per cell: ``bags``, ``members``, ``protocol``."""
    regret = chosen.assign(**{way: chosen["best"] - chosen[way] for way in WAYS})
    return regret.groupby(list(CELL), as_index=False, sort=False).agg(
        trials=("best", "size"), best=("best", "mean"), **{way: (way, "mean") for way in WAYS}
    )


def among(experiment: Experiment) -> str:
    """Return what is chosen: ``epochs`` of a run, or ``variants`` of a trial."""
    return str(experiment.options.get("among", "epochs"))


def caption(experiment: Experiment) -> str:
    """Return what the table shows."""
    if among(experiment) == "epochs":
        return EPOCHS
    return VARIANTS.format(tried=", ".join(dict.fromkeys(run.variant for run in experiment.runs)))


def check(definition: Mapping[str, Any], config: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` if variants are chosen among, and the base is missing."""
    if definition.get("options", {}).get("among") == "variants":
        check_base(definition, where)


def regrets(plan: Plan, experiment: Experiment, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the regret of each cell."""
    variants = dict.fromkeys(run.variant for run in experiment.runs)
    offsets = {name: plan.protocol.variant(name)["training"]["prior_offset"] for name in variants}
    average = plan.protocol.reporting()["average_last"]
    choose = choose_epochs if among(experiment) == "epochs" else choose_settings
    return summarize_regret(choose(metrics, offsets, average if isinstance(average, int) else 10))


def table_rows(_plan: Plan, experiment: Experiment, cells: pd.DataFrame) -> list[list[str]]:
    """Return a row of strings per tuple size and method, in the experiment's order."""
    rows = []
    for size in sorted({run.tuple_size for run in experiment.runs}):
        for method in dict.fromkeys(run.method for run in experiment.runs):
            group = cells[(cells["tuple_size"] == size) & (cells["method"] == method)]
            if group.empty:
                continue
            trials = group["trials"]
            means = {way: (group[way] * trials).sum() / trials.sum() for way in ("best", *WAYS)}
            regrets = [f"{means[way]:.2f} ({group[way].max():.2f})" for way in WAYS]
            title = load_method(method).title
            rows.append([size_name(size), title, str(int(trials.sum())), f"{means['best']:.2f}", *regrets])
    return rows


KIND = rows_kind(regrets, table_rows, caption, lambda experiment: HEADERS[among(experiment)], keys=KEYS, check=check)
