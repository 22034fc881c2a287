"""Table I: the losses, written out from the formulas that stand beside the code's own functions."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import pandas as pd

from mdpu.learn.losses import LOSSES
from mdpu.report.style import use_house_style
from mdpu.report.tables import latex_caption


def loss_rows() -> pd.DataFrame:
    """Return a row per loss: ``loss`` its name, ``title``, ``notation`` and ``formula``, the last two in LaTeX."""
    return pd.DataFrame(
        [
            {
                "loss": name,
                "title": f"{loss.title} loss",
                "notation": rf"\ell_{{\mathrm{{{loss.title}}}}}(t, z)",
                "formula": loss.formula,
            }
            for name, loss in LOSSES.items()
        ]
    )


def markdown_formulas(rows: pd.DataFrame, title: str) -> str:
    """Return Table I as Markdown, its formulas between dollar signs."""
    lines = [f"| {row.title} | ${row.notation}$ | ${row.formula}$ |" for row in rows.itertuples()]
    return "\n".join([title, "", r"| Loss | Notation | $\ell(t, z)$ |", "| --- | --- | --- |", *lines, ""])


def latex_formulas(rows: pd.DataFrame, title: str) -> str:
    """Return Table I as LaTeX for the booktabs package."""
    lines = [rf"{row.title} & ${row.notation}$ & ${row.formula}$ \\" for row in rows.itertuples()]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            latex_caption(title),
            r"\begin{tabular}{lll}",
            r"\toprule",
            r"Loss & Notation & $\ell(t, z)$ \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def formula_image(formula: str) -> bytes:
    """Return a formula as SVG, its letters as outlines, so that it looks the same whatever fonts a reader has."""
    use_house_style()
    with plt.rc_context({"svg.fonttype": "path", "mathtext.fontset": "cm"}):
        figure = plt.figure(figsize=(0.1, 0.1), layout="none")
        figure.text(0, 0, f"${formula}$", fontsize=12)
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", bbox_inches="tight", pad_inches=0.02, metadata={"Date": None})
        plt.close(figure)
    return stream.getvalue()
