"""What the report shows of the comparison and of the claims: one function per section."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.comparison import (
    CLOSE,
    DIFFERS,
    FEWEST_TRIALS,
    INCONCLUSIVE,
    NOT_RUN,
    REPRODUCED,
)
from mdpu.pipeline.evaluate.exported import DECIMALS
from mdpu.pipeline.evaluate.published import NUMERALS, family, in_one_reading, published_cells
from mdpu.pipeline.evaluate.rejudge import place_name
from mdpu.pipeline.evaluate.shipped import variant_of
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
    return {
        "rule": facts["rule"],
        "compared": len(run),
        "comparisons": len(comparison),
        "cells": len(published_cells()),
        "totals": [
            _titled(plan, row)
            for row in facts["totals"]
            if any(row[one] for one in LOOKS if one != NOT_RUN)
        ],
        "spreads": [
            {**row, "family": family(row["method"]), "method": load_method(row["method"]).title}
            for row in facts["spreads"]
        ],
        "fewest_trials": FEWEST_TRIALS,
        **verdict_grid(plan, comparison),
    }


def verdict_grid(plan: Plan, comparison: pd.DataFrame) -> dict[str, Any]:
    """Return the grid of all cells of the datasets that were run: what heads its columns, and its
    rows.
    """
    run = were_run(comparison)
    methods = list(dict.fromkeys(comparison["method"]))
    were = set(run[["table", "method"]].itertuples(index=False, name=None))
    columns = {table: [method for method in methods if (table, method) in were] for table in TABLES}
    datasets = [name for name in plan.published_names if name in set(run["dataset"])]
    grid = []
    for dataset in datasets:
        for index, (prior, rows) in enumerate(
            comparison[comparison["dataset"] == dataset].groupby("prior")
        ):
            by_cell = {(row["table"], row["method"]): row for row in rows.to_dict("records")}
            cells = [
                [_look(by_cell[table, method]) for method in shown]
                for table, shown in columns.items()
                if shown
            ]
            grid.append(
                {
                    "title": plan.dataset(dataset)["title"],
                    "prior": prior,
                    "first": index == 0,
                    "cells": cells,
                }
            )
    return {
        "columns": {TABLES[table]: shown for table, shown in columns.items() if shown},
        "titles": {method: load_method(method).title for method in methods},
        "grid": grid,
    }


def _look(cell: dict[Any, Any]) -> dict[str, str | None]:
    glyph, kind = LOOKS[cell["verdict"]]
    if cell["verdict"] == NOT_RUN:
        return {"glyph": glyph, "kind": kind, "words": "not run", "cell": None}
    difference = (
        ""
        if pd.isna(cell["difference"])
        else f" ({cell['difference']:+.2f} points; {cell['reason']})"
    )
    return {
        "glyph": glyph,
        "kind": kind,
        "words": f"{cell['verdict']}{difference}",
        "cell": cell["cell"],
    }


def _titled(plan: Plan, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of totals with its value as a reader knows it."""
    by = row["by"]
    value = row["value"]
    if by == "method":
        value = load_method(value).title
    elif by == "dataset" and value in plan.published_names:
        value = plan.dataset(value)["title"]
    elif by == "table":
        value = NUMERALS[value]
    return {**row, "value": "" if by == "all" else value}


