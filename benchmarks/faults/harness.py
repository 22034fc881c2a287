"""What the fault harnesses share: a workflow to disturb and compare, rounds in a file, and the table of outcomes.

    python benchmarks/faults/harness.py      # writes the table of docs/explanation/faults.md anew from outcomes.csv

A harness writes each round into the file of ``--out``. Started again with the same file, it goes on from it; to try
everything anew, delete the file. Its row of the table follows, at the latest when it ends.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FILE, PAGE = HERE / "outcomes.csv", ROOT / "docs" / "explanation" / "faults.md"
BEGIN, END = "<!-- outcomes: written by the harnesses -->\n", "<!-- end of outcomes -->\n"
TINY = "benchmarks/faults/tiny.yaml"
# Pairs and triples at one prior: two training jobs, and each of the other commands.
CONTAINED = [TINY, "benchmarks/faults/contained.yaml"]
# Errors of calls, as the table of outcomes has them.
ERRORS = {
    "ENOSPC": "disk full (ENOSPC)",
    "EDQUOT": "quota exceeded (EDQUOT)",
    "EIO": "input/output error (EIO)",
    "EROFS": "read-only results (EROFS)",
}


def parser_of(description: str | None, *, out: bool = True) -> argparse.ArgumentParser:
    """Return a parser that shows a description as it stands, with the file of the rounds."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if out:
        parser.add_argument("--out", type=Path, required=True)
    return parser


# -- a workflow -----------------------------------------------------------------------------------


class Workflow:
    """`./run paper` of a configuration in this clone; its results may be deleted.

    Parameters
    ----------
    name : str
        Name of the configuration, i.e. folder of its results.
    files : sequence of str
        What is laid over the paper's configuration.
    options : str
        Further arguments of each start.
    """

    def __init__(self, name: str, files: Sequence[str], *options: str) -> None:
        self.results = ROOT / "results" / name
        self.command = ["./run", "paper", "--configfile", *files, *options]
        self.reference = pd.DataFrame()

    def run(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end, with further options and variables in its environment."""
        command, variables = [*self.command, *options], {**os.environ, **environment}
        return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)

    def succeed(self, *options: str, **environment: str) -> None:
        """Run it, and insist on success."""
        done = self.run(*options, **environment)
        assert done.returncode == 0, done.stdout + done.stderr

    def clear(self) -> None:
        """Delete the results, and the finished runs beside them, which would be taken instead of trained."""
        for folder in (self.results, self.results.parent / "cache"):
            shutil.rmtree(folder, ignore_errors=True)

    def numbers(self) -> pd.DataFrame:
        """Return the histories of all runs, without those that diverge."""
        table = pd.read_parquet(self.results / "metrics.parquet")
        return table[table["variant"] == "base"].reset_index(drop=True)

    def wrong(self) -> str | None:
        """Return what is wrong with results that have to be those of `reference`, or None."""
        if not self.numbers().equals(self.reference):
            return "other numbers"
        checked = subprocess.run(["./run", "check", self.results.name], cwd=ROOT, capture_output=True, text=True)
        if checked.returncode:
            return f"other than sealed: {' '.join(checked.stdout.split())[-300:]}"
        folders = (self.results, self.results.parent / "cache")
        left = [path for folder in folders for path in folder.rglob(".*") if path.suffix != ".seal"]
        left += self.results.rglob("*.pt")
        return f"left over: {', '.join(map(str, sorted(left)))}" if left else None


def put_back(snapshot: Path, folder: Path) -> None:
    """Make a folder that of a snapshot."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(snapshot, folder)


def build_counter(folder: Path) -> Path:
    """Compile the library that counts calls."""
    library = folder / "calls.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, HERE / "calls.c", "-ldl"], check=True)
    return library


# -- damage ---------------------------------------------------------------------------------------


def cut(content: bytes) -> bytes:
    """Return the first half."""
    return content[: len(content) // 2]


def flip(content: bytes) -> bytes:
    """Return the same with one bit flipped in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def edit(content: bytes) -> bytes:
    """Return the same with its last digit increased, or a byte added where there is none."""
    for place in range(len(content) - 1, -1, -1):
        if content[place : place + 1] in b"012345678":
            return content[:place] + bytes([content[place] + 1]) + content[place + 1 :]
    return content + b"0"


CHANGES: dict[str, Callable[[bytes], bytes]] = {"cut": cut, "flipped": flip, "edited": edit}


def change(path: Path, way: str, *, old_time: bool) -> None:
    """Change a file in one of the ways of `CHANGES`; its time stamps are now, or stay as they are."""
    times = path.stat()
    path.write_bytes(CHANGES[way](path.read_bytes()))
    if old_time:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


# -- rounds and their table -----------------------------------------------------------------------


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table, none if there is no file."""
    return pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records") if path.exists() else []


class Rounds:
    """The rounds that a harness has tried, in a file that an interrupted harness goes on from.

    Parameters
    ----------
    path : Path
        A CSV file, with a line for each round.
    columns : str
        Its columns: first those that say what is tried, then what came of it.
    """

    def __init__(self, path: Path, *columns: str) -> None:
        self.path, self.columns, self.rows = path.resolve(), columns, read(path)

    def add(self, *values: object) -> None:
        """Add a round, a value for each column."""
        self.rows.append(dict(zip(self.columns, map(str, values), strict=True)))
        pd.DataFrame(self.rows).to_csv(self.path, index=False)

    def has(self, *values: object) -> bool:
        """Return whether a round has these values in the first columns."""
        return any([*row.values()][: len(values)] == [*map(str, values)] for row in self.rows)

    def count(self, column: str, **chosen: str) -> Counter[str]:
        """Return how many rounds have each value of a column, of those that have the chosen values in others."""
        return Counter(row[column] for row in self.rows if chosen.items() <= row.items())


def record(fault: str, where: str, outcomes: Mapping[str, int]) -> None:
    """Write the number of rounds by outcome into the row of a fault and a place, in the file and on the page."""
    rows = {(row["fault"], row["where"]): row for row in read(FILE)}
    counts = sorted(outcomes.items(), key=lambda item: -item[1])
    said = f"all {counts[0][0]}" if len(counts) == 1 else ", ".join(f"{count} {name}" for name, count in counts)
    rows[fault, where] = {"fault": fault, "where": where, "rounds": str(sum(outcomes.values())), "outcome": said}
    pd.DataFrame(rows.values()).to_csv(FILE, index=False)
    write_page()


def render() -> str:
    """Return the table as Markdown."""
    rows = read(FILE)
    lines = [rows[0], ("---", "---", "---:", "---"), *(row.values() for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_page() -> None:
    """Write the table into the page, between its two marks."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{render()}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    write_page()
