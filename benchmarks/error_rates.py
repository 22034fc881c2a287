"""How often does each rule of docs/explanation/comparison.md err, when the truth is known?

    python benchmarks/error_rates.py

Simulates normal trials of ours against three of the paper's and prints one table, in percent. A
column is a pair of deviations and a number of trials of ours: both sides with a deviation drawn
from the 504 published ones, or each side with its own, drawn together from a cell of URE, ReLU or
ABS in results/reference. Rules on single cells are tried on 60,000 of them (standard error of a
share at most 0.2 points), rules on many cells on 2,000 tables of 36 cells of three datasets (at
most 1.1), with cells that are independent or whose trials of one seed correlate, within a dataset
or over all. Margins and level are those of config.yaml. Fifteen seconds of one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy import stats

from mdpu.pipeline.evaluate.comparison import (
    FEWEST_TRIALS,
    NOT_RUN,
    VERDICTS,
    Trials,
    equivalence_p,
    judge,
    prediction_interval,
    share_interval,
    welch_interval,
)
from mdpu.pipeline.evaluate.published import PROPOSED, TRIALS, in_one_reading, published_cells
from mdpu.pipeline.files import REPOSITORY, read_csv

CELLS = 60_000
TABLES = 2_000
ROWS = 36  # cells of a table
DATASETS = 3
OURS = (3, 5, 10)  # trials
# Of the trials of a seed between cells: URE's where one seed drew the trials of all cells.
CORRELATION = 0.9
LEAD = 1.0  # points by which a claim's method is better

Array = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """How the trials of one seed correlate between cells, within a dataset or over all."""

    title: str
    correlation: float
    by_dataset: bool = True

    @property
    def clusters(self) -> int:
        """How many clusters of cells there are for each seed."""
        return DATASETS if self.by_dataset else 1

    def luck(self, random: np.random.Generator, trials: int) -> Array:
        """Return standard normal numbers (tables, trials, cells)."""
        of_clusters = random.normal(size=(TABLES, trials, self.clusters))
        of_cells = random.normal(size=(TABLES, trials, ROWS))
        common = np.repeat(of_clusters, ROWS // self.clusters, axis=2)
        part = np.sqrt(self.correlation)
        rest = np.sqrt(1 - self.correlation)
        return part * common + rest * of_cells


WORLDS = (
    World("cells independent", 0.0),
    World(f"cells of a dataset and seed correlate by {CORRELATION}", CORRELATION),
    World(f"cells of a seed correlate by {CORRELATION}", CORRELATION, by_dataset=False),
)


@dataclass(frozen=True)
class Column:
    """One setting: deviations (2, any number), ours before the paper's; our trials; the rule."""

    deviations: Array
    trials: int
    rule: dict[str, float]

    def cells(self, random: np.random.Generator, difference: float) -> tuple[Trials, Trials]:
        """Return the trials of `CELLS` cells, ours and the paper's."""
        ours, paper = random.choice(self.deviations, CELLS, axis=1)
        our_trials = difference + ours * random.normal(size=(self.trials, CELLS))
        paper_trials = paper * random.normal(size=(TRIALS, CELLS))
        return sample(our_trials), sample(paper_trials)

    def tables(self, random: np.random.Generator, world: World) -> tuple[Array, Array]:
        """Return our trials (tables, trials, cells) about 0 and deviations (tables, 1, cells)."""
        deviations = random.choice(self.deviations[0], (TABLES, 1, ROWS))
        return deviations * world.luck(random, self.trials), deviations


def sample(values: Array) -> Trials:
    """Return trials, which lie along the first axis."""
    return Trials(values.mean(0), values.std(0, ddof=1), len(values))


def percent(share: Any) -> str:
    """Return a share, or the share of what is true, in percent."""
    return f"{100 * np.mean(share):.1f}"


# -- rules on single cells ------------------------------------------------------------------------


def verdicts(column: Column, random: np.random.Generator, difference: float) -> str:
    """Return the shares of the verdicts."""
    rule = column.rule
    ours, paper = column.cells(random, difference)
    low, high = welch_interval(ours, paper, rule["level"])
    apart = ours.mean - paper.mean
    verdict, _ = judge(apart, low, high, rule["margin"], rule["wider_margin"])
    return " / ".join(percent(verdict == name) for name in VERDICTS[:4])


def interval(column: Column, random: np.random.Generator, difference: float) -> str:
    """Return how often Welch's interval holds the true difference."""
    ours, paper = column.cells(random, difference)
    low, high = welch_interval(ours, paper, column.rule["level"])
    return percent((low <= difference) & (difference <= high))


