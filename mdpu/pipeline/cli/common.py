"""What the commands share: the application, types of options, and how a configuration becomes a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mdpu.pipeline.plan import Plan

app = typer.Typer(
    name="mdpu",
    help="Learning from M-tuple dominant positive and unlabeled data. Every rule of the workflow is one command here.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

Configs = Annotated[
    list[Path],
    typer.Option("--config", metavar="FILE", help="Configuration; repeat it to merge further files over the first."),
]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write.")]
Drawing = Annotated[Path, typer.Option("--out", metavar="FILE", help="SVG to write; .pdf goes beside.")]
Table = Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .tex goes beside.")]
Mirror = Annotated[
    str | None,
    typer.Option(
        envvar="MDPU_MIRROR",
        metavar="PLACE",
        help="http(s) address or folder, laid out as data_dir, to fetch from unless the configuration has a `mirror`.",
    ),
]
TupleSize = Annotated[int, typer.Option(max=1000, help="Tuple size M.")]
Prior = Annotated[float, typer.Option(help="Class prior pi_+.")]
Images = Annotated[Path, typer.Option(metavar="FILE", help="Images of the dataset's source.")]
Labels = Annotated[Path, typer.Option(metavar="FILE", help="Labels of the dataset.")]
Store = Annotated[Path, typer.Option("--store", metavar="DIR", help="Folder of finished runs: results/<name>/runs.")]
Summary = Annotated[Path, typer.Option(metavar="FILE", help="Summary that `collect` wrote.")]
Metrics = Annotated[Path, typer.Option(metavar="FILE", help="Metrics that `collect` wrote.")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads.")]
RunOrCell = Annotated[str, typer.Argument(help="Run, as `plan --runs` lists them, or cell: a run's without its seed.")]


def load_plan(config: list[Path], values: Sequence[str] = ()) -> Plan:
    """Return the plan of configuration files, each merged over those before it, with ``KEY=VALUE`` merged over all."""
    from mdpu.pipeline.config import load_config
    from mdpu.pipeline.plan import Plan

    return Plan(load_config(config, values))
