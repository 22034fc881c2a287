"""Shipped runs of another configuration, on other images or with another network, which the page
shows apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.pipeline.config import known, load_config, merge
from mdpu.pipeline.evaluate.collect import collect, find_runs, summarize
from mdpu.pipeline.evaluate.comparison import compare
from mdpu.pipeline.evaluate.provenance import describe_runs
from mdpu.pipeline.files import REPOSITORY, resource
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.forecasts import forecast_section
from mdpu.pipeline.report.sections import figure_section
from mdpu.pipeline.show import load_kind
from mdpu.pipeline.show.table import table_cells, table_section


@dataclass(frozen=True)
class Apart:
    """Another configuration's plan and its results, as the pages of both need them."""

    plan: Plan
    metrics: pd.DataFrame
    runs: pd.DataFrame
    comparison: pd.DataFrame
    figures: Path

    def sections(self) -> list[dict[str, Any]]:
        """Return the sections of its tables, of those of its figures that are shipped, and of
        forecasts.
        """
        name = self.plan.config["name"]
        words = name.replace("-", " ")
        sections = []
        for experiment in self.plan.experiments.values():
            section = self._section(experiment)
            if section is not None:
                section["name"] = f"{name}-{experiment.name}"
                section["title"] = f"{experiment.title} ({words})"
                section["downloads"] = []
                sections.append(section)
        forecasts = forecast_section(self.plan, self.metrics, self.runs)
        if forecasts is not None:
            sections.append(forecasts)
        return sections

    def _section(self, experiment: Experiment) -> dict[str, Any] | None:
        """Return the section of a table, or of a figure that is shipped, None for another one."""
        if experiment.kind == "table":
            cells = table_cells(self.plan, experiment, self.runs)
            section = table_section(self.plan, experiment, cells)
            if any("forecast" in self.plan.dataset(run.dataset) for run in experiment.runs):
                section["elsewhere"] = f"{self.plan.config['name']}-forecasts"
            return section
        svg = self.figures / f"{experiment.name}.svg"
        if not svg.exists():
            return None
        caption = load_kind(experiment.kind).caption(experiment)
        return figure_section(self.plan, experiment, caption, svg, self.runs)


def apart_plan(plan: Plan) -> Plan | None:
    """Return the plan of the configuration that a plan's page shows apart, None if there is none.

    It is reported and judged like the plan itself. Raises `UserError` if its runs are not shipped.
    """
    name = plan.config.get("apart")
    if not name:
        return None
    known(name, [file.stem for file in resource("config").glob("*.yaml")], "config key apart")
    shared = {
        "comparison": plan.config["comparison"],
        "protocol": {"reporting": plan.protocol.reporting},
        "results_dir": plan.config["results_dir"],
    }
    plan_apart = Plan(merge(load_config([resource(f"config/{name}.yaml")]), shared))
    not_shipped = [cell for cell in plan_apart.cells if plan_apart.to_train(cell)]
    if not_shipped:
        raise UserError(
            f"config key apart: {len(not_shipped)} of {len(plan_apart.cells)} cells of "
            f"config/{name}.yaml have runs that are not shipped, the first of them "
            f"{not_shipped[0]}; name a configuration whose runs are"
        )
    return plan_apart


def packed_files(plan_apart: Plan | None) -> list[Path]:
    """Return the packed files that hold the runs of `apart_plan`."""
    if plan_apart is None:
        return []
    return sorted(set(chain.from_iterable(map(plan_apart.shipped_files, plan_apart.cells))))


def read_apart(plan: Plan) -> Apart | None:
    """Return the results of `apart_plan` from its shipped runs."""
    plan_apart = apart_plan(plan)
    if plan_apart is None:
        return None
    config = plan_apart.config
    stored_runs = find_runs(plan_apart, packed_files(plan_apart))
    metrics = collect(stored_runs)
    runs = describe_runs(plan_apart, metrics, stored_runs)
    comparison = compare(
        summarize(runs), plan_apart.published_names, config["comparison"], plan_apart.readings
    )
    figures = REPOSITORY / Path(config["shipped"]).parent / config["name"]
    return Apart(plan_apart, metrics, runs, comparison, figures)
