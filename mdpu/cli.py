"""The command line: one command per rule of the workflow, each with explicit paths.

Imports are made inside the commands, so that a command loads only what it needs: drawing a split does
not wait for torch.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mdpu.errors import UserError

if TYPE_CHECKING:
    from mdpu.experiment import Plan, Run

app = typer.Typer(
    name="mdpu",
    help="Learning from M-tuple dominant positive and unlabeled data. Every rule of the workflow is one command here.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

INSPECT, RULES = "Look at theory and plans", "Rules of the workflow, in order"
CARRY = "Carry finished runs from one machine to another"

Configs = Annotated[
    list[Path],
    typer.Option("--config", metavar="FILE", help="Configuration; give it again to lay another file over the first."),
]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write.")]
Drawing = Annotated[Path, typer.Option("--out", metavar="FILE", help="SVG to write; .pdf goes beside.")]
Mirror = Annotated[
    str | None,
    typer.Option(
        envvar="MDPU_MIRROR",
        metavar="PLACE",
        help="http(s) address or folder, laid out as data_dir, to fetch from unless the configuration has a `mirror`.",
    ),
]
TupleSize = Annotated[int, typer.Option(help="Tuple size M.")]
Prior = Annotated[float, typer.Option(help="Class prior pi_+.")]


@app.command(rich_help_panel=INSPECT)
def coefficients(tuple_size: TupleSize, prior: Prior) -> None:
    """Print a, b and a pi_- - b pi_+ (Lemma 6) as JSON, with the weights of the risk estimator."""
    from mdpu import theory

    found = theory.coefficients(tuple_size, prior)
    facts = {
        "tuple_size": tuple_size,
        "prior": prior,
        **dataclasses.asdict(found),
        "tuple_law": theory.tuple_law(tuple_size, prior).tolist(),
        "risk_weights": dataclasses.asdict(theory.risk_weights(tuple_size, prior)),
    }
    print(json.dumps(facts, indent=2))


@app.command(rich_help_panel=INSPECT)
def plan(
    config: Configs,
    runs: Annotated[bool, typer.Option("--runs", help="List every run by name, one a line, instead.")] = False,
) -> None:
    """List the runs and cohorts that a configuration asks for, with counts, as JSON."""
    chosen = _plan(config)
    if runs:
        print("\n".join(run.name for run in chosen.runs))
    else:
        print(json.dumps(chosen.summary(), indent=2))


@app.command(rich_help_panel=INSPECT)
def trace(
    name: Annotated[str, typer.Argument(help="Run, as `plan --runs` lists them, or cell: a run's without its seed.")],
    config: Configs,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Print what made a number: rows of the metrics, splits, seeds, histories, and commands that retrain its runs."""
    from mdpu.evaluate.trace import trace, trace_text

    found = trace(_plan(config), name, config)
    print(json.dumps(found, indent=2) if as_json else trace_text(found))


@app.command(rich_help_panel=INSPECT)
def retrain(
    name: Annotated[str, typer.Argument(help="Run, as `plan --runs` lists them, or cell: a run's without its seed.")],
    config: Configs,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Scratch folder to train into.")],
    alone: Annotated[bool, typer.Option("--alone", help="Leave out the runs that share its minibatches.")] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; the configuration's unless given.")] = None,
) -> None:
    """Train a run, or the runs of a cell, afresh and compare the histories with the recorded ones.

    The runs that share its minibatches train with it as they did, because products of several matrices round otherwise
    than products of one: on a CPU with as many threads as then, the history is the same bit for bit. `--alone`, a GPU
    or other software round differently, and training magnifies that. Exits with status 1 if any bit differs.
    """
    import pandas as pd

    from mdpu.evaluate.collect import run_accuracies
    from mdpu.evaluate.trace import compare_histories
    from mdpu.experiment import AXES
    from mdpu.files import read_table
    from mdpu.learn.store import RunStore

    chosen = _plan(config)
    differs = False
    for run in chosen.find_runs(name):
        cohort, tuned = chosen.cohort_of(run), chosen.tuning_name(run)
        company = [other for other in cohort.runs if other == run or (other.split == run.split and not alone)]
        for other in company:  # what an earlier call left in this folder
            RunStore(out / "runs").path(other).unlink(missing_ok=True)
        new = out / f"{run.name}.parquet"
        train(
            config,
            cohort.name,
            chosen.images(run.dataset),
            chosen.labels(run.dataset),
            chosen.results / "splits",
            out / "runs",
            out / "checkpoints",
            new,
            threads or chosen.config["threads"],
            chosen.tuned(tuned) if tuned else None,
            [other.name for other in company],
        )
        old, again = (
            table.merge(pd.DataFrame([run]), on=list(AXES))
            for table in (read_table(chosen.history(cohort.name)), read_table(new))
        )
        differences = compare_histories(old, again)
        reporting = chosen.config["protocol"]["reporting"]
        accuracies = [run_accuracies(history, reporting)["accuracy"].item() for history in (old, again)]
        print(f"{run.name}: accuracy {accuracies[0]:.4f} % recorded, {accuracies[1]:.4f} % retrained; ", end="")
        if differences:
            differs = True
            print("largest differences " + ", ".join(f"{key} {value:.3g}" for key, value in differences.items()))
        else:
            print(f"{len(old)} epochs equal bit for bit")
    if differs:
        raise typer.Exit(1)


