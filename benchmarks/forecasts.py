"""Forecast what runs of ours will give on the paper's other datasets, and score forecasts by runs.

    python benchmarks/forecasts.py

scores forecasts by runs that they were made without: of each dataset by the two others, and those
of ``results/reference/forecasts.csv`` by the draws of ``config/own-split.yaml``. A minute. The
scores go to ``results/reference/rehearsal.csv``. With
``write`` it first makes that file anew, which is for datasets that have no runs yet: whoever has
seen runs does not forecast them. ``docs/explanation/readings.md`` explains.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from readings import choose_sets

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.forecasts import FILE, score_forecasts
from mdpu.pipeline.evaluate.model import GRID, SCALE, Model
from mdpu.pipeline.evaluate.panel import Panel
from mdpu.pipeline.evaluate.published import PROPOSED, TRIALS
from mdpu.pipeline.files import REPOSITORY, read_csv, write_csv
from mdpu.pipeline.plan import Plan, Run
from mdpu.pipeline.store import read_runs

RUNS = REPOSITORY / "results" / "reference" / "runs"
DRAWS = 20_000
# A deviation in points for another network: the root mean square of ours minus the paper's in six
# runs of CIFAR-10 with 15 epochs, which results/reference/runs/own-cifar-10.parquet of commit
# da1f4f7e has.
NETWORK = 7.5
RESNETS = ("cifar-10", "svhn")
NUMBERS = [
    "published_dataset",
    "dataset",
    "tuple_size",
    "n",
    "prior",
    "method",
    "published_mean",
    "published_std",
]
# Draws of the images of a dataset; own-balanced has all 47 classes, and own-cifar-10 one trial with
# another stem.
DRAWN = {"own-digits": "emnist-digits", "own-balanced-digits": "emnist-balanced-digits"}
DRAWN |= {"own-balanced": "emnist-balanced-digits", "own-cifar-10": "cifar-10"}


def alike(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """Return 1 where two columns have the same value, (first, second), and 0 elsewhere."""
    pairs = np.asarray(first)[:, None] == np.asarray(second)
    return pairs.astype(float)


def offsets(
    model: Model, place: int, methods_of_new: pd.Series
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the posterior weight of each tau, kappa and delta, and by them the mean and the
    variance of the offset of new cells.
    """
    cells = model.panel.cells
    methods = model.methods[model.method]
    published, _ = model.panel.published
    gap = published - model.mean[place]
    noise = model.covariance[place]
    same = alike(methods, methods)
    both = same * alike(cells["dataset"], cells["dataset"])
    across = alike(methods_of_new, methods)  # (new, known)
    prior = -((GRID / SCALE) ** 2) / 2 + np.log(np.gradient(GRID))

    logs = []
    means = []
    variances = []
    for i, j, k in itertools.product(range(len(GRID)), repeat=3):
        tau2, kappa2, delta2 = GRID[[i, j, k]] ** 2
        whole = noise + tau2 * np.eye(len(gap)) + kappa2 * same + delta2 * both
        _, log_determinant = np.linalg.slogdet(whole)
        distance = gap @ np.linalg.solve(whole, gap)
        log_prior = prior[[i, j, k]].sum()
        logs.append(log_prior - (log_determinant + distance) / 2)

        weigh = kappa2 * np.linalg.solve(whole, across.T).T
        means.append(weigh @ gap)
        known = kappa2 * (weigh * across).sum(axis=1)
        variances.append(kappa2 + delta2 + tau2 - known)

    weights = np.exp(np.array(logs) - max(logs))
    return weights / weights.sum(), np.array(means), np.array(variances)


def variance_of_trial(model: Model, place: int, cells: pd.DataFrame) -> np.ndarray:
    """Return the variance of a trial in new cells: the method's in the reading, shrunk to what the
    paper prints for the cell.
    """
    panel = model.panel
    variance = pd.Series(model.variance[place])
    by_method = variance.groupby(model.methods[model.method]).mean()
    pooled = by_method[cells["method"]].to_numpy()
    _, stds = panel.published
    ratio = variance.mean() / (stds**2).mean()
    printed = cells["published_std"].to_numpy() ** 2 * ratio
    counts = model.freedom - panel.trials.shape[2] + 1  # degrees of freedom, of the pooled variance
    return (counts * pooled + (TRIALS - 1) * printed) / (counts + TRIALS - 1)


