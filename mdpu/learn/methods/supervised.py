"""Control: the same network on the same images with their true labels, the ceiling.

Every image of the minibatch, tuple member or unlabeled, counts once, as in ordinary training with the
run's loss. The tuples hold more positives than the prior says (a share a, Lemma 6), which is not
corrected for: it is what a practitioner who had these images labelled would train on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.learn.head import Batch, Head
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    from torch import Tensor


class SupervisedHead(Head):
    """Mean loss against the true labels; parameters of `Head`."""

    def objective(self, batch: Batch) -> tuple[Tensor, None]:
        """Return the mean loss (R,) over all images of the minibatch."""
        import torch

        from mdpu.learn.losses import LOSSES

        assert batch.tuple_labels is not None and batch.unlabeled_labels is not None
        scores = torch.cat([batch.tuples.flatten(1), batch.unlabeled], dim=1)  # (R, rows)
        labels = torch.cat([batch.tuple_labels.flatten(1), batch.unlabeled_labels], dim=1)
        losses = [LOSSES[run.loss](margins, 1) for run, margins in zip(self.runs, labels * scores, strict=True)]
        return torch.stack(losses).mean(dim=1), None


METHOD = NetworkMethod("Supervised", SupervisedHead, sees_labels=True, control=True)