Store = Annotated[Path, typer.Option("--store", metavar="DIR", help="Folder of finished runs: results/<name>/runs.")]


@app.command(rich_help_panel=CARRY)
def pack(store: Store, out: Out) -> None:
    """Write all finished runs into one file, each with its fingerprint and origin."""
    from mdpu.learn.store import RunStore

    print(f"{RunStore(store).pack(out)} finished runs packed into {out}")


@app.command(rich_help_panel=CARRY)
def unpack(
    packed: Annotated[Path, typer.Argument(metavar="FILE", help="What `pack` wrote.")],
    store: Store,
) -> None:
    """Put packed runs into a folder of finished runs, where training takes those that it would give the same.

    A run whose settings, images, labels, split or training code are others now is trained all the same. What the folder
    holds is left as it is.
    """
    from mdpu.learn.store import RunStore

    new, kept = RunStore(store).unpack(packed)
    print(f"{new} finished runs unpacked into {store}" + (f", {kept} left as they are there" if kept else ""))


@app.command(rich_help_panel=RULES)
def dataset(
    source: Annotated[str, typer.Argument(help="Source of images: a name, e.g. mnist, or a path to your own.")],
    config: Configs,
    out: Out,
    mirror: Mirror = None,
) -> None:
    """Fetch and verify a source; write its images, with a description (.json) beside them.

    Raw downloads go to the configuration's `data_dir`, and are taken from there when they are whole.
    """
    from mdpu.data.images import write_images
    from mdpu.data.sources import load_source

    started = time.perf_counter()
    chosen = _plan(config)
    images, checksums = load_source(source, chosen.data_dir, chosen.config.get("mirror") or mirror, out.parent)
    write_images(images, out, started, checksums)


@app.command(rich_help_panel=RULES)
def fetch(config: Configs, mirror: Mirror = None) -> None:
    """Fetch and verify the raw files of every selected dataset ahead, e.g. where only the login node has a network."""
    from mdpu.data.sources import SOURCES
    from mdpu.data.sources.download import fetch

    chosen = _plan(config)
    failures = []
    for source in sorted({chosen.dataset(name)["source"] for name in chosen.datasets} & set(SOURCES)):
        try:
            files = fetch(SOURCES[source].archives(), chosen.data_dir, chosen.config.get("mirror") or mirror)
        except UserError as error:
            failures.append(f"{source}: {error}")
        else:
            print(f"{source}: {len(files)} files there and verified", file=sys.stderr)
    if failures:
        raise UserError("\n".join(failures))


@app.command(rich_help_panel=RULES)
def labels(
    config: Configs,
    dataset: Annotated[str, typer.Option(help="Dataset of the configuration.")],
    images: Annotated[Path, typer.Option(metavar="FILE", help="Images of its source.")],
    out: Out,
) -> None:
    """Binarize class ids to +1 and -1; write the labels, with counts (.json) beside them."""
    from mdpu.data.images import read_images
    from mdpu.data.labels import binarize, check_counts, count_sides, write_labels
    from mdpu.files import provenance, write_json

    started = time.perf_counter()
    definition = _plan(config).dataset(dataset)
    where = f"config key definitions.datasets.{dataset}"
    found = binarize(
        read_images(images), definition["positive"], definition["negative"], definition.get("dropped", ()), where
    )
    counts = count_sides(found)
    check_counts(counts, definition.get("counts", {}), f"{where}.counts")
    write_labels(found, out)
    write_json(out.with_suffix(".json"), {"counts": counts, "provenance": provenance(started, [images])})


