"""Tables in the shape of the paper's Tables II-V: priors and datasets down, methods across."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.published import beside_published
from mdpu.pipeline.experiments import TABLE, Kind
from mdpu.pipeline.files import read_csv, write_csv, write_text
from mdpu.pipeline.plan import CELL, Experiment, Plan, cell_name
from mdpu.pipeline.report.formats import WITH_PAPER, number_of_trials
from mdpu.pipeline.report.tables import Best, latex_rows

ROW_HEADINGS = ("prior", "dataset")  # columns that head a row of the printed table
EMPTY = "not run"


def make(plan: Plan, experiment: Experiment, inputs: Mapping[str, Path], results: Path) -> None:
    """Write an experiment of this kind as CSV, beside the published values, and as LaTeX."""
    out = results / "tables" / f"{experiment.name}.csv"
    keys = pd.DataFrame(experiment.runs).drop(columns="seed").drop_duplicates()
    cells = keys.merge(read_csv(inputs["summary"]), on=list(CELL), how="left", validate="one_to_one")
    beside = beside_published(cells, plan.published_names)
    write_csv(beside, out)
    datasets = plan.titles(keys["dataset"])
    methods = list(dict.fromkeys(keys["method"]))
    not_run = list(plan.titles(experiment.not_run).values())
    title = f"{experiment.title}. {caption(cells, datasets, _best_epoch(plan))}"
    write_text(out.with_suffix(".tex"), latex_table(cells, datasets, methods, title, experiment.name, not_run))
    paper = out.with_name(f"{experiment.name}{WITH_PAPER}")
    write_text(paper, latex_beside(beside, datasets, methods, title, paper.stem, not_run))


def section(plan: Plan, experiment: Experiment, results: Path) -> dict[str, Any]:
    """Return a table for the template, from the file that `make` wrote."""
    cells = read_csv(results / "tables" / f"{experiment.name}.csv")
    return table_section(plan, experiment.name, experiment.title, cells)


def _best_epoch(plan: Plan) -> bool:
    """Return whether a trial is reported at its epoch of highest test accuracy, a choice that uses the test labels."""
    return bool(plan.protocol.reporting()["average_last"] == "best")


def best_methods(cells: pd.DataFrame) -> pd.Series:
    """Return, per cell, whether its mean is the highest of its row to the two printed decimals.

    Controls do not compete.
    """
    control = cells["method"].map(lambda method: load_method(method).control)
    means = cells["mean"].round(2).mask(control)
    return means == means.groupby([cells[key] for key in ROW_HEADINGS]).transform("max")


def caption(cells: pd.DataFrame, datasets: Mapping[str, str], best_epoch: bool) -> str:
    """Return what the numbers of a table mean: unit, trials, epochs and n.

    Parameters
    ----------
    cells : DataFrame
        As `mdpu.pipeline.evaluate.collect.summarize` returns it, one row per cell of the table.
    datasets : mapping
        Titles by name.
    best_epoch : bool
        Whether each trial is reported at its epoch of highest test accuracy.
    """
    epochs = f"averaged over epochs {cells['first_epoch'].min():.0f} to {cells['last_epoch'].max():.0f}"
    if best_epoch:
        epochs = "at its epoch of highest test accuracy, which is chosen by the test labels"
    sizes: dict[int, list[str]] = {}
    for name in datasets:
        sizes_of_dataset = cells.loc[cells["dataset"] == name, "n"]
        sizes.setdefault(int(sizes_of_dataset.iloc[0]), []).append(datasets[name])
    first, *others = sizes
    spread = f"n = {first:,}" + "".join(f"; {n:,} on {', '.join(sizes[n])}" for n in others)
    trials = number_of_trials([int(count) for count in cells["trials"]])
    return (
        f"Test accuracy in percent, mean ± standard deviation over {trials}, each {epochs}. {spread}. "
        f"The best method of a row is bold."
    )


def _grid(
    cells: pd.DataFrame, datasets: Mapping[str, str], methods: Sequence[str], show: Callable[[pd.Series], str]
) -> list[list[str]]:
    """Return the table's rows: prior, dataset title, then one string per method."""
    marked = cells.assign(best=best_methods(cells))
    rows = []
    for prior in sorted(cells["prior"].unique(), key=float):
        for dataset, title in datasets.items():
            row_cells = marked[(marked["prior"] == prior) & (marked["dataset"] == dataset)].set_index("method")
            values = [show(row_cells.loc[method]) if method in row_cells.index else EMPTY for method in methods]
            rows.append([prior, title, *values])
    return rows


