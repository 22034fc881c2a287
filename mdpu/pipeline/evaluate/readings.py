"""Readings of the paper: how probable each is, by the published means and deviations and by our own trials.

A reading is a value of each choice that the paper leaves open (``definitions.choices``, config/readings.yaml).
``docs/explanation/readings.md`` explains the model, and ``benchmarks/readings.py`` prints what comes out.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy  # which loads scipy.special when it is used
from numpy.typing import NDArray

from mdpu.pipeline.config import Config, merge
from mdpu.pipeline.evaluate.collect import join_histories, run_accuracies
from mdpu.pipeline.evaluate.comparison import NOT_RUN, Trials, judge_trials
from mdpu.pipeline.evaluate.published import PROPOSED, TRIALS, published_cells
from mdpu.pipeline.plan import AXES, DOMINANT, LOGISTIC, ROW, Protocol
from mdpu.pipeline.store import Stored

Array = NDArray[np.float64]
Reading = Mapping[str, str]  # the value of each choice, by name

PROTOCOL = "protocol"  # the reading, and the training, without departures
FACTOR = 0.2  # deviation of the logarithm of the factor of all published deviations
FACTORS = np.linspace(-2.5, 2.5, 11)  # values of that logarithm, in deviations
SCALE = 1.0  # of the half-normal priors of tau and kappa, in points
GRID = np.array([0.1, 0.3, 0.6, 1.0, 1.6, 2.6, 4.2, 6.8])  # of tau and kappa
FREEDOMS = np.array([3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0])  # degrees of freedom of the pooled variance in a cell's
POWERS = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0])  # of a likelihood
KEYS = ("dataset", "variant", "tuple_size", "n", "prior", "method", "epochs")  # of the trials of a cell

# -- readings of a configuration ------------------------------------------------------------------


class Readings:
    """The open choices of a checked configuration, and what a reading makes of the paper's cells."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.choices: Config = config["definitions"]["choices"]
        self.named = {name: self.reading(own) for name, own in config["definitions"]["readings"].items()}
        self.protocol = self.reading({})
        datasets, sides = config["definitions"]["datasets"].items(), ("positive", "negative")
        self._sides = {name: {side: sorted(map(str, own[side])) for side in sides} for name, own in datasets}
        changes = {choice: self.changes({choice: self.values(choice)[0]})["protocol"] for choice in self.choices}
        self._trained = [choice for choice, change in changes.items() if change.keys() & {"sampling", "training"}]
        self.free = [choice for choice in self.choices if choice not in self._trained]
        self._names = cache(self._find_names)

    def values(self, choice: str) -> list[str]:
        """Return the values of a choice, the protocol's first."""
        return list(self.choices[choice]["values"])

    def reading(self, departures: Reading) -> dict[str, str]:
        """Return the reading that departs from the protocol in some choices."""
        return {choice: departures.get(choice, self.values(choice)[0]) for choice in self.choices}

    def departures(self, reading: Reading) -> dict[str, str]:
        """Return the choices in which a reading, or a part of one, departs from the protocol."""
        return {choice: value for choice, value in reading.items() if value != self.values(choice)[0]}

    def name(self, reading: Reading) -> str:
        """Return where a reading departs from the protocol, as text."""
        return ", ".join(f"{choice} {value}" for choice, value in self.departures(reading).items()) or PROTOCOL

    def training(self, reading: Reading) -> str:
        """Return the name of the training that a reading needs."""
        return self.name({choice: reading[choice] for choice in self._trained})

    def changes(self, reading: Reading) -> Config:
        """Return the changes of all values of a reading, merged: ``protocol``, ``methods``, ``datasets``."""
        merged: Config = {"protocol": {}, "methods": {}, "datasets": {}}
        for choice, value in reading.items():
            merged = merge(merged, self.choices[choice]["values"][value])
        return merged

    @cached_property
    def trainings(self) -> dict[str, dict[str, str]]:
        """Readings of the protocol and of one or two departures that need a training of their own, by its name."""
        found = {}
        for number in range(3):
            for choices in itertools.combinations(self._trained, number):
                for values in itertools.product(*(self.values(choice)[1:] for choice in choices)):
                    reading = self.reading(dict(zip(choices, values, strict=True)))
                    found[self.name(reading)] = reading
        return found

    @cached_property
    def _variants(self) -> Protocol:
        """The protocol with a variant for each of `trainings`."""
        changes = {name: self.changes(reading)["protocol"] for name, reading in self.trainings.items()}
        plain = {name: {key: own[key] for key in own if key != "reporting"} for name, own in changes.items()}
        return Protocol({**self._config, "definitions": {**self._config["definitions"], "variants": plain}})

    def _find_names(self, tuple_size: int, n: int) -> dict[str, str]:
        """Return the name of a training by what is asked for it; among equal ones, that with the fewest departures."""
        variants = self._variants
        return {
            _asked(variants.sampling(name, tuple_size, n), variants.settings(name, network).flat()): name
            for network in self._config["protocol"]["training"]["networks"]
            for name in reversed(self.trainings)
        }

    def axes(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the axes of a run by what was asked for it, or None if no reading asks for it.

        They are in the order of `AXES`. ``variant`` is the name of its training, ``n`` the paper's.
        """
        sampling, (dataset, _, number, _, seed) = dict(asked["sampling"]), asked["trial"].split("/")
        if asked["prior_offset"] or "law" in sampling or asked["sides"] != self._sides.get(dataset):
            return None
        method = asked["method"] + (f".{asked['loss']}" if asked["loss"] != LOGISTIC else "")
        size, prior, n = sampling.pop("tuple_size"), sampling.pop("prior"), int(number.removeprefix("n"))
        name = self._names(size, n).get(_asked(sampling, asked["settings"]))
        values = (dataset, name, size, n, prior, method, LOGISTIC, int(seed.removeprefix("seed")), DOMINANT)
        return None if name is None else dict(zip(AXES, values, strict=True))

    def named_run(self, asked: Mapping[str, Any]) -> str:
        """Return the name of the reading that asks for a run by training and loss; nothing if none does."""
        axes = self.axes(asked)
        if axes is None or asked["loss"] not in {LOGISTIC, *self.values("loss")}:
            return ""
        reading = dict(self.trainings[axes["variant"]])
        if asked["loss"] != LOGISTIC:
            reading["loss"] = asked["loss"]
        return self.name(reading)

    def read_trials(self, runs: Iterable[Stored], methods: Collection[str] = PROPOSED) -> pd.DataFrame:
        """Return the accuracy of each run that a reading asks for, in percent, by value of the choice ``epochs``.

        `methods` are the paper's; what a scope or a loss puts in the place of one counts too. A row has the axes of its
        run, ``epochs``, ``accuracy``, missing if the run diverged, and ``precision``.
        """
        found, reported = self.find_runs(runs, methods), []
        if not found:
            return pd.DataFrame(columns=[*AXES, "epochs", "accuracy", "precision"])
        measures = ["epoch", "accuracy", "true_positive_rate", "true_negative_rate"]
        keys = pd.DataFrame(list(found), columns=list(AXES))
        metrics = join_histories(keys, [run.history[measures] for run in found.values()])
        for value in self.values("epochs"):
            reporting = merge(self._config["protocol"], self.changes({"epochs": value})["protocol"])["reporting"]
            reported.append(run_accuracies(metrics, reporting).assign(epochs=value))
        trials = pd.concat(reported, ignore_index=True)
        rows = trials[list(AXES)].itertuples(index=False, name=None)
        return trials.assign(precision=[found[row].about["precision"] for row in rows])

    def find_runs(self, runs: Iterable[Stored], methods: Collection[str] = PROPOSED) -> dict[tuple[Any, ...], Stored]:
        """Return the runs that a reading asks for by the values of `AXES`; if a trial has two, that in float32."""
        places = [self.changes({of: value})["methods"] for of in ("scope", "loss") for value in self.values(of)]
        methods = {*methods}.union(*(place.values() for place in places))
        found: dict[tuple[Any, ...], Stored] = {}
        for run in sorted(runs, key=lambda run: run.about["precision"] != "float32"):
            if (axes := self.axes(run.about["asked"])) and axes["method"] in methods:
                found.setdefault(tuple(axes.values()), run)
        return found

    def panel(self, trials: pd.DataFrame) -> Panel:
        """Return all readings that some trial is of, and all published cells of URE, ReLU and ABS."""
        cells = published_cells().query("method in @PROPOSED").reset_index(drop=True)
        table = trials.fillna({"accuracy": np.inf}).pivot_table(index=list(KEYS), columns="seed", values="accuracy")
        made, values = [], []
        for name in self.trainings.keys() & set(trials["variant"]):
            for combination in itertools.product(*map(self.values, self.free)):
                reading = {**self.trainings[name], **dict(zip(self.free, combination, strict=True))}
                change = self.changes(reading)
                own = cells.replace({"dataset": change["datasets"], "method": change["methods"]})
                keys = own.assign(variant=name, epochs=reading["epochs"])[list(KEYS)]
                made.append(reading)
                values.append(table.reindex(pd.MultiIndex.from_frame(keys)).to_numpy())
        order = sorted(range(len(made)), key=lambda place: (len(self.departures(made[place])), self.name(made[place])))
        return Panel([made[place] for place in order], cells, np.array(values)[order])


def _asked(sampling: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return the settings of a drawing and a training, as text; the precision is not a choice here."""
    return json.dumps([sampling, {**settings, "precision": None}], sort_keys=True)


# -- readings and the cells that all of them cover ------------------------------------------------


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

    @property
    def finished(self) -> Array:
        """The trials, without those that diverged."""
        return np.where(np.isfinite(self.trials), self.trials, np.nan)

    @property
    def published(self) -> tuple[Array, Array]:
        """The published means and deviations of the cells."""
        return self.cells["published_mean"].to_numpy(float), self.cells["published_std"].to_numpy(float)

    def beside(self, readings: Iterable[Reading]) -> Panel:
        """Return some readings with equal trials: of each cell those that all of them have, which have any of it."""
        asked = list(readings)
        places = [place for place, reading in enumerate(self.readings) if reading in asked]
        trials = self.trials[places]
        run = ~np.isnan(trials)
        lacks_cell = ~run.any(axis=2, keepdims=True)
        common = (run | lacks_cell).all(axis=0)
        return Panel([self.readings[place] for place in places], self.cells, np.where(common, trials, np.nan))

    @property
    def counts(self) -> NDArray[np.int_]:
        """How many trials of each cell were run under each reading, (readings, cells)."""
        return np.asarray((~np.isnan(self.trials)).sum(axis=2))

    def on(self, cells: Any, fewest: int = TRIALS) -> Panel:
        """Return some cells, the readings that have enough trials of them all, and the trials that all of these have.

        So no reading is better known than another. Of equal readings the first counts.
        """
        chosen = np.asarray(cells)
        trials = self.trials[:, chosen]
        first: dict[tuple[str, bytes], int] = {}
        for place in np.flatnonzero((np.isfinite(trials).sum(axis=2) >= fewest).all(axis=1)):
            first.setdefault((self.readings[place]["epochs"], trials[place].tobytes()), int(place))
        places = list(first.values())
        common = np.isfinite(trials[places]).all(axis=(0, 1))
        own = self.cells[chosen].reset_index(drop=True)
        return Panel([self.readings[place] for place in places], own, trials[places][:, :, common])

    @cached_property
    def prior(self) -> Array:
        """Prior of the readings, alike for each choice.

        If all values of a choice cover equally many readings, they weigh the same. Otherwise all departures together
        weigh as much as the protocol's value: a choice is not more probable because it has many values.
        """
        weights = np.ones(len(self.readings))
        for choice in self.readings[0]:
            values = [reading[choice] for reading in self.readings]
            counts = {value: values.count(value) for value in values}
            if len(set(counts.values())) > 1:
                most = max(counts, key=lambda value: counts[value])
                weights *= [1.0 if value == most else 1 / (len(counts) - 1) for value in values]
        return np.asarray(weights / weights.sum())

    def by_choice(self, weights: Array) -> dict[str, dict[str, float]]:
        """Return the sum of the readings' weights for each value of each choice that varies."""
        shares: dict[str, dict[str, float]] = {choice: {} for choice in self.readings[0]}
        for reading, weight in zip(self.readings, weights, strict=True):
            for choice, value in reading.items():
                shares[choice][value] = shares[choice].get(value, 0.0) + float(weight)
        return {choice: own for choice, own in shares.items() if len(own) > 1}

    def posterior(self, likelihood: Array, power: float = 1.0) -> Array:
        """Return the posterior of the readings by logarithms of likelihoods (..., readings), to a power."""
        return np.asarray(scipy.special.softmax(np.log(self.prior) + power * likelihood, axis=-1))


# -- the likelihood of published cells ------------------------------------------------------------


class Likelihood(NamedTuple):
    """Logarithms of the likelihoods of papers (papers, readings), and what goes with the means' part."""

    mean: Array
    std: Array  # zero where a paper has one trial
    unshifted: Array  # of the means, with the least kappa alone: methods have hardly any offsets
    tau: Array  # posterior means given the reading, in points
    kappa: Array

    @property
    def both(self) -> Array:
        """The likelihoods of means and deviations together."""
        return self.mean + self.std


class Model:
    """Predicts a published mean and deviation of `trials` trials from ours, for each reading and cell of a panel.

    A cell's variance is shrunk to that of its method in its reading. Its mean borrows from other ways to report the
    same runs: otherwise a reading whose trials scatter less would predict any paper best. Trials of one split correlate
    over the methods.
    """

    def __init__(self, panel: Panel, trials: int = TRIALS) -> None:
        self.panel, self.published = panel, trials
        values = panel.trials
        cells, own = values.shape[1], values.shape[2] - 1
        self.methods, self.method = np.unique(panel.cells["method"], return_inverse=True)
        self._same_method = (self.method[:, None] == self.method).astype(float)
        pool = self._same_method / self._same_method.sum(axis=0)
        squares = values.var(axis=2, ddof=1)
        self.freedom = _prior_freedom(squares, pool, own) + own
        self.variance = ((self.freedom - own) * (squares @ pool) + own * squares) / self.freedom
        self.mean, self.error = self._borrow(values)

        rows = panel.cells.groupby(list(ROW), sort=False).ngroup().to_numpy()
        same_row = (rows[:, None] == rows[None, :]) & ~np.eye(cells, dtype=bool)
        scaled = (values - values.mean(axis=2, keepdims=True)) / np.sqrt(self.variance)[:, :, None]
        products = np.einsum("rcs,rds->cd", scaled, scaled)
        both = np.sqrt(np.outer(np.diag(products), np.diag(products)))[same_row].sum()
        self.correlation = float(np.clip(products[same_row].sum() / both, 0, 0.9)) if both else 0.0
        self.alike = np.where(same_row, self.correlation, 0) + np.eye(cells)
        # Of a normal law in place of Student's.
        spread = self.variance * self.freedom / (self.freedom - 2) / trials + self.error
        self.covariance = np.sqrt(spread[:, :, None] * spread[:, None, :]) * self.alike  # of published minus our means

    def _borrow(self, values: Array) -> tuple[Array, Array]:
        """Return the means of the cells in each reading, each by all that its runs report, and their variances.

        The values of the choice ``epochs`` are of the same runs, so their means share noise: they are estimated
        together, as one normal vector of each cell whose covariances between cells and within one are those of its
        method over all trainings.
        """
        mean, error = values.mean(axis=2), np.empty(values.shape[:2])
        epochs = list(dict.fromkeys(reading["epochs"] for reading in self.panel.readings))
        runs: dict[str, dict[int, int]] = {}
        for place, reading in enumerate(self.panel.readings):
            others = str([value for choice, value in reading.items() if choice != "epochs"])
            runs.setdefault(others, {})[epochs.index(reading["epochs"])] = place
        order = np.array([[own[value] for value in range(len(epochs))] for own in runs.values()])  # (T, E)
        for method in range(len(self.methods)):
            cells = np.flatnonzero(self.method == method)
            own = values[order][:, :, cells].transpose(0, 2, 3, 1)  # (T, C, S, E)
            trials, count = own.shape[2], len(cells)
            centre = own.mean(axis=2)
            noise, spread = own - centre[:, :, None], centre - centre.mean(axis=1, keepdims=True)
            within = np.einsum("tcse,tcsf->ef", noise, noise) / (len(own) * count * (trials - 1))
            between = np.einsum("tce,tcf->ef", spread, spread) / (len(own) * (count - 1)) - within / trials
            sizes, axes = np.linalg.eigh(between)
            between = (axes * np.maximum(sizes, 0)) @ axes.T
            trust = between @ np.linalg.pinv(between + within / trials, hermitian=True)
            left = np.diag(between - trust @ between)
            for column, places in enumerate(order.T):
                mean[np.ix_(places, cells)] = (centre - spread + spread @ trust.T)[:, :, column]
                error[np.ix_(places, cells)] = left[column]
        return mean, error

    def likelihood(self, means: Array, stds: Array | None = None) -> Likelihood:
        """Return the likelihood of papers, each with published means and deviations of all cells, (papers, cells)."""
        means = np.atleast_2d(means)
        residual = np.swapaxes(means[:, None] - self.mean, 0, 1).swapaxes(1, 2)  # (R, C, P)
        cells = means.shape[1]
        prior = np.exp(-((GRID / SCALE) ** 2) / 2) * np.gradient(GRID)
        weight = np.log(prior / prior.sum())
        found = np.empty((len(GRID), len(GRID), *means.shape[:1], len(self.mean)))
        for (i, tau), (j, kappa) in itertools.product(enumerate(GRID), enumerate(GRID)):
            whole = self.covariance + tau**2 * np.eye(cells) + kappa**2 * self._same_method
            root = np.linalg.cholesky(whole)
            square = (np.linalg.solve(root, residual) ** 2).sum(axis=1)  # (R, P)
            volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
            density = -square / 2 - volume[:, None] - cells / 2 * np.log(2 * np.pi)
            found[i, j] = density.T + weight[i] + weight[j]
        mean = scipy.special.logsumexp(found, axis=(0, 1))
        shares = np.exp(found - mean)
        tau, kappa = (np.tensordot(GRID, shares.sum(axis=axis), 1) for axis in (1, 0))
        unshifted = scipy.special.logsumexp(found[:, 0], axis=0) - weight[0]
        return Likelihood(mean, np.zeros_like(mean) if stds is None else self._of_stds(stds), unshifted, tau, kappa)

    def _of_stds(self, stds: Array) -> Array:
        """Return the likelihood of the deviations' logarithms, with a factor that all cells share (papers, readings).

        With a prior of one half, the paper divides by the number of trials, not by one less.
        """
        squares = np.maximum(np.atleast_2d(stds), 0.005)[:, None] ** 2 / self.variance  # (P, R, C); rounded to 0.01
        one = self.published - 1
        shifts = [FACTOR * FACTORS, FACTOR * FACTORS + np.log(one / self.published) / 2]
        weights = -(FACTORS**2) / 2 - scipy.special.logsumexp(-(FACTORS**2) / 2) - np.log(2)
        half, other = one / 2, self.freedom / 2
        norm = half * np.log(one / self.freedom) - scipy.special.betaln(half, other)
        terms = []
        for shift, weight in zip(np.concatenate(shifts), np.tile(weights, 2), strict=True):
            x = squares / np.exp(2 * shift)
            log = norm + half * np.log(x) - (half + other) * np.log1p(one * x / self.freedom)
            terms.append((log + np.log(2)).sum(axis=2) + weight)
        return np.asarray(scipy.special.logsumexp(terms, axis=0))

    def scores(self, means: Array) -> Array:
        """Return published minus our means in standard errors, (readings, cells), without tau and kappa."""
        return np.asarray((means - self.mean) / np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2)))


