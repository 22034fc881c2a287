"""The folders of results that are there, and the configuration of each."""

from __future__ import annotations

from pathlib import Path

from mdpu.errors import UserError
from mdpu.study.config import load_config
from mdpu.study.plan import Plan

RESULTS = Path("results")


def find_results(name: str, results: Path = RESULTS) -> Path:
    """Return a folder of results by its path or its name; raise `UserError` if there is none."""
    for folder in (Path(name), results / name):
        if (folder / "summary.csv").exists():
            return folder
    there = ", ".join(sorted(file.parent.name for file in results.glob("*/summary.csv"))) or "none"
    raise UserError(f"{name} is no folder of results with numbers; in {results} there are: {there}")


def configurations(results: Path = RESULTS) -> list[Path]:
    """Return the configuration that each folder of results is of, the newest first.

    A folder keeps the configurations that it has had, so that the commands of older pages work. Its own is the newest
    that is no younger than its numbers: a dry run may have written a younger one.
    """
    found = []
    for folder in results.glob("*/config"):
        files = sorted(folder.glob("[!.]*.yaml"), key=_time)
        metrics = folder.parent / "metrics.parquet"
        used = [file for file in files if metrics.exists() and _time(file) <= _time(metrics)]
        found += (used or files)[-1:]
    return sorted(found, key=_time, reverse=True)


def _time(file: Path) -> float:
    return file.stat().st_mtime


def configuration_of(name: str, results: Path = RESULTS) -> Path:
    """Return the configuration of the newest results that have a run or a cell.

    Raises
    ------
    UserError
        If none has it.
    """
    for file in configurations(results):
        plan = Plan(load_config([file]))
        if plan.layout.metrics.exists() and any(name in (run.name, run.cell) for run in plan.runs):
            return file
    raise UserError(f"no folder of {results} has a run or cell {name}; python -m mdpu plan --runs lists names")