def _value(cell: pd.Series) -> str:
    if np.isnan(cell["mean"]):
        return "diverged"
    deviation = "" if np.isnan(cell["std"]) else f" ± {cell['std']:.2f}"
    return f"{cell['mean']:.2f}{deviation}" + (f" ({cell['diverged']} diverged)" if cell["diverged"] else "")


def _marked(cell: pd.Series) -> str:
    """Return a cell's number, in bold if it is the best of its row."""
    return Best(_value(cell)) if cell["best"] else _value(cell)


def _note(not_run: Sequence[str]) -> str:
    return f"Not run: {', '.join(not_run)}." if not_run else ""


def latex_table(
    cells: pd.DataFrame,
    datasets: Mapping[str, str],
    methods: Sequence[str],
    title: str,
    name: str,
    not_run: Sequence[str] = (),
) -> str:
    """Return the table as LaTeX, the best method of each row in bold.

    Parameters
    ----------
    cells : DataFrame
        As `mdpu.pipeline.evaluate.collect.summarize` returns it, one row per cell of the table.
    datasets : mapping
        Titles of the rows' datasets by name, in order.
    methods : sequence of str
        Columns, in order.
    title, name : str
        Caption and label.
    not_run : sequence of str
        Titles of datasets that belong to the table but were not run; they go on a separate line.
    """
    header = ["Prior", "Dataset", *(load_method(method).title for method in methods)]
    rows = _grid(cells, datasets, methods, _marked)
    return latex_rows(name, title, header, rows, 2, note=_note(not_run))


def latex_beside(
    cells: pd.DataFrame,
    datasets: Mapping[str, str],
    methods: Sequence[str],
    title: str,
    name: str,
    not_run: Sequence[str] = (),
) -> str:
    """Return the table as LaTeX with the paper's numbers beside ours, where the paper has any of a method.

    Parameters
    ----------
    cells : DataFrame
        As `mdpu.pipeline.evaluate.published.beside_published` returns it.
    datasets, methods, title, name, not_run
        As for `latex_table`.
    """

    def show_published(cell: pd.Series) -> str:
        if np.isnan(cell["published_mean"]):
            return "–"
        value = f"{cell['published_mean']:.2f} ± {cell['published_std']:.2f}"
        return Best(value) if cell["published_bold"] else value

    both = set(cells.loc[cells["published_mean"].notna(), "method"])
    ours, paper = (_grid(cells, datasets, methods, render) for render in (_marked, show_published))
    header, over = ["Prior", "Dataset"], ["", ""]
    for method in methods:
        method_title = load_method(method).title
        header += ["Ours", "Paper"] if method in both else [method_title]
        over += [method_title] * 2 if method in both else [""]
    rows = [
        [
            prior,
            dataset,
            *(
                cell
                for method, own, published in zip(methods, numbers, theirs[2:], strict=True)
                for cell in ((own, published) if method in both else (own,))
            ),
        ]
        for (prior, dataset, *numbers), theirs in zip(ours, paper, strict=True)
    ]
    beside = " Beside ours are the paper's numbers, with its bold." if both else ""
    return latex_rows(name, title + beside, header, rows, 2, over=over, note=_note(not_run))


def table_section(plan: Plan, name: str, title: str, cells: pd.DataFrame) -> dict[str, Any]:
    """Return a table's rows for the template, prior by prior, each cell with ours, the paper's and the difference."""
    methods = list(dict.fromkeys(run.method for run in plan.experiment(name).runs))
    marked = cells.assign(best=best_methods(cells)).sort_values(
        "prior", key=lambda prior: prior.astype(float), kind="stable"
    )
    by_row: dict[tuple[str, str], dict[str, dict[Any, Any]]] = {}
    for cell in marked.to_dict("records"):
        by_row.setdefault((cell["prior"], cell["dataset"]), {})[cell["method"]] = cell
    rows = [
        {
            "prior": prior,
            "dataset": plan.dataset(dataset)["title"],
            "cells": [by_method.get(method) for method in methods],
            "names": [cell_name(by_method[method]) if method in by_method else None for method in methods],
        }
        for (prior, dataset), by_method in by_row.items()
    ]
    return {
        "template": "sections/table.html.j2",
        "name": name,
        "title": title,
        "methods": methods,
        "titles": {method: load_method(method).title for method in methods},
        "rows": rows,
        "published": bool(cells["published_mean"].notna().any()),
        "caption": caption(cells, plan.titles(cells["dataset"]), _best_epoch(plan)),
    }


KIND = Kind(
    make=make,
    section=section,
    reads=("summary",),
    files=(*TABLE, f"tables/{{name}}{WITH_PAPER}"),
    single=("variant", "tuple_size", "n", "loss"),
)
