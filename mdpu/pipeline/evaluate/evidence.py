"""The evidence for claims, our cells and runs or the paper's own 504 numbers, and how its rows are paired."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mdpu.pipeline.config import BASE, merge
from mdpu.pipeline.evaluate.collect import REPORTED, join_histories, reported_accuracy, run_accuracies, summarize
from mdpu.pipeline.evaluate.comparison import Trials, welch_interval
from mdpu.pipeline.evaluate.published import PROPOSED, published_summary
from mdpu.pipeline.evaluate.readings import PROTOCOL, Reading, Readings
from mdpu.pipeline.plan import AXES, CELL, DOMINANT, ROW, Plan
from mdpu.pipeline.store import read_runs

MEASURES = ("epoch", *REPORTED, "risk", "objective")  # columns of the metrics that `run_facts` needs
FACTS = ("best", "lowest_risk", "lowest_objective", "risk_and_accuracy", "accuracy")  # of a run
WINDOW = 5  # epochs of the moving average whose highest value is a run's best accuracy


@dataclass(frozen=True)
class Evidence:
    """The cells and runs that a claim is checked on.

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

    @cached_property
    def base_cells(self) -> pd.DataFrame:
        """The cells of the protocol as it stands and of the logistic loss, at every n."""
        return table_cells(self.cells, None)

    @cached_property
    def every_loss(self) -> pd.DataFrame:
        """The cells of the protocol as it stands, with any loss; none of the paper, whose numbers have one loss."""
        replaced = self.cells["variant"] == PROTOCOL  # by what a reading puts in the tables
        return self.cells[(replaced if replaced.any() else self.cells["variant"] == BASE) & (self.runs is not None)]

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


def table_cells(cells: pd.DataFrame, rows: Collection[tuple[str, int, int, str]] | None) -> pd.DataFrame:
    """Return the cells of the protocol as it stands, with the logistic loss, in one of `rows` unless that is None."""
    base_cells = logistic(cells[cells["variant"] == BASE])
    if rows is None:
        return base_cells
    return base_cells.loc[[row in rows for row in base_cells[list(ROW)].itertuples(index=False, name=None)]]


def paper_evidence(rule: Mapping[str, float]) -> Evidence:
    """Return the paper's own numbers as evidence."""
    return Evidence(published_summary(), rule)


def our_evidence(plan: Plan, metrics: pd.DataFrame, reading: Reading | None = None) -> Evidence:
    """Return our runs as evidence, as the protocol or another reading has it.

    `metrics` are as `mdpu.pipeline.evaluate.collect` makes them, and `training_metrics` beside them.
    """
    reporting = plan.protocol.reporting
    if reading is not None:
        readings = Readings(plan.config)
        reporting = merge(plan.config["protocol"], readings.changes(reading)["protocol"])["reporting"]
        metrics = read_as(metrics, readings, reading, plan.published_names)
    accuracies = run_accuracies(metrics, reporting)
    summary = summarize(accuracies)
    return Evidence(
        summary.assign(trials=summary["trials"] - summary["diverged"]),
        plan.config["comparison"],
        run_facts(metrics, accuracies, reporting["test_prior"]),
        accuracies[[*AXES, "accuracy"]],
        plan.table_rows,
    )


def training_metrics(plan: Plan) -> pd.DataFrame:
    """Return the histories of shipped runs of readings with a training or a loss of their own, on the plan's datasets.

    A ``variant`` is the name of a training, such as ``optimizer adamw``; a method such as ``ure.hinge`` has its loss.
    """
    stored = (run for path in plan.shipped_on(plan.datasets) for run in read_runs(path).values())
    found = [(dict(zip(AXES, axes, strict=True)), run) for axes, run in Readings(plan.config).find_runs(stored).items()]
    own = [(axes, run) for axes, run in found if axes["variant"] != PROTOCOL or "." in axes["method"]]
    if not own:
        return pd.DataFrame(columns=[*AXES, *MEASURES])
    histories = [run.history.reindex(columns=list(MEASURES)) for _, run in own]
    return join_histories(pd.DataFrame([axes for axes, _ in own]).replace({"variant": {PROTOCOL: BASE}}), histories)


def read_as(
    metrics: pd.DataFrame, readings: Readings, reading: Reading, published_names: Mapping[str, str]
) -> pd.DataFrame:
    """Return the metrics of the runs that stand for the paper's in a reading, by the paper's names of methods.

    If a dataset was run in several readings, only this one is left. Runs of the protocol that others stand for have
    the variant ``protocol``.
    """
    change, training = readings.changes(reading), readings.training(reading)
    if training != PROTOCOL:
        metrics = metrics[metrics["variant"] == training].assign(variant=BASE)
    chosen = {paper: ours for paper, ours in change["datasets"].items() if ours in set(metrics["dataset"])}
    others = [ours for ours, paper in published_names.items() if chosen.get(paper, ours) != ours]
    methods = {ours: paper for paper, ours in change["methods"].items() if ours != paper}
    replaced = metrics["method"].isin(methods.values())
    kept = metrics[~metrics["dataset"].isin(others) & (~replaced | (metrics["variant"] == BASE))]
    return kept.assign(variant=kept["variant"].mask(replaced, PROTOCOL), method=kept["method"].replace(methods))


