"""Rules of the workflow that show: tables, figures, report.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdpu.pipeline.cli.common import Configs, Drawing, Images, Labels, Metrics, Out, Summary, app, load_plan

PANEL = "Rules: tables, figures, report"


@app.command(rich_help_panel=PANEL)
def show(
    config: Configs,
    experiment: Annotated[str, typer.Option(help="Experiment of the configuration.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of results to write into.")],
    summary: Summary | None = None,
    metrics: Metrics | None = None,
    images: Images | None = None,
    labels: Labels | None = None,
    split: Annotated[Path | None, typer.Option(metavar="FILE", help="Split that is shown.")] = None,
) -> None:
    """Make the files of an experiment: a table, a figure, a study. Its kind determines the inputs."""
    from mdpu.pipeline.experiments import show

    given = {"summary": summary, "metrics": metrics, "images": images, "labels": labels, "split": split}
    show(load_plan(config), experiment, {name: path for name, path in given.items() if path}, out)


@app.command(rich_help_panel=PANEL)
def tuning(
    config: Configs,
    tuning: Annotated[str, typer.Option(help="Tuning of the configuration, e.g. mnist/base/m2.")],
    grid: Annotated[Path, typer.Option(metavar="FILE", help="Grid that `tune` wrote.")],
    out: Drawing,
) -> None:
    """Draw the estimated errors of a tuning and its choice, as SVG and PDF."""
    from mdpu.pipeline.report.tuning_figure import draw_tuning

    draw_tuning(load_plan(config), tuning, grid, out)


@app.command(rich_help_panel=PANEL)
def report(
    config: Configs,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the configuration's results.")],
    out: Out,
) -> None:
    """Render the HTML report."""
    from mdpu.pipeline.experiments import sections
    from mdpu.pipeline.report.page import write_page

    plan = load_plan(config)
    write_page(plan, results, sections(plan, results), out)
