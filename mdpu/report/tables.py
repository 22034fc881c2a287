"""Tables in the shape of the paper's Tables II-V: priors and datasets down, methods across."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from mdpu.learn.methods import load_method

ROW = ("prior", "dataset")
NOT_RUN = "not run"


def best_methods(cells: pd.DataFrame) -> pd.Series:
    """Return, per cell, whether its mean is the highest of its row to the two decimals that are printed.

    Controls do not compete.
    """
    control = cells["method"].map(lambda method: load_method(method).control)
    means = cells["mean"].round(2).mask(control)
    return means == means.groupby([cells[key] for key in ROW]).transform("max")


def caption(cells: pd.DataFrame, datasets: Mapping[str, str], best_epoch: bool) -> str:
    """Return what the numbers of a table are: unit, trials, epochs and n.

    Parameters
    ----------
    cells : DataFrame
        As `mdpu.evaluate.collect.summarize` returns it, one row per cell of the table.
    datasets : mapping
        Titles by name.
    best_epoch : bool
        Whether each trial was read at its epoch of highest test accuracy.
    """
    epochs = f"averaged over epochs {cells['first_epoch'].min():.0f} to {cells['last_epoch'].max():.0f}"
    if best_epoch:
        epochs = "at its epoch of highest test accuracy, which is chosen by the test labels"
    sizes: dict[int, list[str]] = {}
    for name in datasets:
        of_dataset = cells.loc[cells["dataset"] == name, "n"]
        sizes.setdefault(int(of_dataset.iloc[0]), []).append(datasets[name])
    first, *others = sizes
    spread = f"n = {first:,}" + "".join(f"; {n:,} on {', '.join(sizes[n])}" for n in others)
    return (
        f"Test accuracy in percent, mean ± standard deviation over {number_of_trials(cells)}, each {epochs}. {spread}. "
        f"The best method of a row is bold."
    )


def number_of_trials(cells: pd.DataFrame) -> str:
    """Return over how many trials the cells are, in words."""
    least, most = int(cells["trials"].min()), int(cells["trials"].max())
    return f"{least} to {most} trials" if least < most else f"{most} trial{'s' if most > 1 else ''}"


def _grid(
    cells: pd.DataFrame, datasets: Mapping[str, str], methods: Sequence[str], show: Callable[[pd.Series], str]
) -> list[list[str]]:
    """Return the table's rows: prior, dataset title, then one string per method."""
    marked = cells.assign(best=best_methods(cells))
    rows = []
    for prior in sorted(cells["prior"].unique(), key=float):
        for dataset, title in datasets.items():
            of_row = marked[(marked["prior"] == prior) & (marked["dataset"] == dataset)].set_index("method")
            values = [show(of_row.loc[method]) if method in of_row.index else NOT_RUN for method in methods]
            rows.append([prior, title, *values])
    return rows


def _value(cell: pd.Series, plus_minus: str) -> str:
    if pd.isna(cell["mean"]):
        return "diverged"
    deviation = "" if pd.isna(cell["std"]) else f"{plus_minus}{cell['std']:.2f}"
    return f"{cell['mean']:.2f}{deviation}" + (f" ({cell['diverged']} diverged)" if cell["diverged"] else "")


def markdown_table(
    cells: pd.DataFrame,
    datasets: Mapping[str, str],
    methods: Sequence[str],
    title: str,
    not_run: Sequence[str] = (),
) -> str:
    """Return the table as Markdown, the best method of each row in bold.

    Parameters
    ----------
    cells : DataFrame
        As `mdpu.evaluate.collect.summarize` returns it, one row per cell of the table.
    datasets : mapping
        Titles of the rows' datasets by name, in order.
    methods : sequence of str
        Columns, in order.
    title : str
        Caption.
    not_run : sequence of str
        Titles of datasets that belong to the table but were not run, for a line of their own.
    """

    def show(cell: pd.Series) -> str:
        value = _value(cell, " ± ")
        return f"**{value}**" if cell["best"] else value

    header = ["Prior", "Dataset", *(load_method(method).title for method in methods)]
    return markdown_rows(title, header, 2, _grid(cells, datasets, methods, show), _note(not_run))


def markdown_rows(title: str, header: Sequence[str], names: int, rows: Sequence[Sequence[str]], note: str = "") -> str:
    """Return rows of strings as a Markdown table; the first `names` columns stand left, the others right."""
    lines = [header, ["---"] * names + ["---:"] * (len(header) - names), *rows]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{title}\n\n{body}\n" + (f"\n{note}\n" if note else "")


def _note(not_run: Sequence[str]) -> str:
    return f"Not run: {', '.join(not_run)}." if not_run else ""


def latex_table(
    cells: pd.DataFrame,
    datasets: Mapping[str, str],
    methods: Sequence[str],
    title: str,
    not_run: Sequence[str] = (),
) -> str:
    """Return the table as LaTeX for the booktabs package; parameters as in `markdown_table`."""

    def show(cell: pd.Series) -> str:
        value = _value(cell, r"\pm ")
        if pd.isna(cell["mean"]):
            return value
        number, _, note = value.partition(" (")
        bold = rf"\boldsymbol{{{number}}}" if cell["best"] else number
        return f"${bold}$" + (f" ({note}" if note else "")

    header = ["Prior", "Dataset", *(load_method(method).title for method in methods)]
    rows, previous = [], None
    for prior, dataset, *values in _grid(cells, datasets, methods, show):
        rows.append([prior if prior != previous else "", escape(dataset), *values])
        previous = prior
    return latex_rows(title, header, 2, rows, _note(not_run))


def latex_rows(
    title: str,
    header: Sequence[str],
    names: int,
    rows: Sequence[Sequence[str]],
    note: str = "",
    *,
    groups: bool = False,
) -> str:
    """Return rows of LaTeX as a table for the booktabs package.

    The first `names` columns stand left, the others right. A row whose first cell is not empty gets a rule
    above it; with `groups`, that cell becomes a line of its own across the table, and letters are smaller. Title,
    header and the note below are escaped here, cells are not.
    """
    columns = "l" * names + "r" * (len(header) - names)
    lines = [
        r"% needs \usepackage{booktabs,amsmath}",
        r"\begin{table}",
        r"\centering",
        latex_caption(title),
        *([r"\footnotesize"] if groups else []),
        rf"\begin{{tabular}}{{{columns[groups:]}}}",
        r"\toprule",
        " & ".join(map(escape, header[groups:])) + r" \\",
    ]
    for row in rows:
        if row[0]:
            lines.append(r"\midrule")
        if row[0] and groups:
            lines.append(rf"\multicolumn{{{len(columns) - 1}}}{{l}}{{\textbf{{{row[0]}}}}} \\")
        lines.append(" & ".join(row[groups:]) + r" \\")
    below = [rf"\par\smallskip {{\footnotesize {escape(note)}}}"] if note else []
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *below, r"\end{table}", ""])


def latex_caption(title: str) -> str:
    """Return the caption of a table, which LaTeX numbers itself: the paper's number goes behind its title."""
    numbered = re.fullmatch(r"(Table [IVX]+): (\w)([^.]*)(.*)", title, re.DOTALL)
    if numbered:
        title = f"{numbered[2].upper()}{numbered[3]} ({numbered[1]} of the paper){numbered[4]}"
    return rf"\caption{{{escape(title)}}}"


_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "±": r"$\pm$",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def escape(text: str) -> str:
    """Return text with the characters that LaTeX takes for commands escaped."""
    return "".join(_LATEX.get(character, character) for character in text)
