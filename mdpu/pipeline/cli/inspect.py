"""Look at theory and plans.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from mdpu.pipeline.cli.common import Configs, Prior, RunOrCell, TupleSize, app, load_plan

PANEL = "Look at theory and plans"
SCRATCH = Path(".snakemake/retrained")
OwnConfigs = Annotated[
    list[Path] | None,
    typer.Option(
        "--config", metavar="FILE", help="Configuration, repeatable; that of the newest results with NAME unless given."
    ),
]


@app.command(rich_help_panel=PANEL)
def coefficients(tuple_size: TupleSize, prior: Prior) -> None:
    """Print a, b and a pi_- - b pi_+ (Lemma 6) as JSON, with the weights of the risk estimator."""
    from mdpu import theory

    mix = theory.coefficients(tuple_size, prior)
    facts = {
        "tuple_size": tuple_size,
        "prior": prior,
        **dataclasses.asdict(mix),
        "tuple_law": theory.tuple_law(tuple_size, prior).tolist(),
        "risk_weights": dataclasses.asdict(theory.risk_weights(tuple_size, prior)),
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
    name: RunOrCell,
    config: OwnConfigs = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Scratch folder to train into.")] = SCRATCH,
    alone: Annotated[bool, typer.Option("--alone", help="Leave out the runs that share its minibatches.")] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; the configuration's unless given.")] = None,
) -> None:
    """Train a run, or the runs of a cell, again and compare the histories with the recorded ones.

    On a CPU of the same kind they are the same bit for bit, with or without the runs that share its minibatches. A GPU,
    another kind of CPU or other software rounds differently, and training magnifies the difference. Exits with status 1
    if any bit differs but the last of an accuracy.
    """
    from mdpu.pipeline.console.folders import configuration_of
    from mdpu.pipeline.evaluate.collect import run_accuracies
    from mdpu.pipeline.train import retrain

    chosen = load_plan(config or [configuration_of(name)])
    differs = False
    for done in retrain(chosen, name, out, alone, threads):
        old, new = (
            run_accuracies(history, chosen.protocol.reporting())["accuracy"].item()
            for history in (done.recorded, done.again)
        )
        print(f"{done.run.name}: accuracy {old:.4f} % recorded, {new:.4f} % retrained; ", end="")
        if done.differences:
            differs = True
            print("largest differences " + ", ".join(f"{key} {value:.3g}" for key, value in done.differences.items()))
        else:
            print(f"{len(done.recorded)} epochs equal bit for bit")
    if differs:
        raise typer.Exit(1)


SampleSize = Annotated[int, typer.Option("--runs", min=1, help="How many finished runs to draw.")]
SampleSeed = Annotated[int, typer.Option("--seed", help="Which ones.")]


@app.command(rich_help_panel=PANEL)
def sample(config: Configs, runs: SampleSize = 5, seed: SampleSeed = 0) -> None:
    """Draw finished runs, and list the files that training them again needs, one per line."""
    from mdpu.pipeline.evaluate.retrained import draw_runs, inputs_of

    chosen = load_plan(config)
    print("\n".join(map(str, inputs_of(chosen, draw_runs(chosen, runs, seed)))))


@app.command(rich_help_panel=PANEL)
def verify_sample(
    config: Configs,
    shipped: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the shipped rows of runs.")],
    runs: SampleSize = 5,
    seed: SampleSeed = 0,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Scratch folder to train into.")] = SCRATCH,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; the configuration's unless given.")] = None,
    rows: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV of what came out to write, too.")] = None,
) -> None:
    """Train the runs that `sample` draws again, each by itself, and compare them with the finished ones.

    On a CPU of the same kind they are the same bit for bit. Elsewhere the accuracy may move as far as other rounding
    moved that of shipped trials. Exits with status 1 if one moved further.
    """
    from mdpu.pipeline.evaluate.retrained import draw_runs, rounding_tolerances, verified_rows, verify_runs
    from mdpu.pipeline.files import read_csv, write_csv

    chosen = load_plan(config)
    tolerances = rounding_tolerances(read_csv(shipped / "runs.csv"))
    verified = []
    for done in verify_runs(chosen, draw_runs(chosen, runs, seed), tolerances, out, threads):
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