@app.command(rich_help_panel=RULES)
def sheet(
    images: Annotated[Path, typer.Option(metavar="FILE", help="Images of the dataset's source.")],
    labels: Annotated[Path, typer.Option(metavar="FILE", help="Labels of the dataset.")],
    positive: Annotated[Path, typer.Option(metavar="FILE", help="PNG of positive images to write.")],
    negative: Annotated[Path, typer.Option(metavar="FILE", help="PNG of negative images to write.")],
) -> None:
    """Draw a contact sheet of each side."""
    from mdpu.data.images import read_images
    from mdpu.data.labels import read_labels
    from mdpu.files import replacing
    from mdpu.report.sheet import contact_sheet

    image_set, sides = read_images(images), read_labels(labels)
    for sign, path in ((1, positive), (-1, negative)):
        with replacing(path) as temporary:
            contact_sheet(image_set, sides, sign).save(temporary)


@app.command(rich_help_panel=RULES)
def split(
    labels: Annotated[Path, typer.Option(metavar="FILE", help="Labels of the dataset.")],
    tuple_size: TupleSize,
    prior: Prior,
    n: Annotated[int, typer.Option("--n", help="Number of tuples.")],
    n_unlabeled: Annotated[int, typer.Option(help="Number of unlabeled images.")],
    seed: Annotated[int, typer.Option(help="The trial.")],
    out: Out,
    replacement: Annotated[bool, typer.Option(help="Draw with replacement.")] = True,
    overlap: Annotated[bool, typer.Option(help="Let tuples and unlabeled images share images.")] = True,
) -> None:
    """Draw the tuples and the unlabeled images of one trial; write how well they follow the law beside them (.json)."""
    from mdpu.data.diagnostics import diagnose
    from mdpu.data.labels import read_labels
    from mdpu.data.splits import draw_split, write_split
    from mdpu.files import provenance, write_json

    started = time.perf_counter()
    train = read_labels(labels)["train"]
    drawn = draw_split(train, tuple_size, prior, n, n_unlabeled, seed, replacement, overlap)
    write_split(drawn, out)
    diagnostics = diagnose(drawn, train, tuple_size, prior)
    write_json(out.with_suffix(".json"), {**diagnostics, "provenance": provenance(started, [labels])})


@app.command(rich_help_panel=RULES)
def tune(
    config: Configs,
    tuning: Annotated[str, typer.Option(help="Tuning of the configuration, e.g. mnist/base/m2.")],
    images: Annotated[Path, typer.Option(metavar="FILE", help="Images of the dataset's source.")],
    split: Annotated[Path, typer.Option(metavar="FILE", help="Split of the tuning's own trial.")],
    out: Out,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 2,
) -> None:
    """Choose learning rate and weight decay from the grid, without true labels; write the whole grid as CSV."""
    import torch

    from mdpu.data.images import read_images
    from mdpu.data.splits import read_split
    from mdpu.files import provenance, write_csv, write_json
    from mdpu.learn.device import describe, leased_device, memory_budget
    from mdpu.learn.tuning import tune
    from mdpu.progress import Steps

    started = time.perf_counter()
    chosen = _plan(config)
    facts = chosen.tuning_settings(tuning)
    runs, settings, grid = chosen.tunings[tuning].runs, facts["training"], facts["grid"]["grid"]
    torch.set_num_threads(threads)
    points = len(runs) * len(grid["learning_rate"]) * len(grid["weight_decay"])
    with (
        leased_device(chosen.config["device"]) as device,
        Steps(f"{tuning} on {describe(device)}", points * settings["epochs"], "run-epochs") as steps,
    ):
        table = tune(
            runs,
            grid,
            facts["grid"]["held_out"],
            facts["average_last"],
            settings,
            read_images(images),
            read_split(split),
            device,
            steps.advance,
            memory_budget(device, chosen.config["memory_mb"]),
        )
        trained_on = describe(device)
    write_csv(table, out)
    write_json(out.with_suffix(".json"), provenance(started, [images, split], device=trained_on, settings=facts))


