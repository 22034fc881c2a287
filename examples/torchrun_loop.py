"""A loop under `torchrun`: every rank reads its part of a minibatch, and the loss is that of the whole.

torchrun --nproc-per-node=2 examples/torchrun_loop.py
"""

import argparse

import torch
from digits import LAW, PRIOR, read
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from watching import watch

from mdpu.loading import TupleDataset, collate
from mdpu.losses import TupleLoss

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=30)
epochs = parser.parse_args().epochs

distributed.init_process_group("gloo")  # "nccl" on GPUs
torch.manual_seed(0)
torch.set_num_threads(1)
images, labels, train, held = read()
layers = nn.Flatten(), nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 1), nn.Flatten(0)
network = DistributedDataParallel(nn.Sequential(*layers))
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3, weight_decay=5e-4)
loss = TupleLoss(LAW, PRIOR, process_group=distributed.group.WORLD)
dataset = TupleDataset(images, train)
sampler, size = DistributedSampler(dataset), 64 // distributed.get_world_size()
loader = DataLoader(dataset, size, sampler=sampler, collate_fn=collate)

for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for batch in loader:
        optimizer.zero_grad()
        loss(*batch.split(network(batch.instances))).backward()
        optimizer.step()
    with torch.no_grad():
        scores = network.module(torch.from_numpy(images))
    if distributed.get_rank() == 0:
        seen = watch(LAW, PRIOR, scores[held.tuples], scores[held.unlabeled])
        print(f"epoch {epoch + 1}", *(f"{name} {value:.3f}" for name, value in seen.items()))

if distributed.get_rank() == 0:
    print(f"accuracy {((scores[1200:] > 0) == torch.from_numpy(labels[1200:] > 0)).float().mean():.3f}")
distributed.destroy_process_group()
