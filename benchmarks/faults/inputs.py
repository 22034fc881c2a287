"""Hand over what nobody would write: configurations, command lines, packed runs; count how each ends.

    python benchmarks/faults/inputs.py [--cases 500] [--seed 1]

Configurations are drawn from the schema, command lines from the commands' own parameters, both mixed with values of
other kinds. Bytes of a file of packed runs are flipped, cut and repeated, and its rows are written again with other
values, epochs, recipes and columns. Each case runs in this process and has to end in one sentence, in the usage of a
command, or in being accepted. An accepted configuration is checked again by rules of its own, and accepted runs have to
be those that were packed, bit for bit. Needs hypothesis.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import itertools
import json
import math
import os
import re
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from harness import ROOT, TINY, parser_of, record
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from typer.main import get_command

from mdpu.errors import UserError
from mdpu.pipeline import cli, experiments
from mdpu.pipeline.cache import Cache, Finished, export
from mdpu.pipeline.config import canonical, load_config, load_yaml, merge, schema, select
from mdpu.pipeline.plan import Plan, parse_run
from mdpu.randomness import Stream

SECONDS = 60  # after which a case counts as hanging
HUGE = "0x" + "f" * 6000
DATE = datetime.date(2024, 1, 1)
NUMBERS = [0, 1, -1, 2, 0.5, 1.5, 1e-9, 1e300, 10**30, math.nan, math.inf, "HUGE"]
TEXTS = ["", "a", "a\n", "a\0b", "\x1b[31m", "\ud800", "x" * 300, "{a}", "br{a}ce.npz", "../up", "~", "5", "$(id)"]
ODD = [None, True, *NUMBERS, *TEXTS, [], [None], [[1]], {}, {"a": 1}, {5: 1, "zzz": 2}, [{}], DATE]


class Hang(BaseException):
    """A case took longer than `SECONDS`."""


def try_case(case: Callable[[], str], shown: object, tally: Counter[str]) -> None:
    """Count how a case ends, and show those that end badly."""

    def stop(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        outcome = case()
    except Hang:
        outcome = "HANG"
    except UserError as error:
        outcome = "MORE THAN A SENTENCE" if "\n" in str(error) else "one sentence"
    except Exception:
        outcome = "TRACEBACK"
        traceback.print_exc(limit=-4, file=sys.__stderr__)
    finally:
        signal.alarm(0)
    tally[outcome] += 1
    if outcome.isupper() or outcome.startswith("WRONG"):
        print(f"{outcome}: {shown!r:.800}", file=sys.__stderr__)


def drawn(cases: int, start: int, strategy: st.SearchStrategy[Any], case: Callable[[Any], str]) -> Counter[str]:
    """Try a case on what is drawn, and return how often it ended in which way."""
    tally: Counter[str] = Counter()

    @seed(start)
    @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def one(value: Any) -> None:
        try_case(lambda: case(value), value, tally)

    one()
    return tally


# -- configurations -------------------------------------------------------------------------------


def values(node: dict[str, Any], names: list[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of values for a node of the schema: most fit its kind, some are odd."""
    if "$ref" in node:
        return values(schema()["$defs"][node["$ref"].rpartition("/")[2]], names)
    choices = [values(part, names) for key in ("anyOf", "allOf") for part in node.get(key, [])]
    choices += [values(node[key], names) for key in ("then", "else") if key in node and "type" in node.get("if", {})]
    fixed = [*node.get("enum", []), *([node["const"]] if "const" in node else [])]
    kinds = node.get("type", "object" if "properties" in node else [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "object":
            keys = {key: values(part, names) for key, part in node.get("properties", {}).items()}
            if keys:
                some = st.lists(st.sampled_from(sorted(keys)), min_size=1, max_size=2, unique=True)
                choices.append(
                    some.flatmap(lambda chosen, keys=keys: st.fixed_dictionaries({k: keys[k] for k in chosen}))
                )
            if isinstance(node.get("additionalProperties"), dict):
                inner = values(node["additionalProperties"], names)
                choices.append(st.dictionaries(st.sampled_from(names), inner, max_size=2))
        elif kind == "array":
            choices.append(st.lists(values(node.get("items", {}), names), max_size=3))
        elif kind in ("integer", "number"):
            ends = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
            bounds = [node[key] for key in ends if key in node]
            fixed += [*NUMBERS, *bounds, *(bound + step for bound in bounds for step in (-1, 1))]
        else:
            fixed += [*TEXTS, *names] if kind == "string" else [None, True, False]
    return st.one_of(*choices, *([st.sampled_from(fixed)] if fixed else []), st.sampled_from(ODD))


def wrong_in(config: dict[str, Any], plan: Plan) -> str | None:
    """Return what is wrong with a configuration that was accepted, or None."""
    if yaml.safe_load(yaml.safe_dump(config, allow_unicode=True)) != config:
        return "it changes when it is written"
    definitions = config["definitions"]
    for name in [config["name"], *(name for kind in definitions.values() for name in kind)]:
        if not re.fullmatch("[a-z0-9][a-z0-9-]{0,99}", name):
            return f"the name {name!r}"
    text = yaml.safe_dump(config)
    if re.search(r"\\0|\\x|\\e|\\uD|\.nan|\.inf", text) or max(map(len, re.findall(r"\d+", text)), default=0) > 19:
        return "a character or a number"
    sources = [dataset["source"] for dataset in definitions["datasets"].values()]
    if re.search(r"[^\w./-]", config["results_dir"]) or any("{" in source for source in sources):
        return "a path"
    for run in plan.runs:
        if not 0 < float(run.prior) < 1 or run.tuple_size < 1 or run.n < 1 or parse_run(run.name) != run:
            return f"the run {run}"
    return None


def configurations(cases: int, start: int) -> Counter[str]:
    """Try configurations in the three ways in which they are read: by a command, by ./run, by Snakemake."""
    base = load_config([ROOT / "config.yaml", ROOT / "config" / "quick.yaml"])
    defined = [name for kind in base["definitions"].values() for name in kind]
    names = [*defined, "new", "mlp", "default", "relu", "a" * 101, "UPPER", "a\n", 5, None, True]

    def case(value: tuple[Any, int]) -> str:
        overlay, way = value
        path = Path("overlay.yaml")
        path.write_text(yaml.safe_dump(overlay, allow_unicode=True, sort_keys=False).replace("HUGE", HUGE))
        if way == 0:
            config = select("quick", [path], [])
        elif way == 1:
            pairs = overlay.items() if isinstance(overlay, dict) else [("name", overlay)]
            flow = [f"{k}={yaml.safe_dump(v, default_flow_style=True, width=10**9)}" for k, v in pairs]
            config = select("quick", [], [text.removesuffix("\n").removesuffix("\n...") for text in flow])
        else:
            config = merge(base, load_yaml(path)) if way == 2 else canonical(load_yaml(path))
        plan = Plan(config)
        experiments.check(config)
        wrong = wrong_in(config, plan)
        return f"WRONG: {wrong}" if wrong else "accepted, and right by rules of their own"

    return drawn(cases, start, st.tuples(values(schema(), names), st.integers(0, 3)), case)


# -- command lines --------------------------------------------------------------------------------


def command_lines(cases: int, start: int) -> Counter[str]:
    """Try command lines on good and odd files, of which the good ones must stay as they are."""
    good = (ROOT / TINY).read_text() + "\nresults_dir: out\ndata_dir: data\n"
    files = {"good.yaml": good, "text": "hello", "empty": "", "list.json": "[]", "odd.yaml": "name: 3"}
    for name, content in files.items():
        Path(name).write_text(content)
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("link").symlink_to("nowhere")
    paths = ["", ".", "folder", "pipe", "link", "missing", "text/below", "x" * 300, "out.npz", "br{a}ce", "-"]
    paths += [*files, "\udcff", "a\x1b[31m"]
    words = ["nope", "digits", "tiny-table", "quick", "paper", "digits/base/m2/n60", "../up", "a\n", "\udcff", "a=b"]
    words += ["0", "1", "2", "-1", "0.5", "nan", "inf", "1e30", str(10**30), "x", "", "."]
    kept = {name: Path(name).read_bytes() for name in ("text", "good.yaml", "list.json")}
    commands = get_command(cli.app).commands  # type: ignore[attr-defined]
    known = {name: command.params for name, command in commands.items() if name != "run"}  # it starts Snakemake

    def argument(parameter: Any) -> st.SearchStrategy[list[str]]:
        if getattr(parameter, "is_flag", False):
            return st.sampled_from([[parameter.opts[0]], []])
        pool = paths if parameter.metavar and parameter.metavar.startswith(("FILE", "DIR")) else words
        if parameter.name == "config":
            pool = ["good.yaml"] * 20 + paths
        option = parameter.opts[:1] if parameter.param_type_name == "option" else []
        return st.sampled_from([*([*option, text] for text in pool), []])

    def ending(line: list[str]) -> str:
        said, status = io.StringIO(), 0
        sys.argv = ["mdpu", *line]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            try:
                cli.main()
            except SystemExit as end:
                status = int(end.code or 0)
        if any(Path(name).read_bytes() != content for name, content in kept.items() if name not in line):
            return "WRONG: a file that was not named has changed"
        if not Path("pipe").is_fifo() or not Path("folder").is_dir():
            return "WRONG: a pipe or a folder was replaced"
        if status != 2:
            return "accepted" if status in (0, 1) else "ODD STATUS"
        if said.getvalue().rstrip("\n").rpartition("\n")[2].startswith("error: "):
            return "one sentence"
        return "usage of the command" if "Usage:" in said.getvalue() else "SILENT"

    def case(line: list[str]) -> str:
        try:
            return ending(line)
        finally:
            for name, content in kept.items():
                Path(name).write_bytes(content)

    lines = st.sampled_from(sorted(known)).flatmap(
        lambda name: st.tuples(*map(argument, known[name])).map(lambda parts: [name, *itertools.chain(*parts)])
    )
    return drawn(cases, start, lines, case)


# -- packed runs ----------------------------------------------------------------------------------

RUNS, EPOCHS = 6, 5
WRONG_VALUES = (np.nan, np.inf, -1.0, 1e9, 0.5, 5e-324)


def finished(number: int) -> Finished:
    """Return a run that nobody trained."""
    stream = Stream(number, "tampered packs")
    measures = ("objective", "risk", "true_positive_rate", "true_negative_rate", "raw_accuracy", "accuracy")
    history = pd.DataFrame({"epoch": range(1, EPOCHS + 1), **{name: stream.uniform(EPOCHS) for name in measures}})
    recipe = {"trial": f"made/seed{number}", "method": "relu", "code": "a", "settings": {"epochs": EPOCHS}}
    return Finished.of(recipe, history, origin={"commit": "a"}, split="b", diagnostics={"p_value": 0.5})


def in_bytes(content: bytes, draw: Callable[[int], int]) -> bytes:
    """Return a file with a byte flipped, a piece cut out, or a piece repeated."""
    way, (first, second) = draw(3), sorted((draw(len(content)), draw(len(content))))
    if way == 0:
        return content[:first] + bytes([content[first] ^ (1 + draw(255))]) + content[first + 1 :]
    return content[:first] + content[second:] if way == 1 else content[:second] + content[first:]


def in_rows(rows: pd.DataFrame, draw: Callable[[int], int]) -> pd.DataFrame:
    """Return the rows of a packed file with one change of their meaning."""
    place, numbers = draw(len(rows)), list(rows.select_dtypes("float").columns)
    column, about = numbers[draw(len(numbers))], json.loads(rows["about"].iloc[place])
    own = rows["fingerprint"] == rows["fingerprint"].iloc[place]
    settings_of_run = {**about["recipe"], "settings": {"epochs": EPOCHS - 1}}
    ways = (
        lambda: rows.assign(**{column: rows[column].where(rows.index != place, WRONG_VALUES[draw(6)])}),
        lambda: rows.drop(index=place),
        lambda: rows.iloc[::-1],
        lambda: pd.concat([rows, rows[own]]),
        lambda: rows.assign(about=rows["about"].mask(own, json.dumps({**about, "recipe": settings_of_run}))),
        lambda: rows.assign(about=rows["about"].mask(own, json.dumps({**about, "sha256": "0" * 64}))),
        lambda: rows.assign(**{column: rows[column].astype(str)}),
        lambda: rows.drop(columns=[("about", "epoch", "fingerprint", "accuracy")[draw(4)]]),
    )
    return ways[draw(len(ways))]()


def packed_runs(cases: int, start: int) -> Counter[str]:
    """Tamper with packed runs in every way, and import them."""
    tally: Counter[str] = Counter()
    runs = {run.fingerprint: run for run in map(finished, range(RUNS))}
    export(list(runs.values()), Path("whole.parquet"))
    content, rows, packed = Path("whole.parquet").read_bytes(), pd.read_parquet("whole.parquet"), Path("packed.parquet")

    def case(number: int) -> str:
        stream = Stream(start, "tampering", number)

        def draw(below: int) -> int:
            return int(stream.integers(below, 1)[0])

        if number % 2:
            packed.write_bytes(in_bytes(content, draw))
        else:
            in_rows(rows, draw).to_parquet(packed, index=False)
        cache = Cache(Path(f"cache{number}"))
        cache.import_runs(packed)
        for name, run in cache.load(cache.names()).items():
            if name not in runs or not run.history.equals(runs[name].history) or run.about != runs[name].about:
                return f"WRONG: the run {name}"
        return "accepted, with the same runs"

    for number in range(cases):
        try_case(lambda number=number: case(number), number, tally)
    return tally


NONSENSE = "nonsense, drawn from the schema and the commands"
TRIALS = {
    (NONSENSE, "configurations"): configurations,
    (NONSENSE, "command lines"): command_lines,
    ("packed runs, tampered with", "bytes and rows"): packed_runs,
}


def main() -> None:
    """Try all, and record the counts."""
    parser = parser_of(__doc__, out=False)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    failed = False
    for (fault, where), trial in TRIALS.items():
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "nothing").mkdir()
            os.environ["MDPU_MIRROR"] = str(Path(folder, "nothing"))  # so that nothing is downloaded
            with contextlib.chdir(folder):
                tally = trial(asked.cases, asked.seed)
        print(f"{where}, seed {asked.seed}: " + ", ".join(f"{count} {outcome}" for outcome, count in tally.items()))
        record(fault, where, tally)
        failed = failed or any(outcome != outcome.lower() for outcome in tally)
    sys.exit(failed)


if __name__ == "__main__":
    main()