def run_facts(metrics: pd.DataFrame, accuracies: pd.DataFrame, test_prior: str) -> pd.DataFrame:
    """Return `FACTS`, what the claims ask of each run of the proposed methods.

    ``accuracy`` is the reported one in percent; ``best`` the highest mean of `WINDOW` epochs in a row;
    ``risk_and_accuracy`` Spearman's correlation over the epochs from the first with a negative risk on, missing where
    there are fewer than three.
    """
    keys = list(AXES)
    metrics = metrics[metrics["method"].isin(PROPOSED)]
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
    return facts.join(accuracies.set_index(keys)["accuracy"]).reset_index()


# Pairs. The columns of the other side of a comparison end in ``_right``.


def pairs_of(cells: pd.DataFrame, axis: str, left: Collection[Any], right: Any) -> pd.DataFrame:
    """Return cells whose `axis` is in `left`, beside those where it is `right`."""
    keys = [key for key in CELL if key != axis]
    others = cells.loc[cells[axis] == right, [*keys, "mean", "std", "trials"]]
    return cells[cells[axis].isin(left)].merge(others, on=keys, suffixes=("", "_right"))


def best_in_row(cells: pd.DataFrame, rivals: pd.DataFrame, among: Sequence[str], complete: bool) -> pd.DataFrame:
    """Return cells beside the best of the methods `among` the rivals in their row.

    With `complete`, rows where one of these methods was not run are left out.
    """
    others = rivals[rivals["method"].isin(among)]
    if complete:
        others = others[others.groupby(list(ROW))["method"].transform("size") == len(among)]
    best = others.sort_values("mean", na_position="first").drop_duplicates(list(ROW), keep="last")
    return cells.merge(best[[*ROW, "mean", "std", "trials"]], on=list(ROW), suffixes=("", "_right"))


def step_up(cells: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Return cells beside the one with the next smaller value of `axis`, its mean as ``mean_right``."""
    keys = [key for key in CELL if key != axis]
    ordered = cells.assign(position=cells[axis].astype(float)).sort_values([*keys, "position"])
    ordered["mean_right"] = ordered.groupby(keys)["mean"].shift()
    return ordered[ordered.duplicated(keys)]


def interval(pairs: pd.DataFrame, rule: Mapping[str, float]) -> tuple[Any, Any]:
    """Return both ends of Welch's interval for left minus right of each pair, missing where a side has one trial."""
    left, right = (Trials(pairs[f"mean{s}"], pairs[f"std{s}"], pairs[f"trials{s}"]) for s in ("", "_right"))
    return welch_interval(left, right, rule["level"])


def slopes(cells: pd.DataFrame, methods: Collection[str], other: str) -> pd.DataFrame:
    """Return least-squares slopes of the mean against n, in points per 1,000 tuples, over the n that both methods have.

    A row is one of `methods` and what else a cell has but n: ``slope``, its ``variance`` by the deviations over
    trials, and ``quartic``, the sum of the squared parts of the variance, each by its degrees of freedom; the same of
    the `other` method on the right. The last two are missing where a cell has one trial.
    """
    pairs = pairs_of(cells, "method", methods, other).dropna(subset=["mean", "mean_right"])
    keys = [key for key in CELL if key != "n"]
    centred = pairs["n"] - pairs.groupby(keys)["n"].transform("mean")
    square = (centred**2).groupby([pairs[key] for key in keys]).transform("sum")
    weight = 1000 * centred / square.where(square > 0)
    terms = pairs[keys].copy()
    for side in ("", "_right"):
        trials = pairs[f"trials{side}"]
        part = weight**2 * pairs[f"std{side}"] ** 2 / trials
        terms[f"slope{side}"] = weight * pairs[f"mean{side}"]
        terms[f"variance{side}"] = part
        terms[f"quartic{side}"] = part**2 / (trials - 1).where(trials > 1)
    sums = terms.groupby(keys, as_index=False).sum(skipna=False)
    return sums[sums["slope"].notna()]


def falls(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the largest ``fall`` of each method's mean from one n to the next, zero if none."""
    found = step_up(cells, "n")
    keys = [key for key in CELL if key != "n"]
    fall = found[keys].assign(fall=np.maximum(found["mean_right"] - found["mean"], 0))
    return fall.groupby(keys)["fall"].agg(lambda values: values.max(skipna=False)).reset_index()
