"""The 504 accuracies of Tables II-V, as data."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.config import BASE
from mdpu.pipeline.files import resource
from mdpu.pipeline.plan import CELL, DOMINANT, LOGISTIC, Experiment, Plan

PROPOSED = ("ure", "relu", "abs")
CORRECTED = ("relu", "abs")
BASELINES = ("siamese", "contrastive", "kmeans")
METHODS = (*PROPOSED, *BASELINES)
NUMERALS = {2: "II", 3: "III", 4: "IV", 5: "V"}  # of the tables
# Where a method comes from, in the order in which the report shows them.
FAMILIES = {
    "paper": "Proposed in the paper",
    "baseline": "Baselines of the paper",
    "beyond": "Beyond the paper",
    "control": "Controls",
}
# After what others' methods were written here, by the origin of the method: a mark and its words.
BASES = {
    "baseline": ("°", "after the paper’s text, which leaves supervision and scoring open"),
    "literature": ("‡", "as its authors wrote it, adapted to tuples"),
}
# Readings of a published dataset; one of its images in another draw begins with `OWN_SPLIT`.
STATED = "as stated"
IMPLIED = "as the numbers imply"
OWN_SPLIT = "own split"
TRIALS = 3  # "three independent experimental trials", captions of Tables II-V

FILE = resource("mdpu/pipeline/evaluate/published_tables.csv")


def family(method: str) -> str:
    """Return the key in `FAMILIES` of a method."""
    if method in PROPOSED:
        return "paper"
    if method in BASELINES:
        return "baseline"
    return "control" if load_method(method).control else "beyond"


def basis(method: str) -> tuple[str, str] | None:
    """Return the mark of a method of others, and its words: after what it was written here."""
    return BASES.get(load_method(method).origin)


def published_cells() -> pd.DataFrame:
    """Return the published cells; priors are canonical strings, means and deviations percent."""
    cells = pd.read_csv(FILE, dtype={"prior": str, "bold": bool})
    names = {"n_tuples": "n"} | {name: f"published_{name}" for name in ("mean", "std", "bold")}
    return cells.rename(columns=names).assign(variant=BASE, loss=LOGISTIC, law=DOMINANT)


def published_summary() -> pd.DataFrame:
    """Return the published cells with the columns of `mdpu.pipeline.evaluate.collect.summarize`."""
    cells = published_cells().rename(columns={"published_mean": "mean", "published_std": "std"})
    return cells.assign(trials=TRIALS)[[*CELL, "mean", "std", "trials"]]


def missing_datasets(plan: Plan, experiment: Experiment) -> dict[str, str]:
    """Return titles of the datasets that an experiment on some of the paper's lacks, by name; none
    on others.
    """
    papers = set(published_cells()["dataset"])
    published = {plan.published_names[name] for name in experiment.datasets}
    if published.isdisjoint(papers):
        return {}
    return plan.titles(experiment.not_run)


def in_one_reading(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows without those of a dataset as the paper states it that were also run as its
    numbers imply; if several datasets stand for one number, those of the first.

    ``dataset`` is ours, ``published_dataset`` the row of the paper that it is compared with. They
    are the same in the reading that the paper states, unless ``reading`` names one of images in
    another draw, which are counted apart.
    """
    reading = pd.Series(STATED, rows.index)
    if "reading" in rows:
        reading = rows["reading"]
    own_split = reading.str.startswith(OWN_SPLIT)
    keys = ["tuple_size", "n", "prior", "method", "published_dataset", "own_split"]
    renamed = rows["dataset"] != rows["published_dataset"]
    implied = renamed & (~own_split | reading.str.endswith(IMPLIED))
    rank = rows.assign(own_split=own_split, implied=implied)
    has_implied = rank.groupby(keys, dropna=False)["implied"].transform("any")
    chosen = (implied | ~has_implied).to_numpy()

    once = rows[chosen]
    of_number = once.assign(own_split=own_split[chosen]).groupby(keys, dropna=False, sort=False)
    return once[once["dataset"] == of_number["dataset"].transform("first")]


def beside_published(cells: pd.DataFrame, published_names: Mapping[str, str]) -> pd.DataFrame:
    """Return our cells with the published ones and the ``difference`` beside them, missing where
    the paper has none.

    `published_names` maps our datasets to the published row that each is compared with; several may
    share one, as the two readings of EMNIST-Letters do.
    """
    published = published_cells().rename(columns={"dataset": "published_dataset"})
    keys = ["published_dataset", "variant", "tuple_size", "n", "prior", "method", "loss", "law"]
    named = cells.assign(published_dataset=cells["dataset"].map(published_names).astype(object))
    merged = named.merge(published, on=keys, how="left", validate="many_to_one")
    is_published = merged["published_mean"].notna()
    merged["published_dataset"] = merged["published_dataset"].where(is_published)
    merged["difference"] = merged["mean"] - merged["published_mean"]
    return merged
