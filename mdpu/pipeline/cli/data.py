"""Rules of the workflow that prepare data: images, labels, splits.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdpu.pipeline.cli.common import Configs, Images, Labels, Mirror, Out, Prior, TupleSize, app, load_plan

PANEL = "Rules: images, labels, splits"


@app.command(rich_help_panel=PANEL)
def dataset(
    source: Annotated[str, typer.Argument(help="Source of images: a name, e.g. mnist, or a path to your own.")],
    config: Configs,
    out: Out,
    mirror: Mirror = None,
) -> None:
    """Fetch and verify a source; write its images, with a description (.json) beside them.

    Raw downloads go to the configuration's `data_dir`; intact ones that are already there are used.
    """
    from mdpu.pipeline.config import load_config
    from mdpu.pipeline.data.sources import write_source
    from mdpu.pipeline.plan import Layout

    chosen = load_config(config)
    write_source(source, Layout(chosen).data_dir, chosen.get("mirror") or mirror, out)


@app.command(rich_help_panel=PANEL)
def fetch(config: Configs, mirror: Mirror = None) -> None:
    """Fetch and verify the raw files of every selected dataset in advance, e.g. on a login node with a network."""
    from mdpu.pipeline.data.sources import fetch_sources

    chosen = load_plan(config)
    sources = [chosen.dataset(name)["source"] for name in chosen.datasets]
    fetch_sources(sources, chosen.layout.data_dir, chosen.config.get("mirror") or mirror)


@app.command(rich_help_panel=PANEL)
def labels(
    config: Configs,
    dataset: Annotated[str, typer.Option(help="Dataset of the configuration.")],
    images: Images,
    out: Out,
) -> None:
    """Binarize class ids to +1 and -1; write the labels, with counts (.json) beside them."""
    from mdpu.pipeline.config import find_dataset, load_config
    from mdpu.pipeline.data.labels import write_binarized

    write_binarized(images, dataset, find_dataset(load_config(config), dataset), out)


@app.command(rich_help_panel=PANEL)
def sheet(
    images: Images,
    labels: Labels,
    positive: Annotated[Path, typer.Option(metavar="FILE", help="PNG of positive images to write.")],
    negative: Annotated[Path, typer.Option(metavar="FILE", help="PNG of negative images to write.")],
) -> None:
    """Draw a contact sheet of each side."""
    from mdpu.pipeline.report.sheet import write_sheets

    write_sheets(images, labels, positive, negative)


@app.command(rich_help_panel=PANEL)
def split(
    labels: Labels,
    tuple_size: TupleSize,
    prior: Prior,
    n: Annotated[int, typer.Option("--n", max=10**8, help="Number of tuples.")],
    n_unlabeled: Annotated[int, typer.Option(max=10**8, help="Number of unlabeled images.")],
    trial: Annotated[
        str, typer.Option(help="Name of the trial, e.g. mnist/m2/n10000/prior0.5/seed1; it seeds every random number.")
    ],
    out: Out,
    replacement: Annotated[bool, typer.Option(help="Draw with replacement.")] = True,
    overlap: Annotated[bool, typer.Option(help="Let tuples and unlabeled images share images.")] = True,
    broken: Annotated[float, typer.Option(help="Share of tuples that are not dominant.")] = 0.0,
) -> None:
    """Draw the tuples and unlabeled images of one trial; write them, with their diagnostics (.json) beside them."""
    from mdpu.pipeline.data.diagnostics import write_diagnosed_split

    drawing = {"n": n, "n_unlabeled": n_unlabeled, "replacement": replacement, "overlap": overlap, "broken": broken}
    write_diagnosed_split(labels, out, tuple_size, prior, trial=trial, **drawing)
