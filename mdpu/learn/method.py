"""What a method is. There is no torch here, so that plans and reports can read titles fast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from mdpu.errors import check_choice
from mdpu.law import SCOPES, Scope

if TYPE_CHECKING:
    from mdpu.data import TupleData
    from mdpu.learn.head import Head
    from mdpu.learn.task import Task

Origin = Literal["paper", "baseline", "literature", "project"]


@dataclass(frozen=True)
class Method:
    """What plans and reports know about every method.

    Attributes
    ----------
    title : str
        Name in tables and figures.
    control : bool
        Whether it bounds the others instead of competing with them. A control is never bold in a table
        and is a reference line in a figure.
    unnamed : bool
        Whether its two answers have no class names, like those of a clustering. They are then named by the
        better assignment on the test images.
    takes_ragged : bool
        Whether it can learn from tuples of several sizes.
    origin : {'paper', 'baseline', 'literature', 'project'}
        Who proposed it for these data: the paper; others, and the paper compares with it; others, and this project
        adapted it; this project.
    """

    title: str
    _: KW_ONLY
    control: bool = False
    unnamed: bool = False
    takes_ragged: bool = False
    origin: Origin = "project"

    @property
    def tunable(self) -> bool:
        """Whether learning rate and weight decay can be chosen without true labels; otherwise they are fixed."""
        return True

    def gives_log_odds(self, loss: str) -> bool:
        """Return whether the objective is least, over all functions, where the score is log p(+1 | x) / p(-1 | x)."""
        return False


@dataclass(frozen=True)
class NetworkMethod(Method):
    """A method that trains a network.

    Attributes
    ----------
    head : callable
        A `mdpu.learn.head.Head`: what the method does with the network's outputs.
    outputs : int
        Width of the network's last layer: 1 for a score, more for an embedding.
    sees_labels : bool
        Whether its minibatches contain the true labels. Only for controls.
    ema_decay : float
        Share of its past that the running mean of the weights keeps at each step; the model is this mean. With 0 the
        model is the last weights.
    estimates_prior : bool
        Whether its head takes an estimate of the prior, which `mdpu.learn.fitting.fit` is given a function for,
        instead of the task's prior.
    log_odds : bool
        What `gives_log_odds` returns, whatever the loss.
    """

    head: Callable[..., Head]
    outputs: int = 1
    sees_labels: bool = False
    ema_decay: float = 0.0
    estimates_prior: bool = False
    log_odds: bool = False

    def gives_log_odds(self, loss: str) -> bool:
        """Return whether scores are log-odds."""
        return self.log_odds

    @property
    def tunable(self) -> bool:
        """Whether there is a score: embeddings need labelled prototypes, and controls need labels."""
        return self.outputs == 1 and not self.sees_labels


@dataclass(frozen=True)
class Answers:
    """The result of a method without a network.

    Attributes
    ----------
    objective : float
    says_positive : callable
        From images (N, ...) to answers, bool (N,).
    """

    objective: float
    says_positive: Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class FittedMethod(Method):
    """A method without a network, which runs on a CPU.

    Attributes
    ----------
    fit : callable
        From (task, sample, images) to its `Answers`.
    """

    fit: Callable[[Task, TupleData, NDArray[Any]], Answers]

    @property
    def tunable(self) -> bool:
        """False: without a network there is no learning rate."""
        return False


@dataclass(frozen=True)
class CorrectedRisk(Method):
    """A method that minimises f applied to the estimated risk or to its two parts.

    Attributes
    ----------
    k : float
        Slope of f below zero, see `mdpu.losses.correction`.
    scope : {'whole', 'class', 'part'}
        What f is applied to: the whole risk (Eqs. 15-16); the positive and the negative partial risk,
        as the related literature does (Kiryo et al. 2017; Lu et al. 2020); or the tuple part and the
        unlabeled part, as the proof of Theorem 3 does.
    tuple_size : int, optional
        Tuple size that the estimator assumes instead of the data's. With 1, every member counts as positive.

    Raises
    ------
    UserError
        If the scope is unknown.
    """

    k: float = -1.0
    scope: Scope = "whole"
    tuple_size: int | None = None
    takes_ragged: bool = field(default=True, kw_only=True)
    outputs = 1
    sees_labels = False
    ema_decay = 0.0

    def __post_init__(self) -> None:
        check_choice("scope", self.scope, SCOPES)

    def gives_log_odds(self, loss: str) -> bool:
        """Return whether scores are log-odds: with the logistic loss and the data's tuple size."""
        return self.tuple_size is None and loss == "logistic"
