"""Rules of the workflow that evaluate.

Imports are made inside the commands, so that a command loads only what it needs.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import typer

from mdpu.cli.common import Configs, Metrics, Out, Summary, Table, app, load_plan

PANEL = "Rules: evaluation"


@app.command(rich_help_panel=PANEL)
def collect(
    config: Configs,
    histories: Annotated[Path, typer.Option(metavar="DIR", help="Folder of histories.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Metrics to write, .parquet; .csv goes beside.")],
    summary: Annotated[Path, typer.Option(metavar="FILE", help="CSV of mean and deviation per cell to write.")],
    runs: Annotated[Path, typer.Option(metavar="FILE", help="CSV of what each run reached and came from to write.")],
) -> None:
    """Gather all histories into one tidy table, and summarize it per run and per cell."""
    from mdpu.evaluate.collect import collect, describe_runs, run_accuracies, summarize
    from mdpu.files import write_csv, write_table

    chosen = load_plan(config)
    metrics = collect([histories / f"{name}.parquet" for name in chosen.cohorts], chosen.runs)
    write_table(metrics, out)
    accuracies = run_accuracies(metrics, chosen.protocol.reporting())
    write_csv(metrics, out.with_suffix(".csv"), exact=True)
    write_csv(summarize(accuracies), summary)
    write_csv(describe_runs(metrics, accuracies, chosen), runs)


@app.command(rich_help_panel=PANEL)
def compare(
    config: Configs,
    summary: Summary,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json with totals goes beside.")],
) -> None:
    """Give each of the paper's 504 numbers a verdict, in every reading of its dataset."""
    from mdpu.evaluate.comparison import compare, spreads, totals
    from mdpu.files import provenance, read_csv, write_csv, write_json

    started = time.perf_counter()
    chosen = load_plan(config)
    rule = chosen.config["comparison"]
    found = compare(read_csv(summary), chosen.published_names, rule)
    write_csv(found, out)
    facts = {
        "totals": totals(found).to_dict("records"),
        "spreads": spreads(found, rule["level"]).to_dict("records"),
    }
    write_json(out.with_suffix(".json"), {**facts, **provenance(started, [summary], rule=rule)})


@app.command(rich_help_panel=PANEL)
def claims(
    config: Configs,
    summary: Summary,
    metrics: Metrics,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json goes beside.")],
    cases: Annotated[Path, typer.Option(metavar="FILE", help="CSV of every case of every claim to write.")],
) -> None:
    """Check the claims of the paper's prose on our runs and on the paper's numbers."""
    from mdpu.evaluate.claims import check_claims
    from mdpu.evaluate.evidence import our_evidence, paper_evidence
    from mdpu.files import provenance, read_csv, read_table, write_csv, write_json

    started = time.perf_counter()
    chosen = load_plan(config)
    rule, reporting = chosen.config["comparison"], chosen.protocol.reporting()
    ours = our_evidence(chosen, read_csv(summary), read_table(metrics))
    checked, of_claims = check_claims(ours, paper_evidence(rule))
    write_csv(checked, out)
    write_csv(of_claims, cases)
    facts = provenance(started, [summary, metrics], rule=rule, reporting=reporting)
    rows = checked.astype(object).where(checked.notna(), None).to_dict("records")
    write_json(out.with_suffix(".json"), {"claims": rows, **facts})


@app.command(rich_help_panel=PANEL)
def ranks(
    config: Configs,
    summary: Summary,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json with the tests goes beside.")],
    figure: Annotated[Path, typer.Option(metavar="FILE", help="SVG to write; .pdf goes beside.")],
) -> None:
    """Rank the methods, test the ranks, and draw critical-difference diagrams."""
    from mdpu.evaluate.ranks import rank_table, rankings
    from mdpu.files import provenance, read_csv, write_csv, write_json
    from mdpu.report.figures.common import save_figure
    from mdpu.report.rank_figure import rank_figure

    started = time.perf_counter()
    chosen = load_plan(config)
    found = rankings(read_csv(summary), chosen.table_rows, 1 - chosen.config["comparison"]["level"])
    write_csv(rank_table(found), out)
    facts = {f"{source}, by {unit}": ranking and ranking.facts() for (source, unit), ranking in found.items()}
    write_json(out.with_suffix(".json"), {"rankings": facts, **provenance(started, [summary])})
    save_figure(rank_figure(found), figure)


@app.command(rich_help_panel=PANEL)
def audit(
    config: Configs,
    labels: Annotated[Path, typer.Option(metavar="DIR", help="Folder of labels, with their counts.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json with all cases goes beside.")],
) -> None:
    """Audit the paper: recompute from its numbers, the images and the formulas what can be; list the rest."""
    from mdpu.evaluate.audit import audit, audit_table
    from mdpu.files import provenance, read_json, write_csv, write_json

    started = time.perf_counter()
    chosen = load_plan(config)
    stated = [name for name in chosen.datasets if chosen.published_names[name] == name]
    files = {name: (chosen.layout.images(name).with_suffix(".json"), labels / f"{name}.json") for name in stated}
    findings = audit(
        {
            name: {"description": read_json(description), "counts": read_json(counts)["counts"]}
            for name, (description, counts) in files.items()
        }
    )
    write_csv(audit_table(findings), out)
    facts = provenance(started, [path for both in files.values() for path in both])
    write_json(out.with_suffix(".json"), {"findings": [dataclasses.asdict(f) for f in findings], **facts})


@app.command("largest-n", rich_help_panel=PANEL)
def largest_n(
    config: Configs,
    labels: Annotated[Path, typer.Option(metavar="DIR", help="Folder of labels; read where config has no counts.")],
    out: Table,
) -> None:
    """Tell how many tuples each dataset can give when no image is drawn twice, beside the number that is used."""
    from mdpu.evaluate.largest_n import largest_n_table, training_counts
    from mdpu.files import write_csv, write_text
    from mdpu.report.largest_n import largest_n_latex, largest_n_markdown

    chosen = load_plan(config)
    table = largest_n_table(chosen, training_counts(chosen, labels))
    write_csv(table, out)
    datasets = chosen.titles(table["dataset"])
    for suffix, render in ((".md", largest_n_markdown), (".tex", largest_n_latex)):
        write_text(out.with_suffix(suffix), render(table, datasets))


@app.command(rich_help_panel=PANEL)
def verify(
    summary: Summary,
    expected: Annotated[Path, typer.Option(metavar="FILE", help="CSV of expected means and tolerances.")],
    out: Out,
) -> None:
    """Compare the numbers with those shipped with the repository."""
    from mdpu.evaluate.verify import verify
    from mdpu.files import read_csv, write_json

    write_json(out, verify(read_csv(summary), expected))
