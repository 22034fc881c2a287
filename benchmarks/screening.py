"""Which unspoken choices move URE towards the paper, where no reading does?

That is at some priors of `config/readings.yaml`. URE on MNIST pairs, n = 10,000: each choice beside
the protocol on the same trials, for 30 epochs, which are the first of a whole training, as the rate
is constant. A line of the CSV is a run: its accuracy in %, the mean of all epochs, and of the last
ten. Lines that the CSV has are kept. Then prints by how much a choice moves the mean of all epochs.

    OMP_NUM_THREADS=1 python benchmarks/screening.py --mnist results/datasets/mnist.npz
"""

from itertools import product

import pandas as pd
from scipy.stats import rankdata
from shared import LabelledImages, Lines, accuracies_of, parser_of

from mdpu import data
from mdpu.randomness import Stream
from mdpu.settings import Settings, Task
from mdpu.train import train

N = 10_000
PRIORS = (0.4, 0.6)
TRIALS = 2
EPOCHS = 30
# Changes of the draw, and of the settings.
CHOICES = {
    "protocol": ({}, {}),
    "half as many unlabeled images": ({"n_unlabeled": N // 2}, {}),
    "a quarter of the unlabeled images": ({"n_unlabeled": N // 4}, {}),
    "twice as many unlabeled images": ({"n_unlabeled": 2 * N}, {}),
    "exact class counts": ({"exact": True}, {}),
    "without replacement": ({"replacement": False}, {}),
    "without replacement, half as many unlabeled": (
        {"replacement": False, "n_unlabeled": N // 2},
        {},
    ),
    "drawn at the natural prior": ({"natural": True}, {}),
    "rate 2e-3": ({}, {"learning_rate": 2e-3}),
    "minibatches of 300 tuples": ({}, {"batch_size": 300}),
}


class Exact(Stream):
    """Uniform numbers; those behind labels are evenly spaced, so that class counts are exact."""

    def __init__(self, seed, purpose, *indices):
        super().__init__(seed, purpose, *indices)
        self.exact = purpose.endswith("labels")

    def uniform(self, *shape):
        """Return the numbers."""
        numbers = super().uniform(*shape)
        if self.exact and len(shape) == 1:
            return (rankdata(numbers) - 0.5) / len(numbers)
        return numbers


def draw(labels, prior, trial, n_unlabeled=N, exact=False, natural=False, **options):
    """Return the split of a trial under a choice."""
    data.Stream = Exact if exact else Stream
    if natural:
        prior = float((labels > 0).sum() / (labels != 0).sum())
    return data.draw_split(labels, 2, prior, N, n_unlabeled, trial, **options)


def run(images, choice, prior, seed):
    """Train URE under a choice; return the accuracy in % of each epoch."""
    drawing, changes = CHOICES[choice]
    trial = f"mnist/m2/n{N}/prior{prior}/seed{seed}"
    sample = draw(images.train_labels, prior, trial, **drawing)
    test = images.test_set()
    [model] = train(
        Task("ure", 2, prior),
        images.train_images,
        [sample],
        [trial],
        Settings(**{"epochs": EPOCHS, **changes}),
        labels=images.train_labels,
        evaluation=test,
    )
    return 100 * accuracies_of(model.history, test)


def show_differences(lines):
    """Print by how much each choice moves the mean of all epochs, in points, by prior."""
    means = pd.DataFrame(lines).pivot(index="choice", columns=["prior", "seed"], values="all")
    means = means.loc[[*CHOICES]]
    moved = means - means.loc["protocol"]
    print(moved.T.groupby(level="prior").mean().T.round(1).to_string())


def main():
    """Train what the CSV does not have, then print the differences."""
    arguments = parser_of(__doc__, "screening.csv").parse_args()
    lines = Lines(arguments.out)
    images = LabelledImages.read(arguments.mnist)

    for choice, prior, seed in product(CHOICES, PRIORS, range(1, TRIALS + 1)):
        key = {"choice": choice, "prior": prior, "seed": seed}
        if lines.of(key):
            continue
        accuracy = run(images, choice, prior, seed)
        last_ten = accuracy[-10:]
        lines.add({**key, "all": round(accuracy.mean(), 2), "last_ten": round(last_ten.mean(), 2)})

    show_differences(lines.lines)


if __name__ == "__main__":
    main()
