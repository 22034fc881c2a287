"""Tuples in any loop: what a dataset gives is what the tuples name, whoever reads it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler

from mdpu.data import TupleData, TupleDataset
from mdpu.law import Law
from mdpu.losses import TupleLoss

SOURCE = np.arange(100, dtype=np.float32)[:, None] * np.ones(3, dtype=np.float32)
PAIRS = TupleData(np.arange(20).reshape(10, 2), np.arange(40, 73))
RAGGED = TupleData(np.array([[0, 1, 2], [3, -1, -1], [4, 5, -1], [6, 7, 8]]), np.arange(50, 60))


@pytest.mark.parametrize(("data", "workers"), [(PAIRS, 0), (PAIRS, 2), (RAGGED, 0)])
def test_an_epoch_sees_every_tuple_and_every_unlabeled_instance_once(data, workers):
    dataset = TupleDataset(SOURCE, data)
    loader = DataLoader(dataset, 3, shuffle=True, collate_fn=dataset.collate, num_workers=workers)
    tuples, unlabeled = [], []
    for batch in loader:
        own, others = batch.split(batch.instances[:, 0])
        tuples += [tuple(members.int().tolist()) for members in own]
        unlabeled += others.int().tolist()
    assert sorted(tuples) == sorted(tuple(row[row >= 0].tolist()) for row in data.tuples)
    assert sorted(unlabeled) == data.unlabeled.tolist()


def test_another_epoch_groups_other_unlabeled_instances():
    dataset = TupleDataset(SOURCE, PAIRS)
    first = [row[0] for row in dataset[0][1]]
    dataset.set_epoch(1)
    assert first != [row[0] for row in dataset[0][1]]
    dataset.set_epoch(0)
    assert first == [row[0] for row in dataset[0][1]]


def test_ranks_share_the_tuples_and_the_unlabeled_instances():
    dataset, seen = TupleDataset(SOURCE, PAIRS), []
    for rank in range(2):
        sampler = DistributedSampler(dataset, num_replicas=2, rank=rank)
        for batch in DataLoader(dataset, 5, sampler=sampler, collate_fn=dataset.collate):
            seen += batch.instances[:, 0].int().tolist()
    assert sorted(seen) == sorted([*PAIRS.tuples.ravel().tolist(), *PAIRS.unlabeled.tolist()])


def test_batches_go_into_losses_with_gradients():
    dataset, network = TupleDataset(torch.from_numpy(SOURCE), RAGGED), torch.nn.Linear(3, 1)
    batch = dataset.collate([dataset[i] for i in range(4)])
    TupleLoss(Law.dominant, 0.4)(*batch.split(network(batch.instances).squeeze(1))).backward()
    assert network.weight.grad is not None and torch.isfinite(network.weight.grad).all()
