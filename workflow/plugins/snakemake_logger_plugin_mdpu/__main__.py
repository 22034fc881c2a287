"""Snakemake without the line that names its profile, which it prints before it asks a logger plugin."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO

from snakemake import cli

parse_args = cli.parse_args


def parse_quietly(argv: Sequence[str] | None) -> tuple[ArgumentParser, Namespace]:
    """Return what Snakemake makes of the command line; errors are printed, the profile is not."""
    said = StringIO()
    try:
        with redirect_stderr(said):
            return parse_args(argv)
    finally:
        lines = said.getvalue().splitlines(keepends=True)
        sys.stderr.writelines(line for line in lines if not line.endswith("default command line arguments.\n"))


if __name__ == "__main__":
    sys.argv[0] = "snakemake"  # what its help and its errors call it
    cli.parse_args = parse_quietly
    cli.main()
