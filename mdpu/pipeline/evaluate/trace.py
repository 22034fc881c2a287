"""From a number back to what made it: rows of the metrics, split, seed, history, and a command that retrains it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from mdpu.errors import UserError
from mdpu.pipeline.cache import cache_of, identity
from mdpu.pipeline.evaluate.collect import read_histories, run_accuracies, summarize
from mdpu.pipeline.files import read_json
from mdpu.pipeline.plan import AXES, Plan, Run


def trace(plan: Plan, name: str, config: Sequence[Path]) -> str:
    """Return all that led to the number of a run, or of a cell (a run's name without the seed), as text.

    `config` are the configuration's files, for the commands. Raises `UserError` if the configuration has no such run or
    cell, or a file of the results is missing.
    """
    runs = plan.find_runs(name)
    histories = read_histories(runs, plan.layout.metrics)
    by_run = dict(list(histories.groupby(list(AXES))))
    traced = [line for run in runs for line in _trace_run(plan, run, by_run.get(tuple(vars(run).values())), config)]
    if len(runs) > 1:
        (cell,) = summarize(run_accuracies(histories, plan.protocol.reporting())).to_dict("records")
        deviation = "" if pd.isna(cell["std"]) else f" ± {cell['std']:.4f}"
        traced = [name, f"  accuracy    {_percent(cell['mean'])}{deviation}, {len(runs)} trials", *traced]
    return "\n".join(traced)


def _trace_run(plan: Plan, run: Run, rows: pd.DataFrame | None, config: Sequence[Path]) -> list[str]:
    """Return the lines about one run, of which `rows` are the history."""
    metrics = plan.layout.metrics
    if rows is None:
        raise UserError(f"{metrics} has no rows of {run.name}; run the workflow with this configuration first")
    (reached,) = run_accuracies(rows, plan.protocol.reporting()).to_dict("records")
    risk = rows["risk"].iloc[-1]
    job = plan.job_of(run).name
    facts = read_json(plan.layout.manifest(job, identity(plan, job)))
    fingerprint = facts["runs"][run.name]
    made = next(group for group in facts["trained"] if run.name in group["runs"])
    packages = ", ".join(f"{name} {version}" for name, version in made["packages"].items() if name != "mdpu")
    query = " and ".join(f"{axis} == {json.dumps(value)}" for axis, value in vars(run).items())
    files = " ".join(f"--config {shlex.quote(str(path))}" for path in config)
    return [
        run.name,
        f"  accuracy    {_percent(reached['accuracy'])}, "
        f"mean of epochs {reached['first_epoch']} to {reached['last_epoch']}",
        f"  risk        {'none' if pd.isna(risk) else f'{risk:.6g}'}, in the last epoch",
        f"  rows        {len(rows)} of {metrics}, pandas query: {query}",
        f"  split       {plan.layout.split(run.split)}",
        f"              sha256 {facts['splits'][run.split]['sha256']}; drawn again to train",
        f"  seed        {run.seed}",
        f"  finished    {cache_of(plan).place(fingerprint)}, fingerprint {fingerprint}, job {job}",
        f"  made by     commit {made['commit']} on {made['device']}, {made['machine']}",
        f"              python {made['python']}, {packages}",
        f"  retrain it  python -m mdpu retrain {run.name} {files} --out scratch",
    ]


def _percent(accuracy: float) -> str:
    return "diverged" if pd.isna(accuracy) else f"{accuracy:.4f} %"
