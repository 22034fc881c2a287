"""The HTML report, rendered from the templates in ``report/``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from mdpu.learn.methods import load_method
from mdpu.pipeline.config import BASE
from mdpu.pipeline.data.diagnostics import summarize
from mdpu.pipeline.evaluate.collect import REPORTED
from mdpu.pipeline.evaluate.evidence import table_cells
from mdpu.pipeline.evaluate.overfitting import overfitting
from mdpu.pipeline.evaluate.published import FAMILIES, NUMERALS, family, published_cells
from mdpu.pipeline.evaluate.summary import headline, in_points, lines, verdict_counts
from mdpu.pipeline.files import REPOSITORY, git_commit, read_csv, read_json, read_table, resource, versions, write_text
from mdpu.pipeline.plan import AXES, PARTS, Plan
from mdpu.pipeline.report.cells import HEIGHT, WIDTH, cell_lines, drawer_data, verdicts_by_cell
from mdpu.pipeline.report.drawing import size_name
from mdpu.pipeline.report.forest import HEIGHT as FOREST_HEIGHT
from mdpu.pipeline.report.forest import SPAN, forest_panels
from mdpu.pipeline.report.forest import WIDTH as FOREST_WIDTH
from mdpu.pipeline.report.sections import BESIDE, data_url, downloads, figure, trials_of
from mdpu.pipeline.report.training import Training, duration, read_training
from mdpu.pipeline.report.tuning_figure import CAPTION
from mdpu.pipeline.report.verdicts import (
    LOOKS,
    audit_section,
    claims_section,
    comparison_rows,
    ranks_section,
    verdict_section,
)

TEMPLATES = resource("report")
NO_DATA: dict[str, Any] = {"splits": [], "cells": {}, "config": ""}  # for the script
REFERENCE, OWN_DATA = "results/reference/report.html", "docs/how-to/estimator.md"  # in the repository
STYLE = ("tokens.css", "style.css", "print.css")
# Files that belong to no experiment, and stand beside what they show.
OFFERED = {
    "comparison": ("csv",),
    "claims": ("csv",),
    "ranks": ("pdf", "csv"),
}


def write_page(plan: Plan, shown: Mapping[str, list[dict[str, Any]]]) -> None:
    """Write the report as one self-contained HTML page; raise `UserError` if a file of the results is missing.

    `shown` are the sections of the experiments, as `mdpu.pipeline.experiments.sections` returns them.
    """
    training = read_training(plan)
    for section in (section for group in shown.values() for section in group if "methods" in section):
        section["columns"] = column_groups(section["methods"])
    template = environment().get_template("report.html.j2")
    page = template.render(
        plan=plan.summary(),
        groups=PARTS,
        shown=shown,
        **_evaluation(plan, shown, training),
        **_making(plan, training),
        style="".join((TEMPLATES / name).read_text(encoding="utf-8") for name in STYLE),
        script=(TEMPLATES / "page.js").read_text(encoding="utf-8"),
    )
    write_text(plan.layout.page, page)


def environment() -> Environment:
    """Return what renders the templates: text is escaped, and an unknown variable is an error."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"beside": BESIDE, "families": FAMILIES, "looks": LOOKS, "numerals": NUMERALS}
    made.filters |= {"duration": duration, "points": points, "signed": signed, "typeset": typeset, "effect": effect}
    return made


def points(value: float | None) -> str:
    """Return a number of percent or points with two decimals, a dash if it is missing."""
    return "–" if value is None or pd.isna(value) else f"{value:.2f}"


def effect(value: float) -> str:
    """Return an effect in whatever unit, with its sign and three digits."""
    return (f"{value:+,.0f}" if abs(value) >= 1000 else f"{value:+.3g}").replace("-", "−")


def typeset(text: object) -> Markup:
    """Return words as a page shows them: names between backticks as code, true minus signs, curved apostrophes."""
    words = str(escape(str(text).replace("'", "’")))
    words = re.sub(r"`([^`]+)`", r"<code>\1</code>", words)
    return Markup(re.sub(r"(?<![\w.])-(?=\d)", "−", words))


def signed(value: float | None) -> str:
    """Return a difference in points with its sign, a dash if it is missing."""
    return "–" if value is None or pd.isna(value) else in_points(value, 2)


def column_groups(methods: list[str]) -> list[dict[str, Any]]:
    """Return the runs of neighbouring methods of one family, for the head of a table: ``title`` and ``span``."""
    return [
        {"family": name, "title": FAMILIES[name], "span": len(list(members))}
        for name, members in groupby(methods, key=family)
    ]


