"""Control: the same network on the same images with their true labels, the ceiling.

Every image of the minibatch, tuple member or unlabeled, counts once, as in ordinary training with the
run's loss. The tuples contain more positives than the prior says (a share a, Lemma 6). This is not
corrected, because a practitioner who had these images labelled would train on them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mdpu.learn.head import Batch, Head, TestImages
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    from torch import Tensor


class SupervisedHead(Head):
    """Mean loss against the true labels; parameters of `Head`."""

    test_measures = ("test_risk",)

    def objective(self, batch: Batch) -> tuple[Tensor, None]:
        """Return the mean loss (R,) over all images of the minibatch."""
        import torch

        from mdpu.losses import LOSSES

        assert batch.tuple_labels is not None and batch.unlabeled_labels is not None
        scores = torch.cat([batch.tuples.flatten(1), batch.unlabeled], dim=1)  # (R, rows)
        labels = torch.cat([batch.tuple_labels.flatten(1), batch.unlabeled_labels], dim=1)
        losses = [LOSSES[task.loss](margins, 1) for task, margins in zip(self.tasks, labels * scores, strict=True)]
        return torch.stack(losses).mean(dim=1), None

    def test(self, outputs: Callable[[Tensor], Tensor], images: TestImages) -> list[Tensor]:
        """Return the risk of the test images at the training prior, (R,)."""
        from mdpu.learn.risk import labelled_risk

        return [labelled_risk(self.tasks, outputs(images.images), images.sides)]


METHOD = NetworkMethod("Supervised", SupervisedHead, sees_labels=True, control=True)