@app.command(rich_help_panel=RULES)
def train(
    config: Configs,
    cohort: Annotated[str, typer.Option(help="Cohort of the configuration; `mdpu plan` lists them.")],
    images: Annotated[Path, typer.Option(metavar="FILE", help="Images of the dataset's source.")],
    labels: Annotated[Path, typer.Option(metavar="FILE", help="Labels of the dataset.")],
    splits: Annotated[Path, typer.Option(metavar="DIR", help="Folder of splits.")],
    store: Annotated[Path, typer.Option(metavar="DIR", help="Folder of finished runs, reused where nothing changed.")],
    checkpoints: Annotated[Path, typer.Option(metavar="DIR", help="Folder of unfinished training, taken up again.")],
    out: Out,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 2,
    tuned: Annotated[Path | None, typer.Option(metavar="FILE", help="What `tune` chose, where it did.")] = None,
    only: Annotated[
        list[str] | None, typer.Option("--run", metavar="NAME", help="Train this run of the cohort alone; repeatable.")
    ] = None,
) -> None:
    """Train the runs of a cohort; write their histories, with provenance (.json) beside them."""
    import pandas as pd
    import torch

    from mdpu.data.images import read_images
    from mdpu.data.labels import read_labels
    from mdpu.data.splits import read_split
    from mdpu.files import digest, origin, provenance, sha256, write_json, write_table
    from mdpu.learn.checkpoint import Checkpoint
    from mdpu.learn.device import describe, leased_device, memory_budget
    from mdpu.learn.store import RunStore, fingerprint, group_by_origin
    from mdpu.learn.trainer import Stack, TrainingData, train
    from mdpu.learn.tuning import chosen_rates
    from mdpu.progress import Steps

    started = time.perf_counter()
    chosen = _plan(config)
    runs = chosen.cohort(cohort).select(only) if only else chosen.cohort(cohort).runs
    settings = chosen.training(runs[0].variant, chosen.cohort(cohort).network)
    torch.set_num_threads(threads)
    split_files = {name: splits / f"{name}.npz" for name in sorted({run.split for run in runs})}
    shared = {"images": sha256(images), "labels": sha256(labels)}
    split_sums = {name: sha256(path) for name, path in split_files.items()}
    rates = chosen_rates(pd.read_csv(tuned), runs) if tuned else {}
    fingerprints = {
        run: fingerprint(run, {**settings, "rates": rates.get(run)}, {**shared, "split": split_sums[run.split]})
        for run in runs
    }
    kept = RunStore(store)
    histories = {run: history for run in runs if (history := kept.load(run, fingerprints[run])) is not None}
    missing = [run for run in runs if run not in histories]
    print(f"{cohort}: {len(runs)} runs, {len(histories)} already trained", file=sys.stderr)

    def checkpoint_of(stack: Stack) -> Checkpoint:
        key = digest([fingerprints[run] for row in stack for run in row])
        return Checkpoint(checkpoints / cohort / f"{key}.pt", key, chosen.config["checkpoint_seconds"])

    def finished(run: Run, history: pd.DataFrame) -> None:
        histories[run] = kept.save(run, history, fingerprints[run], origin(device=trained_on))

    with leased_device(chosen.config["device"] if chosen.cohort(cohort).needs_gpu else "cpu") as device:
        trained_on = describe(device)
        if missing:
            data = TrainingData.prepare(read_images(images), read_labels(labels), settings["network"], device)
            loaded = {name: read_split(split_files[name]) for name in {run.split for run in missing}}
            memory = memory_budget(device, chosen.config["memory_mb"])
            with Steps(f"{cohort} on {trained_on}", len(missing) * settings["epochs"], "run-epochs") as steps:
                train(missing, settings, data, loaded, device, finished, steps.advance, checkpoint_of, memory, rates)

    write_table(pd.concat([histories[run] for run in runs], ignore_index=True), out)
    shutil.rmtree(checkpoints / cohort, ignore_errors=True)
    facts = {
        "cohort": cohort,
        "runs": len(runs),
        "reused": len(runs) - len(missing),
        "trained": group_by_origin({run: histories[run] for run in runs}),
        "settings": settings,
    }
    inputs = [images, labels, *split_files.values(), *([tuned] if tuned else [])]
    write_json(out.with_suffix(".json"), provenance(started, inputs, device=trained_on, **facts))


@app.command(rich_help_panel=RULES)
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

    chosen = _plan(config)
    metrics = collect([histories / f"{name}.parquet" for name in chosen.cohorts], chosen.runs)
    write_table(metrics, out)
    accuracies = run_accuracies(metrics, chosen.config["protocol"]["reporting"])
    write_csv(metrics, out.with_suffix(".csv"), exact=True)
    write_csv(summarize(accuracies), summary)
    write_csv(describe_runs(metrics, accuracies, chosen), runs)


