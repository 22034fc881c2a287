"""A torchvision backbone below the classifier: frozen layers, a last block at a tenth of the rate, a head of its own.

python examples/backbone.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy, interpolate
from torchvision.models import resnet18

from mdpu.data import draw_split
from mdpu.estimator import MDPUClassifier, Network


class Backbone(nn.Module):
    """Pictures (N, 1, H, W) through a ResNet without its last layer, and a head."""

    def __init__(self, features, outputs=1):
        super().__init__()
        self.features, self.head = features, nn.Linear(512, outputs)

    def train(self, mode=True):
        super().train(mode)
        self.features.train(mode and self.head.out_features > 1)  # a backbone that is reused keeps its statistics
        return self

    def forward(self, x):
        return self.head(self.features(interpolate(x, 16).expand(-1, 3, -1, -1)))


images, digits = load_digits(return_X_y=True)
images = (16 * images.clip(0, 15)).astype(np.uint8).reshape(-1, 8, 8)

# A real backbone: features = resnet18(weights="DEFAULT"). Here it learns to tell the digits 0 to 4 from one another.
torch.manual_seed(0)
torch.set_num_threads(1)
features = resnet18()
features.fc = nn.Identity()
known = Backbone(features, outputs=5)
x, y = torch.from_numpy(images[digits < 5][:, None] / 255).float(), torch.from_numpy(digits[digits < 5])
optimizer = torch.optim.Adam(known.parameters(), 1e-3)
for part in (part for _ in range(4) for part in torch.randperm(len(x)).split(64)):
    optimizer.zero_grad()
    cross_entropy(known(x[part]), y[part]).backward()
    optimizer.step()

# The digits 5 to 9 are new: even ones are positive, and tuples of three hold at least as many of them as odd ones.
images, sides = images[digits > 4], np.where(digits[digits > 4] % 2, -1, 1).astype(np.int8)
train = np.arange(len(images)) < 600
split = draw_split(sides * train, 3, prior=0.4, n=300, n_unlabeled=600, trial=0)
for name, parameter in features.named_parameters():
    parameter.requires_grad_(name.startswith("layer4"))
network = Network(network=Backbone(features), rates={"features": 0.1}, n_epochs=10, batch_size=30, learning_rate=1e-3)
classifier = MDPUClassifier(0.4, learner=network, random_state=0).fit(images, split)
print(f"accuracy {(classifier.predict(images[~train]) == sides[~train]).mean():.3f}")