def _prior_freedom(squares: Array, pool: Array, own: int) -> float:
    """Return how many degrees of freedom the pooled variance counts, by how much more cells differ than by chance.

    The moments of the logarithms of variances give it (Smyth, 2004).
    """
    logs = np.log(np.maximum(squares, 1e-6))
    differing = ((logs - logs @ pool) ** 2).sum(axis=1).mean() / (len(pool) - np.trace(pool))
    chance = scipy.special.polygamma(1, FREEDOMS / 2) + scipy.special.polygamma(1, own / 2)
    return float(FREEDOMS[np.abs(chance - differing).argmin()])


# -- papers whose reading is known ----------------------------------------------------------------


class Papers(NamedTuple):
    """Likelihoods of papers that were made from a known reading, (papers, readings), and its place."""

    likelihood: Array
    truth: NDArray[np.int_]


def held_out(panel: Panel, trials: int) -> Papers:
    """Treat each choice of so many real trials of each reading as published, and predict from the others.

    Trials of one seed have the same tuples in every reading, so what is published is left out of all of them.
    """
    found, truth, seeds = [], [], range(panel.trials.shape[2])
    for chosen in itertools.combinations(seeds, trials):
        own = panel.trials[:, :, list(chosen)]
        rest = Panel(panel.readings, panel.cells, np.delete(panel.trials, list(chosen), axis=2))
        stds = own.std(axis=2, ddof=1) if trials > 1 else None
        found.append(Model(rest, trials).likelihood(own.mean(axis=2), stds).both)
        truth.append(np.arange(len(panel.readings)))
    return Papers(np.concatenate(found), np.concatenate(truth))


