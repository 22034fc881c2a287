"""The table of faults that were tried: each harness writes its row, and docs/explanation/faults.md shows them all.

python benchmarks/faults/outcomes.py      # writes the table of docs/explanation/faults.md anew from outcomes.csv

A harness writes its row, at the latest when it ends, from the rounds in the file that it is given with ``--out``.
Started again with the same file, it goes on from it; to try everything anew, delete the file.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILE = HERE / "outcomes.csv"
PAGE = HERE.parent.parent / "docs" / "explanation" / "faults.md"
BEGIN, END = "<!-- outcomes: written by the harnesses -->\n", "<!-- end of outcomes -->\n"
COLUMNS = ("fault", "where", "rounds", "outcome")


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
        self.path, self.columns = path, columns
        self.rows: list[dict[str, str]] = []
        if not path.exists():
            path.write_text(",".join(columns) + "\n", encoding="utf-8")
            return
        with path.open(newline="", encoding="utf-8") as stream:
            table = csv.DictReader(stream)
            if tuple(table.fieldnames or ()) != columns:
                sys.exit(f"{path} has other columns than {', '.join(columns)}; delete it or name another file")
            self.rows = list(table)

    def add(self, *values: object) -> None:
        """Add a round, a value for each column."""
        row = dict(zip(self.columns, map(str, values), strict=True))
        with self.path.open("a", newline="", encoding="utf-8") as stream:
            csv.DictWriter(stream, self.columns, lineterminator="\n").writerow(row)
        self.rows.append(row)

    def has(self, *values: object) -> bool:
        """Return whether a round has these values in the first columns."""
        return any([*row.values()][: len(values)] == [*map(str, values)] for row in self.rows)

    def count(self, column: str, **chosen: str) -> Counter[str]:
        """Return how many rounds have each value of a column, of those that have the chosen values in others."""
        return Counter(row[column] for row in self.rows if chosen.items() <= row.items())


def record(fault: str, where: str, outcomes: Mapping[str, int]) -> None:
    """Write the row of a fault, in place of an earlier one, into the file and into the page.

    Parameters
    ----------
    fault, where : str
        What was done, and to what; together they name the row.
    outcomes : mapping
        Number of rounds by outcome.
    """
    rows = {(row["fault"], row["where"]): row for row in read()}
    counts = sorted(outcomes.items(), key=lambda item: -item[1])
    said = f"all {counts[0][0]}" if len(counts) == 1 else ", ".join(f"{count} {name}" for name, count in counts)
    values = (fault, where, str(sum(outcomes.values())), said)
    rows[fault, where] = dict(zip(COLUMNS, values, strict=True))
    with FILE.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows.values())
    write_page()


def read() -> list[dict[str, str]]:
    """Return the rows of the file."""
    if not FILE.exists():
        return []
    with FILE.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def render() -> str:
    """Return the table as Markdown."""
    lines = [COLUMNS, ("---", "---", "---:", "---"), *([row[name] for name in COLUMNS] for row in read())]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_page() -> None:
    """Write the table into the page, between its two marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{render()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write_page()
