"""Carry finished runs from one machine to another.

Imports are made inside the commands, so that a command loads only what it needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdpu.cli.common import Out, Store, app

PANEL = "Carry finished runs from one machine to another"


@app.command(rich_help_panel=PANEL)
def pack(store: Store, out: Out) -> None:
    """Write all finished runs into one file, each with its fingerprint and origin."""
    from mdpu.study.store import RunStore

    print(f"{RunStore(store).pack(out)} finished runs packed into {out}")


@app.command(rich_help_panel=PANEL)
def unpack(
    packed: Annotated[Path, typer.Argument(metavar="FILE", help="What `pack` wrote.")],
    store: Store,
) -> None:
    """Put packed runs into a folder of finished runs, where training takes those that it would give the same.

    A run whose settings, images, labels, split or training code are others now is trained all the same. What the folder
    holds is left as it is.
    """
    from mdpu.study.store import RunStore

    new, kept = RunStore(store).unpack(packed)
    print(f"{new} finished runs unpacked into {store}" + (f", {kept} left as they are there" if kept else ""))
