"""The rows of results/reference, and how to look up a cell of ours or of the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.learn.methods import load_method
from mdpu.pipeline.config import Config, load_config
from mdpu.pipeline.evaluate.comparison import CLOSE, DIFFERS, INCONCLUSIVE, REPRODUCED
from mdpu.pipeline.evaluate.published import PROPOSED, in_one_reading, published_cells
from mdpu.pipeline.files import REPOSITORY, read_csv, read_table
from mdpu.pipeline.grid import CELL, ROW, cell_name
from mdpu.pipeline.plan import Plan

REFERENCE = REPOSITORY / "results" / "reference"
FIRST = REFERENCE / "first"
SIZES = {"pairs": 2, "triples": 3}
SENSITIVITY = {"pairs": "sensitivity", "triples": "sensitivity-triples"}  # the study of each size
PRIORS = ("0.4", "0.5", "0.6")
LOSSES = ("logistic", "squared", "hinge", "ramp")
LAST_EPOCHS = 10
VERDICTS = {"reproduced": REPRODUCED, "close": CLOSE, "inconclusive": INCONCLUSIVE, "differs": DIFFERS}
ANSWERS = ("predicted", "equivalent")  # questions that are answered where five of our trials did not diverge


class Reference:
    """The shipped runs, and what is kept of their first edition.

    Parameters
    ----------
    folder : Path
        With the rows of the runs.
    first : Path
        With the comparison and the claims of the first edition.
    """

    def __init__(self, folder: Path = REFERENCE, first: Path = FIRST) -> None:
        self.folder = folder
        self.first = first

    def read(self, name: str) -> pd.DataFrame:
        """Return a CSV file."""
        return read_csv(self.folder / f"{name}.csv")

    @cached_property
    def config(self) -> Config:
        """The paper's configuration."""
        return load_config([REPOSITORY / "config.yaml"])

    def selected(self, overlay: str) -> int:
        """Return how many runs an overlay of `config` selects."""
        return len(Plan(load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / overlay])).runs)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Runs, one a row."""
        return self.read("runs")

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Mean, deviation and number of the trials of every cell, by `CELL`."""
        return summarized(self.runs)

    @cached_property
    def comparison(self) -> pd.DataFrame:
        """Our cells beside the paper's, each with its verdict."""
        return self.read("comparison")

    @cached_property
    def first_comparison(self) -> pd.DataFrame:
        """The same of the first edition."""
        return read_csv(self.first / "comparison.csv")

    @cached_property
    def first_claims(self) -> pd.DataFrame:
        """The claims of the first edition."""
        return read_csv(self.first / "claims.csv")

    @cached_property
    def sensitivity(self) -> pd.DataFrame:
        """The change of accuracy by each open choice, on pairs and on triples, of the proposed methods."""
        return pd.concat(map(self.study, SENSITIVITY.values()), ignore_index=True)

    def study(self, name: str) -> pd.DataFrame:
        """Return the paired differences of a sensitivity study, of the proposed methods."""
        found = self.read(f"sensitivity/{name}").astype({"value": str, "base": str})
        return found[found["method"].isin(PROPOSED)]

    def nearest(self, name: str) -> pd.DataFrame:
        """Return the distances of a study's combinations to the published numbers, the nearest first."""
        return self.read(f"sensitivity/{name}-nearest")

    def effect(self, key: str, value: str, dataset: str, size: str, method: str) -> float:
        """Return the points by which an open choice moves a method on pairs or triples of a dataset."""
        found = self.sensitivity.set_index(["key", "value", "dataset", "tuple_size", "method"])["difference"]
        return float(found.loc[key, value, dataset, SIZES[size], method])

    @cached_property
    def scope(self) -> pd.DataFrame:
        """The study of the correction's scope on digits: means over trials, by tuple size, prior, loss and method."""
        keys = ["tuple_size", "prior", "loss", "method"]
        return self.read("scope").groupby(keys, sort=False).mean(numeric_only=True).drop(columns=["n", "seed"])

    @cached_property
    def published(self) -> pd.DataFrame:
        """The paper's cells, by row of a table and method."""
        return published_cells().set_index([*ROW, "method"]).sort_index()

    @cached_property
    def histories(self) -> pd.DataFrame:
        """Every epoch of the runs, with the run's axes."""
        return read_table(self.folder / "finished.parquet")

    @property
    def trials(self) -> int:
        """The number of trials of the proposed methods' cells."""
        (trials,) = set(self.compared()["trials"])
        return int(trials)

    def size(self, dataset: str, larger: bool = False) -> int:
        """Return the n of a dataset in Tables II and IV, or in the two with more tuples."""
        sizes = self.config["definitions"]["experiments"]["table3" if larger else "table2"]["n"]
        return int(sizes.get(dataset, sizes["default"]))

    def title(self, dataset: str) -> str:
        """Return the title of a dataset."""
        return str(self.config["definitions"]["datasets"][dataset]["title"])

    def stated(self, dataset: str) -> str:
        """Return the dataset of the paper that a dataset is compared with."""
        return str(self.config["definitions"]["datasets"][dataset].get("published", dataset))

    def key(
        self,
        dataset: str,
        size: str | int,
        prior: str,
        method: str,
        *,
        n: int | None = None,
        loss: str = "logistic",
        variant: str = "base",
    ) -> Mapping[str, Any]:
        """Return the axes of a cell by name.

        Parameters
        ----------
        dataset, size, prior, method, loss, variant
            As `key_of` takes them.
        n : int, optional
            That of Tables II and IV unless it is given.
        """
        return key_of(dataset, size, prior, method, n or self.size(dataset), loss, variant)

    def cell(self, *names: Any, **options: Any) -> pd.Series:
        """Return ``mean``, ``std`` and ``count`` of a cell; parameters as in `key`.

        Raises
        ------
        KeyError
            If no run of the cell is shipped.
        """
        key = self.key(*names, **options)
        found = self.cells.loc[tuple(key[axis] for axis in CELL)]
        assert isinstance(found, pd.Series)
        return found

    def mean(self, *names: Any, **options: Any) -> float:
        """Return the mean accuracy of a cell; parameters as in `key`."""
        return float(self.cell(*names, **options)["mean"])

    def lost(self, dataset: str, size: str | int, prior: str, method: str, *, variant: str) -> float:
        """Return the points that a variant costs a method, in the mean over the trials that both have."""
        n = self.size(dataset)
        keys = [key_of(dataset, size, prior, method, n, variant=name) for name in ("base", variant)]
        runs = self.runs.set_index(list(CELL))
        base, other = (runs.loc[[tuple(key[axis] for axis in CELL)]].set_index("seed")["accuracy"] for key in keys)
        return float((base - other).mean())

    def paper(self, dataset: str, size: str, prior: str, method: str, *, n: int | None = None) -> pd.Series:
        """Return ``mean`` and ``std`` of a cell of the paper's; raise KeyError if it has none."""
        key = (self.stated(dataset), SIZES[size], n or self.size(dataset), prior, method)
        return self.published.loc[key, ["published_mean", "published_std"]].set_axis(["mean", "std"])

    def best_published(self, dataset: str, size: str, prior: str, *, n: int | None = None) -> pd.Series:
        """Return the highest of the paper's numbers in a row."""
        row = self.published.loc[(self.stated(dataset), SIZES[size], n or self.size(dataset), prior)]
        best = row["published_mean"].idxmax()
        return row.loc[best, ["published_mean", "published_std"]].set_axis(["mean", "std"])

    def best_other(self, dataset: str, size: str, prior: str, *, n: int | None = None) -> pd.Series:
        """Return the best method of a row that neither learns from bags nor is a control."""
        key = key_of(dataset, size, prior, "", n or self.size(dataset))
        levels = [axis for axis in CELL if axis != "method"]
        row = self.cells.xs(tuple(key[axis] for axis in levels), level=levels)
        rivals = [name for name in row.index if not (name.startswith("bag-") or load_method(name).control)]
        found = row.loc[row.loc[rivals, "mean"].idxmax()]
        assert isinstance(found, pd.Series)
        return found

    def last_epochs(self, *names: Any, **options: Any) -> pd.DataFrame:
        """Return the means of the last ten epochs of a cell's runs, a run a row; parameters as in `key`."""
        history = self.history(*names, **options)
        last = history[history["epoch"] > history["epoch"].max() - LAST_EPOCHS]
        return last.groupby("seed").mean(numeric_only=True)

    def history(self, *names: Any, **options: Any) -> pd.DataFrame:
        """Return every epoch of the runs of a cell; parameters as in `key`."""
        return self._by_cell.get_group(cell_name(self.key(*names, **options)))

    @cached_property
    def _by_cell(self) -> Any:
        names = self.histories[list(CELL)].drop_duplicates()
        names["cell"] = [cell_name(key) for key in names.to_dict("records")]
        return self.histories.merge(names, on=list(CELL)).groupby("cell")

    def compared(self, **axes: Any) -> pd.DataFrame:
        """Return the compared cells with these values.

        Without a method, those of the paper's own three; without a dataset, each published number once.
        """
        chosen = self.comparison if "dataset" in axes else in_one_reading(self.comparison)
        for axis, value in ({"method": list(PROPOSED)} | axes).items():
            chosen = chosen[chosen[axis].isin([value] if isinstance(value, (str, int)) else value)]
        return chosen


