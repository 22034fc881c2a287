"""Parts that sections of the report share: files as addresses, and a figure with its caption."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mdpu.seals import check
from mdpu.study.grid import Experiment
from mdpu.study.plan import Plan


def data_url(kind: str, path: Path) -> str:
    """Return a file as an address that holds the file itself; raise `UserError` if it is missing."""
    check(path)
    return embedded(kind, path.read_bytes())


def embedded(kind: str, content: bytes) -> str:
    """Return bytes of a media type, such as ``image/png``, as an address."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def figure_section(plan: Plan, experiment: Experiment, results: Path, caption: str) -> dict[str, Any]:
    """Return a figure for the template: name, title, caption, image, number of trials, and what was not run."""
    return {
        "name": experiment.name,
        "title": experiment.title,
        "caption": caption,
        "trials": len({run.seed for run in experiment.runs}),
        "not_run": list(plan.titles(experiment.not_run).values()),
        "image": data_url("image/svg+xml", results / "figures" / f"{experiment.name}.svg"),
    }


def rows_section(
    plan: Plan, experiment: Experiment, caption: str, header: Sequence[str], names: int, rows: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Return a table of strings for the template; the first `names` columns name the row."""
    return {
        "name": experiment.name,
        "title": experiment.title,
        "caption": caption,
        "header": list(header),
        "names": names,
        "rows": [list(row) for row in rows],
        "not_run": list(plan.titles(experiment.not_run).values()),
    }
