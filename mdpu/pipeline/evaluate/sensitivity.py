"""How much each choice that the paper leaves open changes the numbers, and which choices come nearest to the paper's.

An *alternative* is a choice other than the protocol's own: another variant (trained anew), another reporting
(the same runs, summarised in another way), another scope of the correction (another method), or the other
class sides of a dataset whose published rows two datasets compete for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from mdpu.learn.method import CorrectedRisk
from mdpu.learn.methods import load_method
from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.evaluate.published import TRIALS, published_cells
from mdpu.pipeline.plan import ROW, Departure, Experiment, Plan, Run
from mdpu.randomness import Stream

SCOPE_KEY, SIDES_KEY, JOINT_KEY = "scope", "sides", "joint"
PANEL = ROW
ALTERNATIVE = ("key", "base", "value")
REPLICATES = 1000


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


def _combined_reportings(plan: Plan, experiment: Experiment) -> dict[tuple[Departure, ...], dict[str, Any]]:
    """Return every combination of the reportings' keys, with the reporting settings of each."""
    base = plan.protocol.reporting(BASE)
    by_key: dict[str, dict[Any, None]] = {key: {value: None} for key, value in base.items()}
    for name in experiment.options.get("reporting", ()):
        for key, value in plan.protocol.reporting(name).items():
            by_key[key].setdefault(value)
    combined = {}
    for values in itertools.product(*by_key.values()):
        reporting = dict(zip(by_key, values, strict=True))
        departures = tuple(
            Departure(key, str(base[key]), str(value)) for key, value in reporting.items() if value != base[key]
        )
        combined[departures] = reporting
    return combined


def _accuracies(
    plan: Plan, experiment: Experiment, metrics: pd.DataFrame
) -> dict[tuple[Departure, ...], dict[tuple[Any, ...], float]]:
    """Return each run's accuracy in percent under each combination of reportings.

    The inner keys are (variant, dataset, tuple size, n, prior, method, seed).
    """
    keys = ["variant", *PANEL, "method", "seed"]
    by_departures = {}
    for departures, reporting in _combined_reportings(plan, experiment).items():
        accuracies = run_accuracies(metrics, reporting)
        by_departures[departures] = dict(
            zip(accuracies[keys].itertuples(index=False, name=None), accuracies["accuracy"], strict=True)
        )
    return by_departures


def _variants(plan: Plan, experiment: Experiment) -> dict[str, tuple[Departure, ...]]:
    """Return the departures of an experiment's variants, base first."""
    networks = sorted({plan.network(run.dataset) for run in experiment.runs})
    names = dict.fromkeys([BASE, *(run.variant for run in experiment.runs)])
    return {name: tuple(plan.protocol.departures(name, networks)) for name in names}


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
    accuracies = _accuracies(plan, experiment, metrics)
    natural = accuracies[()]
    rows = []
    alone = plan.config["definitions"]["experiments"][experiment.name].get("base_method", ())
    compared = [run for run in experiment.runs if run.variant == BASE and run.method not in alone]
    for alternative in _alternatives(plan, experiment, accuracies):
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
    accuracies: Mapping[tuple[Any, ...], float]
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
    plan: Plan, experiment: Experiment, accuracies: Mapping[tuple[Departure, ...], Mapping[tuple[Any, ...], float]]
) -> Iterator[_Alternative]:
    """Yield the single alternatives of an experiment, in the order of the configuration."""
    natural = accuracies[()]
    for variant, departures in _variants(plan, experiment).items():
        if variant != BASE:
            yield _Alternative(*_as_one(departures), natural, variant)
    for scope, methods in scoped_methods(_methods(experiment)).items():
        yield _Alternative(SCOPE_KEY, "whole", scope, natural, methods=methods)
    for departures, reported in accuracies.items():
        if len(departures) == 1:
            yield _Alternative(*_as_one(departures), reported)
    for stated, *others in _rivals(plan, experiment).values():
        for other in others:
            yield _Alternative(SIDES_KEY, stated, other, natural, datasets={stated: other})


def _methods(experiment: Experiment) -> list[str]:
    return list(dict.fromkeys(run.method for run in experiment.runs))


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


def published_differences(plan: Plan, experiment: Experiment) -> pd.DataFrame:
    """Return the published cells that an experiment covers.

    Returns
    -------
    DataFrame
        stated (the dataset of the published rows), tuple_size, n, prior, method, published_mean and
        published_std, for the methods that every variant has.
    """
    alone = plan.config["definitions"]["experiments"][experiment.name].get("base_method", ())
    covered = {
        (stated, run.tuple_size, run.n, run.prior, run.method)
        for stated, rivals in _rivals(plan, experiment).items()
        for run in experiment.runs
        if run.dataset in rivals and run.method not in alone
    }
    cells = published_cells().rename(columns={"dataset": "stated"})
    keys = ["stated", "tuple_size", "n", "prior", "method"]
    is_covered = [key in covered for key in cells[keys].itertuples(index=False, name=None)]
    return cells.loc[is_covered, [*keys, "published_mean", "published_std"]].reset_index(drop=True)


