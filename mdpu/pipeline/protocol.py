"""The protocol: the choices that the paper leaves open, and how each variant departs from them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mdpu.learn.networks import load_network
from mdpu.learn.task import Settings
from mdpu.pipeline.config import BASE, OPTIMIZATION, Config, known, merge


@dataclass(frozen=True)
class Departure:
    """A key of the protocol whose value differs from that of ``base``; both values as the configuration writes them."""

    key: str
    base: str
    value: str


def resolve_n_unlabeled(value: int | str, n: int) -> int:
    """Return the number of unlabeled images; ``"n"`` and ``"3n"`` are multiples of the tuples' n."""
    if isinstance(value, int):
        return value
    return int(value.removesuffix("n") or 1) * n


class Protocol:
    """How images are drawn, networks trained and runs reported, under each variant.

    Parameters
    ----------
    config : dict
        A checked configuration.
    """

    def __init__(self, config: Config) -> None:
        self.variants: dict[str, Config | None] = config["definitions"]["variants"]
        self.reportings: dict[str, Config] = config["definitions"].get("reportings", {})
        self._base: Config = config["protocol"]

    def variant(self, name: str) -> Config:
        """Return the protocol with the overrides of a variant applied."""
        known(name, self.variants, "variant")
        return merge(self._base, self.variants[name] or {})

    def sampling(self, variant: str, n: int) -> dict[str, Any]:
        """Return how the images of a split at `n` are drawn, with n_unlabeled as a number."""
        sampling = dict(self.variant(variant)["sampling"])
        del sampling["n_counts"]  # it concerns the tuples alone: see `number_of_tuples`
        sampling["n_unlabeled"] = resolve_n_unlabeled(sampling["n_unlabeled"], n)
        return sampling

    def number_of_tuples(self, variant: str, tuple_size: int, n: int) -> int:
        """Return the number of tuples in a split at `n`: n, or as many as have n members."""
        counted = self.variant(variant)["sampling"]["n_counts"]
        return max(1, n // tuple_size) if counted == "images" else n

    def training(self, variant: str, network: str) -> dict[str, Any]:
        """Return the training settings of one network, flattened: the network's own keys join the rest.

        What the configuration leaves out of a network's settings has its default.

        Raises
        ------
        UserError
            If there is no such variant or network.
        """
        training = dict(self.variant(variant)["training"])
        configured = training.pop("networks").get(network, {})
        defaults = {key: value for key, value in _network_defaults(network).items() if key not in configured}
        return {**training, "network": network, **configured, **defaults}

    def is_tuned(self, variant: str) -> bool:
        """Return whether learning rate and weight decay are chosen from the grid."""
        return bool(self.variant(variant)["training"]["hyperparameters"] == "tuned")

    def departures(self, variant: str, networks: Iterable[str]) -> list[Departure]:
        """Return the keys of sampling, and of the training of some networks, in which a variant departs from base."""
        departures: dict[str, Departure] = {}
        for network in networks:
            settings, base = (
                {**self.variant(name)["sampling"], **self.training(name, network)} for name in (variant, BASE)
            )
            departures |= {
                key: Departure(key, _written(base[key]), _written(value))
                for key, value in settings.items()
                if value != base[key]
            }
        return list(departures.values())

    def reporting(self, name: str = BASE) -> dict[str, Any]:
        """Return the settings of a reporting; ``base`` is ``protocol.reporting`` itself."""
        reporting: dict[str, Any] = self._base["reporting"]
        if name == BASE:
            return reporting
        known(name, self.reportings, "reporting")
        return merge(reporting, self.reportings[name])

    @property
    def reports_best_epoch(self) -> bool:
        """Whether a run is reported at its epoch of highest test accuracy, a choice that uses the test labels."""
        return bool(self._base["reporting"]["average_last"] == "best")


def _network_defaults(network: str) -> dict[str, Any]:
    """Return the default settings of a network, as a configuration would write them."""
    settings = Settings(network=network).flat()
    chosen = {key: settings[key] for key in (*OPTIMIZATION, *load_network(network).known)}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in chosen.items()}


def _written(value: object) -> str:
    """Return a value as a configuration would write it."""
    return value if isinstance(value, str) else json.dumps(value)
