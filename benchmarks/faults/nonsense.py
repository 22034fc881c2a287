"""Give the program nonsense: configurations from its schema, command lines, damaged files; count what comes of it.

    python benchmarks/faults/nonsense.py --out nonsense.csv      # goes on from nonsense.csv, if it is there

500 configurations have one to three values at random places of the schema; 300 commands have an argument that is lost,
doubled, moved or replaced; 150 files are cut, flipped, blanked or exchanged. Each is tried in a process of its own. It
has to be refused in one sentence, or to be accepted and work: a configuration that a plain JSON schema refuses is none
to accept, and a small cell of an accepted one is trained; a command writes what it was asked for, or nothing; a damaged
file is refused, or read as it was before.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import torch  # noqa: F401  # once, before processes are forked
import yaml
from harness import HERE, ROOT, Rounds, parser_of
from jsonschema import Draft202012Validator

from mdpu.errors import UserError
from mdpu.methods import available_methods
from mdpu.pipeline import cli, show
from mdpu.pipeline.config import load_config, schema
from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.data.labels import binarize, read_labels, write_labels
from mdpu.pipeline.data.sources import write_source
from mdpu.pipeline.data.splits import read_split, write_split
from mdpu.pipeline.files import read_table, write_table
from mdpu.pipeline.job import train_cell
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.store import read_runs

PATIENCE = 60.0  # seconds until a case counts as hanging
FINE = ("refused", "works", "too large to try", "read as before")
NONSENSE = [None, True, -1, 0, 1, 1.5, -0.0, 1e-320, float("nan"), float("inf"), 10**20, "", "x", "a b", "$(id)", "\0"]
NONSENSE += ["é", "../..", "{x}", "-h", "5", "0.5", "null", [], [None], [1, 1], [[]], {}, {"default": None}, {"x": 1}]
NONSENSE += [[0.5] * 300, "y" * 5000, "\x1b[2J", {"": {}}, yaml.safe_load("2024-01-01")]
TINY = yaml.safe_load((HERE / "tiny.yaml").read_text())


def attempt(case: Callable[[], str]) -> str:
    """Return what a case says, tried in a process of its own; a traceback, a crash or a hang is told from it."""
    reader, writer = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        try:
            said = case()
        except UserError as error:
            said = "refused" if "\n" not in str(error) else "several lines"
        except BaseException as error:
            said = f"traceback: {type(error).__name__}: {error}"
        writer.send(said)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    writer.close()
    try:
        return reader.recv() if reader.poll(PATIENCE) else "hang"
    except EOFError:
        return "crash"
    finally:
        process.kill()
        process.join()


# -- configurations -------------------------------------------------------------------------------


def places(node: Mapping[str, Any], value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all places of a schema, with their schemas; names that are free are those of a value, and a new one."""
    for part in (node, *node.get("allOf", []), *node.get("anyOf", [])):
        part = {**part, **schema()["$defs"].get(part.get("$ref", "").rpartition("/")[2], {})}
        yield path, part
        inner, own = dict(part.get("properties", {})), value if isinstance(value, dict) else {}
        if isinstance(part.get("additionalProperties"), dict):
            inner |= dict.fromkeys([*own, "new"], part["additionalProperties"])
        for name, below in inner.items():
            yield from places(below, own.get(name), (*path, name))


def fitting(node: Mapping[str, Any], chance: random.Random) -> Any:
    """Return a value that fits a schema, or nearly."""
    node = {**node, **schema()["$defs"].get(node.get("$ref", "").rpartition("/")[2], {})}
    if "anyOf" in node:
        return fitting(chance.choice(node["anyOf"]), chance)
    if "enum" in node or "const" in node:
        return chance.choice(node.get("enum") or [node["const"]])
    kind = chance.choice([node["type"]] if isinstance(node.get("type"), str) else node.get("type", ["object"]))
    low = node.get("minimum", node.get("exclusiveMinimum", 0))
    high = node.get("maximum", node.get("exclusiveMaximum", 5))
    names = [*available_methods(), *TINY["definitions"]["experiments"], "digits", "mnist", "base", "mlp", "n", "3n"]
    return {
        "integer": lambda: chance.choice([low, low + 1, min(high, 60), high, high + 1]),
        "number": lambda: chance.choice([low, low + 1e-9, chance.uniform(low, high), high]),
        "string": lambda: chance.choice([*names, "exactly-1", "at-least-2", "results/x"]),
        "boolean": lambda: chance.random() < 0.5,
        "array": lambda: [fitting(node["items"], chance) for _ in range(chance.randint(1, 3))],
        "object": lambda: {},
        "null": lambda: None,
    }[kind]()


