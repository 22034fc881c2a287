"""A torchvision backbone below the classifier: frozen layers, a slow last block, a new head.

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
        self.features = features
        self.head = nn.Linear(512, outputs)

    def train(self, mode=True):
        super().train(mode)
        is_reused = self.head.out_features == 1
        if is_reused:
            self.features.eval()  # it keeps its statistics
        return self

    def forward(self, x):
        pictures = interpolate(x, 32).expand(-1, 3, -1, -1)  # (N, 3, 32, 32)
        return self.head(self.features(pictures))


def pretrain(features, images, digits):
    """Train features to tell the digits 0 to 4 apart."""
    backbone = Backbone(features, outputs=5)
    x = torch.from_numpy(images[:, None] / 255).float()
    y = torch.from_numpy(digits)
    optimizer = torch.optim.Adam(backbone.parameters(), 1e-3)
    for _ in range(3):
        for batch in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            cross_entropy(backbone(x[batch]), y[batch]).backward()
            optimizer.step()


images, digits = load_digits(return_X_y=True)
images = (16 * images.clip(0, 15)).astype(np.uint8).reshape(-1, 8, 8)

# A real backbone: resnet18(weights="DEFAULT"), and no training here.
torch.manual_seed(0)
torch.set_num_threads(1)
layers = list(resnet18().children())[:6]
features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten())
pretrain(features, images[digits < 5], digits[digits < 5])
features[:5].requires_grad_(False)  # all but `layer2`, which is the sixth

# The digits 5 to 9 are new: even ones are positive, and tuples of three hold at least as many of
# them as odd ones.
images = images[digits > 4]
labels = np.where(digits[digits > 4] % 2 == 0, 1, -1).astype(np.int8)
is_train = np.arange(len(images)) < 600
split = draw_split(labels * is_train, 3, prior=0.4, n=60, n_unlabeled=120, trial=0)

network = Network(
    network=Backbone(features),
    rates={"features": 0.1},  # a tenth of the head's
    n_epochs=15,
    batch_size=10,
    learning_rate=2e-3,
)
classifier = MDPUClassifier(0.4, learner=network, compare_prior=False, random_state=0)
classifier.fit(images, split)

# The frozen layers are those of before, and no others.
frozen = tuple(f"features.{place}." for place in range(5))
learned = dict(classifier.model_.module.named_parameters())
for name, value in network.network.named_parameters():
    is_frozen = name.startswith(frozen)
    assert value.equal(learned[name]) == is_frozen, name

answers = classifier.predict(images[~is_train])
print(f"accuracy {(answers == labels[~is_train]).mean():.3f}")
