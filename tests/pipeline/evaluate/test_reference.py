"""The rows of results/reference agree with one another, with the published cells and with the rule.

tests/docs/test_tables.py compares the documents with them. Else: `./run reference`, then
`python benchmarks/keep_reference.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.collect import summarize
from mdpu.pipeline.evaluate.comparison import NOT_RUN, compare
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import CELL, DOMINANT, Plan

REFERENCE = REPOSITORY / "results" / "reference"


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"prior": str})


def shipped_runs() -> pd.DataFrame:
    """The rows of the shipped runs, which are all of the paper's law."""
    return read(REFERENCE / "runs.csv").assign(law=DOMINANT)


def test_comparisons_are_by_the_rule_as_it_stands():
    plan = Plan(load_config([REPOSITORY / "config.yaml"]))
    found = compare(summarize(shipped_runs()), plan.published_names, plan.config["comparison"])
    kept = read(REFERENCE / "comparison.csv")
    found = found[found["verdict"] != NOT_RUN].reset_index(drop=True)
    assert list(found.columns) == list(kept.columns)
    assert found["verdict"].tolist() == kept["verdict"].tolist()
    assert found["cell"].tolist() == kept["cell"].tolist()


def test_comparisons_are_of_the_runs_beside_them_and_of_the_published_cells():
    cells = shipped_runs().groupby(list(CELL))["accuracy"].agg(["mean", "std"])
    published = published_cells().set_index(["dataset", "tuple_size", "n", "prior", "method"])
    for row in read(REFERENCE / "comparison.csv").to_dict("records"):
        key = {**row, "variant": "base", "loss": "logistic", "law": DOMINANT}
        mean, std = cells.loc[tuple(key[axis] for axis in CELL)]
        assert row["mean"] == pytest.approx(mean, abs=1e-3), row
        assert row["std"] == pytest.approx(std, abs=1e-3, nan_ok=True), row
        cell = published.loc[row["published_dataset"], row["tuple_size"], row["n"], row["prior"], row["method"]]
        assert (row["published_mean"], row["published_std"]) == (cell["published_mean"], cell["published_std"]), row
        assert row["difference"] == pytest.approx(row["mean"] - row["published_mean"], abs=1e-3), row


def test_the_packed_runs_are_those_of_the_rows():
    """A run's recipe names neither its dataset nor its variant, so accuracies are compared as sets."""
    packed = pd.read_parquet(REFERENCE / "finished.parquet", columns=["fingerprint", "epoch", "accuracy"])
    last = np.sort(packed[packed["epoch"] > 90].groupby("fingerprint")["accuracy"].mean().to_numpy() * 100)
    rows = read(REFERENCE / "runs.csv")["accuracy"].dropna().to_numpy()
    place = np.searchsorted(last, rows).clip(1, len(last) - 1)
    assert np.minimum(abs(last[place] - rows), abs(last[place - 1] - rows)).max() < 1e-4
    assert len(last) <= len(rows)
