"""What a model is trained for, on what, and how. There is no torch here, so plans and reports load fast."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args, get_type_hints

from mdpu.data import TupleData
from mdpu.errors import UserError, check_choice
from mdpu.law import Law, check_prior, check_tuple_size
from mdpu.learn.network import Architecture, check_type
from mdpu.learn.networks import load_network

Precision = Literal["auto", "fp32", "tf32", "bf16"]
# Settings that came after runs were shipped; `Settings.flat` names them where they have another value.
LATER = {"schedule": "constant"}
RISE = 0.2  # share of the steps over which a one-cycle schedule rises


@dataclass(frozen=True)
class Task:
    """What one model is trained for.

    Attributes
    ----------
    method : str
        A file of ``mdpu/learn/methods``, e.g. ``relu-part``.
    tuple_size : int
        M; the largest size if tuples have several.
    prior : float
        The class prior pi_+ that the method assumes, in (0, 1).
    loss : str
        A row of Table I, ``logistic``, ``ramp``, ``squared`` or ``hinge``, or ``sigmoid``. Methods with a loss of their
        own ignore it.
    seed : int or str
        Seeds every random number of the training: initial weights, order of the minibatches. Tasks with the same seed
        are paired.
    sample : str
        Name of the sample to train on, if there are several.
    learning_rate, weight_decay : float, optional
        They replace those of the settings.
    law : Law, optional
        Of the tuples, all of one size; dominant tuples unless given.
    target_prior : float, optional
        The class prior of what the model will classify, if it is not that of the unlabeled instances.

    Raises
    ------
    UserError
        If `tuple_size` or `prior` is out of range, or the law is one of another size.
    """

    method: str
    tuple_size: int
    prior: float
    loss: str = "logistic"
    seed: int | str = 0
    sample: str = ""
    learning_rate: float | None = None
    weight_decay: float | None = None
    law: Law | None = None
    target_prior: float | None = None

    def __post_init__(self) -> None:
        check_tuple_size(self.tuple_size)
        for prior in (self.prior, self.prior if self.target_prior is None else self.target_prior):
            check_prior(prior)
        if self.law is not None and self.law.size != self.tuple_size:
            raise UserError(f"the law is one of {self.law.size} members, but tuples have {self.tuple_size}")

    def law_of(self, tuple_size: int) -> Law:
        """Return the law of the tuples of one size."""
        return self.law or Law.dominant(tuple_size)

    def rates(self, settings: Settings) -> tuple[float, float]:
        """Return learning rate and weight decay: the task's own, or those of the settings."""
        return (
            settings.learning_rate if self.learning_rate is None else self.learning_rate,
            settings.weight_decay if self.weight_decay is None else self.weight_decay,
        )