def key_of(
    dataset: str, size: str | int, prior: str, method: str, n: int, loss: str = "logistic", variant: str = "base"
) -> Mapping[str, Any]:
    """Return the axes of a cell by name; a size is M, or ``pairs`` or ``triples``."""
    return {
        "dataset": dataset,
        "variant": variant,
        "tuple_size": SIZES.get(str(size), size),
        "n": n,
        "prior": prior,
        "method": method,
        "loss": loss,
    }


def summarized(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean, deviation and number of the runs of every cell."""
    return runs.groupby(list(CELL))["accuracy"].agg(["mean", "std", "count"])


def counted(cells: pd.DataFrame) -> dict[str, Any]:
    """Return how many compared cells have each verdict and answer, and the median of the absolute differences."""
    verdicts = {name: int((cells["verdict"] == verdict).sum()) for name, verdict in VERDICTS.items()}
    answers = {name: "–" if cells[name].isna().all() else int(cells[name].eq(True).sum()) for name in ANSWERS}
    return {"cells": len(cells), **verdicts, **answers, "median": f"{cells['difference'].abs().median():.1f}"}


def columns(datasets: Iterable[str], priors: Sequence[str] = PRIORS) -> list[tuple[str, str, str]]:
    """Return the columns of a table over datasets, pairs and triples, and priors."""
    return [(dataset, size, prior) for dataset in datasets for size in SIZES for prior in priors]


def parts_of(last: pd.Series) -> tuple[float, float]:
    """Return the tuple part and the unlabeled part of a risk."""
    return (
        float(last["risk_tuple_positive"] + last["risk_tuple_negative"]),
        float(last["risk_unlabeled_positive"] + last["risk_unlabeled_negative"]),
    )
