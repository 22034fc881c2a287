"""What the two baselines that embed images share: pairs from tuples, prototypes for test images.

No torch at the top: the files of methods import this one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mdpu.errors import UserError
from mdpu.learn.head import Batch, Head, rates
from mdpu.randomness import Stream

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.experiment import Run
    from mdpu.learn.trainer import TrainingData

SELECTIONS = 10


class PairHead(Head):
    """Base of heads that learn from pairs of embeddings and score by one prototype per class.

    Subclasses give `pair_loss` and `similarity`. Parameters as `Head`.

    Raises
    ------
    UserError
        If tuples have one member, because those hold no pair.
    """

    def __init__(self, runs: Sequence[Run], settings: Mapping[str, Any], device: torch.device) -> None:
        super().__init__(runs, settings, device)
        alone = next((run for run in runs if run.tuple_size < 2), None)
        if alone is not None:
            raise UserError(f"method {alone.method} learns from pairs; tuples of size {alone.tuple_size} hold none")

    def pair_loss(self, left: Tensor, right: Tensor, same: bool) -> Tensor:
        """Return the loss of each pair, (R, P), given embeddings (R, P, E) of its two images."""
        raise NotImplementedError

    def similarity(self, images: Tensor, prototype: Tensor) -> Tensor:
        """Return similarities (R, N) of embeddings (R, N, E) to one prototype per run, (R, 1, E)."""
        raise NotImplementedError

    def objective(self, batch: Batch) -> tuple[Tensor, None]:
        """Return (R,): the mean loss of "same" pairs and that of "not" pairs, averaged.

        All pairs of a tuple's members are "same". Each unlabeled image and its successor in the
        minibatch's random order, the last and the first too, are "not".
        """
        members = range(batch.tuples.shape[2])
        first, second = zip(*itertools.combinations(members, 2), strict=True)
        same = self.pair_loss(
            batch.tuples[:, :, list(first)].flatten(1, 2), batch.tuples[:, :, list(second)].flatten(1, 2), same=True
        )
        other = self.pair_loss(batch.unlabeled, batch.unlabeled.roll(-1, dims=1), same=False)
        return (same.mean(dim=1) + other.mean(dim=1)) / 2, None

    def rates(self, outputs: Callable[[Tensor], Tensor], data: TrainingData) -> tuple[Tensor, Tensor]:
        """Return the true-positive and the true-negative rate (R,), means over `SELECTIONS` of prototypes.

        A selection is one labelled training image of each class, drawn for the trial; the same
        selections serve at every epoch. A test image is positive if it is more similar to the positive
        prototype than to the negative one.
        """
        import torch

        assert data.train_labels is not None
        seeds = sorted({run.seed for run in self.runs})
        rows = torch.tensor([seeds.index(run.seed) for run in self.runs], device=self.device)
        chosen = torch.from_numpy(np.stack([prototypes(data.train_labels.cpu().numpy(), seed) for seed in seeds]))
        embedded = outputs(data.train_images[chosen.flatten().to(self.device)])  # (R, seeds * SELECTIONS * 2, E)
        embedded = embedded.unflatten(1, chosen.shape)[torch.arange(len(rows), device=self.device), rows]
        images = outputs(data.test_images)  # (R, N, E)
        found = []
        for positive, negative in zip(embedded[:, :, 0].unbind(1), embedded[:, :, 1].unbind(1), strict=True):
            nearer = self.similarity(images, positive[:, None]) > self.similarity(images, negative[:, None])
            found.append(torch.stack(rates(nearer, data.test_labels)))
        true_positive, true_negative = torch.stack(found).mean(dim=0)
        return true_positive, true_negative


def prototypes(labels: np.ndarray, seed: int) -> np.ndarray:
    """Return indices of a trial's prototypes, (SELECTIONS, 2): a positive and a negative image each."""
    columns = []
    for sign, side in ((1, "positive"), (-1, "negative")):
        pool = np.flatnonzero(labels == sign)
        columns.append(pool[Stream(seed, f"{side} prototypes").integers(pool.size, SELECTIONS)])
    return np.stack(columns, axis=1)
