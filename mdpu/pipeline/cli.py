"""The command line: every rule of the workflow is one command, and so is what ./run asks for.

Commands import what they need inside their functions, so that each loads nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from mdpu.errors import UserError, is_out_of_memory, printable
from mdpu.pipeline.files import recording

if TYPE_CHECKING:
    from mdpu.pipeline.plan import Plan

NO_MEMORY = "there is not enough memory; give the job more, or ask for less"
UNWRITTEN = "a checkpoint could not be written; see whether the disk is full or fails, and run again"
# What torch says, in RuntimeErrors like any other, and what it means.
OF_TORCH = {"can't allocate memory": NO_MEMORY, "basic_ios": UNWRITTEN, "PytorchStreamWriter": UNWRITTEN}
GPU_ERRORS = ("CUDA", "cuDNN", "cuBLAS", "NCCL", "NVML", "No CUDA GPUs")  # how errors of a device begin
# What Typer raises where arguments are wrong; click has it, which some versions of Typer keep to themselves.
USAGE: Any = typer.BadParameter.__mro__[2]

LOOK = "Look at theory and plans"
RULES = "Rules of the workflow"
CARRY = "Carry finished runs from one machine to another"
RUN = "For ./run"

SCRATCH = Path(".snakemake/retrained")
SHIPPED_ROWS = Path("results/reference/runs.csv")  # they say how far rounding moves an accuracy

app = typer.Typer(
    name="mdpu",
    help="Learning from M-tuple dominant positive and unlabeled data. Every rule of the workflow is one command here.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

Configs = Annotated[
    list[Path],
    typer.Option("--config", metavar="FILE", help="Configuration; repeat it to merge further files over the first."),
]
OwnConfigs = Annotated[
    list[Path] | None,
    typer.Option(
        "--config", metavar="FILE", help="Configuration, repeatable; that of the newest results with NAME unless given."
    ),
]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write.")]
Mirror = Annotated[
    str | None,
    typer.Option(
        envvar="MDPU_MIRROR",
        metavar="PLACE",
        help="http(s) address or folder, laid out as data_dir, to fetch from unless the configuration has a `mirror`.",
    ),
]
TupleSize = Annotated[int, typer.Option(min=1, max=1000, help="Tuple size M.")]
LawName = Annotated[
    str,
    typer.Option(
        "--law", help="Which groups are tuples: dominant, similar, at-least-1, exactly-1, or weights 0,0.2,1."
    ),
]
Prior = Annotated[float, typer.Option(help="Class prior pi_+.")]
Dataset = Annotated[str, typer.Argument(help="Dataset of the configuration.")]
Labels = Annotated[Path, typer.Option(metavar="FILE", help="Labels of the dataset.")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads.")]
Scratch = Annotated[Path, typer.Option("--out", metavar="DIR", help="Scratch folder to train into.")]
RunOrCell = Annotated[str, typer.Argument(help="Run, as `plan --runs` lists them, or cell: a run's without its seed.")]


def load_plan(config: list[Path]) -> Plan:
    """Return the plan of configuration files, each merged over those before it."""
    from mdpu.pipeline.config import load_config
    from mdpu.pipeline.plan import Plan

    return Plan(load_config(config))


@app.command(rich_help_panel=LOOK)
def coefficients(tuple_size: TupleSize, prior: Prior, law: LawName = "dominant") -> None:
    """Print a, b and a pi_- - b pi_+ (Lemma 6) of a law as JSON, with the weights of the risk estimator."""
    from mdpu.law import named_law

    of_tuples = named_law(law, tuple_size)
    facts = {
        "tuple_size": tuple_size,
        "prior": prior,
        "law": law,
        **of_tuples.coefficients(prior)._asdict(),
        "positives": of_tuples.counts(prior).tolist(),
        "rate": of_tuples.rate(prior),
        "risk_weights": of_tuples.risk_weights(prior)._asdict(),
    }
    print(json.dumps(facts, indent=2))


@app.command(rich_help_panel=LOOK)
def plan(
    config: Configs,
    runs: Annotated[bool, typer.Option("--runs", help="List every run by name instead, one per line.")] = False,
) -> None:
    """List the runs and jobs that a configuration asks for, with counts, as JSON."""
    chosen = load_plan(config)
    if runs:
        print("\n".join(run.name for run in chosen.runs))
    else:
        print(json.dumps(chosen.summary(), indent=2))


@app.command(rich_help_panel=LOOK)
def trace(name: RunOrCell, config: OwnConfigs = None) -> None:
    """Print the sources of a number: rows of the metrics, splits, seeds, histories, commands to retrain its runs."""
    from mdpu.pipeline.evaluate.trace import trace
    from mdpu.pipeline.outcome import configuration_of

    config = config or [configuration_of(name)]
    print(trace(load_plan(config), name, config))


@app.command(rich_help_panel=LOOK)
def retrain(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Of a run or of a cell.")] = None,
    config: OwnConfigs = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Draw so many runs instead.")] = None,
    seed: Annotated[int, typer.Option(help="Which runs are drawn.")] = 0,
    rows: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV of what came out to write, too.")] = None,
    out: Scratch = SCRATCH,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; the configuration's unless given.")] = None,
) -> None:
    """Train finished runs again, each by itself, and compare them with the recorded ones.

    On a CPU of the same kind they are the same bit for bit. A GPU, another kind of CPU or other software rounds
    differently, and training magnifies the difference: then the accuracy may move as far as other rounding moved that
    of shipped trials. Exits with status 1 if one moved further.
    """
    from mdpu.pipeline.evaluate.retrained import draw_runs, rounding_tolerances, verified_rows, verify_runs
    from mdpu.pipeline.files import read_csv, write_csv
    from mdpu.pipeline.outcome import configuration_of

    if (name is None) == (sample is None) or (name is None and not config):
        raise UserError("give the name of a run or a cell, or --sample and --config")
    chosen = load_plan(config or [configuration_of(str(name))])
    runs = chosen.find_runs(name) if name else draw_runs(chosen, sample or 0, seed)
    tolerances = rounding_tolerances(read_csv(SHIPPED_ROWS))
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


@app.command(rich_help_panel=LOOK)
def check(
    results: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of results: results/<name>.")],
) -> None:
    """Compare every result and its inputs with what was written; exit with status 1 if anything differs.

    `./run` remakes every file that has changed, is missing, or was made from another version of an input. A file of
    your own has no seal: delete it, or keep it with `accept`.
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


