"""The HTML report, rendered from the templates in ``report/``.

The page reads files at their places in the plan's layout, which the rule lists as inputs: what the
rules `collect`, `compare`, `claims` and `readings` write, the files of
`mdpu.pipeline.show.outputs`, contact sheets, and the descriptions of images and labels (.json).
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from jinja2 import Environment

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.collect import REPORTED
from mdpu.pipeline.evaluate.evidence import protocol_cells
from mdpu.pipeline.evaluate.forecasts import read_scores
from mdpu.pipeline.evaluate.published import BASES, FAMILIES, basis, family, published_cells
from mdpu.pipeline.evaluate.rejudge import is_compared
from mdpu.pipeline.evaluate.summary import (
    headline,
    in_points,
    lines,
    scope,
    scope_apart,
    verdict_counts,
)
from mdpu.pipeline.evaluate.verify import verify
from mdpu.pipeline.files import read_csv, read_json, read_table, write_text
from mdpu.pipeline.plan import AXES, CELL, PARTS, Plan
from mdpu.pipeline.report import forest, html
from mdpu.pipeline.report.apart import Apart, read_apart
from mdpu.pipeline.report.cells import (
    FLOAT32,
    HEIGHT,
    WIDTH,
    cell_lines,
    drawer_data,
    training_lines,
    verdicts_by_cell,
)
from mdpu.pipeline.report.html import STYLE, read_templates
from mdpu.pipeline.report.sections import BESIDE, data_url, downloads
from mdpu.pipeline.report.specification import specification_section
from mdpu.pipeline.report.verdicts import (
    LOOKS,
    claims_section,
    comparison_rows,
    reading_data,
    reading_rows,
    reading_words,
    verdict_grid,
    verdict_section,
)
from mdpu.pipeline.show import sections

# in the repository
REFERENCE = "results/reference/report.html"
OWN_DATA = "docs/how-to/estimator.md"
SCRIPT = ("rule.js", "page.js")

Sections = dict[str, list[dict[str, Any]]]  # by the part of the page


def write_page(plan: Plan, out: Path) -> None:
    """Write the report as one self-contained HTML page; raise `UserError` if a file of the results
    is missing.
    """
    shown = {**sections(plan), "apart": []}
    results = _results(plan, shown) if plan.runs else _no_results()
    data = packed({**results.pop("data"), "downloads": _texts(results, shown)})
    for section in chain.from_iterable(shown.values()):
        if "methods" in section:
            section["columns"] = column_groups(section["methods"])
    page = (
        environment()
        .get_template("report.html.j2")
        .render(
            name=plan.config["name"],
            of_paper=is_of_paper(plan),
            groups=PARTS,
            shown=shown,
            **results,
            **_making(plan, out),
            data=data,
            style=read_templates(STYLE),
            script=read_templates(SCRIPT),
        )
    )
    write_text(out, page)


def is_of_paper(plan: Plan) -> bool:
    """Return whether a plan is about the paper: it trains on images that the paper has numbers of,
    or on none.
    """
    published = set(published_cells()["dataset"])
    return not plan.runs or any(plan.published_names[run.dataset] in published for run in plan.runs)


def packed(data: Mapping[str, Any]) -> str:
    """Return data for the page's script: JSON, deflated, in base 64; it is a quarter as long."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _texts(results: Mapping[str, Any], shown: Sections) -> dict[str, str]:
    """Return the text of every file that the page offers, by name."""
    offered = list(chain.from_iterable(results["files"].values()))
    for section in chain.from_iterable(shown.values()):
        offered += section["downloads"]
    return {file["file"]: file["text"] for file in offered}


def environment() -> Environment:
    """Return what renders the templates of the report."""
    templates = html.environment()
    templates.globals |= {"beside": BESIDE, "families": FAMILIES, "looks": LOOKS}
    templates.globals |= {"float32": FLOAT32, "bases": BASES, "basis": basis}
    templates.filters |= {"signed": signed, "effect": effect, "basis": basis}
    return templates


def effect(value: float) -> str:
    """Return an effect in whatever unit, with its sign and three digits."""
    form = "+,.0f" if abs(value) >= 1000 else "+.3g"
    return format(value, form).replace("-", "−")


def signed(value: float | None) -> str:
    """Return a difference in points with its sign, a dash if it is missing."""
    return "–" if value is None or pd.isna(value) else in_points(value, 2)


