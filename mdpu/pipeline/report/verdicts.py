"""What the report shows of the comparison and of the claims: one function per section."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.collect import number_of_trials
from mdpu.pipeline.evaluate.comparison import (
    CLOSE,
    DIFFERS,
    FEWEST_TRIALS,
    INCONCLUSIVE,
    JUDGED,
    NOT_RUN,
    REPRODUCED,
)
from mdpu.pipeline.evaluate.exported import DECIMALS
from mdpu.pipeline.evaluate.published import NUMERALS, family, published_cells
from mdpu.pipeline.evaluate.rejudge import place_name
from mdpu.pipeline.evaluate.shipped import variant_of
from mdpu.pipeline.evaluate.summary import counted, in_points, in_words, were_run
from mdpu.pipeline.files import read_csv, read_json
from mdpu.pipeline.plan import CELL, Plan, cell_name

TABLES = {2: "II, pairs", 3: "III, pairs", 4: "IV, triples", 5: "V, triples"}
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
    totals = []
    for row in facts["totals"]:
        if any(row[verdict] for verdict in JUDGED):
            totals.append(_titled(plan, row))
    spreads = []
    for row in facts["spreads"]:
        method = row["method"]
        spreads.append({**row, "family": family(method), "method": load_method(method).title})
    return {
        "rule": facts["rule"],
        "compared": len(were_run(comparison)),
        "comparisons": len(comparison),
        "cells": len(published_cells()),
        "totals": totals,
        "spreads": spreads,
        "fewest_trials": FEWEST_TRIALS,
        **verdict_grid(plan, comparison),
    }


def verdict_grid(plan: Plan, comparison: pd.DataFrame) -> dict[str, Any]:
    """Return the grid of all cells of the datasets that were run: what heads its columns, and its
    rows.
    """
    run = were_run(comparison)
    methods = list(dict.fromkeys(comparison["method"]))
    of_table = set(run[["table", "method"]].itertuples(index=False, name=None))
    columns = {}
    for table in TABLES:
        methods_run = [method for method in methods if (table, method) in of_table]
        if methods_run:
            columns[table] = methods_run

    grid = []
    datasets_run = set(run["dataset"])
    for dataset in plan.published_names:
        if dataset in datasets_run:
            of_dataset = comparison[comparison["dataset"] == dataset]
            grid += _grid_rows(of_dataset, plan.dataset(dataset)["title"], columns)
    return {
        "columns": {TABLES[table]: methods_run for table, methods_run in columns.items()},
        "titles": {method: load_method(method).title for method in methods},
        "grid": grid,
    }


def _grid_rows(
    comparison: pd.DataFrame, title: str, columns: Mapping[int, Sequence[str]]
) -> list[dict[str, Any]]:
    """Return the rows of the grid of one dataset, a prior each; `columns` are the methods of each
    table.
    """
    grid_rows: list[dict[str, Any]] = []
    for prior, of_prior in comparison.groupby("prior"):
        by_cell = {(row["table"], row["method"]): row for row in of_prior.to_dict("records")}
        cells = []
        for table, methods in columns.items():
            cells.append([_look(by_cell[table, method]) for method in methods])
        is_first = not grid_rows
        grid_rows.append({"title": title, "prior": prior, "first": is_first, "cells": cells})
    return grid_rows


def _look(row: Mapping[Any, Any]) -> dict[str, str | None]:
    """Return a comparison as the grid shows it: glyph, kind and words of the verdict, and our
    cell.
    """
    verdict = row["verdict"]
    glyph, kind = LOOKS[verdict]
    cell = None if verdict == NOT_RUN else row["cell"]
    return {"glyph": glyph, "kind": kind, "words": verdict_words(row), "cell": cell}


def verdict_words(row: Mapping[Any, Any]) -> str:
    """Return the verdict of a comparison with its difference, reason and number of trials, as the
    page's script writes it.
    """
    verdict = str(row["verdict"])
    if verdict == NOT_RUN or pd.isna(row["difference"]):
        return verdict
    trials = number_of_trials([int(row["trials"])])
    return f"{verdict} ({in_points(row['difference'], 2)} points; {row['reason']}; {trials})"


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
    claims: list[dict[str, Any]] = read_json(json)["claims"]
    every_case = read_csv(cases)
    holds = every_case["holds"].astype(bool)
    failing = every_case[(every_case["evidence"] == "ours") & ~holds]
    for claim in claims:
        of_claim = failing[failing["claim"] == claim["claim"]]
        claim["failing"] = [_case(case) for case in of_claim.to_dict("records")]
        for source in ("ours", "paper"):
            rate = claim[f"{source}_rate"]
            if rate is not None:
                claim[source] += f" ({100 * rate:.0f} %)"
        statuses = [name for name in claim if name.endswith("_status")]
        claim["readings"] = {name.removesuffix("_status"): claim[name] for name in statuses}
    return claims


def _case(case: dict[Any, Any]) -> dict[str, Any]:
    """Return a case: its key in words, the cell whose runs it is about if the page has it, and its
    two sides.
    """
    key = {axis: case[axis] for axis in CELL if not pd.isna(case[axis])}
    for axis in ("tuple_size", "n"):
        if axis in key:
            key[axis] = int(key[axis])
    is_cell = len(key) == len(CELL)
    words = ", ".join(f"{axis} {value}" for axis, value in key.items())
    if is_cell:
        words = cell_name(key)
    # trainings of readings, whose names have spaces, have no line on the page
    is_on_page = is_cell and " " not in key["variant"]
    return {
        "words": words,
        "cell": words if is_on_page else None,
        "seed": None if pd.isna(case["seed"]) else int(case["seed"]),
        "left": _side(case["left"]),
        "right": _side(case["right"]),
    }


def _side(value: float) -> str | None:
    """Return a side of a case with four digits, None if it is missing."""
    return None if pd.isna(value) else f"{value:.4g}"


# Values of choices in readers' words; others go by their own names.
VALUES = {
    "last-ten": "last ten epochs",
    "all": "all epochs",
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
    ("scope", "class"): "correction of each class",
    ("scope", "part"): "correction of each part",
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
# Names that some choices replace by others.
REPLACED = {"scope": "methods", "loss": "methods", "letters": "datasets"}
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
    for name, words in (("best", "Most probable"), ("literal", "Literal")):
        counts = facts.get(name)
        if counts:
            reading = counts["reading"]
            title = f"{words}: {reading_words(reading, readings)}"
            chosen = _chosen(reading, readings)
            rows.append({**counts, "choice": name, "title": title, "chosen": chosen})
    return rows


def reading_words(reading: Mapping[str, str], readings: Readings) -> str:
    """Return where a reading departs from the protocol, in readers' words."""
    words = [value_words(choice, value) for choice, value in readings.departures(reading).items()]
    return in_words(words) if words else "the protocol"


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
    numbers = _numbers_run(comparisons)
    by_training = _by_training(readings, numbers, statistics)
    protocol = by_training[readings.name(readings.protocol)]
    rows = set(map(_row_of, protocol))

    epochs = readings.values("epochs")
    choices = {
        "epochs": epochs if statistics is not None else epochs[:1],
        "training": list(by_training),
    }
    changes = {}
    for choice, replaced in REPLACED.items():
        run = _names_run(replaced, numbers, by_training)
        changes[choice] = _changes_run(choice, replaced, run, readings)
        choices[choice] = list(changes[choice])

    titled = {}
    for choice, values in choices.items():
        titled[choice] = [[value, _value_title(choice, value, readings)] for value in values]
    return {
        "choices": titled,
        "changes": changes,
        "chosen": _chosen(readings.protocol, readings),
        "rule": dict(rule),
        "numbers": [_number(row) for row in numbers],
        "statistics": by_training,
        "variants": {training: variant_of(training) for training in by_training},
        "runs": {training: _of_rows(cells, rows) for training, cells in runs.items()},
    }


