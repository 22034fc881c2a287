"""The HTML report, rendered from the templates in ``report/``."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mdpu.data.diagnostics import summarize
from mdpu.errors import UserError
from mdpu.files import git_commit, read_csv, read_json, resource, versions
from mdpu.learn.methods import load_method
from mdpu.report.largest_n import HEADER, largest_n_rows
from mdpu.report.sensitivity import nearest_rows, sensitivity_cells, sensitivity_rows
from mdpu.report.tables import ROW, best_methods, caption
from mdpu.report.verdicts import audit_section, claims_section, ranks_section, verdict_section
from mdpu.study.grid import Experiment, cell_name
from mdpu.study.plan import Plan

TEMPLATES = resource("report")


def render_page(plan: Plan, results: Path) -> str:
    """Return the report as one self-contained HTML page.

    Parameters
    ----------
    plan : Plan
    results : Path
        Folder with ``tables``, ``figures``, ``sensitivity``, ``labels``, ``sheets``, ``splits``,
        ``largest_n.csv``, what the comparison, the claims, the ranks and the audit wrote and, if the
        configuration expects numbers, ``verification.json``.

    Raises
    ------
    UserError
        If a file of the results is missing.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    formulas: list[dict[str, Any]] = []
    tables, figures = [], []
    for experiment in plan.experiments.values():
        if experiment.kind == "formulas":
            formulas.append(_formulas(experiment, read_csv(results / "tables" / f"{experiment.name}.csv")))
        elif experiment.kind == "table":
            cells = read_csv(results / "tables" / f"{experiment.name}.csv")
            tables.append(table_section(plan, experiment.name, experiment.title, cells))
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
                    "not_run": list(plan.titles(experiment.not_run).values()),
                    "image": _data_url("image/svg+xml", drawing),
                }
            )
    datasets = []
    for name in plan.datasets:
        definition = plan.dataset(name)
        counts = read_json(results / "labels" / f"{name}.json")
        description = read_json(plan.layout.images(name).with_suffix(".json"))
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
                "sampling": summarize([read_json(plan.layout.split(split).with_suffix(".json")) for split in splits]),
            }
        )
    titles = plan.titles(plan.config["definitions"]["datasets"])
    level = f"{100 * plan.config['comparison']['level']:g} %"
    studies = [
        {**_study(results, figure, titles), "level": level} for figure in figures if figure["kind"] == "sensitivity"
    ]
    expected = plan.config.get("expected")
    return environment.get_template("report.html.j2").render(
        plan=plan.summary(),
        protocol_yaml=yaml.safe_dump(plan.config["protocol"], sort_keys=False),
        datasets=datasets,
        formulas=formulas,
        tables=tables,
        figures=[figure for figure in figures if figure["kind"] != "sensitivity"],
        studies=studies,
        largest_n=largest_n_rows(read_csv(results / "largest_n.csv"), titles) if plan.runs else [],
        largest_n_header=HEADER,
        verdict=verdict_section(plan, results),
        claims=claims_section(plan, results),
        level=level,
        ranks=ranks_section(plan, results),
        trials=len({run.seed for run in plan.runs}),
        rank_figure=_data_url("image/svg+xml", results / "ranks.svg") if plan.runs else None,
        audit=audit_section(results),
        not_run=plan.not_run,
        tuning=_tuning(plan, results),
        runs=run_lines(read_csv(results / "runs.csv")) if plan.runs else None,
        config=os.path.relpath(plan.layout.config),
        metrics=os.path.relpath(plan.layout.metrics),
        verification=read_json(results / "verification.json") if expected and plan.runs else None,
        commit=git_commit(),
        packages=versions(("torch", "torchvision", "numpy", "pandas", "snakemake")),
        style=(TEMPLATES / "style.css").read_text(encoding="utf-8"),
    )


