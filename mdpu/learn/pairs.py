"""What the two embedding baselines share: pairs from tuples, prototypes for test images.

torch is not imported at the top, because the files of methods import this one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mdpu.errors import UserError
from mdpu.learn.head import Batch, Head, TestImages, rates
from mdpu.randomness import Stream

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.learn.task import Task

SELECTIONS = 10


class PairHead(Head):
    """Base of heads that learn from pairs of embeddings and score by one prototype per class.

    Subclasses define `embedding`, `pair_loss` and `similarities`. Parameters are those of `Head`.

    Raises
    ------
    UserError
        If tuples have one member, because these contain no pair.
    """

    has_score = False

    def __init__(self, tasks: Sequence[Task], device: torch.device) -> None:
        super().__init__(tasks, device)
        alone = next((task for task in tasks if task.tuple_size < 2), None)
        if alone is not None:
            raise UserError(f"method {alone.method} learns from pairs; tuples of size {alone.tuple_size} hold none")
        self._drawn: np.ndarray | None = None
        self._places: dict[int, tuple[Tensor, Tensor]] = {}

    def _pairs(self, size: int) -> tuple[Tensor, Tensor]:
        """Return the places of the first and of the second member of each pair of a tuple, on the device."""
        import torch

        if size not in self._places:
            pairs = torch.tensor(list(itertools.combinations(range(size), 2)), device=self.device)
            self._places[size] = pairs[:, 0], pairs[:, 1]
        return self._places[size]

    def embedding(self, outputs: Tensor) -> Tensor:
        """Return the embeddings (R, ..., E) to compare, given the network's outputs."""
        return outputs

    def pair_loss(self, left: Tensor, right: Tensor, same: bool) -> Tensor:
        """Return the loss of each pair, (R, P), given embeddings (R, P, E) of its two images."""
        raise NotImplementedError

    def similarities(self, images: Tensor, prototypes: Tensor) -> Iterator[Tensor]:
        """Yield the similarities (R, N) of images (R, N, E) to each of the prototypes (R, P, E), by embedding."""
        raise NotImplementedError

    def objective(self, batch: Batch) -> tuple[Tensor, None]:
        """Return (R,): the average of the mean loss of "same" pairs and the mean loss of "not" pairs.

        All pairs of a tuple's members are "same". Each unlabeled image and its successor in the
        minibatch's random order are "not"; the first image follows the last.
        """
        tuples, unlabeled = self.embedding(batch.tuples), self.embedding(batch.unlabeled)
        first, second = self._pairs(tuples.shape[2])
        same = self.pair_loss(tuples[:, :, first].flatten(1, 2), tuples[:, :, second].flatten(1, 2), True)
        other = self.pair_loss(unlabeled, unlabeled.roll(-1, dims=1), False)
        return (same.mean(dim=1) + other.mean(dim=1)) / 2, None

    def rates(self, outputs: Callable[[Tensor], Tensor], images: TestImages) -> tuple[Tensor, Tensor]:
        """Return the true-positive and the true-negative rate (R,), means over `SELECTIONS` of prototypes.

        A selection is one labelled training image of each class. The selections are drawn once for the
        trial and used at every epoch. A test image is positive if it is more similar to the positive
        prototype than to the negative one.
        """
        import torch

        chosen = self._prototypes(images)  # (R, 2 * SELECTIONS)
        distinct, flat = np.unique(chosen, return_inverse=True)
        places = torch.from_numpy(flat.reshape(chosen.shape)).to(self.device)
        rows = torch.arange(len(chosen), device=self.device)[:, None]
        embedded = self.embedding(outputs(images.train_images(distinct)))[rows, places]  # (R, 2 * SELECTIONS, E)
        similarities = self.similarities(self.embedding(outputs(images.images)), embedded)
        selection_rates = [
            torch.stack(rates(positive > next(similarities), images.sides)) for positive in similarities
        ]  # a positive prototype's similarities come first, then the negative one's of the same selection
        true_positive, true_negative = torch.stack(selection_rates).mean(dim=0)
        return true_positive, true_negative

    def _prototypes(self, images: TestImages) -> np.ndarray:
        """Return the prototypes of each run, (R, 2 * SELECTIONS), drawn once: positive and negative in turn."""
        if self._drawn is None:
            seeds = {task.seed for task in self.tasks}
            drawn = {seed: prototypes(images.train_labels, seed).ravel() for seed in seeds}
            self._drawn = np.stack([drawn[task.seed] for task in self.tasks])
        return self._drawn


def prototypes(labels: np.ndarray, seed: int | str) -> np.ndarray:
    """Return indices of a trial's prototypes, (SELECTIONS, 2): a positive and a negative image each."""
    columns = []
    for sign, side in ((1, "positive"), (-1, "negative")):
        pool = np.flatnonzero(labels == sign)
        columns.append(pool[Stream(seed, f"{side} prototypes").integers(pool.size, SELECTIONS)])
    return np.stack(columns, axis=1)
