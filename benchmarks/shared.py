"""Shared by the benchmarks: labelled sets, tuples drawn from them, and CSV files that grow."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_moons,
)
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer

from mdpu.data import TupleData
from mdpu.law import Law
from mdpu.networks import TestSet
from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.data.labels import binarize
from mdpu.randomness import Stream

LAWS = {
    "dominant": Law.dominant,
    "one": lambda size: Law.exactly(size, 1),
}


# -- images ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelledImages:
    """Images (N, ...) to learn from and to test on, and their labels (N,), int8, -1 or +1."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    @classmethod
    def read(cls, path: str | Path) -> LabelledImages:
        """Read prepared images; every other class is positive, beginning with the first."""
        images = read_images(Path(path))
        sides = {"positive": images.classes[0::2], "negative": images.classes[1::2]}
        labels = binarize(images, sides)
        return cls(images.train_images, labels["train"], images.test_images, labels["test"])

    def test_set(self) -> TestSet:
        """Return the test of the trainer."""
        return TestSet(self.test_images, self.test_labels, self.train_images, self.train_labels)


def accuracies_of(history: pd.DataFrame, test: TestSet) -> pd.Series:
    """Return the accuracy of each epoch of a trained model, from 0 to 1."""
    positive, negative = (history[rate] for rate in test.rates)
    return test.share_positive * positive + (1 - test.share_positive) * negative