def configuration(chance: random.Random, made: Path) -> tuple[str, Callable[[], str]]:
    """Return a configuration with some values from the schema, and what tries it."""
    base, overlay = load_config([HERE / "tiny.yaml"]), json.loads(json.dumps(TINY))
    for path, node in chance.choices([*places(schema(), base)][1:], k=chance.randint(1, 3)):
        *above, last = path or ("name",)
        inner = overlay
        for name in above:
            inner[name] = inner.get(name) if isinstance(inner.get(name), dict) else {}
            inner = inner[name]
        inner[last] = fitting(node, chance) if chance.random() < 0.6 else chance.choice(NONSENSE)

    def case() -> str:
        Path("mine.yaml").write_text(yaml.safe_dump(overlay, allow_unicode=True))
        config = load_config(["mine.yaml"])
        if not Draft202012Validator(schema()).is_valid(config):
            return "accepted against the schema"
        show.check(config)
        plan = Plan(config)
        for cell, runs in plan.cells.items():
            spec = json.loads(json.dumps(plan.spec(cell)))
            size = spec["sampling"]["tuple_size"] * spec["sampling"]["n"] + spec["sampling"]["n_unlabeled"]
            if plan.minutes(cell) > 15 or size > 10_000 or runs[0].dataset != "digits":
                return "too large to try"
            images, out = made / "digits.npz", Path("cell.parquet")
            write_labels(images, Path("digits.npz"), spec["sides"], {})
            write_split(Path("digits.npz"), Path("split.npz"), plan.drawing(runs[0].split))
            train_cell(spec, images, Path("digits.npz"), Path("split.npz"), out, device="cpu")
            return "works" if len(read_runs(out)) == len(spec["trials"]) else "a cell lacks runs"
        return "works"

    return json.dumps(overlay, default=str), case


# -- commands -------------------------------------------------------------------------------------


def command(chance: random.Random, made: Path) -> tuple[str, Callable[[], str]]:
    """Return a command line of which one or two arguments are wrong, and what tries it."""
    arguments = chance.choice(json.loads((made / "commands.json").read_text()))
    for _ in range(chance.randint(1, 2)):
        place = chance.randrange(len(arguments))
        change = chance.randrange(5)
        other = str(chance.choice([*NONSENSE, *made.iterdir(), "--", "--sides", "/dev/null", "."])).replace("\0", "?")
        if change == 0 and arguments[place].startswith("{"):  # a value within JSON
            facts = json.loads(arguments[place])
            facts[chance.choice([*facts])] = chance.choice(NONSENSE[:-1])
            other = json.dumps(facts)
        ways = [[other], [], [other], [arguments[place]] * 2, [other]]
        arguments[place : place + (change < 4)] = ways[change]
    wanted = [Path(value) for name, value in pairwise(arguments) if name == "--out"]

    def case() -> str:
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                status = cli.main(arguments)
        except SystemExit as end:  # of --help
            return "works" if end.code == 0 else f"ends with {end.code}"
        if status == 2:
            (*_, last) = said.getvalue().splitlines() or [""]
            left = [path for path in wanted if path.parent == Path() and path.is_file()]
            return "refused" if last.startswith("error: ") and not left else f"status 2, {last}, {left}"
        return "works" if status in (0, 1) and all(path.exists() for path in wanted[-1:]) else "wrote nothing"

    return " ".join(arguments), case


# -- damaged files --------------------------------------------------------------------------------


