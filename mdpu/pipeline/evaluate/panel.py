"""Our trials of the published cells under each reading side by side, and the verdicts on them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy  # which loads scipy.special when it is used
from numpy.typing import NDArray

from mdpu.pipeline.evaluate.choices import Reading, Readings
from mdpu.pipeline.evaluate.comparison import NOT_RUN, Array, Trials, judge_trials
from mdpu.pipeline.evaluate.published import PROPOSED, TRIALS, published_cells
from mdpu.pipeline.plan import ROW

CELL_KEYS = (*ROW, "method")  # columns that name a published cell
# Columns of `Readings.read_trials` that the trials of a cell share.
TRIAL_KEYS = ("dataset", "variant", "tuple_size", "n", "prior", "method", "epochs")


@dataclass(frozen=True)
class Panel:
    """Readings, published cells of URE, ReLU and ABS, and our trials of each in each.

    Attributes
    ----------
    readings : list of mapping
        Those with few departures first.
    cells : DataFrame
        As `mdpu.pipeline.evaluate.published.published_cells` returns them.
    trials : array of shape (readings, cells, seeds)
        Accuracies in percent; infinite where a trial diverged, and missing where it was not run.
    """

    readings: list[dict[str, str]]
    cells: pd.DataFrame
    trials: Array

    @classmethod
    def of(cls, readings: Readings, trials: pd.DataFrame) -> Panel:
        """Return all readings that some trial is of, and all published cells of URE, ReLU and ABS.

        `trials` are as `Readings.read_trials` returns them.
        """
        cells = published_cells()
        cells = cells[cells["method"].isin(PROPOSED)].reset_index(drop=True)
        accuracies = trials.fillna({"accuracy": np.inf}).pivot_table(
            index=list(TRIAL_KEYS), columns="seed", values="accuracy"
        )
        place_of = {key: place for place, key in enumerate(accuracies.index)}
        not_run = np.full((1, accuracies.shape[1]), np.nan)
        by_place = np.concatenate([accuracies.to_numpy(), not_run])  # at -1: not run

        published = list(cells[list(CELL_KEYS)].itertuples(index=False, name=None))
        tried = _readings_of(set(trials["variant"]), readings)
        places = []
        for reading in tried:
            keys = _trial_keys(published, reading, readings)
            places.append([place_of.get(key, -1) for key in keys])
        by_reading = np.array(places, dtype=int).reshape(len(tried), len(cells))
        return cls(tried, cells, by_place[by_reading])

    @property
    def finished(self) -> Array:
        """The trials, without those that diverged."""
        return np.where(np.isfinite(self.trials), self.trials, np.nan)

    @property
    def published(self) -> tuple[Array, Array]:
        """The published means and deviations of the cells."""
        means = self.cells["published_mean"].to_numpy(float)
        return means, self.cells["published_std"].to_numpy(float)

    @property
    def counts(self) -> NDArray[np.int_]:
        """How many trials of each cell were run under each reading, (readings, cells)."""
        return np.asarray((~np.isnan(self.trials)).sum(axis=2))

    def of_readings(self, readings: Iterable[Reading]) -> Panel:
        """Return some readings with all cells and trials."""
        asked = list(readings)
        places = [place for place, reading in enumerate(self.readings) if reading in asked]
        return self._at(places, self.trials[places])

    def beside(self, readings: Iterable[Reading]) -> Panel:
        """Return some readings with equal trials: of each cell those that all of them have, which
        have any of it.
        """
        panel = self.of_readings(readings)
        run = ~np.isnan(panel.trials)
        lacks_cell = ~run.any(axis=2, keepdims=True)
        common = (run | lacks_cell).all(axis=0)
        return replace(panel, trials=np.where(common, panel.trials, np.nan))

    def of_cells(self, cells: Any) -> Panel:
        """Return some cells with all readings and trials."""
        chosen = np.asarray(cells)
        selected = self.cells[chosen].reset_index(drop=True)
        return Panel(self.readings, selected, self.trials[:, chosen])

    def on(self, cells: Any, fewest: int = TRIALS) -> Panel:
        """Return some cells, the readings that have enough trials of them all, and the trials that
        all of these have.

        So no reading is better known than another. Of equal readings the first counts. If too few
        trials are those of all, there is no reading.
        """
        panel = self.of_cells(cells)
        number = np.isfinite(panel.trials).sum(axis=2)
        enough = (number >= fewest).all(axis=1)
        first: dict[tuple[str, bytes], int] = {}
        for place in np.flatnonzero(enough):
            epochs = panel.readings[place]["epochs"]
            trials = panel.trials[place].tobytes()
            first.setdefault((epochs, trials), int(place))

        places = list(first.values())
        finished = np.isfinite(panel.trials[places])
        common = finished.all(axis=(0, 1))
        if common.sum() < fewest:
            places = []
        return panel._at(places, panel.trials[places][:, :, common])

    def _at(self, places: Sequence[int], trials: Array) -> Panel:
        """Return the readings at some places, with other trials."""
        return Panel([self.readings[place] for place in places], self.cells, trials)

    @cached_property
    def prior(self) -> Array:
        """Prior of the readings, alike for each choice.

        If all values of a choice cover equally many readings, they weigh the same. Otherwise all
        departures together weigh as much as the protocol's value: a choice is not more probable
        because it has many values.
        """
        weights = np.ones(len(self.readings))
        for choice in self.readings[0]:
            values = [reading[choice] for reading in self.readings]
            counts = Counter(values)
            if len(set(counts.values())) > 1:
                most = max(counts, key=lambda value: counts[value])
                departing = 1 / (len(counts) - 1)
                weights *= [1.0 if value == most else departing for value in values]
        return np.asarray(weights / weights.sum())

    def by_choice(self, weights: Array) -> dict[str, dict[str, float]]:
        """Return the sum of the readings' weights for each value of each choice that varies."""
        shares: dict[str, dict[str, float]] = {}
        for choice in self.readings[0]:
            by_value: dict[str, float] = {}
            for reading, weight in zip(self.readings, weights, strict=True):
                value = reading[choice]
                by_value.setdefault(value, 0.0)
                by_value[value] += float(weight)
            if len(by_value) > 1:
                shares[choice] = by_value
        return shares

    def posterior(self, likelihood: Array, power: float = 1.0) -> Array:
        """Return the posterior of the readings by logarithms of likelihoods (..., readings), to a
        power.
        """
        logs = np.log(self.prior) + power * likelihood
        return np.asarray(scipy.special.softmax(logs, axis=-1))