# -- tables and texts -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Rows (N, ...), dense or sparse, and their labels, -1 or +1; a third is kept for tests."""

    rows: Any
    labels: np.ndarray

    @classmethod
    def of(cls, rows: Any, positive: Any) -> Table:
        """Return rows with labels that say which are positive (N,)."""
        return cls(rows, np.where(positive, 1, -1))

    @classmethod
    def read(cls, name: str, path: str | None = None) -> Table:
        """Return a set by its name, from the path of its file where `FILES` has it."""
        source, _, form = name.partition(", ")
        if source in POSITIVE_CLASSES:
            return read_pictures(path, POSITIVE_CLASSES[source], form)
        if source in READERS:
            return READERS[source](path)

        load, is_positive = SETS[name]
        rows, classes = load()
        noise = np.random.default_rng(0).standard_normal((len(rows), NOISE.get(name, 0)))
        return cls.of(np.hstack([rows, noise]), is_positive(classes))

    def split(self, trial: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of rows to draw from and of those that are set aside."""
        order = Stream(trial, "parts of a table").permutation(len(self.labels))
        third = len(order) // 3
        return order[third:], order[:third]

    def draw(
        self,
        places: np.ndarray,
        laws: Sequence[Law],
        prior: float,
        n: int,
        stream: Stream,
    ) -> TupleData:
        """Return n tuples, as many by each law, and n unlabeled rows.

        They are drawn from places, with replacement.
        """
        positives = places[self.labels[places] == 1]
        negatives = places[self.labels[places] == -1]

        def rows_of(positive: np.ndarray) -> np.ndarray:
            chosen = stream.uniform(*positive.shape)
            of_positives = positives[(chosen * len(positives)).astype(int)]
            of_negatives = negatives[(chosen * len(negatives)).astype(int)]
            return np.where(positive, of_positives, of_negatives)

        largest = max(law.size for law in laws)
        tuples = np.full((n, largest), -1)  # -1 where a smaller tuple has no member
        for first, law in enumerate(laws):
            of_law = tuples[first :: len(laws), : law.size]
            of_law[:] = rows_of(law.draw(prior, len(of_law), stream) > 0)

        unlabeled = rows_of(stream.uniform(n) < prior)
        return TupleData(tuples, unlabeled)


def read_magic(path: str) -> Table:
    """Return the ten features of MAGIC; gamma rays are positive."""
    frame = pd.read_csv(path)
    return Table.of(frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1] == "g")


def read_reviews(path: str) -> Table:
    """Return the words and pairs of words of sentences; those in a product's favour are positive.

    Reviews, and sentences, that are neutral or of both minds are left out.
    """
    texts = []
    favours = []
    for review in Path(path).read_text(encoding="utf-8").strip().split("\n\n"):
        heading, *lines = review.split("\n")
        if heading.split("_")[1] not in ("pos", "neg"):
            continue
        for line in lines[1:]:
            mood, text = line.split("\t", 1)
            if mood in ("pos", "neg"):
                texts.append(text)
                favours.append(mood == "pos")

    words = TfidfVectorizer(min_df=2, ngram_range=(1, 2), sublinear_tf=True)
    return Table.of(words.fit_transform(texts), favours)


def read_birdsong(path: str) -> Table:
    """Return the features of segments with a bird; species with even numbers are positive."""
    frame = pd.read_csv(path).query("species > 0")
    return Table.of(frame.loc[:, "f1":].to_numpy(float), frame["species"] % 2 == 0)


def read_pictures(path: str, positive: Sequence[int], form: str) -> Table:
    """Return 9,000 images of a prepared set as they are, or as ``components`` or ``16 numbers``."""
    with np.load(path, allow_pickle=False) as images:
        rows = images["train_images"][:9000]
        classes = images["train_labels"][:9000]

    if form == "components":
        pixels = rows.reshape(len(rows), -1).astype(float)
        rows = PCA(30, random_state=0).fit_transform(pixels)
    elif form == "16 numbers":  # the ink in 4 x 4 parts
        rows = rows.reshape(-1, 4, 7, 4, 7).mean(axis=(2, 4)).reshape(-1, 16)
    return Table.of(rows, np.isin(classes, positive))


READERS: dict[str, Callable[[str], Table]] = {
    "magic": read_magic,
    "reviews": read_reviews,
    "birdsong": read_birdsong,
}
# Prepared sets of images, and the classes that are positive.
POSITIVE_CLASSES = {
    "mnist": range(0, 10, 2),
    "fashion": range(0, 10, 2),
    "letters": range(13),
    "cifar10": range(2, 8),
}
# The file of each set.
FILES = {
    "magic": "the CSV of MAGIC",
    "reviews": "finegrained.txt of Taeckstroem and McDonald",
    "birdsong": "birdsong-segments.csv.gz of Briggs et al.",
    **{name: f"{name}.npz, a prepared set of images" for name in POSITIVE_CLASSES},
}
# Sets of scikit-learn, shipped or sampled: how each is loaded, and which classes, or targets, are
# positive.
SETS: dict[str, tuple[Callable[[], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "cancer": (partial(load_breast_cancer, return_X_y=True), lambda classes: classes == 1),
    "digits": (partial(load_digits, return_X_y=True), lambda classes: classes % 2 == 0),
    "wine": (partial(load_wine, return_X_y=True), lambda classes: classes == 1),
    "diabetes": (partial(load_diabetes, return_X_y=True), lambda progress: progress > 140),
    "hastie": (partial(make_hastie_10_2, 9000, random_state=0), lambda side: side > 0),
    "quantiles": (
        partial(make_gaussian_quantiles, n_samples=9000, n_features=6, n_classes=2, random_state=0),
        lambda ring: ring > 0,
    ),
    "moons": (partial(make_moons, 9000, noise=0.2, random_state=0), lambda moon: moon > 0),
    "few of many": (
        partial(
            make_classification,
            n_samples=9000,
            n_features=200,
            n_informative=8,
            n_redundant=0,
            class_sep=1.5,
            random_state=0,
        ),
        lambda side: side > 0,
    ),
}
NOISE = {"moons": 18}  # columns of noise that are added


# -- the command and its CSV file -----------------------------------------------------------------


def parser_of(description: str, out: str) -> argparse.ArgumentParser:
    """Return a parser with the files that the sets need, and the CSV.

    It shows the first line of a description.
    """
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results/reference") / out)
    for name, what in FILES.items():
        parser.add_argument(f"--{name}", help=f"{what}; without it, this set is left out")
    return parser


def read_table(name: str, arguments: argparse.Namespace) -> Table | None:
    """Return a set by its name, or None if it has a file and the command does not name it."""
    source = name.partition(", ")[0]
    path = getattr(arguments, source, None)
    if source in FILES and path is None:
        return None
    return Table.read(name, path)


class Lines:
    """The lines of a CSV file; a benchmark that is started again adds those that are missing.

    Columns of texts that may look like numbers are named.
    """

    def __init__(self, path: Path, *texts: str) -> None:
        self.path = path
        self.lines: list[dict[str, Any]] = []
        if path.exists():
            self.lines = pd.read_csv(path, dtype=dict.fromkeys(texts, str)).to_dict("records")

    def of(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the lines that have the values of a key."""
        return [line for line in self.lines if key.items() <= line.items()]

    def add(self, *lines: Mapping[str, Any]) -> None:
        """Add lines, and write the file."""
        self.lines += [dict(line) for line in lines]
        pd.DataFrame(self.lines).to_csv(self.path, index=False)