@app.command(rich_help_panel=RULES)
def table(
    config: Configs,
    experiment: Annotated[str, typer.Option(help="Experiment of kind table.")],
    summary: Annotated[Path, typer.Option(metavar="FILE", help="Summary that `collect` wrote.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .md and .tex go beside.")],
) -> None:
    """Write a table in the paper's shape as CSV, Markdown and LaTeX."""
    import pandas as pd

    from mdpu.evaluate.published import beside_published
    from mdpu.experiment import CELL
    from mdpu.files import read_csv, write_csv, write_text
    from mdpu.report.tables import caption, latex_table, markdown_table

    chosen = _plan(config)
    wanted = chosen.experiment(experiment)
    keys = pd.DataFrame(wanted.runs).drop(columns="seed").drop_duplicates()
    cells = keys.merge(read_csv(summary), on=list(CELL), how="left", validate="one_to_one")
    write_csv(beside_published(cells, chosen.published_names), out)
    datasets = chosen.titles(keys["dataset"])
    methods = list(dict.fromkeys(keys["method"]))
    not_run = list(chosen.titles(wanted.not_run).values())
    title = f"{wanted.title}. {caption(cells, datasets, chosen.reports_best_epoch)}"
    for suffix, render in ((".md", markdown_table), (".tex", latex_table)):
        write_text(out.with_suffix(suffix), render(cells, datasets, methods, title, not_run))


@app.command(rich_help_panel=RULES)
def formulas(
    config: Configs,
    experiment: Annotated[str, typer.Option(help="Experiment of kind formulas.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .md and .tex go beside.")],
) -> None:
    """Write the table of losses (Table I) as CSV, Markdown and LaTeX."""
    from mdpu.files import write_csv, write_text
    from mdpu.report.formulas import latex_formulas, loss_rows, markdown_formulas

    title, rows = _plan(config).experiment(experiment).title, loss_rows()
    write_csv(rows, out)
    for suffix, render in ((".md", markdown_formulas), (".tex", latex_formulas)):
        write_text(out.with_suffix(suffix), render(rows, title))


@app.command(rich_help_panel=RULES)
def figure(
    config: Configs,
    experiment: Annotated[str, typer.Option(help="Experiment whose kind is a figure of runs.")],
    metrics: Annotated[Path, typer.Option(metavar="FILE", help="Metrics that `collect` wrote.")],
    out: Drawing,
) -> None:
    """Draw a figure of runs as SVG and PDF."""
    import pandas as pd

    from mdpu.experiment import AXES
    from mdpu.files import read_table
    from mdpu.report.figures import draw
    from mdpu.report.figures.common import save_figure

    chosen = _plan(config)
    wanted = chosen.experiment(experiment)
    save_figure(draw(chosen, wanted, pd.DataFrame(wanted.runs).merge(read_table(metrics), on=list(AXES))), out)


@app.command(rich_help_panel=RULES)
def setting(
    config: Configs,
    dataset: Annotated[str, typer.Option(help="Dataset of the configuration.")],
    images: Annotated[Path, typer.Option(metavar="FILE", help="Images of its source.")],
    labels: Annotated[Path, typer.Option(metavar="FILE", help="Labels of the dataset.")],
    split: Annotated[Path, typer.Option(metavar="FILE", help="Split whose tuples and unlabeled images are shown.")],
    out: Drawing,
) -> None:
    """Draw the setting beside its neighbours (Figure 1) with images of a dataset, as SVG and PDF."""
    from mdpu.data.images import read_images
    from mdpu.data.labels import read_labels
    from mdpu.data.splits import read_split
    from mdpu.report.figures.common import save_figure
    from mdpu.report.figures.setting import setting_figure

    save_figure(
        setting_figure(read_images(images), read_labels(labels), read_split(split), _plan(config).dataset(dataset)), out
    )


@app.command(rich_help_panel=RULES)
def losses(out: Drawing) -> None:
    """Draw the losses and their slopes (Figure 2) as SVG and PDF."""
    from mdpu.report.figures.common import save_figure
    from mdpu.report.figures.losses import losses_figure

    save_figure(losses_figure(), out)


