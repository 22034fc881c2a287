"""The evidence for claims, our cells and runs or the paper's own 504 numbers, and how its rows are
paired.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.choices import PROTOCOL, Reading, Readings
from mdpu.pipeline.evaluate.collect import (
    REPORTED,
    join_histories,
    reported_accuracy,
    run_accuracies,
    summarize,
)
from mdpu.pipeline.evaluate.comparison import Trials, welch_interval
from mdpu.pipeline.evaluate.published import PROPOSED, published_summary
from mdpu.pipeline.plan import AXES, CELL, DOMINANT, LOGISTIC, ROW, Plan
from mdpu.pipeline.store import Stored, read_runs

# columns of the metrics that `run_facts` needs
MEASURES = ("epoch", *REPORTED, "risk", "objective")
FACTS = ("best", "lowest_risk", "lowest_objective", "risk_and_accuracy", "accuracy")  # of a run
WINDOW = 5  # epochs of the moving average whose highest value is a run's best accuracy
RIGHT = "_right"  # end of the columns of the other side of a comparison

TableRows = Collection[tuple[str, int, int, str]]  # dataset, tuple size, n, prior


@dataclass(frozen=True)
class Evidence:
    """The cells and runs that a claim is checked on.

    `cells` have ``mean``, ``std`` (percent) and ``trials``, without those that diverged; `rule` is
    the configuration's ``comparison``. `runs` are as `run_facts` returns them, `trials` the
    accuracy of every run, missing if it diverged; both are None for the paper's numbers. `rows` are
    those of the tables (dataset, tuple size, n, prior), None if every cell belongs to one.
    """

    cells: pd.DataFrame
    rule: Mapping[str, float]
    runs: pd.DataFrame | None = None
    trials: pd.DataFrame | None = None
    rows: TableRows | None = None

    @cached_property
    def base_cells(self) -> pd.DataFrame:
        """The cells of the protocol as it stands and of the logistic loss, at every n."""
        return protocol_cells(self.cells)

    @cached_property
    def every_loss(self) -> pd.DataFrame:
        """The cells of the protocol as it stands, with any loss; none of the paper, whose numbers
        have one loss.
        """
        if self.runs is None:
            return self.cells.iloc[:0]
        replaced = self.cells["variant"] == PROTOCOL  # by what a reading puts in the tables
        if replaced.any():
            return self.cells[replaced]
        return self.cells[self.cells["variant"] == BASE]

    @cached_property
    def table(self) -> pd.DataFrame:
        """The base cells that stand in a table, as the paper's numbers do."""
        return protocol_cells(self.cells, self.rows)

    def runs_of(
        self, methods: Collection[str], variants: Collection[str] = (BASE,)
    ) -> pd.DataFrame:
        """Return the runs of some methods and variants with the logistic loss."""
        if self.runs is None:
            return pd.DataFrame(columns=[*AXES, *FACTS])
        chosen = self.runs["method"].isin(methods) & self.runs["variant"].isin(variants)
        return logistic(self.runs[chosen])

    def with_equal_trials(self, cells: pd.DataFrame, axis: str) -> pd.DataFrame:
        """Return cells that differ in an axis, each by the seeds that all of them have.

        Trials are named without variant, method and loss (`mdpu.pipeline.plan.Run.trial`), so those
        of one seed are paired.
        """
        if self.trials is None:
            return cells
        trials = self.trials.merge(cells[list(CELL)], on=list(CELL))
        keys = other_keys(axis)
        finished = trials.dropna(subset="accuracy")
        run = finished.groupby(keys)[axis].transform("nunique")
        of_seed = finished.groupby([*keys, "seed"])[axis].transform("nunique")
        common = finished[of_seed == run].groupby(list(CELL), as_index=False)
        statistics = common.agg(
            mean=("accuracy", "mean"),
            std=("accuracy", "std"),
            trials=("accuracy", "count"),
        )
        lost = cells.loc[cells["trials"] == 0, list(statistics)]  # every trial diverged
        return pd.concat([statistics, lost], ignore_index=True)

    @cached_property
    def single_trials(self) -> dict[Any, Evidence]:
        """The evidence of each seed alone: cells of one trial, which have no deviation."""
        if self.trials is None:
            return {}
        return {seed: self._of_seed(seed, rows) for seed, rows in self.trials.groupby("seed")}

    def _of_seed(self, seed: Any, trials: pd.DataFrame) -> Evidence:
        """Return the evidence of one seed, whose trials are the cells."""
        finished = trials["accuracy"].notna().astype(int)
        cells = trials.assign(mean=trials["accuracy"], std=math.nan, trials=finished)
        cells = cells.drop(columns=["seed", "accuracy"])
        runs = None
        if self.runs is not None:
            runs = self.runs[self.runs["seed"] == seed]
        return replace(self, cells=cells, runs=runs, trials=None)


