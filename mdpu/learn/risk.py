"""The unbiased risk estimator and its corrections, for many runs at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from mdpu.learn.head import Batch, Head, TestImages
from mdpu.learn.losses import LOSSES
from mdpu.learn.method import SCOPES, CorrectedRisk
from mdpu.learn.methods import load_method
from mdpu.learn.task import Task
from mdpu.theory import RiskWeights, risk_weights

TERMS = ("tuple_positive", "tuple_negative", "unlabeled_positive", "unlabeled_negative")


def correction(risk: Tensor, k: Tensor | float) -> Tensor:
    """Correction function f of Eq. 14: x for x >= 0, k |x| below; elementwise.

    k = 0 is ReLU (Eq. 15), k = 1 is ABS (Eq. 16), and k = -1 is no correction at all.
    """
    return torch.where(risk >= 0, risk, k * risk.abs())


class RiskHead:
    """Objective of R runs as a function of their scores.

    Parameters
    ----------
    methods : sequence of CorrectedRisk, length R
    weights : sequence of RiskWeights, length R
    losses : sequence of str, length R
        Keys of `mdpu.learn.losses.LOSSES`.
    device : torch.device
    """

    def __init__(
        self,
        methods: Sequence[CorrectedRisk],
        weights: Sequence[RiskWeights],
        losses: Sequence[str],
        device: torch.device,
    ) -> None:
        self.weights = torch.tensor([w.as_tuple() for w in weights], dtype=torch.float32, device=device)  # (R, 4)
        self.parts = torch.tensor([SCOPES[m.scope] for m in methods], dtype=torch.float32, device=device)  # (R, 2, 4)
        self.k = torch.tensor([[m.k] for m in methods], dtype=torch.float32, device=device)  # (R, 1)
        self.losses = [
            (LOSSES[name], torch.tensor([i for i, loss in enumerate(losses) if loss == name], device=device))
            for name in sorted(set(losses))
        ]

    def __call__(self, tuple_scores: Tensor, unlabeled_scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return the objective and the four terms of the risk.

        Parameters
        ----------
        tuple_scores : Tensor, shape (R, B * M)
            Scores of all members of the minibatch's tuples.
        unlabeled_scores : Tensor, shape (R, B_U)
            Scores of the minibatch's unlabeled images.

        Returns
        -------
        objective : Tensor, shape (R,)
            The corrected risk, to be minimised.
        terms : Tensor, shape (R, 4)
            Weighted mean losses T+, T-, U+, U-; their sum is the unbiased estimate (Eq. 11).
        """
        means = torch.empty_like(self.weights)
        for loss, rows in self.losses:
            one = len(self.losses) == 1
            members = tuple_scores if one else tuple_scores[rows]
            others = unlabeled_scores if one else unlabeled_scores[rows]
            means[rows] = torch.stack(
                [loss(scores, label).mean(dim=1) for scores in (members, others) for label in (1, -1)], dim=1
            )
        return self.correct(self.weights * means)

    def correct(self, terms: Tensor) -> tuple[Tensor, Tensor]:
        """Return the objective (R,) that the four terms (R, 4) give, and the terms."""
        partial = torch.einsum("rpj,rj->rp", self.parts, terms)  # (R, 2)
        return correction(partial, self.k).sum(dim=1), terms


class CorrectedRiskHead(Head):
    """`RiskHead` with the weights that each task's tuple size and prior give; parameters of `Head`.

    With tuples of several sizes, the risk is the mean of the risks of each size, weighted by their numbers in the
    minibatch.
    """

    measures = tuple(f"risk_{term}" for term in TERMS)
    test_measures = ("test_risk",)

    def __init__(self, tasks: Sequence[Task], device: torch.device) -> None:
        super().__init__(tasks, device)
        self.methods = [method for task in tasks if isinstance(method := load_method(task.method), CorrectedRisk)]
        weights = [self._weights(r, task.tuple_size) for r, task in enumerate(tasks)]
        self.risk = RiskHead(self.methods, weights, [task.loss for task in tasks], device)

    def _weights(self, r: int, tuple_size: int) -> RiskWeights:
        return risk_weights(self.methods[r].tuple_size or tuple_size, self.tasks[r].prior)

    @cached_property
    def weights_by_size(self) -> Tensor:
        """Weights of each task and tuple size from 1 to M, (R, M, 4)."""
        rows = [
            [self._weights(r, size).as_tuple() for size in range(1, task.tuple_size + 1)]
            for r, task in enumerate(self.tasks)
        ]
        return torch.tensor(rows, dtype=torch.float32, device=self.device)

    def objective(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the corrected risk (R,) and the four terms of the uncorrected one (R, 4)."""
        if batch.sizes is None:
            return self.risk(batch.tuples.flatten(1), batch.unlabeled)
        terms = torch.stack([self._ragged_terms(batch, r) for r in range(len(self.tasks))])
        return self.risk.correct(terms)

    def _ragged_terms(self, batch: Batch, r: int) -> Tensor:
        """Return the four terms (4,) of one task with tuples of several sizes."""
        assert batch.sizes is not None
        loss, sizes = LOSSES[self.tasks[r].loss], batch.sizes[r]
        weights = self.weights_by_size[r, sizes - 1]  # (B, 4)
        terms = []
        for column, label in enumerate((1, -1)):
            losses = loss(batch.tuples[r], label) * batch.present[r]  # (B, M)
            terms.append((weights[:, column] * losses.sum(dim=1) / sizes).mean())
        for column, label in enumerate((1, -1), start=2):
            terms.append(weights[:, column].mean() * loss(batch.unlabeled[r], label).mean())
        return torch.stack(terms)

    def test(self, outputs: Callable[[Tensor], Tensor], images: TestImages) -> list[Tensor]:
        """Return the risk of the test images at the training prior, with the training loss, (R,) (Eq. 2)."""
        return [labelled_risk(self.tasks, outputs(images.images), images.labels)]


def labelled_risk(tasks: Sequence[Task], scores: Tensor, labels: Tensor) -> Tensor:
    """Return pi_+ mean_+ l(g, +1) + pi_- mean_- l(g, -1), (R,), of scores (R, N) of images with labels (N,) (Eq. 2)."""
    positive = labels > 0
    risks = []
    for task, own_scores in zip(tasks, scores, strict=True):
        loss = LOSSES[task.loss]
        positive_loss, negative_loss = loss(own_scores[positive], 1).mean(), loss(own_scores[~positive], -1).mean()
        risks.append(task.prior * positive_loss + (1 - task.prior) * negative_loss)
    return torch.stack(risks)
