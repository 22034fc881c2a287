r"""What may finish `bag-relu` without labels, one thing at a time, on real images.

Each candidate differs from `bag-relu-last`, which has the last weights, in one thing:

- mean: the running mean of the weights (this is `bag-relu`);
- decay: the learning rate falls to zero along a cosine;
- regrouped: the unlabeled images of a minibatch are grouped into bags four times;
- entropy 0.05, entropy 0.2: so many times the mean entropy of r on unlabeled images is added;
- mean and regrouped: both.

    python benchmarks/finishing.py --images results/datasets/mnist.npz --positive 0 2 4 6 8 \
        --negative 1 3 5 7 9 --priors 0.5 0.6

prints a JSON line for each prior and candidate: the mean of the last ten epochs, in percent, and its difference from
`bag-relu-last`, paired by trial.
"""

import argparse
import json
import math
import sys
import types
from pathlib import Path

import numpy as np
import torch
from shared import Labelled, machine, protocol_settings

from mdpu.learn import Task, fit_each, trainer
from mdpu.learn.bags import MEMORY, BagRiskHead, unlabeled_bags
from mdpu.learn.device import choose_device
from mdpu.learn.method import NetworkMethod

BASE = "bag-relu-last"
GROUPINGS = 4
LAST = 10


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


# By name: the head, and the memory of the running mean.
CANDIDATES = {
    "mean": (BagRiskHead, MEMORY),
    "decay": (BagRiskHead, 0.0),
    "regrouped": (RegroupedHead, 0.0),
    "entropy 0.05": (entropy_head(0.05), 0.0),
    "entropy 0.2": (entropy_head(0.2), 0.0),
    "mean and regrouped": (RegroupedHead, MEMORY),
}


def register(name, head, memory):
    """Make a candidate a method, as a file in mdpu/learn/methods would, and return its name."""
    method = f"bag-{''.join(letter if letter.isalnum() else '-' for letter in name)}"
    module = types.ModuleType(f"mdpu.learn.methods.{method.replace('-', '_')}")
    module.METHOD = NetworkMethod(name, head, memory=memory, log_odds=True)
    sys.modules[module.__name__] = module
    return method


def decaying(make_optimizer, steps):
    """Return `make_optimizer`, with a learning rate that falls to zero over so many steps."""

    def make(*arguments):
        optimizer, parts = make_optimizer(*arguments)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: (1 + math.cos(math.pi * min(1, step / steps))) / 2
        )
        optimizer.register_step_post_hook(lambda *_: schedule.step())
        return optimizer, parts

    return make


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", required=True)
    parser.add_argument("--positive", nargs="+", required=True, help="classes on the positive side")
    parser.add_argument("--negative", nargs="+", required=True, help="classes on the negative side")
    parser.add_argument("--tuple-size", type=int, default=2)
    parser.add_argument("--priors", nargs="+", type=float, default=[0.5])
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    torch.set_num_threads(arguments.threads)
    data = Labelled.read(arguments.images, arguments.positive, arguments.negative)
    settings, trials = protocol_settings(arguments.epochs), range(1, arguments.trials + 1)
    for prior in arguments.priors:
        samples = data.samples(arguments.tuple_size, prior, arguments.n, trials)

        def measured(method, prior=prior, samples=samples):
            tasks = [Task(method, arguments.tuple_size, prior, seed=trial, sample=str(trial)) for trial in trials]
            return accuracies(tasks, samples, data, settings, device)

        base, plain = measured(BASE), trainer.make_optimizer
        for name, (head, memory) in {BASE: (BagRiskHead, 0.0), **CANDIDATES}.items():
            if name == "decay":
                per_epoch = math.ceil(arguments.n / trainer.tuples_per_batch(settings, arguments.tuple_size))
                trainer.make_optimizer = decaying(plain, settings.epochs * per_epoch)
            found = base if name == BASE else measured(register(name, head, memory))
            trainer.make_optimizer = plain
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
