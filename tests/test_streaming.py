"""Minibatches in any loop: what a dataset or a stream gives is what the tuples name, whoever reads it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import DataLoader

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.losses import RiskLoss, TupleLoss
from mdpu.streaming import Shuffle, TupleDataset, TupleSampler, TupleStream, accumulate

SOURCE = np.arange(100, dtype=np.float32)[:, None] * np.ones(3, dtype=np.float32)
PAIRS = TupleData(np.arange(20).reshape(10, 2), np.arange(40, 73))
RAGGED = TupleData(np.array([[0, 1, 2], [3, -1, -1], [4, 5, -1], [6, 7, 8]]), np.arange(50, 60))


class Folder:
    """What an image folder is: items by their index, with a class that nobody may see."""

    def __getitem__(self, place: int) -> tuple[np.ndarray, int]:
        return SOURCE[place], 7


@pytest.fixture
def memory_map(tmp_path):
    SOURCE.tofile(tmp_path / "source")
    return np.memmap(tmp_path / "source", np.float32, "r", shape=SOURCE.shape)


def seen(batches) -> tuple[list[tuple[int, ...]], list[int]]:
    """Tuples and unlabeled instances of minibatches, by their first feature."""
    tuples, unlabeled = [], []
    for batch in batches:
        own, others = batch.split(batch.instances[:, 0])
        tuples += [tuple(members.int().tolist()) for members in own]
        unlabeled += others.int().tolist()
    return tuples, unlabeled


@given(st.integers(1, 3000), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_a_shuffle_is_an_order_of_all_numbers(n, seed):
    order = Shuffle(n, seed, "test")(np.arange(n))
    assert sorted(order.tolist()) == list(range(n))


def test_a_shuffle_looks_random():
    n = 20_000
    order = Shuffle(n, 0, "test")(np.arange(n)) / n
    table, *_ = np.histogram2d(np.arange(n) / n, order, bins=10, range=[[0, 1], [0, 1]])
    assert ((table - n / 100) ** 2 / (n / 100)).sum() < 130  # chi-squared, 81 degrees of freedom: p = 0.0004
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 4 / n**0.5
    assert abs(np.corrcoef(order, Shuffle(n, 0, "test", 1)(np.arange(n)))[0, 1]) < 4 / n**0.5


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("data", [PAIRS, RAGGED])
@pytest.mark.parametrize("ranks", [1, 3])
def test_an_epoch_sees_every_tuple_and_every_unlabeled_instance_once(data, workers, ranks, memory_map):
    tuples, unlabeled = [], []
    for rank in range(ranks):
        loader = TupleDataset(memory_map, data).loader(3, rank, ranks, num_workers=workers)
        own, others = seen(loader)
        tuples += own
        unlabeled += others
    assert sorted(tuples) == sorted(tuple(row[row >= 0].tolist()) for row in data.tuples)
    assert sorted(unlabeled) == data.unlabeled.tolist()


@pytest.mark.parametrize("source", [SOURCE, torch.from_numpy(SOURCE), Folder()])
def test_any_source_gives_the_same(source):
    transform = (lambda item: item[0]) if isinstance(source, Folder) else None
    found = seen(TupleDataset(source, RAGGED, transform).loader(2))
    assert found == seen(TupleDataset(SOURCE, RAGGED).loader(2))


def test_dictionaries_of_tensors_are_instances_too():
    source = [{"input_ids": torch.full((4,), i), "mask": torch.ones(4)} for i in range(100)]
    batch = next(iter(TupleDataset(source, PAIRS).loader(2)))
    assert batch.instances["input_ids"].shape == batch.instances["mask"].shape
    assert batch.instances["input_ids"].shape[1] == 4


def test_epochs_differ_and_a_seed_repeats_them():
    first, again, other = (TupleDataset(SOURCE, PAIRS, seed=seed).loader(4) for seed in (0, 0, 1))
    epochs = [seen(first), seen(first)]
    assert epochs == [seen(again), seen(again)]
    assert epochs[0] != epochs[1] != seen(other)
    first.batch_sampler.set_epoch(0)
    assert seen(first) == epochs[0]


@pytest.mark.parametrize(("n", "batch", "ranks"), [(10, 4, 3), (10, 1, 3), (7, 100, 7), (1000, 64, 4)])
def test_every_rank_has_as_many_minibatches_and_none_is_empty(n, batch, ranks):
    parts = [list(TupleSampler(n, batch, rank, ranks)) for rank in range(ranks)]
    assert {len(part) for part in parts} == {len(TupleSampler(n, batch, 0, ranks))}
    assert min(len(keys) for part in parts for keys in part) > 0
    with pytest.raises(UserError, match="do not suffice for"):
        TupleSampler(ranks - 1, batch, 0, ranks)


def test_few_unlabeled_instances_stand_in_several_minibatches():
    _, unlabeled = seen(TupleDataset(SOURCE, TupleData(PAIRS.tuples, np.array([50, 51]))).loader(2))
    assert len(unlabeled) == 10
    assert set(unlabeled) == {50, 51}


class Read(torch.utils.data.IterableDataset):
    """Rows as a stream, in a fixed order."""

    def __init__(self, start: int, stop: int, size: int) -> None:
        self.range, self.size = range(start, stop), size

    def __iter__(self):
        for i in self.range:
            yield torch.from_numpy(SOURCE[i]) if self.size == 1 else list(SOURCE[[i] * self.size])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("buffer", [0, 7])
def test_ranks_and_workers_share_a_stream(workers, buffer):
    tuples, unlabeled, counts = [], [], []
    for rank in range(2):
        stream = TupleStream(Read(0, 41, 2), Read(50, 60, 1), 4, 6, buffer, rank, 2)
        batches = list(DataLoader(stream, batch_size=None, num_workers=workers))
        counts.append(len(batches))
        own, others = seen(batches)
        tuples += own
        unlabeled += others
    shards = 2 * max(1, workers)
    assert counts == [41 // (2 * shards) * max(1, workers)] * 2
    assert len(set(tuples)) == len(tuples) == 2 * sum(counts)
    assert set(tuples) <= {(i, i) for i in range(41)}
    assert len(unlabeled) == 3 * sum(counts)
    assert set(unlabeled) == set(range(50, 60))


def test_a_stream_ends_with_an_iterator_of_unlabeled_instances_and_is_mixed_anew():
    def once():
        yield from SOURCE[50:60]

    assert len(list(TupleStream(Read(0, 40, 2), once(), 4, 4))) == 2
    stream = TupleStream(Read(0, 40, 2), Read(50, 60, 1), 4, 4, buffer=20)
    first = seen(stream)
    stream.set_epoch(1)
    assert first != seen(stream)


@pytest.mark.parametrize("data", [PAIRS, RAGGED])
@pytest.mark.parametrize("make", [TupleLoss, RiskLoss])
def test_accumulated_gradients_are_those_of_the_whole_batch(make, data):
    network, loss = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1)).double(), make(Law.dominant, 0.3)
    batches = list(TupleDataset(SOURCE.astype(float) / 100, data).loader(2))

    def scores(batch):
        return network(batch.instances).squeeze(1)

    torch.manual_seed(0)
    value = accumulate(loss, scores, batches)
    found = [p.grad.clone() for p in network.parameters()]
    torch.manual_seed(0)
    network.zero_grad()
    halves = [batch.split(scores(batch)) for batch in batches]
    rows = [row for own, _ in halves for row in own]
    expected = loss(rows if data is RAGGED else torch.stack(rows), torch.cat([others for _, others in halves]))
    expected.backward()
    assert value.item() == expected.item()
    for own, p in zip(found, network.parameters(), strict=True):
        torch.testing.assert_close(own, p.grad)