def column_groups(methods: list[str]) -> list[dict[str, Any]]:
    """Return the runs of neighbouring methods of one family, for the head of a table: ``title`` and
    ``span``.
    """
    return [
        {"family": name, "title": FAMILIES[name], "span": len(list(members))}
        for name, members in groupby(methods, key=family)
    ]


def _no_results() -> dict[str, Any]:
    """Return what the page says where nothing was trained."""
    return {
        "headline": "Nothing was trained.",
        "scope": "",
        "scope_apart": "",
        "lines": [],
        "bars": [],
        "picture": None,
        "forest": None,
        "verification": None,
        "verdict": {"compared": 0, "cells": len(published_cells())},
        "verdicts": {},
        "comparisons": [],
        "apart": None,
        "claims": [],
        "forecasts": [],
        "readings": [],
        "runs": 0,
        "cells": [],
        "training": None,
        "data": {"files": [], "cells": {}},
        "files": {},
    }


class Part(NamedTuple):
    """A plan whose results the page shows: its own, or one that is shown apart."""

    plan: Plan
    comparison: pd.DataFrame
    runs: pd.DataFrame
    metrics: pd.DataFrame


def apart_part(apart: Apart, plan: Plan) -> Part:
    """Return what is shown apart from a plan, without the cells whose names the plan has too."""
    first_runs = [vars(runs[0]) for runs in plan.cells.values()]
    names = pd.DataFrame(first_runs, columns=list(CELL)).assign(is_own=True)

    def without_own(table: pd.DataFrame) -> pd.DataFrame:
        is_own = table[list(CELL)].merge(names, how="left")["is_own"]
        return table[is_own.isna().to_numpy()]

    comparison = apart.comparison[~apart.comparison["cell"].isin(plan.cells)]
    return Part(apart.plan, comparison, without_own(apart.runs), without_own(apart.metrics))


def _results(plan: Plan, shown: Sections) -> dict[str, Any]:
    """Return what the page says of the results: first screen, verdicts, claims, readings, cells.

    The sections of what is shown apart, and of all readings, are added to `shown`.
    """
    layout = plan.layout
    folder = layout.results
    comparison = read_csv(folder / "comparison.csv")
    metrics = read_table(layout.metrics, [*AXES, "epoch", *REPORTED])
    parts = [Part(plan, comparison, read_csv(layout.runs), metrics)]
    grid_apart = None
    apart = read_apart(plan)
    if apart:
        parts.append(apart_part(apart, plan))
        grid_apart = {
            **verdict_grid(apart.plan, apart.comparison),
            "about": apart.plan.config.get("about"),
        }
        shown["apart"] = apart.sections()

    claims = claims_section(folder / "claims.json", folder / "claims_cases.csv")
    readings, judging = _readings(parts, shown)
    cells, drawer = _cells(parts)
    return {
        **_first_screen(parts, claims, shown),
        "verdict": verdict_section(plan, comparison, read_json(folder / "comparison.json")),
        "apart": grid_apart,
        "claims": claims,
        "forecasts": read_scores(plan, metrics),
        **readings,
        **cells,
        "data": {**drawer, "judging": judging},
        "files": {name: downloads([folder / f"{name}.csv"]) for name in ("comparison", "claims")},
    }


def _first_screen(
    parts: Sequence[Part], claims: list[dict[str, Any]], shown: Sections
) -> dict[str, Any]:
    """Return the headline with its scope, the findings below it, and the pictures beside them."""
    plan, comparison, *_ = parts[0]
    every_comparison = pd.concat([part.comparison for part in parts])
    titles = plan.titles(plan.config["definitions"]["datasets"])
    for part in parts[1:]:
        titles |= part.plan.titles(part.plan.datasets)

    summary = read_csv(plan.layout.summary)
    expected = plan.config.get("expected")
    verification = verify(summary, Path(expected)) if expected else None

    last_part_first = chain.from_iterable(shown[part] for part in reversed(PARTS))
    beyond = []
    pictures = []
    for section in last_part_first:
        if "beyond" in map(family, section.get("methods", ())):
            beyond.append(section["name"])
        if "image" in section and section["trials"]:
            pictures.append(section)

    cells_of_tables = protocol_cells(summary, plan.table_rows)
    return {
        "level": f"{100 * plan.config['comparison']['level']:g} %",
        "headline": headline(comparison, summary, verification),
        "scope": scope(comparison, titles),
        "scope_apart": scope_apart(every_comparison, titles),
        "lines": lines(comparison, claims, cells_of_tables, next(iter(beyond), None)),
        "bars": verdict_counts(comparison),
        "picture": next(iter(pictures), None),
        "forest": {
            "panels": forest.forest_panels(comparison),
            "span": forest.SPAN,
            "pitch": forest.MOST_PITCH,
            "width": forest.WIDTH,
            "height": forest.HEIGHT,
        },
        "verification": verification,
    }


