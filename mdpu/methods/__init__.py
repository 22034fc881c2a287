"""The definition of a method, and the list of methods.

`METHODS` declares them by name. Most hold a loss of `mdpu.losses`; the others have an objective of
their own in a file of this folder, named by text. Plans and reports read titles, and torch takes
seconds to load, so it is imported when a method trains. Another file that declares ``METHODS`` adds
methods: it is discovered by being here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mdpu.errors import UserError, check_choice
from mdpu.law import Law

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.data import TupleData
    from mdpu.law import Scope
    from mdpu.losses import RiskLoss, ScoreLoss
    from mdpu.networks import TestSet
    from mdpu.settings import Task

EMBEDDING = 64  # outputs of a network that embeds images
OWN_LOSS = "of your own"  # the name of a loss that is a function, where a name is needed


@dataclass(frozen=True, kw_only=True)
class Method:
    """The facts about a method: it has a loss, or an objective, or no network but `fit`.

    Attributes
    ----------
    title : str
        Name in tables and figures.
    loss : callable, optional
        From a task to the loss that a network minimises: one of `mdpu.losses`, or any function from
        the scores of one seed's tuples (B, M) and unlabeled images (B_U,) to a number. Tuples of
        several sizes come as a list of scores (M_i,).
    objective : type or str, optional
        For what scores alone do not give: the `Objective` that a network minimises, or its name,
        such as ``baselines:Siamese``.
    fit : callable or str, optional
        From (task, seed, sample, images, labels) to the objective's value and a function from
        images (N, ...) to whether each is positive, bool (N,), or the share of several answers that
        say so. Labels are for controls.
    sees : {'members', 'tuples', 'labels'}
        What its minibatches are to it: the members of tuples one by one, tuples as a whole, or
        images with their true labels, which only controls may see.
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
    """

    title: str
    loss: Callable[[Task], Callable[..., Tensor]] | None = None
    objective: type[Objective] | str | None = None
    fit: Callable[..., tuple[float, Callable[[Any], Any]]] | str | None = None
    sees: Literal["members", "tuples", "labels"] = "tuples"
    control: bool = False
    unnamed: bool = False
    takes_ragged: bool = False
    origin: str = "project"
    outputs: int = 1
    ema_decay: float = 0.0
    estimates_prior: bool = False
    log_odds: tuple[str, ...] = ()

    @property
    def trains_network(self) -> bool:
        """Whether it has a loss or an objective for a network."""
        return self.fit is None

    @property
    def sees_labels(self) -> bool:
        """Whether its minibatches contain the true labels."""
        return self.sees == "labels"

    def gives_log_odds(self, loss: str | Callable[..., Any]) -> bool:
        """Return whether scores are log-odds, at the prior of the unlabeled images for the methods
        on bags. Of a loss that is a function this is not known.
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
        more = [self.risk(scores, test.sides)] if self.test_measures else []
        return [*shares(scores > 0, test.sides), *more]

    def risk(self, scores: Tensor, sides: tuple[Tensor, Tensor]) -> Tensor:
        """Return pi_+ mean_+ l(g, +1) + pi_- mean_- l(g, -1), (S,), of test scores (S, N) (Eq.
        2).
        """
        from mdpu.losses import LOSSES

        prior = self.task.prior
        parts = zip(sides, (1, -1), (prior, 1 - prior), strict=True)
        risks = [
            share * LOSSES[self.task.loss](scores[:, side], label).mean(dim=1)
            for side, label, share in parts
        ]
        return risks[0] + risks[1]


