"""The command line: a command for each rule that starts one, for ./run trace, retrain and verify,
and for own groups.

Modules that take seconds to load are imported by the command that needs them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from mdpu.errors import UserError, is_out_of_memory, printable

# how errors of a device begin
GPU_ERRORS = ("CUDA", "cuDNN", "cuBLAS", "NCCL", "NVML", "No CUDA GPUs")
NO_MEMORY = "can't allocate memory"  # torch says so in an ordinary RuntimeError
# likewise, where a checkpoint could not be written
UNWRITTEN = ("basic_ios", "PytorchStreamWriter")

Parser = argparse.ArgumentParser

# options on how a table is read
READING = ("sep", "decimal", "encoding", "missing", "fill", "dates", "sheet")

# JSON schemas of what the rules give to commands.
SIDES = {"type": "object", "additionalProperties": {"type": "array"}}
COUNTS = {
    "type": "object",
    "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer"}},
}
NUMBERS = {name: {"type": "integer"} for name in ("tuple_size", "n", "n_unlabeled")}
TEXTS = {name: {"type": "string"} for name in ("cell", "method", "loss", "law")}
SAMPLING: dict[str, Any] = {
    "type": "object",
    "required": [*NUMBERS, "prior"],
    "properties": {
        **NUMBERS,
        **TEXTS,
        "prior": {"type": ["number", "string"]},
        "broken": {"type": "number"},
    },
}
TRIALS = {
    "type": "object",
    "propertyNames": {"pattern": "^[0-9]+$"},
    "additionalProperties": {"type": "string"},
}
DRAWING = {"allOf": [SAMPLING, {"required": ["trials"], "properties": {"trials": TRIALS}}]}
TRAINING: dict[str, Any] = {
    "sides": SIDES,
    "sampling": SAMPLING,
    "settings": {"type": "object"},
    "trials": TRIALS,
    "images": {"type": ["string", "null"]},
    "prior_offset": {"type": "number"},
    **TEXTS,
}
CELL = {"type": "object", "required": sorted({*TRAINING} - {"law"}), "properties": TRAINING}


def dataset(arguments: Any) -> None:
    """Fetch and verify a source; write its images, with a description (.json) beside them."""
    from mdpu.pipeline.data.sources import write_source

    mirror = arguments.mirror or os.environ.get("MDPU_MIRROR")
    data_dir = arguments.data_dir.expanduser()
    write_source(arguments.source, data_dir, mirror, arguments.out, arguments.sha256)


def labels(arguments: Any) -> None:
    """Binarize class ids to +1 and -1; write the labels, with their counts (.json) beside them."""
    from mdpu.pipeline.data.labels import write_labels

    write_labels(arguments.images, arguments.out, arguments.sides, arguments.counts)


def sheet(arguments: Any) -> None:
    """Draw some images of each side of a dataset."""
    from mdpu.pipeline.data.sheets import write_sheets

    write_sheets(arguments.images, arguments.labels, *arguments.out)


def split(arguments: Any) -> None:
    """Draw the tuples and unlabeled images of every trial of a cell."""
    from mdpu.pipeline.data.splits import write_split

    write_split(arguments.labels, arguments.out, arguments.spec)


def train(arguments: Any) -> None:
    """Train the runs of a cell that are not finished, and add them to its file."""
    from mdpu.pipeline.job import train_cell

    files = arguments.images, arguments.labels, arguments.split, arguments.out, arguments.shipped
    train_cell(arguments.spec, *files, arguments.device, arguments.checkpoint_seconds)


def trace(arguments: Any) -> None:
    """Show where a number comes from: settings, trials, keys, files, and the command that makes it
    again.
    """
    from mdpu.pipeline import trace as tracing

    print(tracing.trace(arguments.name, arguments.config))


def retrain(arguments: Any) -> int:
    """Train a run, or all of a cell, again, and judge the cell with the new runs; status 1 if it
    differs.
    """
    from mdpu.pipeline import trace as tracing

    return 0 if tracing.retrain(arguments.name, arguments.config) else 1


def verify(arguments: Any) -> int:
    """Train a sample of the shipped runs again, and judge their cells; status 1 if one differs."""
    from mdpu.pipeline import trace as tracing

    return 0 if tracing.verify(arguments.runs, arguments.seed, arguments.config) else 1


def fit(arguments: Any) -> None:
    """Train a classifier on your own groups, and write it with a page on what is known of it."""
    from mdpu.own.commands import fit_groups
    from mdpu.own.page import write_own_page

    options = {
        name: getattr(arguments, name)
        for name in ("table", "file", "size", "law", "count", "label", *READING)
    }
    parameters = {
        name: getattr(arguments, name)
        for name in ("prior", "guess_prior", "broken", "dominant", "positive_by", "learner")
    }
    parameters["random_state"] = arguments.seed
    out = arguments.out
    study = fit_groups(
        arguments.source, out, arguments.group, arguments.drop, options, **parameters
    )
    write_own_page(study, out / "page.html")
    print(f"{out}/page.html says what is known of the classifier", file=sys.stderr)


def predict(arguments: Any) -> None:
    """Write new rows with the answers of a classifier that `fit` made."""
    from mdpu.own.commands import predict_rows

    options = {name: getattr(arguments, name) for name in ("table", "file", *READING)}
    predict_rows(arguments.model, arguments.source, arguments.out, options)


class _Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong with arguments."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m mdpu", description=(__doc__ or "").partition("\n")[0], allow_abbrev=False
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for function, add_arguments in ARGUMENTS.items():
        command = commands.add_parser(
            function.__name__, help=function.__doc__, description=function.__doc__
        )
        command.set_defaults(run=function)
        add_arguments(command)
    return parser


# -- arguments of the steps of the workflow --------------------------------------------------------


def _add_files(command: Parser, *names: str) -> None:
    """Add required options that take one file each."""
    for name in names:
        command.add_argument(name, type=Path, required=True, metavar="FILE")


def _add_json(command: Parser, name: str, schema: Mapping[str, Any], help: str) -> None:
    """Add a required option that takes an object of a schema, as JSON."""
    read = partial(_json, schema)
    command.add_argument(name, type=read, required=True, metavar="JSON", help=help)


def _dataset_arguments(command: Parser) -> None:
    command.add_argument("source", help="A name, such as mnist, or the path of your own images.")
    _add_files(command, "--out")
    command.add_argument(
        "--data-dir",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="Folder of raw downloads.",
    )
    command.add_argument(
        "--mirror",
        metavar="PLACE",
        help="Address or folder to download from; default: $MDPU_MIRROR.",
    )
    command.add_argument("--sha256", metavar="DIGITS", help="Digest that the images must have.")


def _labels_arguments(command: Parser) -> None:
    _add_files(command, "--images", "--out")
    _add_json(command, "--sides", SIDES, "The classes that are positive, negative and dropped.")
    command.add_argument(
        "--counts",
        type=partial(_json, COUNTS),
        default={},
        metavar="JSON",
        help="Images of each part.",
    )


def _sheet_arguments(command: Parser) -> None:
    _add_files(command, "--images", "--labels")
    command.add_argument(
        "--out",
        nargs=2,
        type=Path,
        required=True,
        metavar=("POSITIVE", "NEGATIVE"),
        help="The two sheets.",
    )


def _split_arguments(command: Parser) -> None:
    _add_files(command, "--labels", "--out")
    _add_json(command, "--spec", DRAWING, "What is drawn: mdpu.pipeline.data.splits.")


def _train_arguments(command: Parser) -> None:
    _add_files(command, "--images", "--labels", "--split", "--out")
    _add_json(command, "--spec", CELL, "All that defines a cell's runs: Plan.spec.")
    command.add_argument(
        "--shipped", nargs="*", type=Path, default=[], metavar="FILE", help="Shipped runs."
    )
    command.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="Where to train."
    )
    command.add_argument(
        "--checkpoint-seconds",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="How often what a killed job goes on from is kept.",
    )


# -- arguments of what looks at numbers ------------------------------------------------------------


def _add_config(command: Parser) -> None:
    command.add_argument(
        "--config",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="Configuration, repeatable.",
    )


def _number_arguments(command: Parser) -> None:
    command.add_argument(
        "name",
        help=(
            "A cell, mnist/base/m2/n10000/prior0.5/relu, one of its runs, .../seed1, or its file "
            "of runs."
        ),
    )
    _add_config(command)


def _verify_arguments(command: Parser) -> None:
    command.add_argument("--runs", type=int, default=3, metavar="NUMBER", help="How many.")
    command.add_argument("--seed", type=int, default=0, metavar="NUMBER", help="Seed of the draw.")
    _add_config(command)


# -- arguments of classifiers from files -----------------------------------------------------------


def _add_source(command: Parser) -> None:
    """Add the files that a classifier reads, and how they are read."""
    add = command.add_argument
    add(
        "source",
        help="A table (.csv, .tsv, .txt or these as .gz, .xlsx, .parquet), .npz, or a folder of "
        "pictures.",
    )
    add("--table", type=Path, metavar="FILE", help="Groups of pictures that lie together.")
    add("--file", default="file", metavar="COLUMN", help="The table's column of file names.")
    add(
        "--sep",
        metavar="CHARACTER",
        help="What divides the cells of a table: ; or tab, for instance.",
    )
    add("--decimal", choices=(".", ","), help="The decimal sign of a table.")
    add("--encoding", metavar="NAME", help="The encoding of a table, such as utf-8 or cp1252.")
    add(
        "--missing",
        nargs="+",
        action="extend",
        metavar="TEXT",
        help="What stands for a missing value.",
    )
    add(
        "--dates",
        choices=("day-first", "month-first"),
        help="What stands first in dates such as 03/04/2025.",
    )
    add(
        "--sheet",
        metavar="NAME",
        help="The sheet of an .xlsx file, by its name or place; default: the first that has the "
        "columns asked for.",
    )
    add("--fill", action="store_true", help="Read names of groups downwards, below merged cells.")


def _fit_arguments(command: Parser) -> None:
    _add_source(command)
    add = command.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="The folder to write.")
    add(
        "--group",
        nargs="+",
        metavar="COLUMN",
        default=["group"],
        help=(
            "Ids of groups, missing for unlabeled rows; of several columns, all together name a "
            "group."
        ),
    )
    add(
        "--drop",
        nargs="+",
        action="extend",
        default=[],
        metavar="COLUMN",
        help="Columns to leave out.",
    )
    add(
        "--size",
        nargs=2,
        type=int,
        metavar=("HEIGHT", "WIDTH"),
        help="Size that pictures are scaled to.",
    )
    _add_rule(command)
    add("--learner", default="auto", metavar="NAME", help="auto, student, linear or network.")
    add("--seed", type=int, default=0, metavar="NUMBER", help="Seed of all that is drawn.")


def _add_rule(command: Parser) -> None:
    """Add what is known of the groups."""
    add = command.add_argument
    add(
        "--prior",
        type=float,
        metavar="SHARE",
        help="Share of positives in the unlabeled rows; by default it is estimated.",
    )
    add("--guess-prior", action="store_true", help="Guess the prior if the groups do not tell it.")
    add(
        "--broken",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="Share of the groups that break the law.",
    )
    add(
        "--dominant",
        choices=("positive", "negative"),
        default="positive",
        help="The class that half of a group or more has.",
    )
    add(
        "--law",
        metavar="LAW",
        help="dominant (default), at-least-1, exactly-1, between-1-2 or similar.",
    )
    add(
        "--count",
        metavar="COLUMN",
        help="In place of a law: the number, or share, of a group's positives.",
    )
    add(
        "--label",
        metavar="COLUMN",
        help="Whether a group keeps the law, 1 or 0, as bags are labelled.",
    )
    add(
        "--positive-by",
        metavar="COLUMN",
        help=(
            "A column whose values are larger in positive rows. Laws such as similar say which "
            "rows are of one class, not which class."
        ),
    )


def _predict_arguments(command: Parser) -> None:
    command.add_argument("model", type=Path, help="The folder that fit wrote.")
    _add_source(command)
    command.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="The table to write: .csv or .parquet.",
    )


ARGUMENTS: dict[Callable[[Any], int | None], Callable[[Parser], None]] = {
    dataset: _dataset_arguments,
    labels: _labels_arguments,
    sheet: _sheet_arguments,
    split: _split_arguments,
    train: _train_arguments,
    trace: _number_arguments,
    retrain: _number_arguments,
    verify: _verify_arguments,
    fit: _fit_arguments,
    predict: _predict_arguments,
}


def _json(schema: Mapping[str, Any], text: str) -> Any:
    """Read JSON and check it by a schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not JSON ({error})") from None
    if wrong := best_match(Draft202012Validator(schema).iter_errors(value)):
        raise argparse.ArgumentTypeError(f"{wrong.json_path}: {wrong.message[:200]}")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; a user's mistake, or a failure of the machine, ends in one sentence and
    status 2.
    """
    try:
        parsed = _parser().parse_args(arguments)
        return parsed.run(parsed) or 0
    except Exception as error:
        sentence = explain(error)
        if sentence is None:
            raise
        print(f"error: {printable(sentence)}", file=sys.stderr)
        return 2


def explain(error: Exception) -> str | None:
    """Return one sentence that tells a user what to fix, or None if the mistake is in the
    program.
    """
    text = str(error)
    if isinstance(error, UserError):
        return text
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and NO_MEMORY in text):
        return "there is not enough memory; give the job more, or ask for less"
    # a reader would have named that
    if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
        return (
            f"{error.filename or 'a file'} could not be read or written ({error.strerror}); fix "
            "that and run again"
        )
    if is_out_of_memory(error):
        return "the GPU's memory is full; stop other programs that use it, or set device to cpu"
    if isinstance(error, RuntimeError) and any(words in text for words in UNWRITTEN):
        return (
            "a checkpoint could not be written; check whether the disk is full or failing, and run "
            "again"
        )
    if isinstance(error, RuntimeError) and text.startswith(GPU_ERRORS):
        return (
            f"the GPU failed ({text.splitlines()[0]}); check whether nvidia-smi still lists it, "
            "and run again"
        )
    return None


def has_gpu() -> bool:
    """Return whether this machine has NVIDIA's driver.

    ``nvidia-smi`` need not be on the PATH, so the driver's device counts too; it is another one
    under Windows.
    """
    has_device = any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg")))
    return has_device or shutil.which("nvidia-smi") is not None


@contextlib.contextmanager
def script(snakemake: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Give a script of the workflow its plan, and its inputs and outputs by name; its output goes
    to its log.

    Inputs and outputs are paths, or lists of paths.
    """
    from mdpu.pipeline.plan import Plan

    with Path(snakemake.log[0]).open("w", encoding="utf-8") as log, contextlib.redirect_stderr(log):
        try:
            plan = Plan(snakemake.config).with_own_images()
            yield plan, _paths(snakemake.input), _paths(snakemake.output)
        except Exception as error:
            sentence = explain(error)
            if sentence is None:
                raise
            print(f"error: {printable(sentence)}", file=log)
            sys.exit(2)


def _paths(files: Any) -> SimpleNamespace:
    """Return Snakemake's inputs or outputs by name."""
    paths: dict[str, Path | list[Path]] = {}
    for name, file in files.items():
        paths[name] = Path(file) if isinstance(file, str) else list(map(Path, file))
    return SimpleNamespace(**paths)