@dataclass(frozen=True)
class _Candidate:
    """A complete set of choices, one per open key, for the experiment's published cells."""

    departures: tuple[Departure, ...]
    accuracies: Mapping[tuple[Any, ...], float]
    variant: str
    methods: Mapping[str, str]
    datasets: Mapping[str, str]

    @property
    def trained(self) -> tuple[Any, ...]:
        """What identifies its runs among those of all candidates, however they are reported."""
        return self.variant, tuple(self.methods.items()), tuple(self.datasets.values())

    def of(self, cell: tuple[str, int, int, str, str], seed: int) -> float:
        """Return the accuracy of one trial of a published cell, missing where it was not run."""
        stated, tuple_size, n, prior, method = cell
        own_dataset, own_method = self.datasets[stated], self.methods.get(method, method)
        key = (self.variant, own_dataset, tuple_size, n, prior, own_method, seed)
        return self.accuracies.get(key, math.nan)


def _candidates(
    plan: Plan, experiment: Experiment, accuracies: Mapping[tuple[Departure, ...], Mapping[tuple[Any, ...], float]]
) -> Iterator[_Candidate]:
    """Yield every combination of variant, scope, class sides and reportings that has runs."""
    rivals = _rivals(plan, experiment)
    scopes = {"whole": {}, **scoped_methods(_methods(experiment))}
    trained = {(run.variant, run.method) for run in experiment.runs}
    for variant, variant_departures in _variants(plan, experiment).items():
        for scope, methods in scopes.items():
            if not all((variant, method) in trained for method in methods.values()):
                continue
            scope_departures = (Departure(SCOPE_KEY, "whole", scope),) if methods else ()
            for choice in itertools.product(*rivals.values()):
                datasets = dict(zip(rivals, choice, strict=True))
                sides_departures = tuple(
                    Departure(SIDES_KEY, rivals[stated][0], dataset)
                    for stated, dataset in datasets.items()
                    if dataset != rivals[stated][0]
                )
                for reporting_departures, reported in accuracies.items():
                    departures = (*variant_departures, *scope_departures, *sides_departures, *reporting_departures)
                    yield _Candidate(departures, reported, variant, methods, datasets)


