"""Which readings of the paper made its numbers, by the shipped runs?

    python benchmarks/readings.py [--runs FOLDER ...] [--papers 200] [--out
    results/reference/readings]

docs/explanation/readings.md explains it. Its tables are made from the files that this writes.
Readings are compared on several sets of cells; ``numbers`` says how many cells a set has, which
names it.

=================  =========================================================================
``sets.csv``       a set of cells: its title, readings tried, trials of each number, power
``choices.csv``    a value of a choice, by set: its prior and its posteriors
``joint.csv``      a reading, by set, the most probable first
``held_out.csv``   a dataset, by set: how well the others predict it, in nats a number
``known.csv``      a choice, by set and by how papers were made: how often it is found
``single.csv``     a number that differs under the protocol, and its verdicts under a reading
                   that departs in one choice and under the protocol, by equal ``trials``
``outside.csv``    a number that lies outside of the intervals of all readings
``compared.csv``   values of one or two choices on the cells for which they were run, by equal
                   ``trials``: those of all values, and those of the values that have more; how far
                   ours are from the paper's, and verdicts
``runs.csv``       how many runs stand for a published number, by precision
=================  =========================================================================
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from known_readings import drawn, held_out_scores, recovery

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.comparison import DIFFERS, NOT_RUN, VERDICTS
from mdpu.pipeline.evaluate.known import best_power, held_out
from mdpu.pipeline.evaluate.model import Model
from mdpu.pipeline.evaluate.panel import Panel, unexplained, verdicts
from mdpu.pipeline.plan import ROW, Plan
from mdpu.pipeline.store import read_runs

CELL = ("dataset", "tuple_size", "n", "prior", "method")
JUDGED = [verdict for verdict in VERDICTS if verdict != NOT_RUN]
OUT = Path("results/reference/readings")
TRIALS = 3  # of the paper, and of a real paper that is made of ours
COMPARED = (
    # the choices that vary together, and what their cells are grouped by
    (("loss",), ("n", "prior")),
    (("replacement",), ("n", "prior")),
    (("loss", "replacement"), ("n", "prior")),
    (("scope", "replacement"), ("n", "prior")),
    (("rate",), ("dataset", "prior")),
)
DECIMALS = 6

Rows = list[dict[str, Any]]


def choose_sets(cells: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the sets of cells on which readings are compared: the more cells, the fewer
    readings.
    """
    smaller = cells["table"].isin([2, 4])
    half = cells["prior"] == "0.5"
    two = cells["dataset"].isin(["mnist", "fashion-mnist"])
    three = two | (cells["dataset"] == "emnist-letters")
    return {
        "MNIST and Fashion-MNIST, prior 0.5, smaller n": two & smaller & half,
        "three datasets, prior 0.5, smaller n": three & smaller & half,
        "MNIST and Fashion-MNIST, smaller n": two & smaller,
        "three datasets, smaller n": three & smaller,
        "three datasets": three,
    }


