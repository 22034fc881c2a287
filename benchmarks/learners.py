"""Learners of `MDPUClassifier` on tables, texts and images: without the prior, told it, and beside labels.

A line of the CSV is a learner on one sample of a cell: its accuracy in %, on rows set aside and weighted to the prior,
and processor seconds of the training. All are told the prior but ``default``, the learner that ``auto`` chose without
it; where `fit` refuses, its accuracy is empty. ``auto`` names what was chosen, which stands for this learner too, and
so do the ``by ...``, which choose by other measures of the same held-out tuples: the error rate (Eq. 11), the bag risk,
and proxy accuracy and proxy AUC of the PU literature, for which members are positive and unlabeled rows negative.
``abs`` is the paper's ABS with the classifier's network. ``copied`` is gradient boosting with every member as a
positive and every unlabeled row as a negative; ``uu`` are the same scores cut where the prior's share of the unlabeled
rows lies above. ``labels`` is gradient boosting on the unlabeled rows with their labels.

Settings were fixed before the first run. A trial of all cells comes before the next. Lines that the CSV has are kept.

    OMP_NUM_THREADS=1 python benchmarks/learners.py --magic magic_train.csv --reviews finegrained.txt --mnist mnist.npz
"""

import time
import warnings

import numpy as np
import pandas as pd
from scipy import sparse
from shared import FILES, Table, parser_of
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from mdpu import estimator
from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier, Network
from mdpu.law import Law
from mdpu.learners.joint import held_out_loss
from mdpu.learners.student import DEFAULT
from mdpu.randomness import Stream
from mdpu.scores import estimated_risk

# Set, tuple sizes, prior, n.
CELLS = [
    ("cancer", (2,), 0.35, 200),
    ("wine", (3,), 0.4, 200),
    ("diabetes", (2,), 0.5, 200),
    ("digits", (3,), 0.4, 200),
    ("magic", (2,), 0.35, 200),
    ("moons", (2,), 0.4, 500),
    ("quantiles", (3,), 0.4, 500),
    ("birdsong", (3,), 0.4, 500),
    ("hastie", (3,), 0.5, 500),
    ("few of many", (2,), 0.4, 500),
    ("mnist, components", (2,), 0.5, 500),
    ("reviews", (2,), 0.4, 1000),
    ("magic", (2, 3, 5), 0.4, 200),
    ("magic", tuple(range(2, 10)), 0.5, 500),
    ("digits", (5,), 0.2, 200),
    ("cancer", (2, 3, 5), 0.6, 200),
    ("wine", (5,), 0.7, 200),
    ("magic", (2,), 0.8, 200),
    ("mnist", (3,), 0.5, 200),
    ("fashion", (3,), 0.5, 200),
    ("letters", (3,), 0.5, 200),
    ("cifar10", (5,), 0.4, 200),
    ("magic", (3,), 0.5, 1000),
    ("magic", (2,), 0.35, 1000),
    ("digits", (2,), 0.1, 1000),
    ("reviews", (3,), 0.6, 1000),
    ("diabetes", (3,), 0.3, 1000),
    ("letters, 16 numbers", (3,), 0.5, 2000),
    ("mnist", (2,), 0.4, 1000),
    ("magic", (2,), 0.5, 10000),
    ("mnist", (2,), 0.5, 10000),
]
TRIALS = 3  # one of 10,000 tuples
CELL = ["set", "sizes", "prior", "n", "trial"]


def usual(rows):
    """Return a classifier for labels."""
    return LogisticRegression(C=10, max_iter=1000) if sparse.issparse(rows) else clone(DEFAULT)


def accuracy_of(table, answers, test, prior):
    """Return the accuracy in % of answers on test rows, weighted so that the share of positives is the prior."""
    truth = table.labels[test] > 0
    weights = np.where(truth, prior / truth.mean(), (1 - prior) / (1 - truth.mean()))
    return 100 * float(np.average((np.asarray(answers) > 0) == truth, weights=weights))