def best_power(panel: Panel, papers: Papers) -> float:
    """Return the power of the likelihood that gives the true readings the highest mean logarithm of the posterior."""
    rows = np.arange(len(papers.truth))
    shares = [panel.posterior(papers.likelihood, power)[rows, papers.truth] for power in POWERS]
    return float(POWERS[int(np.argmax([np.log(np.maximum(own, 1e-300)).mean() for own in shares]))])


# -- results --------------------------------------------------------------------------------------


def verdicts(panel: Panel, rule: Mapping[str, float]) -> NDArray[np.object_]:
    """Return the verdict on each cell under each reading, by the rule of `mdpu.pipeline.evaluate.comparison`."""
    finished, number = panel.finished, np.isfinite(panel.trials).sum(axis=2)
    mean = np.nansum(finished, axis=2) / np.where(number > 0, number, np.nan)
    squares = np.nansum((finished - mean[:, :, None]) ** 2, axis=2)
    ours = Trials(mean, np.sqrt(squares / np.where(number > 1, number - 1, np.nan)), number)
    verdict = judge_trials(ours, np.isinf(panel.trials).sum(axis=2), Trials(*panel.published, TRIALS), rule)[3]
    return np.where(np.isnan(panel.trials).all(axis=2), NOT_RUN, verdict)


def unexplained(panel: Panel, level: float) -> Iterator[tuple[int, int, float]]:
    """Yield cells whose published mean no reading predicts: place, readings tried, smallest difference in points.

    The interval of a prediction is Student's at `level`, by the trials of the cell in the reading alone.
    """
    means, _ = panel.published
    for place, trials in enumerate(panel.finished.swapaxes(0, 1)):
        number = np.isfinite(trials).sum(axis=1)
        own, number = trials[number >= TRIALS], number[number >= TRIALS]
        if len(own):
            difference = np.abs(means[place] - np.nanmean(own, axis=1))
            error = np.nanstd(own, axis=1, ddof=1) * np.sqrt(1 / TRIALS + 1 / number)
            if (difference > scipy.special.stdtrit(number - 1, (1 + level) / 2) * error).all():
                yield place, len(np.unique(own, axis=0)), float(difference.min())