class Inference:
    """What the readings of some cells come to.

    Parameters
    ----------
    panel : Panel
        The readings that have runs for all of these cells.
    longer : Panel
        Those of them with two trials more than a paper has, by which the power is chosen.
    readings : Readings
        The choices of the configuration.
    """

    def __init__(self, panel: Panel, longer: Panel, readings: Readings) -> None:
        self.panel = panel
        self.longer = longer
        self.readings = readings
        self.real = held_out(longer, TRIALS)
        self.power = best_power(longer, self.real)
        self.model = Model(panel)
        self.found = self.model.likelihood(*panel.published)
        self.names = [readings.name(reading) for reading in panel.readings]

    @property
    def posteriors(self) -> dict[str, np.ndarray]:
        """Posteriors of the readings: as it is, and as other likelihoods or no power would
        have it.
        """
        panel = self.panel
        found = self.found
        return {
            "posterior": panel.posterior(found.both[0], self.power),
            "means_alone": panel.posterior(found.mean[0], self.power),
            "no_offsets": panel.posterior((found.unshifted + found.std)[0], self.power),
            "power_1": panel.posterior(found.both[0]),
        }

    def describe(self) -> Rows:
        """Return what was compared."""
        row = {
            "readings": len(self.panel.readings),
            "trials": self.panel.trials.shape[2],
            "power": self.power,
        }
        return [row]

    def choices(self) -> Rows:
        """Return prior and posteriors of each value of each choice that varies."""
        weights = {"prior_probability": self.panel.prior, **self.posteriors}
        shares = {name: self.panel.by_choice(weight) for name, weight in weights.items()}
        rows = []
        for choice, values in shares["prior_probability"].items():
            for value in values:
                numbers = {name: share[choice][value] for name, share in shares.items()}
                rows.append({"choice": choice, "value": value, **numbers})
        return rows

    def joint(self) -> pd.DataFrame:
        """Return every reading with its posteriors and with what the model makes of its
        deviations.
        """
        model = self.model
        means, stds = self.panel.published
        gap = model.mean - means
        frame = pd.DataFrame({"reading": self.names, **self.posteriors})
        frame["log_mean"] = self.found.mean[0]
        frame["log_deviation"] = self.found.std[0]
        frame["tau"] = self.found.tau[0]
        frame["kappa"] = self.found.kappa[0]

        squares = model.scores(means) ** 2
        frame["rms_z"] = np.sqrt(squares.mean(axis=1))
        for place, method in enumerate(model.methods):
            of_method = model.method == place
            frame[f"gap_{method}"] = gap[:, of_method].mean(axis=1)
        variance = model.variance.mean(axis=1)
        frame["ratio"] = np.sqrt(variance / (stds**2).mean())
        return frame.sort_values("posterior", ascending=False, kind="stable")

    def held_out(self) -> pd.DataFrame:
        """Return how well each dataset is predicted by the others."""
        scores = held_out_scores(self.panel, self.readings.protocol, self.power)
        return scores.replace({"reading": dict(enumerate(self.names))})

    def known(self, papers: int) -> Iterator[pd.DataFrame]:
        """Yield how often a known reading is found, by how papers were made."""
        one_trial = held_out(self.panel, 1)
        yield self._found("three real trials", self.longer, self.real)
        yield self._found("one real trial", self.panel, one_trial)
        for offset in (0, 1):
            made = drawn(self.panel, papers, offset, 1)
            yield self._found(f"drawn trials, offset {offset}", self.panel, made)

    def _found(self, made_of: str, panel: Panel, papers: Any) -> pd.DataFrame:
        frame = recovery(panel, papers, self.power)
        frame.insert(0, "made_of", made_of)
        return frame


def infer(everything: Panel, readings: Readings, papers: int) -> dict[str, pd.DataFrame]:
    """Return what is inferred on each set of cells, by the name of its file."""
    frames: dict[str, list[pd.DataFrame]] = {}
    for title, cells in choose_sets(everything.cells).items():
        panel = everything.on(cells)
        inference = Inference(panel, everything.on(cells, TRIALS + 2), readings)
        made = {
            "sets": pd.DataFrame(inference.describe()).assign(title=title),
            "choices": pd.DataFrame(inference.choices()),
            "joint": inference.joint(),
            "held_out": inference.held_out(),
            "known": pd.concat(inference.known(papers)),
        }
        for name, frame in made.items():
            frame.insert(0, "numbers", len(panel.cells))
            frames.setdefault(name, []).append(frame)
        print(f"{title}: {len(panel.cells)} numbers, {len(panel.readings)} readings", flush=True)
    return {name: pd.concat(parts) for name, parts in frames.items()}


def judge_singly(everything: Panel, readings: Readings, rule: Mapping[str, float]) -> pd.DataFrame:
    """Return the verdicts on the numbers that differ under the protocol, under each single
    departure and, by the same trials, under the protocol.
    """
    all_trials = everything.of_readings([readings.protocol])
    (usual,) = verdicts(all_trials, rule)
    differing = everything.of_cells(usual == DIFFERS)
    rows = []
    for reading in differing.readings:
        if len(readings.departures(reading)) != 1:
            continue
        both = differing.beside([readings.protocol, reading])
        judged = verdicts(both, rule)
        place = both.readings.index(reading)
        usual_place = both.readings.index(readings.protocol)
        keys = both.cells[list(CELL)].assign(
            reading=readings.name(reading),
            trials=both.counts[place],
            verdict=judged[place],
            protocol=judged[usual_place],
        )
        rows += keys.to_dict("records")
    return pd.DataFrame(rows)


def find_outside(everything: Panel, rule: Mapping[str, float]) -> pd.DataFrame:
    """Return the numbers that lie outside of the intervals of all readings, and how far the nearest
    is.
    """
    names = [*CELL, "published_mean"]
    outside = unexplained(everything, rule["level"])
    rows = []
    for place, tried, nearest in outside:
        cell = everything.cells.iloc[place]
        key = {name: cell[name] for name in names}
        rows.append({**key, "readings": tried, "nearest": nearest})
    return pd.DataFrame(rows, columns=[*names, "readings", "nearest"])


