"""Collectors that look at more than the labels: what it costs, and whether the fit shows it.

The labels of 1,000 pairs follow the law at prior 0.4, but members of a class are drawn with the weight s^u, where u
from 0 to 1 is the rank in the class: ``clear`` by the chance that a boosted classifier, trained on other rows, gives
the true class; ``doubtful`` the other way round; ``style`` by the first principal component within classes. So s is
how much more often the first is taken than the last, and 1 is the law (``fair``). With ``remainder`` the pairs are
fair, and the 4,000 unlabeled rows are what they left of a pool; ``put-back`` adds the members to these. MNIST is 30,000
training images in their first 40 principal components.

A line has the accuracies of methods told the prior, on a fifth of the rows, in % at that prior; what the tuples say of
the prior (`PriorProfile`; `fit` warns if 0.4 is not within low and high); and the law gap of `bag-relu` on held-out
pairs.

    OMP_NUM_THREADS=1 python benchmarks/collectors.py --images mnist.npz --magic magic_train.csv --out collectors.csv
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from shared import Labelled
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict
from tables import Table

from mdpu.data import TupleData
from mdpu.law import Law
from mdpu.learn import Settings, Task, fit
from mdpu.learners.features import Standardisation, kernel_maps
from mdpu.learners.joint import Bags
from mdpu.learners.latent import estimate_prior
from mdpu.monitoring import law_gap
from mdpu.randomness import Stream

LAW, PRIOR, PAIRS, UNLABELED, ROWS = Law.dominant(2), 0.4, 1000, 4000, 30_000
METHODS = ("ure", "relu", "abs", "bag-relu", "bag-nce")
SETTINGS = Settings(
    epochs=20, batch_size=100, learning_rate=0.002, precision="fp32", architecture={"hidden": (100, 100)}
)
COLLECTORS = [
    ("fair", 1),
    *((name, strength) for name in ("clear", "doubtful", "style") for strength in (3, 10)),
    *(("remainder", 1), ("put-back", 1)),
]


def ranks(rows, labels):
    """Return ranks in the own class, from 0 to 1: how clear a row is, and its style."""
    chances = cross_val_predict(HistGradientBoostingClassifier(), rows, labels > 0, cv=2, method="predict_proba")
    centred = rows - np.where((labels > 0)[:, None], *(rows[labels == sign].mean(axis=0) for sign in (1, -1)))
    values = pd.DataFrame({"clear": chances[np.arange(len(rows)), (labels > 0) * 1]})
    values["style"] = PCA(1, random_state=0).fit_transform(centred)[:, 0]
    found = values.groupby(labels).rank(pct=True)
    return {**found, "doubtful": 1 - found["clear"], "fair": found["clear"]}


def draw(labels, rank, strength, kind, trial):
    """Return a sample of some rows."""
    generator, weights = np.random.default_rng(trial), strength ** np.asarray(rank)

    def rows_of(positive, weights):
        chosen = np.zeros(positive.shape, int)
        for sign in (1, -1):
            own, here = np.flatnonzero(labels == sign), positive == (sign > 0)
            chosen[here] = generator.choice(own, here.sum(), p=weights[own] / weights[own].sum())
        return chosen

    positive = LAW.draw(PRIOR, PAIRS, Stream(str(trial), "collected pairs")) > 0
    tuples, n = rows_of(positive, weights), generator.binomial(UNLABELED, PRIOR)
    if kind in ("remainder", "put-back"):
        n = generator.binomial(UNLABELED + positive.size, PRIOR) - positive.sum()
        weights = np.where(np.isin(np.arange(len(labels)), tuples), 0, weights)
    else:
        weights = np.ones(len(labels))
    unlabeled = rows_of(generator.permutation(UNLABELED) < n, weights)
    return TupleData(tuples, np.append(unlabeled, tuples) if kind == "put-back" else unlabeled)


def says(rows, sample, seed):
    """Return what a sample says of its prior, as `MDPUClassifier.fit` asks it."""
    places, own = np.unique(np.append(sample.tuples, sample.unlabeled), return_inverse=True)
    z = Standardisation.learn(rows[places])(rows[places])
    features = kernel_maps(z, seed, (1.0,))[0].transform(z)
    tuples, unlabeled = own[: sample.tuples.size].reshape(sample.tuples.shape), own[sample.tuples.size :]
    return estimate_prior(features, Bags.of(TupleData(tuples, unlabeled), Law.dominant), seed=seed)


def trial_of(rows, labels, trial):
    """Yield a line for each collector."""
    part = np.random.default_rng(trial).choice(3, len(rows), p=(0.6, 0.2, 0.2))
    order = [np.flatnonzero(part == i) for i in range(3)]  # to learn from, held out, to test on
    rank = ranks(rows, labels)
    samples, held = {}, {}
    for kind, strength in COLLECTORS:
        own = rank.get(kind, rank["fair"])
        for place, drawn in enumerate((samples, held)):
            local = draw(labels[order[place]], own[order[place]], strength, kind, [trial, place])
            drawn[f"{kind} {strength}"] = TupleData(order[place][local.tuples], order[place][local.unlabeled])
    test, truth = order[2], labels[order[2]] > 0
    weights = np.where(truth, PRIOR / truth.mean(), (1 - PRIOR) / (1 - truth.mean()))
    for kind, strength in COLLECTORS:
        name = f"{kind} {strength}"
        tasks = [Task(method, 2, PRIOR, seed=trial) for method in METHODS]
        models = fit(tasks, rows, samples[name], SETTINGS, device="cpu")
        line = {"collector": kind, "strength": strength, "trial": trial}
        for model in models:
            right = (model.decision_function(rows[test]) > 0) == truth
            line[model.task.method] = round(100 * np.average(right, weights=weights), 3)
        best = models[METHODS.index("bag-relu")]
        scores = [
            torch.from_numpy(best.decision_function(rows[places.ravel()]).reshape(places.shape))
            for places in (held[name].tuples, held[name].unlabeled)
        ]
        said = says(rows, samples[name], trial)
        yield line | {
            **{key: round(getattr(said, key), 4) for key in ("low", "prior", "high")},
            **{"verdict": said.verdict, "law_gap": round(law_gap(LAW, PRIOR, *scores), 4)},
        }


def main():
    """Write the lines as they are made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", required=True)
    parser.add_argument("--magic", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    magic, mnist = Table.read("magic", arguments.magic), Labelled.read(arguments.images)
    images = PCA(40, random_state=0).fit_transform(mnist.images.train_images[:ROWS].reshape(ROWS, -1) / 255)
    sets = {
        "magic": (Standardisation.learn(magic.rows)(magic.rows).astype(np.float32), magic.labels),
        "mnist": (images.astype(np.float32), mnist.labels["train"][:ROWS]),
    }
    found = []
    for trial in range(arguments.trials):
        for name, (rows, labels) in sets.items():
            for line in trial_of(rows, labels, trial):
                found.append({"dataset": name, **line})
                pd.DataFrame(found).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
