"""The table of the largest n that sampling without replacement allows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from mdpu.pipeline.data.pools import DEMANDS
from mdpu.pipeline.evaluate.largest_n import largest_n_table, training_counts
from mdpu.pipeline.files import write_csv, write_text
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.latex import latex_tables
from mdpu.pipeline.report.tables import markdown_rows

TITLE = (
    "Largest number of tuples without replacement, alone and with as many unlabeled images U, which may be images of "
    "tuples too or not; in brackets, whether one draw of each n fits"
)
LATEX_TITLE = (
    "Largest number of tuples without replacement, alone and with as many unlabeled images U, which may be images of "
    "tuples too or not; and whether one draw of n fits, or else how probable it is"
)
HEADER = ("Dataset", "M", "Prior", "n", "Tuples alone", "Overlapping U", "Disjoint U")


def largest_n_rows(table: pd.DataFrame, datasets: Mapping[str, str]) -> list[list[str]]:
    """Return the rows of the table.

    Parameters
    ----------
    table : DataFrame
        As `mdpu.pipeline.evaluate.largest_n.largest_n_table` returns it.
    datasets : mapping
        Titles by name.

    Returns
    -------
    list of list of str
        Title, tuple size, prior and the values of n; then, per demand, the largest n and, in brackets,
        whether one draw of each n fits. A dataset is named where it begins.
    """
    rows = []
    previous = None
    for (dataset, size, prior), group in table.groupby(["dataset", "tuple_size", "prior"], sort=False):
        demands = [
            f"{group[f'largest_{demand}'].iloc[0]:,} ({' / '.join(map(probability, group[f'fit_{demand}']))})"
            for demand in DEMANDS
        ]
        values = " / ".join(f"{n:,}" for n in group["n"])
        rows.append([datasets[str(dataset)] if dataset != previous else "", str(size), str(prior), values, *demands])
        previous = dataset
    return rows


def probability(value: float) -> str:
    """Return a probability as a reader needs it: always, never, or a percentage between."""
    if value > 1 - 5e-4:
        return "yes"
    if value < 5e-4:
        return "no"
    return f"{100 * value:.1f} %"


def largest_n_markdown(table: pd.DataFrame, datasets: Mapping[str, str]) -> str:
    """Return the table as Markdown; parameters as for `largest_n_rows`."""
    return markdown_rows(TITLE, HEADER, 1, largest_n_rows(table, datasets))


def largest_n_latex(table: pd.DataFrame, datasets: Mapping[str, str]) -> str:
    """Return the table as LaTeX, a row per n; parameters as for `largest_n_rows`."""
    rows = [
        [
            datasets[str(row["dataset"])],
            *(str(row[key]) for key in ("tuple_size", "prior")),
            f"{row['n']:,}",
            *(
                cell
                for demand in DEMANDS
                for cell in (f"{row[f'largest_{demand}']:,}", probability(row[f"fit_{demand}"]))
            ),
        ]
        for row in table.to_dict("records")
    ]
    header = [*HEADER[:4], *(title for _ in DEMANDS for title in ("Largest", "Fits"))]
    over = ["", "", "", "", *(title for title in HEADER[4:] for _ in range(2))]
    return latex_tables("largest-n", LATEX_TITLE, header, rows, names=1, groups=1, over=over)


def write_largest_n(plan: Plan, labels: Path, out: Path) -> None:
    """Write the table of the largest n as CSV, with Markdown and LaTeX beside it.

    Parameters
    ----------
    plan : Plan
    labels : Path
        Folder of labels, read where the configuration has no counts.
    out : Path

    Raises
    ------
    UserError
        If a description of labels is needed and missing.
    """
    table = largest_n_table(plan, training_counts(plan, labels))
    write_csv(table, out)
    datasets = plan.titles(table["dataset"])
    for suffix, render in ((".md", largest_n_markdown), (".tex", largest_n_latex)):
        write_text(out.with_suffix(suffix), render(table, datasets))
