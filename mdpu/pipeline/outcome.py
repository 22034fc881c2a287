"""What results hold: verdicts, what differs from others or from the last time, and where the report is."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from mdpu.errors import UserError
from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.comparison import DIFFERS, NOT_RUN, VERDICTS
from mdpu.pipeline.files import is_intact, read_csv, read_json, read_seal, replacing, seal_path, sha256
from mdpu.pipeline.plan import AXES, CELL, Plan, cell_name

RESULTS = Path("results")
TABLES = ("summary.csv", "comparison.csv")  # what is kept, to compare the next time with
MOST = 20  # names that `diff` lists
ROUNDED = 5.1e-4  # points by which a shipped accuracy may differ
# What two pages of the same runs may say differently: when, by which commit, and with which packages they were made,
# and the digest in the name of their configuration's file.
VARIES = re.compile(r"<(\w+)[^>]* data-varies>.*?</\1>|(?<=config/)[0-9a-f]+(?=\.yaml)", re.DOTALL)


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "file"), count(4321, "run")
    ('1 file', '4,321 runs')
    """
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


@dataclass(frozen=True)
class Difference:
    """How the numbers of one result differ from those of another."""

    flips: dict[tuple[str, str], list[str]]  # cells by old and new verdict
    new: int  # cells that only the second has
    gone: int  # and only the first
    moved: pd.Series  # absolute differences of the means that differ, in points, by cell
    same: int  # cells whose means are equal

    def __str__(self) -> str:
        flips = ", ".join(f"{len(cells)} from {old} to {new}" for (old, new), cells in self.flips.items())
        parts = [f"{count(sum(map(len, self.flips.values())), 'verdict')} changed ({flips})"] if flips else []
        if len(self.moved):
            parts.append(f"{count(len(self.moved), 'number')} moved, by at most {self.moved.max():.2f} points")
        parts += [
            f"{count(cells, 'number')} {what}" for cells, what in ((self.new, "new"), (self.gone, "gone")) if cells
        ]
        return ", ".join(parts) or "nothing changed"


def compare_results(before: Path, after: Path) -> Difference:
    """Return how ``summary.csv`` and ``comparison.csv`` of two folders differ; the second file may be missing."""
    old, new = _means(before), _means(after)
    both = old.index.intersection(new.index)
    differs = ~((old[both] == new[both]) | (old[both].isna() & new[both].isna()))
    flips: dict[tuple[str, str], list[str]] = {}
    was, now = _verdicts(before), _verdicts(after)
    for cell in was.index.intersection(now.index):
        if was[cell] != now[cell]:
            flips.setdefault((was[cell], now[cell]), []).append(cell)
    moved = (new[both] - old[both]).abs()[differs]
    return Difference(flips, len(new) - len(both), len(old) - len(both), moved, int((~differs).sum()))


def _means(folder: Path) -> pd.Series:
    summary = read_csv(folder / "summary.csv")
    names = [cell_name(key) for key in summary[summary.columns.intersection([*CELL])].to_dict("records")]  # old: no law
    return pd.Series(summary["mean"].to_numpy(float), index=names)


def _verdicts(folder: Path) -> pd.Series:
    """Return the verdict of each cell that was run, by its name."""
    if not (folder / "comparison.csv").exists():
        return pd.Series(dtype=object)
    comparison = read_csv(folder / "comparison.csv")
    run = comparison[comparison["verdict"] != NOT_RUN]
    return pd.Series(run["verdict"].to_numpy(), index=run["cell"])


def describe_difference(before: Path, after: Path) -> list[str]:
    """Return lines that say how the numbers of two results differ, cell by cell."""
    difference = compare_results(before, after)
    lines = [f"{before} -> {after}: {difference}; {count(difference.same, 'number')} equal"]
    for (old, new), cells in difference.flips.items():
        lines += _listed(f"{old} -> {new}", cells)
    moved = difference.moved.sort_values(ascending=False)
    return [*lines, *_listed("moved", [f"{cell} by {points:.2f} points" for cell, points in moved.items()])]


def _listed(title: str, names: Iterable[str]) -> list[str]:
    names = list(names)
    more = [f"  and {len(names) - MOST} more"] if len(names) > MOST else []
    return [f"{title}:", *(f"  {name}" for name in names[:MOST]), *more] if names else []


