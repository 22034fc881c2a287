"""The definition of a method, and the list of methods.

`METHODS` declares them by name. Objectives are in the files of this folder, and named by text,
because plans and reports read titles, and torch takes seconds to load. Another file that declares
``METHODS`` adds methods: it is discovered by being here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mdpu.errors import UserError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.data import TupleData
    from mdpu.law import Scope
    from mdpu.networks import TestSet
    from mdpu.settings import Task

EMBEDDING = 64  # outputs of a network that embeds images


@dataclass(frozen=True, kw_only=True)
class Method:
    """The facts about a method.

    Attributes
    ----------
    title : str
        Name in tables and figures.
    objective : type or str, optional
        The `Objective` that a network minimises, or its name, such as ``risks:CorrectedRisk``.
        Without one there is no network, but `fit`.
    fit : callable or str, optional
        From (task, seed, sample, images, labels) to the objective's value and a function from
        images (N, ...) to whether each is positive, bool (N,), or the share of several answers that
        say so. Labels are for controls.
    control : bool
        Whether it bounds the others instead of competing with them.
    unnamed : bool
        Whether its two answers have no class names, like those of a clustering. They are then named
        by the better assignment on the test images.
    takes_ragged : bool
        Whether it can learn from tuples of several sizes.
    origin : {'paper', 'baseline', 'literature', 'project'}
        Who proposed it for these data: the paper; others, and the paper compares with it; others,
        and this project adapted it; this project.
    sees_labels : bool
        Whether its minibatches contain the true labels. Only for controls.
    outputs : int
        Width of the network's last layer: 1 for a score, more for an embedding.
    ema_decay : float
        Share of its past that the running mean of the weights keeps at each step; the model is this
        mean. With 0 the model is the last weights.
    estimates_prior : bool
        Whether it gets an estimate of the prior, made from the same sample (`mdpu.prior`).
    log_odds : tuple of str
        The losses with which the objective is least, over all functions, where the score is log
        p(+1 | x) / p(-1 | x).
    k : float
        For a corrected risk: the slope of f below zero, see `mdpu.losses.correction`.
    scope : {'whole', 'class', 'part'}
        For a corrected risk: what f is applied to. The whole risk (Eqs. 15-16); the positive and
        the negative partial risk (Kiryo et al. 2017; Lu et al. 2020); or the tuple part and the
        unlabeled part (proof of Theorem 3).
    tuple_size : int, optional
        For a corrected risk: the size that it assumes instead of the data's. With 1, every member
        counts as positive.
    """

    title: str
    objective: type[Objective] | str | None = None
    fit: Callable[..., tuple[float, Callable[[Any], Any]]] | str | None = None
    control: bool = False
    unnamed: bool = False
    takes_ragged: bool = False
    origin: str = "project"
    sees_labels: bool = False
    outputs: int = 1
    ema_decay: float = 0.0
    estimates_prior: bool = False
    log_odds: tuple[str, ...] = ()
    k: float = -1.0
    scope: Scope = "whole"
    tuple_size: int | None = None

    def gives_log_odds(self, loss: str) -> bool:
        """Return whether scores are log-odds, at the prior of the unlabeled images for the methods
        on bags.
        """
        return loss in self.log_odds


class Batch(NamedTuple):
    """Outputs of S networks on a minibatch; where there is more than one output, with a further
    axis E.

    Attributes
    ----------
    tuples : Tensor, shape (S, B, M)
        Outputs for the members of the tuples.
    unlabeled : Tensor, shape (S, B_U)
        Outputs for the unlabeled images, in random order.
    sizes : Tensor, int64, shape (S, B), optional
        Number of members of each tuple, if there are several sizes; further places of `tuples` are
        meaningless.
    labels : pair of Tensor, int8, shapes (S, B, M) and (S, B_U), optional
        True labels, for methods that see them.
    """

    tuples: Tensor
    unlabeled: Tensor
    sizes: Tensor | None = None
    labels: tuple[Tensor, Tensor] | None = None


class Objective:
    """The objective of S networks of one task, one for each seed; a base, whose networks have one
    output, the score.

    Parameters
    ----------
    task : Task
    method : Method
    seeds : sequence of int or str, length S
    device : torch.device

    Attributes
    ----------
    parameters : list of Tensor, each with leading axis S
        What is learned in addition to the network.
    measures : tuple of str
        Names of what is recorded in addition to the objective.
    test_measures : tuple of str
        Names of what `measure` returns beyond the two rates.
    """

    measures: tuple[str, ...] = ()
    test_measures: tuple[str, ...] = ()

    def __init__(
        self, task: Task, method: Method, seeds: Sequence[int | str], device: torch.device
    ) -> None:
        self.task = task
        self.method = method
        self.seeds = seeds
        self.device = device
        self.parameters: list[Tensor] = []
        self.begin()

    def begin(self) -> None:
        """Make what the objective needs, once for a training."""

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return the objective, (S,), and what is recorded, (S, len(measures)) or None."""
        raise NotImplementedError

    def start(self, sample: TupleData, seed: int | str, images: Any) -> Any:
        """Return scores (N,) of the images (N, d) that training starts from, or None to start from
        the network's.
        """
        return None

    def measure(self, outputs: Callable[[Tensor], Tensor], test: TestSet) -> list[Tensor]:
        """Return the measures on test images: true-positive rate, true-negative rate,
        `test_measures`, (S,) each.

        `outputs` computes the networks' outputs, (S, N) or (S, N, E), for images that are laid out.
        """
        scores = outputs(test.rows)
        own = [self.risk(scores, test.sides)] if self.test_measures else []
        return [*shares(scores > self.threshold(), test.sides), *own]

    def risk(self, scores: Tensor, sides: tuple[Tensor, Tensor]) -> Tensor:
        """Return pi_+ mean_+ l(g, +1) + pi_- mean_- l(g, -1), (S,), of test scores (S, N) (Eq. 2),
        at the target.
        """
        from mdpu.losses import LOSSES

        prior = self.task.prior if self.task.target_prior is None else self.task.target_prior
        parts = zip(sides, (1, -1), (prior, 1 - prior), strict=True)
        risks = [
            share * LOSSES[self.task.loss](scores[:, side], label).mean(dim=1)
            for side, label, share in parts
        ]
        return risks[0] + risks[1]

    def threshold(self) -> float:
        """Return the score above which an image is positive."""
        return 0.0


