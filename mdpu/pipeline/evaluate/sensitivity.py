"""How much each choice that the paper leaves open changes the numbers.

An *alternative* is a choice other than the protocol's own: another variant (trained anew), another reporting
(the same runs, summarised in another way), another scope of the correction (another method), or the other
class sides of a dataset whose published rows two datasets compete for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from mdpu.learn.method import CorrectedRisk
from mdpu.learn.methods import load_method
from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.plan import ROW, Departure, Experiment, Plan, Run

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
    by_scope: dict[str, dict[str, str]] = {}
    for name, method in corrections.items():
        for other, whole in corrections.items():
            if method.scope != "whole" and whole.scope == "whole" and method.k == whole.k:
                by_scope.setdefault(method.scope, {})[other] = name
    return by_scope


Accuracies = Mapping[tuple[Any, ...], float]  # in percent, by variant, panel, method and seed


def _accuracies(metrics: pd.DataFrame, reporting: Mapping[str, Any]) -> Accuracies:
    """Return each run's accuracy under a reporting."""
    accuracies = run_accuracies(metrics, reporting)
    keys = accuracies[["variant", *PANEL, "method", "seed"]].itertuples(index=False, name=None)
    return dict(zip(keys, accuracies["accuracy"], strict=True))


def _reportings(plan: Plan, experiment: Experiment) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of an experiment's reportings that differ from the protocol's, each once."""
    base = plan.protocol.reporting(BASE)
    values: dict[str, dict[Any, None]] = {key: {} for key in base}
    for name in experiment.options.get("reporting", ()):
        for key, value in plan.protocol.reporting(name).items():
            values[key].setdefault(value)
    for key in reversed(values):
        yield from ((key, value) for value in values[key] if value != base[key])


def _rivals(plan: Plan, experiment: Experiment) -> dict[str, list[str]]:
    """Return, by the dataset of published rows, the datasets that read it; the one as the paper states it first."""
    by_row: dict[str, list[str]] = {}
    for dataset in dict.fromkeys(run.dataset for run in experiment.runs):
        by_row.setdefault(plan.published_names[dataset], []).append(dataset)
    return {name: sorted(rivals, key=lambda dataset: dataset != name) for name, rivals in by_row.items()}


def _as_one(departures: Sequence[Departure]) -> tuple[str, str, str]:
    """Return key, base and value of one departure, or of several at once."""
    if len(departures) == 1:
        return departures[0].key, departures[0].base, departures[0].value
    both = [", ".join(f"{d.key} = {getattr(d, side)}" for d in departures) for side in ("base", "value")]
    return JOINT_KEY, both[0], both[1]


def paired_differences(plan: Plan, experiment: Experiment, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return how much each alternative changes each trial's accuracy.

    Parameters
    ----------
    plan : Plan
    experiment : Experiment
        Of kind ``sensitivity``.
    metrics : DataFrame
        Histories of its runs, as `mdpu.pipeline.evaluate.collect.collect` returns them.

    Returns
    -------
    DataFrame
        One row per alternative (key, base, value, as the configuration writes them; key ``scope`` for
        another scope of the correction, ``sides`` for another dataset, ``joint`` for several keys at
        once), panel (dataset, tuple_size, n, prior), method (as base has it) and seed: ``accuracy``,
        ``base_accuracy`` in percent and ``difference`` in points; ``cell`` and ``base_cell``, the names of
        the cells that the two are runs of. The two are of the same seed, hence of
        the same tuples where the alternative draws none of its own. Alternatives keep the order of the
        configuration; missing where a run diverged.
    """
    natural = _accuracies(metrics, plan.protocol.reporting())
    rows = []
    alone = _alone(plan, experiment)
    compared = [run for run in experiment.runs if run.variant == BASE and run.method not in alone]
    for alternative in _alternatives(plan, experiment, metrics, natural):
        for run in compared:
            other = alternative.instead_of(run)
            if other is not None and _key(other) in alternative.accuracies:
                rows.append(
                    {key: getattr(alternative, key) for key in ALTERNATIVE}
                    | {key: getattr(run, key) for key in (*PANEL, "method", "seed")}
                    | {"accuracy": alternative.accuracies[_key(other)], "base_accuracy": natural[_key(run)]}
                    | {"cell": other.cell, "base_cell": run.cell}
                )
    columns = [*ALTERNATIVE, *PANEL, "method", "seed", "accuracy", "base_accuracy", "cell", "base_cell"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(difference=table["accuracy"] - table["base_accuracy"])


def _key(run: Run) -> tuple[Any, ...]:
    return run.variant, run.dataset, run.tuple_size, run.n, run.prior, run.method, run.seed


@dataclass(frozen=True)
class _Alternative:
    """One departure, and the variant, methods and datasets whose accuracies replace those of base."""

    key: str
    base: str
    value: str
    accuracies: Accuracies
    variant: str = BASE
    methods: Mapping[str, str] | None = None
    datasets: Mapping[str, str] | None = None

    def instead_of(self, run: Run) -> Run | None:
        """Return the run that replaces one of base's, or None if the alternative does not concern it."""
        if (self.methods is not None and run.method not in self.methods) or (
            self.datasets is not None and run.dataset not in self.datasets
        ):
            return None
        dataset = (self.datasets or {}).get(run.dataset, run.dataset)
        method = (self.methods or {}).get(run.method, run.method)
        return replace(run, variant=self.variant, dataset=dataset, method=method)


def _alternatives(
    plan: Plan, experiment: Experiment, metrics: pd.DataFrame, natural: Accuracies
) -> Iterator[_Alternative]:
    """Yield the alternatives of an experiment, in the order of the configuration."""
    networks = sorted({plan.network(run.dataset) for run in experiment.runs})
    for variant in dict.fromkeys(run.variant for run in experiment.runs if run.variant != BASE):
        yield _Alternative(*_as_one(plan.protocol.departures(variant, networks)), natural, variant)
    for scope, methods in scoped_methods(list(dict.fromkeys(run.method for run in experiment.runs))).items():
        yield _Alternative(SCOPE_KEY, "whole", scope, natural, methods=methods)
    base = plan.protocol.reporting()
    for key, value in _reportings(plan, experiment):
        yield _Alternative(key, str(base[key]), str(value), _accuracies(metrics, {**base, key: value}))
    for stated, *others in _rivals(plan, experiment).values():
        for other in others:
            yield _Alternative(SIDES_KEY, stated, other, natural, datasets={stated: other})


def summarize_differences(differences: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return mean and spread over trials of what `paired_differences` returns.

    Parameters
    ----------
    differences : DataFrame
    level : float
        Of the interval, strictly between 0 and 1.

    Returns
    -------
    DataFrame
        One row per alternative, panel and method, in order: ``base_mean`` and ``mean`` accuracy in percent;
        ``difference`` and ``std`` (ddof = 1) of the paired differences in points; ``low`` and ``high``, the
        t interval of the difference (missing with one trial); ``trials`` that count, and ``diverged``;
        ``cell`` and ``base_cell``.
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

    Parameters
    ----------
    summary : DataFrame
        As `summarize_differences` returns it.

    Returns
    -------
    DataFrame
        One row per key of the protocol: ``base``, its value there; ``lowest`` and ``highest`` mean difference in
        points; ``differences``, how many there are; ``clear``, in how many of them the interval excludes zero. A key
        is left out if all of its differences are missing.
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


def _alone(plan: Plan, experiment: Experiment) -> set[str]:
    """Return the methods that run under base alone."""
    also = plan.config["definitions"]["experiments"][experiment.name].get("also", ())
    return {method for grid in also for method in grid["method"]}


def published_panels(plan: Plan, experiment: Experiment) -> pd.DataFrame:
    """Return the published means of the methods that every variant has: dataset, the rest of a panel, method."""
    alone = _alone(plan, experiment)
    runs = pd.DataFrame(experiment.runs)[[*PANEL, "method"]].drop_duplicates()
    runs = runs[~runs["method"].isin(alone)].assign(stated=lambda rows: rows["dataset"].map(plan.published_names))
    published = published_cells().rename(columns={"dataset": "stated"})
    return runs.merge(published, on=["stated", "tuple_size", "n", "prior", "method"])[
        [*PANEL, "method", "published_mean"]
    ]