def _evaluation(plan: Plan, shown: Mapping[str, list[dict[str, Any]]], training: Training) -> dict[str, Any]:
    """Return what the page says of the results: verdicts, claims, ranks, cells."""
    results, audit = plan.layout.results, audit_section(plan)
    common: dict[str, Any] = {
        "level": f"{100 * plan.config['comparison']['level']:g} %",
        "audit": {**audit, "downloads": downloads(results, ["audit.csv"])},
        "claims": claims_section(plan),
        "ranks": ranks_section(plan),
        "verdict": verdict_section(plan),
        "numbers": len(published_cells()),
    }
    if not plan.runs:
        missing = dict.fromkeys(("verification", "forest", "picture", "training"))
        empty: dict[str, Any] = {"lines": [], "bars": [], "comparisons": [], "cells": [], "verdicts": {}, "files": {}}
        return {**common, **missing, **empty, "headline": "Nothing was trained.", "data": NO_DATA}
    comparison, summary = read_csv(results / "comparison.csv"), read_csv(plan.layout.summary)
    runs = read_csv(results / "runs.csv")
    metrics = read_table(plan.layout.metrics, [*AXES, "epoch", *REPORTED])
    cells = cell_lines(plan, runs, metrics, training)
    verdicts = verdicts_by_cell(comparison)
    tables = table_cells(summary, plan.table_rows)
    verification = read_json(results / "verification.json") if plan.config.get("expected") else None
    sections = [section for group in ("bags", "beyond", "paper") for section in shown[group]]
    beyond = (section["name"] for section in sections if "beyond" in map(family, section.get("methods", ())))
    pictures = (section for section in sections if "image" in section and section["trials"])
    return {
        **common,
        "headline": headline(_with_others(plan, comparison), summary, verification),
        "lines": lines(comparison, common["claims"], tables, len(audit["anomalies"]), next(beyond, None)),
        "bars": verdict_counts(comparison),
        "picture": next(pictures, None),
        "forest": {"panels": forest_panels(comparison), "span": SPAN, "width": FOREST_WIDTH, "height": FOREST_HEIGHT},
        "comparisons": comparison_rows(plan, comparison),
        "verification": verification,
        "cells": cells,
        "curve": {"width": WIDTH, "height": HEIGHT},
        "seeds": sorted(set(runs["seed"])),
        "verdicts": verdicts,
        "training": training,
        "overfitting": _overfitting(plan, metrics),
        "data": {**drawer_data(cells, verdicts, training.splits), "config": os.path.relpath(plan.layout.config)},
        "files": {
            name: downloads(results, [f"{name}.{suffix}" for suffix in suffixes]) for name, suffixes in OFFERED.items()
        },
        "trials": trials_of(plan.runs),
        "rank_figure": figure(results / "ranks.svg"),
        "size_name": size_name,
    }


def _overfitting(plan: Plan, metrics: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the methods that later epochs cost accuracy, under the protocol and where tuples are broken."""
    broken = {name: plan.protocol.variant(name)["sampling"]["broken"] for name in metrics["variant"].unique()}
    found = overfitting(metrics, plan.protocol.reporting()["test_prior"])
    found = found.assign(
        broken=found["variant"].map(broken), title=[load_method(name).title for name in found["method"]]
    )
    return found[(found["variant"] == BASE) | (found["broken"] > 0)].to_dict("records")


def _with_others(plan: Plan, comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the comparison with the verdicts on other images below it that the configuration names."""
    file = REPOSITORY / str(plan.config.get("apart") or "")
    return pd.concat([comparison, read_csv(file)]) if file.is_file() else comparison


def _making(plan: Plan, training: Training) -> dict[str, Any]:
    """Return what the page says of how the results were made: data, protocol, software, and what was not run."""
    titles, results = plan.titles(plan.config["definitions"]["datasets"]), plan.layout.results
    return {
        "datasets": [_dataset(plan, name, training.diagnostics) for name in plan.datasets],
        "protocol_yaml": yaml.safe_dump(plan.config["protocol"], sort_keys=False, allow_unicode=True),
        "not_run": plan.not_run,
        "datasets_not_run": {name: title for name, title in titles.items() if name not in plan.datasets},
        "tuning": _tuning(plan),
        "reference": os.path.relpath(Path(plan.config.get("expected") or REFERENCE).with_name("report.html"), results),
        "own_data": os.path.relpath(OWN_DATA, results),
        "config": os.path.relpath(plan.layout.config),
        "metrics": os.path.relpath(plan.layout.metrics),
        "commit": git_commit(),
        "packages": versions(("torch", "torchvision", "numpy", "pandas", "snakemake")),
    }


def _dataset(plan: Plan, name: str, diagnostics: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a dataset: its definition, counts, origin, contact sheets, and the worst diagnostics of its splits."""
    definition = plan.dataset(name)
    description = read_json(plan.layout.images(name).with_suffix(".json"))
    splits = [split for split in plan.splits if split.startswith(f"{name}/")]
    return {
        "name": name,
        **definition,
        "dropped": definition.get("dropped", []),
        "checked": "counts" in definition,
        "counts": read_json(plan.layout.labels(name).with_suffix(".json"))["counts"],
        "origin": description["origin"],
        "licence": description["licence"],
        "sheets": {sheet.stem: data_url("image/png", sheet) for sheet in plan.layout.sheets(name)},
        "sampling": summarize(
            [diagnostics.get(split) or read_json(plan.layout.split(split).with_suffix(".json")) for split in splits]
        ),
    }


def _tuning(plan: Plan) -> dict[str, Any]:
    """Return where learning rate and weight decay come from: fixed per network, or the figure of each tuning."""
    used = {job.network for job in plan.jobs.values() if job.needs_gpu}
    return {
        "caption": CAPTION,
        "tuned": plan.config["protocol"]["training"]["hyperparameters"] == "tuned",
        "fixed": {name: plan.protocol.training(BASE, name) for name in sorted(used)},
        "figures": [
            {
                "name": name,
                "title": plan.tuning_title(name),
                **figure(plan.layout.figure(f"tuning/{name}")),
                "downloads": downloads(plan.layout.results, [f"figures/tuning/{name}.pdf"]),
            }
            for name in plan.tunings
        ],
    }