def compare(
    everything: Panel,
    readings: Readings,
    rule: Mapping[str, float],
    choices: Sequence[str],
    by: Sequence[str],
) -> pd.DataFrame:
    """Return how far each value of some choices is from the numbers for which other values were
    run.

    A row is a value of each choice, a value of ``epochs``, and a group of cells. Rows of a group
    have the same ``trials``; values that have more than others come once more, by more. ``rms`` is
    of ours minus the paper's, ``gap_ure`` its mean over a method's numbers, and ``ratio`` our
    deviation over the paper's.
    """
    departs = [{*readings.departures(reading)} == {*choices} for reading in everything.readings]
    was_run = np.isfinite(everything.trials[departs]).any(axis=(0, 2))
    free = [*choices, "epochs"]
    varied = everything.of_readings(
        reading for reading in everything.readings if {*readings.departures(reading)} <= {*free}
    )
    is_larger = everything.cells["table"] % 2 == 1
    sizes = np.where(is_larger, "larger", "smaller")
    cells = everything.cells.assign(n=sizes)[was_run]

    rows = []
    for key, group in cells.groupby(list(by), sort=False):
        is_of_group = everything.cells.index.isin(group.index)
        about = {"choices": " ".join(choices), **dict(zip(by, key, strict=True))}
        for panel in _by_trials(varied, is_of_group, choices):
            judged = verdicts(panel, rule)
            for place, reading in enumerate(panel.readings):
                values = {choice: reading[choice] for choice in free}
                distance = _distance(panel, place, judged[place])
                rows.append({**about, **values, **distance})
    return pd.DataFrame(rows)


def _by_trials(panel: Panel, cells: np.ndarray, choices: Sequence[str]) -> Iterator[Panel]:
    """Yield some cells of a panel with equal trials: with those of all readings, and, if several
    values of the choices have more, with theirs.
    """
    number = 0
    for fewest in (TRIALS, TRIALS + 2):
        on_cells = panel.on(cells, fewest)
        values = {tuple(reading[choice] for choice in choices) for reading in on_cells.readings}
        if len(values) > 1 and on_cells.trials.shape[2] > number:
            number = on_cells.trials.shape[2]
            yield on_cells


def _distance(panel: Panel, place: int, judged: np.ndarray) -> dict[str, Any]:
    """Return how far a reading of a panel is from the paper's numbers."""
    means, stds = panel.published
    trials = panel.trials[place]
    gap = trials.mean(axis=1) - means
    by_method = pd.Series(gap).groupby(panel.cells["method"]).mean()
    counts = {verdict: int((judged == verdict).sum()) for verdict in JUDGED}
    return {
        "numbers": len(gap),
        "trials": trials.shape[1],
        "accuracy": trials.mean(),
        "rms": np.sqrt((gap**2).mean()),
        **{f"gap_{method}": value for method, value in by_method.items()},
        "ratio": np.sqrt(trials.var(axis=1, ddof=1).mean() / (stds**2).mean()),
        **counts,
    }


def main() -> None:
    """Read the runs and write every file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, nargs="+", default=[Path("results/reference/runs")])
    parser.add_argument("--papers", type=int, default=200)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()

    config = load_config()
    rule = config["comparison"]
    readings = Readings(config)
    runs = []
    for folder in arguments.runs:
        for file in sorted(folder.glob("[!o]*.parquet")):  # no splits of one's own
            runs += read_runs(file).values()
    trials = readings.read_trials(runs)
    everything = Panel.of(readings, trials)

    frames = infer(everything, readings, arguments.papers)
    frames["single"] = judge_singly(everything, readings, rule)
    frames["outside"] = find_outside(everything, rule)
    frames["compared"] = pd.concat(
        compare(everything, readings, rule, choices, by) for choices, by in COMPARED
    )
    once = trials[trials["epochs"] == readings.protocol["epochs"]]
    rows = everything.cells[list(ROW)].drop_duplicates()
    once = once.replace({"dataset": Plan(config).published_names}).merge(rows)
    frames["runs"] = once["precision"].value_counts().rename("runs").reset_index()

    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        frame.round(DECIMALS).to_csv(arguments.out / f"{name}.csv", index=False)
    print(f"{len(once)} runs; {len(frames)} files in {arguments.out}")


if __name__ == "__main__":
    main()