@app.command(rich_help_panel=RULES)
def tuning(
    config: Configs,
    tuning: Annotated[str, typer.Option(help="Tuning of the configuration, e.g. mnist/base/m2.")],
    grid: Annotated[Path, typer.Option(metavar="FILE", help="Grid that `tune` wrote.")],
    out: Drawing,
) -> None:
    """Draw the estimated errors of a tuning and what it chose, as SVG and PDF."""
    from mdpu.files import read_csv
    from mdpu.report.figures.common import save_figure
    from mdpu.report.figures.tuning import tuning_figure

    save_figure(tuning_figure(read_csv(grid), _plan(config).tuning_title(tuning)), out)


@app.command(rich_help_panel=RULES)
def sensitivity(
    config: Configs,
    experiment: Annotated[str, typer.Option(help="Experiment of kind sensitivity.")],
    metrics: Annotated[Path, typer.Option(metavar="FILE", help="Metrics that `collect` wrote.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .md and .tex go beside.")],
    nearest: Annotated[Path, typer.Option(metavar="FILE", help="CSV of distances to the published numbers to write.")],
) -> None:
    """Say how far each choice that the paper leaves open moves each method, and which lies nearest to its numbers."""
    import pandas as pd

    from mdpu.evaluate.sensitivity import nearest_to_published, paired_differences, summarize_differences
    from mdpu.experiment import AXES
    from mdpu.files import read_table, write_csv, write_text
    from mdpu.report.sensitivity import sensitivity_latex, sensitivity_markdown

    chosen = _plan(config)
    wanted = chosen.experiment(experiment)
    histories = pd.DataFrame(wanted.runs).merge(read_table(metrics), on=list(AXES))
    summary = summarize_differences(paired_differences(chosen, wanted, histories), chosen.config["comparison"]["level"])
    write_csv(summary, out)
    write_csv(nearest_to_published(chosen, wanted, histories), nearest)
    datasets = chosen.titles(run.dataset for run in wanted.runs)
    for suffix, render in ((".md", sensitivity_markdown), (".tex", sensitivity_latex)):
        write_text(out.with_suffix(suffix), render(summary, datasets, wanted.title))


@app.command("largest-n", rich_help_panel=RULES)
def largest_n(
    config: Configs,
    labels: Annotated[Path, typer.Option(metavar="DIR", help="Folder of labels; read where config has no counts.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .md and .tex go beside.")],
) -> None:
    """Tell how many tuples each dataset can give when no image is drawn twice, beside the number that is used."""
    from mdpu.evaluate.largest_n import largest_n_table, training_counts
    from mdpu.files import write_csv, write_text
    from mdpu.report.largest_n import largest_n_latex, largest_n_markdown

    chosen = _plan(config)
    table = largest_n_table(chosen, training_counts(chosen, labels))
    write_csv(table, out)
    datasets = chosen.titles(table["dataset"])
    for suffix, render in ((".md", largest_n_markdown), (".tex", largest_n_latex)):
        write_text(out.with_suffix(suffix), render(table, datasets))


@app.command(rich_help_panel=RULES)
def compare(
    config: Configs,
    summary: Annotated[Path, typer.Option(metavar="FILE", help="Summary that `collect` wrote.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json with totals goes beside.")],
) -> None:
    """Give each of the paper's 504 numbers a verdict, in every reading of its dataset."""
    from mdpu.evaluate.comparison import compare, spreads, totals
    from mdpu.files import provenance, read_csv, write_csv, write_json

    started = time.perf_counter()
    chosen = _plan(config)
    rule = chosen.config["comparison"]
    found = compare(read_csv(summary), chosen.published_names, rule)
    write_csv(found, out)
    facts = {
        "totals": totals(found).to_dict("records"),
        "spreads": spreads(found, rule["level"]).to_dict("records"),
    }
    write_json(out.with_suffix(".json"), {**facts, **provenance(started, [summary], rule=rule)})


