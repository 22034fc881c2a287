"""Look at theory and plans.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mdpu.pipeline.cli.common import Configs, Prior, RunOrCell, TupleSize, app, load_plan

PANEL = "Look at theory and plans"
SCRATCH = Path(".snakemake/retrained")
SHIPPED_ROWS = Path("results/reference")
OwnConfigs = Annotated[
    list[Path] | None,
    typer.Option(
        "--config", metavar="FILE", help="Configuration, repeatable; that of the newest results with NAME unless given."
    ),
]


@app.command(rich_help_panel=PANEL)
def coefficients(tuple_size: TupleSize, prior: Prior) -> None:
    """Print a, b and a pi_- - b pi_+ (Lemma 6) as JSON, with the weights of the risk estimator."""
    from mdpu.law import Law

    law = Law.dominant(tuple_size)
    facts = {
        "tuple_size": tuple_size,
        "prior": prior,
        **law.coefficients(prior)._asdict(),
        "tuple_law": law.counts(prior)[: (tuple_size - 1) // 2 : -1].tolist(),
        "risk_weights": law.risk_weights(prior)._asdict(),
    }
    print(json.dumps(facts, indent=2))


@app.command(rich_help_panel=PANEL)
def plan(
    config: Configs,
    runs: Annotated[bool, typer.Option("--runs", help="List every run by name instead, one per line.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Merged over the files, like --config of Snakemake."),
    ] = None,
) -> None:
    """List the runs and cohorts that a configuration asks for, with counts, as JSON."""
    chosen = load_plan(config, set_ or [])
    if runs:
        print("\n".join(run.name for run in chosen.runs))
    else:
        print(json.dumps(chosen.summary(), indent=2))


@app.command(rich_help_panel=PANEL)
def trace(
    name: RunOrCell,
    config: OwnConfigs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Print the sources of a number: rows of the metrics, splits, seeds, histories, commands to retrain its runs."""
    from mdpu.pipeline.console.folders import configuration_of
    from mdpu.pipeline.evaluate.trace import trace, trace_text

    config = config or [configuration_of(name)]
    traced = trace(load_plan(config), name, config)
    print(json.dumps(traced, indent=2) if as_json else trace_text(traced))


@app.command(rich_help_panel=PANEL)
def retrain(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Of a run or of a cell.")] = None,
    config: OwnConfigs = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Draw so many runs instead.")] = None,
    seed: Annotated[int, typer.Option(help="Which runs are drawn.")] = 0,
    shipped: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of shipped rows: how far does rounding move an accuracy?")
    ] = SHIPPED_ROWS,
    rows: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV of what came out to write, too.")] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Scratch folder to train into.")] = SCRATCH,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; the configuration's unless given.")] = None,
) -> None:
    """Train finished runs again, each by itself, and compare them with the recorded ones.

    On a CPU of the same kind they are the same bit for bit. A GPU, another kind of CPU or other software rounds
    differently, and training magnifies the difference: then the accuracy may move as far as other rounding moved that
    of shipped trials. Exits with status 1 if one moved further.
    """
    from mdpu.errors import UserError
    from mdpu.pipeline.console.folders import configuration_of
    from mdpu.pipeline.evaluate.retrained import draw_runs, rounding_tolerances, verified_rows, verify_runs
    from mdpu.pipeline.files import read_csv, write_csv

    if (name is None) == (sample is None) or (name is None and not config):
        raise UserError("give the name of a run or a cell, or --sample and --config")
    chosen = load_plan(config or [configuration_of(str(name))])
    runs = chosen.find_runs(name) if name else draw_runs(chosen, sample or 0, seed)
    tolerances = rounding_tolerances(read_csv(shipped / "runs.csv"))
    verified = []
    for done in verify_runs(chosen, runs, tolerances, out, threads):
        print(done, flush=True)
        verified.append(done)
        if rows is not None:
            write_csv(verified_rows(verified), rows)
    equal, agree = sum(done.equal for done in verified), sum(done.agrees for done in verified)
    print(f"{agree} of {len(verified)} runs came out again, {equal} of them bit for bit")
    if agree < len(verified):
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def check(
    results: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of results: results/<name>.")],
) -> None:
    """Compare every result and its inputs with what was written; exit with status 1 if anything differs.

    `./run` remakes every file that has changed, is missing, or was made from another version of an input.
    """
    from mdpu.pipeline.check import EDITED, check_results

    differs = False
    for folder in results:
        number, findings = check_results(folder)
        for finding in findings:
            print(finding)
        broken = [finding for finding in findings if finding.what != EDITED]
        differs = differs or bool(broken)
        print(f"{folder}: {number} files compared, " + (f"{len(broken)} findings" if broken else "all as written"))
    if differs:
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def accept(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that you edited.")]) -> None:
    """Keep files as they are now: from now on they count as written, marked as edited.

    `./run` remakes every file that was made from them.
    """
    from mdpu.pipeline.files import accept

    for file in files:
        accept(file)
