"""Rules of the workflow that train.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdpu.pipeline.cli.common import Configs, Images, Labels, Out, Threads, app, load_plan

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
    config: Configs,
    cohort: Annotated[str, typer.Option(help="Cohort of the configuration; `mdpu plan` lists them.")],
    images: Images,
    labels: Labels,
    splits: Annotated[Path, typer.Option(metavar="DIR", help="Folder of splits.")],
    store: Annotated[Path, typer.Option(metavar="DIR", help="Folder of finished runs; unchanged ones are reused.")],
    checkpoints: Annotated[Path, typer.Option(metavar="DIR", help="Folder of unfinished training, which is resumed.")],
    out: Out,
    threads: Threads = 2,
    tuned: Annotated[Path | None, typer.Option(metavar="FILE", help="The choice of `tune`, if there was one.")] = None,
    progress: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSON to keep up to date with how far training is.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--run", metavar="NAME", help="Train only this run of the cohort; repeatable.")
    ] = None,
) -> None:
    """Train the runs of a cohort; write their histories, with provenance (.json) beside them."""
    from mdpu.pipeline.train import Files, train

    files = Files(images, labels, splits, store, checkpoints, out, tuned, progress)
    train(load_plan(config), cohort, files, threads, only or ())


@app.command("estimate-prior", rich_help_panel=PANEL)
def estimate_prior(
    config: Configs,
    images: Images,
    split: Annotated[Path, typer.Option(metavar="FILE", help="Split: tuples and unlabeled images.")],
    out: Out,
    told: Annotated[float | None, typer.Option(help="A prior to test against the data.")] = None,
    network: Annotated[str, typer.Option(help="Network to train.")] = "mlp",
    threads: Threads = 2,
) -> None:
    """Estimate the class prior from tuples and unlabeled images alone, and say whether a given prior fits."""
    from mdpu.pipeline.train import estimate_prior

    estimate = estimate_prior(load_plan(config), network, images, split, out, told, threads)
    if not estimate["known"]:
        print("the prior cannot be estimated: held-out tuples look no different from unlabeled images")
        return
    interval = f"{estimate['level']:.0%} interval {estimate['low']:.3f} to {estimate['high']:.3f}"
    print(f"prior {estimate['prior']:.3f}, {interval}")
    if told is not None and not estimate["fits"]:
        print(f"warning: the prior {told} does not fit these tuples and unlabeled images")