def logistic(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the cells or runs of the logistic loss and of the paper's law."""
    return rows[(rows["loss"] == LOGISTIC) & (rows["law"] == DOMINANT)]


def protocol_cells(cells: pd.DataFrame, rows: TableRows | None = None) -> pd.DataFrame:
    """Return the cells of the protocol as it stands, with the logistic loss, in one of `rows`
    unless that is None.
    """
    of_protocol = logistic(cells[cells["variant"] == BASE])
    if rows is None:
        return of_protocol
    keys = of_protocol[list(ROW)].itertuples(index=False, name=None)
    return of_protocol.loc[[key in rows for key in keys]]


def paper_evidence(rule: Mapping[str, float]) -> Evidence:
    """Return the paper's own numbers as evidence."""
    return Evidence(published_summary(), rule)


def our_evidence(plan: Plan, metrics: pd.DataFrame, reading: Reading | None = None) -> Evidence:
    """Return our runs as evidence, as the protocol or another reading has it.

    `metrics` are as `mdpu.pipeline.evaluate.collect` makes them, and `training_metrics` beside
    them.
    """
    reporting = plan.protocol.reporting
    if reading is not None:
        readings = Readings(plan.config)
        reporting = readings.reporting(reading)
        metrics = read_as(metrics, readings, reading, plan.published_names)
    accuracies = run_accuracies(metrics, reporting)
    summary = summarize(accuracies)
    return Evidence(
        cells=summary.assign(trials=summary["trials"] - summary["diverged"]),
        rule=plan.config["comparison"],
        runs=run_facts(metrics, accuracies, reporting["test_prior"]),
        trials=accuracies[[*AXES, "accuracy"]],
        rows=plan.table_rows,
    )


def training_metrics(plan: Plan) -> pd.DataFrame:
    """Return the histories of shipped runs of readings with a training or a loss of their own, on
    the plan's datasets.

    A ``variant`` is the name of a training, such as ``optimizer adamw``; a method such as
    ``ure.hinge`` has its loss.
    """
    stored: list[Stored] = []
    for path in plan.shipped_on(plan.datasets):
        stored.extend(read_runs(path).values())

    keys = []
    histories = []
    for axes, run in Readings(plan.config).find_runs(stored).items():
        key = dict(zip(AXES, axes, strict=True))
        if key["variant"] != PROTOCOL or "." in key["method"]:
            keys.append(key)
            histories.append(run.history.reindex(columns=list(MEASURES)))
    if not keys:
        return pd.DataFrame(columns=[*AXES, *MEASURES])
    return join_histories(pd.DataFrame(keys).replace({"variant": {PROTOCOL: BASE}}), histories)


def read_as(
    metrics: pd.DataFrame, readings: Readings, reading: Reading, published_names: Mapping[str, str]
) -> pd.DataFrame:
    """Return the metrics of the runs that stand for the paper's in a reading, by the paper's names
    of methods.

    If a dataset was run in several readings, only this one is left. Runs of the protocol that
    others stand for have the variant ``protocol``.
    """
    training = readings.training(reading)
    if training != PROTOCOL:
        metrics = metrics[metrics["variant"] == training].assign(variant=BASE)

    changes = readings.changes(reading)
    were_run = set(metrics["dataset"])
    ours_of = {paper: ours for paper, ours in changes["datasets"].items() if ours in were_run}
    replaced = []
    for ours, paper in published_names.items():
        if ours_of.get(paper, ours) != ours:
            replaced.append(ours)
    in_reading = metrics[~metrics["dataset"].isin(replaced)]
    return _rename_methods(in_reading, changes["methods"])


def _rename_methods(metrics: pd.DataFrame, ours_of: Mapping[str, str]) -> pd.DataFrame:
    """Return metrics by the paper's names of methods; `ours_of` are the methods that stand for
    them.
    """
    papers = {ours: paper for paper, ours in ours_of.items() if ours != paper}
    is_replaced = metrics["method"].isin(papers.values())
    renamed = metrics.assign(
        variant=metrics["variant"].mask(is_replaced, PROTOCOL),
        method=metrics["method"].replace(papers),
    )
    return renamed[~is_replaced | (metrics["variant"] == BASE)]


def run_facts(metrics: pd.DataFrame, accuracies: pd.DataFrame, test_prior: str) -> pd.DataFrame:
    """Return `FACTS`, what the claims ask of each run of the proposed methods.

    ``accuracy`` is the reported one in percent; ``best`` the highest mean of `WINDOW` epochs in a
    row; ``risk_and_accuracy`` Spearman's correlation over the epochs from the first with a negative
    risk on, missing where there are fewer than three.
    """
    keys = list(AXES)
    proposed = metrics[metrics["method"].isin(PROPOSED)]
    epochs = proposed.assign(accuracy=reported_accuracy(proposed, test_prior))
    facts = epochs.groupby(keys).agg(
        lowest_risk=("risk", "min"),
        lowest_objective=("objective", "min"),
    )
    facts["best"] = best_accuracies(epochs)
    facts["risk_and_accuracy"] = _rank_correlations(epochs)
    return facts.join(accuracies.set_index(keys)["accuracy"]).reset_index()


def best_accuracies(epochs: pd.DataFrame) -> pd.Series:
    """Return the highest mean of `WINDOW` epochs in a row of each run, by `AXES`; ``accuracy`` is
    that of the epochs, as it is reported.
    """
    keys = [epochs[axis] for axis in AXES]
    moving = epochs["accuracy"].groupby(keys, sort=False).rolling(WINDOW, min_periods=1).mean()
    moving = moving.droplevel(list(range(len(keys))))  # its rows are those of `epochs` again
    return moving.groupby(keys).max()


def _rank_correlations(epochs: pd.DataFrame) -> pd.Series:
    """Return the rank correlation of risk and accuracy of each run, from its first epoch with a
    negative risk on.
    """
    keys = list(AXES)
    measures = ["risk", "accuracy"]
    run = epochs.groupby(keys, sort=False).ngroup()
    is_later = (epochs["risk"] < 0).groupby(run).cummax()
    later = epochs[is_later].dropna(subset=measures)
    ranks = later[measures].groupby(run).rank()
    correlations = {}
    for key, of_run in pd.concat([later[keys], ranks], axis=1).groupby(keys):
        correlations[key] = of_run["risk"].corr(of_run["accuracy"], min_periods=3)
    return pd.Series(correlations, dtype=float)


def other_keys(axis: str) -> list[str]:
    """Return the keys of a cell but one."""
    return [key for key in CELL if key != axis]


def pairs_of(cells: pd.DataFrame, axis: str, left: Collection[Any], right: Any) -> pd.DataFrame:
    """Return cells whose `axis` is in `left`, beside those where it is `right`."""
    keys = other_keys(axis)
    right_cells = cells.loc[cells[axis] == right, [*keys, "mean", "std", "trials"]]
    return cells[cells[axis].isin(left)].merge(right_cells, on=keys, suffixes=("", RIGHT))


def best_in_row(
    cells: pd.DataFrame,
    rivals: pd.DataFrame,
    among: Sequence[str],
) -> pd.DataFrame:
    """Return cells beside the best of the methods `among` the rivals in their row, where all of
    these were run.
    """
    keys = list(ROW)
    competing = rivals[rivals["method"].isin(among)]
    run = competing.groupby(keys)["method"].transform("size")
    competing = competing[run == len(among)]
    best = competing.sort_values("mean", na_position="first").drop_duplicates(keys, keep="last")
    right_cells = best[[*keys, "mean", "std", "trials"]]
    return cells.merge(right_cells, on=keys, suffixes=("", RIGHT))


def step_up(cells: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Return cells beside the one with the next smaller value of `axis`, its mean as
    ``mean_right``.
    """
    keys = other_keys(axis)
    ordered = cells.assign(position=cells[axis].astype(float))
    ordered = ordered.sort_values([*keys, "position"])
    ordered["mean_right"] = ordered.groupby(keys)["mean"].shift()
    return ordered[ordered.duplicated(keys)]


def pair_interval(pairs: pd.DataFrame, rule: Mapping[str, float]) -> tuple[Any, Any]:
    """Return both ends of Welch's interval for left minus right of each pair, missing where a side
    has one trial.
    """
    left = Trials(pairs["mean"], pairs["std"], pairs["trials"])
    right = Trials(pairs["mean_right"], pairs["std_right"], pairs["trials_right"])
    return welch_interval(left, right, rule["level"])


def slopes(cells: pd.DataFrame, methods: Collection[str], rival: str) -> pd.DataFrame:
    """Return least-squares slopes of the mean against n, in points per 1,000 tuples, over the n
    that both methods have.

    A row is one of `methods` and what else a cell has but n: ``slope``, its ``variance`` by the
    deviations over trials, and ``quartic``, the sum of the squared parts of the variance, each by
    its degrees of freedom; the same of the `rival` method on the right. The last two are missing
    where a cell has one trial.
    """
    pairs = pairs_of(cells, "method", methods, rival).dropna(subset=["mean", "mean_right"])
    keys = other_keys("n")
    centred = pairs["n"] - pairs.groupby(keys)["n"].transform("mean")
    squares = (centred**2).groupby([pairs[key] for key in keys]).transform("sum")
    weight = 1000 * centred / squares.where(squares > 0)
    terms = pairs[keys].copy()
    for side in ("", RIGHT):
        trials = pairs[f"trials{side}"]
        variance = weight**2 * pairs[f"std{side}"] ** 2 / trials
        terms[f"slope{side}"] = weight * pairs[f"mean{side}"]
        terms[f"variance{side}"] = variance
        terms[f"quartic{side}"] = variance**2 / (trials - 1).where(trials > 1)
    fitted = terms.groupby(keys, as_index=False).sum(skipna=False)
    return fitted[fitted["slope"].notna()]


def falls(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the largest ``fall`` of each method's mean from one n to the next, zero if none."""
    steps = step_up(cells, "n")
    keys = other_keys("n")
    loss = np.maximum(steps["mean_right"] - steps["mean"], 0)
    largest = steps[keys].assign(fall=loss).groupby(keys)["fall"]
    return largest.agg(lambda values: values.max(skipna=False)).reset_index()
