"""Carry finished runs from one machine to another.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdpu.pipeline.cli.common import Out, Store, app

PANEL = "Carry finished runs from one machine to another"


@app.command(rich_help_panel=PANEL)
def pack(store: Store, out: Out) -> None:
    """Write all finished runs into one file, each with its fingerprint and origin."""
    from mdpu.pipeline.cache import RunStore

    print(f"{RunStore(store).pack(out)} finished runs packed into {out}")


@app.command(rich_help_panel=PANEL)
def unpack(
    packed: Annotated[Path, typer.Argument(metavar="FILE", help="What `pack` wrote.")],
    store: Store,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace runs that the folder has with another fingerprint.")
    ] = False,
) -> None:
    """Add packed runs to a folder of finished runs, from which training reuses those that are up to date.

    A run whose settings, images, labels, split or training code have changed is trained again. Runs that are already in
    the folder stay as they are.
    """
    from mdpu.pipeline.cache import RunStore

    new, kept = RunStore(store).unpack(packed, replace)
    print(f"{new} finished runs unpacked into {store}" + (f", {kept} left as they are there" if kept else ""))
