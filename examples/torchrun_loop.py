"""A loop under `torchrun`: a rank reads its part of a minibatch, the loss is that of the whole.

torchrun --nproc-per-node=2 examples/torchrun_loop.py
"""

import argparse

import torch
from digits import LAW, PRIOR, accuracy_of, perceptron, read
from torch import distributed
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
images, labels, train, held_out = read()
network = perceptron()
parallel = DistributedDataParallel(network)
optimizer = torch.optim.Adam(parallel.parameters(), lr=3e-3, weight_decay=5e-4)
loss = TupleLoss(LAW, PRIOR, process_group=distributed.group.WORLD)
dataset = TupleDataset(images, train)
sampler = DistributedSampler(dataset)
size = 64 // distributed.get_world_size()
loader = DataLoader(dataset, size, sampler=sampler, collate_fn=collate)

for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for batch in loader:
        optimizer.zero_grad()
        tuples, unlabeled = batch.split(parallel(batch.instances))
        loss(tuples, unlabeled).backward()
        optimizer.step()

    with torch.no_grad():
        scores = network(torch.from_numpy(images))
    if distributed.get_rank() == 0:
        measures = watch(LAW, PRIOR, scores[held_out.tuples], scores[held_out.unlabeled])
        print(f"epoch {epoch + 1}", *(f"{name} {value:.3f}" for name, value in measures.items()))

if distributed.get_rank() == 0:
    print(f"accuracy {accuracy_of(scores, labels):.3f}")
distributed.destroy_process_group()