def _numbers_run(comparisons: Sequence[pd.DataFrame]) -> list[dict[Any, Any]]:
    """Return the comparisons that were run; ``counted`` are those that the headline counts, of the
    first table.
    """
    first, *apart = map(were_run, comparisons)
    is_counted = first.index.isin(counted(first).index)
    tables = [first.assign(counted=is_counted)]
    tables += [table.assign(counted=False) for table in apart]
    rows: list[dict[Any, Any]] = pd.concat(tables).to_dict("records")
    return rows


def _number(row: Mapping[Any, Any]) -> list[Any]:
    """Return a comparison as the page's script reads it."""
    published = [row["published_dataset"], row["published_mean"], row["published_std"]]
    return [row["cell"], place_name(row), *published, bool(row["counted"])]


def _by_training(
    readings: Readings, numbers: Sequence[Mapping[Any, Any]], statistics: pd.DataFrame | None
) -> dict[str, dict[str, list[list[float | None] | None]]]:
    """Return mean, deviation, trials and diverged ones by training, cell, and value of the choice
    ``epochs``.

    The protocol's are those of the comparisons, others those of the rows that were compared.
    """
    epochs = readings.values("epochs")
    protocol = readings.name(readings.protocol)
    by_training: dict[str, dict[str, list[list[float | None] | None]]] = {protocol: {}}
    for number in numbers:
        later = [None] * (len(epochs) - 1)
        by_training[protocol][place_name(number)] = [_facts(number), *later]

    rows = set(map(_row_of, by_training[protocol]))
    records = [] if statistics is None else statistics.to_dict("records")
    for record in records:
        place = place_name(record)
        if _row_of(place) not in rows:
            continue
        cells = by_training.setdefault(record["variant"], {})
        of_cell = cells.setdefault(place, [None] * len(epochs))
        column = epochs.index(record["epochs"])
        of_cell[column] = of_cell[column] or _facts(record)
    return by_training


