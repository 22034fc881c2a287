"""Which unspoken choices move URE towards the paper, at the priors where no reading of `config/readings.yaml` does?

URE on MNIST pairs, n = 10,000: each choice beside the protocol on the same trials, for 30 epochs, which are the first
of a whole training, as the rate is constant. A line of the CSV is a run: its accuracy in %, the mean of all epochs, and
of the last ten. Lines that the CSV has are kept. Then prints by how much a choice moves the mean of all epochs.

    OMP_NUM_THREADS=1 python benchmarks/screening.py --mnist results/datasets/mnist.npz
"""

import pandas as pd
from scipy.stats import rankdata
from shared import Labelled, parser_of

from mdpu import data
from mdpu.networks import TestSet
from mdpu.randomness import Stream
from mdpu.settings import Settings, Task
from mdpu.train import train

N, PRIORS, TRIALS, EPOCHS = 10_000, (0.4, 0.6), 2, 30
CHOICES = {  # changes of the draw, and of the settings
    "protocol": ({}, {}),
    "half as many unlabeled images": ({"n_unlabeled": N // 2}, {}),
    "a quarter of the unlabeled images": ({"n_unlabeled": N // 4}, {}),
    "twice as many unlabeled images": ({"n_unlabeled": 2 * N}, {}),
    "exact class counts": ({"exact": True}, {}),
    "without replacement": ({"replacement": False}, {}),
    "without replacement, half as many unlabeled": ({"replacement": False, "n_unlabeled": N // 2}, {}),
    "drawn at the natural prior": ({"natural": True}, {}),
    "rate 2e-3": ({}, {"learning_rate": 2e-3}),
    "minibatches of 300 tuples": ({}, {"batch_size": 300}),
}


class Exact(Stream):
    """Uniform numbers; those behind labels are evenly spaced, so that class counts are exact."""

    def uniform(self, *shape):
        """Return the numbers."""
        numbers = super().uniform(*shape)
        return (rankdata(numbers) - 0.5) / len(numbers) if self.exact and len(shape) == 1 else numbers

    def __init__(self, seed, purpose, *indices):
        self.exact = purpose.endswith("labels")
        super().__init__(seed, purpose, *indices)


def draw(labels, prior, trial, n_unlabeled=N, exact=False, natural=False, **options):
    """Return the split of a trial under a choice."""
    data.Stream = Exact if exact else Stream
    prior = float((labels > 0).sum() / (labels != 0).sum()) if natural else prior
    return data.draw_split(labels, 2, prior, N, n_unlabeled, trial, **options)


def main():
    """Train what the CSV does not have, then print the differences."""
    arguments = parser_of(__doc__.split("\n")[0], "screening.csv").parse_args()
    lines = pd.read_csv(arguments.out).to_dict("records") if arguments.out.exists() else []
    images, labels = (known := Labelled.read(arguments.mnist)).images, known.labels
    evaluation = TestSet(images.test_images, labels["test"], images.train_images, labels["train"])
    keys = [(choice, prior, seed) for choice in CHOICES for prior in PRIORS for seed in range(1, TRIALS + 1)]
    for choice, prior, seed in keys:
        key, trial = {"choice": choice, "prior": prior, "seed": seed}, f"mnist/m2/n{N}/prior{prior}/seed{seed}"
        if not any(key.items() <= line.items() for line in lines):
            sample = draw(labels["train"], prior, trial, **CHOICES[choice][0])
            settings = Settings(**{"epochs": EPOCHS, **CHOICES[choice][1]})
            options = {"labels": labels["train"], "evaluation": evaluation}
            [model] = train(Task("ure", 2, prior), images.train_images, [sample], [trial], settings, **options)
            rates, share = model.history, evaluation.share_positive
            reached = 100 * (share * rates["true_positive_rate"] + (1 - share) * rates["true_negative_rate"])
            lines.append({**key, "all": round(reached.mean(), 2), "last_ten": round(reached[-10:].mean(), 2)})
            pd.DataFrame(lines).to_csv(arguments.out, index=False)
    found = pd.DataFrame(lines).pivot(index="choice", columns=["prior", "seed"], values="all").loc[[*CHOICES]]
    print((found - found.loc["protocol"]).T.groupby(level="prior").mean().T.round(1).to_string())


if __name__ == "__main__":
    main()
