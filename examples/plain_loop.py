"""A plain loop, with a running mean of the weights and a log of what one can watch without labels.

python examples/plain_loop.py
"""

import argparse

import torch
from digits import LAW, PRIOR, read
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader
from watching import watch

from mdpu.loading import TupleDataset, collate
from mdpu.losses import TupleLoss

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=30)
epochs = parser.parse_args().epochs

torch.manual_seed(0)
images, labels, train, held = read()
network = nn.Sequential(nn.Flatten(), nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 1), nn.Flatten(0))
mean = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.98))
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3, weight_decay=5e-4)
loss = TupleLoss(LAW, PRIOR)
loader = DataLoader(TupleDataset(images, train), batch_size=64, shuffle=True, collate_fn=collate)

for epoch in range(epochs):
    for batch in loader:
        optimizer.zero_grad()
        loss(*batch.split(network(batch.instances))).backward()
        optimizer.step()
        mean.update_parameters(network)
    with torch.no_grad():
        scores = mean(torch.from_numpy(images))
    seen = watch(LAW, PRIOR, scores[held.tuples], scores[held.unlabeled])
    print(f"epoch {epoch + 1}", *(f"{name} {value:.3f}" for name, value in seen.items()))

answers = scores[1200:] > 0
print(f"accuracy {(answers == torch.from_numpy(labels[1200:] > 0)).float().mean():.3f}")