def _data_url(kind: str, path: Path) -> str:
    """Return a file as an address that holds the file itself."""
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _study(results: Path, figure: dict[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    """Return a sensitivity study for the template: its figure, its table and the distances to the published numbers."""
    summary = read_csv(results / "sensitivity" / f"{figure['name']}.csv")
    header, rows = sensitivity_rows(summary, titles)
    nearest = read_csv(results / "sensitivity" / f"{figure['name']}-nearest.csv")
    return {
        **figure,
        "header": header,
        "rows": [
            {"words": row[:4], "numbers": list(zip(row[4:], cells, strict=True))}
            for row, cells in zip(rows, sensitivity_cells(summary), strict=True)
        ],
        "nearest": nearest_rows(nearest, titles),
        "compared": len(nearest),
        "tied": None if nearest["tied"].isna().any() else int(nearest["tied"].sum()),
    }


def table_section(plan: Plan, name: str, title: str, cells: pd.DataFrame) -> dict[str, Any]:
    """Return a table's rows for the template, prior by prior, each cell with ours, the paper's and the difference."""
    methods: Sequence[str] = list(dict.fromkeys(run.method for run in plan.experiment(name).runs))
    marked = cells.assign(best=best_methods(cells)).sort_values(
        "prior", key=lambda prior: prior.astype(float), kind="stable"
    )
    rows = []
    for (prior, dataset), group in marked.groupby(list(ROW), sort=False):
        by_method = {cell["method"]: cell for cell in group.to_dict("records")}
        rows.append(
            {
                "prior": prior,
                "dataset": plan.dataset(str(dataset))["title"],
                "cells": [by_method.get(method) for method in methods],
                "names": [cell_name(by_method[method]) if method in by_method else None for method in methods],
            }
        )
    return {
        "name": name,
        "title": title,
        "methods": [load_method(method).title for method in methods],
        "rows": rows,
        "not_run": list(plan.titles(plan.experiment(name).not_run).values()),
        "published": bool(cells["published_mean"].notna().any()),
        "caption": caption(cells, plan.titles(cells["dataset"]), plan.protocol.reports_best_epoch),
    }


def _formulas(experiment: Experiment, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the table of losses for the template, its formulas as images."""
    from mdpu.report.formulas import formula_image

    def image(formula: str) -> str:
        return f"data:image/svg+xml;base64,{base64.b64encode(formula_image(formula)).decode()}"

    return {
        "name": experiment.name,
        "title": experiment.title,
        "rows": [{**row, "image": image(row["formula"])} for row in rows.to_dict("records")],
    }


def _tuning(plan: Plan, results: Path) -> dict[str, Any]:
    """Return where learning rate and weight decay come from: fixed per network, or the figure of each tuning."""
    networks = plan.config["protocol"]["training"]["networks"]
    used = {cohort.network for cohort in plan.cohorts.values() if cohort.needs_gpu}
    return {
        "caption": (TEMPLATES / "captions" / "tuning.rst").read_text(encoding="utf-8"),
        "tuned": plan.config["protocol"]["training"]["hyperparameters"] == "tuned",
        "fixed": {name: networks[name] for name in networks if name in used},
        "figures": [
            {
                "name": name,
                "title": plan.tuning_title(name),
                "image": _data_url("image/svg+xml", results / "figures" / "tuning" / f"{name}.svg"),
            }
            for name in plan.tunings
        ],
    }


def run_lines(runs: pd.DataFrame) -> dict[str, Any]:
    """Return the runs for the template: the seeds, and per cell an accuracy per seed, None where there is no run."""
    by_cell: dict[str, dict[int, float]] = {}
    for run, seed, accuracy in runs[["run", "seed", "accuracy"]].itertuples(index=False):
        by_cell.setdefault(run.rpartition("/")[0], {})[seed] = accuracy
    seeds = sorted(set(runs["seed"]))
    return {
        "seeds": seeds,
        "cells": [{"name": name, "accuracies": [of.get(seed) for seed in seeds]} for name, of in by_cell.items()],
    }
