"""What a method does with a network's outputs: objectives to minimise and predictions to count.

No torch is imported before a head is made, so that a method's one file can hold its head and still be
read by plans and reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.learn.trainer import TrainingData
    from mdpu.study.grid import Run


@dataclass(frozen=True)
class Batch:
    """Network outputs of one minibatch of R runs; an axis E follows where a method has more than one.

    Attributes
    ----------
    tuples : Tensor, shape (R, B, M) or (R, B, M, E)
        Outputs of the members of the minibatch's tuples, in order.
    unlabeled : Tensor, shape (R, B_U) or (R, B_U, E)
        Outputs of its unlabeled images.
    tuple_labels, unlabeled_labels : Tensor of +1 and -1, shapes (R, B, M) and (R, B_U), or None
        True labels, for methods that see them.
    """

    tuples: Tensor
    unlabeled: Tensor
    tuple_labels: Tensor | None = None
    unlabeled_labels: Tensor | None = None


def assumed_prior(run: Run, settings: Mapping[str, Any]) -> float:
    """Return the prior that a run's method is told: the true one plus the protocol's ``prior_offset``."""
    return round(float(run.prior) + float(settings["prior_offset"]), 12)


class Head:
    """Base of heads whose network has one output, the score g(x): positive where g(x) > 0.

    Parameters
    ----------
    runs : sequence of Run, length R
        Runs that share this head; their rows keep this order.
    settings : mapping
        Training settings, as `mdpu.study.protocol.Protocol.training` gives them.
    device : torch.device

    Attributes
    ----------
    parameters : list of Tensor, each with leading axis R
        What is learned beside the network.
    """

    def __init__(self, runs: Sequence[Run], settings: Mapping[str, Any], device: torch.device) -> None:
        self.runs = runs
        self.settings = settings
        self.device = device
        self.parameters: list[Tensor] = []

    def state(self) -> dict[str, Tensor]:
        """Return what is learned beside the network, by name; the tensors are the head's own."""
        return {f"head {position}": parameter.detach() for position, parameter in enumerate(self.parameters)}

    def objective(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return what each run minimises on a minibatch.

        Returns
        -------
        objective : Tensor, shape (R,)
        terms : Tensor, shape (R, 4), or None
            The risk's weighted mean losses T+, T-, U+, U- for the record, if the method estimates it.
        """
        raise NotImplementedError

    def rates(self, outputs: Callable[[Tensor], Tensor], data: TrainingData) -> tuple[Tensor, Tensor]:
        """Return the true-positive and the true-negative rate on the test images, each of shape (R,).

        Parameters
        ----------
        outputs : callable
            From N images to the trained networks' outputs, (R, N) or (R, N, E).
        data : TrainingData
        """
        return rates(outputs(data.test_images) > 0, data.test_labels)


def rates(says_positive: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the true-positive and the true-negative rate of answers (R, N) about images labelled (N,)."""
    positive = labels > 0
    return says_positive[:, positive].float().mean(dim=1), (~says_positive[:, ~positive]).float().mean(dim=1)