def shares(says_positive: Tensor, sides: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the true-positive and the true-negative rate of answers (S, N), given the indices of
    the two classes.
    """
    positive, negative = sides
    return says_positive[:, positive].float().mean(dim=1), (
        ~says_positive[:, negative]
    ).float().mean(dim=1)


def named(place: Any) -> Any:
    """Return what a text such as ``risks:CorrectedRisk`` names in a file of this folder, or
    anything else unchanged.
    """
    if not isinstance(place, str):
        return place
    file, _, name = place.partition(":")
    return getattr(importlib.import_module(f"{__name__}.{file}"), name)


def _risk(title: str, k: float, **others: Any) -> Method:
    facts: dict[str, Any] = {
        "objective": "risks:CorrectedRisk",
        "takes_ragged": True,
        "log_odds": ("logistic",),
    }
    return Method(title=title, k=k, **facts | others)


def _bag_risk(title: str, **others: Any) -> Method:
    # The running mean spans some fifty steps, twelve epochs of the protocol. Scores are log-odds,
    # whatever the loss.
    always = ("logistic", "ramp", "squared", "hinge", "usual-ramp", "sigmoid")
    facts: dict[str, Any] = {"objective": "bags:BagRisk", "takes_ragged": True, "log_odds": always}
    facts |= {"k": 0.0, "ema_decay": 0.98}
    return Method(title=title, **facts, **others)


METHODS = {
    "ure": _risk("URE", -1.0, origin="paper"),
    "relu": _risk("ReLU", 0.0, origin="paper"),
    "abs": _risk("ABS", 1.0, origin="paper"),
    "relu-class": _risk("ReLU (class)", 0.0, scope="class"),
    "abs-class": _risk("ABS (class)", 1.0, scope="class"),
    "relu-part": _risk("ReLU (part)", 0.0, scope="part"),
    "abs-part": _risk("ABS (part)", 1.0, scope="part"),
    "nnpu": _risk("nnPU", 0.0, scope="class", tuple_size=1, log_odds=(), origin="literature"),
    "bag-relu": _bag_risk("Bag ReLU"),
    "bag-free": _bag_risk("Bag ReLU, prior-free", estimates_prior=True),
    "bag-em": Method(title="Bag EM", objective="bags:Expectation", origin="literature"),
    "siamese": Method(
        title="Siamese", objective="baselines:Siamese", outputs=EMBEDDING, origin="baseline"
    ),
    "siamese-mixed": Method(
        title="Siamese (mixed)",
        objective="baselines:SiameseMixed",
        outputs=EMBEDDING,
        origin="baseline",
    ),
    "contrastive": Method(
        title="Contrastive", objective="baselines:Contrastive", outputs=EMBEDDING, origin="baseline"
    ),
    "kmeans": Method(title="K-Means", fit="baselines:cluster", unnamed=True, origin="baseline"),
    "kmeans-members": Method(
        title="K-Means (members)", fit="baselines:cluster_members", unnamed=True, origin="baseline"
    ),
    "kmeans-means": Method(
        title="K-Means (means)", fit="baselines:cluster_means", unnamed=True, origin="baseline"
    ),
    "llp": Method(title="LLP", objective="baselines:Proportions", origin="literature"),
    "supervised": Method(
        title="Supervised", objective="baselines:Supervised", sees_labels=True, control=True
    ),
    "untrained": Method(
        title="Untrained", fit="baselines:nearest_prototype", sees_labels=True, control=True
    ),
    "chance": Method(title="Chance", fit="baselines:always_positive", control=True, unnamed=True),
}
OWN_FILES = {"risks", "bags", "baselines"}


@cache
def _methods() -> dict[str, Method]:
    found = dict(METHODS)
    for file in pkgutil.iter_modules(__path__):
        if file.name in OWN_FILES:
            continue
        declared = getattr(importlib.import_module(f"{__name__}.{file.name}"), "METHODS", None)
        if not isinstance(declared, dict):
            raise UserError(
                f"mdpu/methods/{file.name}.py declares no METHODS: a dictionary from name to Method"
            )
        found |= declared
    return found


def available_methods() -> list[str]:
    """Return the names of the methods."""
    return sorted(_methods())


def load_method(name: str) -> Method:
    """Return the method called `name`; raise `UserError` if there is none."""
    if name not in _methods():
        raise UserError(f"method {name!r} is unknown; known are {', '.join(available_methods())}")
    return _methods()[name]
