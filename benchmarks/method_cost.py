"""What a method costs beside ReLU: seconds and processor seconds per run and epoch, on real images.

Each method trains a stack of nine runs, three priors by three trials, as the tables do. The methods take turns in one
invocation, `--rounds` times, and the median of the rounds counts. A method that estimates the prior does so within its
training, so its figure depends on the number of epochs; the protocol has 100.

    python benchmarks/method_cost.py --images results/datasets/mnist.npz --methods bag-relu bag-free --epochs 100
"""

import json
import statistics
import time

from shared import Labelled, begin, machine, protocol_settings, training_parser

from mdpu.learn import Task, fit_each
from mdpu.learn.prior import brief_estimate

PRIORS = (0.4, 0.5, 0.6)
TRIALS = (1, 2, 3)


def cost(method, tuple_size, samples, data, settings, device):
    """Return the seconds and processor seconds that a run of a method costs per epoch."""
    tasks = [
        Task(method, tuple_size, prior, seed=trial, sample=f"{prior} {trial}") for prior in PRIORS for trial in TRIALS
    ]
    rates, images = data.rates(), data.images.train_images
    wall, processor = time.perf_counter(), time.process_time()
    for _ in fit_each(tasks, images, samples, settings, evaluation=rates, device=device, estimate_prior=brief_estimate):
        pass
    run_epochs = len(tasks) * settings.epochs
    return (time.perf_counter() - wall) / run_epochs, (time.process_time() - processor) / run_epochs


def main():
    """Print a JSON line for every method and tuple size."""
    parser = training_parser(__doc__, epochs=40)
    parser.add_argument("--methods", nargs="+", default=["bag-relu"])
    parser.add_argument("--tuple-sizes", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    device = begin(arguments)
    data, settings = Labelled.read(arguments.images), protocol_settings(arguments.epochs)
    for tuple_size in arguments.tuple_sizes:
        samples = {
            f"{prior} {trial}": data.sample(tuple_size, prior, arguments.n, trial)
            for prior in PRIORS
            for trial in TRIALS
        }
        methods = ["relu", *(method for method in arguments.methods if method != "relu")]
        rounds = {method: [] for method in methods}
        for _ in range(arguments.rounds):
            for method in methods:
                rounds[method].append(cost(method, tuple_size, samples, data, settings, device))
        medians = {
            method: [statistics.median(column) for column in zip(*costs, strict=True)]
            for method, costs in rounds.items()
        }
        for method, (seconds, processor_seconds) in medians.items():
            figures = {
                "method": method,
                "tuple_size": tuple_size,
                "epochs": arguments.epochs,
                "seconds_per_run_epoch": round(seconds, 4),
                "processor_seconds_per_run_epoch": round(processor_seconds, 4),
                "times_relu": round(seconds / medians["relu"][0], 3),
                "times_relu_processor": round(processor_seconds / medians["relu"][1], 3),
                **machine(device),
            }
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
