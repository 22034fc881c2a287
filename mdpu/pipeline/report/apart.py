"""Shipped runs of another configuration, on other images or with another network, which the page
shows apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.pipeline.config import known, load_config, merge
from mdpu.pipeline.evaluate.collect import collect, find_runs, summarize
from mdpu.pipeline.evaluate.comparison import compare
from mdpu.pipeline.evaluate.provenance import describe_runs
from mdpu.pipeline.files import REPOSITORY, resource
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.forecasts import forecast_section
from mdpu.pipeline.report.sections import figure_section
from mdpu.pipeline.show import load_kind
from mdpu.pipeline.show.table import table_cells, table_section


@dataclass(frozen=True)
class Apart:
    """Another configuration's plan and its results, as the pages of both need them."""

    plan: Plan
    metrics: pd.DataFrame
    summary: pd.DataFrame
    runs: pd.DataFrame
    comparison: pd.DataFrame
    figures: Path

    def sections(self) -> list[dict[str, Any]]:
        """Return the sections of its tables, of those of its figures that are shipped, and of
        forecasts.
        """
        name = self.plan.config["name"]
        shown = []
        for experiment in self.plan.experiments.values():
            svg = self.figures / f"{experiment.name}.svg"
            if experiment.kind == "table":
                cells = table_cells(self.plan, experiment, self.runs)
                section = table_section(self.plan, experiment, cells)
                if any("forecast" in self.plan.dataset(run.dataset) for run in experiment.runs):
                    section["elsewhere"] = f"{name}-forecasts"
            elif svg.exists():
                caption = load_kind(experiment.kind).caption(experiment)
                section = figure_section(self.plan, experiment, caption, svg, self.runs)
            else:
                continue
            place = {"name": f"{name}-{experiment.name}", "downloads": []}
            shown.append(
                {**section, **place, "title": f"{experiment.title} ({name.replace('-', ' ')})"}
            )
        forecasts = forecast_section(self.plan, self.metrics, self.runs)
        return shown if forecasts is None else [*shown, forecasts]


def apart_plan(plan: Plan) -> Plan | None:
    """Return the plan of the configuration that a plan's page shows apart, None if there is none.

    It is reported and judged like the plan itself.
    """
    name = plan.config.get("apart")
    if not name:
        return None
    known(name, [file.stem for file in resource("config").glob("*.yaml")], "config key apart")
    shared = {key: plan.config[key] for key in ("comparison", "protocol", "results_dir", "shipped")}
    return Plan(merge(load_config([resource(f"config/{name}.yaml")]), shared))


def apart_files(plan: Plan) -> list[Path]:
    """Return the packed files that hold the runs of `apart_plan`."""
    other = apart_plan(plan)
    return (
        sorted({file for cell in other.cells for file in other.shipped_files(cell)})
        if other
        else []
    )


def read_apart(plan: Plan) -> Apart | None:
    """Return the results of `apart_plan` from its shipped runs."""
    other = apart_plan(plan)
    if other is None:
        return None
    stored = find_runs(other, apart_files(plan))
    metrics = collect(stored)
    runs = describe_runs(other, metrics, stored)
    summary = summarize(runs)
    comparison = compare(summary, other.published_names, other.config["comparison"], other.readings)
    figures = REPOSITORY / Path(other.config["shipped"]).parent / other.config["name"]
    return Apart(other, metrics, summary, runs, comparison, figures)
