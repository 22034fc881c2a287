"""What the report shows of the comparison and of the claims: one function per section."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.evaluate.comparison import CLOSE, DIFFERS, FEWEST_TRIALS, INCONCLUSIVE, NOT_RUN, REPRODUCED
from mdpu.pipeline.evaluate.published import NUMERALS, family, published_cells
from mdpu.pipeline.evaluate.summary import were_run
from mdpu.pipeline.files import read_csv, read_json
from mdpu.pipeline.plan import CELL, Plan, cell_name

TABLES = {table: f"{NUMERALS[table]}, {'pairs' if table < 4 else 'triples'}" for table in NUMERALS}
# Glyphs tell the verdicts apart without colour.
LOOKS = {
    REPRODUCED: ("=", "reproduced"),
    CLOSE: ("≈", "close"),
    INCONCLUSIVE: ("?", "inconclusive"),
    DIFFERS: ("≠", "differs"),
    NOT_RUN: ("·", "unrun"),
}


def verdict_section(plan: Plan, comparison: pd.DataFrame, facts: dict[str, Any]) -> dict[str, Any]:
    """Return counts of the verdicts, and the grid of all cells of the datasets that were run.

    `comparison` and `facts` are what `mdpu.pipeline.evaluate.comparison.write_comparison` writes.
    """
    run = were_run(comparison)
    methods = list(dict.fromkeys(comparison["method"]))
    were = set(run[["table", "method"]].itertuples(index=False, name=None))
    columns = {table: [method for method in methods if (table, method) in were] for table in TABLES}
    datasets = [name for name in plan.published_names if name in set(run["dataset"])]
    grid = [
        {
            "title": plan.dataset(dataset)["title"],
            "prior": prior,
            "first": index == 0,
            "cells": [[_look(by_cell[table, method]) for method in shown] for table, shown in columns.items() if shown],
        }
        for dataset in datasets
        for index, (prior, rows) in enumerate(comparison[comparison["dataset"] == dataset].groupby("prior"))
        for by_cell in [{(row["table"], row["method"]): row for row in rows.to_dict("records")}]
    ]
    return {
        "rule": facts["rule"],
        "compared": len(run),
        "comparisons": len(comparison),
        "cells": len(published_cells()),
        "totals": [_titled(plan, row) for row in facts["totals"] if any(row[one] for one in LOOKS if one != NOT_RUN)],
        "spreads": [
            {**row, "family": family(row["method"]), "method": load_method(row["method"]).title}
            for row in facts["spreads"]
        ],
        "columns": {TABLES[table]: shown for table, shown in columns.items() if shown},
        "titles": {method: load_method(method).title for method in methods},
        "grid": grid,
        "fewest_trials": FEWEST_TRIALS,
    }


def _look(cell: dict[Any, Any]) -> dict[str, str | None]:
    glyph, kind = LOOKS[cell["verdict"]]
    if cell["verdict"] == NOT_RUN:
        return {"glyph": glyph, "kind": kind, "words": "not run", "cell": None}
    difference = "" if pd.isna(cell["difference"]) else f" ({cell['difference']:+.2f} points; {cell['reason']})"
    return {"glyph": glyph, "kind": kind, "words": f"{cell['verdict']}{difference}", "cell": cell["cell"]}


def _titled(plan: Plan, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of totals with its value as a reader knows it."""
    by, value = row["by"], row["value"]
    if by == "method":
        value = load_method(value).title
    elif by == "dataset" and value in plan.published_names:
        value = plan.dataset(value)["title"]
    elif by == "table":
        value = NUMERALS[value]
    return {**row, "value": "" if by == "all" else value}


def comparison_rows(plan: Plan, comparison: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the comparisons that were run for the template: key, numbers, verdict, and what readers call each."""
    rows: list[dict[Any, Any]] = were_run(comparison).to_dict("records")
    return [
        {
            **row,
            "family": family(row["method"]),
            "method_title": load_method(row["method"]).title,
            "dataset_title": plan.dataset(row["dataset"])["title"],
            "table_title": NUMERALS[row["table"]],
            "look": LOOKS[row["verdict"]],
        }
        for row in rows
    ]


def claims_section(json: Path, cases: Path) -> list[dict[str, Any]]:
    """Return the claims, each with its pass rates in words and our failing cases.

    The files are what `mdpu.pipeline.evaluate.claims.write_claims` writes.
    """
    rows: list[dict[str, Any]] = read_json(json)["claims"]
    every_case = read_csv(cases)
    failing = every_case[(every_case["evidence"] == "ours") & ~every_case["holds"].astype(bool)]
    for row in rows:
        row["failing"] = [_case(case) for case in failing[failing["claim"] == row["claim"]].to_dict("records")]
        for source in ("ours", "paper"):
            rate = row[f"{source}_rate"]
            row[source] += "" if rate is None else f" ({100 * rate:.0f} %)"
        row["readings"] = {key.removesuffix("_status"): row[key] for key in row if key.endswith("_status")}
    return rows


def _case(case: dict[Any, Any]) -> dict[str, Any]:
    """Return a case: its key in words, the cell whose runs it is about if it is one cell, and its two sides."""
    there = {axis: case[axis] for axis in CELL if not pd.isna(case[axis])}
    there |= {axis: int(there[axis]) for axis in ("tuple_size", "n") if axis in there}
    cell = cell_name(there) if len(there) == len(CELL) else None
    return {
        "words": cell or ", ".join(f"{axis} {value}" for axis, value in there.items()),
        "cell": cell if " " not in there.get("variant", "") else None,  # trainings of readings have no line on the page
        "seed": None if pd.isna(case["seed"]) else int(case["seed"]),
        **{side: None if pd.isna(case[side]) else f"{case[side]:.4g}" for side in ("left", "right")},
    }
