"""The HTML report, rendered from the templates in ``report/``.

The page reads files at their places in the plan's layout, which the rule lists as inputs: what the
rules `collect`, `compare`, `claims` and `verify` write, the files of `mdpu.pipeline.show.outputs`,
contact sheets, and the descriptions of images and labels (.json).
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Mapping
from itertools import groupby
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
from mdpu.pipeline.plan import AXES, PARTS, Plan
from mdpu.pipeline.report import forest, html
from mdpu.pipeline.report.apart import read_apart
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


def write_page(plan: Plan, out: Path) -> None:
    """Write the report as one self-contained HTML page; raise `UserError` if a file of the results
    is missing.
    """
    shown = {**sections(plan), "apart": []}
    results = _results(plan, shown) if plan.runs else _no_results()
    data = packed({**results.pop("data"), "downloads": _texts(results, shown)})
    for section in (
        section for group in shown.values() for section in group if "methods" in section
    ):
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


def _texts(results: Mapping[str, Any], shown: Mapping[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Return the text of every file that the page offers, by name."""
    offered = [
        *results["files"].values(),
        *(own["downloads"] for group in shown.values() for own in group),
    ]
    return {file["file"]: file["text"] for files in offered for file in files}


def environment() -> Environment:
    """Return what renders the templates of the report."""
    made = html.environment()
    made.globals |= {"beside": BESIDE, "families": FAMILIES, "looks": LOOKS, "float32": FLOAT32}
    made.globals |= {"bases": BASES, "basis": basis}
    made.filters |= {"signed": signed, "effect": effect, "basis": basis}
    return made


def effect(value: float) -> str:
    """Return an effect in whatever unit, with its sign and three digits."""
    return (f"{value:+,.0f}" if abs(value) >= 1000 else f"{value:+.3g}").replace("-", "−")


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
    names = ("lines", "bars", "comparisons", "cells", "claims", "forecasts", "readings")
    lists: dict[str, Any] = {name: [] for name in names}
    missing = dict.fromkeys(("verification", "forest", "picture", "training", "apart"))
    said = {"headline": "Nothing was trained.", "scope": "", "scope_apart": ""}
    facts = {**said, "verdict": {"compared": 0, "cells": len(published_cells())}, "runs": 0}
    return {
        **lists,
        **missing,
        **facts,
        "verdicts": {},
        "files": {},
        "data": {"files": [], "cells": {}},
    }


class Part(NamedTuple):
    """A plan whose results the page shows: its own, or one that is shown apart."""

    plan: Plan
    comparison: pd.DataFrame
    runs: pd.DataFrame
    metrics: pd.DataFrame


def _results(plan: Plan, shown: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return what the page says of the results: verdicts, claims, cells."""
    at = plan.layout.results
    layout = plan.layout
    comparison, summary, runs = map(read_csv, (at / "comparison.csv", layout.summary, layout.runs))
    metrics = read_table(layout.metrics, [*AXES, "epoch", *REPORTED])
    parts = [Part(plan, comparison, runs, metrics)]
    apart = read_apart(plan)
    if apart:
        parts.append(Part(apart.plan, apart.comparison, apart.runs, apart.metrics))
        shown["apart"] = apart.sections()
    every_run = pd.concat([part.runs for part in parts])
    training = training_lines(every_run)
    cells = []
    verdicts: dict[str, Any] = {}
    comparisons = []
    for part in parts:
        cells += cell_lines(part.plan, part.runs, part.metrics, training)
        verdicts |= verdicts_by_cell(part.comparison)
        comparisons += comparison_rows(part.plan, part.comparison)
    expected = plan.config.get("expected")
    verification = verify(summary, Path(expected)) if expected else None
    compared = [part.comparison for part in parts]
    with_others = pd.concat(compared)
    readings = Readings(plan.config)
    facts: dict[str, Any] = {"counts": [], "tried": 0, "runs": {}}
    if is_compared(plan):
        facts = read_json(at / "readings.json")
    if facts["tried"]:
        shown["paper"].append(specification_section(plan, facts["tried"]))
    statistics = read_csv(at / "readings.csv") if facts["tried"] else None
    judging = reading_data(readings, compared, statistics, facts["runs"], plan.config["comparison"])
    every_section = [section for group in reversed(PARTS) for section in shown[group]]
    beyond = (
        section["name"]
        for section in every_section
        if "beyond" in map(family, section.get("methods", ()))
    )
    pictures = (section for section in every_section if "image" in section and section["trials"])
    titles = plan.titles(plan.config["definitions"]["datasets"])
    if apart:
        titles |= apart.plan.titles(apart.plan.datasets)
    claims = claims_section(at / "claims.json", at / "claims_cases.csv")
    return {
        "level": f"{100 * plan.config['comparison']['level']:g} %",
        "headline": headline(with_others, summary, verification),
        "scope": scope(with_others, titles),
        "scope_apart": scope_apart(with_others, titles),
        "lines": lines(
            comparison, claims, protocol_cells(summary, plan.table_rows), next(beyond, None)
        ),
        "bars": verdict_counts(comparison),
        "picture": next(pictures, None),
        "forest": {
            "panels": forest.forest_panels(comparison),
            **{
                "span": forest.SPAN,
                "pitch": forest.MOST_PITCH,
                "width": forest.WIDTH,
                "height": forest.HEIGHT,
            },
        },
        "verdict": verdict_section(plan, comparison, read_json(at / "comparison.json")),
        "claims": claims,
        "named": {
            name: reading_words(reading, readings) for name, reading in readings.named.items()
        },
        "forecasts": read_scores(plan, metrics),
        "comparisons": comparisons,
        "apart": verdict_grid(apart.plan, apart.comparison) if apart else None,
        "readings": reading_rows(facts, readings),
        "tried": facts["tried"],
        "runs": len(every_run),
        "verification": verification,
        "cells": cells,
        "curve": {"width": WIDTH, "height": HEIGHT},
        "seeds": sorted(set(every_run["seed"])),
        "verdicts": verdicts,
        "training": training,
        "reduced": int((every_run["precision"] != FLOAT32).sum()),
        "data": {**drawer_data(cells), "judging": judging},
        "files": {name: downloads([at / f"{name}.csv"]) for name in ("comparison", "claims")},
    }


def _making(plan: Plan, out: Path) -> dict[str, Any]:
    """Return what the page says of how the results were made: data, protocol, and what was
    not run.
    """
    titles = plan.titles(plan.config["definitions"]["datasets"])
    networks = {plan.network(run.dataset) for run in plan.runs}
    return {
        "datasets": [_dataset(plan, name) for name in plan.datasets],
        "protocol_yaml": yaml.safe_dump(
            plan.config["protocol"], sort_keys=False, allow_unicode=True
        ),
        "rates": {name: plan.protocol.settings(BASE, name).flat() for name in sorted(networks)},
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
