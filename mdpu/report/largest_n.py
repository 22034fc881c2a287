"""The table of the largest n that sampling without replacement allows."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mdpu.data.pools import DEMANDS
from mdpu.report.tables import escape, latex_rows, markdown_rows

TITLE = (
    "Largest number of tuples without replacement, alone and with as many unlabeled images U, which may be images of "
    "tuples too or not; in brackets, whether one draw of each n fits"
)
HEADER = ("Dataset", "M", "Prior", "n", "Tuples alone", "Overlapping U", "Disjoint U")


def largest_n_rows(table: pd.DataFrame, datasets: Mapping[str, str]) -> list[list[str]]:
    """Return the rows of the table.

    Parameters
    ----------
    table : DataFrame
        As `mdpu.evaluate.largest_n.largest_n_table` returns it.
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
        found = [
            f"{group[f'largest_{demand}'].iloc[0]:,} ({' / '.join(map(probability, group[f'fit_{demand}']))})"
            for demand in DEMANDS
        ]
        values = " / ".join(f"{n:,}" for n in group["n"])
        rows.append([datasets[str(dataset)] if dataset != previous else "", str(size), str(prior), values, *found])
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
    """Return the table as LaTeX; parameters as for `largest_n_rows`."""
    rows = [[escape(cell) for cell in row] for row in largest_n_rows(table, datasets)]
    return latex_rows(TITLE, HEADER, 1, rows)
