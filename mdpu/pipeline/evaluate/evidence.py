"""The evidence that claims are checked on: our cells and runs, or the paper's own 504 numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.collect import REPORTED, reported_accuracy, run_accuracies
from mdpu.pipeline.evaluate.published import PROPOSED, published_summary
from mdpu.pipeline.plan import AXES, DOMINANT, ROW, Plan

ASKED = (*PROPOSED, "bag-relu", "bag-free")  # methods whose single runs claims are about
ESTIMATES = ("estimated_prior", "estimated_prior_low", "estimated_prior_high")
MEASURES = ("epoch", *REPORTED, "risk", "objective", *ESTIMATES)  # of the metrics, what `our_evidence` reads
WINDOW = 5  # epochs of the moving average whose highest value is a run's best accuracy


@dataclass(frozen=True)
class Evidence:
    """What a claim is checked on.

    `cells` have ``mean``, ``std`` (percent) and ``trials``, without those that diverged; `rule` is the configuration's
    ``comparison``. `runs` are as `run_facts` returns them, `trials` the accuracy of every run, missing if it diverged;
    both are None where there are no histories. `rows` are those of the tables (dataset, tuple size, n, prior), None if
    every cell belongs to one.

    `larger_decay` and `more_unlabeled` are pairs of dataset and variant whose runs differ from base in that alone.
    """

    cells: pd.DataFrame
    rule: Mapping[str, float]
    runs: pd.DataFrame | None = None
    trials: pd.DataFrame | None = None
    rows: Collection[tuple[str, int, int, str]] | None = None
    larger_decay: Collection[tuple[str, str]] = ()
    more_unlabeled: Collection[tuple[str, str]] = ()
    published_names: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def base_cells(self) -> pd.DataFrame:
        """The cells of the protocol as it stands and of the logistic loss, at every n."""
        return protocol_cells(self.cells)

    @cached_property
    def every_loss(self) -> pd.DataFrame:
        """The cells of the protocol as it stands, with any loss."""
        return self.cells[self.cells["variant"] == BASE]

    @cached_property
    def table(self) -> pd.DataFrame:
        """The base cells that stand in a table, as the paper's numbers do."""
        return table_cells(self.cells, self.rows)

    def base_runs(self, *methods: str) -> pd.DataFrame | None:
        """Runs of `methods` under the protocol as it stands, with the logistic loss."""
        return None if self.runs is None else protocol_cells(self.runs[self.runs["method"].isin(methods)])

    @cached_property
    def single_trials(self) -> dict[int, Evidence]:
        """The evidence of each seed alone: cells of one trial, which have no deviation."""
        single: dict[int, Evidence] = {}
        trials = pd.DataFrame(columns=["seed"]) if self.trials is None else self.trials
        for seed in sorted(set(trials["seed"])):
            own = trials[trials["seed"] == seed]
            cells = own.assign(mean=own["accuracy"], std=math.nan, trials=own["accuracy"].notna().astype(int))
            runs = None if self.runs is None else self.runs[self.runs["seed"] == seed]
            single[seed] = replace(self, cells=cells.drop(columns=["seed", "accuracy"]), runs=runs, trials=None)
        return single

    def variant_rows(self, frame: pd.DataFrame, pairs: Collection[tuple[str, str]]) -> pd.DataFrame:
        """Return the rows of cells or runs whose dataset and variant are among `pairs`."""
        return _among(frame, ("dataset", "variant"), pairs)


def protocol_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the protocol as it stands: variant ``base``, the logistic loss, the paper's law."""
    return cells[(cells["variant"] == BASE) & (cells["loss"] == "logistic") & (cells["law"] == DOMINANT)]


def table_cells(cells: pd.DataFrame, rows: Collection[tuple[str, int, int, str]] | None) -> pd.DataFrame:
    """Return the cells that stand in a table: of the protocol as it stands, in one of `rows` unless that is None."""
    base_cells = protocol_cells(cells)
    return base_cells if rows is None else _among(base_cells, ROW, rows)


