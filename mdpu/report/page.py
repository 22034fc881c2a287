"""The HTML report, rendered from the templates in ``report/``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mdpu.data.diagnostics import summarize
from mdpu.files import git_commit, read_csv, read_json, resource, versions, write_text
from mdpu.report.largest_n import HEADER, largest_n_rows
from mdpu.report.sections import data_url
from mdpu.report.tuning_figure import CAPTION
from mdpu.report.verdicts import audit_section, claims_section, ranks_section, verdict_section
from mdpu.study.config import BASE
from mdpu.study.kind import load_kind
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
    sections: dict[str, list[dict[str, Any]]] = {"tables": [], "figures": [], "studies": []}
    for experiment in plan.experiments.values():
        kind = load_kind(experiment.kind)
        sections[kind.place].append({"template": kind.template, **kind.section(plan, experiment, results)})
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
                    side: data_url("image/png", results / "sheets" / name / f"{side}.png")
                    for side in ("positive", "negative")
                },
                "sampling": summarize([read_json(plan.layout.split(split).with_suffix(".json")) for split in splits]),
            }
        )
    titles = plan.titles(plan.config["definitions"]["datasets"])
    expected = plan.config.get("expected")
    return environment.get_template("report.html.j2").render(
        plan=plan.summary(),
        protocol_yaml=yaml.safe_dump(plan.config["protocol"], sort_keys=False),
        datasets=datasets,
        sections=sections,
        largest_n=largest_n_rows(read_csv(results / "largest_n.csv"), titles) if plan.runs else [],
        largest_n_header=HEADER,
        verdict=verdict_section(plan, results),
        claims=claims_section(plan, results),
        level=f"{100 * plan.config['comparison']['level']:g} %",
        ranks=ranks_section(plan, results),
        trials=len({run.seed for run in plan.runs}),
        rank_figure=data_url("image/svg+xml", results / "ranks.svg") if plan.runs else None,
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


def _tuning(plan: Plan, results: Path) -> dict[str, Any]:
    """Return where learning rate and weight decay come from: fixed per network, or the figure of each tuning."""
    used = {cohort.network for cohort in plan.cohorts.values() if cohort.needs_gpu}
    return {
        "caption": CAPTION,
        "tuned": plan.config["protocol"]["training"]["hyperparameters"] == "tuned",
        "fixed": {name: plan.protocol.training(BASE, name) for name in sorted(used)},
        "figures": [
            {
                "name": name,
                "title": plan.tuning_title(name),
                "image": data_url("image/svg+xml", results / "figures" / "tuning" / f"{name}.svg"),
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


def write_page(plan: Plan, results: Path, out: Path) -> None:
    """Write what `render_page` returns."""
    write_text(out, render_page(plan, results))