@app.command(rich_help_panel=RULES)
def claims(
    config: Configs,
    summary: Annotated[Path, typer.Option(metavar="FILE", help="Summary that `collect` wrote.")],
    metrics: Annotated[Path, typer.Option(metavar="FILE", help="Metrics that `collect` wrote.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json goes beside.")],
    cases: Annotated[Path, typer.Option(metavar="FILE", help="CSV of every case of every claim to write.")],
) -> None:
    """Check the claims of the paper's prose on our runs and on the paper's numbers."""
    from mdpu.evaluate.claims import check_claims
    from mdpu.evaluate.evidence import our_evidence, paper_evidence
    from mdpu.files import provenance, read_csv, read_table, write_csv, write_json

    started = time.perf_counter()
    chosen = _plan(config)
    rule, reporting = chosen.config["comparison"], chosen.config["protocol"]["reporting"]
    ours = our_evidence(chosen, read_csv(summary), read_table(metrics))
    checked, of_claims = check_claims(ours, paper_evidence(rule))
    write_csv(checked, out)
    write_csv(of_claims, cases)
    facts = provenance(started, [summary, metrics], rule=rule, reporting=reporting)
    rows = checked.astype(object).where(checked.notna(), None).to_dict("records")
    write_json(out.with_suffix(".json"), {"claims": rows, **facts})


@app.command(rich_help_panel=RULES)
def ranks(
    config: Configs,
    summary: Annotated[Path, typer.Option(metavar="FILE", help="Summary that `collect` wrote.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json with the tests goes beside.")],
    figure: Annotated[Path, typer.Option(metavar="FILE", help="SVG to write; .pdf goes beside.")],
) -> None:
    """Rank the methods, test the ranks, and draw critical-difference diagrams."""
    from mdpu.evaluate.ranks import rank_table, rankings
    from mdpu.files import provenance, read_csv, write_csv, write_json
    from mdpu.report.figures.common import save_figure
    from mdpu.report.rank_figure import rank_figure

    started = time.perf_counter()
    chosen = _plan(config)
    found = rankings(read_csv(summary), chosen.table_rows, 1 - chosen.config["comparison"]["level"])
    write_csv(rank_table(found), out)
    facts = {f"{source}, by {unit}": ranking and ranking.facts() for (source, unit), ranking in found.items()}
    write_json(out.with_suffix(".json"), {"rankings": facts, **provenance(started, [summary])})
    save_figure(rank_figure(found), figure)


@app.command(rich_help_panel=RULES)
def audit(
    config: Configs,
    labels: Annotated[Path, typer.Option(metavar="DIR", help="Folder of labels, with their counts.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="CSV to write; .json with all cases goes beside.")],
) -> None:
    """Audit the paper: recompute from its numbers, the images and the formulas what can be; list the rest."""
    from mdpu.evaluate.audit import audit, audit_table
    from mdpu.files import provenance, read_json, write_csv, write_json

    started = time.perf_counter()
    chosen = _plan(config)
    stated = [name for name in chosen.datasets if chosen.published_names[name] == name]
    files = {name: (chosen.images(name).with_suffix(".json"), labels / f"{name}.json") for name in stated}
    findings = audit(
        {
            name: {"description": read_json(description), "counts": read_json(counts)["counts"]}
            for name, (description, counts) in files.items()
        }
    )
    write_csv(audit_table(findings), out)
    facts = provenance(started, [path for both in files.values() for path in both])
    write_json(out.with_suffix(".json"), {"findings": [dataclasses.asdict(f) for f in findings], **facts})


@app.command(rich_help_panel=RULES)
def verify(
    summary: Annotated[Path, typer.Option(metavar="FILE", help="Summary that `collect` wrote.")],
    expected: Annotated[Path, typer.Option(metavar="FILE", help="CSV of expected means and tolerances.")],
    out: Out,
) -> None:
    """Compare the numbers with those shipped with the repository."""
    from mdpu.evaluate.verify import verify
    from mdpu.files import read_csv, write_json

    write_json(out, verify(read_csv(summary), expected))


@app.command(rich_help_panel=RULES)
def report(
    config: Configs,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the configuration's results.")],
    out: Out,
) -> None:
    """Render the HTML report."""
    from mdpu.files import write_text
    from mdpu.report.page import render_page

    write_text(out, render_page(_plan(config), results))


def _plan(config: list[Path]) -> Plan:
    from mdpu.config import load_config
    from mdpu.experiment import Plan

    return Plan(load_config(config))


def main() -> None:
    """Run the command line; a mistake of the user's ends in one sentence and status 2."""
    # GNU OpenMP's threads spin for long while they wait, which stops a busy machine; these go to sleep after
    # microseconds. docs/performance.md has the figures. To be set before torch loads OpenMP.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        app()
    except UserError as error:
        sentence = " ".join(str(error).split())  # what it quotes of others may run over several lines
        print(f"error: {sentence}", file=sys.stderr)
        sys.exit(2)
