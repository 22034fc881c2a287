"""How long do aggregation, comparison and figures take when all of the paper's cells have been run?

    python benchmarks/aggregation.py

Writes synthetic histories of every run of Tables II-V and of the figures of runs (all datasets in both readings,
three trials, 100 epochs), then runs the commands of the workflow from `collect` on, one after the other, as the
workflow does, and prints the wall and processor seconds and the peak memory of each. The histories scatter about the
published accuracies, so that every verdict occurs; they say nothing about any method. With --out the files stay.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.experiments import inputs
from mdpu.pipeline.files import REPOSITORY, write_json, write_table
from mdpu.pipeline.plan import AXES, Plan

TABLES = ("table2", "table3", "table4", "table5")
FIGURES = ("curves", "size", "loss")  # kinds of figures that show runs of the paper's own experiments


def make_plan(folder: Path) -> tuple[Plan, Path]:
    """Return the plan of the paper's tables and figures with results in `folder`, and its configuration file."""
    config = load_config([REPOSITORY / "config.yaml"])
    defined = config["definitions"]["experiments"]
    figures = [name for name, spec in defined.items() if spec["kind"] in FIGURES and name.startswith("figure")]
    config |= {"name": "synthetic", "results_dir": str(folder), "experiments": [*TABLES, *figures]}
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return Plan(config), path


def write_histories(plan: Plan) -> int:
    """Write a history file per cohort; return the number of rows.

    A run's accuracy rises to its cell's published mean plus a trial's deviation, and a URE's falls from epoch 40 on
    by two points; the risk of the methods falls, the URE's below zero.
    """
    random = np.random.default_rng(0)
    cells = published_cells().set_index(["tuple_size", "n", "prior", "dataset", "method"])
    published = cells[["published_mean", "published_std"]].to_dict("index")
    epochs = np.arange(1, plan.config["protocol"]["training"]["epochs"] + 1)
    rows = 0
    for cohort in plan.cohorts.values():
        frames = []
        for run in cohort.runs:
            key = (run.tuple_size, run.n, run.prior, plan.published_names[run.dataset], run.method)
            cell = published.get(key, {"published_mean": 90.0, "published_std": 1.0})
            level = cell["published_mean"] + 1.5 * cell["published_std"] * random.normal()
            accuracy = level - 30 * np.exp(-epochs / 8) + random.normal(size=epochs.size) / 3
            risk = 0.7 * np.exp(-epochs / 10) + random.normal(size=epochs.size) / 100
            if run.method == "ure":
                fall = np.maximum(0, epochs - 40) / 30
                accuracy, risk = accuracy + 2 - fall, risk - fall**2
            rates = ("true_positive_rate", "true_negative_rate", "raw_accuracy", "accuracy")
            terms = ("tuple_positive", "tuple_negative", "unlabeled_positive", "unlabeled_negative")
            axes = {axis: getattr(run, axis) for axis in AXES}
            objective = np.abs(risk) if run.method in ("relu", "abs") else risk
            measures = {"objective": objective, "risk": risk, **{f"risk_{term}": risk / 4 for term in terms}}
            frames.append(pd.DataFrame({**axes, "epoch": epochs, **measures, **dict.fromkeys(rates, accuracy / 100)}))
        histories = pd.concat(frames, ignore_index=True)
        write_table(histories, plan.layout.history(cohort.name))
        rows += len(histories)
    return rows


def write_descriptions(plan: Plan) -> None:
    """Write the counts of labels and the descriptions of images that the audit reads, as the configuration has them."""
    for name in plan.datasets:
        definition = plan.dataset(name)
        sides = [*definition["positive"], *definition["negative"], *definition.get("dropped", [])]
        totals = {part: sum(counts.values()) for part, counts in definition["counts"].items()}
        write_json(plan.layout.labels(name).with_suffix(".json"), {"counts": definition["counts"]})
        if plan.published_names[name] == name:  # its source is used whole
            write_json(
                plan.layout.images(name).with_suffix(".json"), {**totals, "classes": [str(side) for side in sides]}
            )


def commands(plan: Plan, config: Path) -> dict[str, list[str]]:
    """Return the workflow's commands from `collect` on, by name."""
    results = plan.layout.results
    configured = ["--config", str(config)]
    metrics, summary = ["--metrics", f"{results}/metrics.parquet"], ["--summary", f"{results}/summary.csv"]
    found = {"collect": ["collect", *configured, *summary, "--histories", f"{results}/histories", "--out", metrics[1]]}
    found["collect"] += ["--runs", f"{results}/runs.csv"]
    for name in plan.experiments:
        source = [word for read, path in inputs(plan, name).items() for word in (f"--{read}", str(path))]
        found[f"show {name}"] = ["show", *configured, "--experiment", name, *source, "--out", str(results)]
    found["compare"] = ["compare", *configured, *summary, "--out", f"{results}/comparison.csv"]
    found["claims"] = ["claims", *configured, *summary, *metrics, "--out", f"{results}/claims.csv"]
    found["claims"] += ["--cases", f"{results}/claims_cases.csv"]
    found["ranks"] = [
        "ranks",
        *configured,
        *summary,
        "--out",
        f"{results}/ranks.csv",
        "--figure",
        f"{results}/ranks.svg",
    ]
    found["audit"] = ["audit", *configured, "--labels", f"{results}/labels", "--out", f"{results}/audit.csv"]
    return found


def measure(arguments: list[str]) -> np.ndarray:
    """Run one command of mdpu; return its wall seconds, its processor seconds, and its peak memory in MiB."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "mdpu", *arguments], cwd=REPOSITORY)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"mdpu {' '.join(arguments)} failed")
    return np.array([time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024])


def main() -> None:
    """Print one row per command, then the sums of the seconds and the highest memory."""
    parser = argparse.ArgumentParser(description="Time aggregation, comparison and figures of all published cells.")
    parser.add_argument("--out", type=Path, help="folder to work in and leave the files in")
    chosen = parser.parse_args().out
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        plan, config = make_plan(folder)
        rows = write_histories(plan)
        write_descriptions(plan)
        print(f"{len(plan.runs):,} runs, {rows:,} rows of histories\n")
        print("| command | s | processor s | MiB |\n| --- | ---: | ---: | ---: |", flush=True)
        measured = []
        for name, arguments in commands(plan, config).items():
            measured.append(measure(arguments))
            print("| {} | {:.1f} | {:.1f} | {:.0f} |".format(name, *measured[-1]), flush=True)
        print("| all | {:.1f} | {:.1f} | {:.0f} |".format(*np.sum(measured, 0)[:2], np.max(measured, 0)[2]))


if __name__ == "__main__":
    main()
