"""The folders of results that are there, and the configuration of each."""

from __future__ import annotations

from pathlib import Path

from mdpu.errors import UserError
from mdpu.pipeline.config import load_config
from mdpu.pipeline.files import read_csv
from mdpu.pipeline.plan import Plan

RESULTS = Path("results")


def find_results(name: str, results: Path = RESULTS) -> Path:
    """Return a folder of results by its path or its name; raise `UserError` if there is none."""
    for folder in (Path(name), results / name):
        if (folder / "summary.csv").exists():
            return folder
    there = ", ".join(sorted(file.parent.name for file in results.glob("*/summary.csv"))) or "none"
    raise UserError(f"{name} is no folder of results with numbers; in {results} there are: {there}")


def configurations(results: Path = RESULTS) -> list[Path]:
    """Return the configurations of the folders of results, the newest first.

    A folder keeps the configurations that it has had, so that the commands of older pages work.
    """
    return sorted(results.glob("*/config/[!.]*.yaml"), key=_time, reverse=True)


def _time(file: Path) -> float:
    return file.stat().st_mtime


def configuration_of(name: str, results: Path = RESULTS) -> Path:
    """Return the newest configuration whose results have a run or a cell, and all other runs that it plans.

    A dry run writes a configuration too; the numbers there may be of an older one.

    Raises
    ------
    UserError
        If none has it.
    """
    for file in configurations(results):
        plan = Plan(load_config([file]))
        if any(name in (run.name, run.cell) for run in plan.runs) and _has_numbers(plan, file.parent.parent):
            return file
    raise UserError(f"no folder of {results} has a run or cell {name}; python -m mdpu plan --runs lists names")


def _has_numbers(plan: Plan, folder: Path) -> bool:
    """Return whether a folder of results has the numbers of every run of a plan."""
    runs = folder / "runs.csv"
    return runs.exists() and {run.name for run in plan.runs} <= set(read_csv(runs)["run"])