def _readings(parts: Sequence[Part], shown: Sections) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the page says of readings, and what its script judges by.

    If several were tried, their section is added to `shown`.
    """
    plan = parts[0].plan
    folder = plan.layout.results
    readings = Readings(plan.config)
    facts: dict[str, Any] = {"counts": [], "tried": 0, "runs": {}}
    if is_compared(plan):
        facts = read_json(folder / "readings.json")
    statistics = None
    if facts["tried"]:
        statistics = read_csv(folder / "readings.csv")
        shown["paper"].append(specification_section(plan, facts["tried"]))

    said = {
        "named": {name: reading_words(named, readings) for name, named in readings.named.items()},
        "readings": reading_rows(facts, readings),
        "tried": facts["tried"],
    }
    comparisons = [part.comparison for part in parts]
    rule = plan.config["comparison"]
    return said, reading_data(readings, comparisons, statistics, facts["runs"], rule)


def _cells(parts: Sequence[Part]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the page says of cells, runs and comparisons, and what its script shows of
    cells.
    """
    every_run = pd.concat([part.runs for part in parts])
    training = training_lines(every_run)
    cells = []
    verdicts: dict[str, Any] = {}
    comparisons = []
    for part in parts:
        cells += cell_lines(part.plan, part.runs, part.metrics, training)
        verdicts |= verdicts_by_cell(part.comparison)
        comparisons += comparison_rows(part.plan, part.comparison)
    said = {
        "cells": cells,
        "curve": {"width": WIDTH, "height": HEIGHT},
        "verdicts": verdicts,
        "comparisons": comparisons,
        "runs": len(every_run),
        "seeds": sorted(set(every_run["seed"])),
        "training": training,
        "reduced": _runs_by_other_precision(every_run["precision"]),
    }
    return said, drawer_data(cells)


def _runs_by_other_precision(precisions: pd.Series) -> dict[str, int]:
    """Return how many runs were not trained in float32, by precision, the most first."""
    counts = precisions[precisions != FLOAT32].str.replace("tf32", "TF32").value_counts()
    return {str(precision): int(count) for precision, count in counts.items()}


def _making(plan: Plan, out: Path) -> dict[str, Any]:
    """Return what the page says of how the results were made: data, protocol, and what was
    not run.
    """
    titles = plan.titles(plan.config["definitions"]["datasets"])
    networks = sorted({plan.network(run.dataset) for run in plan.runs})
    protocol = plan.config["protocol"]
    return {
        "datasets": [_dataset(plan, name) for name in plan.datasets],
        "protocol_yaml": yaml.safe_dump(protocol, sort_keys=False, allow_unicode=True),
        "rates": {name: plan.protocol.settings(BASE, name).flat() for name in networks},
        "not_run": plan.not_run,
        "datasets_not_run": {
            name: title for name, title in titles.items() if name not in plan.datasets
        },
        "reference": os.path.relpath(REFERENCE, out.parent),
        "own_data": os.path.relpath(OWN_DATA, out.parent),
    }


def _dataset(plan: Plan, name: str) -> dict[str, Any]:
    """Return a dataset: its definition, counts, origin and contact sheets."""
    definition = plan.dataset(name)
    description = read_json(plan.layout.images(name).with_suffix(".json"))
    return {
        "name": name,
        **definition,
        "dropped": definition.get("dropped", []),
        "checked": "counts" in definition,
        "counts": read_json(plan.layout.labels(name).with_suffix(".json"))["counts"],
        "origin": description["origin"],
        "licence": description["licence"],
        "sheets": {sheet.stem: data_url("image/png", sheet) for sheet in plan.layout.sheets(name)},
    }
