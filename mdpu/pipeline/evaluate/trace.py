"""From a number back to what made it: rows of the metrics, split, seed, history, and a command that retrains it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.pipeline.cache import cache_of, identity
from mdpu.pipeline.evaluate.collect import read_histories, run_accuracies, summarize
from mdpu.pipeline.files import read_json
from mdpu.pipeline.plan import AXES, Plan, Run


def trace(plan: Plan, name: str, config: Sequence[Path]) -> dict[str, Any]:
    """Return all that led to the number of a run, or of a cell (a run's name without the seed).

    `config` are the configuration's files, for the commands. Missing numbers are None. Raises `UserError` if the
    configuration has no such run or cell, or a file of the results is missing.
    """
    runs = plan.find_runs(name)
    histories = read_histories(runs, plan.layout.metrics)
    by_run = dict(list(histories.groupby(list(AXES))))
    traced = [_trace_run(plan, run, by_run.get(tuple(vars(run).values())), config) for run in runs]
    (cell,) = summarize(run_accuracies(histories, plan.protocol.reporting())).to_dict("records")
    return {
        "name": name,
        "metrics": str(plan.layout.metrics),
        "accuracy": _number(cell["mean"]),
        "std": _number(cell["std"]),
        "diverged": cell["diverged"],
        "runs": traced,
    }


def _trace_run(plan: Plan, run: Run, rows: pd.DataFrame | None, config: Sequence[Path]) -> dict[str, Any]:
    if rows is None:
        raise UserError(
            f"{plan.layout.metrics} has no rows of {run.name}; run the workflow with this configuration first"
        )
    (reached,) = run_accuracies(rows, plan.protocol.reporting()).to_dict("records")
    job = plan.job_of(run).name
    facts = read_json(plan.layout.manifest(job, identity(plan, job)))
    finished = facts["runs"][run.name]
    made = next(group for group in facts["trained"] if run.name in group["runs"])
    files = " ".join(f"--config {shlex.quote(str(path))}" for path in config)
    conditions = [f"{axis} == {json.dumps(value)}" for axis, value in vars(run).items()]
    return {
        "run": run.name,
        "seed": run.seed,
        "accuracy": _number(reached["accuracy"]),
        "epochs_averaged": [int(reached["first_epoch"]), int(reached["last_epoch"])],
        "risk_of_last_epoch": _number(rows["risk"].iloc[-1]),
        "rows": " and ".join(conditions),
        "epochs": len(rows),
        "split": str(plan.layout.split(run.split)),
        "split_sha256": facts["splits"][run.split]["sha256"],
        "fingerprint": finished,
        "finished": str(cache_of(plan).place(finished)),
        "job": job,
        "provenance": {key: value for key, value in made.items() if key != "runs"},
        "retrain": f"python -m mdpu retrain {run.name} {files} --out scratch",
    }


def _number(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def trace_text(traced: dict[str, Any]) -> str:
    """Return what `trace` returned as text."""

    def percent(value: float | None) -> str:
        return "diverged" if value is None else f"{value:.4f} %"

    several = len(traced["runs"]) > 1
    deviation = "" if traced["std"] is None else f" ± {traced['std']:.4f}"
    lines = [
        traced["name"],
        f"  accuracy    {percent(traced['accuracy'])}{deviation}, {len(traced['runs'])} trials",
    ] * several
    for run in traced["runs"]:
        first, last = run["epochs_averaged"]
        made = run["provenance"]
        packages = ", ".join(f"{name} {version}" for name, version in made["packages"].items() if name != "mdpu")
        risk = "none" if run["risk_of_last_epoch"] is None else f"{run['risk_of_last_epoch']:.6g}"
        lines += [
            run["run"],
            f"  accuracy    {percent(run['accuracy'])}, mean of epochs {first} to {last}",
            f"  risk        {risk}, in the last epoch",
            f"  rows        {run['epochs']} of {traced['metrics']}, pandas query: {run['rows']}",
            f"  split       {run['split']}",
            f"              sha256 {run['split_sha256']}; drawn again to train",
            f"  seed        {run['seed']}",
            f"  finished    {run['finished']}, fingerprint {run['fingerprint']}, job {run['job']}",
            f"  made by     commit {made['commit']} on {made['device']}, {made['machine']}",
            f"              python {made['python']}, {packages}",
            f"  retrain it  {run['retrain']}",
        ]
    return "\n".join(lines)