@app.command(rich_help_panel=LOOK)
def accept(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that you edited.")]) -> None:
    """Keep files as they are now: from now on they count as written, marked as edited.

    `./run` remakes every file that was made from them.
    """
    from mdpu.pipeline.files import accept

    for file in files:
        accept(file)


@app.command(rich_help_panel=RULES)
def dataset(
    source: Annotated[str, typer.Argument(help="Source of images: a name, e.g. mnist, or a path to your own.")],
    config: Configs,
    out: Out,
    mirror: Mirror = None,
) -> None:
    """Fetch and verify a source; write its images, with a description (.json) beside them.

    Raw downloads go to the configuration's `data_dir`; intact ones that are already there are used.
    """
    from mdpu.pipeline.data.sources import write_source

    chosen = load_plan(config)
    write_source(source, chosen.layout.data_dir, chosen.config.get("mirror") or mirror, out)


@app.command(rich_help_panel=RULES)
def fetch(config: Configs, mirror: Mirror = None) -> None:
    """Fetch and verify the raw files of every selected dataset in advance, e.g. on a login node with a network."""
    from mdpu.pipeline.data.sources import fetch_sources

    chosen = load_plan(config)
    sources = [chosen.dataset(name)["source"] for name in chosen.datasets]
    fetch_sources(sources, chosen.layout.data_dir, chosen.config.get("mirror") or mirror)


@app.command(rich_help_panel=RULES)
def labels(dataset: Dataset, config: Configs) -> None:
    """Binarize class ids to +1 and -1; write the labels, with counts (.json) beside them."""
    from mdpu.pipeline.data.labels import write_binarized

    plan = load_plan(config)
    definition, layout = plan.dataset(dataset), plan.layout
    write_binarized(layout.images(dataset), dataset, definition, layout.labels(dataset))


@app.command(rich_help_panel=RULES)
def sheet(dataset: Dataset, config: Configs) -> None:
    """Draw a contact sheet of each side of a dataset."""
    from mdpu.pipeline.report.sheet import write_sheets

    plan = load_plan(config)
    plan.dataset(dataset)  # refuses an unknown one
    layout = plan.layout
    write_sheets(layout.images(dataset), layout.labels(dataset), *layout.sheets(dataset))


@app.command(rich_help_panel=RULES)
def split(
    labels: Labels,
    tuple_size: TupleSize,
    prior: Prior,
    n: Annotated[int, typer.Option("--n", max=10**8, help="Number of tuples.")],
    n_unlabeled: Annotated[int, typer.Option(max=10**8, help="Number of unlabeled images.")],
    trial: Annotated[
        str, typer.Option(help="Name of the trial, e.g. mnist/m2/n10000/prior0.5/seed1; it seeds every random number.")
    ],
    out: Out,
    replacement: Annotated[bool, typer.Option(help="Draw with replacement.")] = True,
    overlap: Annotated[bool, typer.Option(help="Let tuples and unlabeled images share images.")] = True,
    broken: Annotated[float, typer.Option(help="Share of tuples that break the law.")] = 0.0,
    law: LawName = "dominant",
    unlabeled: Annotated[
        Literal["pool", "remainder", "put-back"],
        typer.Option(help="New draws, what the tuples left of a pool, or that with the members put back."),
    ] = "pool",
) -> None:
    """Draw the tuples and unlabeled images of one trial; write them, with their diagnostics (.json) beside them."""
    from mdpu.pipeline.data.diagnostics import write_diagnosed_split

    drawing: dict[str, Any] = {"n": n, "n_unlabeled": n_unlabeled, "broken": broken}
    drawing |= {"replacement": replacement, "overlap": overlap}
    drawing |= {} if unlabeled == "pool" else {"unlabeled": unlabeled}
    write_diagnosed_split(labels, out, tuple_size, prior, trial=trial, law=law, **drawing)


@app.command(rich_help_panel=RULES)
def tune(
    tuning: Annotated[str, typer.Argument(help="Tuning of the configuration, e.g. mnist/base/m2.")],
    config: Configs,
    threads: Threads = 2,
) -> None:
    """Choose learning rate and weight decay from the grid, without true labels; write the whole grid as CSV."""
    from mdpu.pipeline.train import tune

    tune(load_plan(config), tuning, threads)


@app.command(rich_help_panel=RULES)
def train(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Of the configuration; `mdpu plan` lists them.")],
    config: Configs,
    threads: Threads = 2,
) -> None:
    """Train the runs of a training job that are not finished; write a manifest of the finished runs of all."""
    from mdpu.pipeline.train import train

    train(load_plan(config), job, threads)


@app.command(rich_help_panel=RULES)
def equivalent(
    config: Configs,
    runs: Annotated[int, typer.Option(min=40, help="Size of the sample.")] = 40,
    out: Scratch = SCRATCH,
    workers: Annotated[int, typer.Option(min=1, help="Runs that train side by side, each with one thread.")] = 2,
) -> None:
    """Declare that the training code as it is trains the bits of the shipped runs, so that none is trained again.

    A random sample of them, over all methods, datasets and tuple sizes, is trained again. If one differs in a bit,
    nothing is declared.
    """
    from mdpu.pipeline.equivalence import declare

    new = declare(load_plan(config), out, runs, workers)
    print(
        f"{len(new)} versions of training code are declared equal to those of the shipped runs"
        if new
        else "nothing new"
    )


@app.command(rich_help_panel=RULES)
def collect(config: Configs) -> None:
    """Gather all histories into one tidy table, and summarize it per run and per cell."""
    from mdpu.pipeline.evaluate.collect import write_collection

    write_collection(load_plan(config))


@app.command(rich_help_panel=RULES)
def evaluate(
    part: Annotated[
        Literal["verification", "comparison", "claims", "ranks", "audit"],
        typer.Argument(
            help="`verification` of the expected numbers; `comparison` with the paper's 504 numbers, a verdict each; "
            "the `claims` of the paper's prose, case by case; `ranks` of the methods; `audit` of the paper itself."
        ),
    ],
    config: Configs,
) -> None:
    """Evaluate what was collected: write a part's tables, with a .json beside, into the folder of results."""
    write: Callable[[Plan], None]
    if part == "verification":
        from mdpu.pipeline.evaluate.verify import write_verification as write
    elif part == "comparison":
        from mdpu.pipeline.evaluate.comparison import write_comparison as write
    elif part == "claims":
        from mdpu.pipeline.evaluate.claims import write_claims as write
    elif part == "ranks":
        from mdpu.pipeline.report.rank_figure import show_ranks as write
    else:
        from mdpu.pipeline.evaluate.audit import write_audit as write
    write(load_plan(config))


@app.command(rich_help_panel=RULES)
def show(
    name: Annotated[str, typer.Argument(help="Experiment of the configuration, or tuning, e.g. mnist/base/m2.")],
    config: Configs,
) -> None:
    """Make the files of an experiment: a table, a figure, a study; or draw a tuning's grid and choice."""
    plan = load_plan(config)
    if name in plan.tunings:
        from mdpu.pipeline.report.tuning_figure import draw_tuning as show
    else:
        from mdpu.pipeline.experiments import show
    show(plan, name)


@app.command(rich_help_panel=RULES)
def report(config: Configs) -> None:
    """Render the HTML report."""
    from mdpu.pipeline.experiments import sections
    from mdpu.pipeline.report.page import write_page

    plan = load_plan(config)
    write_page(plan, sections(plan))


@app.command("export", rich_help_panel=CARRY)
def export_(config: Configs, out: Out) -> None:
    """Write the finished runs of a configuration into one file, each with its recipe, origin and checksum."""
    from mdpu.pipeline.cache import export
    from mdpu.pipeline.evaluate.collect import finished_runs

    runs = list(finished_runs(load_plan(config)).values())
    export(runs, out)
    print(f"{len(runs)} finished runs written to {out}")


@app.command("import", rich_help_panel=CARRY)
def import_(
    packed: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote.")], config: Configs
) -> None:
    """Add exported runs to the cache, where training finds them by what they are made from.

    Each run is checked: one whose values do not match their checksum is refused, by its name.
    """
    from mdpu.pipeline.cache import cache_of

    new, kept = cache_of(load_plan(config)).import_runs(packed)
    print(f"{new} finished runs imported" + (f", {kept} were there" if kept else ""))


@app.command(
    rich_help_panel=RUN,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def run(
    context: typer.Context,
    command: Annotated[str, typer.Argument(help="Command, such as quick.")],
) -> None:
    """Carry out a command of `./run`, with its arguments and Snakemake's; `./run --help` says what they do."""
    from mdpu.pipeline.launch import launch

    raise typer.Exit(launch(command, context.args))


@app.command(rich_help_panel=RUN)
def diff(
    before: Annotated[str, typer.Argument(help="Results: a folder, or its name below results/.")],
    after: Annotated[str, typer.Argument(help="Other results.")],
) -> None:
    """Say which verdicts flipped and which numbers moved from one result to another."""
    from mdpu.pipeline.outcome import describe_difference, find_results

    print("\n".join(describe_difference(find_results(before), find_results(after))))


@app.command(rich_help_panel=RUN)
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


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence and status 2."""
    # GNU OpenMP's threads spin for a long time while they wait, which stalls a busy machine. With this setting they
    # sleep after microseconds (docs/explanation/performance.md). It must be set before torch loads OpenMP.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    if len(sys.argv) == 1:
        sys.argv.append("--help")
    try:
        with recording(command=" ".join(sys.argv[1:])):
            status = app(standalone_mode=False)
        sys.exit(status or 0)
    except USAGE as error:
        context = getattr(error, "ctx", None)
        path = context.command_path.removeprefix(context.find_root().command_path) if context else ""
        sentence = error.format_message().rstrip(".")
        fail(f"{sentence}; python -m mdpu{path} --help says what there is")
    except MemoryError:
        fail(NO_MEMORY)
    except UserError as error:
        fail(str(error))
    except FileNotFoundError:  # a reader would have named the file: the mistake is ours
        raise
    except OSError as error:
        fail(f"{error.filename or 'a file'} could not be read or written ({error.strerror}); mend that and run again")
    except RuntimeError as error:
        text = str(error)
        for words, sentence in OF_TORCH.items():
            if words in text:
                fail(sentence)
        if is_out_of_memory(error):
            fail("the GPU's memory is full; end what else uses it, or set device to cpu")
        if not text.startswith(GPU_ERRORS):
            raise
        fail(f"the GPU failed ({text.splitlines()[0]}); see whether nvidia-smi still lists it, and run again")


def fail(sentence: str) -> NoReturn:
    """End with one sentence and status 2."""
    print(f"error: {printable(sentence)}", file=sys.stderr)
    sys.exit(2)
