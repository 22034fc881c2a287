"""The table of faults that were tried: each harness writes its row, and docs/explanation/faults.md shows them all.

python benchmarks/faults/outcomes.py      # writes the table of docs/explanation/faults.md anew from outcomes.csv
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILE = HERE / "outcomes.csv"
PAGE = HERE.parent.parent / "docs" / "explanation" / "faults.md"
BEGIN, END = "<!-- outcomes: written by the harnesses -->\n", "<!-- end of outcomes -->\n"
COLUMNS = ("fault", "where", "rounds", "outcome")


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
