"""How often the intervals of the library cover: the prior, the error rate, other scores without labels.

In each repetition the linear learner is trained on n tuples and n unlabeled rows, with the true prior told, and the
interval of the prior is read off (`PriorProfile`). Scores without labels are then read off five held-out samples of the
same size (`HELD_OUT`); their truth is known, as the held-out samples are drawn from a finite set of labelled rows.

The rule, which was fixed before the first run: in each setting each interval of 95 % covers in at least 93 % of the
repetitions, and no prior that is said to be known is more than 0.3 off. A setting that falls short is drawn again from
other seeds, with ``--first``.

    OMP_NUM_THREADS=1 python benchmarks/coverage.py --magic magic_train.csv --reviews finegrained.txt --mnist mnist.npz
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from shared import FILES, LAWS, Table, parser_of
from sklearn.metrics import roc_auc_score

from mdpu.data import number_groups, sample_of
from mdpu.estimator import TupleClassifier
from mdpu.randomness import Stream
from mdpu.scores import estimated_risk, scores_without_labels

HELD_OUT = 5
# Set, law, tuple sizes, prior, n, share of broken tuples.
SETTINGS = [
    ("magic", "dominant", (2,), 0.35, 200, 0),
    ("cancer", "dominant", (3,), 0.5, 200, 0),
    ("digits", "dominant", (5,), 0.2, 200, 0),
    ("mnist", "dominant", (2,), 0.1, 200, 0),
    ("magic", "dominant", (2, 3, 5), 0.4, 200, 0),
    ("digits", "dominant", (3,), 0.4, 200, 0.1),
    ("magic", "dominant", (2,), 0.35, 1000, 0),
    ("reviews", "dominant", (2,), 0.4, 1000, 0),
    ("magic", "dominant", (2,), 0.8, 200, 0),
    ("cancer", "dominant", (2,), 0.35, 200, 0),
    ("magic", "dominant", (3,), 0.5, 1000, 0.1),
    ("mnist", "dominant", (3,), 0.5, 1000, 0),
    ("magic", "dominant", (5,), 0.6, 200, 0.05),
    ("magic", "one", (3,), 0.5, 1000, 0),
    ("reviews", "dominant", (3,), 0.6, 1000, 0),
    ("magic", "dominant", (2,), 0.5, 5000, 0),
]
EXACT = 1e-9  # an estimate without any variance is right up to rounding


@dataclass(frozen=True)
class Scores:
    """A classifier whose rows (N, 1) are their scores."""

    prior_: float
    law_of: Any

    def decision_function(self, rows):
        """Return the scores."""
        return rows[:, 0]


def truths(scores, labels, prior):
    """Return the measures of scores on labelled rows, at a prior."""
    recall, false_alarms = (scores[labels == label].__gt__(0).mean() for label in (1, -1))
    called = prior * recall + (1 - prior) * false_alarms
    return {
        "risk": prior * (1 - recall) + (1 - prior) * false_alarms,
        "auc": roc_auc_score(labels, scores),
        "balanced_accuracy": (recall + 1 - false_alarms) / 2,
        "precision": prior * recall / called if called else np.nan,
        "recall": recall,
    }


def intervals(table, law, sizes, prior, n, broken, trial):
    """Yield of each interval its name, whether it covers, its width, whether it is known, how far the value is off."""

    def law_of(size):
        return LAWS[law](size).broken(broken)

    laws, stream = [law_of(size) for size in sizes], Stream(trial, "coverage")
    train, test = table.split(trial)
    classifier = TupleClassifier(prior, law=law_of, learner="linear", random_state=trial)
    found = classifier.fit(table.rows, table.draw(train, laws, prior, n, stream)).prior_estimate_
    yield "prior", found.fits(prior), found.high - found.low, found.known, abs(found.prior - prior)
    held = Table(classifier.decision_function(table.rows[test]).astype(float), table.labels[test])
    true, stand_in = truths(held.rows, held.labels, prior), Scores(prior, law_of)
    for _ in range(HELD_OUT):
        sample = held.draw(np.arange(len(test)), laws, prior, n, stream)
        present = sample.tuples >= 0
        rows = held.rows[np.concatenate([sample.tuples[present], sample.unlabeled])][:, None]
        groups = number_groups(np.concatenate([np.nonzero(present)[0], np.full(n, -1)]))
        estimates = scores_without_labels(stand_in, rows, groups)
        estimates["risk"] = estimated_risk(rows[:, 0] > 0, sample_of(groups), prior, law_of, 0.95)
        for name, one in estimates.items():
            if not np.isnan(true[name]):
                covers = one.low - EXACT <= true[name] <= one.high + EXACT
                yield name, covers, one.high - one.low, False, abs(one.value - true[name])


def main():
    """Write the lines of all settings, as they are made."""
    own = parser_of(__doc__.split("\n")[0], "coverage.csv")
    own.add_argument("--repetitions", type=int, default=200)
    own.add_argument("--first", type=int, default=1000, help="first trial")
    own.add_argument("--settings", nargs="+", type=int, default=range(len(SETTINGS)), help="places in the list")
    arguments, lines = own.parse_args(), []
    warnings.simplefilter("ignore")
    for name, law, sizes, prior, n, broken in (SETTINGS[place] for place in arguments.settings):
        path = getattr(arguments, name, None)
        if name in FILES and path is None:
            continue
        table, rows = Table.read(name, path), {}
        for trial in range(arguments.first, arguments.first + arguments.repetitions):
            for interval, *numbers in intervals(table, law, sizes, prior, n, broken, trial):
                rows.setdefault(interval, []).append(numbers)
        key = {"set": name, "law": law, "sizes": " ".join(map(str, sizes)), "prior": prior, "n": n, "broken": broken}
        for interval, numbers in rows.items():
            covers, width, known, off = np.array(numbers, float).T
            own = known > 0
            line = {**key, "first": arguments.first, "interval": interval, "repetitions": len(covers)}
            line |= {"covers": int(covers.sum()), "width": round(np.median(width), 3), "known": int(own.sum())}
            line["known_covers"] = int(covers[own].sum())
            if own.any():
                line |= {"known_width": round(np.median(width[own]), 3), "worst": round(off[own].max(), 3)}
            lines.append(line)
        pd.DataFrame(lines).to_csv(arguments.out, index=False)
        print(*key.values(), flush=True)


if __name__ == "__main__":
    main()