def _names_run(
    replaced: str, numbers: Sequence[Mapping[Any, Any]], by_training: Mapping[str, Iterable[str]]
) -> set[str]:
    """Return the methods, or the datasets, that were run."""
    if replaced == "datasets":
        return {number["dataset"] for number in numbers}
    places = itertools.chain.from_iterable(by_training.values())
    return {place.rpartition("/")[2] for place in places}


def _changes_run(
    choice: str, replaced: str, run: set[str], readings: Readings
) -> dict[str, dict[str, str]]:
    """Return what each value of a choice puts in the place of methods or datasets, if any of these
    was run.
    """
    changes = {}
    for value in readings.values(choice):
        ours = readings.changes({choice: value})[replaced]
        if not ours or run & set(ours.values()):
            changes[value] = ours
    return changes


def _value_title(choice: str, value: str, readings: Readings) -> str:
    """Return what the page's controls call a value."""
    if choice == "training":
        return reading_words(readings.trainings[value], readings)
    return VALUES.get(value, value)


def _row_of(place: str) -> str:
    """Return the row of a cell by its `place_name`, which ends with the method."""
    return place.rpartition("/")[0]


def _of_rows(cells: Mapping[str, list[Any]], rows: Collection[str]) -> dict[str, list[Any]]:
    """Return the runs of the cells of some rows."""
    return {place: runs for place, runs in cells.items() if _row_of(place) in rows}


def _facts(row: Mapping[Any, Any]) -> list[float | None]:
    """Return mean, deviation, trials and diverged trials of a row, missing ones as None."""
    values = (row[name] for name in ("mean", "std", "trials", "diverged"))
    return [None if pd.isna(value) else round(float(value), DECIMALS) for value in values]
