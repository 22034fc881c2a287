"""Tables in the shape of the paper's Tables II-V: priors and datasets down, methods across."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.evaluate.collect import cells_of, epochs_in_words, number_of_trials
from mdpu.pipeline.evaluate.published import beside_published, missing_datasets
from mdpu.pipeline.files import read_csv, write_csv, write_text
from mdpu.pipeline.plan import Experiment, Plan, cell_name
from mdpu.pipeline.report.latex import Best, latex_rows
from mdpu.pipeline.report.sections import WITH_PAPER
from mdpu.pipeline.show import TABLE, Inputs, Kind, Outputs

ROW_HEADINGS = ("prior", "dataset")  # columns that head a row of the printed table
EMPTY = "not run"


def write(plan: Plan, experiment: Experiment, inputs: Inputs, outputs: Outputs) -> None:
    """Write an experiment of this kind as CSV, beside the published values, and as LaTeX without
    and with them.
    """
    cells = table_cells(plan, experiment, read_csv(inputs["runs"]))
    csv, latex, latex_with_paper = outputs
    write_csv(cells, csv)
    datasets = plan.titles(cells["dataset"])
    methods = list(dict.fromkeys(cells["method"]))
    published = list(dict.fromkeys(cells.loc[cells["published_mean"].notna(), "method"]))
    not_run = list(missing_datasets(plan, experiment).values())
    words = caption(cells, datasets, plan.protocol.reporting["average_last"])
    title = f"{experiment.title}. {words}"
    for file, both in ((latex, []), (latex_with_paper, published)):
        write_text(file, latex_table(cells, datasets, methods, title, file.stem, not_run, both))


def table_cells(plan: Plan, experiment: Experiment, described: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of an experiment beside the published ones, in its order, with its own
    trials alone.

    `described` are runs as `mdpu.pipeline.evaluate.provenance.describe_runs` returns them, also of
    other experiments.
    """
    return beside_published(cells_of(experiment.runs, described), plan.published_names)


def best_methods(cells: pd.DataFrame) -> pd.Series:
    """Return, per cell, whether its mean is its row's highest to the two printed decimals; controls
    do not compete.
    """
    control = cells["method"].map(lambda method: load_method(method).control)
    means = cells["mean"].round(2).mask(control)
    return means == means.groupby([cells[key] for key in ROW_HEADINGS]).transform("max")


def caption(cells: pd.DataFrame, datasets: Mapping[str, str], average_last: object) -> str:
    """Return what the numbers of a table mean, as one text; see `caption_parts`."""
    return " ".join(filter(None, caption_parts(cells, datasets, average_last).values()))


def caption_parts(
    cells: pd.DataFrame, datasets: Mapping[str, str], average_last: object
) -> dict[str, str]:
    """Return what the numbers of a table mean, sentence by sentence; a part may be empty.

    ``trials``: unit, trials and epochs, of which `average_last` of the reporting are averaged;
    ``sizes``: the numbers of tuples; ``best``: what is bold; ``each``: the trials of each method;
    ``scopes``: what corrections apply to; ``precision``: which cells were not all trained in
    float32.
    """
    epochs = epochs_in_words(cells, average_last)
    counts = number_of_trials(cells["trials"])
    unit = "Test accuracy in percent, mean ± standard deviation"
    return {
        "trials": f"{unit} over {counts}, each {epochs}.",
        "sizes": _sizes(cells, datasets),
        "best": "The best method of a row is bold.",
        "each": _trials_of_methods(cells),
        "scopes": scopes(cells),
        "precision": precision(cells),
    }


def _sizes(cells: pd.DataFrame, datasets: Mapping[str, str]) -> str:
    """Return the numbers of tuples, each after the first with the datasets that have it."""
    sizes = cells.groupby("dataset", sort=False)["n"].max()
    (first, _), *further = by_number(sizes, datasets.__getitem__)
    words = [f"n = {first:,}", *(f"{n:,} on {', '.join(titles)}" for n, titles in further)]
    return f"{'; '.join(words)}."


def _trials_of_methods(cells: pd.DataFrame) -> str:
    """Return the numbers of trials with the methods that have each, nothing if all have one."""
    trials = cells.groupby("method", sort=False)["trials"].max()
    groups = by_number(trials, lambda method: load_method(method).title)
    if len(groups) == 1:
        return ""
    words = "; ".join(f"{', '.join(titles)} {count}" for count, titles in groups)
    return f"Trials: {words}."


def by_number(numbers: pd.Series, title: Callable[[str], str]) -> list[tuple[int, list[str]]]:
    """Return each number with the titles of the names that have it."""
    groups: dict[int, list[str]] = {}
    for name, number in numbers.items():
        groups.setdefault(int(number), []).append(title(str(name)))
    return list(groups.items())


