"""A study of the choices that the paper leaves open: how much each alternative to the protocol changes each method.

Its figure and its tables show the same runs; `mdpu.pipeline.evaluate.sensitivity` computes the statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mdpu.pipeline.config import known
from mdpu.pipeline.evaluate.collect import read_histories
from mdpu.pipeline.evaluate.sensitivity import paired_differences, summarize_differences
from mdpu.pipeline.experiments import FIGURE, Kind, check_base
from mdpu.pipeline.experiments.sensitivity.figure import draw
from mdpu.pipeline.experiments.sensitivity.tables import (
    choice_rows,
    sensitivity_cells,
    sensitivity_rows,
)
from mdpu.pipeline.files import read_csv, write_csv
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import save_figure
from mdpu.pipeline.report.sections import figure_section
from mdpu.pipeline.report.tables import write_rows

NAMES = {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}}
CAPTION = """\
Change of test accuracy, in points, when one choice that the paper leaves open differs from the protocol. A grey row
names the choice and, in brackets, the protocol's value. A large marker is the mean of the paired differences over
trials (same seed, and the same tuples unless the alternative draws its own). Its bar is one standard deviation to each
side, and a small marker is one trial. A vertical line is the paper's accuracy minus that of the protocol as it stands:
where an alternative's marker meets its method's line, the alternative gives the paper's number.
"""


def check(definition: Mapping[str, Any], config: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` if a reporting is unknown, or base is missing."""
    for reporting in definition.get("options", {}).get("reporting", []):
        known(reporting, config["definitions"].get("reportings", {}), f"{where}.options.reporting")
    check_base(definition, where)


def make(plan: Plan, experiment: Experiment, inputs: Mapping[str, Path], results: Path) -> None:
    """Draw the study, and write the differences as CSV and LaTeX."""
    histories = read_histories(experiment.runs, inputs["metrics"])
    summary = summarize_differences(paired_differences(plan, experiment, histories), plan.config["comparison"]["level"])
    out = results / "sensitivity" / f"{experiment.name}.csv"
    write_csv(summary, out)
    datasets = plan.titles(run.dataset for run in experiment.runs)
    header, rows = sensitivity_rows(summary, datasets)
    numbers = [[cell.removesuffix(" %") for cell in row] for row in rows]
    write_rows(out, experiment.title, CAPTION, header, 4, numbers)
    save_figure(draw(plan, experiment, histories), results / "figures" / f"{experiment.name}.svg")


def section(plan: Plan, experiment: Experiment, results: Path) -> dict[str, Any]:
    """Return a study for the template: its figure and its tables."""
    titles = plan.titles(plan.config["definitions"]["datasets"])
    summary = read_csv(results / "sensitivity" / f"{experiment.name}.csv")
    header, rows = sensitivity_rows(summary, titles)
    return {
        **figure_section(plan, experiment, results, CAPTION),
        "template": "sections/sensitivity.html.j2",
        "choices": choice_rows(summary, titles),
        "header": header,
        "rows": [
            {"words": row[:4], "numbers": list(zip(row[4:], cells, strict=True))}
            for row, cells in zip(rows, sensitivity_cells(summary), strict=True)
        ],
        "level": f"{100 * plan.config['comparison']['level']:g} %",
    }


KIND = Kind(
    make=make,
    section=section,
    reads=("metrics",),
    files=(*FIGURE, *(f"sensitivity/{{name}}{ending}" for ending in (".csv", ".tex"))),
    single=("n", "loss"),
    keys={
        "reporting": {"title": "Reportings that it compares, of definitions.reportings.", **NAMES},
    },
    check=check,
)
