r"""Learners of `MDPUClassifier` on real and drawn sets: told the prior, without it, beside labels.

A line of the CSV is a learner on one sample of a cell: its accuracy in %, on rows set aside and
weighted to the prior, and processor seconds of the training. All are told the prior but
``default``, the learner that ``auto`` names, without it; where `fit` refuses, its accuracy is
empty. ``abs`` is the paper's ABS with the classifier's network. ``copied`` is gradient boosting
with every member as a positive and every unlabeled row as a negative; ``uu`` are the same scores
cut where the prior's share of the unlabeled rows lies above. ``labels`` is gradient boosting on the
unlabeled rows with their labels.

Settings were fixed before the first run. A trial of all cells comes before the next. Lines that the
CSV has are kept.

    OMP_NUM_THREADS=1 python benchmarks/learners.py \
        --magic magic_train.csv --reviews finegrained.txt --mnist mnist.npz
"""

import time
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from shared import Lines, Table, parser_of, read_table
from sklearn.base import ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier, Network
from mdpu.law import Law
from mdpu.learners.choice import default_learner
from mdpu.learners.student import DEFAULT
from mdpu.randomness import Stream
from mdpu.sample import Sample


class Cell(NamedTuple):
    """What is drawn: a set, tuple sizes, the prior, n."""

    set: str
    sizes: tuple[int, ...]
    prior: float
    n: int


CELLS = [
    Cell("cancer", (2,), 0.35, 200),
    Cell("wine", (3,), 0.4, 200),
    Cell("diabetes", (2,), 0.5, 200),
    Cell("digits", (3,), 0.4, 200),
    Cell("magic", (2,), 0.35, 200),
    Cell("moons", (2,), 0.4, 500),
    Cell("quantiles", (3,), 0.4, 500),
    Cell("birdsong", (3,), 0.4, 500),
    Cell("hastie", (3,), 0.5, 500),
    Cell("few of many", (2,), 0.4, 500),
    Cell("mnist, components", (2,), 0.5, 500),
    Cell("reviews", (2,), 0.4, 1000),
    Cell("magic", (2, 3, 5), 0.4, 200),
    Cell("magic", tuple(range(2, 10)), 0.5, 500),
    Cell("digits", (5,), 0.2, 200),
    Cell("cancer", (2, 3, 5), 0.6, 200),
    Cell("wine", (5,), 0.7, 200),
    Cell("magic", (2,), 0.8, 200),
    Cell("mnist", (3,), 0.5, 200),
    Cell("fashion", (3,), 0.5, 200),
    Cell("letters", (3,), 0.5, 200),
    Cell("cifar10", (5,), 0.4, 200),
    Cell("magic", (3,), 0.5, 1000),
    Cell("magic", (2,), 0.35, 1000),
    Cell("digits", (2,), 0.1, 1000),
    Cell("reviews", (3,), 0.6, 1000),
    Cell("diabetes", (3,), 0.3, 1000),
    Cell("letters, 16 numbers", (3,), 0.5, 2000),
    Cell("mnist", (2,), 0.4, 1000),
    Cell("magic", (2,), 0.5, 10000),
    Cell("mnist", (2,), 0.5, 10000),
]
TRIALS = 3
ONE_TRIAL = 10_000  # tuples, from which on a cell has one trial


@dataclass(frozen=True)
class Trial:
    """A sample of a cell, the rows set aside, by place, and the prior that they are weighted to."""

    table: Table
    sample: TupleData
    test: np.ndarray
    prior: float
    seed: int

    @classmethod
    def draw(cls, table: Table, cell: Cell, seed: int) -> "Trial":
        """Return a trial of a cell."""
        train, test = table.split(seed)
        laws = [Law.dominant(size) for size in cell.sizes]
        sample = table.draw(train, laws, cell.prior, cell.n, Stream(seed, "learners"))
        return cls(table, sample, test, cell.prior, seed)

    def accuracy_of(self, scores: Any) -> float:
        """Return the accuracy in % of scores of the rows set aside, which are positive above 0."""
        labels = self.table.labels[self.test]
        positive = labels > 0
        share = positive.mean()
        weights = np.where(positive, self.prior / share, (1 - self.prior) / (1 - share))

        right = (np.asarray(scores) > 0) == positive
        accuracy = np.average(right, weights=weights)
        return float(np.round(100 * accuracy, 2))


