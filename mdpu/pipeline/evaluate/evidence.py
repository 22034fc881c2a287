"""The evidence that claims are checked on: our cells and runs, or the paper's own 504 numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.collect import REPORTED, reported_accuracy, run_accuracies
from mdpu.pipeline.evaluate.published import PROPOSED, published_summary
from mdpu.pipeline.plan import AXES, DOMINANT, ROW, Plan

ASKED = (*PROPOSED, "bag-relu", "bag-free")  # methods whose single runs claims are about
ESTIMATES = ("estimated_prior", "estimated_prior_low", "estimated_prior_high")
MEASURES = ("epoch", *REPORTED, "risk", "objective", *ESTIMATES)  # of the metrics, what `our_evidence` reads
FACTS = ("best", "lowest_risk", "lowest_objective", "risk_and_accuracy", "accuracy", *ESTIMATES)  # of a run
WINDOW = 5  # epochs of the moving average whose highest value is a run's best accuracy


@dataclass(frozen=True)
class Evidence:
    """What a claim is checked on.

    `cells` have ``mean``, ``std`` (percent) and ``trials``, without those that diverged; `rule` is the configuration's
    ``comparison``. `runs` are as `run_facts` returns them, `trials` the accuracy of every run, missing if it diverged;
    both are None for the paper's numbers. `rows` are those of the tables (dataset, tuple size, n, prior), None if every
    cell belongs to one.
    """

    cells: pd.DataFrame
    rule: Mapping[str, float]
    runs: pd.DataFrame | None = None
    trials: pd.DataFrame | None = None
    rows: Collection[tuple[str, int, int, str]] | None = None
    published_names: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def base_cells(self) -> pd.DataFrame:
        """The cells of the protocol as it stands and of the logistic loss, at every n."""
        return protocol_cells(self.cells)

    @cached_property
    def every_loss(self) -> pd.DataFrame:
        """The cells of the protocol as it stands, with any loss; none of the paper, whose numbers have one loss."""
        return self.cells[(self.cells["variant"] == BASE) & (self.runs is not None)]

    @cached_property
    def table(self) -> pd.DataFrame:
        """The base cells that stand in a table, as the paper's numbers do."""
        return table_cells(self.cells, self.rows)

    def runs_of(self, methods: Collection[str], variants: Collection[str] = (BASE,)) -> pd.DataFrame:
        """Return the runs of some methods and variants with the logistic loss."""
        runs = pd.DataFrame(columns=[*AXES, *FACTS]) if self.runs is None else self.runs
        return logistic(runs[runs["method"].isin(methods) & runs["variant"].isin(variants)])

    @cached_property
    def single_trials(self) -> dict[Any, Evidence]:
        """The evidence of each seed alone: cells of one trial, which have no deviation."""
        single = {}
        for seed, own in () if self.trials is None else self.trials.groupby("seed"):
            cells = own.assign(mean=own["accuracy"], std=math.nan, trials=own["accuracy"].notna().astype(int))
            runs = None if self.runs is None else self.runs[self.runs["seed"] == seed]
            single[seed] = replace(self, cells=cells.drop(columns=["seed", "accuracy"]), runs=runs, trials=None)
        return single


def logistic(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the cells or runs of the logistic loss and of the paper's law."""
    return rows[(rows["loss"] == "logistic") & (rows["law"] == DOMINANT)]


def protocol_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the protocol as it stands: variant ``base``, the logistic loss, the paper's law."""
    return logistic(cells[cells["variant"] == BASE])


def table_cells(cells: pd.DataFrame, rows: Collection[tuple[str, int, int, str]] | None) -> pd.DataFrame:
    """Return the cells that stand in a table: of the protocol as it stands, in one of `rows` unless that is None."""
    base_cells = protocol_cells(cells)
    if rows is None:
        return base_cells
    return base_cells.loc[[row in rows for row in base_cells[list(ROW)].itertuples(index=False, name=None)]]


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
        plan.published_names,
    )


def run_facts(metrics: pd.DataFrame, accuracies: pd.DataFrame, test_prior: str) -> pd.DataFrame:
    """Return `FACTS`, what the claims ask of each run of the methods in `ASKED`.

    ``accuracy`` is the reported one in percent; ``best`` the highest mean of `WINDOW` epochs in a row;
    ``risk_and_accuracy`` Spearman's correlation over the epochs from the first with a negative risk on, missing where
    there are fewer than three. `ESTIMATES` are missing for a method that is told the prior.
    """
    keys = list(AXES)
    metrics = metrics[metrics["method"].isin(ASKED)]
    shown = metrics.assign(accuracy=reported_accuracy(metrics, test_prior))
    run = shown.groupby(keys, sort=False).ngroup()
    moving = shown["accuracy"].groupby(run).rolling(WINDOW, min_periods=1).mean().droplevel(0)
    facts = (
        shown.assign(moving=moving)
        .groupby(keys)
        .agg(best=("moving", "max"), lowest_risk=("risk", "min"), lowest_objective=("objective", "min"))
    )
    negative = (shown["risk"] < 0).groupby(run).cummax()
    after = shown[negative].dropna(subset=["risk", "accuracy"])
    ranks = after[keys].assign(**after[["risk", "accuracy"]].groupby(run).rank())
    correlation = {key: own["risk"].corr(own["accuracy"], min_periods=3) for key, own in ranks.groupby(keys)}
    facts["risk_and_accuracy"] = pd.Series(correlation, dtype=float)
    first = metrics[metrics["epoch"] == 1].set_index(keys).reindex(columns=ESTIMATES)
    return facts.join(accuracies.set_index(keys)["accuracy"]).join(first).reset_index()