@dataclass(frozen=True)
class PriorEstimate:
    """An estimate of the class prior from held-out bags.

    Attributes
    ----------
    prior : float
    low, high : float
        Interval of `level`, percentiles of a bootstrap over held-out tuples and unlabeled images. It does not include
        the error that comes from the training sample.
    level : float
    information : float
        Mean log-likelihood ratio of a tuple to M unlabeled images, in nats: what was learned.
    epoch : int
        The epoch, from 1, with the highest held-out likelihood.
    known : bool
        Whether held-out tuples are distinguished from unlabeled images better than by chance. If not, any prior fits,
        and the other numbers are meaningless.
    """

    prior: float
    low: float
    high: float
    level: float
    information: float
    epoch: int
    known: bool

    def measures(self) -> dict[str, float]:
        """Return prior, interval and what is known, by the names that they have in a history."""
        return {
            "estimated_prior": self.prior,
            "estimated_prior_low": self.low,
            "estimated_prior_high": self.high,
            "estimated_prior_known": float(self.known),
        }

    def fits(self, told: float) -> bool:
        """Return whether a given prior lies within the interval, or nothing is known about the prior."""
        return not self.known or self.low <= told <= self.high


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
        With weight decay as an L2 penalty, or decoupled.
    schedule : {'constant', 'one-cycle'}
        Of the learning rate: the same at every step; or rising to `learning_rate` over the first fifth of all steps,
        then falling to zero, both linearly (Smith and Topin, 2018).
    learning_rate, weight_decay : float
    precision : {'auto', 'fp32', 'tf32', 'bf16'}
        Of the matrix products; weights, scores and losses are always float32. ``auto`` is what the hardware does best.
    network : str or Architecture
        A file of ``mdpu/learn/networks``, or a network that is in none.
    architecture : mapping
        The network's own settings, such as ``hidden`` of the perceptron; those left out have their defaults.

    Raises
    ------
    UserError
        If a value has the wrong type or is out of range, the network is unknown, or it does not know a setting.
    """

    epochs: int = 100
    batch_size: int = 3000
    batch_counts: Literal["tuples", "images"] = "tuples"
    optimizer: Literal["adam", "adamw"] = "adam"
    schedule: Literal["constant", "one-cycle"] = "constant"
    learning_rate: float = 1e-3
    weight_decay: float = 5e-4
    precision: Precision = "auto"
    network: str | Architecture = "mlp"
    architecture: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if name == "architecture" or isinstance(value, Architecture):
                continue
            if name == "network":
                kind = str
            if choices := get_args(kind):
                check_choice(name, value, choices)
            else:
                check_type(name, value, kind)
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}; at least 1 is needed")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise UserError(f"learning_rate is {self.learning_rate}; a positive number is needed")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise UserError(f"weight_decay is {self.weight_decay}; 0 or a positive number is needed")
        load_network(self.network).read(self.architecture)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Settings:
        """Return settings from a flat mapping, which holds those of the network among the others.

        Raises
        ------
        UserError
            If a key is neither a setting nor one of the network's, or a value is invalid.
        """
        own = {name.name for name in fields(cls)} - {"architecture"}
        return cls(
            **{key: value for key, value in values.items() if key in own},
            architecture={key: value for key, value in values.items() if key not in own},
        )

    def flat(self) -> dict[str, Any]:
        """Return the settings as `parse` takes them, with the network's defaults, ready for JSON."""
        settings = {key: value for key, value in asdict(self).items() if LATER.get(key) != value}
        del settings["architecture"]
        return settings | asdict(load_network(self.network).read(self.architecture))


def rate_factor(settings: Settings, step: int, steps: int) -> float:
    """Return what the learning rate is multiplied with at a step, from 0, of so many."""
    if settings.schedule == "constant":
        return 1.0
    return min((step + 1) / (RISE * steps), (steps - step) / ((1 - RISE) * steps), 1.0)


def tuples_per_batch(settings: Settings, tuple_size: int) -> int:
    """Return the number of tuples in a minibatch."""
    return settings.batch_size if settings.batch_counts == "tuples" else max(1, settings.batch_size // tuple_size)


def check_sample(sample: TupleData, images: int, tasks: Iterable[Task]) -> None:
    """Raise `UserError` unless a sample is valid for the images and for the tasks that train on it."""
    for name, indices, least in (("tuples", sample.tuples, -1), ("unlabeled rows", sample.unlabeled, 0)):
        if not indices.size:
            raise UserError(f"the sample holds no {name}")
        if indices.min() < least or indices.max() >= images:
            raise UserError(f"the sample's {name} name rows that are not there; there are {images}")
    present = sample.tuples >= 0
    if not present[:, 0].all() or (present[:, 1:] > present[:, :-1]).any():
        raise UserError("a tuple of the sample has no member, or has -1 before its last member")
    for task in tasks:
        if sample.is_ragged and task.law is not None:
            raise UserError("a law is one of tuples of one size, but the sample's tuples have several")
        if sample.tuples.shape[1] != task.tuple_size:
            raise UserError(
                f"method {task.method}: the sample's tuples hold {sample.tuples.shape[1]} rows, not {task.tuple_size}"
            )
