"""Readings of the paper: a value of each choice that it leaves open, and the runs that each reading
asks for.

The choices are those of ``definitions.choices`` (config/readings.yaml).
``docs/explanation/readings.md`` explains them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any

import pandas as pd

from mdpu.pipeline.config import Config, merge
from mdpu.pipeline.evaluate.collect import join_histories, run_accuracies
from mdpu.pipeline.evaluate.published import PROPOSED
from mdpu.pipeline.plan import AXES, DOMINANT, LOGISTIC, Protocol
from mdpu.pipeline.store import Stored

Reading = Mapping[str, str]  # the value of each choice, by name

PROTOCOL = "protocol"  # the reading, and the training, without departures
# of a trial, beside the axes of its run
TRIAL_COLUMNS = ("accuracy", "first_epoch", "last_epoch", "epochs", "precision")
MOST_DEPARTURES = 2  # of a reading whose training is looked for among the runs


class Readings:
    """The open choices of a checked configuration, and what a reading makes of the paper's
    cells.
    """

    def __init__(self, config: Config) -> None:
        definitions = config["definitions"]
        self._config = config
        self.choices: Config = definitions["choices"]
        self.protocol = self.reading({})
        named = definitions["readings"].items()
        self.named = {name: self.reading(departures) for name, departures in named}
        datasets = definitions["datasets"].items()
        self._sides = {name: _sides_of(dataset) for name, dataset in datasets}
        self._trained = [choice for choice in self.choices if self._needs_training(choice)]
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
        usual = {choice: self.values(choice)[0] for choice in reading}
        return {choice: value for choice, value in reading.items() if value != usual[choice]}

    def name(self, reading: Reading) -> str:
        """Return where a reading departs from the protocol, as text."""
        departures = self.departures(reading)
        return ", ".join(f"{choice} {value}" for choice, value in departures.items()) or PROTOCOL

    def training(self, reading: Reading) -> str:
        """Return the name of the training that a reading needs."""
        return self.name({choice: reading[choice] for choice in self._trained})

    def changes(self, reading: Reading) -> Config:
        """Return the changes of all values of a reading, merged: ``protocol``, ``methods``,
        ``datasets``.
        """
        merged: Config = {"protocol": {}, "methods": {}, "datasets": {}}
        for choice, value in reading.items():
            merged = merge(merged, self.choices[choice]["values"][value])
        return merged

    def changed_protocol(self, reading: Reading) -> Config:
        """Return the protocol as a reading, or a part of one, has it."""
        return merge(self._config["protocol"], self.changes(reading)["protocol"])

    def reporting(self, reading: Reading) -> Config:
        """Return how a reading, or a part of one, reports accuracies."""
        return self.changed_protocol(reading)["reporting"]

    def _needs_training(self, choice: str) -> bool:
        """Return whether the values of a choice need runs of their own."""
        changes = self.changes({choice: self.values(choice)[0]})["protocol"]
        return "sampling" in changes or "training" in changes

    @cached_property
    def trainings(self) -> dict[str, dict[str, str]]:
        """Readings that need a training of their own, by its name.

        They are the protocol, and those with up to `MOST_DEPARTURES`.
        """
        trainings = {}
        for departures in self._few_departures():
            reading = self.reading(departures)
            trainings[self.name(reading)] = reading
        return trainings

    def _few_departures(self) -> Iterator[dict[str, str]]:
        """Yield the values of up to `MOST_DEPARTURES` choices in which a training departs from the
        protocol.
        """
        for number in range(MOST_DEPARTURES + 1):
            for choices in itertools.combinations(self._trained, number):
                departing = [self.values(choice)[1:] for choice in choices]
                for values in itertools.product(*departing):
                    yield dict(zip(choices, values, strict=True))

    @cached_property
    def variants(self) -> dict[str, Config]:
        """What each of `trainings` changes in sampling and training, by its name."""
        variants = {}
        for name, reading in self.trainings.items():
            changes = self.changes(reading)["protocol"]
            trained = ("sampling", "training")
            variants[name] = {key: changes[key] for key in trained if key in changes}
        return variants

    def _find_names(self, tuple_size: int, n: int) -> dict[str, str]:
        """Return the name of a training by what is asked for it.

        Among equal ones it is that with the fewest departures.
        """
        definitions = {**self._config["definitions"], "variants": self.variants}
        protocol = Protocol({**self._config, "definitions": definitions})
        names = {}
        for network in self._config["protocol"]["training"]["networks"]:
            for name in reversed(self.trainings):
                settings = protocol.settings(name, network).flat()
                names[_as_text(protocol.sampling(name, tuple_size, n), settings)] = name
        return names

    def axes(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the axes of a run by what was asked for it, or None if no reading asks for it.

        They are in the order of `AXES`. ``variant`` is the name of its training, ``n`` the paper's.
        """
        sampling = dict(asked["sampling"])
        dataset, _, n, _, seed = asked["trial"].split("/")
        if asked["prior_offset"] or "law" in sampling or asked["sides"] != self._sides.get(dataset):
            return None

        tuple_size = sampling.pop("tuple_size")
        prior = sampling.pop("prior")
        number = int(n.removeprefix("n"))
        training = self._names(tuple_size, number).get(_as_text(sampling, asked["settings"]))
        if training is None:
            return None

        method = asked["method"]
        if asked["loss"] != LOGISTIC:
            method += f".{asked['loss']}"
        trial = int(seed.removeprefix("seed"))
        values = (dataset, training, tuple_size, number, prior, method, LOGISTIC, trial, DOMINANT)
        return dict(zip(AXES, values, strict=True))

    def named_run(self, asked: Mapping[str, Any]) -> str:
        """Return the name of the reading that asks for a run by training and loss; nothing if none
        does.
        """
        axes = self.axes(asked)
        if axes is None or asked["loss"] not in {LOGISTIC, *self.values("loss")}:
            return ""
        reading = dict(self.trainings[axes["variant"]])
        if asked["loss"] != LOGISTIC:
            reading["loss"] = asked["loss"]
        return self.name(reading)

    def read_trials(
        self, runs: Iterable[Stored], methods: Collection[str] = PROPOSED
    ) -> pd.DataFrame:
        """Return the accuracy of each run that a reading asks for, in percent, by value of the
        choice ``epochs``.

        `methods` are the paper's; what a scope or a loss puts in the place of one counts too. A row
        has the axes of its run and `TRIAL_COLUMNS`; ``accuracy`` is missing if the run diverged.
        """
        by_axes = self.find_runs(runs, methods)
        if not by_axes:
            return pd.DataFrame(columns=[*AXES, *TRIAL_COLUMNS])

        measures = ["epoch", "accuracy", "true_positive_rate", "true_negative_rate"]
        keys = pd.DataFrame(list(by_axes), columns=list(AXES))
        histories = [run.history.reindex(columns=measures) for run in by_axes.values()]
        metrics = join_histories(keys, histories)
        reported = [
            run_accuracies(metrics, self.reporting({"epochs": value})).assign(epochs=value)
            for value in self.values("epochs")
        ]
        trials = pd.concat(reported, ignore_index=True)

        rows = trials[list(AXES)].itertuples(index=False, name=None)
        precisions = [by_axes[row].precision for row in rows]
        return trials.assign(precision=precisions)[[*AXES, *TRIAL_COLUMNS]]

    def find_runs(
        self,
        runs: Iterable[Stored],
        methods: Collection[str] = PROPOSED,
        own: Collection[str] = (),
    ) -> dict[tuple[Any, ...], Stored]:
        """Return the runs that a reading asks for by the values of `AXES`.

        If a trial has two, that whose key is among `own` counts, otherwise that in float32.
        """

        def precedence(run: Stored) -> tuple[bool, bool]:
            return run.key not in own, run.precision != "float32"

        counted = {*methods, *self._replacing_methods()}
        by_axes: dict[tuple[Any, ...], Stored] = {}
        for run in sorted(runs, key=precedence):
            axes = self.axes(run.about["asked"])
            if axes and axes["method"] in counted:
                by_axes.setdefault(tuple(axes.values()), run)
        return by_axes

    def _replacing_methods(self) -> set[str]:
        """Return the methods that a scope or a loss puts in the place of the paper's."""
        methods: set[str] = set()
        for choice in ("scope", "loss"):
            for value in self.values(choice):
                methods.update(self.changes({choice: value})["methods"].values())
        return methods


def _sides_of(dataset: Config) -> dict[str, list[str]]:
    """Return the labels on each side of a defined dataset, as a run says what was asked for it."""
    return {side: sorted(map(str, dataset[side])) for side in ("positive", "negative")}


def _as_text(sampling: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return how a run draws and trains, as text; the precision is not a choice here."""
    return json.dumps([sampling, {**settings, "precision": None}], sort_keys=True)
