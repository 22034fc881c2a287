"""A torchvision backbone: first its new last layer alone learns, then all layers at a lower rate.

python examples/backbone.py
"""

import argparse

import torch
from digits import LAW, PRIOR, read
from torch.nn.functional import interpolate
from torchvision.models import resnet18

from mdpu.losses import TupleLoss
from mdpu.monitoring import watch
from mdpu.streaming import TupleDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, nargs=2, default=(2, 8), help="frozen and free")
frozen, free = parser.parse_args().epochs

torch.manual_seed(0)
images, labels, train, held = read(400)
network = resnet18()  # a real one: resnet18(weights="DEFAULT")
network.fc = torch.nn.Linear(network.fc.in_features, 1)
loss, loader = TupleLoss(LAW, PRIOR), TupleDataset(images, train).loader(batch_size=50)


def scores_of(instances):
    """Return the scores (N,) of grey images (N, 8, 8), as colour pictures of 16 pixels."""
    return network(interpolate(instances[:, None], 16).expand(-1, 3, -1, -1)).squeeze(1)


for stage, epochs, rate in (("frozen", frozen, 1e-2), ("free", free, 1e-3)):
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(stage == "free" or name.startswith("fc."))
    optimizer = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=rate)
    for epoch in range(epochs):
        network.train(stage == "free")  # a frozen backbone keeps its running statistics too
        for batch in loader:
            optimizer.zero_grad()
            loss(*batch.split(scores_of(batch.instances))).backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            scores = torch.cat([scores_of(part) for part in torch.from_numpy(images).split(300)])
        seen = watch(LAW, PRIOR, scores[held.tuples], scores[held.unlabeled])
        print(stage, epoch + 1, *(f"{name} {value:.3f}" for name, value in seen.items()))

print(f"accuracy {((scores[1200:] > 0) == torch.from_numpy(labels[1200:] > 0)).float().mean():.3f}")
