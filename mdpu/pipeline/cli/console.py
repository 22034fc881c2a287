"""What `./run` asks for before and after it works.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdpu.pipeline.cli.common import Configs, Mirror, app, load_plan

PANEL = "For ./run"


@app.command(rich_help_panel=PANEL)
def select(
    experiment: Annotated[str, typer.Argument(help="Experiment of ./run: quick, paper or reference.")],
    file: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Configuration to lay over it; repeatable.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="YAML value to lay over the files.")
    ] = None,
    files: Annotated[
        bool, typer.Option("--files", help="Insist on the files that must be there or be fetched.")
    ] = False,
    mirror: Mirror = None,
) -> None:
    """Write the configuration of a selection in its own folder of results, and print its path."""
    from mdpu.pipeline import experiments
    from mdpu.pipeline.config import select as select_config
    from mdpu.pipeline.console.preflight import check_files
    from mdpu.pipeline.plan import Plan

    plan = Plan(select_config(experiment, file or [], set_ or []))
    experiments.check(plan.config)
    if files:
        check_files(plan, plan.config["mirror"] or mirror)
    print(plan.layout.write_config(current=files))


@app.command(rich_help_panel=PANEL)
def outcome(
    config: Configs,
    shipped: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of shipped rows of runs, to compare with.")
    ] = None,
) -> None:
    """Say what came out: verdicts, what has changed since the last time, whether expected numbers are confirmed."""
    from mdpu.pipeline.console.outcome import compare_shipped, report_outcome

    plan = load_plan(config)
    lines, confirmed = report_outcome(plan)
    if shipped is not None:
        said, same = compare_shipped(plan.layout.results, shipped)
        lines, confirmed = [said, *lines], confirmed and same
    for line in lines:
        print(f"run: {line}")
    if not confirmed:
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def diff(
    before: Annotated[str, typer.Argument(help="Results: a folder, or its name below results/.")],
    after: Annotated[str, typer.Argument(help="Other results.")],
) -> None:
    """Say which verdicts flipped and which numbers moved from one result to another."""
    from mdpu.pipeline.console.folders import find_results
    from mdpu.pipeline.console.outcome import describe_difference

    print("\n".join(describe_difference(find_results(before), find_results(after))))


@app.command(rich_help_panel=PANEL)
def forecast(config: Configs) -> None:
    """Say how many runs would be trained and reused, and what that takes: hours on this machine, download, disk."""
    from mdpu.pipeline.console.forecast import forecast as lines_of

    print("\n".join(lines_of(load_plan(config))))


@app.command(rich_help_panel=PANEL)
def crate(
    config: Configs,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Zip to write; results/<name>.crate.zip unless given.")
    ] = None,
) -> None:
    """Write the results of a configuration as an RO-Crate with the provenance of every number."""
    from mdpu.pipeline.console.crate import write_crate

    plan = load_plan(config)
    path = out or plan.layout.results.with_name(f"{plan.layout.results.name}.crate.zip")
    write_crate(plan, path)
    print(path)


@app.command(rich_help_panel=PANEL)
def croissant(
    config: Configs,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to write to; results/<name>/croissant unless given.")
    ] = None,
) -> None:
    """Write Croissant metadata of every source of images and of every dataset's splits."""
    from mdpu.pipeline.croissant import write_croissant

    plan = load_plan(config)
    for path in write_croissant(plan, out or plan.layout.results / "croissant"):
        print(path)
