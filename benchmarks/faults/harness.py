"""Shared by the fault harnesses: a workflow to disturb and compare, and rounds in a file.

A harness writes each round into the file of ``--out``. Started again with the same file, it goes on
from it; to try everything anew, delete the file. At its end it prints how many rounds had each
outcome.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = ROOT / "results"
COMMAND = ["./run", "paper", "--configfile", str(HERE / "tiny.yaml"), "--cores", "2"]
MADE = ("datasets", "labels", "splits", "runs", "tiny")  # folders of results


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that shows a description as it stands, with the file of the rounds."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True)
    return parser


def succeed() -> None:
    """Run the tiny experiment to its end, and insist on success."""
    wide = {**os.environ, "COLUMNS": "1000"}  # so that no path is broken
    done = subprocess.run(COMMAND, cwd=ROOT, env=wide, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def clear() -> None:
    """Delete what the workflow makes."""
    for name in MADE:
        shutil.rmtree(RESULTS / name, ignore_errors=True)


def numbers() -> pd.DataFrame:
    """Return the histories of all runs."""
    return pd.read_parquet(RESULTS / "tiny" / "metrics.parquet")


def leftovers() -> list[Path]:
    """Return temporary files and checkpoints that nothing should have left."""
    left = []
    for name in MADE:
        for path in (RESULTS / name).rglob("*"):
            if path.name.startswith(".") or path.suffix == ".checkpoint":
                left.append(path)
    return left


# -- rounds ---------------------------------------------------------------------------------------


class Rounds:
    """The rounds that a harness has tried, in a CSV file from which it goes on if interrupted."""

    def __init__(self, path: Path, *columns: str) -> None:
        self.path = path.resolve()
        self.columns = columns
        self.rows: list[dict[Any, str]] = []
        if path.exists():
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
            self.rows = table.to_dict("records")

    def add(self, *values: object) -> None:
        """Add a round, a value for each column."""
        self.rows.append(dict(zip(self.columns, map(str, values), strict=True)))
        pd.DataFrame(self.rows).to_csv(self.path, index=False)

    def has(self, *values: object) -> bool:
        """Return whether a round has these values in the first columns."""
        wanted = [str(value) for value in values]
        return any(list(row.values())[: len(wanted)] == wanted for row in self.rows)

    def count(self, column: str) -> Counter[str]:
        """Return how many rounds have each value of a column."""
        return Counter(row[column] for row in self.rows)
