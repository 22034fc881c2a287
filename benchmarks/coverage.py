r"""How often the intervals of the library cover: of the prior, and of scores without labels.

In each repetition a learner, by default the linear one, is trained on n tuples and n unlabeled
rows, once with the true prior told, once with the estimated one, whose interval is read off
(`PriorProfile`). Scores without labels of the first, and the error rate of the second, are then
read off five held-out samples of the same size (`HELD_OUT`); their truth is known, as the held-out
samples are drawn from a finite set of labelled rows. Where there are copies, each unlabeled row
stands so many times in all samples. Settings that the CSV has of this learner are not run again.

The rule, which was fixed before the first run: in each setting each interval of 95 % covers in at
least 93 % of the repetitions, and no prior that is said to be known is more than 0.3 off. A setting
that falls short is drawn again from other seeds, with ``--first``.

    OMP_NUM_THREADS=1 python benchmarks/coverage.py \
        --magic magic_train.csv --reviews finegrained.txt --mnist mnist.npz
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from shared import LAWS, Lines, Table, parser_of, read_table
from sklearn.metrics import roc_auc_score

from mdpu.data import TupleData, number_groups, sample_of
from mdpu.estimator import TupleClassifier
from mdpu.law import Law
from mdpu.randomness import Stream
from mdpu.sample import without_repeats
from mdpu.scores import (
    Estimate,
    estimated_profile,
    estimated_risk,
    scores_without_labels,
    with_uncertain_prior,
)

LEVEL = 0.95
HELD_OUT = 5
EXACT = 1e-9  # an estimate without any variance is right up to rounding


class Setting(NamedTuple):
    """What is drawn.

    ``broken`` is a share of the tuples; each unlabeled row stands in a sample ``copies`` times.
    """

    set: str
    law: str
    sizes: tuple[int, ...]
    prior: float
    n: int
    broken: float
    copies: int

    def law_of(self, size: int) -> Law:
        """Return the law of tuples of a size."""
        return LAWS[self.law](size).broken(self.broken)

    def draw(self, table: Table, places: np.ndarray, stream: Stream) -> TupleData:
        """Return a sample of the rows at these places of a table."""
        laws = [self.law_of(size) for size in self.sizes]
        sample = table.draw(places, laws, self.prior, self.n, stream)
        return replace(sample, unlabeled=np.repeat(sample.unlabeled, self.copies))


SETTINGS = [
    Setting("magic", "dominant", (2,), 0.35, 200, 0, 1),
    Setting("cancer", "dominant", (3,), 0.5, 200, 0, 1),
    Setting("digits", "dominant", (5,), 0.2, 200, 0, 1),
    Setting("mnist", "dominant", (2,), 0.1, 200, 0, 1),
    Setting("magic", "dominant", (2, 3, 5), 0.4, 200, 0, 1),
    Setting("digits", "dominant", (3,), 0.4, 200, 0.1, 1),
    Setting("magic", "dominant", (2,), 0.35, 1000, 0, 1),
    Setting("reviews", "dominant", (2,), 0.4, 1000, 0, 1),
    Setting("magic", "dominant", (2,), 0.8, 200, 0, 1),
    Setting("cancer", "dominant", (2,), 0.35, 200, 0, 1),
    Setting("magic", "dominant", (3,), 0.5, 1000, 0.1, 1),
    Setting("mnist", "dominant", (3,), 0.5, 1000, 0, 1),
    Setting("magic", "dominant", (5,), 0.6, 200, 0.05, 1),
    Setting("magic", "one", (3,), 0.5, 1000, 0, 1),
    Setting("reviews", "dominant", (3,), 0.6, 1000, 0, 1),
    Setting("magic", "dominant", (2,), 0.5, 5000, 0, 1),
    Setting("digits", "dominant", (3,), 0.5, 500, 0, 4),
    Setting("cancer", "dominant", (2,), 0.35, 200, 0, 2),
    Setting("magic", "dominant", (3,), 0.5, 1000, 0, 4),
    Setting("moons", "dominant", (3,), 0.4, 500, 0, 2),
    Setting("magic", "dominant", (3,), 0.8, 1000, 0, 1),
    Setting("cancer", "dominant", (2,), 0.8, 1000, 0, 1),
    Setting("digits", "dominant", (3,), 0.8, 1000, 0, 1),
    Setting("birdsong", "dominant", (3,), 0.8, 1000, 0, 1),
    Setting("moons", "dominant", (2,), 0.8, 1000, 0, 1),
    Setting("letters, 16 numbers", "dominant", (3,), 0.4, 1000, 0, 1),
    Setting("hastie", "dominant", (3,), 0.5, 1000, 0, 1),
    Setting("few of many", "dominant", (5,), 0.3, 500, 0, 1),
]


class Interval(NamedTuple):
    """Whether an interval covers, its width, and how far its value, which may be known, is off."""

    name: str
    covers: bool
    width: float
    known: bool
    off: float

    @classmethod
    def of(cls, name: str, estimate: Estimate, truth: float) -> "Interval":
        """Return the interval of an estimate beside the truth."""
        covers = estimate.low - EXACT <= truth <= estimate.high + EXACT
        width = estimate.high - estimate.low
        return cls(name, covers, width, known=False, off=abs(estimate.value - truth))


@dataclass(frozen=True)
class Scores:
    """A classifier whose rows (N, 1) are their scores."""

    prior: float | None
    prior_: float
    prior_estimate_: Any
    law_of: Any

    def decision_function(self, rows: np.ndarray) -> np.ndarray:
        """Return the scores."""
        return rows[:, 0]


def truths(scores: np.ndarray, labels: np.ndarray, prior: float) -> dict[str, float]:
    """Return the measures of scores on labelled rows, at a prior."""
    recall = (scores[labels == 1] > 0).mean()
    false_alarms = (scores[labels == -1] > 0).mean()
    called = prior * recall + (1 - prior) * false_alarms
    return {
        "risk": prior * (1 - recall) + (1 - prior) * false_alarms,
        "auc": roc_auc_score(labels, scores),
        "balanced_accuracy": (recall + 1 - false_alarms) / 2,
        "precision": prior * recall / called if called else np.nan,
        "recall": recall,
    }


def estimates_of(classifier: Scores, scores: np.ndarray, sample: TupleData) -> dict[str, Estimate]:
    """Return what the library estimates of scores (N,) without labels, by the name of the measure.

    Where the prior is estimated, that is the error rate alone.
    """
    present = sample.tuples >= 0
    rows = scores[np.concatenate([sample.tuples[present], sample.unlabeled])][:, None]
    of_members = np.nonzero(present)[0]
    of_unlabeled = np.full(len(sample.unlabeled), -1)
    groups = number_groups(np.concatenate([of_members, of_unlabeled]))

    estimates = {}
    if classifier.prior is not None:
        estimates = scores_without_labels(classifier, rows, groups)

    distinct = without_repeats(rows, sample_of(groups))
    positive = rows[:, 0] > 0

    def risk_at(prior: float) -> dict[str, Estimate]:
        return {"risk": estimated_risk(positive, distinct, prior, classifier.law_of, LEVEL)}

    profile = estimated_profile(classifier)
    return estimates | with_uncertain_prior(risk_at, classifier.prior_, profile, LEVEL)


def intervals(table: Table, setting: Setting, trial: int, learner: str) -> Iterator[Interval]:
    """Yield the intervals of a repetition."""
    stream = Stream(trial, "coverage")
    train, test = table.split(trial)
    sample = setting.draw(table, train, stream)
    for told in (setting.prior, None):
        classifier = TupleClassifier(
            told,
            law=setting.law_of,
            learner=learner,
            compare_prior=False,
            guess_prior=told is None,
            random_state=trial,
        )
        classifier.fit(table.rows, sample)

        profile = classifier.prior_estimate_
        if told is None:
            covers = profile.fits(setting.prior)
            width = profile.high - profile.low
            off = abs(profile.prior - setting.prior)
            yield Interval("prior", covers, width, profile.known, off)

        scores = classifier.decision_function(table.rows[test]).astype(float)
        held_out = Table(scores, table.labels[test])
        stand_in = Scores(told, classifier.prior_, profile, setting.law_of)
        yield from held_out_intervals(held_out, stand_in, setting, stream)


def held_out_intervals(
    scored: Table,
    classifier: Scores,
    setting: Setting,
    stream: Stream,
) -> Iterator[Interval]:
    """Yield the intervals of measures, of samples from a table whose rows are scores."""
    truth = truths(scored.rows, scored.labels, setting.prior)
    places = np.arange(len(scored.labels))
    for _ in range(HELD_OUT):
        sample = setting.draw(scored, places, stream)
        for name, estimate in estimates_of(classifier, scored.rows, sample).items():
            if not np.isnan(truth[name]):
                title = name if classifier.prior else f"{name}, prior estimated"
                yield Interval.of(title, estimate, truth[name])


def summary(repeated: pd.DataFrame) -> dict[str, Any]:
    """Return what the repetitions of an interval come to."""
    known = repeated[repeated["known"].astype(bool)]
    line = {
        "repetitions": len(repeated),
        "covers": int(repeated["covers"].sum()),
        "width": round(repeated["width"].median(), 3),
        "known": len(known),
        "known_covers": int(known["covers"].sum()),
    }
    if len(known):
        line["known_width"] = round(known["width"].median(), 3)
        line["worst"] = round(known["off"].max(), 3)
    return line


def main() -> None:
    """Write the lines of all settings, as they are made."""
    every = range(len(SETTINGS))
    parser = parser_of(__doc__, "coverage.csv")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--first", type=int, default=1000, help="first trial")
    parser.add_argument("--learner", default="linear", help="of the classifiers")
    parser.add_argument("--settings", nargs="+", type=int, default=every, help="places in the list")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")

    lines = Lines(arguments.out, "sizes")
    for place in arguments.settings:
        setting = SETTINGS[place]
        sizes = " ".join(map(str, setting.sizes))
        of_setting = {**setting._asdict(), "sizes": sizes, "first": arguments.first}
        key = {**of_setting, "learner": arguments.learner}
        table = read_table(setting.set, arguments)
        if table is None or lines.of(key):
            continue

        repeated = []
        for trial in range(arguments.first, arguments.first + arguments.repetitions):
            repeated += intervals(table, setting, trial, arguments.learner)
        by_name = pd.DataFrame(repeated).groupby("name", sort=False)
        lines.add(*({**key, "interval": name, **summary(group)} for name, group in by_name))
        print(*key.values(), flush=True)


if __name__ == "__main__":
    main()
