"""A plain loop, with a running mean of the weights and a log of what one can watch without labels.

python examples/plain_loop.py
"""

import argparse

import torch
from digits import LAW, PRIOR, accuracy_of, perceptron, read
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader
from watching import watch

from mdpu.loading import TupleDataset, collate
from mdpu.losses import TupleLoss

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=30)
epochs = parser.parse_args().epochs

torch.manual_seed(0)
images, labels, train, held_out = read()
network = perceptron()
mean = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.98))
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3, weight_decay=5e-4)
loss = TupleLoss(LAW, PRIOR)
loader = DataLoader(TupleDataset(images, train), batch_size=64, shuffle=True, collate_fn=collate)

for epoch in range(epochs):
    for batch in loader:
        optimizer.zero_grad()
        tuples, unlabeled = batch.split(network(batch.instances))
        loss(tuples, unlabeled).backward()
        optimizer.step()
        mean.update_parameters(network)

    with torch.no_grad():
        scores = mean(torch.from_numpy(images))
    measures = watch(LAW, PRIOR, scores[held_out.tuples], scores[held_out.unlabeled])
    print(f"epoch {epoch + 1}", *(f"{name} {value:.3f}" for name, value in measures.items()))

print(f"accuracy {accuracy_of(scores, labels):.3f}")
