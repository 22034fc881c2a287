"""How far probabilities of `MDPUClassifier.predict_proba` can be trusted, on real test images.

Each method is trained by the protocol on pairs or triples of three trials. Test images are weighted so that the share
of positives is the prior. Printed are means over the trials: the accuracy, the mean of max(p, 1 - p), which should be
equal to the accuracy; the expected calibration error over 15 bins of equal width (Naeini, Cooper and Hauskrecht 2015);
and the Brier score.

    python benchmarks/calibration.py --images results/datasets/mnist.npz --methods bag-relu relu
"""

import json

import numpy as np
from scipy.special import expit
from shared import Labelled, begin, machine, protocol_settings, training_parser

from mdpu.learn import Task, fit

BINS = 15


def calibration_error(probabilities, truth, weights):
    """Return the mean distance, by weight, of the mean probability from the share of positives in each bin."""
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    distance = np.bincount(bins, weights * (probabilities - truth), BINS)
    return np.abs(distance).sum() / weights.sum()


def figures_of(probabilities, truth, prior):
    """Return accuracy, confidence, calibration error and Brier score at a prior."""
    weights = np.where(truth, prior / truth.mean(), (1 - prior) / (1 - truth.mean()))
    right = (probabilities > 0.5) == truth
    return (
        np.average(right, weights=weights),
        np.average(np.maximum(probabilities, 1 - probabilities), weights=weights),
        calibration_error(probabilities, truth, weights),
        np.average(np.square(probabilities - truth), weights=weights),
    )


def main():
    """Print a JSON line for every tuple size, prior and method."""
    parser = training_parser(__doc__)
    parser.add_argument("--methods", nargs="+", default=["bag-relu", "bag-nce", "relu", "abs", "relu-part", "ure"])
    parser.add_argument("--tuple-sizes", nargs="+", type=int, default=[2])
    parser.add_argument("--priors", nargs="+", type=float, default=[0.4, 0.5, 0.6])
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--trials", type=int, default=3)
    arguments = parser.parse_args()
    device = begin(arguments)
    data, settings = Labelled.read(arguments.images), protocol_settings(arguments.epochs)
    truth, trials = data.labels["test"] > 0, range(1, arguments.trials + 1)
    for tuple_size in arguments.tuple_sizes:
        for prior in arguments.priors:
            samples = data.samples(tuple_size, prior, arguments.n, trials)
            for method in arguments.methods:
                tasks = [Task(method, tuple_size, prior, seed=trial, sample=str(trial)) for trial in trials]
                models = fit(tasks, data.images.train_images, samples, settings, device=device)
                scores = (model.decision_function(data.images.test_images).astype(np.float64) for model in models)
                figures = np.mean([figures_of(expit(score), truth, prior) for score in scores], axis=0)
                named = dict(zip(("accuracy", "confidence", "calibration_error", "brier"), figures, strict=True))
                rounded = {name: round(float(figure), 4) for name, figure in named.items()}
                place = {"method": method, "tuple_size": tuple_size, "prior": prior, "trials": arguments.trials}
                print(json.dumps({**place, **rounded, **machine(device)}), flush=True)


if __name__ == "__main__":
    main()