def report_outcome(plan: Plan) -> tuple[list[str], bool]:
    """Return what to say at the end of a run, and whether expected numbers, if there are any, are confirmed.

    The numbers are kept, to say the next time what has changed.
    """
    results = plan.layout.results
    page = results / "report.html"
    if not is_current(page):
        return [f"{results} has no report of its present state; ./run without a target makes it"], True
    lines, confirmed = [], True
    if plan.runs:
        verdicts = _verdicts(results)
        if len(verdicts):
            counts = [
                f"{(verdicts == verdict).sum()} {verdict}" for verdict in VERDICTS if verdict not in (NOT_RUN, DIFFERS)
            ]
            counts.append(f"{(verdicts == DIFFERS).sum()} different")
            lines.append(f"{count(len(verdicts), 'comparison')} with the paper: {', '.join(counts)}")
        lines.append(_since(results, plan.layout.reported))
        if plan.config.get("expected"):
            expected, confirmed = _verification(results / "verification.json")
            lines += expected
    return [*lines, f"report: {page.resolve()}"], confirmed


def is_current(page: Path) -> bool:
    """Return whether a page exists and shows the results from which it was made as they are now.

    A result has a seal. What has none is a file of the clone, such as the declared versions of code.
    """
    seal = read_seal(page)
    if seal is None or not is_intact(page):
        return False
    results = {path: then for name, then in seal.inputs.items() if seal_path(path := Path(name)).exists()}
    return all(path.exists() and sha256(path) == then for path, then in results.items())


def _since(results: Path, kept: Path) -> str:
    """Return what has changed since the numbers that were kept the last time, and keep these."""
    try:
        changed = datetime.fromtimestamp((kept / TABLES[0]).stat().st_mtime, UTC)
        line = f"since the report of {changed:%Y-%m-%d %H:%M} UTC: {compare_results(kept, results)}"
    except (OSError, UserError):
        line = "this is the first report here"
    for name in TABLES:
        if (results / name).exists():
            with replacing(kept / name) as temporary:  # in one step and sealed, as `compare_results` relies on it
                shutil.copyfile(results / name, temporary)
    return line


def _verification(path: Path) -> tuple[list[str], bool]:
    """Return what to say of the expected numbers, and whether none of those that were run is outside."""
    facts = read_json(path)
    if not facts["cells"]:
        return [f"expected numbers: none of their {count(facts['not_run'], 'cell')} was run"], True
    within = f"{facts['within']} of {count(facts['cells'], 'cell')} within tolerance"
    within += f" ({facts['not_run']} more not run)" if facts["not_run"] else ""
    if facts["confirmed"]:
        largest = f"largest difference {facts['largest_difference']:.2f} points"
        return [f"expected numbers confirmed: {within}, {largest}"], True
    lines = [f"expected numbers NOT confirmed: {within}"]
    for cell in facts["outside"]:
        mean = "no number" if cell["mean"] is None else f"{cell['mean']:.2f} %"
        lines.append(f"  {cell_name(cell)}: {mean} instead of {cell['mean_expected']:.2f} ± {cell['tolerance']:.2f} %")
    return lines, False


def compare_shipped(results: Path, shipped: Path) -> tuple[str, bool]:
    """Compare ``runs.csv`` and ``report.html`` of two folders; return a sentence, and whether no row differs."""
    ours, theirs = read_csv(results / "runs.csv"), read_csv(shipped / "runs.csv")
    both = ours.merge(theirs, on=[axis for axis in AXES if axis in theirs], suffixes=("", "_shipped"))
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


def find_results(name: str) -> Path:
    """Return a folder of results by its path or its name; raise `UserError` if there is none."""
    for folder in (Path(name), RESULTS / name):
        if (folder / "summary.csv").exists():
            return folder
    there = ", ".join(sorted(file.parent.name for file in RESULTS.glob("*/summary.csv"))) or "none"
    raise UserError(f"{name} is no folder of results with numbers; in {RESULTS} there are: {there}")


def configurations() -> list[Path]:
    """Return the configurations of all folders of results, the newest first; older ones stay, for older pages."""
    return sorted(RESULTS.glob("*/config/[!.]*.yaml"), key=lambda file: file.stat().st_mtime, reverse=True)


def configuration_of(name: str) -> Path:
    """Return the newest configuration whose results have a run or a cell, and all other runs that it plans.

    A dry run writes a configuration too; the numbers there may be of an older one.
    """
    for file in configurations():
        plan, numbers = Plan(load_config([file])), file.parent.parent / "runs.csv"
        names = {run.name for run in plan.runs}
        has = name in names or any(run.cell == name for run in plan.runs)
        if has and numbers.exists() and names <= set(read_csv(numbers)["run"]):
            return file
    raise UserError(f"no folder of {RESULTS} has a run or cell {name}; python -m mdpu plan --runs lists names")
