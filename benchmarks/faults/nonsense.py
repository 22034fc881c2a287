"""Give the program nonsense, and count what comes of it.

    python benchmarks/faults/nonsense.py --out nonsense.csv   # goes on from nonsense.csv

500 configurations have one to three values at random places of the schema, 300 commands an argument
that is lost, doubled or replaced, and 150 files are cut, flipped, blanked, exchanged or made
longer. Each is tried in a process of its own, and has to be refused in one sentence or to work:
what a plain JSON schema refuses is not accepted, a small cell of what is accepted is trained, and a
command refuses a damaged file or writes what it wrote before.
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
from functools import partial
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

PATIENCE = 300.0  # seconds until a case counts as hanging; it takes less than one of an idle core
REFUSED = "refused"
WORKS = "works"
LARGE = "too large to try"
NONSENSE = [
    *yaml.safe_load(r"""[null, true, -1, 0, 1.5, 1.0e-320, .nan, .inf, 100000000000000000000]"""),
    *yaml.safe_load(r"""["", a b, $(id), "5", "\0", "\e[2J", é, ../.., "{x}", -h, [], [null]]"""),
    *yaml.safe_load(r"""[[1, 1], [[]], {}, {default: null}, {x: 1}, {"": {}}, 2024-01-01]"""),
    "y" * 5000,
    [0.5] * 300,
]
NAMES = [
    "relu",
    "bag-free",
    "kmeans",
    "tiny-table",
    "digits",
    "base",
    "components",
    "n",
    "3n",
    "exactly-1",
    "curves",
]
LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength")
PLAN = Plan(load_config([HERE / "tiny.yaml"]))
CELL = next(iter(PLAN.cells))
# For each file, the command of `commands` that reads it, and what this writes.
READERS = {
    "digits.npz": (1, "labels.npz"),
    "digits.json": (1, "labels.npz"),
    "labels.npz": (2, "split.npz"),
    "split.npz": (3, "cell.parquet"),
    "cell.parquet": (3, "cell.parquet"),
}

Case = tuple[str, Callable[[], str]]  # its name, and what tries it in a folder with a cell's files


def attempt(case: Callable[[], str]) -> str:
    """Return what a case says, tried in a process of its own, or how it fails."""

    def work() -> None:
        try:
            said = case()
        except UserError as error:
            is_sentence = "\n" not in str(error)
            said = REFUSED if is_sentence else "several lines"
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
    spec = plan.spec(cell)
    images = ["--images", "digits.npz"]
    labels = ["--labels", "labels.npz"]

    dataset = ["dataset", "digits", "--data-dir", "data", "--out", "digits.npz"]
    sides = ["--sides", json.dumps(spec["sides"]), "--counts", "{}"]
    drawing = ["--spec", json.dumps(plan.drawing(cell.rpartition("/")[0]))]
    training = ["--split", "split.npz", "--spec", json.dumps(spec), "--device", "cpu"]
    config = str(HERE.parents[1] / "config/reference.yaml")
    return [
        dataset,
        ["labels", *images, *sides, "--out", "labels.npz"],
        ["split", *labels, *drawing, "--out", "split.npz"],
        ["train", *images, *labels, *training, "--out", "cell.parquet"],
        ["sheet", *images, *labels, "--out", "positive.png", "negative.png"],
        ["trace", "mnist/base/m2/n10000/prior0.5/relu", "--config", config],
    ]


def start(arguments: list[str]) -> str:
    """Run a command here, and return whether it works.

    One that refuses has to say why, and to change no file.
    """
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = cli.main(arguments)
    except SystemExit as end:  # of --help
        status = int(end.code or 0)

    last = "".join(said.getvalue().splitlines()[-1:])
    if status in (0, 1):
        return WORKS
    if status != 2 or not last.startswith("error: "):
        return f"status {status}: {last}"
    changed = [path for path, content in before.items() if path.read_bytes() != content]
    return "changed a file" if changed else REFUSED


# -- configurations -------------------------------------------------------------------------------

Keys = tuple[str, ...]
Node = Mapping[str, Any]  # a part of the schema


def resolved(node: Node) -> dict[str, Any]:
    """Return a part of the schema with what it refers to."""
    name = node.get("$ref", "").rpartition("/")[2]
    return {**node, **schema()["$defs"].get(name, {})}


def places(node: Node, value: Any, path: Keys = ()) -> Iterator[tuple[Keys, Node]]:
    """Yield all places of a schema, with their schemas.

    Names that are free are those of a value, and a new one.
    """
    present = value if isinstance(value, dict) else {}
    for alternative in (node, *node.get("allOf", []), *node.get("anyOf", [])):
        part = resolved(alternative)
        yield path, part

        parts = dict(part.get("properties", {}))
        free = part.get("additionalProperties")
        if isinstance(free, dict):
            parts |= dict.fromkeys([*present, "new"], free)
        for name, below in parts.items():
            yield from places(below, present.get(name), (*path, name))


def values(node: Node) -> list[Any]:
    """Return values that fit a schema."""
    part = resolved(node)
    candidates = [*part.get("enum", []), *NAMES, True, 0.5, 3]
    for limit in LIMITS:
        if limit in part:
            candidates += [part[limit] - 1, part[limit], part[limit] + 1]
    for alternative in part.get("anyOf", []):
        candidates += values(alternative)
    if "items" in part:
        candidates += [[value] for value in values(part["items"])]

    validator = Draft202012Validator({**part, "$defs": schema()["$defs"]})
    fitting = [value for value in candidates if validator.is_valid(value)]
    return fitting or candidates


def configuration(chance: random.Random) -> Case:
    """Lay some values from the schema, or nonsense, over the tiny configuration."""
    overlay = yaml.safe_load((HERE / "tiny.yaml").read_text())
    inner_places = list(places(schema(), PLAN.config))[1:]
    for path, node in chance.choices(inner_places, k=chance.randint(1, 3)):
        set_value(overlay, path or ("name",), chance.choice(candidates_at(node, chance)))

    def case() -> str:
        Path("mine.yaml").write_text(yaml.safe_dump(overlay, allow_unicode=True))
        config = load_config(["mine.yaml"])
        if not Draft202012Validator(schema()).is_valid(config):
            return "accepted against the schema"
        show.check(config)
        plan = Plan(config)
        for cell in list(plan.cells)[:1]:
            return train_anew(plan, cell)
        return WORKS

    return json.dumps(overlay, default=str), case


def candidates_at(node: Node, chance: random.Random) -> list[Any]:
    """Return values that fit a schema, or now and then nonsense."""
    if chance.random() < 0.7:
        return values(node)
    return NONSENSE


def set_value(config: dict[str, Any], path: Keys, value: Any) -> None:
    """Lay a value over a configuration, at the place of some keys."""
    *above, last = path
    section = config
    for name in above:
        if not isinstance(section.get(name), dict):
            section[name] = {}
        section = section[name]
    section[last] = value


def train_anew(plan: Plan, cell: str) -> str:
    """Make the labels, the split and the runs of a cell, if it is small."""
    sampling = plan.spec(cell)["sampling"]
    size = sampling["tuple_size"] * sampling["n"] + sampling["n_unlabeled"]
    is_digits = plan.cells[cell][0].dataset == "digits"
    if plan.minutes(cell) > 15 or size > 10_000 or not is_digits:
        return LARGE

    Path("cell.parquet").unlink()
    for arguments in commands(plan, cell)[1:4]:
        said = start(arguments)
        if said != WORKS:
            return said
    return WORKS


# -- commands -------------------------------------------------------------------------------------


def command(chance: random.Random) -> Case:
    """Put one or two things wrong into a command that works."""
    arguments = chance.choice(commands(PLAN, CELL))
    words = [*NONSENSE, *READERS, "--", "--sides", "/dev/null", "."]
    for _ in range(chance.randint(1, 2)):
        place = chance.randrange(len(arguments))
        word = str(chance.choice(words)).replace("\0", "?")
        argument = arguments[place]
        if argument.startswith("{") and chance.random() < 0.7:
            arguments[place] = wrong_json(argument, chance)
        else:
            ways = [word], [], [argument, argument], [word, argument]
            arguments[place : place + 1] = chance.choice(ways)
        arguments = arguments or ["--help"]
    return " ".join(arguments), lambda: start(arguments)


def wrong_json(text: str, chance: random.Random) -> str:
    """Put nonsense at one of the keys of an object."""
    facts = json.loads(text) or {"train": 1}
    key = chance.choice(list(facts))
    return json.dumps({**facts, key: chance.choice(NONSENSE)}, default=str)


# -- files ----------------------------------------------------------------------------------------


def damaged(chance: random.Random) -> Case:
    """Damage a file, and run the command that reads it."""
    name, (number, out) = chance.choice(list(READERS.items()))
    way = chance.randrange(6)
    fraction = chance.random()
    bit = 1 << chance.randrange(8)
    exchanged = chance.choice(sorted(READERS.keys() - {name}))

    def case() -> str:
        before = content(Path(out))
        damages = damages_of(Path(name).read_bytes(), Path(exchanged).read_bytes(), fraction, bit)
        if out != name:
            Path(out).unlink()
        Path(name).write_bytes(damages[way])

        said = start(commands(PLAN, CELL)[number])
        if said == WORKS and content(Path(out)) != before:
            return "another output"
        return said

    return f"{name}, way {way}, at {fraction:.3f}, {exchanged}", case


def damages_of(whole: bytes, exchanged: bytes, fraction: float, bit: int) -> list[bytes]:
    """Return a file that is cut, flipped, blanked, exchanged twice, and made longer."""
    place = int(fraction * len(whole))
    head = whole[:place]
    flipped = bytes([whole[place] ^ bit])
    return [
        head,
        head + flipped + whole[place + 1 :],
        head + bytes(512) + whole[place + 512 :],
        exchanged,
        b"<!DOCTYPE html><title>Sign in</title>",
        whole + b"more",
    ]


def content(path: Path) -> object:
    """Return what a file says: runs without their dates, other files as they are."""
    if path.suffix == ".parquet":
        return {key: run.about["sha256"] for key, run in read_runs(path).items()}
    return path.read_bytes()


def make_files(folder: Path) -> None:
    """Make the files of a cell in a new folder."""
    folder.mkdir()
    with contextlib.chdir(folder):
        for arguments in commands(PLAN, CELL)[:4]:
            assert attempt(partial(start, arguments)) == WORKS, arguments


def try_case(case: Callable[[], str], files: Path) -> str:
    """Return what comes of a case, in a folder of its own with the files of a cell."""
    shutil.copytree(files, "case")
    with contextlib.chdir("case"):
        outcome = attempt(case)
    shutil.rmtree("case")
    return outcome


def main() -> None:
    """Try all cases, and count."""
    parser = parser_of(__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the cases, e.g. 0.02")
    arguments = parser.parse_args()
    started = time.monotonic()
    rounds = Rounds(arguments.out, "kind", "number", "case", "outcome")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        files = Path(folder, "made")
        make_files(files)
        for draw, count in ((configuration, 500), (command, 300), (damaged, 150)):
            for number in range(round(arguments.share * count)):
                if not rounds.has(draw.__name__, number):
                    name, case = draw(random.Random(f"{draw.__name__} 1 {number}"))
                    rounds.add(draw.__name__, number, name, try_case(case, files))
            seconds = time.monotonic() - started
            outcomes = dict(rounds.count("outcome"))
            print(f"{seconds:.0f} s, {draw.__name__}: {outcomes}", flush=True)
    raise SystemExit(bool(rounds.count("outcome").keys() - {REFUSED, WORKS, LARGE}))


if __name__ == "__main__":
    main()
