"""A study of the choices that the paper leaves open: how much each alternative to the protocol changes each method.

Its figure, its tables and the distances to the published numbers show the same runs;
`mdpu.pipeline.evaluate.sensitivity` computes the statistics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdpu.pipeline.config import BASE, available_methods, known
from mdpu.pipeline.experiments import FIGURE, check_base
from mdpu.pipeline.files import read_csv, write_csv
from mdpu.pipeline.grid import Run, grid_runs
from mdpu.pipeline.kind import Kind
from mdpu.pipeline.report.sections import figure_section

if TYPE_CHECKING:
    from mdpu.pipeline.grid import Experiment
    from mdpu.pipeline.plan import Plan

NAMES = {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}}
CAPTION = """\
Change of test accuracy, in points, when one choice that the paper leaves open differs from the protocol. A grey row
names the choice and, in brackets, the protocol's value. A large marker is the mean of the paired differences over
trials (same seed, and the same tuples unless the alternative draws its own). Its bar is one standard deviation to each
side, and a small marker is one trial. A vertical line is the paper's accuracy minus that of the protocol as it stands:
where an alternative's marker meets its method's line, the alternative gives the paper's number.
"""


def check(definition: Mapping[str, Any], config: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` if a reporting or a method is unknown, or base is missing."""
    for reporting in definition.get("reporting", []):
        known(reporting, config["definitions"].get("reportings", {}), f"{where}.reporting")
    for method in definition.get("base_method", []):
        known(method, available_methods(), f"{where}.base_method")
    check_base(definition, where)


def runs(definition: Mapping[str, Any], dataset: str) -> Iterator[Run]:
    """Yield the runs on a dataset: those of the grid, and those of methods that run only under base."""
    yield from grid_runs(definition, dataset)
    alone = {"variant": [BASE], "method": definition.get("base_method", [])}
    yield from grid_runs({**definition, **alone}, dataset)


def settings(plan: Plan, experiment: Experiment) -> dict[str, Any]:
    """Return the meaning of the variants and reportings, the published rows, and the level of the intervals."""
    networks = sorted({plan.network(run.dataset) for run in experiment.runs})
    return {
        "departures": {
            "variants": {
                name: [astuple(departure) for departure in plan.protocol.departures(name, networks)]
                for name in dict.fromkeys(run.variant for run in experiment.runs)
            },
            "reportings": {
                name: plan.protocol.reporting(name) for name in (BASE, *experiment.options.get("reporting", ()))
            },
        },
        "published": {run.dataset: plan.published_names[run.dataset] for run in experiment.runs},
        "level": plan.config["comparison"]["level"],
    }


def make(plan: Plan, experiment: Experiment, inputs: Mapping[str, Path], results: Path) -> None:
    """Draw the study, and write the differences as CSV and LaTeX, and the distances as CSV."""
    from mdpu.pipeline.evaluate.collect import read_histories
    from mdpu.pipeline.evaluate.sensitivity import nearest_to_published, paired_differences, summarize_differences
    from mdpu.pipeline.experiments.sensitivity.figure import draw
    from mdpu.pipeline.experiments.sensitivity.tables import sensitivity_rows
    from mdpu.pipeline.report.drawing import save_figure
    from mdpu.pipeline.report.tables import write_rows

    histories = read_histories(experiment.runs, inputs["metrics"])
    summary = summarize_differences(paired_differences(plan, experiment, histories), plan.config["comparison"]["level"])
    out = results / "sensitivity" / f"{experiment.name}.csv"
    write_csv(summary, out)
    write_csv(nearest_to_published(plan, experiment, histories), out.with_name(f"{experiment.name}-nearest.csv"))
    datasets = plan.titles(run.dataset for run in experiment.runs)
    header, rows = sensitivity_rows(summary, datasets)
    numbers = [[cell.removesuffix(" %") for cell in row] for row in rows]
    write_rows(out, experiment.title, CAPTION, header, 4, numbers)
    save_figure(draw(plan, experiment, histories), results / "figures" / f"{experiment.name}.svg")


def section(plan: Plan, experiment: Experiment, results: Path) -> dict[str, Any]:
    """Return a study for the template: its figure, its table and the distances to the published numbers."""
    from mdpu.pipeline.experiments.sensitivity.tables import (
        choice_rows,
        nearest_rows,
        sensitivity_cells,
        sensitivity_rows,
    )

    titles = plan.titles(plan.config["definitions"]["datasets"])
    summary = read_csv(results / "sensitivity" / f"{experiment.name}.csv")
    header, rows = sensitivity_rows(summary, titles)
    nearest = read_csv(results / "sensitivity" / f"{experiment.name}-nearest.csv")
    return {
        **figure_section(plan, experiment, results, CAPTION),
        "choices": choice_rows(summary, titles),
        "header": header,
        "rows": [
            {"words": row[:4], "numbers": list(zip(row[4:], cells, strict=True))}
            for row, cells in zip(rows, sensitivity_cells(summary), strict=True)
        ],
        "nearest": nearest_rows(nearest, titles),
        "compared": len(nearest),
        "tied": None if nearest["tied"].isna().any() else int(nearest["tied"].sum()),
        "level": f"{100 * plan.config['comparison']['level']:g} %",
    }


KIND = Kind(
    make=make,
    section=section,
    reads=("metrics",),
    files=(*FIGURE, *(f"sensitivity/{{name}}{ending}" for ending in (".csv", ".tex", "-nearest.csv"))),
    single=("n", "loss"),
    keys={
        "reporting": {"title": "Reportings that it compares, of definitions.reportings.", **NAMES},
        "base_method": {"title": "Methods that run under base alone.", **NAMES},
    },
    check=check,
    runs=runs,
    settings=settings,
    caption=lambda experiment: CAPTION,
    place="studies",
    template="sections/sensitivity.html.j2",
)