def comparison_rows(plan: Plan, comparison: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the comparisons that were run for the template: key, numbers, verdict, and what
    readers call each.
    """
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
        row["failing"] = [
            _case(case) for case in failing[failing["claim"] == row["claim"]].to_dict("records")
        ]
        for source in ("ours", "paper"):
            rate = row[f"{source}_rate"]
            row[source] += "" if rate is None else f" ({100 * rate:.0f} %)"
        row["readings"] = {
            key.removesuffix("_status"): row[key] for key in row if key.endswith("_status")
        }
    return rows


def _case(case: dict[Any, Any]) -> dict[str, Any]:
    """Return a case: its key in words, the cell whose runs it is about if it is one cell, and its
    two sides.
    """
    there = {axis: case[axis] for axis in CELL if not pd.isna(case[axis])}
    there |= {axis: int(there[axis]) for axis in ("tuple_size", "n") if axis in there}
    cell = cell_name(there) if len(there) == len(CELL) else None
    return {
        "words": cell or ", ".join(f"{axis} {value}" for axis, value in there.items()),
        "cell": cell
        if " " not in there.get("variant", "")
        else None,  # trainings of readings have no line on the page
        "seed": None if pd.isna(case["seed"]) else int(case["seed"]),
        **{
            side: None if pd.isna(case[side]) else f"{case[side]:.4g}" for side in ("left", "right")
        },
    }


# Values of choices in readers' words; others go by their own names.
VALUES = {
    "last-ten": "last ten epochs",
    "all": "all 100 epochs",
    "last": "last epoch",
    "best": "best epoch, by test labels",
    "with": "with replacement",
    "without": "without replacement",
    "whole": "whole risk",
    "class": "each class",
    "part": "each part",
    "a-i": "A to I",
    "all-26": "all 26 letters",
}
# Those whose words would not tell without their choice.
WORDS = {
    ("overlap", "disjoint"): "tuples and unlabeled images apart",
    ("unlabeled", "half"): "half as many unlabeled images",
    ("unlabeled", "2n"): "twice as many unlabeled images",
    ("unlabeled", "3n"): "three times as many unlabeled images",
    ("counts", "images"): "n counts images",
    ("layers", "one-hidden"): "one hidden layer",
    ("layers", "three-hidden"): "three hidden layers",
    ("batch", "images"): "minibatches of 3,000 images",
    ("optimizer", "adamw"): "AdamW",
}
TITLES = {"rate": "learning rate", "decay": "weight decay"}  # of choices whose values are numbers
VALUES |= {
    loss: f"{loss.replace('-', ' ')} loss"
    for loss in ("logistic", "hinge", "squared", "usual-ramp")
}


def reading_rows(facts: Mapping[str, Any], readings: Readings) -> list[dict[str, Any]]:
    """Return the counts of verdicts under some readings for the template: each with a title, and
    what to choose.

    `facts` are what `mdpu.pipeline.evaluate.rejudge.write_readings` writes. The most probable and
    the literal reading come last.
    """
    rows = []
    for row in facts["counts"]:
        title = VALUES[row["reading"][row["choice"]]].capitalize()
        rows.append({**row, "title": title, "chosen": _chosen(row["reading"], readings)})
    for choice, name in (("best", "Most probable"), ("literal", "Literal")):
        if found := facts.get(choice):
            title = f"{name}: {reading_words(found['reading'], readings)}"
            rows.append(
                {
                    **found,
                    "choice": choice,
                    "title": title,
                    "chosen": _chosen(found["reading"], readings),
                }
            )
    return rows


def reading_words(reading: Mapping[str, str], readings: Readings) -> str:
    """Return where a reading departs from the protocol, in readers' words."""
    words = [value_words(choice, value) for choice, value in readings.departures(reading).items()]
    return " and ".join(words) or "the protocol"


def value_words(choice: str, value: str) -> str:
    """Return a value of a choice in readers' words."""
    if (choice, value) in WORDS:
        return WORDS[choice, value]
    return VALUES.get(value, f"{TITLES.get(choice, choice)} {value}")


def _chosen(reading: Mapping[str, str], readings: Readings) -> dict[str, str]:
    """Return what the page's controls have to say for a reading: the choices that train nothing
    anew, and the rest.
    """
    return {
        **{choice: reading[choice] for choice in readings.free},
        "training": readings.training(reading),
    }


def reading_data(
    readings: Readings,
    comparisons: Sequence[pd.DataFrame],
    statistics: pd.DataFrame | None,
    runs: Mapping[str, Mapping[str, list[Any]]],
    rule: Mapping[str, float],
) -> dict[str, Any]:
    """Return what the page's script judges by, ready for JSON.

    ``choices`` are the values of each choice that the runs tell apart, with their titles;
    ``changes`` what a scope, a loss and the letters put in the place of methods and datasets;
    ``numbers`` the comparisons that were run, of which those of the first table count in the
    headline; ``statistics`` mean, deviation, trials and diverged ones of each cell by training, in
    the order of the epochs. The protocol's are those of the comparisons. ``runs`` are those of
    `mdpu.pipeline.evaluate.rejudge.shown_runs`, of the rows that were compared; ``variants`` name
    their trainings in the names of these runs.
    """
    compared = [were_run(comparison) for comparison in comparisons]
    paper = compared[0]
    counted = paper.assign(counted=paper.index.isin(in_one_reading(paper).index))
    every_row = pd.concat([counted, *compared[1:]])
    protocol = readings.name(readings.protocol)
    epochs = readings.values("epochs")
    by_training: dict[str, dict[str, list[list[float | None] | None]]] = {protocol: {}}
    for row in every_row.to_dict("records"):
        by_training[protocol][place_name(row)] = [_facts(row), *[None] * (len(epochs) - 1)]
    rows = {place.rpartition("/")[0] for place in by_training[protocol]}
    for row in [] if statistics is None else statistics.to_dict("records"):
        if place_name(row).rpartition("/")[0] not in rows:
            continue
        column = epochs.index(row["epochs"])
        cells = by_training.setdefault(row["variant"], {})
        values = cells.setdefault(place_name(row), [None] * len(epochs))
        values[column] = values[column] or _facts(row)
    methods = {name.rpartition("/")[2] for cells in by_training.values() for name in cells}
    there = {"epochs": epochs if statistics is not None else epochs[:1], "training": [*by_training]}
    parts = {
        "scope": ("methods", methods),
        "loss": ("methods", methods),
        "letters": ("datasets", {*every_row["dataset"]}),
    }
    for choice, (part, found) in parts.items():
        changed = {
            value: set(readings.changes({choice: value})[part].values())
            for value in readings.values(choice)
        }
        there[choice] = [value for value, ours in changed.items() if not ours or ours & found]
    titles = {
        training: reading_words(readings.trainings[training], readings)
        for training in there["training"]
    }
    titles |= {
        value: VALUES.get(value, value)
        for choice in there
        if choice != "training"
        for value in there[choice]
    }
    return {
        "choices": {
            choice: [[value, titles[value]] for value in values] for choice, values in there.items()
        },
        "changes": {
            choice: {value: readings.changes({choice: value})[part] for value in there[choice]}
            for choice, (part, _) in parts.items()
        },
        "chosen": _chosen(readings.protocol, readings),
        "rule": dict(rule),
        "numbers": [
            [
                row["cell"],
                place_name(row),
                row["published_dataset"],
                row["published_mean"],
                row["published_std"],
                bool(row["counted"] == 1),
            ]
            for row in every_row.to_dict("records")
        ],
        "statistics": by_training,
        "variants": {training: variant_of(training) for training in there["training"]},
        "runs": {training: _of_rows(cells, rows) for training, cells in runs.items()},
    }


def _of_rows(cells: Mapping[str, list[Any]], rows: Collection[str]) -> dict[str, list[Any]]:
    """Return the runs of the cells of some rows."""
    return {cell: runs for cell, runs in cells.items() if cell.rpartition("/")[0] in rows}


def _facts(row: Mapping[Any, Any]) -> list[float | None]:
    """Return mean, deviation, trials and diverged trials of a row, missing ones as None."""
    values = (row[name] for name in ("mean", "std", "trials", "diverged"))
    return [None if pd.isna(value) else round(float(value), DECIMALS) for value in values]
