"""Give the program nonsense: configurations from its schema, command lines, damaged files; count what comes of it.

    python benchmarks/faults/nonsense.py --out nonsense.csv      # goes on from nonsense.csv, if it is there

500 configurations have one to three values at random places of the schema, 300 commands an argument that is lost,
doubled or replaced, and 150 files are cut, flipped, blanked, exchanged or made longer. Each is tried in a process of
its own, and has to be refused in one sentence or to work: what a plain JSON schema refuses is not accepted, a small
cell of what is accepted is trained, and a command refuses a damaged file or writes what it wrote before.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch  # noqa: F401  # once, before processes are forked
import yaml
from harness import HERE, Rounds, parser_of
from jsonschema import Draft202012Validator

from mdpu.errors import UserError
from mdpu.pipeline import cli, show
from mdpu.pipeline.config import load_config, schema
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.store import read_runs

PATIENCE = 300.0  # seconds until a case counts as hanging; one takes less than a second of an idle core
REFUSED, WORKS, LARGE = "refused", "works", "too large to try"
NONSENSE = yaml.safe_load(r"""[null, true, -1, 0, 1.5, 1.0e-320, .nan, .inf, 100000000000000000000, "", a b, $(id), "5",
    "\0", "\e[2J", é, ../.., "{x}", -h, [], [null], [1, 1], [[]], {}, {default: null}, {x: 1}, {"": {}}, 2024-01-01]""")
NONSENSE += ["y" * 5000, [0.5] * 300]
NAMES = ["relu", "bag-free", "kmeans", "tiny-table", "digits", "base", "components", "n", "3n", "exactly-1", "curves"]
LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength")
PLAN = Plan(load_config([HERE / "tiny.yaml"]))
CELL = next(iter(PLAN.cells))
# For each file, the command of `commands` that reads it, and what this writes.
READERS = {"digits.npz": (1, "labels.npz"), "digits.json": (1, "labels.npz"), "labels.npz": (2, "split.npz")}
READERS |= {"split.npz": (3, "cell.parquet"), "cell.parquet": (3, "cell.parquet")}


def attempt(case: Callable[[], str]) -> str:
    """Return what a case says, tried in a process of its own, or how it fails."""

    def work() -> None:
        try:
            said = case()
        except UserError as error:
            said = REFUSED if "\n" not in str(error) else "several lines"
        except BaseException as error:
            said = f"traceback: {type(error).__name__}: {error}"
        writer.send(said)

    reader, writer = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    writer.close()
    try:
        return reader.recv() if reader.poll(PATIENCE) else "hang"
    except EOFError:
        return "crash"
    finally:
        process.kill()


def commands(plan: Plan, cell: str) -> list[list[str]]:
    """Return commands that make the files of a cell one after the other, then others that work."""
    spec, drawing = plan.spec(cell), plan.drawing(cell.rpartition("/")[0])
    images, labels = ["--images", "digits.npz"], ["--labels", "labels.npz"]
    train = ["--split", "split.npz", "--spec", json.dumps(spec), "--device", "cpu", "--out", "cell.parquet"]
    return [
        ["dataset", "digits", "--data-dir", "data", "--out", "digits.npz"],
        ["labels", *images, "--sides", json.dumps(spec["sides"]), "--counts", "{}", "--out", "labels.npz"],
        ["split", *labels, "--spec", json.dumps(drawing), "--out", "split.npz"],
        ["train", *images, *labels, *train],
        ["sheet", *images, *labels, "--out", "positive.png", "negative.png"],
        ["trace", "mnist/base/m2/n10000/prior0.5/relu", "--config", str(HERE.parents[1] / "config/reference.yaml")],
    ]


def start(arguments: list[str]) -> str:
    """Run a command here, and return whether it works; one that refuses has to say why, and to change no file."""
    before, said = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}, io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = cli.main(arguments)
    except SystemExit as end:  # of --help
        status = int(end.code or 0)
    last = "".join(said.getvalue().splitlines()[-1:])
    if status == 2 and last.startswith("error: "):
        return REFUSED if all(path.read_bytes() == content for path, content in before.items()) else "changed a file"
    return WORKS if status in (0, 1) else f"status {status}: {last}"


# -- the cases: each function returns the name of a case, and what tries it in a folder with the files of a cell -------


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


def values(node: Mapping[str, Any]) -> list[Any]:
    """Return values that fit a schema."""
    node = {**node, **schema()["$defs"].get(node.get("$ref", "").rpartition("/")[2], {})}
    found = [*node.get("enum", []), *NAMES, True, 0.5, 3]
    found += [node[limit] + step for limit in LIMITS if limit in node for step in (-1, 0, 1)]
    found += [value for other in node.get("anyOf", []) for value in values(other)]
    found += [[value] for value in values(node["items"])] if "items" in node else []
    fits = Draft202012Validator({**node, "$defs": schema()["$defs"]}).is_valid
    return list(filter(fits, found)) or found


def configuration(chance: random.Random) -> tuple[str, Callable[[], str]]:
    """Lay some values from the schema, or nonsense, over the tiny configuration."""
    overlay = yaml.safe_load((HERE / "tiny.yaml").read_text())
    for path, node in chance.choices([*places(schema(), PLAN.config)][1:], k=chance.randint(1, 3)):
        *above, last = path or ("name",)
        inner = overlay
        for name in above:
            inner[name] = inner.get(name) if isinstance(inner.get(name), dict) else {}
            inner = inner[name]
        inner[last] = chance.choice(values(node) if chance.random() < 0.7 else NONSENSE)

    def case() -> str:
        Path("mine.yaml").write_text(yaml.safe_dump(overlay, allow_unicode=True))
        config = load_config(["mine.yaml"])
        if not Draft202012Validator(schema()).is_valid(config):
            return "accepted against the schema"
        show.check(config)
        plan = Plan(config)
        for cell, runs in [*plan.cells.items()][:1]:
            sampling = plan.spec(cell)["sampling"]
            size = sampling["tuple_size"] * sampling["n"] + sampling["n_unlabeled"]
            if plan.minutes(cell) > 15 or size > 10_000 or runs[0].dataset != "digits":
                return LARGE
            Path("cell.parquet").unlink()
            return next((said for said in map(start, commands(plan, cell)[1:4]) if said != WORKS), WORKS)
        return WORKS

    return json.dumps(overlay, default=str), case


def command(chance: random.Random) -> tuple[str, Callable[[], str]]:
    """Put one or two things wrong into a command that works."""
    arguments = chance.choice(commands(PLAN, CELL))
    for _ in range(chance.randint(1, 2)):
        place = chance.randrange(len(arguments))
        other = str(chance.choice([*NONSENSE, *READERS, "--", "--sides", "/dev/null", "."])).replace("\0", "?")
        if arguments[place].startswith("{") and chance.random() < 0.7:  # a value within JSON
            facts = json.loads(arguments[place]) or {"train": 1}
            arguments[place] = json.dumps({**facts, chance.choice([*facts]): chance.choice(NONSENSE)}, default=str)
        else:
            ways = [other], [], [arguments[place]] * 2, [other, arguments[place]]
            arguments[place : place + 1] = chance.choice(ways)
        arguments = arguments or ["--help"]
    return " ".join(arguments), lambda: start(arguments)


def damaged(chance: random.Random) -> tuple[str, Callable[[], str]]:
    """Damage a file, and run the command that reads it."""
    (name, (number, out)), way = chance.choice([*READERS.items()]), chance.randrange(6)
    fraction, bit, other = chance.random(), 1 << chance.randrange(8), chance.choice(sorted({*READERS} - {name}))

    def case() -> str:
        whole, before = Path(name).read_bytes(), content(Path(out))
        place = int(fraction * len(whole))
        changed, rest = bytes([whole[place] ^ bit]), whole[place + 512 :]
        ways = [whole[:place], whole[:place] + changed + whole[place + 1 :], whole[:place] + bytes(512) + rest]
        ways += [Path(other).read_bytes(), b"<!DOCTYPE html><title>Sign in</title>", whole + b"more"]
        if out != name:
            Path(out).unlink()
        Path(name).write_bytes(ways[way])
        said = start(commands(PLAN, CELL)[number])
        return said if said != WORKS or content(Path(out)) == before else "another output"

    return f"{name}, way {way}, at {fraction:.3f}, {other}", case


def content(path: Path) -> object:
    """Return what a file says: runs without their dates, other files as they are."""
    if path.suffix == ".parquet":
        return {key: run.about["sha256"] for key, run in read_runs(path).items()}
    return path.read_bytes()


def main() -> None:
    """Try all cases, and count."""
    parser = parser_of(__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the cases, e.g. 0.02 for a test")
    given, started = parser.parse_args(), time.monotonic()
    rounds = Rounds(given.out, "kind", "number", "case", "outcome")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        made = Path(folder, "made")
        made.mkdir()
        with contextlib.chdir(made):
            for arguments in commands(PLAN, CELL)[:4]:
                assert attempt(lambda arguments=arguments: start(arguments)) == WORKS, arguments
        for draw, count in ((configuration, 500), (command, 300), (damaged, 150)):
            for number in range(round(given.share * count)):
                if not rounds.has(draw.__name__, number):
                    name, case = draw(random.Random(f"{draw.__name__} 1 {number}"))
                    shutil.copytree(made, "case")
                    with contextlib.chdir("case"):
                        rounds.add(draw.__name__, number, name, attempt(case))
                    shutil.rmtree("case")
            print(f"{time.monotonic() - started:.0f} s, {draw.__name__}: {dict(rounds.count('outcome'))}", flush=True)
    raise SystemExit(bool(rounds.count("outcome").keys() - {REFUSED, WORKS, LARGE}))


if __name__ == "__main__":
    main()
