"""The section of the page that shows forecasts beside what came out, cell by cell."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.forecasts import FILE, as_forecast, forecast_cells, score_forecasts
from mdpu.pipeline.files import read_csv
from mdpu.pipeline.plan import CELL, Plan, cell_name
from mdpu.pipeline.report.drawing import size_name

KEYS = ["tuple_size", "n", "prior", "method"]  # of a forecast's cell, beside its dataset


def forecast_section(
    plan: Plan, metrics: pd.DataFrame, runs: pd.DataFrame
) -> dict[str, Any] | None:
    """Return the forecasts that a plan's runs score (`as_forecast`), None if there are none.

    `metrics` and `runs` are those of the plan. A row is a cell, with a forecast and our mean for
    each reading.
    """
    measured = as_forecast(plan, metrics)
    if measured.empty or not FILE.exists():
        return None

    forecasts = read_csv(FILE)
    cells = forecast_cells(plan, measured, forecasts)
    readings = Readings(plan.config)
    scores = score_forecasts(plan, measured, forecasts)
    for score in scores:
        score["words"] = _epochs(readings, score["reading"])
    titles = plan.titles(_forecast_runs(plan, runs)["dataset"]).values()
    return {
        "template": "sections/forecast-cells.html.j2",
        "name": f"{plan.config['name']}-forecasts",
        "title": f"Forecasts and what came out: {', '.join(titles)}",
        "downloads": [],
        "day": forecasts["date"].iloc[0],
        "trials": int(forecasts["trials"].iloc[0]),
        "scores": scores,
        "rows": _rows(cells, _names(plan, runs)),
    }


def _epochs(readings: Readings, reading: str) -> str:
    """Return which epochs a named reading averages, in words."""
    average = readings.reporting(readings.named[reading])["average_last"]
    return "all epochs" if average == "all" else f"the last {average} epochs"


def _rows(cells: pd.DataFrame, names: dict[tuple[Any, ...], str]) -> list[dict[str, Any]]:
    """Return a row for each cell, with what each reading says of it."""
    ordered = cells.sort_values(["tuple_size", "n", "prior"], kind="stable")
    rows = []
    for _, of_cell in ordered.groupby(KEYS, sort=False):
        readings = of_cell.to_dict("records")
        first = readings[0]
        words = f"{size_name(first['tuple_size'])}, n = {first['n']:,}, prior {first['prior']}"
        rows.append(
            {
                "cell": names[tuple(first[key] for key in KEYS)],
                "title": f"{words}: {load_method(first['method']).title}",
                "published_mean": first["published_mean"],
                "published_std": first["published_std"],
                "told": readings,
            }
        )
    return rows


def _forecast_runs(plan: Plan, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of the datasets that name a forecast."""
    return runs[["forecast" in plan.dataset(name) for name in runs["dataset"]]]


def _names(plan: Plan, runs: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    """Return the names of the cells that score a forecast, by the keys of the forecast."""
    cells = _forecast_runs(plan, runs)[list(CELL)].to_dict("records")
    return {tuple(cell[key] for key in KEYS): cell_name(cell) for cell in cells}
