"""What a run has come to: verdicts, what differs from the last time, and where the report is."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.pipeline.evaluate.comparison import DIFFERS, NOT_RUN, VERDICTS
from mdpu.pipeline.files import read_csv, read_json, replacing
from mdpu.pipeline.plan import AXES, CELL, Plan, cell_name
from mdpu.pipeline.seals import read_seal, sha256

TABLES = ("summary", "comparison")  # what is kept, to compare the next time with
MOST = 20  # flips that `diff` lists
ROUNDED = 5.1e-4  # points by which a shipped accuracy may differ
# What two pages of the same runs may say differently: when, by which commit, and with which packages they were made.
VARIES = re.compile(r"<(\w+)[^>]* data-varies>.*?</\1>", re.DOTALL)


@dataclass(frozen=True)
class Difference:
    """How the numbers of one result differ from those of another.

    Attributes
    ----------
    flips : dict
        By old and new verdict, the names of the cells that changed from the one to the other.
    new, gone : int
        Cells that only the second, or only the first, has.
    moved : Series
        Absolute differences of the means that differ, in points, by the name of the cell.
    same : int
        Cells whose means are equal.
    """

    flips: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    new: int = 0
    gone: int = 0
    moved: pd.Series = field(default_factory=lambda: pd.Series(dtype=float))
    same: int = 0

    def __str__(self) -> str:
        parts = [f"{sum(map(len, self.flips.values()))} verdicts changed ({_flips(self.flips)})"] if self.flips else []
        if len(self.moved):
            parts.append(f"{len(self.moved)} numbers moved, by at most {self.moved.max():.2f} points")
        parts += [f"{number} numbers are {what}" for number, what in ((self.new, "new"), (self.gone, "gone")) if number]
        return ", ".join(parts) or "nothing changed"


def _flips(flips: dict[tuple[str, str], list[str]]) -> str:
    return ", ".join(f"{len(cells)} from {old} to {new}" for (old, new), cells in flips.items())


def compare_results(before: Path, after: Path) -> Difference:
    """Return how the numbers in one folder of results differ from those in another.

    Parameters
    ----------
    before, after : Path
        Folders with ``summary.csv`` and, if the paper has numbers of the same datasets, ``comparison.csv``.

    Raises
    ------
    UserError
        If a folder holds no numbers.
    """
    old, new = (_means(folder) for folder in (before, after))
    both = old.index.intersection(new.index)
    moved = (new[both] - old[both]).abs()
    differs = ~((old[both] == new[both]) | (old[both].isna() & new[both].isna()))
    return Difference(
        _changes(_verdicts(before), _verdicts(after)),
        len(new.index.difference(old.index)),
        len(old.index.difference(new.index)),
        moved[differs],
        int((~differs).sum()),
    )


def _means(folder: Path) -> pd.Series:
    summary = read_csv(folder / "summary.csv")
    names = [cell_name(key) for key in summary[list(CELL)].to_dict("records")]
    return pd.Series(summary["mean"].to_numpy(float), index=names)


def _verdicts(folder: Path) -> pd.Series:
    """Return the verdict of each cell that was run, by its name."""
    if not (folder / "comparison.csv").exists():
        return pd.Series(dtype=object)
    comparison = read_csv(folder / "comparison.csv")
    run = comparison[comparison["verdict"] != NOT_RUN]
    return pd.Series(run["verdict"].to_numpy(), index=run["cell"])


def _changes(old: pd.Series, new: pd.Series) -> dict[tuple[str, str], list[str]]:
    changes: dict[tuple[str, str], list[str]] = {}
    for cell in old.index.intersection(new.index):
        if old[cell] != new[cell]:
            changes.setdefault((old[cell], new[cell]), []).append(cell)
    return changes


def report_outcome(plan: Plan) -> tuple[list[str], bool]:
    """Return what to say at the end of a run, and whether expected numbers, if there are any, are confirmed.

    The numbers are kept, to say the next time what has changed.

    Raises
    ------
    UserError
        If a file of the results is broken.
    """
    layout = plan.layout
    page = layout.results / "report.html"
    if not is_current(page):
        return [f"{layout.results} has no report of its present state; ./run without a target makes it"], True
    lines, confirmed = [], True
    if plan.runs:
        lines += [*_verdict_line(layout.results), _since(layout.results, layout.reported)]
        if plan.config.get("expected"):
            said, confirmed = _verification(layout.results / "verification.json")
            lines += said
    return [*lines, f"report: {page.resolve()}"], confirmed


def is_current(page: Path) -> bool:
    """Return whether a page exists and shows the files from which it was made as they are now."""
    seal = read_seal(page)
    if seal is None or not page.exists() or not seal.matches(sha256(page)):
        return False
    inputs = {Path(name): checksum for name, checksum in seal.inputs.items()}
    return all(path.exists() and sha256(path) == checksum for path, checksum in inputs.items())


def _verdict_line(results: Path) -> Sequence[str]:
    verdicts = _verdicts(results)
    if verdicts.empty:
        return []
    counts = [f"{(verdicts == verdict).sum()} {verdict}" for verdict in VERDICTS if verdict not in (NOT_RUN, DIFFERS)]
    counts.append(f"{(verdicts == DIFFERS).sum()} different")
    return [f"{len(verdicts)} comparisons with the paper: {', '.join(counts)}"]


def _since(results: Path, kept: Path) -> str:
    """Return what has changed since the numbers that were kept the last time, and keep these."""
    files = [path for name in TABLES if (path := results / f"{name}.csv").exists()]
    try:
        changed = datetime.fromtimestamp((kept / files[0].name).stat().st_mtime, UTC)
        line = f"since the report of {changed:%Y-%m-%d %H:%M} UTC: {compare_results(kept, results)}"
    except (OSError, UserError):
        line = "this is the first report here"
    for path in files:
        with replacing(kept / path.name) as temporary:  # in one step and sealed, as `compare_results` relies on it
            shutil.copyfile(path, temporary)
    return line


def _verification(path: Path) -> tuple[list[str], bool]:
    """Return what to say of the expected numbers, and whether none of those that were run is outside."""
    facts = read_json(path)
    if not facts["cells"]:
        return [f"expected numbers: none of their {facts['not_run']} cells was run"], True
    within = f"{facts['within']} of {facts['cells']} cells within tolerance"
    within += f" ({facts['not_run']} more not run)" if facts["not_run"] else ""
    if facts["confirmed"]:
        largest = f"largest difference {facts['largest_difference']:.2f} points"
        return [f"expected numbers confirmed: {within}, {largest}"], True
    return [f"expected numbers NOT confirmed: {within}", *map(_outside, facts["outside"])], False


def _outside(cell: Mapping[str, Any]) -> str:
    mean = "no number" if cell["mean"] is None else f"{cell['mean']:.2f} %"
    return f"  {cell_name(cell)}: {mean} instead of {cell['mean_expected']:.2f} ± {cell['tolerance']:.2f} %"


def compare_shipped(results: Path, shipped: Path) -> tuple[str, bool]:
    """Compare rows and page with the shipped ones, and return a sentence and whether no row differs.

    Parameters
    ----------
    results : Path
        Folder with ``runs.csv`` and ``report.html``.
    shipped : Path
        Folder with the same files; its accuracies are rounded.

    Raises
    ------
    UserError
        If a file is missing or broken.
    """
    ours = read_csv(results / "runs.csv")
    both = ours.merge(read_csv(shipped / "runs.csv"), on=list(AXES), suffixes=("", "_shipped"))
    differ = int(((both["accuracy"] - both["accuracy_shipped"]).abs() > ROUNDED).sum())
    share = f"{len(both) - differ} of {len(both)} shipped rows of these runs are the same to the third decimal"
    page, shipped_page = (_without_what_varies(folder / "report.html") for folder in (results, shipped))
    alike = "the page is the shipped one, but for when it was made"
    another = "the page is another than the shipped one, which other code or another selection made"
    said = [share, *([f"{differ} differ"] if differ else []), alike if page == shipped_page else another]
    return "; ".join(said), differ == 0


def _without_what_varies(page: Path) -> str:
    try:
        return VARIES.sub("", page.read_text(encoding="utf-8"))
    except (OSError, UnicodeError):
        raise UserError(f"{page} could not be read; run the rule that makes it, or restore the shipped one") from None


def describe_difference(before: Path, after: Path) -> list[str]:
    """Return lines that say how the numbers of two results differ, cell by cell.

    Raises
    ------
    UserError
        If a folder holds no numbers.
    """
    difference = compare_results(before, after)
    lines = [f"{before} -> {after}: {difference}; {difference.same} numbers are equal"]
    for (old, new), cells in difference.flips.items():
        lines += _listed(f"{old} -> {new}", cells)
    moved = difference.moved.sort_values(ascending=False)
    return [*lines, *_listed("moved", [f"{cell} by {points:.2f} points" for cell, points in moved.items()])]


def _listed(title: str, names: Iterable[str]) -> list[str]:
    names = list(names)
    more = [f"  and {len(names) - MOST} more"] if len(names) > MOST else []
    return [f"{title}:", *(f"  {name}" for name in names[:MOST]), *more] if names else []
