"""How much each choice that the paper leaves open changes the numbers.

An *alternative* is a choice other than the protocol's own: another variant (trained anew), another reporting
(the same runs, summarised in another way), another scope of the correction (another method), or the other
class sides of a dataset whose published rows two datasets compete for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from mdpu.learn.method import CorrectedRisk
from mdpu.learn.methods import load_method
from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.plan import AXES, ROW, Departure, Experiment, Plan

SCOPE_KEY, SIDES_KEY, JOINT_KEY = "scope", "sides", "joint"
PANEL = ROW
ALTERNATIVE = ("key", "base", "value")


def scoped_methods(methods: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return, by scope and method, the method of `methods` with the same correction applied in that scope."""
    corrections = {
        name: method
        for name in methods
        if isinstance(method := load_method(name), CorrectedRisk) and method.tuple_size is None and method.k >= 0
    }
    wholes = {method.k: name for name, method in corrections.items() if method.scope == "whole"}
    by_scope: dict[str, dict[str, str]] = {}
    for name, method in corrections.items():
        if method.scope != "whole" and method.k in wholes:
            by_scope.setdefault(method.scope, {})[wholes[method.k]] = name
    return by_scope


def paired_differences(plan: Plan, experiment: Experiment, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return how much each alternative changes each trial's accuracy, in the order of the configuration.

    An alternative is key, base and value as the configuration writes them, with the key ``scope`` for another scope of
    the correction, ``sides`` for another dataset, ``joint`` for several keys at once. The method is as base has it. The
    two accuracies are of the same seed, hence of the same tuples where the alternative draws none of its own; they are
    missing where a run diverged.
    """
    keys = [*PANEL, "method", "seed"]
    runs = pd.DataFrame(experiment.runs).assign(cell=[run.cell for run in experiment.runs])

    def accuracies(**changes: Any) -> pd.DataFrame:
        reached = run_accuracies(metrics, {**plan.protocol.reporting(), **changes})
        return runs.merge(reached[[*AXES, "accuracy"]], on=list(AXES))

    natural = accuracies()
    base = natural[(natural["variant"] == BASE) & ~natural["method"].isin(_alone(plan, experiment))]
    base = base[[*keys, "accuracy", "cell"]].rename(columns={"accuracy": "base_accuracy", "cell": "base_cell"})
    tables = [
        base.merge(others[[*keys, "accuracy", "cell"]], on=keys).assign(key=key, base=chosen, value=value)
        for key, chosen, value, others in _alternatives(plan, experiment, natural, accuracies)
    ]
    columns = [*ALTERNATIVE, *keys, "accuracy", "base_accuracy", "cell", "base_cell"]
    table = pd.concat(tables or [pd.DataFrame(columns=columns)], ignore_index=True)[columns]
    return table.assign(difference=table["accuracy"] - table["base_accuracy"])


def _alone(plan: Plan, experiment: Experiment) -> set[str]:
    """Return the methods that run under base alone."""
    also = plan.config["definitions"]["experiments"][experiment.name].get("also", ())
    return {method for grid in also for method in grid["method"]}


def _alternatives(
    plan: Plan, experiment: Experiment, natural: pd.DataFrame, accuracies: Callable[..., pd.DataFrame]
) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Yield key, base and value of each alternative, and the accuracies that replace base's, with base's keys."""
    datasets, methods = (list(dict.fromkeys(natural[axis])) for axis in ("dataset", "method"))
    own = natural[natural["variant"] == BASE]
    networks = sorted({plan.network(dataset) for dataset in datasets})
    for variant, rows in natural[natural["variant"] != BASE].groupby("variant", sort=False):
        yield (*_as_one(plan.protocol.departures(str(variant), networks)), rows)
    for scope, scoped in scoped_methods(methods).items():
        yield SCOPE_KEY, "whole", scope, _instead(own, "method", scoped)
    base = plan.protocol.reporting()
    named = [plan.protocol.reporting(name) for name in experiment.options.get("reporting", ())]
    for key in reversed(base):
        for value in dict.fromkeys(reporting[key] for reporting in named):
            if value != base[key]:
                yield key, str(base[key]), str(value), accuracies(**{key: value}).query("variant == @BASE")
    by_row: dict[str, list[str]] = {}
    for dataset in datasets:
        by_row.setdefault(plan.published_names[dataset], []).append(dataset)
    for name, rivals in by_row.items():
        stated, *others = sorted(rivals, key=lambda dataset: dataset != name)  # the one as the paper states it first
        for other in others:
            yield SIDES_KEY, stated, other, _instead(own, "dataset", {stated: other})


def _instead(rows: pd.DataFrame, axis: str, names: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows that stand instead of others by an axis, under the name of these: `names` maps old to new."""
    old = {new: name for name, new in names.items()}
    return rows[rows[axis].isin(old)].assign(**{axis: rows[axis].map(old)})


def _as_one(departures: Sequence[Departure]) -> tuple[str, str, str]:
    """Return key, base and value of one departure, or of several at once."""
    if len(departures) == 1:
        return departures[0].key, departures[0].base, departures[0].value
    both = [", ".join(f"{d.key} = {getattr(d, side)}" for d in departures) for side in ("base", "value")]
    return JOINT_KEY, both[0], both[1]


def summarize_differences(differences: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return mean and spread over trials of `paired_differences`, by alternative, panel and method, in order.

    ``std`` (ddof = 1) is of the paired differences, ``low`` and ``high`` are the t interval of their mean at `level`,
    missing with one trial. ``trials`` count those that did not diverge.
    """
    keys = [*ALTERNATIVE, *PANEL, "method"]
    grouped = differences.groupby(keys, sort=False, as_index=False)
    table = grouped.agg(
        base_mean=("base_accuracy", "mean"),
        mean=("accuracy", "mean"),
        std=("difference", "std"),
        trials=("difference", "count"),
        diverged=("difference", lambda values: int(values.isna().sum())),
        difference=("difference", "mean"),
        cell=("cell", "first"),
        base_cell=("base_cell", "first"),
    )
    degrees = (table["trials"] - 1).where(table["trials"] > 1)
    half = stdtrit(degrees, (1 + level) / 2) * table["std"] / np.sqrt(table["trials"])
    return table.assign(low=table["difference"] - half, high=table["difference"] + half)[
        [*keys, "base_mean", "mean", "difference", "std", "low", "high", "trials", "diverged", "cell", "base_cell"]
    ]


def effects(summary: pd.DataFrame) -> pd.DataFrame:
    """Return how far each choice moves the numbers, over methods, panels and alternatives.

    A row is a key of the protocol: ``clear`` counts the differences whose interval excludes zero. A key is left out if
    all of its differences are missing.
    """
    clear = (summary["low"] > 0) | (summary["high"] < 0)
    known = summary.assign(clear=clear).dropna(subset="difference")
    return known.groupby("key", sort=False, as_index=False).agg(
        base=("base", "first"),
        lowest=("difference", "min"),
        highest=("difference", "max"),
        differences=("difference", "size"),
        clear=("clear", "sum"),
    )


def published_panels(plan: Plan, experiment: Experiment) -> pd.DataFrame:
    """Return the published means of the methods that every variant has: dataset, the rest of a panel, method."""
    runs = pd.DataFrame(experiment.runs)[[*PANEL, "method"]].drop_duplicates()
    runs = runs[~runs["method"].isin(_alone(plan, experiment))].assign(
        stated=lambda rows: rows["dataset"].map(plan.published_names)
    )
    published = published_cells().rename(columns={"dataset": "stated"})
    return runs.merge(published, on=["stated", "tuple_size", "n", "prior", "method"])[
        [*PANEL, "method", "published_mean"]
    ]
