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
    """Pictures (N, 1, H, W) through the layers of a ResNet-18 up to `layer2`, and a head."""

    def __init__(self, features, outputs=1):
        super().__init__()
        self.features, self.head = features, nn.Linear(512, outputs)

    def train(self, mode=True):
        super().train(mode)
        self.features.train(mode and self.head.out_features > 1)  # a backbone that is reused keeps its statistics
        return self

    def forward(self, x):
        return self.head(self.features(interpolate(x, 32).expand(-1, 3, -1, -1)))


images, digits = load_digits(return_X_y=True)
images = (16 * images.clip(0, 15)).astype(np.uint8).reshape(-1, 8, 8)

# A real backbone: resnet18(weights="DEFAULT"), and no training here, where it learns to tell the digits 0 to 4 apart.
torch.manual_seed(0)
torch.set_num_threads(1)
features = nn.Sequential(*list(resnet18().children())[:6], nn.AdaptiveAvgPool2d(2), nn.Flatten())
known = Backbone(features, outputs=5)
x, y = torch.from_numpy(images[digits < 5][:, None] / 255).float(), torch.from_numpy(digits[digits < 5])
optimizer = torch.optim.Adam(known.parameters(), 1e-3)
for part in (part for _ in range(3) for part in torch.randperm(len(x)).split(64)):
    optimizer.zero_grad()
    cross_entropy(known(x[part]), y[part]).backward()
    optimizer.step()

# The digits 5 to 9 are new: even ones are positive, and tuples of three hold at least as many of them as odd ones.
images, sides = images[digits > 4], np.where(digits[digits > 4] % 2, -1, 1).astype(np.int8)
train = np.arange(len(images)) < 600
split = draw_split(sides * train, 3, prior=0.4, n=60, n_unlabeled=120, trial=0)
features[:5].requires_grad_(False)  # all but `layer2`, which is the sixth
network = Network(network=Backbone(features), rates={"features": 0.1}, n_epochs=15, batch_size=10, learning_rate=2e-3)
classifier = MDPUClassifier(0.4, learner=network, compare_prior=False, random_state=0).fit(images, split)
learned = dict(classifier.model_.module.named_parameters())
same = [name for name, value in network.network.named_parameters() if value.equal(learned[name])]
assert same == [name for name in learned if name.startswith(tuple(f"features.{k}." for k in range(5)))]
print(f"accuracy {(classifier.predict(images[~train]) == sides[~train]).mean():.3f}")
