"""How many epochs to train for, chosen by held-out bags without labels.

A part of the tuples and unlabeled images is held out. After each epoch the error on these bags is estimated from the
model's answers (`mdpu.law.Law.bag_risk`). The epoch with the lowest estimate is the choice. The caller then
trains on the whole sample for as many epochs, so no tuple is lost to the choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from mdpu.data import TupleData
from mdpu.learn.evaluation import HeldOut
from mdpu.learn.fitting import fit_each
from mdpu.learn.task import Settings, Task
from mdpu.learn.tuning import hold_out


class EnoughError(Exception):
    """Raised within a training to end it: the estimate has not improved for a while."""


@dataclass(frozen=True)
class ChosenEpoch:
    """How many epochs to train for.

    Attributes
    ----------
    epoch : int
        From 1.
    history : DataFrame
        One row per epoch that was tried: ``epoch`` and ``bag_risk``, the estimated share of held-out bags that are put
        on the wrong side. It is not clipped: noise can take it below 0.
    """

    epoch: int
    history: pd.DataFrame


class HeldOutRisk(HeldOut):
    """Estimates the error of one model on held-out bags after each epoch.

    Parameters
    ----------
    images : ndarray, shape (N, ...)
    held : TupleData
        Held-out tuples, of one size or of several, and unlabeled images among them.
    task : Task
        What the estimate uses of it is the prior and the law.
    """

    def __init__(self, images: NDArray[Any], held: TupleData, task: Task) -> None:
        super().__init__(images, held, ("bag_risk",), self._estimate)
        self._present = held.tuples >= 0
        self._sizes = self._present.sum(axis=1)
        self.task = task
        self.risks: list[float] = []
        self.constant: list[bool] = []  # whether an epoch's model gave every unlabeled image the same answer

    def _estimate(self, member_scores: torch.Tensor, unlabeled_scores: torch.Tensor) -> torch.Tensor:
        """Return the estimate of the one model, (1, 1): the mean over tuple sizes by their numbers."""
        members, unlabeled = ((scores[0] > 0).cpu().numpy() for scores in (member_scores, unlabeled_scores))
        positives = np.zeros(self._present.shape, dtype=np.int64)
        positives[self._present] = members
        counts = positives.sum(axis=1)
        risk = 0.0
        for size in np.unique(self._sizes).tolist():
            own = counts[self._sizes == size]
            shares = np.bincount(own, minlength=size + 1) / len(own)
            risk += (
                len(own)
                / len(counts)
                * float(self.task.law_of(size).bag_risk(shares, unlabeled.mean(), self.task.prior))
            )
        self.risks.append(risk)
        self.constant.append(bool(unlabeled.all() or not unlabeled.any()))
        return torch.tensor([[risk]])


def choose_epoch(
    task: Task,
    images: NDArray[Any],
    sample: TupleData,
    settings: Settings,
    *,
    held_out: float = 0.2,
    patience: int | None = None,
    device: torch.device | str = "auto",
    advance: Callable[[int], None] = lambda task_epochs: None,
) -> ChosenEpoch:
    """Choose the number of epochs by held-out bags.

    Parameters
    ----------
    task : Task
        Its prior is used for the estimate too.
    images, sample, settings, device, advance
        As for `mdpu.learn.fitting.fit_each`; `settings.epochs` is the largest number.
    held_out : float
        Share of tuples and of unlabeled images that the estimate uses, in (0, 1).
    patience : int, optional
        Epochs without a better estimate after which the training ends. By default it goes through all epochs.

    Raises
    ------
    UserError
        If a part of the sample would be empty, and for the reasons of `mdpu.learn.fitting.fit_each`.
    """
    kept, held = hold_out(sample, held_out)
    evaluation = HeldOutRisk(images, held, task)

    def advance_while_better(epochs: int) -> None:
        advance(epochs)
        if len(_until_enough(evaluation.risks, evaluation.constant, patience)) < len(evaluation.risks):
            raise EnoughError

    try:
        for _ in fit_each(
            [task], images, kept, settings, evaluation=evaluation, device=device, advance=advance_while_better
        ):
            pass
    except EnoughError:
        pass
    risks = _until_enough(evaluation.risks, evaluation.constant, patience)
    return ChosenEpoch(
        _best(risks, evaluation.constant), pd.DataFrame({"epoch": range(1, len(risks) + 1), "bag_risk": risks})
    )


def _best(risks: list[float], constant: list[bool]) -> int:
    """Return the first epoch, from 1, with the lowest estimate.

    A model whose answers are all alike is no choice while others are, however low noise takes its estimate.
    """
    own = constant[: len(risks)]
    return 1 + int(np.argmin(risks if all(own) else np.where(own, np.inf, risks)))


def _until_enough(risks: list[float], constant: list[bool], patience: int | None) -> list[float]:
    """Return the estimates up to the epoch at which `patience` epochs have passed since the best one."""
    if patience is not None:
        for epochs in range(1, len(risks) + 1):
            if epochs - _best(risks[:epochs], constant) >= patience:
                return risks[:epochs]
    return risks
