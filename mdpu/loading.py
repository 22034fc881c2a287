"""Minibatches of tuples for your own training loop, from any source of instances by their index.

>>> loader = DataLoader(TupleDataset(images, data), batch_size=64, shuffle=True, collate_fn=collate)
>>> for batch in loader:
...     loss(*batch.split(network(batch.instances).squeeze(1))).backward()

The dataset holds indices alone. They and the source may be memory maps, because only the minibatch
is copied. Under several processes torch's ``DistributedSampler`` gives each its part, and
`mdpu.losses` sums the loss over them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, default_collate

from mdpu.data import TupleData

# the members of a tuple, and its share of the unlabeled instances
Item = tuple[list[Any], list[Any]]


@dataclass
class TupleBatch:
    """A minibatch, or one process's part of it.

    Attributes
    ----------
    instances : Tensor, shape (rows, ...), or mapping of Tensor
        All members, tuple by tuple, and after them the unlabeled instances, put together by
        `default_collate`.
    sizes : Tensor, int64, shape (B,)
        Number of members of each tuple.
    """

    instances: Any
    sizes: Tensor

    def split(self, scores: Tensor) -> tuple[Tensor | list[Tensor], Tensor]:
        """Return the scores (rows,) as losses take them: (B, M), or a list for tuples of several
        sizes, and (B_U,).
        """
        sizes = self.sizes.tolist()
        members = scores[: sum(sizes)]
        unlabeled = scores[sum(sizes) :]
        if len(set(sizes)) == 1:
            return members.view(len(sizes), -1), unlabeled
        return list(members.split(sizes)), unlabeled


class TupleDataset(Dataset[Item]):
    """Tuples, each with its share of the unlabeled instances.

    Parameters
    ----------
    source : indexable
        Instances by their index: an array, tensor or memory map, an image folder, a Hugging Face
        dataset.
    data : TupleData
    transform : callable, optional
        Makes an instance of an item of the source.
    """

    def __init__(
        self, source: Any, data: TupleData, transform: Callable[[Any], Any] | None = None
    ) -> None:
        self.source = source
        self.data = data
        self.transform = transform

    def __len__(self) -> int:
        """Return the number of tuples."""
        return len(self.data.tuples)

    def __getitem__(self, i: int) -> Item:
        """Return the members of a tuple, and its unlabeled instances; an instance serves several if
        there are few.
        """
        i = range(len(self))[i]  # counts from the end if negative, and ends an iteration
        n = len(self)
        n_unlabeled = len(self.data.unlabeled)
        start = min(i * n_unlabeled // n, n_unlabeled - 1)
        stop = max((i + 1) * n_unlabeled // n, start + 1)
        places = self.data.tuples[i]
        members = self._read(places[places >= 0])
        unlabeled = self._read(self.data.unlabeled[start:stop])
        return members, unlabeled

    def _read(self, indices: Any) -> list[Any]:
        rows = [self.source[i] for i in indices.tolist()]
        if self.transform is not None:
            return [self.transform(row) for row in rows]
        # torch warns of read-only rows, such as those of a memory map.
        return [np.array(row) if isinstance(row, np.ndarray) else row for row in rows]


def collate(items: Sequence[Item]) -> TupleBatch:
    """Return a minibatch of items, its unlabeled instances in random order, as losses make bags of
    neighbours.
    """
    tuples, shares = zip(*items, strict=True)
    members = list(itertools.chain.from_iterable(tuples))
    unlabeled = list(itertools.chain.from_iterable(shares))
    order = torch.randperm(len(unlabeled)).tolist()
    shuffled = [unlabeled[place] for place in order]
    instances = default_collate(members + shuffled)
    sizes = torch.tensor([len(of_tuple) for of_tuple in tuples])
    return TupleBatch(instances, sizes)


def accumulate(
    loss: Callable[[Any, Tensor], Tensor],
    scores: Callable[[TupleBatch], Tensor],
    batches: Sequence[TupleBatch],
) -> Tensor:
    """Add the gradient of the loss of several minibatches as if they were one, and return the loss.

    The sign of a corrected risk is not known before all of its parts are. So each minibatch is
    scored twice, once for the loss and again, by `torch.utils.checkpoint`, on the way back: the
    result is exact, also with dropout, and the memory is that of one minibatch. Running statistics
    of a batch normalisation are updated twice.

    Parameters
    ----------
    loss : callable
        `TupleLoss` or `RiskLoss`.
    scores : callable
        From a minibatch to its scores (rows,).
    batches : sequence of TupleBatch
    """
    parts = [batch.split(checkpoint(scores, batch, use_reentrant=False)) for batch in batches]
    rows = [row for tuples, _ in parts for row in tuples]
    alike = len({len(row) for row in rows}) == 1
    value = loss(
        torch.stack(rows) if alike else rows, torch.cat([unlabeled for _, unlabeled in parts])
    )
    value.backward()
    return value.detach()
