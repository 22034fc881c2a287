"""Carry finished runs from one machine to another.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdpu.pipeline.cli.common import Configs, Out, app, load_plan

PANEL = "Carry finished runs from one machine to another"


@app.command("export", rich_help_panel=PANEL)
def export_(config: Configs, out: Out) -> None:
    """Write the finished runs of a configuration into one file, each with its recipe, origin and checksum."""
    from mdpu.pipeline.cache import export
    from mdpu.pipeline.evaluate.collect import finished_runs

    runs = list(finished_runs(load_plan(config)).values())
    export(runs, out)
    print(f"{len(runs)} finished runs written to {out}")


@app.command("import", rich_help_panel=PANEL)
def import_(
    packed: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote.")], config: Configs
) -> None:
    """Add exported runs to the cache, where training finds them by what they are made from.

    Each run is checked: a changed value, a missing epoch or a rate that is none is refused, by the run's name.
    """
    from mdpu.pipeline.cache import cache_of

    new, kept = cache_of(load_plan(config)).import_runs(packed)
    print(f"{new} finished runs imported" + (f", {kept} were there" if kept else ""))
