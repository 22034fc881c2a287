"""Table I: the losses, written out from the formulas that stand beside the code's own functions."""

from __future__ import annotations

from typing import Any

import pandas as pd
from latex2mathml.converter import convert
from markupsafe import Markup

from mdpu.pipeline.files import read_csv, write_csv, write_text
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.latex import latex_float
from mdpu.pipeline.show import TABLE, Inputs, Kind, Outputs

CAPTION = "Losses of a score z against a label t, as the code defines them."


def loss_rows() -> pd.DataFrame:
    """Return a row per loss of Table I: its name ``loss``, ``title``, ``notation`` and ``formula``,
    both in LaTeX.
    """
    from mdpu.losses import LOSSES

    rows = [
        (name, f"{loss.title} loss", rf"\ell_{{\mathrm{{{loss.title}}}}}(t, z)", loss.formula)
        for name, loss in LOSSES.items()
        if loss.in_table
    ]
    return pd.DataFrame(rows, columns=["loss", "title", "notation", "formula"])


def latex_formulas(rows: pd.DataFrame, title: str, name: str) -> str:
    """Return Table I as LaTeX for the booktabs package, with a label of this name."""
    lines = [rf"{row.title} & ${row.notation}$ & ${row.formula}$ \\" for row in rows.itertuples()]
    head = [r"\begin{tabular}{lll}", r"\toprule", r"Loss & Notation & $\ell(t, z)$ \\", r"\midrule"]
    return latex_float(name, title, "\n".join([*head, *lines, r"\bottomrule", r"\end{tabular}"]))


def write(_plan: Plan, experiment: Experiment, _inputs: Inputs, outputs: Outputs) -> None:
    """Write an experiment of this kind as CSV and LaTeX."""
    rows = loss_rows()
    write_csv(rows, outputs[0])
    write_text(outputs[1], latex_formulas(rows, experiment.title, experiment.name))


def section(_plan: Plan, experiment: Experiment, outputs: Outputs) -> dict[str, Any]:
    """Return the table of losses for the template, its formulas as MathML."""
    rows = read_csv(outputs[0]).to_dict("records")
    return {
        "template": "sections/formulas.html.j2",
        "name": experiment.name,
        "title": experiment.title,
        "caption": CAPTION,
        "rows": [{**row, "formula": Markup(convert(row["formula"]))} for row in rows],
    }


KIND = Kind(write=write, section=section, reads=(), files=TABLE)