def other_measures(scores, held, prior):
    """Return what else could choose a learner, lower is better, of scores (N,) on held-out bags."""
    rest, members = scores[held.unlabeled], np.concatenate([scores[part.tuples].ravel() for part in held.parts])
    error = bags = 0.0
    for part in held.parts:
        size, share = part.tuples.shape[1], len(part.tuples) / held.n
        sample = TupleData(part.tuples, held.unlabeled)
        error += share * estimated_risk(scores > 0, sample, prior, Law.dominant, 0.95).value
        counts = np.bincount((scores[part.tuples] > 0).sum(axis=1), minlength=size + 1) / len(part.tuples)
        bags += share * float(part.law.bag_risk(counts, (rest > 0).mean(), prior))
    sides = np.repeat([1, 0], [len(members), len(rest)])
    area = roc_auc_score(sides, np.concatenate([members, rest]))
    proxy = ((members > 0).mean() + (rest <= 0).mean()) / 2
    return {"by error": error, "by bag risk": bags, "by proxy accuracy": -proxy, "by proxy AUC": -area}


def accuracies(table, sizes, prior, n, trial, known):
    """Yield the name of each learner, what was trained, its accuracy and processor seconds, but of those known."""
    train, test = table.split(trial)
    sample = table.draw(train, [Law.dominant(size) for size in sizes], prior, n, Stream(trial, "learners"))
    rows, one_size = table.rows, len(sizes) == 1 and not sparse.issparse(table.rows)
    chosen, seen = known.get("auto", ""), []

    def watched(scores, held, prior, seed):
        seen.append(other_measures(scores, held, prior))
        return held_out_loss(scores, held, prior, seed)

    estimator.held_out_loss = watched
    for name in ("auto", "default", "student", "linear", "network", "abs"):
        if name in (*known, chosen) or (name in ("network", "abs") and not one_size):
            continue
        learner = {"default": chosen, "abs": Network(method="abs"), "network": Network()}.get(name, name)
        told = None if name == "default" else prior
        classifier = MDPUClassifier(told, learner=learner, compare_prior=False, random_state=trial)
        begun, trained, accuracy = time.process_time(), "", None
        try:
            trained = classifier.fit(rows, sample).learner_.name
        except UserError:
            assert told is None
        seconds = round(time.process_time() - begun, 2)
        if trained:
            accuracy = accuracy_of(table, classifier.predict(rows[test]), test, prior)
        yield name, trained, accuracy, seconds
        if name == "auto":
            chosen, names = trained, ("student", "linear", "network")
            for measure in seen[0]:
                yield measure, names[int(np.argmin([own[measure] for own in seen]))], None, None
    if "labels" in known:
        return
    flat = rows if sparse.issparse(rows) else rows.reshape(rows.shape[0], -1)
    members = sample.tuples[sample.tuples >= 0]
    naive = usual(flat).fit(flat[np.concatenate([members, sample.unlabeled])], np.repeat([1, -1], [len(members), n]))
    scores, of_unlabeled = (naive.predict_proba(flat[places])[:, 1] for places in (test, sample.unlabeled))
    labels = usual(flat).fit(flat[sample.unlabeled], table.labels[sample.unlabeled])
    yield "copied", "", accuracy_of(table, scores - 0.5, test, prior), None
    yield "uu", "", accuracy_of(table, scores - np.quantile(of_unlabeled, 1 - prior), test, prior), None
    yield "labels", "", accuracy_of(table, labels.predict(flat[test]), test, prior), None


def main():
    """Write the lines of all cells, as they are made; a trial of all before the next."""
    own = parser_of(__doc__.split("\n")[0], "learners.csv")
    own.add_argument("--trials", type=int, default=TRIALS, help="how many, at most")
    own.add_argument("--cells", nargs="+", type=int, default=range(len(CELLS)), help="places in the list")
    arguments = own.parse_args()
    frame = pd.read_csv(arguments.out, dtype={"sizes": str, "chosen": str}) if arguments.out.exists() else None
    lines = [] if frame is None else frame.astype({"chosen": object}).to_dict("records")
    warnings.simplefilter("ignore")
    for trial in range(arguments.trials):
        for name, sizes, prior, n in (CELLS[place] for place in arguments.cells):
            source = name.split(", ")[0]
            path = getattr(arguments, source, None)
            if (trial and n >= 10_000) or (source in FILES and path is None):
                continue
            key = dict(zip(CELL, (name, " ".join(map(str, sizes)), prior, n, trial), strict=True))
            known = {line["learner"]: line["chosen"] for line in lines if key.items() <= line.items()}
            for learner, chosen, accuracy, seconds in accuracies(Table.read(name, path), sizes, prior, n, trial, known):
                found = {"learner": learner, "chosen": chosen, "accuracy": accuracy, "seconds": seconds}
                lines.append({**key, **found})
                pd.DataFrame(lines).round(2).to_csv(arguments.out, index=False)
            print(*key.values(), flush=True)


if __name__ == "__main__":
    main()
