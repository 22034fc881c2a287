r"""What may finish `bag-relu` without labels, one thing at a time, on real images.

Each candidate differs from `bag-relu-last`, which has the last weights, in one thing:

- mean: the running mean of the weights (this is `bag-relu`);
- decay: the learning rate falls to zero along a cosine;
- regrouped: the unlabeled images of a minibatch are grouped into bags four times;
- entropy 0.05, entropy 0.2: so many times the mean entropy of r on unlabeled images is added;
- mixup: the pixels of each tuple are mixed with those of another tuple of the minibatch, those of each unlabeled image
  with those of another one (Zhang et al. 2018, with Beta(0.2, 0.2) and targets that are the same);
- mean and regrouped, mean and mixup: both.

    python benchmarks/finishing.py --images results/datasets/mnist.npz --positive 0 2 4 6 8 \
        --negative 1 3 5 7 9 --priors 0.5 0.6

prints a JSON line for each prior and candidate: the mean of the last ten epochs, in percent, and its difference from
`bag-relu-last`, paired by trial.
"""

import json
import math
import sys
import types
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from shared import Labelled, begin, machine, protocol_settings, training_parser

from mdpu.learn import Task, fit_each, trainer
from mdpu.learn.bags import MEMORY, BagRiskHead, unlabeled_bags
from mdpu.learn.method import NetworkMethod
from mdpu.learn.networks.mlp import StackedMLP

BASE = "bag-relu-last"
GROUPINGS = 4
LAST = 10
MIXING = 0.2


@dataclass(frozen=True)
class Candidate:
    """What differs from `BASE`: the head, the memory of the running mean, and what is patched while it trains."""

    head: type = BagRiskHead
    memory: float = 0.0
    patched: Callable = lambda settings, tuple_size, n: nullcontext()


class RegroupedHead(BagRiskHead):
    """`BagRiskHead`, its risk averaged over several groupings of the unlabeled images."""

    def loss(self, tuples, unlabeled, model_prior):
        """Return the corrected risk, (R,)."""
        size = tuples.shape[2]
        columns = unlabeled_bags(unlabeled, size).transpose(1, 2)  # (R, M, bags)
        risks = []
        for shift in range(GROUPINGS):
            rolled = [columns[:, place].roll(shift * place, dims=1) for place in range(size)]
            risks.append(super().loss(tuples, torch.stack(rolled, dim=2).flatten(1), model_prior))
        return torch.stack(risks).mean(dim=0)


def entropy_head(weight):
    """Return a `BagRiskHead` that also asks for certain answers."""

    class EntropyHead(BagRiskHead):
        def loss(self, tuples, unlabeled, model_prior):
            scores = unlabeled
            entropy = torch.nn.functional.softplus(scores) - scores * scores.sigmoid()
            return super().loss(tuples, unlabeled, model_prior) + weight * entropy.mean(dim=1)

    return EntropyHead


def decaying(settings, tuple_size, n):
    """Let the learning rate fall to zero along a cosine."""
    steps = settings.epochs * math.ceil(n / trainer.tuples_per_batch(settings, tuple_size))

    class Decaying(trainer.Adam):
        def step(self, gradients):
            groups, done = self.groups, getattr(self, "done", 0)
            factor = (1 + math.cos(math.pi * min(1, done / steps))) / 2
            self.groups = [(parameters, rate * factor, decay) for parameters, rate, decay in groups]
            super().step(gradients)
            self.groups, self.done = groups, done + 1

    return mock.patch.object(trainer, "Adam", Decaying)