def shares(says_positive: Tensor, sides: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the true-positive and the true-negative rate of answers (S, N), given the indices of
    the two classes.
    """
    positive, negative = sides
    return says_positive[:, positive].float().mean(dim=1), (
        ~says_positive[:, negative]
    ).float().mean(dim=1)


def named(place: Any) -> Any:
    """Return what a text such as ``baselines:Siamese`` names in a file of this folder, or anything
    else unchanged.
    """
    if not isinstance(place, str):
        return place
    file, _, name = place.partition(":")
    return getattr(importlib.import_module(f"{__name__}.{file}"), name)


def check_loss(loss: Any, method: str) -> None:
    """Raise `UserError` unless a loss is a known name, or a function that a method can minimise in
    place of its own loss.
    """
    from mdpu.losses import LOSSES

    if not callable(loss):
        check_choice("loss", loss, LOSSES)
        return
    if isinstance(loss, type):
        raise UserError(f"loss is the {loss}; give an instance of it, or a function of scores")
    if load_method(method).loss is None:
        raise UserError(
            f"method {method} has an objective that no loss can replace; take bag-relu, whose "
            "networks are trained by a loss alone"
        )


def objective_of(task: Task, seeds: Sequence[int | str], device: torch.device) -> Objective:
    """Return the objective of S networks of one task, one for each seed."""
    method = load_method(task.method)
    kind = "loss:LossObjective" if method.loss else method.objective
    return named(kind)(task, method, seeds, device)


def _risk(title: str, correction: str | None, scope: Scope = "whole", **facts: Any) -> Method:
    """Declare a correction of the paper's risk of members (Theorem 1)."""

    def loss(task: Task) -> RiskLoss:
        from mdpu.losses import RiskLoss

        return RiskLoss(
            task.law_of,
            task.prior,
            correction,
            scope,
            task.loss,
        )

    return Method(
        title=title,
        loss=loss,
        sees="members",
        takes_ragged=True,
        log_odds=("logistic",),
        **facts,
    )


def _every_member_positive(task: Task) -> RiskLoss:
    """Return the loss of `nnpu`, the naive use of the paper's data (Kiryo et al., 2017).

    Every member counts as a positive, which are the weights of tuples of size 1. A share b of the
    members is negative (Lemma 6), so its estimate is biased. Where its negative part falls below
    zero, Kiryo et al. ascend its gradient (their Algorithm 1). Here the gradient is zero there, as
    in their Eq. 6 and in `relu-class`, so that the two methods differ only in their weights.
    """
    from mdpu.losses import RiskLoss

    return RiskLoss(
        lambda size: Law.dominant(1),
        task.prior,
        "relu",
        "class",
        task.loss,
    )


def _bag_risk(title: str, **facts: Any) -> Method:
    """Declare the joint law of a tuple's members, see `mdpu.methods.bags`."""

    def loss(task: Task) -> ScoreLoss:
        from mdpu.losses import TupleLoss

        return TupleLoss(task.law_of, task.prior)

    return Method(
        title=title,
        loss=loss,
        takes_ragged=True,
        # Scores are log-odds, whatever the loss.
        log_odds=("logistic", "ramp", "squared", "hinge", "usual-ramp", "sigmoid"),
        # The running mean spans some fifty steps, twelve epochs of the protocol.
        ema_decay=0.98,
        **facts,
    )


def _expectation(task: Task) -> ScoreLoss:
    """Return the loss of `bag-em`."""
    from mdpu.methods.bags import ExpectationLoss

    return ExpectationLoss(task.law_of, task.prior)


METHODS = {
    # The paper corrects the whole risk (Eqs. 15-16). The others correct the positive and the
    # negative partial risk (Kiryo et al. 2017; Lu et al. 2020), or the part of the tuples and that
    # of the unlabeled images (proof of Theorem 3).
    "ure": _risk("URE", None, origin="paper"),
    "relu": _risk("ReLU", "relu", origin="paper"),
    "abs": _risk("ABS", "abs", origin="paper"),
    "relu-class": _risk("ReLU (class)", "relu", "class"),
    "abs-class": _risk("ABS (class)", "abs", "class"),
    "relu-part": _risk("ReLU (part)", "relu", "part"),
    "abs-part": _risk("ABS (part)", "abs", "part"),
    "nnpu": Method(
        title="nnPU",
        loss=_every_member_positive,
        sees="members",
        takes_ragged=True,
        origin="literature",
    ),
    "bag-relu": _bag_risk("Bag ReLU"),
    "bag-free": _bag_risk("Bag ReLU, prior-free", estimates_prior=True),
    "bag-em": Method(title="Bag EM", loss=_expectation, origin="literature"),
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
        title="Supervised", objective="baselines:Supervised", sees="labels", control=True
    ),
    "untrained": Method(
        title="Untrained", fit="baselines:nearest_prototype", sees="labels", control=True
    ),
    "chance": Method(title="Chance", fit="baselines:always_positive", control=True, unnamed=True),
}
OWN_FILES = {"loss", "bags", "baselines"}


@cache
def _methods() -> dict[str, Method]:
    methods = dict(METHODS)
    for file in pkgutil.iter_modules(__path__):
        if file.name in OWN_FILES:
            continue
        declared = getattr(importlib.import_module(f"{__name__}.{file.name}"), "METHODS", None)
        if not isinstance(declared, dict):
            raise UserError(
                f"mdpu/methods/{file.name}.py declares no METHODS: a dictionary from name to Method"
            )
        methods |= declared
    return methods


def available_methods() -> list[str]:
    """Return the names of the methods."""
    return sorted(_methods())


def load_method(name: str) -> Method:
    """Return the method called `name`; raise `UserError` if there is none."""
    if name not in _methods():
        raise UserError(f"method {name!r} is unknown; known are {', '.join(available_methods())}")
    return _methods()[name]
