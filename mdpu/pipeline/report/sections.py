"""Parts that sections of the report share: files as addresses, downloads, and a figure with its
caption.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.evaluate.collect import cells_of, number_of_trials
from mdpu.pipeline.evaluate.published import missing_datasets
from mdpu.pipeline.files import read_csv
from mdpu.pipeline.plan import Experiment, Plan, Run
from mdpu.pipeline.report.html import contents, figure

FORMATS = {".csv": "CSV", ".tex": "LaTeX"}
BESIDE = "LaTeX, with the paper’s"  # a table with the paper's numbers beside ours
WITH_PAPER = "-paper.tex"  # how the name of such a table ends


def data_url(kind: str, path: Path) -> str:
    """Return a file of a media type, such as ``image/png``, as an address that holds the file
    itself.
    """
    return f"data:{kind};base64,{base64.b64encode(contents(path)).decode()}"


def downloads(files: Iterable[Path]) -> list[dict[str, str]]:
    """Return tables among files of the results for the template: name, what a reader calls the
    format, and text.

    The page holds them itself, so that a report that is passed on keeps its downloads. It shows
    figures, and their files lie beside it.
    """
    return [
        {
            "file": file.name,
            "format": BESIDE if file.name.endswith(WITH_PAPER) else FORMATS[file.suffix],
            "text": contents(file).decode(),
        }
        for file in files
        if file.suffix in FORMATS
    ]


def seen(plan: Plan, experiment: Experiment, described: pd.DataFrame | None = None) -> str:
    """Return what a figure of runs shows, for those who do not see it: range, and each method's
    mean accuracy.
    """
    if not experiment.runs:
        return experiment.title
    if described is None:
        described = read_csv(plan.layout.runs)
    cells = cells_of(experiment.runs, described).dropna(subset="mean")
    if cells.empty:
        return f"{experiment.title}. Every trial diverged."

    means = cells.groupby("method", sort=False)["mean"].mean().sort_values(ascending=False)
    each = [f"{load_method(str(method)).title} {mean:.1f} %" for method, mean in means.items()]
    datasets = ", ".join(plan.titles(experiment.datasets).values())
    return (
        f"{experiment.title}. {len(cells)} cells of {datasets}, with mean accuracies from "
        f"{cells['mean'].min():.1f} to {cells['mean'].max():.1f} %. Mean over the cells, by "
        f"method: {', '.join(each)}."
    )


def figure_section(
    plan: Plan,
    experiment: Experiment,
    caption: str,
    svg: Path,
    described: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """Return a figure for the template: name, title, caption, image, what it shows in words, and
    its trials.

    `described` are the plan's own runs unless given.
    """
    return {
        "template": "sections/figure.html.j2",
        "name": experiment.name,
        "title": experiment.title,
        "caption": caption,
        "trials": trials_of(experiment.runs),
        "not_run": list(missing_datasets(plan, experiment).values()),
        "seen": seen(plan, experiment, described),
        **figure(svg),
    }


def trials_of(runs: Sequence[Run]) -> str:
    """Return in words how many trials the cells of some runs have; nothing if there are no runs."""
    counts = Counter(run.cell for run in runs).values()
    return number_of_trials(counts) if counts else ""
