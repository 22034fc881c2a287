"""What the paper does not say of CIFAR-10, one choice at a time, on a CPU.

ReLU and ABS end above the paper's numbers, and the paper says nothing of what may explain it:
whether images are normalised or augmented, and whether batch normalisation takes the statistics of
the test images. Each choice is trained beside none of them, on the same tuples with the same
initial weights, for few epochs on few tuples, because an epoch of ResNet-34 on 10,000 tuples takes
a CPU more than eight minutes.

A line of the CSV has the accuracies of a run in percent: the mean of all epochs, the last and the
best one, and the objective at the end. Lines that the CSV has are kept.

    OMP_NUM_THREADS=1 python benchmarks/colour_choices.py cifar-10.npz --out choices.csv
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from shared import LabelledImages, Lines, accuracies_of
from torch import Tensor, nn
from torchvision.models import resnet34

from mdpu.data import draw_split
from mdpu.settings import Settings, Task
from mdpu.train import train

POSITIVE = (2, 3, 4, 5, 6, 7)  # bird, cat, deer, dog, frog, horse
METHODS = ("ure", "relu", "abs")
PRIOR = 0.5
SHIFT = 4  # pixels up to which an augmented image is moved
# of CIFAR-10's training images, by channel
MEANS = (0.4914, 0.4822, 0.4465)
DEVIATIONS = (0.2470, 0.2435, 0.2616)


def read(path: Path, tests: int) -> LabelledImages:
    """Return the images as the paper divides them, with some of the test images."""
    with np.load(path) as arrays:
        parts = dict(arrays)
    labels = {}
    for part in ("train", "test"):
        is_positive = np.isin(parts[f"{part}_labels"], POSITIVE)
        labels[part] = np.where(is_positive, 1, -1).astype(np.int8)
    return LabelledImages(
        parts["train_images"], labels["train"], parts["test_images"][:tests], labels["test"][:tests]
    )


# -- the choices: each returns a network for pictures of one shape ---------------------------------


def as_it_is(shape: tuple[int, ...]) -> nn.Module:
    """Return torchvision's ResNet-34 with one output."""
    return resnet34(num_classes=1).to(memory_format=torch.channels_last)


def normalised(shape: tuple[int, ...]) -> nn.Module:
    """Return it behind a normalisation of the channels."""
    return nn.Sequential(Normalisation(), as_it_is(shape))


def augmented(shape: tuple[int, ...]) -> nn.Module:
    """Return it behind shifts and reflections of the training images."""
    return nn.Sequential(Augmentation(), as_it_is(shape))


def by_test_statistics(shape: tuple[int, ...]) -> nn.Module:
    """Return it with batch normalisation that takes the statistics of a batch in tests, too."""
    network = as_it_is(shape)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.track_running_stats = False
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
    return network


class Normalisation(nn.Module):
    """Means 0 and deviations 1 of the channels over the training images."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("means", torch.tensor(MEANS).view(3, 1, 1))
        self.register_buffer("deviations", torch.tensor(DEVIATIONS).view(3, 1, 1))

    def forward(self, pictures: Tensor) -> Tensor:
        """Return pictures (N, 3, H, W)."""
        return (pictures - self.means) / self.deviations


class Augmentation(nn.Module):
    """In training, each picture is reflected with probability 1/2, and all of a batch are moved by
    up to `SHIFT` pixels each way.
    """

    def forward(self, pictures: Tensor) -> Tensor:
        """Return pictures (N, 3, H, W)."""
        if not self.training:
            return pictures
        reflects = torch.rand(len(pictures), 1, 1, 1) < 0.5
        reflected = torch.where(reflects, pictures.flip(3), pictures)
        padded = nn.functional.pad(reflected, [SHIFT] * 4)

        height, width = pictures.shape[2:]
        top, left = torch.randint(2 * SHIFT + 1, (2,)).tolist()
        bottom = top + height
        right = left + width
        return padded[:, :, top:bottom, left:right]


Choice = Callable[[tuple[int, ...]], nn.Module]
CHOICES: dict[str, Choice] = {
    "as it is": as_it_is,
    "normalised": normalised,
    "augmented": augmented,
    "statistics of tests": by_test_statistics,
}


def train_run(
    data: LabelledImages, method: str, choice: Choice, trial: int, options: argparse.Namespace
) -> dict[str, float]:
    """Return the accuracies of a run."""
    sample = draw_split(data.train_labels, 2, PRIOR, options.n, options.n, trial)
    settings = Settings(network=choice, epochs=options.epochs, batch_size=options.batch)
    test = data.test_set()
    begun = time.process_time()
    [trained] = train(
        Task(method, 2, PRIOR), data.train_images, [sample], [trial], settings, evaluation=test
    )
    accuracies = 100 * accuracies_of(trained.history, test)
    return {
        "all": accuracies.mean(),
        "last": accuracies.iloc[-1],
        "best": accuracies.max(),
        "objective": trained.history["objective"].iloc[-1],
        "seconds": time.process_time() - begun,
    }


def main() -> None:
    """Write a line per run as it is made."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("images", type=Path, help="CIFAR-10, as config/own-split.yaml takes it")
    parser.add_argument("--out", type=Path, default=Path("results/reference/colour_choices.csv"))
    parser.add_argument("--choices", nargs="+", choices=list(CHOICES), default=list(CHOICES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--trials", nargs="+", type=int, default=[1])
    parser.add_argument("--n", type=int, default=1000, help="pairs, and unlabeled images")
    parser.add_argument("--batch", type=int, default=50, help="pairs of a minibatch")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--tests", type=int, default=1000)
    options = parser.parse_args()

    data = read(options.images, options.tests)
    lines = Lines(options.out)
    scale = {name: getattr(options, name) for name in ("n", "batch", "epochs", "tests")}
    for trial in options.trials:
        for method in options.methods:
            for name in options.choices:
                key = {"choice": name, "method": method, "trial": trial, **scale}
                if not lines.of(key):
                    measures = train_run(data, method, CHOICES[name], trial, options)
                    lines.add({**key, **measures})
                    print(*key.values(), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
