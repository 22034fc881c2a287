"""Table I: the losses, written out from the formulas that stand beside the code's own functions."""

from __future__ import annotations

from typing import Any

import pandas as pd
from markupsafe import Markup

from mdpu.pipeline.experiments import TABLE, Kind
from mdpu.pipeline.files import read_csv, write_csv, write_text
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.mathml import to_mathml
from mdpu.pipeline.report.tables import latex_float

CAPTION = "Losses of a score z against a label t, as the code defines them."


def make(plan: Plan, experiment: Experiment) -> None:
    """Write an experiment of this kind as CSV and LaTeX."""
    out, rows = plan.layout.table(experiment.name), loss_rows()
    write_csv(rows, out)
    write_text(out.with_suffix(".tex"), latex_formulas(rows, experiment.title, experiment.name))


def section(plan: Plan, experiment: Experiment) -> dict[str, Any]:
    """Return the table of losses for the template, its formulas as MathML."""
    rows = read_csv(plan.layout.table(experiment.name)).to_dict("records")
    return {
        "template": "sections/formulas.html.j2",
        "name": experiment.name,
        "title": experiment.title,
        "caption": CAPTION,
        "rows": [{**row, "formula": Markup(to_mathml(row["formula"], "inline"))} for row in rows],
    }


def loss_rows() -> pd.DataFrame:
    """Return a row per loss: ``loss`` its name, ``title``, ``notation`` and ``formula``, the last two in LaTeX."""
    from mdpu.losses import LOSSES

    return pd.DataFrame(
        [
            {
                "loss": name,
                "title": f"{loss.title} loss",
                "notation": rf"\ell_{{\mathrm{{{loss.title}}}}}(t, z)",
                "formula": loss.formula,
            }
            for name, loss in LOSSES.items()
            if loss.in_table
        ]
    )


def latex_formulas(rows: pd.DataFrame, title: str, name: str) -> str:
    """Return Table I as LaTeX for the booktabs package, with a label of this name."""
    lines = [rf"{row.title} & ${row.notation}$ & ${row.formula}$ \\" for row in rows.itertuples()]
    head = [r"\begin{tabular}{lll}", r"\toprule", r"Loss & Notation & $\ell(t, z)$ \\", r"\midrule"]
    return latex_float(name, title, "\n".join([*head, *lines, r"\bottomrule", r"\end{tabular}"]))


KIND = Kind(make=make, section=section, reads=(), files=TABLE)
