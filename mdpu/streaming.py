"""Minibatches of tuples from any source, by index or as a stream, for a loop of one's own. Memory does not grow.

>>> dataset = TupleDataset(images, data)
>>> for batch in dataset.loader(batch_size=64):
...     loss(*batch.split(network(batch.instances).squeeze(1))).backward()

Ranks and workers share the work: a minibatch is that of all ranks, and each reads its part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, distributed
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, default_collate, get_worker_info

from mdpu.data import Indices, TupleData
from mdpu.errors import UserError
from mdpu.randomness import Stream

ROUNDS = 6


@dataclass
class TupleBatch:
    """A minibatch, or one rank's part of it.

    Attributes
    ----------
    instances : Tensor, shape (rows, ...), or mapping of Tensor
        All members, tuple by tuple, and after them the unlabeled instances; what `default_collate` makes of them.
    sizes : Tensor, int64, shape (B,)
        Number of members of each tuple.
    """

    instances: Any
    sizes: Tensor

    def split(self, scores: Tensor) -> tuple[Tensor | list[Tensor], Tensor]:
        """Return the scores (rows,) as losses take them: (B, M), or a list for tuples of several sizes, and (B_U,)."""
        sizes = self.sizes.tolist()
        members, unlabeled = scores[: sum(sizes)], scores[sum(sizes) :]
        if len(set(sizes)) == 1:
            return members.view(len(sizes), -1), unlabeled
        return list(members.split(sizes)), unlabeled


class Shuffle:
    """A pseudorandom order of 0 .. n - 1 that takes no memory.

    A Feistel cipher permutes the numbers of as many bits; those that leave the range are enciphered again (Black and
    Rogaway, 2002).

    Parameters
    ----------
    n : int
    seed, purpose, *indices
        As of `Stream`.
    """

    def __init__(self, n: int, seed: int | str, purpose: str, *indices: int) -> None:
        self.n, self._bits = n, np.uint64(max(1, math.ceil((n - 1).bit_length() / 2)))  # of each half
        self._keys = Stream(seed, purpose, *indices).integers(2**31, ROUNDS).astype(np.uint64)

    def __call__(self, places: ArrayLike) -> Indices:
        """Return what stands at the places, (...)."""
        numbers = self._cipher(np.asarray(places, np.uint64))
        while (outside := numbers >= self.n).any():
            numbers[outside] = self._cipher(numbers[outside])
        return numbers.astype(np.int64)

    def _cipher(self, numbers: Any) -> Any:
        mask = (np.uint64(1) << self._bits) - np.uint64(1)
        left, right = numbers >> self._bits, numbers & mask
        for key in self._keys:
            mixed = ((right ^ key) + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
            left, right = right, left ^ ((mixed >> np.uint64(32)) & mask)
        return (left << self._bits) | right


class TupleDataset(Dataset[TupleBatch]):
    """Tuples, each with its share of the unlabeled instances, for a torch ``DataLoader``.

    It holds indices alone. These and the source may lie in memory maps, and nothing is copied but the minibatch.

    Parameters
    ----------
    source : indexable
        Instances by their index: an array, tensor or memory map, an image folder, a Hugging Face dataset.
    data : TupleData
    transform : callable, optional
        From what the source holds to an instance.
    seed : int or str
        Of all orders.
    """

    def __init__(
        self, source: Any, data: TupleData, transform: Callable[[Any], Any] | None = None, seed: int | str = 0
    ) -> None:
        self.source, self.data, self.transform, self.seed = source, data, transform, seed

    def __len__(self) -> int:
        """Return the number of tuples."""
        return len(self.data.tuples)

    def __getitem__(self, key: int) -> TupleBatch:
        """Return one tuple and its unlabeled instances."""
        return self.__getitems__([key])

    def __getitems__(self, keys: Sequence[int]) -> TupleBatch:
        """Return tuples and their unlabeled instances. Beyond the number of tuples, keys name those of later epochs."""
        n, n_unlabeled = len(self), len(self.data.unlabeled)
        places = np.asarray(keys, np.int64)
        epoch, places = int(places[0]) // n, places % n
        # With fewer unlabeled instances than tuples, one is used several times.
        starts = np.minimum(places * n_unlabeled // n, n_unlabeled - 1)
        stops = np.maximum((places + 1) * n_unlabeled // n, starts + 1)
        shares = [np.arange(*edges) for edges in zip(starts, stops, strict=True)]
        order = Shuffle(n_unlabeled, self.seed, "unlabeled order of a dataset", epoch)
        tuples = np.asarray(self.data.tuples[places])
        present = tuples >= 0
        indices = np.concatenate([tuples[present], self.data.unlabeled[order(np.concatenate(shares))]])
        return TupleBatch(self._read(indices), torch.from_numpy(present.sum(axis=1)))

    def _read(self, indices: Indices) -> Any:
        if isinstance(self.source, np.ndarray | Tensor) and self.transform is None:
            return torch.as_tensor(self.source[indices])
        read = getattr(self.source, "__getitems__", lambda chosen: [self.source[i] for i in chosen])
        rows = read(indices.tolist())
        return default_collate(rows if self.transform is None else [self.transform(row) for row in rows])

    @staticmethod
    def collate(batch: Any) -> Any:
        """Return a minibatch as it is, because it was read as one."""
        return batch

    def loader(
        self, batch_size: int, rank: int | None = None, ranks: int | None = None, **options: Any
    ) -> DataLoader[TupleBatch]:
        """Return a ``DataLoader`` with a `TupleSampler`; parameters are those of both."""
        sampler = TupleSampler(len(self), batch_size, rank, ranks, self.seed)
        return DataLoader(self, batch_sampler=sampler, collate_fn=self.collate, **options)


class TupleSampler(Sampler[list[int]]):
    """Minibatches of keys of a `TupleDataset`, in another order in each epoch.

    All ranks have equally many minibatches, and at least one tuple in each. Every tuple is seen once in an epoch.

    Parameters
    ----------
    n : int
        Number of tuples.
    batch_size : int
        Tuples of a minibatch, on all ranks together.
    rank, ranks : int, optional
        By default those of ``torch.distributed``, where it is initialised.
    seed : int or str
    """

    def __init__(
        self, n: int, batch_size: int, rank: int | None = None, ranks: int | None = None, seed: int | str = 0
    ) -> None:
        self.n, self.seed, self.epoch = n, seed, 0
        self.rank, self.ranks = own_rank(rank, ranks)
        if batch_size < 1 or n < self.ranks:
            raise UserError(f"{n} tuples in minibatches of {batch_size} do not suffice for {self.ranks} ranks")
        self._steps = min(-(-n // batch_size), n // self.ranks)

    def __len__(self) -> int:
        """Return the number of minibatches of an epoch."""
        return self._steps

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch that comes next; without it epochs are counted."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the keys of each minibatch of the next epoch."""
        order, first = Shuffle(self.n, self.seed, "tuple order of a dataset", self.epoch), self.epoch * self.n
        self.epoch += 1
        for step in range(self._steps):
            start, stop = (edge * self.n // self._steps for edge in (step, step + 1))
            yield (first + order(np.arange(start + self.rank, stop, self.ranks))).tolist()


class TupleStream(IterableDataset[TupleBatch]):
    """Minibatches from a stream of tuples and one of unlabeled instances, for ``DataLoader(stream, batch_size=None)``.

    Each rank and worker reads both streams and keeps its part. What is left at the end makes no minibatch, so that all
    have equally many. Unlabeled instances begin again when they end.

    Parameters
    ----------
    tuples : iterable
        Of tuples, sequences of instances.
    unlabeled : iterable
        Of instances. Bags are made of neighbours, so their order must be random; `buffer` mixes one that is nearly so.
    batch_size, n_unlabeled : int
        Tuples and unlabeled instances of a minibatch, on all ranks together.
    buffer : int
        Tuples and unlabeled instances that are held to be mixed.
    rank, ranks : int, optional
        As of `TupleSampler`. Streams that are cut for each rank already take 0 and 1.
    seed : int or str
        Of the mixing.
    """

    def __init__(
        self,
        tuples: Iterable[Sequence[Any]],
        unlabeled: Iterable[Any],
        batch_size: int,
        n_unlabeled: int,
        buffer: int = 0,
        rank: int | None = None,
        ranks: int | None = None,
        seed: int | str = 0,
    ) -> None:
        self.tuples, self.unlabeled, self.buffer, self.seed, self.epoch = tuples, unlabeled, buffer, seed, 0
        self.rank, self.ranks = own_rank(rank, ranks)
        self.counts = [max(1, count // self.ranks) for count in (batch_size, n_unlabeled)]

    def set_epoch(self, epoch: int) -> None:
        """Mix in another order; before each epoch, where workers are not kept alive."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[TupleBatch]:
        """Yield this worker's minibatches."""
        worker = get_worker_info()
        workers, own = (worker.num_workers, worker.id) if worker else (1, 0)
        shards = slice(self.rank * workers + own, None, self.ranks * workers)
        for tuples, unlabeled in zip(
            self._groups(self.tuples, self.counts[0], shards),
            self._groups(_again(self.unlabeled), self.counts[1], shards),
            strict=False,
        ):
            rows = [*itertools.chain.from_iterable(tuples), *unlabeled]
            yield TupleBatch(default_collate(rows), torch.tensor([len(members) for members in tuples]))

    def _groups(self, items: Iterable[Any], count: int, shards: slice) -> Iterator[list[Any]]:
        mixed = self._mixed(iter(items))
        while len(group := list(itertools.islice(mixed, count * shards.step))) == count * shards.step:
            yield group[shards]

    def _mixed(self, items: Iterator[Any]) -> Iterator[Any]:
        held, draws = list(itertools.islice(items, self.buffer)), Stream(self.seed, "mixing of a stream", self.epoch)
        places: list[int] = []
        for item in items:
            if held:
                places = places or draws.integers(len(held), 1024).tolist()
                place = places.pop()
                held[place], item = item, held[place]
            yield item
        yield from (held[place] for place in draws.permutation(len(held)).tolist())


def _again(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items again and again, those of an iterator once."""
    found = True
    while found:
        found = False
        for item in items:
            found = True
            yield item


def own_rank(rank: int | None, ranks: int | None) -> tuple[int, int]:
    """Return rank and number of ranks as they are given, or those of ``torch.distributed``, or 0 and 1."""
    there = distributed.is_available() and distributed.is_initialized()
    own = (distributed.get_rank(), distributed.get_world_size()) if there else (0, 1)
    return own[0] if rank is None else rank, own[1] if ranks is None else ranks


def accumulate(
    loss: Callable[[Any, Tensor], Tensor], scores: Callable[[TupleBatch], Tensor], batches: Sequence[TupleBatch]
) -> Tensor:
    """Add the gradient of the loss of several minibatches as of one, and return its value.

    The sign of a corrected risk is not known before all of its parts are. So each minibatch is scored twice: without
    a graph for the loss, which gives the gradient of each score, and again to pass it on (GradCache, Gao et al., 2021).
    The result is exact, for the price of another forward pass. What the network draws, as dropout does, is the same in
    both; running statistics of a batch normalisation are updated twice.

    Parameters
    ----------
    loss : callable
        `TupleLoss` or `RiskLoss`.
    scores : callable
        From a minibatch to its scores (rows,).
    batches : sequence of TupleBatch
    """
    leaves, states = [], []
    with torch.no_grad():
        for batch in batches:
            states.append(_generators())
            leaves.append(scores(batch).detach().requires_grad_())
    parts = [batch.split(leaf) for batch, leaf in zip(batches, leaves, strict=True)]
    tuples, unlabeled = zip(*parts, strict=True)
    rows = [row for own in tuples for row in own]
    alike = len({len(row) for row in rows}) == 1
    value = loss(torch.stack(rows) if alike else rows, torch.cat(unlabeled))
    gradients = torch.autograd.grad(value, leaves)
    for batch, gradient, (cpu, gpus) in zip(batches, gradients, states, strict=True):
        torch.set_rng_state(cpu)
        if gpus:
            torch.cuda.set_rng_state_all(gpus)
        scores(batch).backward(gradient)
    return value.detach()


def _generators() -> tuple[Tensor, list[Tensor]]:
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
