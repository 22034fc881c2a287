"""The unbiased risk estimator and its corrections, for many runs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from mdpu.learn.head import Batch, Head, assumed_prior
from mdpu.learn.losses import LOSSES
from mdpu.learn.method import SCOPES, CorrectedRisk
from mdpu.learn.methods import load_method
from mdpu.study.grid import Run
from mdpu.theory import RiskWeights, risk_weights


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
            of_tuples = tuple_scores if one else tuple_scores[rows]
            of_unlabeled = unlabeled_scores if one else unlabeled_scores[rows]
            means[rows] = torch.stack(
                [loss(scores, label).mean(dim=1) for scores in (of_tuples, of_unlabeled) for label in (1, -1)], dim=1
            )
        terms = self.weights * means
        partial = torch.einsum("rpj,rj->rp", self.parts, terms)  # (R, 2)
        return correction(partial, self.k).sum(dim=1), terms


class CorrectedRiskHead(Head):
    """`RiskHead` with the weights that each run's tuple size and assumed prior give; parameters of `Head`."""

    def __init__(self, runs: Sequence[Run], settings: Mapping[str, Any], device: torch.device) -> None:
        super().__init__(runs, settings, device)
        methods = [method for run in runs if isinstance(method := load_method(run.method), CorrectedRisk)]
        self.risk = RiskHead(
            methods,
            [
                risk_weights(method.tuple_size or run.tuple_size, assumed_prior(run, settings))
                for method, run in zip(methods, runs, strict=True)
            ],
            [run.loss for run in runs],
            device,
        )

    def objective(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the corrected risk (R,) and the four terms of the uncorrected one (R, 4)."""
        return self.risk(batch.tuples.flatten(1), batch.unlabeled)
