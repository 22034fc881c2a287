"""Minibatches in any loop: what a dataset gives is what the tuples name, whoever reads it."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from mdpu.data import TupleData
from mdpu.law import Law
from mdpu.loading import TupleDataset, accumulate, collate
from mdpu.losses import RiskLoss, TupleLoss

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


def load(source, data, size=3, transform=None, **options):
    return DataLoader(TupleDataset(source, data, transform), size, collate_fn=collate, **options)


def seen(batches) -> tuple[list[tuple[int, ...]], list[int]]:
    """Tuples and unlabeled instances of minibatches, by their first feature."""
    tuples = []
    unlabeled = []
    for batch in batches:
        own, others = batch.split(batch.instances[:, 0])
        tuples += [tuple(members.int().tolist()) for members in own]
        unlabeled += others.int().tolist()
    return tuples, unlabeled


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("data", [PAIRS, RAGGED])
def test_an_epoch_sees_every_tuple_and_every_unlabeled_instance_once(data, workers, memory_map):
    tuples, unlabeled = seen(load(memory_map, data, shuffle=True, num_workers=workers))
    assert sorted(tuples) == sorted(tuple(row[row >= 0].tolist()) for row in data.tuples)
    assert sorted(unlabeled) == data.unlabeled.tolist()


@pytest.mark.parametrize("source", [SOURCE, torch.from_numpy(SOURCE), Folder()])
def test_any_source_gives_the_same(source):
    transform = (lambda item: item[0]) if isinstance(source, Folder) else None
    torch.manual_seed(0)
    found = seen(load(source, RAGGED, transform=transform))
    torch.manual_seed(0)
    assert found == seen(load(SOURCE, RAGGED))


def test_dictionaries_of_tensors_are_instances_too():
    source = [{"input_ids": torch.full((4,), i), "mask": torch.ones(4)} for i in range(100)]
    batch = next(iter(load(source, PAIRS, 2)))
    assert batch.instances["input_ids"].shape == batch.instances["mask"].shape == (10, 4)


def test_unlabeled_instances_stand_beside_others_in_each_epoch():
    torch.manual_seed(0)
    first = seen(load(SOURCE, PAIRS, 10))
    second = seen(load(SOURCE, PAIRS, 10))
    assert first[0] == second[0] and first[1] != second[1]


def test_few_unlabeled_instances_stand_in_several_minibatches():
    _, unlabeled = seen(load(SOURCE, TupleData(PAIRS.tuples, np.array([50, 51])), 2))
    assert len(unlabeled) == 10
    assert set(unlabeled) == {50, 51}


def test_processes_share_the_tuples_by_the_sampler_of_torch():
    dataset = TupleDataset(SOURCE, PAIRS)
    tuples = []
    for rank in range(2):
        tuples += seen(load(SOURCE, PAIRS, sampler=DistributedSampler(dataset, 2, rank)))[0]
    assert sorted(tuples) == [tuple(row) for row in PAIRS.tuples.tolist()]


@pytest.mark.parametrize("data", [PAIRS, RAGGED])
@pytest.mark.parametrize("make", [TupleLoss, RiskLoss])
def test_accumulated_gradients_are_those_of_the_whole_batch(make, data):
    network = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1)).double()
    loss = make(Law.dominant, 0.3)
    batches = list(load(SOURCE.astype(float) / 100, data, 2))

    def scores(batch):
        return network(batch.instances).squeeze(1)

    torch.manual_seed(0)
    value = accumulate(loss, scores, batches)
    found = [p.grad.clone() for p in network.parameters()]
    torch.manual_seed(0)
    network.zero_grad()
    halves = [batch.split(scores(batch)) for batch in batches]
    rows = [row for own, _ in halves for row in own]
    expected = loss(
        rows if data is RAGGED else torch.stack(rows), torch.cat([others for _, others in halves])
    )
    expected.backward()
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    for own, p in zip(found, network.parameters(), strict=True):
        torch.testing.assert_close(own, p.grad)
