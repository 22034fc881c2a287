"""Learners of `MDPUClassifier` on tables, texts and images: without the prior, told it, and beside labels.

A line of the CSV is a learner on one sample of a cell: its accuracy in %, on rows set aside and weighted to the prior,
and processor seconds of the training. ``default`` has no prior; where `fit` refuses, its accuracy is empty. All others
are told it. ``auto`` names what was chosen, which stands for this learner too. ``abs`` is the paper's ABS with the
classifier's network. ``copied`` is gradient boosting with every member as a positive and every unlabeled row as a
negative; ``uu`` are the same scores cut where the prior's share of the unlabeled rows lies above. ``labels`` is
gradient boosting on the unlabeled rows with their labels.

Settings were fixed before the first run. A trial of all cells comes before the next; small cells have more.

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

from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier, Network
from mdpu.law import Law
from mdpu.learners.student import DEFAULT
from mdpu.randomness import Stream

# Set, tuple sizes, prior, n.
CELLS = [
    ("cancer", (2,), 0.35, 200),
    ("wine", (3,), 0.4, 200),
    ("diabetes", (2,), 0.5, 200),
    ("digits", (3,), 0.4, 200),
    ("magic", (2,), 0.35, 200),
    ("reviews", (2,), 0.4, 1000),
    ("magic", (2, 3, 5), 0.4, 200),
    ("digits", (5,), 0.2, 200),
    ("cancer", (2, 3, 5), 0.6, 200),
    ("wine", (5,), 0.7, 200),
    ("magic", (3,), 0.5, 1000),
    ("magic", (2,), 0.35, 1000),
    ("magic", (2,), 0.8, 200),
    ("mnist", (3,), 0.5, 200),
    ("digits", (2,), 0.1, 1000),
    ("reviews", (3,), 0.6, 1000),
    ("diabetes", (3,), 0.3, 1000),
    ("mnist", (2,), 0.4, 1000),
    ("magic", (2,), 0.5, 10000),
    ("mnist", (2,), 0.5, 10000),
]
TRIALS = {200: 10, 1000: 5, 10000: 1}
LEARNERS = ("auto", "student", "linear", "network", "abs")


def usual(rows):
    """Return a classifier for labels."""
    return LogisticRegression(C=10, max_iter=1000) if sparse.issparse(rows) else clone(DEFAULT)


def accuracy_of(table, answers, test, prior):
    """Return the accuracy in % of answers on test rows, weighted so that the share of positives is the prior."""
    truth = table.labels[test] > 0
    weights = np.where(truth, prior / truth.mean(), (1 - prior) / (1 - truth.mean()))
    return 100 * float(np.average((np.asarray(answers) > 0) == truth, weights=weights))


def accuracies(table, sizes, prior, n, trial):
    """Yield the name of each learner, what was trained, its accuracy and processor seconds."""
    train, test = table.split(trial)
    sample = table.draw(train, [Law.dominant(size) for size in sizes], prior, n, Stream(trial, "learners"))
    rows, left_out = table.rows, {"network"} if len(sizes) > 1 else set()
    if sparse.issparse(rows):
        left_out = {"student", "network", "abs"}
    for name in ("default", *LEARNERS):
        if name in left_out:
            continue
        told = None if name == "default" else prior
        learner = {"default": "auto", "abs": Network(method="abs"), "network": Network()}.get(name, name)
        classifier = MDPUClassifier(told, learner=learner, compare_prior=False, random_state=trial)
        begun, chosen, accuracy = time.process_time(), "", None
        try:
            classifier.fit(rows, sample)
        except UserError:
            assert told is None
        seconds = round(time.process_time() - begun, 2)
        if hasattr(classifier, "learner_"):
            chosen = classifier.learner_.name
            accuracy = accuracy_of(table, classifier.predict(rows[test]), test, prior)
        if name == "auto":
            left_out.add(chosen)
        yield name, chosen, accuracy, seconds
    flat = rows if sparse.issparse(rows) else rows.reshape(len(rows), -1)
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
    own.add_argument("--trials", type=int, default=max(TRIALS.values()), help="at most")
    arguments, lines = own.parse_args(), []
    warnings.simplefilter("ignore")
    for trial in range(arguments.trials):
        for name, sizes, prior, n in CELLS:
            path = getattr(arguments, name, None)
            if trial >= TRIALS[n] or (name in FILES and path is None):
                continue
            key = {"set": name, "sizes": " ".join(map(str, sizes)), "prior": prior, "n": n, "trial": trial}
            for learner, chosen, accuracy, seconds in accuracies(Table.read(name, path), sizes, prior, n, trial):
                found = {"learner": learner, "chosen": chosen, "accuracy": accuracy, "seconds": seconds}
                lines.append({**key, **found})
            pd.DataFrame(lines).round(2).to_csv(arguments.out, index=False)
            print(*key.values(), flush=True)


if __name__ == "__main__":
    main()