def nearest_to_published(plan: Plan, experiment: Experiment, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the distance of each combination of choices to the published numbers, the nearest first.

    The combinations are all that have runs: every variant with every combination of reportings (which need
    no training), every scope that was trained, and every choice of class sides. If several give the same
    numbers, only the first is listed.
    The paper's numbers are the yardstick here. So the result says what the paper probably did, not how
    accurate anything is.

    Parameters
    ----------
    plan, experiment, metrics
        As for `paired_differences`.

    Returns
    -------
    DataFrame
        One row per combination with every cell there: ``rank``; ``departures`` from the protocol and
        their number ``keys``; ``mean_absolute`` and ``rms``, over cells, of our mean minus the paper's in
        points, and their mean ``bias``; ``floor``, the mean absolute difference that two sets of trials of
        one procedure would show, by the deviations of both sides; ``cells`` and ``trials``.

        How certain the order is, by `REPLICATES` replicates in which every mean is moved by noise: ours by
        deviations of trials that are drawn from all that was trained (see `_noise`), the paper's by a
        normal law with its standard error. Replicates of a distance are moved to have the observed one as their mean.
        ``first`` is the share of replicates in which the combination
        is the nearest, ``gain`` how much nearer it is than the protocol as it stands (positive: nearer)
        with its interval ``gain_low``, ``gain_high`` at ``comparison.level``, and ``tied`` whether that interval
        of its distance beyond the nearest one's reaches zero. One trial of each says nothing of noise: then these are
        missing, but for ``gain``. Empty if the paper has no cell of the experiment's.
    """
    cells = published_differences(plan, experiment)
    accuracies = _accuracies(plan, experiment, metrics)
    seeds = sorted({run.seed for run in experiment.runs})
    candidates: list[_Candidate] = []
    values: dict[bytes, NDArray[np.float64]] = {}  # by content: a choice that changes nothing does not count
    points = list(cells[["stated", "tuple_size", "n", "prior", "method"]].itertuples(index=False, name=None))
    for candidate in _candidates(plan, experiment, accuracies):
        reached = np.array([[candidate.of(point, seed) for seed in seeds] for point in points])
        content = reached.round(9).tobytes()
        if points and np.isfinite(reached).any(axis=1).all() and content not in values:
            candidates.append(candidate)
            values[content] = reached
    if not candidates:
        return pd.DataFrame(columns=NEAREST)
    ours = np.stack(list(values.values()))  # (candidates, cells, seeds)
    published = cells["published_mean"].to_numpy()
    error = cells["published_std"].to_numpy() / np.sqrt(TRIALS)
    difference = np.nanmean(ours, axis=2) - published
    trials = np.isfinite(ours).sum(axis=2)
    table = pd.DataFrame(
        {
            "departures": [
                "; ".join(f"{d.key} = {d.value}" for d in candidate.departures) or "none" for candidate in candidates
            ],
            "keys": [len(candidate.departures) for candidate in candidates],
            "mean_absolute": np.abs(difference).mean(axis=1),
            "rms": np.sqrt((difference**2).mean(axis=1)),
            "bias": difference.mean(axis=1),
            "floor": _floor(ours, error),
            "cells": len(cells),
            "trials": trials.min(axis=1),
        }
    )
    kinds = {candidate.trained: position for position, candidate in reversed(list(enumerate(candidates)))}
    units = np.array([list(kinds).index(candidate.trained) for candidate in candidates])
    groups = np.asarray(cells.groupby(["stated", "tuple_size", "n", "prior"], sort=True).ngroup(), dtype=np.int64)
    noise = _noise(ours[list(kinds.values())], groups)  # (replicates, units, cells)
    uniform = Stream(0, "sensitivity published").uniform(REPLICATES, len(cells))
    noise -= (ndtri(np.clip(uniform, 2.0**-54, None)) * error)[:, None]
    replicates = np.stack(
        [np.abs(difference[k] + noise[:, unit]).mean(axis=1) for k, unit in enumerate(units)], axis=1
    )  # (replicates, candidates)
    # A distance is a mean of absolute values. Noise increases it, and small distances most of all. To leave only the
    # effect on the order, the replicates of each combination are shifted to its observed distance.
    distance = table["mean_absolute"].to_numpy()
    replicates += distance - replicates.mean(axis=0)
    first = int(distance.argmin())
    # If the protocol as it stands lacks a cell, there is nothing to be nearer than.
    has_base = not candidates[0].departures
    base = replicates[:, [0]] if has_base else np.full((REPLICATES, 1), np.nan)
    tail = (1 - plan.config["comparison"]["level"]) / 2
    gain_low, gain_high = np.quantile(base - replicates, [tail, 1 - tail], axis=0)
    behind = np.quantile(replicates - replicates[:, [first]], tail, axis=0)
    table = table.assign(
        first=np.bincount(replicates.argmin(axis=1), minlength=len(table)) / REPLICATES,
        gain=(distance[0] if has_base else np.nan) - distance,
        gain_low=gain_low,
        gain_high=gain_high,
        tied=behind <= 0,
    )
    if trials.max() < 2:
        table = table.astype({"tied": object}).assign(first=np.nan, gain_low=np.nan, gain_high=np.nan, tied=None)
    table = table.sort_values(["mean_absolute", "keys"], kind="stable", ignore_index=True)
    return table.assign(rank=table.index + 1)[NEAREST]


NEAREST = [
    "rank",
    "departures",
    "keys",
    "mean_absolute",
    "rms",
    "bias",
    "floor",
    "gain",
    "gain_low",
    "gain_high",
    "first",
    "tied",
    "cells",
    "trials",
]


def _floor(ours: NDArray[np.float64], error: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over cells of E|d|, d normal about 0 with the standard error of the difference of means."""
    trials = np.isfinite(ours).sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = ours - np.nanmean(ours, axis=2, keepdims=True)
        squared = np.nansum(centred**2, axis=2) / (trials - 1) / trials
    return np.sqrt(2 / np.pi) * np.sqrt(squared + error**2).mean(axis=1)


def _noise(ours: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return draws of the deviation of each cell's mean over trials, as fresh trials would show it.

    Two or three trials of one cell say little about its spread, so the deviations of all runs are pooled. A
    trial's deviation is split into a part common to all units and the rest. (A seed draws the same tuples for
    most units, which moves them together and hardly changes their order.) For each trial, a replicate takes the
    common part of a random seed, the same for all units, and for each unit the rest of a random unit and seed.
    Both are taken at once for all methods of a dataset, tuple size, n and prior, because these share their
    tuples, and both are scaled up for the degrees of freedom of the means.

    Parameters
    ----------
    ours : ndarray, shape (units, cells, trials)
        Accuracies of each trained set of runs; missing where a run diverged.
    groups : ndarray, shape (cells,)
        Cells of the same dataset, tuple size, n and prior have the same number.

    Returns
    -------
    ndarray, shape (REPLICATES, units, cells)
    """
    count, _, trials = ours.shape
    deviation = np.nan_to_num(ours - np.nanmean(ours, axis=2, keepdims=True))
    if trials > 1:
        deviation *= np.sqrt(trials / (trials - 1))
    common = deviation.mean(axis=0)  # (cells, trials)
    rest = deviation - common
    if count > 1:
        rest *= np.sqrt(count / (count - 1))
    stream = Stream(0, "sensitivity trials")
    noise = np.empty((REPLICATES, count, len(groups)))
    for group in np.unique(groups):
        at = groups == group
        seeds = stream.integers(trials, REPLICATES, trials)
        shared = common[at][:, seeds].mean(axis=2)  # (cells, replicates)
        pool = rest[:, at].transpose(0, 2, 1).reshape(count * trials, -1)  # (units x trials, cells)
        own = pool[stream.integers(len(pool), REPLICATES, count, trials)].mean(axis=2)
        noise[:, :, at] = shared.T[:, None] + own
    return noise