def damaged(chance: random.Random, made: Path) -> tuple[str, Callable[[], str]]:
    """Return a file that is damaged in one way, and what tries to read it."""
    readers: dict[str, Callable[[Path], object]] = {
        "digits.npz": lambda path: read_images(path).checksum,
        "digits.json": lambda path: binarize(read_images(path.with_suffix(".npz")), sides)["train"].tolist(),
        "labels.npz": lambda path: {part: signs.tolist() for part, signs in read_labels(path).items()},
        "split.npz": lambda path: [array.tolist() for array in vars(read_split(path, 1)).values() if array is not None],
        "cell.parquet": lambda path: {key: run.history.to_json() for key, run in read_runs(path).items()},
        "metrics.parquet": lambda path: read_table(path).to_json(),
    }
    sides = {side: TINY["definitions"]["datasets"]["digits"][side] for side in ("positive", "negative")}
    name = chance.choice([*readers])
    whole = (made / name).read_bytes()
    place = chance.randrange(len(whole))
    way, content = chance.choice(
        [
            ("cut", whole[:place]),
            ("flipped", whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :]),
            ("blanked", whole[:place] + bytes(min(512, len(whole) - place)) + whole[place + 512 :]),
            ("exchanged", (made / chance.choice([one for one in readers if one != name])).read_bytes()),
            ("a web page", b"<!DOCTYPE html><html><body>Sign in</body></html>"),
            ("longer", whole + b"more"),
        ]
    )

    def case() -> str:
        for other in made.glob("*.*"):
            Path(other.name).write_bytes(other.read_bytes())
        before = readers[name](Path(name))
        Path(name).write_bytes(content)
        return "read as before" if readers[name](Path(name)) == before else "read as something else"

    return f"{name} {way} at {place}", case


# -- all ------------------------------------------------------------------------------------------


def make(made: Path) -> None:
    """Make the files that commands and readers get, and valid commands."""
    plan = Plan(load_config([HERE / "tiny.yaml"]))
    cell = next(iter(plan.cells))
    spec, drawing = plan.spec(cell), plan.drawing(plan.cells[cell][0].split)
    files = {name: made / f"{name}.npz" for name in ("digits", "labels", "split")}
    write_source("digits", made, None, files["digits"])
    write_labels(files["digits"], files["labels"], spec["sides"], {})
    write_split(files["labels"], files["split"], drawing)
    train_cell(spec, *files.values(), made / "cell.parquet", device="cpu")
    write_table(pd.concat([run.history for run in read_runs(made / "cell.parquet").values()]), made / "metrics.parquet")
    images, labels, split = (
        [f"--{name}", str(made / f"{file}.npz")]
        for name, file in (("images", "digits"), ("labels", "labels"), ("split", "split"))
    )
    commands = [
        ["dataset", "digits", "--data-dir", "data", "--out", "images.npz"],
        ["labels", *images, "--sides", json.dumps(spec["sides"]), "--counts", "{}", "--out", "labels.npz"],
        ["sheet", *images, *labels, "--out", "positive.png", "negative.png"],
        ["split", *labels, "--spec", json.dumps(drawing), "--out", "split.npz"],
        ["train", *images, *labels, *split, "--spec", json.dumps(spec), "--device", "cpu", "--out", "cell.parquet"],
        ["trace", "mnist/base/m2/n10000/prior0.5/relu", "--config", str(ROOT / "config" / "reference.yaml")],
        ["retrain", "digits/base/m2/n60/prior0.5/abs", "--config", str(HERE / "tiny.yaml")],
        ["verify", "--runs", "0", "--seed", "1"],
    ]  # fmt: skip
    (made / "commands.json").write_text(json.dumps(commands))


def main() -> None:
    """Try all cases, and count."""
    given = parser_of(__doc__)
    given.add_argument("--share", type=float, default=1.0, help="of the cases, e.g. 0.02 for a test")
    given.add_argument("--seed", type=int, default=1)
    options = given.parse_args()
    rounds, started = Rounds(options.out, "kind", "number", "case", "outcome"), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made")
        made.mkdir()
        os.environ["PYTHONWARNINGS"] = "ignore"
        said = attempt(lambda: make(made) or "made")
        assert said == "made", said
        for draw, count in ((configuration, 500), (command, 300), (damaged, 150)):
            for number in range(round(options.share * count)):
                if rounds.has(draw.__name__, number):
                    continue
                name, case = draw(random.Random(f"{draw.__name__} {options.seed} {number}"), made)
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    os.chdir(place)
                    rounds.add(draw.__name__, number, name, attempt(case))
                os.chdir(folder)
            print(f"{time.monotonic() - started:.0f} s, {draw.__name__}: {dict(rounds.count('outcome'))}", flush=True)
        os.chdir(ROOT)
    sys.exit(bool(rounds.count("outcome").keys() - {*FINE}))


if __name__ == "__main__":
    main()