def mixing(settings, tuple_size, n):
    """Mix each tuple, and each unlabeled image, with another one of the minibatch; there are as many of both."""
    forward, random = StackedMLP.forward, np.random.default_rng(0)

    def mixed(images):
        """Return images (S, rows, d), each mixed with its image of another row."""
        share = torch.from_numpy(random.beta(MIXING, MIXING, images.shape[:2]).astype(np.float32))
        other = images[:, torch.from_numpy(random.permutation(images.shape[1]))]
        return torch.lerp(other.float(), images.float(), share.view(*share.shape, *[1] * (images.ndim - 2)))

    def forward_mixed(network, images):
        count = images.shape[1] // (tuple_size + 1)
        tuples, unlabeled = images[:, : count * tuple_size], images[:, count * tuple_size :]
        as_wholes = mixed(tuples.unflatten(1, (count, tuple_size))).flatten(1, 2)
        return forward(network, torch.cat([as_wholes, mixed(unlabeled)], dim=1))

    return mock.patch.object(StackedMLP, "forward", forward_mixed)


CANDIDATES = {
    BASE: Candidate(),
    "mean": Candidate(memory=MEMORY),
    "decay": Candidate(patched=decaying),
    "regrouped": Candidate(RegroupedHead),
    "entropy 0.05": Candidate(entropy_head(0.05)),
    "entropy 0.2": Candidate(entropy_head(0.2)),
    "mixup": Candidate(patched=mixing),
    "mean and regrouped": Candidate(RegroupedHead, MEMORY),
    "mean and mixup": Candidate(memory=MEMORY, patched=mixing),
}


def register(name, candidate):
    """Make a candidate a method, as a file in mdpu/learn/methods would, and return its name."""
    method = f"bag-{''.join(letter if letter.isalnum() else '-' for letter in name)}"
    module = types.ModuleType(f"mdpu.learn.methods.{method.replace('-', '_')}")
    module.METHOD = NetworkMethod(name, candidate.head, memory=candidate.memory, log_odds=True)
    sys.modules[module.__name__] = module
    return method


def accuracies(tasks, samples, data, settings, device):
    """Return the mean accuracy of the last epochs of each task, in percent, in the order of the tasks."""
    rates, found = data.rates(), {}
    for model in fit_each(tasks, data.images.train_images, samples, settings, evaluation=rates, device=device):
        last = model.history.tail(LAST)
        share = rates.share_positive
        right = share * last["true_positive_rate"] + (1 - share) * last["true_negative_rate"]
        found[model.task] = 100 * right.mean()
    return np.array([found[task] for task in tasks])


def main():
    """Print a JSON line for every prior and candidate."""
    parser = training_parser(__doc__)
    parser.add_argument("--positive", nargs="+", required=True, help="classes on the positive side")
    parser.add_argument("--negative", nargs="+", required=True, help="classes on the negative side")
    parser.add_argument("--tuple-size", type=int, default=2)
    parser.add_argument("--priors", nargs="+", type=float, default=[0.5])
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    arguments = parser.parse_args()
    device = begin(arguments)
    data = Labelled.read(arguments.images, arguments.positive, arguments.negative)
    settings, trials = protocol_settings(arguments.epochs), range(1, arguments.trials + 1)
    for prior in arguments.priors:
        samples = data.samples(arguments.tuple_size, prior, arguments.n, trials)

        def measured(name, prior=prior, samples=samples):
            method = register(name, CANDIDATES[name])
            tasks = [Task(method, arguments.tuple_size, prior, seed=trial, sample=str(trial)) for trial in trials]
            with CANDIDATES[name].patched(settings, arguments.tuple_size, arguments.n):
                return accuracies(tasks, samples, data, settings, device)

        base = measured(BASE)
        for name in arguments.only:
            found = base if name == BASE else measured(name)
            gain = found - base
            figures = {
                "images": Path(arguments.images).stem,
                "tuple_size": arguments.tuple_size,
                "prior": prior,
                "candidate": name,
                "accuracy": round(found.mean(), 2),
                "std": round(found.std(ddof=1), 2),
                "gain": round(gain.mean(), 2),
                "gain_std": round(gain.std(ddof=1), 2),
                "trials": arguments.trials,
                **machine(device),
            }
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