def predicted(column: Column, random: np.random.Generator, difference: float) -> str:
    """Return how often the paper's mean lies in the prediction interval of ours."""
    if column.trials < FEWEST_TRIALS:
        return "–"
    ours, paper = column.cells(random, difference)
    low, high = prediction_interval(ours, TRIALS, column.rule["level"])
    return percent((low <= paper.mean) & (paper.mean <= high))


def equivalent(column: Column, random: np.random.Generator, difference: float) -> str:
    """Return how often two one-sided tests call the means equivalent."""
    if column.trials < FEWEST_TRIALS:
        return "–"
    ours, paper = column.cells(random, difference)
    return percent(equivalence_p(ours, paper, column.rule["margin"]) < 1 - column.rule["level"])


def significant(column: Column, random: np.random.Generator, difference: float) -> str:
    """Return how often Welch's interval of one of our methods minus another lies above zero."""
    deviations = column.deviations[0]
    pairs = np.stack([deviations, random.permutation(deviations)])
    alike = replace(column, deviations=pairs)

    better, _ = alike.cells(random, difference)
    base, _ = alike.cells(random, 0.0)
    low, _ = welch_interval(better, base, column.rule["level"])
    return percent(low > 0)


# -- rules on many cells --------------------------------------------------------------------------


def share(column: Column, random: np.random.Generator, world: World) -> str:
    """Return how often the interval of a share holds the true one.

    The share is that of single trials in which a method that is better by `LEAD` is better.
    """
    better, better_deviations = column.tables(random, world)
    base, base_deviations = column.tables(random, world)
    better = better + LEAD
    distance = np.hypot(better_deviations, base_deviations)
    truth = stats.norm.cdf(LEAD / distance).mean(axis=(1, 2))

    clusters = column.trials * world.clusters
    cases = column.trials * ROWS // clusters
    holding = (better > base).reshape(TABLES, clusters, cases).sum(axis=2)
    cases_of_each = np.full(clusters, cases)
    level = column.rule["level"]
    ends = np.array([share_interval(counts, cases_of_each, level) for counts in holding])
    return percent((ends[:, 0] <= truth) & (truth <= ends[:, 1]))


# -- the table ------------------------------------------------------------------------------------

Rule = Callable[[Column, np.random.Generator], str]


def rules() -> Iterator[tuple[str, str, str, Rule]]:
    """Yield name, truth, what it should be, and how it is tried."""
    name = "verdict: " + " / ".join(VERDICTS[:4])
    for d in (0.0, 0.5, 1.0, 2.0, 3.0, 5.0):
        yield name, f"difference {d:g}", "", partial(verdicts, difference=d)

    name = "Welch's interval holds the difference"
    yield name, "difference 2", "95", partial(interval, difference=2.0)

    name = "the paper's mean lies in our prediction interval"
    for d, should in ((0.0, "95"), (1.0, "less"), (2.0, "less"), (5.0, "0")):
        yield name, f"difference {d:g}", should, partial(predicted, difference=d)

    name = "equivalent within 1 point"
    for d, should in ((0.0, "100"), (1.0, "at most 5"), (2.0, "0")):
        yield name, f"difference {d:g}", should, partial(equivalent, difference=d)

    name = "claim: significantly better"
    yield name, "alike", "2.5", partial(significant, difference=0.0)

    name = "claim: the interval holds the share in single trials"
    for world in WORLDS:
        yield name, world.title, "95", partial(share, world=world)


def columns() -> dict[str, Column]:
    """Return the settings by their titles."""
    config = yaml.safe_load((REPOSITORY / "config.yaml").read_text(encoding="utf-8"))
    published = published_cells()["published_std"].to_numpy()
    comparison = read_csv(REPOSITORY / "results" / "reference" / "comparison.csv")
    cells = in_one_reading(comparison[comparison["verdict"] != NOT_RUN])
    measured = cells.loc[cells["method"].isin(PROPOSED), ["std", "published_std"]]
    deviations = {
        "published": np.stack([published, published]),
        "ours, the paper's": measured.to_numpy().T,
    }

    settings = {}
    for trials in OURS:
        for title, pairs in deviations.items():
            settings[f"{title}, {trials} trials"] = Column(pairs, trials, config["comparison"])
    return settings


def main() -> None:
    """Print the table as Markdown."""
    settings = columns()
    print("| rule | truth | should be | " + " | ".join(settings) + " |")
    print("| --- | --- | ---: |" + " ---: |" * len(settings))
    for row, (name, truth, should, rule) in enumerate(rules()):
        cells = [name, truth, should]
        for place, column in enumerate(settings.values()):
            cells.append(rule(column, np.random.default_rng([row, place])))
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
