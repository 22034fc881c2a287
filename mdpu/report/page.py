"""The HTML report, rendered from the templates in ``report/``."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from mdpu.data.diagnostics import summarize
from mdpu.errors import UserError
from mdpu.experiment import Plan
from mdpu.files import REPOSITORY, git_commit, read_csv, read_json, versions
from mdpu.learn.methods import load_method
from mdpu.report.largest_n import HEADER, largest_n_rows
from mdpu.report.sensitivity import nearest_rows, sensitivity_rows
from mdpu.report.tables import ROW, best_methods

TEMPLATES = REPOSITORY / "report"


def render_page(plan: Plan, results: Path) -> str:
    """Return the report as one self-contained HTML page.

    Parameters
    ----------
    plan : Plan
    results : Path
        Folder with ``tables``, ``figures``, ``sensitivity``, ``labels``, ``sheets``, ``splits``,
        ``largest_n.csv`` and, if the configuration expects numbers, ``verification.json``.

    Raises
    ------
    UserError
        If a file of the results is missing.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    tables, figures = [], []
    for experiment in plan.experiments.values():
        if experiment.kind == "table":
            cells = read_csv(results / "tables" / f"{experiment.name}.csv")
            tables.append(_table(plan, experiment.name, experiment.title, cells))
        else:
            drawing = results / "figures" / f"{experiment.name}.svg"
            if not drawing.exists():
                raise UserError(f"{drawing} does not exist; run the rule that makes it")
            figures.append(
                {
                    "name": experiment.name,
                    "kind": experiment.kind,
                    "title": experiment.title,
                    "caption": (TEMPLATES / "captions" / f"{experiment.kind}.rst").read_text(encoding="utf-8"),
                    "trials": len({run.seed for run in experiment.runs}),
                    "image": _data_url("image/svg+xml", drawing),
                }
            )
    datasets = []
    for name in plan.datasets:
        definition = plan.dataset(name)
        counts = read_json(results / "labels" / f"{name}.json")
        description = read_json(plan.images(name).with_suffix(".json"))
        splits = [split for split in plan.splits if split.startswith(f"{name}/")]
        datasets.append(
            {
                "name": name,
                **definition,
                "dropped": definition.get("dropped", []),
                "checked": "counts" in definition,
                "counts": counts["counts"],
                "origin": description["origin"],
                "licence": description["licence"],
                "sheets": {
                    side: _data_url("image/png", results / "sheets" / name / f"{side}.png")
                    for side in ("positive", "negative")
                },
                "sampling": summarize([read_json(plan.split(split).with_suffix(".json")) for split in splits]),
            }
        )
    titles = plan.titles(plan.config["definitions"]["datasets"])
    studies = [_study(results, figure, titles) for figure in figures if figure["kind"] == "sensitivity"]
    expected = plan.config.get("expected")
    return environment.get_template("report.html.j2").render(
        plan=plan.summary(),
        protocol_yaml=yaml.safe_dump(plan.config["protocol"], sort_keys=False),
        datasets=datasets,
        tables=tables,
        figures=[figure for figure in figures if figure["kind"] != "sensitivity"],
        studies=studies,
        largest_n={"header": HEADER, "rows": largest_n_rows(read_csv(results / "largest_n.csv"), titles)},
        verification=read_json(results / "verification.json") if expected else None,
        commit=git_commit(),
        packages=versions(("torch", "torchvision", "numpy", "pandas", "snakemake")),
        style=(TEMPLATES / "style.css").read_text(encoding="utf-8"),
    )


def _data_url(kind: str, path: Path) -> str:
    """Return a file as an address that holds the file itself."""
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _study(results: Path, figure: dict[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    """Return a sensitivity study for the template: its figure, its table and the distances to the published numbers."""
    header, rows = sensitivity_rows(read_csv(results / "sensitivity" / f"{figure['name']}.csv"), titles)
    nearest = read_csv(results / "sensitivity" / f"{figure['name']}-nearest.csv")
    return {
        **figure,
        "header": header,
        "rows": rows,
        "nearest": nearest_rows(nearest, titles),
        "compared": len(nearest),
        "tied": int(nearest["tied"].sum()),
    }


def _table(plan: Plan, name: str, title: str, cells: pd.DataFrame) -> dict[str, Any]:
    """Return a table's rows for the template, each cell with ours, the paper's and the difference."""
    methods: Sequence[str] = list(dict.fromkeys(run.method for run in plan.experiment(name).runs))
    marked = cells.assign(best=best_methods(cells))
    rows = []
    for (prior, dataset), group in marked.groupby(list(ROW), sort=False):
        by_method = {cell["method"]: cell for cell in group.to_dict("records")}
        rows.append(
            {
                "prior": prior,
                "dataset": plan.dataset(str(dataset))["title"],
                "cells": [by_method.get(method) for method in methods],
            }
        )
    return {
        "name": name,
        "title": title,
        "methods": [load_method(method).title for method in methods],
        "rows": rows,
        "published": bool(cells["published_mean"].notna().any()),
        "trials": int(cells["trials"].max()),
        "epochs": (int(cells["first_epoch"].min()), int(cells["last_epoch"].max())),
    }
