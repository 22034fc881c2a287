"""Forecast what runs of ours will give on the datasets that nobody has run, and rehearse it on runs that are there.

    python benchmarks/forecasts.py

writes ``results/reference/forecasts.csv``, then scores forecasts by runs that they were made without: of each dataset
by the two others, and of the draws of ``config/own-split.yaml``. A minute. ``docs/explanation/readings.md`` explains.
"""

from __future__ import annotations

import itertools
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from readings import panels, show

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.forecasts import FILE, score_forecasts
from mdpu.pipeline.evaluate.published import PROPOSED, TRIALS
from mdpu.pipeline.evaluate.readings import GRID, SCALE, Model, Panel, Readings
from mdpu.pipeline.files import REPOSITORY, write_csv
from mdpu.pipeline.plan import Plan, Run
from mdpu.pipeline.store import read_runs

RUNS, DRAWS = REPOSITORY / "results" / "reference" / "runs", 20_000
# A deviation in points for another network: the root mean square of ours minus the paper's in six short runs of
# CIFAR-10 (findings.md, "Colour"). Without it the rehearsal on these runs fails.
NETWORK, RESNETS = 7.5, ("cifar-10", "svhn")
NUMBERS = ["published_dataset", "dataset", "tuple_size", "n", "prior", "method", "published_mean", "published_std"]
# Draws of the images of a dataset; own-balanced has all 47 classes, and own-cifar-10 one trial of 15 epochs.
DRAWN = {"own-digits": "emnist-digits", "own-balanced-digits": "emnist-balanced-digits"}
DRAWN |= {"own-balanced": "emnist-balanced-digits", "own-cifar-10": "cifar-10"}


def forecast(model: Model, place: int, cells: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return ``forecast``, ``low`` and ``high`` of our mean over three trials in cells of datasets that were not run.

    The published number minus ours is the offset of its method, one that its dataset gives the method, what nothing
    explains, and noise. Deviations of the first three, kappa, delta, tau, have the posterior of the reading at `place`.
    """
    panel, methods = model.panel, model.methods[model.method]
    gap, noise = panel.published[0] - model.mean[place], model.covariance[place]
    same = (methods[:, None] == methods).astype(float)
    both = same * (panel.cells["dataset"].to_numpy()[:, None] == panel.cells["dataset"].to_numpy())
    across = (cells["method"].to_numpy()[:, None] == methods).astype(float)  # (new, known)
    prior = -((GRID / SCALE) ** 2) / 2 + np.log(np.gradient(GRID))
    logs, centres, variances = [], [], []
    for (i, tau), (j, kappa), (k, delta) in itertools.product(enumerate(GRID), repeat=3):
        whole = noise + tau**2 * np.eye(len(gap)) + kappa**2 * same + delta**2 * both
        weigh = kappa**2 * np.linalg.solve(whole, across.T).T
        logs.append(prior[[i, j, k]].sum() - np.linalg.slogdet(whole)[1] / 2 - gap @ np.linalg.solve(whole, gap) / 2)
        centres.append(weigh @ gap)
        variances.append(kappa**2 + delta**2 + tau**2 - kappa**2 * (weigh * across).sum(axis=1))
    # The variance of a trial is the method's in the reading, shrunk to what the paper prints for the cell.
    pooled = pd.Series(model.variance[place]).groupby(methods).mean()[cells["method"]].to_numpy()
    printed = cells["published_std"].to_numpy() ** 2 * model.variance[place].mean() / (panel.published[1] ** 2).mean()
    counts = model.freedom - panel.trials.shape[2] + 1  # degrees of freedom, of the pooled variance
    trial = (counts * pooled + (TRIALS - 1) * printed) / (counts + TRIALS - 1)
    random, weights = np.random.default_rng(1), np.exp(np.array(logs) - max(logs))
    drawn = random.choice(len(logs), DRAWS, p=weights / weights.sum())
    other = NETWORK**2 * cells["published_dataset"].isin(RESNETS).to_numpy()
    spread = np.sqrt(np.array(variances)[drawn] + 2 / TRIALS * trial + other)
    ours = cells["published_mean"].to_numpy() - np.array(centres)[drawn] - spread * random.standard_normal(spread.shape)
    low, middle, high = np.quantile(ours, [(1 - level) / 2, 0.5, (1 + level) / 2], axis=0).round(2)
    return cells.assign(forecast=middle, low=low, high=high, level=level, trials=TRIALS)


def histories(readings: Readings, path: Path) -> pd.DataFrame:
    """Return the histories of the first three trials of the protocol in a packed file, with their axes."""
    frames = []
    for run in read_runs(path).values():
        asked, (dataset, size, n, prior, seed) = run.about["asked"], run.about["asked"]["trial"].split("/")
        axes = readings.axes(asked)
        usual = axes["variant"] == "protocol" if axes else dataset == "own-cifar-10"
        if usual and asked["method"] in PROPOSED and int(seed[4:]) <= TRIALS:
            named = (int(size[1:]), int(n[1:]), prior[5:], asked["method"], "logistic", int(seed[4:]))
            frames.append(run.history.assign(**vars(Run(DRAWN.get(dataset, dataset), "base", *named))))
    return pd.concat(frames, ignore_index=True)


def main() -> None:
    """Write the forecasts, and print how rehearsed ones fare."""
    readings, files = Readings(config := load_config()), sorted(RUNS.glob("*.parquet"))
    trials = readings.read_trials(run for file in files if file.stem[:4] != "own-" for run in read_runs(file).values())
    everything, level = readings.panel(trials), config["comparison"]["level"]
    panel = everything.on(panels(everything.cells)["Three datasets"])
    posterior = panel.posterior(Model(panel).likelihood(*panel.published).both[0])
    places = {name: panel.readings.index(own) for name, own in readings.named.items() if own in panel.readings}
    names = list(dict.fromkeys([max(places, key=lambda name: posterior[places[name]]), "protocol"]))  # the best first

    def told(panel: Panel, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the forecasts of some cells by those of a panel, under each reading."""
        model, frames = Model(panel), []
        for name in names:
            datasets = readings.changes(readings.named[name])["datasets"]
            own = cells.assign(published_dataset=cells["dataset"]).replace({"dataset": datasets})[NUMBERS]
            frames.append(forecast(model, places[name], own, level).assign(reading=name))
        return pd.concat(frames, ignore_index=True)

    unrun = told(panel, everything.cells[~everything.cells["dataset"].isin(panel.cells["dataset"])])
    head = ["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    write_csv(unrun.assign(date=datetime.now(UTC).date().isoformat(), commit=commit), FILE)
    scores = []
    for dataset in [*panel.cells["dataset"].unique(), *DRAWN]:
        own, made, file = (panel.cells["dataset"] == dataset).to_numpy(), unrun, dataset
        if own.any():
            rest = Panel(panel.readings, panel.cells[~own].reset_index(drop=True), panel.trials[:, ~own])
            made = told(rest, panel.cells[own])
            file = made["dataset"].iloc[0]
        found = score_forecasts(Plan(config), histories(readings, RUNS / f"{file}.parquet"), made)
        scores += [{"runs": dataset, **row} for row in found]
    show(f"{len(unrun)} forecasts, by the readings {', '.join(names)}; rehearsed", scores)


if __name__ == "__main__":
    main()
