"""Shared by the benchmarks: images with their labels, tables and texts, tuples of any law drawn from them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
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
from mdpu.pipeline.data.images import ImageSet, read_images
from mdpu.pipeline.data.labels import binarize
from mdpu.randomness import Stream

# -- images ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labelled:
    """The images of a dataset and their labels, -1 or +1, by part: ``train`` and ``test``."""

    images: ImageSet
    labels: dict[str, NDArray[np.int8]]

    @classmethod
    def read(cls, path: str | Path, positive: Sequence[str] = (), negative: Sequence[str] = ()) -> Labelled:
        """Read prepared images; unless classes are named, every other one is positive, beginning with the first."""
        images = read_images(Path(path))
        sides = {
            "positive": list(positive) or list(images.classes[0::2]),
            "negative": list(negative) or list(images.classes[1::2]),
        }
        given = {*map(str, sides["positive"]), *map(str, sides["negative"])}
        return cls(
            images, binarize(images, {**sides, "dropped": [name for name in images.classes if name not in given]})
        )


# -- tables and texts -----------------------------------------------------------------------------

IMAGES = {
    "mnist": range(0, 10, 2),
    "fashion": range(0, 10, 2),
    "letters": range(13),
    "cifar10": range(2, 8),
}  # positive
FILES = {
    "magic": "the CSV of MAGIC",
    "reviews": "finegrained.txt of Taeckstroem and McDonald",
    "birdsong": "birdsong-segments.csv.gz of Briggs et al.",
    **{name: f"{name}.npz, a prepared set of images" for name in IMAGES},
}
# Sets of scikit-learn: what is positive among the classes, or targets, of one that it ships, and samplers of others.
SETS = {
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
        partial(make_classification, 9000, 200, n_informative=8, n_redundant=0, class_sep=1.5, random_state=0),
        lambda side: side > 0,
    ),
}
NOISE = {"moons": 18}  # columns of noise that are added
POLAR = ("pos", "neg")  # reviews, and sentences of them
LAWS = {"dominant": Law.dominant, "one": lambda size: Law.exactly(size, 1)}


@dataclass(frozen=True)
class Table:
    """Rows (N, ...), dense or sparse, and their labels, +1 or -1; a third is set aside for tests."""

    rows: Any
    labels: np.ndarray

    @classmethod
    def read(cls, name: str, path: str | None = None) -> Table:
        """Return a set by its name, from the path of its file where `FILES` has it."""
        if name == "magic":
            frame = pd.read_csv(path)
            return cls(frame.iloc[:, :-1].to_numpy(float), np.where(frame.iloc[:, -1] == "g", 1, -1))
        if name == "reviews":
            reviews = [block.split("\n") for block in Path(path).read_text(encoding="utf-8").strip().split("\n\n")]
            lines = [line.split("\t", 1) for own in reviews if own[0].split("_")[1] in POLAR for line in own[2:]]
            polar = [(side, text) for side, text in lines if side in POLAR]
            words = TfidfVectorizer(min_df=2, ngram_range=(1, 2), sublinear_tf=True)
            rows = words.fit_transform([text for _, text in polar])
            return cls(rows, np.where([side == "pos" for side, _ in polar], 1, -1))
        if name == "birdsong":
            frame = pd.read_csv(path).query("species > 0")
            return cls(frame.loc[:, "f1":].to_numpy(float), np.where(frame["species"] % 2 == 0, 1, -1))
        source, _, form = name.partition(", ")
        if source in IMAGES:
            with np.load(path, allow_pickle=False) as images:
                rows, classes = images["train_images"][:9000], images["train_labels"][:9000]
            if form == "components":
                rows = PCA(30, random_state=0).fit_transform(rows.reshape(len(rows), -1).astype(float))
            elif form == "16 numbers":  # the ink in 4 x 4 parts
                rows = rows.reshape(-1, 4, 7, 4, 7).mean(axis=(2, 4)).reshape(-1, 16)
            return cls(rows, np.where(np.isin(classes, IMAGES[source]), 1, -1))
        load, is_positive = SETS[name]
        rows, classes = load()
        noise = np.random.default_rng(0).standard_normal((len(rows), NOISE.get(name, 0)))
        return cls(np.hstack([rows, noise]), np.where(is_positive(classes), 1, -1))

    def split(self, trial: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of rows to draw from and of those that are set aside."""
        order = Stream(trial, "parts of a table").permutation(len(self.labels))
        return order[len(order) // 3 :], order[: len(order) // 3]

    def draw(self, places: np.ndarray, laws: Sequence[Law], prior: float, n: int, stream: Stream) -> TupleData:
        """Return n tuples, as many by each law, and n unlabeled rows, drawn from places with replacement."""
        of_class = [places[self.labels[places] == label] for label in (1, -1)]

        def rows_of(positive: np.ndarray) -> np.ndarray:
            chosen = stream.uniform(*positive.shape)
            return np.where(positive, *(own[(chosen * len(own)).astype(int)] for own in of_class))

        tuples = np.full((n, max(law.size for law in laws)), -1)
        for first, law in enumerate(laws):
            own = tuples[first :: len(laws), : law.size]
            own[:] = rows_of(law.draw(prior, len(own), stream) > 0)
        return TupleData(tuples, rows_of(stream.uniform(n) < prior))


def parser_of(description: str, out: str) -> argparse.ArgumentParser:
    """Return a parser with the files that the sets need, and the CSV."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path("results/reference") / out)
    for name, what in FILES.items():
        parser.add_argument(f"--{name}", help=f"{what}; without it, this set is left out")
    return parser
