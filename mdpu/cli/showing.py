"""Rules of the workflow that show: tables, figures, report.

Imports are made inside the commands, so that a command loads only what it needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdpu.cli.common import Configs, Drawing, Images, Labels, Metrics, Out, Summary, Table, app, load_plan

PANEL = "Rules: tables, figures, report"


@app.command(rich_help_panel=PANEL)
def table(
    config: Configs,
    experiment: Annotated[str, typer.Option(help="Experiment of kind table.")],
    summary: Summary,
    out: Table,
) -> None:
    """Write a table in the paper's shape as CSV, Markdown and LaTeX."""
    import pandas as pd

    from mdpu.evaluate.published import beside_published
    from mdpu.files import read_csv, write_csv, write_text
    from mdpu.report.tables import caption, latex_table, markdown_table
    from mdpu.study.grid import CELL

    chosen = load_plan(config)
    wanted = chosen.experiment(experiment)
    keys = pd.DataFrame(wanted.runs).drop(columns="seed").drop_duplicates()
    cells = keys.merge(read_csv(summary), on=list(CELL), how="left", validate="one_to_one")
    write_csv(beside_published(cells, chosen.published_names), out)
    datasets = chosen.titles(keys["dataset"])
    methods = list(dict.fromkeys(keys["method"]))
    not_run = list(chosen.titles(wanted.not_run).values())
    title = f"{wanted.title}. {caption(cells, datasets, chosen.protocol.reports_best_epoch)}"
    for suffix, render in ((".md", markdown_table), (".tex", latex_table)):
        write_text(out.with_suffix(suffix), render(cells, datasets, methods, title, not_run))


@app.command(rich_help_panel=PANEL)
def formulas(
    config: Configs,
    experiment: Annotated[str, typer.Option(help="Experiment of kind formulas.")],
    out: Table,
) -> None:
    """Write the table of losses (Table I) as CSV, Markdown and LaTeX."""
    from mdpu.files import write_csv, write_text
    from mdpu.report.formulas import latex_formulas, loss_rows, markdown_formulas

    title, rows = load_plan(config).experiment(experiment).title, loss_rows()
    write_csv(rows, out)
    for suffix, render in ((".md", markdown_formulas), (".tex", latex_formulas)):
        write_text(out.with_suffix(suffix), render(rows, title))


@app.command(rich_help_panel=PANEL)
def figure(
    config: Configs,
    experiment: Annotated[str, typer.Option(help="Experiment whose kind is a figure of runs.")],
    metrics: Metrics,
    out: Drawing,
) -> None:
    """Draw a figure of runs as SVG and PDF."""
    import pandas as pd

    from mdpu.files import read_table
    from mdpu.report.figures import draw
    from mdpu.report.figures.common import save_figure
    from mdpu.study.grid import AXES

    chosen = load_plan(config)
    wanted = chosen.experiment(experiment)
    save_figure(draw(chosen, wanted, pd.DataFrame(wanted.runs).merge(read_table(metrics), on=list(AXES))), out)


@app.command(rich_help_panel=PANEL)
def setting(
    config: Configs,
    dataset: Annotated[str, typer.Option(help="Dataset of the configuration.")],
    images: Images,
    labels: Labels,
    split: Annotated[Path, typer.Option(metavar="FILE", help="Split whose tuples and unlabeled images are shown.")],
    out: Drawing,
) -> None:
    """Draw the setting beside its neighbours (Figure 1) with images of a dataset, as SVG and PDF."""
    from mdpu.data.images import read_images
    from mdpu.data.labels import read_labels
    from mdpu.data.splits import read_split
    from mdpu.report.figures.common import save_figure
    from mdpu.report.figures.setting import setting_figure

    save_figure(
        setting_figure(read_images(images), read_labels(labels), read_split(split), load_plan(config).dataset(dataset)),
        out,
    )


@app.command(rich_help_panel=PANEL)
def losses(out: Drawing) -> None:
    """Draw the losses and their slopes (Figure 2) as SVG and PDF."""
    from mdpu.report.figures.common import save_figure
    from mdpu.report.figures.losses import losses_figure

    save_figure(losses_figure(), out)


@app.command(rich_help_panel=PANEL)
def tuning(
    config: Configs,
    tuning: Annotated[str, typer.Option(help="Tuning of the configuration, e.g. mnist/base/m2.")],
    grid: Annotated[Path, typer.Option(metavar="FILE", help="Grid that `tune` wrote.")],
    out: Drawing,
) -> None:
    """Draw the estimated errors of a tuning and what it chose, as SVG and PDF."""
    from mdpu.files import read_csv
    from mdpu.report.figures.common import save_figure
    from mdpu.report.figures.tuning import tuning_figure

    save_figure(tuning_figure(read_csv(grid), load_plan(config).tuning_title(tuning)), out)


@app.command(rich_help_panel=PANEL)
def sensitivity(
    config: Configs,
    experiment: Annotated[str, typer.Option(help="Experiment of kind sensitivity.")],
    metrics: Metrics,
    out: Table,
    nearest: Annotated[Path, typer.Option(metavar="FILE", help="CSV of distances to the published numbers to write.")],
) -> None:
    """Say how far each choice that the paper leaves open moves each method, and which lies nearest to its numbers."""
    import pandas as pd

    from mdpu.evaluate.sensitivity import nearest_to_published, paired_differences, summarize_differences
    from mdpu.files import read_table, write_csv, write_text
    from mdpu.report.sensitivity import sensitivity_latex, sensitivity_markdown
    from mdpu.study.grid import AXES

    chosen = load_plan(config)
    wanted = chosen.experiment(experiment)
    histories = pd.DataFrame(wanted.runs).merge(read_table(metrics), on=list(AXES))
    summary = summarize_differences(paired_differences(chosen, wanted, histories), chosen.config["comparison"]["level"])
    write_csv(summary, out)
    write_csv(nearest_to_published(chosen, wanted, histories), nearest)
    datasets = chosen.titles(run.dataset for run in wanted.runs)
    for suffix, render in ((".md", sensitivity_markdown), (".tex", sensitivity_latex)):
        write_text(out.with_suffix(suffix), render(summary, datasets, wanted.title))


@app.command(rich_help_panel=PANEL)
def report(
    config: Configs,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the configuration's results.")],
    out: Out,
) -> None:
    """Render the HTML report."""
    from mdpu.files import write_text
    from mdpu.report.page import render_page

    write_text(out, render_page(load_plan(config), results))