def _readings_of(trainings: Collection[str], readings: Readings) -> list[dict[str, str]]:
    """Return the readings that need one of some trainings, those with few departures first."""
    tried = []
    for training in readings.trainings.keys() & trainings:
        for values in itertools.product(*map(readings.values, readings.free)):
            free = dict(zip(readings.free, values, strict=True))
            tried.append({**readings.trainings[training], **free})

    def order(reading: Reading) -> tuple[int, str]:
        return len(readings.departures(reading)), readings.name(reading)

    return sorted(tried, key=order)


def _trial_keys(
    cells: Iterable[tuple[Any, ...]], reading: Reading, readings: Readings
) -> Iterator[tuple[Any, ...]]:
    """Yield the `TRIAL_KEYS` of the trials that stand for published cells, each given by its
    `CELL_KEYS`, in a reading.
    """
    changes = readings.changes(reading)
    training = readings.training(reading)
    for dataset, tuple_size, n, prior, method in cells:
        our_dataset = changes["datasets"].get(dataset, dataset)
        our_method = changes["methods"].get(method, method)
        yield (our_dataset, training, tuple_size, n, prior, our_method, reading["epochs"])


def verdicts(panel: Panel, rule: Mapping[str, float]) -> NDArray[np.object_]:
    """Return the verdict on each cell under each reading, by the rule of
    `mdpu.pipeline.evaluate.comparison`.
    """
    ours = _finished_trials(panel)
    paper = Trials(*panel.published, TRIALS)
    diverged = np.isinf(panel.trials).sum(axis=2)
    judged = judge_trials(ours, diverged, paper, rule)
    not_run = np.isnan(panel.trials).all(axis=2)
    return np.where(not_run, NOT_RUN, judged.verdict)


def _finished_trials(panel: Panel) -> Trials:
    """Return mean, deviation and number of the trials that did not diverge, (readings, cells)."""
    finished = panel.finished
    number = np.isfinite(finished).sum(axis=2)
    divisor = np.where(number > 0, number, np.nan)
    mean = np.nansum(finished, axis=2) / divisor
    squared = (finished - mean[:, :, None]) ** 2
    freedom = np.where(number > 1, number - 1, np.nan)
    variance = np.nansum(squared, axis=2) / freedom
    return Trials(mean, np.sqrt(variance), number)


def unexplained(panel: Panel, level: float) -> Iterator[tuple[int, int, float]]:
    """Yield cells whose published mean no reading predicts: place, readings tried, smallest
    difference in points.

    The interval of a prediction is Student's at `level`, by the trials of the cell in the reading
    alone.
    """
    means, _ = panel.published
    for place, of_cell in enumerate(panel.finished.swapaxes(0, 1)):
        counts = np.isfinite(of_cell).sum(axis=1)
        enough = counts >= TRIALS
        if not enough.any():
            continue
        trials = of_cell[enough]
        number = counts[enough]

        difference = np.abs(means[place] - np.nanmean(trials, axis=1))
        error = np.nanstd(trials, axis=1, ddof=1) * np.sqrt(1 / TRIALS + 1 / number)
        reach = scipy.special.stdtrit(number - 1, (1 + level) / 2) * error
        if (difference > reach).all():
            yield place, len(np.unique(trials, axis=0)), float(difference.min())
