"""Tables as Markdown and LaTeX: rows of strings, captions and what LaTeX must have escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mdpu.files import write_text


def markdown_rows(title: str, header: Sequence[str], names: int, rows: Sequence[Sequence[str]], note: str = "") -> str:
    """Return rows of strings as a Markdown table; the first `names` columns stand left, the others right."""
    lines = [header, ["---"] * names + ["---:"] * (len(header) - names), *rows]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{title}\n\n{body}\n" + (f"\n{note}\n" if note else "")


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


def write_rows(
    out: Path, title: str, caption: str, header: Sequence[str], names: int, rows: Sequence[Sequence[str]]
) -> None:
    """Write rows of strings as Markdown and LaTeX beside the CSV file `out`; parameters as in `markdown_rows`."""
    text = f"{title}. {' '.join(caption.split())}"
    write_text(out.with_suffix(".md"), markdown_rows(text, header, names, rows))
    escaped = [[escape(cell) for cell in row] for row in rows]
    grouped = [row if i == 0 or row[0] != escaped[i - 1][0] else ["", *row[1:]] for i, row in enumerate(escaped)]
    write_text(out.with_suffix(".tex"), latex_rows(text, header, names, grouped))


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