def _among(frame: pd.DataFrame, columns: Collection[str], keys: Collection[tuple[Any, ...]]) -> pd.DataFrame:
    rows = frame[list(columns)].itertuples(index=False, name=None)
    return frame[np.fromiter((row in keys for row in rows), dtype=bool, count=len(frame))]


def paper_evidence(rule: Mapping[str, float]) -> Evidence:
    """Return the paper's own numbers as evidence."""
    return Evidence(published_summary(), rule)


def our_evidence(plan: Plan, summary: pd.DataFrame, metrics: pd.DataFrame) -> Evidence:
    """Return our runs as evidence; `summary` and `metrics` are as `mdpu.pipeline.evaluate.collect` makes them."""
    reporting = plan.protocol.reporting()
    accuracies = run_accuracies(metrics, reporting)
    return Evidence(
        summary.assign(trials=summary["trials"] - summary["diverged"]),
        plan.config["comparison"],
        run_facts(metrics, accuracies, reporting["test_prior"]),
        accuracies[[*AXES, "accuracy"]],
        plan.table_rows,
        varied_upwards(plan, "weight_decay", float),
        varied_upwards(plan, "n_unlabeled", _multiple),
        plan.published_names,
    )


def varied_upwards(plan: Plan, key: str, number: Callable[[str], float]) -> set[tuple[str, str]]:
    """Return the dataset and variant of runs that differ from the base's in a larger value of `key` alone.

    `number` makes a number of the value, as the configuration writes it; NaN is larger than nothing.
    """
    larger = set()
    for dataset, variant in itertools.product(plan.datasets, plan.config["definitions"]["variants"]):
        departures = plan.protocol.departures(variant, [plan.network(dataset)])
        if [one.key for one in departures] == [key] and number(departures[0].value) > number(departures[0].base):
            larger.add((dataset, variant))
    return larger


def _multiple(written: str) -> float:
    """Return which multiple of n a number of unlabeled images is, NaN where it is given as such."""
    return float(written.removesuffix("n") or 1) if written.endswith("n") else math.nan


def run_facts(metrics: pd.DataFrame, accuracies: pd.DataFrame, test_prior: str) -> pd.DataFrame:
    """Return what the claims ask of each run of the methods in `ASKED`.

    ``accuracy`` is the reported one in percent; ``best`` the highest mean of `WINDOW` epochs in a row;
    ``risk_and_accuracy`` Spearman's correlation over the epochs from the first with a negative risk on, missing where
    there are fewer than three. `ESTIMATES` are missing for a method that is told the prior.
    """
    keys = list(AXES)
    shown = metrics.loc[metrics["method"].isin(ASKED), [*keys, "epoch", "risk", "objective"]]
    shown = shown.assign(accuracy=reported_accuracy(metrics, test_prior).loc[shown.index])
    run = shown.groupby(keys, sort=False).ngroup()
    moving = shown["accuracy"].groupby(run).rolling(WINDOW, min_periods=1).mean().droplevel(0)
    facts = (
        shown.assign(moving=moving)
        .groupby(keys, as_index=False)
        .agg(best=("moving", "max"), lowest_risk=("risk", "min"), lowest_objective=("objective", "min"))
    )
    negative = (shown["risk"] < 0).groupby(run).cummax()
    after = shown[negative].dropna(subset=["risk", "accuracy"])
    ranks = after[keys].assign(**after[["risk", "accuracy"]].groupby(run).rank())
    correlation = {key: own["risk"].corr(own["accuracy"], min_periods=3) for key, own in ranks.groupby(keys)}
    facts = facts.merge(accuracies[[*keys, "accuracy"]], on=keys)
    first = metrics[metrics["method"].isin(ASKED) & (metrics["epoch"] == 1)]
    facts = facts.merge(first.reindex(columns=[*keys, *ESTIMATES]), on=keys, how="left")
    named = facts[keys].itertuples(index=False, name=None)
    return facts.assign(risk_and_accuracy=[correlation.get(key, math.nan) for key in named])