def scopes(cells: pd.DataFrame) -> str:
    """Return what the corrections of a table apply to, where it is not the whole risk."""
    meanings = {
        "class": "the positive and the negative part",
        "part": "the tuples’ and the unlabeled part",
    }
    named = [
        f"{words} ({name})"
        for name, words in meanings.items()
        if cells["method"].str.endswith(f"-{name}").any()
    ]
    if not named:
        return ""
    return f"A correction is of the whole risk unless it names its parts: {'; or '.join(named)}."


def precision(cells: pd.DataFrame) -> str:
    """Return which cells were not all trained in float32."""
    counts = cells["precision"].value_counts().drop("float32", errors="ignore")
    each = ", ".join(f"{count} of {len(cells)} cells in {name}" for name, count in counts.items())
    return f"Not trained in float32: {each}." if each else ""


def latex_table(
    cells: pd.DataFrame,
    datasets: Mapping[str, str],
    methods: Sequence[str],
    title: str,
    name: str,
    not_run: Sequence[str] = (),
    both: Collection[str] = (),
) -> str:
    """Return the table as LaTeX, the best method of each row in bold.

    The titles of datasets are in their order; those that were not run go on a line of their own.
    Methods in `both` have the paper's numbers beside ours, as
    `mdpu.pipeline.evaluate.published.beside_published` returns them.
    """
    header = ["Prior", "Dataset"]
    over = ["", ""]
    for method in methods:
        method_title = load_method(method).title
        if method in both:
            header += ["Ours", "Paper"]
            over += [method_title, method_title]
        else:
            header.append(method_title)
            over.append("")

    keys = ["prior", "dataset", "method"]
    by_cell = cells.assign(best=best_methods(cells)).set_index(keys).to_dict("index")
    rows = []
    for prior in sorted(cells["prior"].unique(), key=float):
        for dataset, dataset_title in datasets.items():
            row = [prior, dataset_title]
            for method in methods:
                cell = by_cell.get((prior, dataset, method))
                row.append(_ours(cell))
                if method in both:
                    row.append(_published(cell))
            rows.append(row)

    note = f"Not run: {', '.join(not_run)}." if not_run else ""
    if not both:
        return latex_rows(name, title, header, rows, 2, note=note)
    title += " Beside ours are the paper's numbers, with its bold."
    return latex_rows(name, title, header, rows, 2, over=over, note=note)


def _ours(cell: Mapping[Any, Any] | None) -> str:
    """Return our number, in bold if it is the best of its row."""
    if cell is None:
        return EMPTY
    if np.isnan(cell["mean"]):
        text = "diverged"
    else:
        text = f"{cell['mean']:.2f}"
        if not np.isnan(cell["std"]):
            text += f" ± {cell['std']:.2f}"
        if cell["diverged"]:
            text += f" ({cell['diverged']} diverged)"
    return Best(text) if cell["best"] else text


def _published(cell: Mapping[Any, Any] | None) -> str:
    """Return the paper's number, in bold if it is in the paper."""
    if cell is None:
        return EMPTY
    if np.isnan(cell["published_mean"]):
        return "–"
    value = f"{cell['published_mean']:.2f} ± {cell['published_std']:.2f}"
    return Best(value) if cell["published_bold"] else value


def section(plan: Plan, experiment: Experiment, outputs: Outputs) -> dict[str, Any]:
    """Return the section of an experiment of this kind."""
    return table_section(plan, experiment, read_csv(outputs[0]))


def table_section(plan: Plan, experiment: Experiment, cells: pd.DataFrame) -> dict[str, Any]:
    """Return a table's rows for the template, prior by prior, each cell with ours, the paper's and
    the difference.
    """
    methods = experiment.methods
    by_row: dict[tuple[str, str], dict[str, dict[Any, Any]]] = {}
    for cell in cells.assign(best=best_methods(cells)).to_dict("records"):
        by_row.setdefault((cell["prior"], cell["dataset"]), {})[cell["method"]] = cell

    rows = []
    for prior, dataset in sorted(by_row, key=lambda row: float(row[0])):
        of_row = [by_row[prior, dataset].get(method) for method in methods]
        rows.append(
            {
                "prior": prior,
                "dataset": plan.dataset(dataset)["title"],
                "cells": of_row,
                "names": [None if cell is None else cell_name(cell) for cell in of_row],
            }
        )
    datasets = plan.titles(cells["dataset"])
    return {
        "template": "sections/table.html.j2",
        "name": experiment.name,
        "title": experiment.title,
        "methods": methods,
        "titles": {method: load_method(method).title for method in methods},
        "rows": rows,
        "not_run": list(missing_datasets(plan, experiment).values()),
        "published": bool(cells["published_mean"].notna().any()),
        "caption": caption_parts(cells, datasets, plan.protocol.reporting["average_last"]),
    }


KIND = Kind(
    write=write,
    section=section,
    reads=("runs",),
    files=(*TABLE, f"tables/{{name}}{WITH_PAPER}"),
    single=("variant", "tuple_size", "n", "loss"),
)
