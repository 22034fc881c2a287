"""Rules of the workflow that evaluate.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdpu.pipeline.cli.common import Configs, Metrics, Out, Summary, app, load_plan

PANEL = "Rules: evaluation"


@app.command(rich_help_panel=PANEL)
def collect(
    config: Configs,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Metrics to write, .parquet; .csv goes beside.")],
    summary: Annotated[Path, typer.Option(metavar="FILE", help="CSV of mean and deviation per cell to write.")],
    runs: Annotated[
        Path, typer.Option(metavar="FILE", help="CSV of the results and input files of each run to write.")
    ],
) -> None:
    """Gather all histories into one tidy table, and summarize it per run and per cell."""
    from mdpu.pipeline.evaluate.collect import write_collection

    write_collection(load_plan(config), out, summary, runs)


@app.command(rich_help_panel=PANEL)
def compare(
    config: Configs,
    summary: Summary,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json with totals goes beside.")],
) -> None:
    """Give each of the paper's 504 numbers a verdict, in every reading of its dataset."""
    from mdpu.pipeline.evaluate.comparison import write_comparison

    write_comparison(load_plan(config), summary, out)


@app.command(rich_help_panel=PANEL)
def claims(
    config: Configs,
    summary: Summary,
    metrics: Metrics,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json goes beside.")],
    cases: Annotated[Path, typer.Option(metavar="FILE", help="CSV of every case of every claim to write.")],
) -> None:
    """Check the claims of the paper's prose on our runs and on the paper's numbers."""
    from mdpu.pipeline.evaluate.claims import write_claims

    write_claims(load_plan(config), summary, metrics, out, cases)


@app.command(rich_help_panel=PANEL)
def ranks(
    config: Configs,
    summary: Summary,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json with the tests goes beside.")],
    figure: Annotated[Path, typer.Option(metavar="FILE", help="SVG to write; .pdf goes beside.")],
) -> None:
    """Rank the methods, test the ranks, and draw critical-difference diagrams."""
    from mdpu.pipeline.report.rank_figure import show_ranks

    show_ranks(load_plan(config), summary, out, figure)


@app.command(rich_help_panel=PANEL)
def audit(
    config: Configs,
    labels: Annotated[Path, typer.Option(metavar="DIR", help="Folder of labels, with their counts.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json with all cases goes beside.")],
) -> None:
    """Audit the paper: recompute what its numbers, the images and the formulas allow, and list the rest."""
    from mdpu.pipeline.evaluate.audit import write_audit

    write_audit(load_plan(config), labels, out)


@app.command(rich_help_panel=PANEL)
def verify(
    summary: Summary,
    expected: Annotated[Path, typer.Option(metavar="FILE", help="CSV of expected means and tolerances.")],
    out: Out,
) -> None:
    """Compare the numbers with those shipped with the repository."""
    from mdpu.pipeline.evaluate.verify import write_verification

    write_verification(summary, expected, out)
