"""Which readings of the paper made its numbers, by the shipped runs? docs/explanation/readings.md explains it.

    python benchmarks/readings.py [--runs FOLDER ...] [--papers 200]

Prints Markdown: for each set of cells, posteriors, held-out scores, and how often a known reading is found. Then counts
of verdicts, what explains the numbers that differ, what nothing explains, and three choices by themselves.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from known_readings import drawn, held_out_scores, recovery

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.comparison import DIFFERS, VERDICTS
from mdpu.pipeline.evaluate.readings import Model, Panel, Readings, best_power, held_out, unexplained, verdicts
from mdpu.pipeline.store import read_runs

CELL = ("dataset", "tuple_size", "n", "prior", "method")


def show(title: str, rows: Any, digits: int = 2) -> None:
    """Print rows as a Markdown table below a title."""
    frame = pd.DataFrame(rows)
    written = frame.map(lambda value: f"{value:.{digits}f}" if isinstance(value, float) else str(value))
    print(f"\n{title}\n\n| {' | '.join(written)} |\n|{' --- |' * len(written.columns)}")
    print("\n".join(f"| {' | '.join(row)} |" for row in written.itertuples(index=False, name=None)), flush=True)


def panels(cells: pd.DataFrame) -> dict[str, Any]:
    """Return the cells that readings are compared on, by a title: the more cells, the fewer readings."""
    small, half = cells["table"].isin([2, 4]), cells["prior"] == "0.5"
    plain = cells["dataset"].isin(["mnist", "fashion-mnist"])
    run = plain | (cells["dataset"] == "emnist-letters")
    named = {"MNIST and Fashion-MNIST, prior 0.5, smaller n": plain & small & half}
    named |= {"Three datasets, prior 0.5, smaller n": run & small & half}
    named |= {"MNIST and Fashion-MNIST, smaller n": plain & small, "Three datasets, smaller n": run & small}
    return {**named, "Three datasets": run}


def infer(title: str, everything: Panel, cells: Any, readings: Readings, papers: int) -> None:
    """Print what the readings of some cells come to, and how often a known one is found."""
    panel, five = everything.on(cells), everything.on(cells, 5)
    real = held_out(five, 3)
    power, model = best_power(five, real), Model(panel)
    print(f"\n## {title}\n\n{len(panel.cells)} cells, {len(panel.readings)} readings tried, power {power}.")
    means, stds = panel.published
    found, protocol = model.likelihood(means, stds), panel.readings.index(readings.protocol)
    logs = {"posterior": found.both, "means alone": found.mean, "no offsets": found.unshifted + found.std}
    weights = {name: panel.posterior(own[0], power) for name, own in logs.items()}
    weights["power 1"] = panel.posterior(found.both[0])
    shares = {name: panel.by_choice(own) for name, own in {"prior": panel.prior, **weights}.items()}
    values = [(choice, value) for choice, own in shares["prior"].items() for value in own]
    rows = [{"choice": c, "value": v, **{name: own[c][v] for name, own in shares.items()}} for c, v in values]
    show("Posterior of each choice", rows)
    best = np.argsort(-weights["posterior"], kind="stable")
    columns = {"reading": np.array([readings.name(reading) for reading in panel.readings]), **weights}
    columns |= {"log mean": found.mean[0], "log deviation": found.std[0], "tau": found.tau[0], "kappa": found.kappa[0]}
    columns |= {"RMS z": np.sqrt((model.scores(means) ** 2).mean(axis=1))}
    gap, ratio = model.mean - means, np.sqrt(model.variance.mean(axis=1) / (stds**2).mean())
    columns |= {f"{name} gap": gap[:, model.method == place].mean(axis=1) for place, name in enumerate(model.methods)}
    columns |= {"deviation ratio": ratio}
    show("Best joint readings, and the protocol", pd.DataFrame(columns).loc[list(dict.fromkeys([*best[:5], protocol]))])
    scores = held_out_scores(panel, readings.protocol, power).replace({"reading": dict(enumerate(columns["reading"]))})
    show("Log score of a dataset by the others, nats a cell", scores)
    checks = {"three real trials": (five, real), "one real trial": (panel, held_out(panel, 1))}
    checks |= {f"drawn trials, offsets of {one} points,": (panel, drawn(panel, papers, one, 1)) for one in (0, 1)}
    for name, (own, made) in checks.items():
        show(f"Known readings: {name} published, {len(made.truth)} papers", recovery(own, made, power))


def _spread(trials: Any) -> str:
    """Return how many trials numbers have: ``3``, or ``3 to 5``."""
    least, most = int(trials.min()), int(trials.max())
    return str(most) if least == most else f"{least} to {most}"


def judge(everything: Panel, readings: Readings, rule: Any) -> None:
    """Print verdict counts under each reading, and what explains each number that differs under the protocol.

    Each reading stands beside the protocol by equal trials, which the table names; differing numbers are by all trials.
    """
    judged, cells = verdicts(everything, rule), everything.cells
    usual = judged[everything.readings.index(readings.protocol)]
    names = [readings.name(reading) for reading in everything.readings]
    rows, seen, named = [], set(), {readings.name(own): title for title, own in readings.named.items()}
    for name, own, trials in zip(names, judged, everything.trials, strict=True):
        run = own != "not run"
        if run.sum() >= 12 and trials.tobytes() not in seen:
            seen.add(trials.tobytes())
            reading = everything.readings[names.index(name)]
            pair = everything.beside([readings.protocol, reading])
            equal = verdicts(pair, rule)
            of_each = [[int((of[run] == verdict).sum()) for verdict in VERDICTS[:4]] for of in equal]
            counts = dict(zip(VERDICTS[:4], of_each[-1], strict=True))
            number = pair.counts[-1][run]
            row = {"reading": name, "is": named.get(name, ""), "numbers": run.sum(), "trials": _spread(number)}
            rows.append({**row, **counts, "protocol": of_each[0]})
    rows.sort(key=lambda row: -row["numbers"])
    show("## Verdicts under each reading of 12 numbers or more, and the protocol's on the same", rows)
    rows = []
    for place in np.flatnonzero(usual == DIFFERS):
        single = [(name, own[place]) for name, own, reading in zip(names, judged, everything.readings, strict=True)
                  if len(readings.departures(reading)) == 1]  # fmt: skip
        told = {f"{one} under": "; ".join(name for name, own in single if own == one) for one in VERDICTS[:3]}
        rows.append({**{key: cells.iloc[place][key] for key in CELL}, **told})
    show(f"## The {len(rows)} numbers that differ under the protocol, by single choices", rows)
    left = [{**{key: cells.iloc[place][key] for key in (*CELL, "published_mean")}, "readings": number, "nearest": gap}
            for place, number, gap in unexplained(everything, rule["level"])]  # fmt: skip
    show(f"## {len(left)} numbers that no reading explains", left)


def compare(everything: Panel, readings: Readings, rule: Any, choices: list[str], by: list[str]) -> None:
    """Print how far three trials under each value of choices are from the numbers for which other values were run."""
    alone = [{*readings.departures(reading)} == {*choices} for reading in everything.readings]
    run = np.isfinite(everything.trials[alone]).any(axis=(0, 2))
    cells, rows = everything.cells.assign(n=np.where(everything.cells["table"] % 2, "larger", "smaller"))[run], []
    for key, own in cells.groupby(by, sort=False):
        panel = everything.on(everything.cells.index.isin(own.index))
        for reading, ours, judged in zip(panel.readings, panel.trials, verdicts(panel, rule), strict=True):
            if {*readings.departures(reading)} <= {*choices, "epochs"}:
                gap, square = ours.mean(axis=1) - panel.published[0], (panel.published[1] ** 2).mean()
                row = {name: reading[name] for name in [*choices, "epochs"]} | dict(zip(by, key, strict=True))
                row |= {"numbers": len(gap), "accuracy": ours.mean(), "RMS": np.sqrt((gap**2).mean()),
                        **pd.Series(gap).groupby(panel.cells["method"]).mean(),
                        "ratio": np.sqrt(ours.var(axis=1, ddof=1).mean() / square)}  # fmt: skip
                rows.append(row | {verdict: int((judged == verdict).sum()) for verdict in VERDICTS[:4]})
    show(f"## {' and '.join(choices).capitalize()}: ours minus the paper's, and verdicts", rows)
    sums = pd.DataFrame(rows).groupby([*choices, "epochs", by[0]], sort=False)[["numbers", *VERDICTS[:4]]].sum()
    show(f"## {' and '.join(choices).capitalize()}: verdicts by {by[0]}", sums.reset_index())


def main() -> None:
    """Read the runs and print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, nargs="+", default=[Path("results/reference/runs")])
    parser.add_argument("--papers", type=int, default=200)
    arguments = parser.parse_args()
    readings = Readings(config := load_config())
    files = [file for folder in arguments.runs for file in sorted(folder.glob("[!o]*.parquet"))]  # no own splits
    runs = [run for file in files for run in read_runs(file).values()]
    trials = readings.read_trials(runs)
    everything, once = readings.panel(trials), trials[trials["epochs"] == readings.protocol["epochs"]]
    print(f"{len(once)} runs, by precision: {once['precision'].value_counts().to_dict()}.")
    for title, cells in panels(everything.cells).items():
        infer(title, everything, cells, readings, arguments.papers)
    judge(everything, readings, rule := config["comparison"])
    for choices in ("loss", "replacement", "loss replacement", "scope replacement", "rate"):
        compare(everything, readings, rule, choices.split(), ["dataset" if choices == "rate" else "n", "prior"])


if __name__ == "__main__":
    main()
