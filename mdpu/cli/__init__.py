"""The command line: one file per panel of ``mdpu --help``; every rule of the workflow is one command."""

from __future__ import annotations

import os
import sys

from mdpu.cli import inspect, data, training, evaluation, showing, carry, console  # isort: skip  (the order of the panels)
from mdpu.cli.common import app
from mdpu.errors import UserError
from mdpu.seals import recording

__all__ = ["app", "carry", "console", "data", "evaluation", "inspect", "main", "showing", "training"]


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence and status 2."""
    # GNU OpenMP's threads spin for a long time while they wait, which stalls a busy machine. With this setting they
    # sleep after microseconds (docs/explanation/performance.md). It must be set before torch loads OpenMP.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        with recording():
            app()
    except MemoryError:
        print("error: there is not enough memory; give the job more, or ask for less", file=sys.stderr)
        sys.exit(2)
    except UserError as error:
        sentence = " ".join(str(error).split())  # quoted text may have several lines
        print(f"error: {sentence}", file=sys.stderr)
        sys.exit(2)