class Result(NamedTuple):
    """A learner, the one that was trained, its accuracy in % and processor seconds."""

    learner: str
    chosen: str = ""
    accuracy: float | None = None
    seconds: float | None = None


def results(trial: Trial, known: Collection[str]) -> Iterator[Result]:
    """Yield the results of the learners whose names are not known."""
    data = Sample.of(trial.table.rows, trial.sample, Law.dominant)
    learners = {"default": default_learner(data)[0].name, "student": "student", "linear": "linear"}
    if len(data.bags.parts) == 1 and not data.is_sparse:
        learners |= {"network": Network(), "abs": Network(method="abs")}
    for name, learner in learners.items():
        if name not in known:
            prior = None if name == "default" else trial.prior
            yield train(trial, name, learner, prior)

    if "labels" not in known:
        yield from results_by_labels(trial)


def train(trial: Trial, name: str, learner: Any, prior: float | None) -> Result:
    """Return the result of a learner of the classifier."""
    classifier = MDPUClassifier(
        prior,
        learner=learner,
        compare_prior=False,
        random_state=trial.seed,
    )
    begun = time.process_time()
    trained = True
    try:
        classifier.fit(trial.table.rows, trial.sample)
    except UserError:
        if prior is not None:  # the estimate alone is refused
            raise
        trained = False
    seconds = round(time.process_time() - begun, 2)

    if not trained:
        return Result(name, str(learner), seconds=seconds)
    answers = classifier.predict(trial.table.rows[trial.test])
    return Result(name, classifier.learner_.name, trial.accuracy_of(answers), seconds)


# -- gradient boosting on labels, true or not ------------------------------------------------------


def results_by_labels(trial: Trial) -> Iterator[Result]:
    """Yield ``copied``, ``uu`` and ``labels``."""
    rows = trial.table.rows
    if not sparse.issparse(rows):
        rows = rows.reshape(len(rows), -1)
    test = rows[trial.test]
    unlabeled = rows[trial.sample.unlabeled]
    copied = fit_copied(rows, trial.sample)

    shares = copied.predict_proba(test)[:, 1]
    yield Result("copied", accuracy=trial.accuracy_of(shares - 0.5))

    of_unlabeled = copied.predict_proba(unlabeled)[:, 1]
    cut = np.quantile(of_unlabeled, 1 - trial.prior)
    yield Result("uu", accuracy=trial.accuracy_of(shares - cut))

    labels = trial.table.labels[trial.sample.unlabeled]
    answers = classifier_for(rows).fit(unlabeled, labels).predict(test)
    yield Result("labels", accuracy=trial.accuracy_of(answers))


def fit_copied(rows: Any, sample: TupleData) -> ClassifierMixin:
    """Return a classifier that takes members for positives and unlabeled rows for negatives."""
    members = sample.tuples[sample.tuples >= 0]
    places = np.concatenate([members, sample.unlabeled])
    sides = np.repeat([1, -1], [len(members), len(sample.unlabeled)])
    return classifier_for(rows).fit(rows[places], sides)


def classifier_for(rows: Any) -> ClassifierMixin:
    """Return a classifier for labels: gradient boosting, for sparse rows logistic regression."""
    if sparse.issparse(rows):
        return LogisticRegression(C=10, max_iter=1000)
    return clone(DEFAULT)


def main() -> None:
    """Write the lines of all cells, as they are made; a trial of all before the next."""
    every = range(len(CELLS))
    parser = parser_of(__doc__, "learners.csv")
    parser.add_argument("--trials", type=int, default=TRIALS, help="how many, at most")
    parser.add_argument("--cells", nargs="+", type=int, default=every, help="places in the list")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")

    lines = Lines(arguments.out, "sizes", "chosen")
    for seed, place in product(range(arguments.trials), arguments.cells):
        cell = CELLS[place]
        if seed > 0 and cell.n >= ONE_TRIAL:
            continue
        table = read_table(cell.set, arguments)
        if table is None:
            continue

        key = {**cell._asdict(), "sizes": " ".join(map(str, cell.sizes)), "trial": seed}
        known = {line["learner"] for line in lines.of(key)}
        for result in results(Trial.draw(table, cell, seed), known):
            lines.add({**key, **result._asdict()})
        print(*key.values(), flush=True)


if __name__ == "__main__":
    main()
