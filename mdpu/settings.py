"""The task that a model is trained for, and the settings. Without torch, so that plans and reports
load fast.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

from mdpu.errors import UserError, check_choice
from mdpu.law import Law

# part of every run's key; raise it when a change of the code moves the numbers of finished runs
RECIPE = 1
RISE = 0.2  # share of the steps over which a one-cycle schedule rises
# The networks by name (`mdpu.networks` makes them), with the settings that each knows and their
# defaults.
NETWORKS: dict[str, dict[str, Any]] = {
    "mlp": {"hidden": (300, 300)},
    "components": {"hidden": (300, 300)},
    "resnet34": {"stem": "cifar"},
}
# by name their type, the least value, and both in words
NUMBERS: dict[str, tuple[Any, float, str]] = {
    "epochs": (Integral, 1, "an integer of at least 1"),
    "batch_size": (Integral, 1, "an integer of at least 1"),
    "learning_rate": (Real, math.ulp(0.0), "a number above 0"),
    "weight_decay": (Real, 0, "a number from 0"),
}
CHOICES = {
    "batch_counts": ("tuples", "images"),
    "optimizer": ("adam", "adamw"),
    "schedule": ("constant", "one-cycle"),
    "precision": ("float32", "bfloat16", "tf32"),
    "stem": ("cifar", "imagenet"),
}
# of a list of sizes, so that one digit too many does not exhaust the memory
MOST_SIZES = 100
LARGEST_SIZE = 100_000


@dataclass(frozen=True)
class Task:
    """The task that a model is trained for.

    Attributes
    ----------
    method : str
        A name of `mdpu.methods.available_methods`, e.g. ``relu``.
    tuple_size : int
        M; the largest size if tuples have several.
    prior : float
        The class prior pi_+ that the method assumes, in (0, 1).
    loss : str or callable
        A key of `mdpu.losses.LOSSES`. Methods with a loss of their own ignore it. A function from
        the scores of tuples (B, M) and of unlabeled instances (B_U,) to a number is minimised in
        place of the method's loss.
    law : Law, optional
        The law of the tuples, all of one size; dominant tuples unless given.
    """

    method: str
    tuple_size: int
    prior: float
    loss: Any = "logistic"
    law: Law | None = None

    def law_of(self, tuple_size: int) -> Law:
        """Return the law of the tuples of one size."""
        return self.law or Law.dominant(tuple_size)


@dataclass(frozen=True)
class Settings:
    """How models are trained.

    Attributes
    ----------
    epochs : int
    batch_size : int
        Number of tuples, or of images, in a minibatch.
    batch_counts : {'tuples', 'images'}
        What `batch_size` counts: tuples, or their members.
    optimizer : {'adam', 'adamw'}
        Adam with weight decay as an L2 penalty, or with decoupled weight decay.
    schedule : {'constant', 'one-cycle'}
        Schedule of the learning rate: the same at every step; or rising to `learning_rate` over the
        first fifth of all steps, then falling to zero, both linearly (Smith and Topin, 2018).
    learning_rate, weight_decay : float
    precision : {'float32', 'bfloat16', 'tf32'}
        Precision of the matrix products; weights, scores and losses are always float32.
    network : str, Module or callable
        A key of `NETWORKS`, a PyTorch module, or a function from the shape of a row to a module.
    architecture : mapping
        The named network's own settings, such as ``hidden``; those left out have their defaults.
    compile : bool
        Whether PyTorch compiles the network (``torch.compile``), which must not be small, one seed
        at a time.
    rates : mapping from str to float
        Factors of the learning rate of parameters by the beginning of their names, such as
        ``{"features": 0.1}``.

    Raises
    ------
    UserError
        If a value has the wrong type or is out of range, the network is unknown, or it does not
        know a setting.
    """

    epochs: int = 100
    batch_size: int = 3000
    batch_counts: str = "tuples"
    optimizer: str = "adam"
    schedule: str = "constant"
    learning_rate: float = 1e-3
    weight_decay: float = 5e-4
    precision: str = "float32"
    network: Any = "mlp"
    architecture: Mapping[str, Any] = field(default_factory=dict)
    compile: bool = False
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = [(name, getattr(self, name), *NUMBERS[name]) for name in NUMBERS]
        numbers += [
            (f"the rate of {name}", rate, Real, 0, "a number from 0")
            for name, rate in self.rates.items()
        ]
        for name, value, kind, least, needed in numbers:
            if (
                isinstance(value, bool)
                or not isinstance(value, kind)
                or not least <= value < math.inf
            ):
                raise UserError(f"{name} is {value!r}; {needed} is needed")
        if not isinstance(self.compile, bool):
            raise UserError(f"compile is {self.compile!r}; true or false is needed")
        known = NETWORKS.get(self.network, {}) if isinstance(self.network, str) else {}
        if self.compile and "hidden" in known:
            raise UserError(f"compile is not for small networks; leave it out for {self.network}")
        choices: list[tuple[str, Any, Collection[str]]]
        choices = [
            (name, value, CHOICES[name]) for name, value in vars(self).items() if name in CHOICES
        ]
        # modules are callable
        choices += [] if callable(self.network) else [("network", self.network, NETWORKS)]
        choices += [("the network's setting", name, known) for name in self.architecture]
        choices += [
            (name, value, CHOICES[name])
            for name, value in self.architecture.items()
            if name in CHOICES
        ]
        for name, value, among in choices:
            check_choice(name, value, among)
        for name, sizes in self.architecture.items():
            if name in CHOICES:
                continue
            if not isinstance(sizes, list | tuple) or len(sizes) > MOST_SIZES:
                raise UserError(
                    f"{name} is {str(sizes)[:50]}; a list of at most {MOST_SIZES} integers is "
                    "needed"
                )
            for size in sizes:
                if (
                    isinstance(size, bool)
                    or not isinstance(size, Integral)
                    or not 0 < int(size) <= LARGEST_SIZE
                ):
                    raise UserError(
                        f"{name} holds {size!r}; integers from 1 to {LARGEST_SIZE} are needed"
                    )
        architecture = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.architecture.items()
        }
        object.__setattr__(self, "architecture", known | architecture)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Settings:
        """Return settings from a flat mapping, which holds those of the network among the others.

        Raises
        ------
        UserError
            If a key is neither a setting nor one of the network's, or a value is invalid.
        """
        names = {setting.name for setting in fields(cls)} - {"architecture"}
        return cls(
            **{key: value for key, value in values.items() if key in names},
            architecture={key: value for key, value in values.items() if key not in names},
        )

    def flat(self) -> dict[str, Any]:
        """Return the settings as `parse` takes them, with the network's defaults, ready for JSON.

        ``rates`` and ``compile`` are among them if there are any: keys of runs without them stay.
        """
        omitted = {"architecture"}
        omitted |= {name for name in ("rates", "compile") if not getattr(self, name)}
        settings = {name: value for name, value in vars(self).items() if name not in omitted}
        return settings | dict(self.architecture)


def rate_factor(settings: Settings, step: int, steps: int) -> float:
    """Return the factor of the learning rate at a step, counted from 0, of `steps`."""
    if settings.schedule == "constant":
        return 1.0
    return min((step + 1) / (RISE * steps), (steps - step) / ((1 - RISE) * steps), 1.0)
