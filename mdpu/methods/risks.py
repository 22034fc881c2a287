"""The paper's unbiased risk of single members and its corrections (Theorem 1, Eqs. 11 and 14-16).

`nnpu` is the naive use of the paper's data (Kiryo et al., 2017): every member counts as a positive,
which are the weights of tuple size 1. A share b of the members is negative (Lemma 6), so its
estimate is biased. Where its negative part falls below zero, Kiryo et al. ascend its gradient
(their Algorithm 1). Here the gradient is zero there, as in their Eq. 6 and in `relu-class`, so that
the two methods differ only in their weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mdpu.errors import UserError
from mdpu.law import SCOPES, Law
from mdpu.losses import LOSSES, corrected, margin_means
from mdpu.methods import Batch, Objective

TERMS = ("tuple_positive", "tuple_negative", "unlabeled_positive", "unlabeled_negative")


class CorrectedRisk(Objective):
    """f of the risk, or of its two parts; it records the four terms T+, T-, U+, U-, whose sum
    estimates the risk.
    """

    measures = tuple(f"risk_{term}" for term in TERMS)
    test_measures = ("test_risk",)

    def begin(self) -> None:
        """Make the weights of the four terms by tuple size (M, 4), and the two parts that f is
        applied to (2, 4).
        """
        task = self.task
        assumed = self.method.tuple_size
        if task.loss not in LOSSES:
            raise UserError(f"loss is {task.loss!r}; it must be one of {', '.join(LOSSES)}")
        sizes = range(1, int(task.tuple_size) + 1)
        laws = [task.law_of(size) if assumed is None else Law.dominant(assumed) for size in sizes]
        weights = [law.risk_weights(task.prior, task.target_prior) for law in laws]  # Theorem 1
        self.weights = torch.tensor(weights, device=self.device)
        self.loss = LOSSES[task.loss]
        self.parts = self.weights.new_tensor(SCOPES[self.method.scope])

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the corrected risk (S,) and the four terms (S, 4)."""
        if batch.sizes is None:
            terms = self.weights[-1] * margin_means(
                self.loss, batch.tuples.flatten(1), batch.unlabeled
            )
        else:
            terms = self.terms_of_several_sizes(batch.tuples, batch.unlabeled, batch.sizes)
        return corrected(terms, self.parts, self.method.k), terms.detach()

    def terms_of_several_sizes(self, tuples: Tensor, unlabeled: Tensor, sizes: Tensor) -> Tensor:
        """Return the means of the terms (S, 4) of each size, by the numbers of their tuples."""
        weights = self.weights[sizes - 1]  # (S, B, 4)
        absent = torch.arange(tuples.shape[2], device=sizes.device) >= sizes[..., None]  # (S, B, M)
        terms = []
        for i, label in enumerate((1, -1)):
            losses = self.loss(tuples.masked_fill(absent, 0.0), label).masked_fill(absent, 0.0)
            terms.append((weights[..., i] * losses.sum(dim=2) / sizes).mean(dim=1))
        for i, label in ((2, 1), (3, -1)):
            terms.append(weights[..., i].mean(dim=1) * self.loss(unlabeled, label).mean(dim=1))
        return torch.stack(terms, dim=1)