def forecast(model: Model, place: int, cells: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return ``forecast``, ``low`` and ``high`` of our mean over three trials in cells of datasets
    that were not run.

    The published number minus ours is the offset of its method, one that its dataset gives the
    method, what nothing explains, and noise. Deviations of the first three, kappa, delta, tau, have
    the posterior of the reading at `place`.
    """
    weights, means, variances = offsets(model, place, cells["method"])
    trial = variance_of_trial(model, place, cells)
    random = np.random.default_rng(1)
    drawn = random.choice(len(weights), DRAWS, p=weights)
    is_resnet = cells["published_dataset"].isin(RESNETS)
    other_network = NETWORK**2 * is_resnet.to_numpy()
    variance = variances[drawn] + 2 / TRIALS * trial + other_network
    noise = np.sqrt(variance) * random.standard_normal(variance.shape)
    published = cells["published_mean"].to_numpy()
    ours = published - means[drawn] - noise

    tail = (1 - level) / 2
    shares = [tail, 0.5, 1 - tail]
    low, middle, high = np.quantile(ours, shares, axis=0).round(2)
    return cells.assign(forecast=middle, low=low, high=high, level=level, trials=TRIALS)


def histories(readings: Readings, path: Path) -> pd.DataFrame:
    """Return the histories of the first three trials of the protocol in a packed file, with their
    axes.

    All runs of CIFAR-10 count, though they have another stem.
    """
    frames = []
    for run in read_runs(path).values():
        asked = run.about["asked"]
        dataset, size, n, prior, seed = asked["trial"].split("/")
        axes = readings.axes(asked)
        usual = dataset == "own-cifar-10" or (axes is not None and axes["variant"] == "protocol")
        proposed = asked["loss"] == "logistic" and asked["method"] in PROPOSED
        if usual and proposed and int(seed[4:]) <= TRIALS:
            named = (
                int(size[1:]),
                int(n[1:]),
                prior[5:],
                asked["method"],
                "logistic",
                int(seed[4:]),
            )
            frames.append(
                run.history.assign(**vars(Run(DRAWN.get(dataset, dataset), "base", *named)))
            )
    return pd.concat(frames, ignore_index=True)


def write_forecasts(forecasts: pd.DataFrame) -> None:
    """Write forecasts with today's date and the commit that makes them."""
    head = ["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    write_csv(forecasts.assign(date=datetime.now(UTC).date().isoformat(), commit=commit), FILE)


def main() -> None:
    """Print how forecasts fare, those of the file and rehearsed ones; write the file anew if
    asked.
    """
    readings = Readings(config := load_config())
    files = sorted(RUNS.glob("*.parquet"))
    trials = readings.read_trials(
        run for file in files if file.stem[:4] != "own-" for run in read_runs(file).values()
    )
    everything = Panel.of(readings, trials)
    level = config["comparison"]["level"]
    panel = everything.on(choose_sets(everything.cells)["three datasets"])
    posterior = panel.posterior(Model(panel).likelihood(*panel.published).both[0])
    places = {
        name: panel.readings.index(own)
        for name, own in readings.named.items()
        if own in panel.readings
    }
    writes = sys.argv[1:] == ["write"]
    if writes:
        best = max(places, key=lambda name: posterior[places[name]])
        names = list(dict.fromkeys([best, "protocol"]))
    else:
        names = list(read_csv(FILE)["reading"].unique())

    def told(panel: Panel, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the forecasts of some cells by those of a panel, under each reading."""
        model = Model(panel)
        frames = []
        for name in names:
            datasets = readings.changes(readings.named[name])["datasets"]
            own = cells.assign(published_dataset=cells["dataset"]).replace({"dataset": datasets})[
                NUMBERS
            ]
            frames.append(forecast(model, places[name], own, level).assign(reading=name))
        return pd.concat(frames, ignore_index=True)

    if writes:
        were_run = everything.cells["dataset"].isin(panel.cells["dataset"])
        write_forecasts(told(panel, everything.cells[~were_run]))
    unrun = read_csv(FILE)
    # It knows the class sides of the draws.
    drawn = Readings(load_config([REPOSITORY / "config" / "own-split.yaml"]))
    scores = []
    for dataset in [*panel.cells["dataset"].unique(), *DRAWN]:
        own = (panel.cells["dataset"] == dataset).to_numpy()
        made = unrun
        file = dataset
        if own.any():
            rest = Panel(
                panel.readings, panel.cells[~own].reset_index(drop=True), panel.trials[:, ~own]
            )
            made = told(rest, panel.cells[own])
            file = made["dataset"].iloc[0]
        found = score_forecasts(Plan(config), histories(drawn, RUNS / f"{file}.parquet"), made)
        scores += [{"runs": dataset, **row} for row in found]
    print(f"{len(unrun)} forecasts, by the readings {', '.join(names)}; rehearsed")
    rehearsal = pd.DataFrame(scores)
    print(rehearsal.round(2).to_string(index=False))
    write_csv(rehearsal, FILE.with_name("rehearsal.csv"))


if __name__ == "__main__":
    main()
