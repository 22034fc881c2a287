"""The unbiased risk estimator and its corrections, for many runs at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from mdpu.law import SCOPES, Law, RiskWeights
from mdpu.learn.head import Batch, Head, TestImages
from mdpu.learn.method import CorrectedRisk
from mdpu.learn.methods import load_method
from mdpu.learn.task import Task
from mdpu.losses import LOSSES, corrected, margin_means

TERMS = ("tuple_positive", "tuple_negative", "unlabeled_positive", "unlabeled_negative")


class RiskHead:
    """Objective of R runs as a function of their scores.

    Parameters
    ----------
    methods : sequence of CorrectedRisk, length R
    weights : sequence of RiskWeights, length R
    losses : sequence of str, length R
        Keys of `mdpu.losses.LOSSES`.
    device : torch.device
    positions : Tensor, shape (R, M), optional
        What multiplies the losses of each position, if the order counts.
    """

    def __init__(
        self,
        methods: Sequence[CorrectedRisk],
        weights: Sequence[RiskWeights],
        losses: Sequence[str],
        device: torch.device,
        positions: Tensor | None = None,
    ) -> None:
        self.positions = positions
        self.weights = torch.tensor(list(weights), dtype=torch.float32, device=device)  # (R, 4)
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
        positions = None
        if self.positions is not None:
            positions = self.positions.repeat(1, tuple_scores.shape[1] // self.positions.shape[1])
        for loss, rows in self.losses:
            one = len(self.losses) == 1
            members = tuple_scores if one else tuple_scores[rows]
            others = unlabeled_scores if one else unlabeled_scores[rows]
            own_positions = positions if one or positions is None else positions[rows]
            means[rows] = margin_means(loss, members, others, own_positions)
        return self.correct(self.weights * means)

    def correct(self, terms: Tensor) -> tuple[Tensor, Tensor]:
        """Return the objective (R,) that the four terms (R, 4) give, and the terms."""
        return corrected(terms, self.parts, self.k), terms


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
        laws = [self._law(r, task.tuple_size) for r, task in enumerate(tasks)]
        weights = [law.risk_weights(task.prior, task.target_prior) for law, task in zip(laws, tasks, strict=True)]
        positions = None
        if any(law.ordered for law in laws):
            rows = np.stack([law.positions(task.prior) for law, task in zip(laws, tasks, strict=True)])
            positions = torch.from_numpy(rows).float().to(device)
        self.risk = RiskHead(self.methods, weights, [task.loss for task in tasks], device, positions)

    def _law(self, r: int, tuple_size: int) -> Law:
        assumed = self.methods[r].tuple_size
        return self.tasks[r].law_of(tuple_size) if assumed is None else Law.dominant(assumed)

    @cached_property
    def weights_by_size(self) -> Tensor:
        """Weights of each task and tuple size from 1 to M, (R, M, 4)."""
        rows = [
            [self._law(r, size).risk_weights(task.prior, task.target_prior) for size in range(1, task.tuple_size + 1)]
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
        sizes, loss, present = batch.sizes[r], LOSSES[self.tasks[r].loss], batch.present[r]
        weights = self.weights_by_size[r, sizes - 1]  # (B, 4)
        tuples, unlabeled = batch.tuples[r].where(present, 0), batch.unlabeled[r]
        members = [weights[:, i] * (loss(tuples, 1 - 2 * i) * present).sum(dim=1) / sizes for i in (0, 1)]
        own = [part.mean() for part in weights[:, 2:].unbind(1)]
        others = [own[i] * loss(unlabeled, 1 - 2 * i).mean() for i in (0, 1)]
        return torch.stack([*(part.mean() for part in members), *others])

    def test(self, outputs: Callable[[Tensor], Tensor], images: TestImages) -> list[Tensor]:
        """Return the risk of the test images at the training prior, with the training loss, (R,) (Eq. 2)."""
        return [labelled_risk(self.tasks, outputs(images.images), images.sides)]


def labelled_risk(tasks: Sequence[Task], scores: Tensor, sides: tuple[Tensor, Tensor]) -> Tensor:
    """Return pi_+ mean_+ l(g, +1) + pi_- mean_- l(g, -1), (R,), of scores (R, N) (Eq. 2), at the prior of the target.

    `sides` are the indices of the positive and of the negative images.
    """
    positive, negative = sides
    risks = []
    for task, own_scores in zip(tasks, scores, strict=True):
        loss = LOSSES[task.loss]
        positive_loss, negative_loss = loss(own_scores[positive], 1).mean(), loss(own_scores[negative], -1).mean()
        prior = task.prior if task.target_prior is None else task.target_prior
        risks.append(prior * positive_loss + (1 - prior) * negative_loss)
    return torch.stack(risks)
