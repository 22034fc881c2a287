"""Rules of the workflow that train.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdpu.pipeline.cli.common import Configs, Images, Out, Threads, app, load_plan

PANEL = "Rules: training"


@app.command(rich_help_panel=PANEL)
def tune(
    config: Configs,
    tuning: Annotated[str, typer.Option(help="Tuning of the configuration, e.g. mnist/base/m2.")],
    images: Images,
    split: Annotated[Path, typer.Option(metavar="FILE", help="Split of the tuning's own trial.")],
    out: Out,
    threads: Threads = 2,
) -> None:
    """Choose learning rate and weight decay from the grid, without true labels; write the whole grid as CSV."""
    from mdpu.pipeline.train import tune

    tune(load_plan(config), tuning, images, split, out, threads)


@app.command(rich_help_panel=PANEL)
def train(
    cohort: Annotated[str, typer.Argument(metavar="COHORT", help="Of the configuration; `mdpu plan` lists them.")],
    config: Configs,
    threads: Threads = 2,
) -> None:
    """Train the runs of a cohort that are not finished; write a manifest of the finished runs of all."""
    from mdpu.pipeline.train import train

    train(load_plan(config), cohort, threads)


@app.command(rich_help_panel=PANEL)
def equivalent(
    config: Configs,
    runs: Annotated[int, typer.Option(min=40, help="Size of the sample.")] = 40,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Scratch folder to train into.")] = Path(
        ".snakemake/retrained"
    ),
    workers: Annotated[int, typer.Option(min=1, help="Runs that train side by side, each with one thread.")] = 2,
) -> None:
    """Declare that the training code as it is trains the bits of the shipped runs, so that none is trained again.

    A random sample of them, over all methods, datasets and tuple sizes, is trained again. If one differs in a bit,
    nothing is declared.
    """
    from mdpu.pipeline.equivalence import declare

    new = declare(load_plan(config), out, runs, workers)
    print(
        f"{len(new)} versions of training code are declared equal to those of the shipped runs"
        if new
        else "nothing new"
    )
