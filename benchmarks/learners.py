"""Learners of `MDPUClassifier` on tables, texts and images: without the prior, told it, and beside labels.

A line of the CSV is a learner on one sample of a cell: its accuracy in %, on rows set aside and weighted to the prior,
and processor seconds of the training. ``default`` has no prior; where `fit` refuses, its accuracy is empty. All others
are told it. ``auto`` names what was chosen, which stands for this learner too. ``abs`` is the paper's ABS with the
classifier's network. ``copied`` is gradient boosting with every member as a positive and every unlabeled row as a
negative; ``uu`` are the same scores cut where the prior's share of the unlabeled rows lies above. ``labels`` is
gradient boosting on the unlabeled rows with their labels.

Settings were fixed before the first run. A trial of all cells comes before the next; small cells have more.

    OMP_NUM_THREADS=1 python benchmarks/learners.py --magic magic_train.csv --reviews natural --mnist mnist.npz
"""

import csv
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from tables import FILES, Table, parser

from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier
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
LEARNERS = ("auto", "student", "linear", "trees", "network", "abs")
BESIDE = ("copied", "uu", "labels")


def usual(rows):
    """Return a classifier for labels."""
    return LogisticRegression(C=10, max_iter=1000) if sparse.issparse(rows) else clone(DEFAULT)


def accuracies(table, sizes, prior, n, trial, asked):
    """Yield the name of each learner that is asked for, what was trained, its accuracy and processor seconds."""
    train, test = table.split(trial)
    sample = table.draw(train, [Law.dominant(size) for size in sizes], prior, n, Stream(trial, "learners"))
    rows, left_out = table.rows, {"network"} if len(sizes) > 1 else set()
    if sparse.issparse(rows):
        left_out = {"student", "trees", "network", "abs"}
    for name in ("default", *LEARNERS):
        if name in left_out or name not in asked:
            continue
        told = None if name == "default" else prior
        what = {"method": "abs"} if name == "abs" else {"learner": "auto" if name == "default" else name}
        classifier = MDPUClassifier(told, **what, compare_prior=False, random_state=trial, device="cpu")
        begun, chosen, accuracy = time.process_time(), "", ""
        try:
            classifier.fit(rows, sample)
        except UserError:
            assert told is None
        seconds = round(time.process_time() - begun, 2)
        if hasattr(classifier, "learner_"):
            chosen = classifier.learner_.name
            accuracy = table.accuracy(classifier.predict(rows[test]), test, prior)
        if name == "auto":
            left_out.add(chosen)
        yield name, chosen, accuracy, seconds
    if not asked & {*BESIDE}:
        return
    flat = rows if sparse.issparse(rows) else rows.reshape(len(rows), -1)
    members = sample.tuples[sample.tuples >= 0]
    naive = usual(flat).fit(flat[np.concatenate([members, sample.unlabeled])], np.repeat([1, -1], [len(members), n]))
    scores, of_unlabeled = (naive.predict_proba(flat[places])[:, 1] for places in (test, sample.unlabeled))
    labels = usual(flat).fit(flat[sample.unlabeled], table.labels[sample.unlabeled])
    yield "copied", "", table.accuracy(scores - 0.5, test, prior), ""
    yield "uu", "", table.accuracy(scores - np.quantile(of_unlabeled, 1 - prior), test, prior), ""
    yield "labels", "", table.accuracy(labels.predict(flat[test]), test, prior), ""


def main():
    """Add what the CSV lacks."""
    own = parser(__doc__.split("\n")[0], "learners.csv")
    own.add_argument("--trials", type=int, default=max(TRIALS.values()), help="at most")
    own.add_argument("--learners", nargs="+", choices=LEARNERS, default=LEARNERS)
    arguments, tables, done = own.parse_args(), {}, {}
    warnings.simplefilter("ignore")
    if arguments.out.exists():
        with arguments.out.open() as file:
            for *key, learner, chosen, _, _ in csv.reader(file):
                done.setdefault(tuple(key), set()).update({learner, chosen} if learner == "auto" else {learner})
    else:
        arguments.out.write_text("set,sizes,prior,n,trial,learner,chosen,accuracy,seconds\n")
    for trial in range(arguments.trials):
        for name, sizes, prior, n in CELLS:
            key, path = [name, " ".join(map(str, sizes)), prior, n, trial], getattr(arguments, name, None)
            asked = {"default", *arguments.learners, *BESIDE} - done.get(tuple(map(str, key)), set())
            if trial >= TRIALS[n] or not asked or (name in FILES and path is None):
                continue
            if name not in tables:
                tables[name] = Table.read(name, path)
            lines = [
                [*key, learner, chosen, accuracy if accuracy == "" else round(accuracy, 2), seconds]
                for learner, chosen, accuracy, seconds in accuracies(tables[name], sizes, prior, n, trial, asked)
            ]
            with arguments.out.open("a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(lines)
            print(*key, flush=True)


if __name__ == "__main__":
    main()
