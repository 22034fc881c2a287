"""The 504 accuracies of Tables II-V, as data."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.config import BASE
from mdpu.pipeline.files import resource
from mdpu.pipeline.plan import CELL, DOMINANT, Experiment, Plan

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
STATED, IMPLIED, OWN_SPLIT = "as stated", "as the numbers imply", "own split"
TRIALS = 3  # "three independent experimental trials", captions of Tables II-V

FILE = resource("mdpu/pipeline/evaluate/published_tables.csv")


def family(method: str) -> str:
    """Return the key in `FAMILIES` of a method."""
    if method in METHODS:
        return "paper" if method in PROPOSED else "baseline"
    return "control" if load_method(method).control else "beyond"


def basis(method: str) -> tuple[str, str] | None:
    """Return the mark of a method of others, and its words: after what it was written here."""
    return BASES.get(load_method(method).origin)


def published_cells() -> pd.DataFrame:
    """Return the published cells; priors are canonical strings, means and deviations percent."""
    cells = pd.read_csv(FILE, dtype={"prior": str, "bold": bool}).rename(columns={"n_tuples": "n"})
    cells = cells.rename(columns={name: f"published_{name}" for name in ("mean", "std", "bold")})
    return cells.assign(variant=BASE, loss="logistic", law=DOMINANT)


def published_summary() -> pd.DataFrame:
    """Return the published cells with the columns of `mdpu.pipeline.evaluate.collect.summarize`."""
    cells = published_cells().rename(columns={"published_mean": "mean", "published_std": "std"})
    return cells.assign(trials=TRIALS)[[*CELL, "mean", "std", "trials"]]


def missing_datasets(plan: Plan, experiment: Experiment) -> dict[str, str]:
    """Return titles of the datasets that an experiment on some of the paper's lacks, by name; none on others."""
    on_papers = {plan.published_names[run.dataset] for run in experiment.runs} & set(published_cells()["dataset"])
    return plan.titles(experiment.not_run) if on_papers else {}


def in_one_reading(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows without those of a dataset as the paper states it that were also run as its numbers imply.

    ``dataset`` is ours, ``published_dataset`` the row of the paper that it is compared with. They are the same in the
    reading that the paper states, unless ``reading`` names one of images in another draw, which are counted apart.
    """
    reading = rows["reading"] if "reading" in rows else pd.Series(STATED, rows.index)
    own = reading.str.startswith(OWN_SPLIT)
    keys = ["tuple_size", "n", "prior", "method", "published_dataset", "own"]
    twice = rows.assign(own=own).duplicated(keys, keep=False)
    return rows[~twice | ((rows["dataset"] != rows["published_dataset"]) & (~own | reading.str.endswith(IMPLIED)))]


def beside_published(cells: pd.DataFrame, published_names: Mapping[str, str]) -> pd.DataFrame:
    """Return our cells with the published ones and the ``difference`` beside them, missing where the paper has none.

    `published_names` maps our datasets to the published row that each is compared with; several may share one, as the
    two readings of EMNIST-Letters do.
    """
    published = published_cells().rename(columns={"dataset": "published_dataset"})
    keys = ["published_dataset", "variant", "tuple_size", "n", "prior", "method", "loss", "law"]
    named = cells.assign(published_dataset=cells["dataset"].map(published_names).astype(object))
    merged = named.merge(published, on=keys, how="left", validate="many_to_one")
    merged["published_dataset"] = merged["published_dataset"].where(merged["published_mean"].notna())
    merged["difference"] = merged["mean"] - merged["published_mean"]
    return merged
