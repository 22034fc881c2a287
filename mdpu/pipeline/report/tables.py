"""Tables of strings as Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mdpu.pipeline.files import write_text
from mdpu.pipeline.report.latex import latex_tables


def markdown_rows(title: str, header: Sequence[str], names: int, rows: Sequence[Sequence[str]], note: str = "") -> str:
    """Return rows of strings as a Markdown table; the first `names` columns stand left, the others right."""
    lines = [header, ["---"] * names + ["---:"] * (len(header) - names), *rows]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{title}\n\n{body}\n" + (f"\n{note}\n" if note else "")


def write_rows(
    out: Path, title: str, caption: str, header: Sequence[str], names: int, rows: Sequence[Sequence[str]]
) -> None:
    """Write rows of strings as Markdown and LaTeX beside the CSV file `out`.

    Parameters as in `markdown_rows`. In LaTeX the first column becomes lines above the rows that share its value.
    """
    text = f"{title}. {' '.join(caption.split())}"
    write_text(out.with_suffix(".md"), markdown_rows(text, header, names, rows))
    write_text(out.with_suffix(".tex"), latex_tables(out.stem, text, header, rows, names=names, groups=1))
