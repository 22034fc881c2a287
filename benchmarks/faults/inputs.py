"""Hand over configurations and command lines that nobody would write, and count how each ends.

    python benchmarks/faults/inputs.py [--cases 500] [--seed 1]

Configurations are drawn from the schema, command lines from the commands' own parameters, both mixed with values of
other kinds. Each runs in this process and has to end in one sentence, in the usage of a command, or in being accepted.
What is accepted is checked again by rules of its own. Needs hypothesis.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import itertools
import math
import os
import re
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import outcomes
import yaml
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from typer.main import get_command

from mdpu.errors import UserError
from mdpu.pipeline import cli, experiments
from mdpu.pipeline.config import canonical, load_config, load_yaml, merge, schema, select
from mdpu.pipeline.plan import Plan, parse_run

ROOT = Path(__file__).resolve().parent.parent.parent
TINY = ROOT / "benchmarks" / "faults" / "tiny.yaml"
SECONDS = 60  # after which a case counts as hanging
HUGE = "0x" + "f" * 6000
DATE = datetime.date(2024, 1, 1)
NUMBERS = [0, 1, -1, 2, 0.5, 1.5, 1e-9, 1e300, 10**30, math.nan, math.inf, "HUGE"]
TEXTS = ["", "a", "a\n", "a\0b", "\x1b[31m", "\ud800", "x" * 300, "{a}", "br{a}ce.npz", "../up", "~", "5", "$(id)"]
ODD = [None, True, *NUMBERS, *TEXTS, [], [None], [[1]], {}, {"a": 1}, {5: 1, "zzz": 2}, [{}], DATE]


class Hang(BaseException):
    """A case took longer than `SECONDS`."""


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
            bounds = [
                node[key] for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if key in node
            ]
            fixed += [*NUMBERS, *bounds, *(bound + step for bound in bounds for step in (-1, 1))]
        elif kind == "string":
            fixed += [*TEXTS, *names]
        else:
            fixed += [None, True, False]
    return st.one_of(*choices, *([st.sampled_from(fixed)] if fixed else []), st.sampled_from(ODD))


def check_accepted(config: dict[str, Any], plan: Plan) -> str | None:
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
    if re.search(r"[^\w./-]", config["results_dir"]) or any(
        "{" in d["source"] for d in definitions["datasets"].values()
    ):
        return "a path"
    for run in plan.runs:
        if not 0 < float(run.prior) < 1 or run.tuple_size < 1 or run.n < 1 or parse_run(run.name) != run:
            return f"the run {run}"
    return None


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise `Hang` in a block that takes too long."""

    def stop(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def try_case(case: Callable[[], str], shown: object, tally: Counter[str]) -> None:
    """Count how a case ends, and show those that end badly."""
    try:
        with limited():
            outcome = case()
    except Hang:
        outcome = "HANG"
    except UserError as error:
        outcome = "MORE THAN A SENTENCE" if "\n" in str(error) else "one sentence"
    except Exception:
        outcome = "TRACEBACK"
        traceback.print_exc(limit=-4, file=sys.__stderr__)
    tally[outcome] += 1
    if outcome.isupper() or outcome.startswith("WRONG"):
        print(f"{outcome}: {shown!r:.800}", file=sys.__stderr__)


def configurations(cases: int, start: int) -> Counter[str]:
    """Try configurations in the three ways in which they are read: by a command, by ./run, by Snakemake."""
    tally: Counter[str] = Counter()
    base = load_config([ROOT / "config.yaml", ROOT / "config" / "quick.yaml"])
    defined = [name for kind in base["definitions"].values() for name in kind]
    names = [*defined, "new", "mlp", "default", "relu", "a" * 101, "UPPER", "a\n", 5, None, True]

    @seed(start)
    @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(values(schema(), names), st.integers(0, 3))
    def one(overlay: Any, way: int) -> None:
        def case() -> str:
            path = Path("overlay.yaml")
            path.write_text(yaml.safe_dump(overlay, allow_unicode=True, sort_keys=False).replace("HUGE", HUGE))
            if way == 0:
                config = select("quick", [path], [])
            elif way == 1:
                pairs = overlay.items() if isinstance(overlay, dict) else [("name", overlay)]
                flow = [f"{k}={yaml.safe_dump(v, default_flow_style=True, width=10**9)}" for k, v in pairs]
                config = select("quick", [], [text.removesuffix("\n").removesuffix("\n...") for text in flow])
            else:
                config = (lambda over: merge(base, over) if way == 2 else canonical(over))(load_yaml(path))
            plan = Plan(config)
            experiments.check(config)
            wrong = check_accepted(config, plan)
            return f"WRONG: {wrong}" if wrong else "accepted, and right by rules of their own"

        try_case(case, overlay, tally)

    one()
    return tally


def commands(cases: int, start: int) -> Counter[str]:
    """Try command lines on good and odd files, of which the good ones must stay as they are."""
    tally: Counter[str] = Counter()
    Path("good.yaml").write_text(TINY.read_text() + "\nresults_dir: out\ndata_dir: data\n")
    for name, content in {"text": "hello", "empty": "", "list.json": "[]", "odd.yaml": "name: 3"}.items():
        Path(name).write_text(content)
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("link").symlink_to("nowhere")
    paths = ["", ".", "folder", "pipe", "link", "text", "empty", "list.json", "missing", "text/below", "x" * 300]
    paths += ["good.yaml", "odd.yaml", "out.npz", "br{a}ce", "-", "\udcff", "a\x1b[31m"]
    numbers = ["0", "1", "2", "-1", "0.5", "nan", "inf", "1e30", str(10**30), "x", ""]
    words = [
        "nope",
        "digits",
        "tiny-table",
        "quick",
        "paper",
        "digits/base/m2/n60",
        "",
        ".",
        "../up",
        "a\n",
        "\udcff",
        "a=b",
    ]
    kept = {name: Path(name).read_bytes() for name in ("text", "good.yaml", "list.json")}
    root = get_command(cli.app)
    known = {name: command.params for name, command in root.commands.items() if name != "run"}  # it starts Snakemake

    def argument(parameter: Any) -> st.SearchStrategy[list[str]]:
        if getattr(parameter, "is_flag", False):
            return st.sampled_from([[parameter.opts[0]], []])
        pool = paths if parameter.metavar and parameter.metavar.startswith(("FILE", "DIR")) else [*words, *numbers]
        if parameter.name == "config":
            pool = ["good.yaml"] * 20 + paths
        option = parameter.opts[:1] if parameter.param_type_name == "option" else []
        return st.sampled_from([*([*option, text] for text in pool), []])

    lines = st.sampled_from(sorted(known)).flatmap(
        lambda name: st.tuples(*map(argument, known[name])).map(lambda parts: [name, *itertools.chain(*parts)])
    )

    @seed(start)
    @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(lines)
    def one(line: list[str]) -> None:
        def case() -> str:
            said = io.StringIO()
            sys.argv = ["mdpu", *line]
            status: Any = 0
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
                try:
                    cli.main()
                except SystemExit as end:
                    status = end.code or 0
            last = said.getvalue().rstrip("\n").rpartition("\n")[2]
            if any(Path(name).read_bytes() != content for name, content in kept.items() if name not in line):
                return "WRONG: a file that was not named has changed"
            if not Path("pipe").is_fifo() or not Path("folder").is_dir():
                return "WRONG: a pipe or a folder was replaced"
            if status == 2:
                return (
                    "one sentence"
                    if last.startswith("error: ")
                    else "usage of the command"
                    if "Usage:" in said.getvalue()
                    else "SILENT"
                )
            return "accepted" if status in (0, 1) else "ODD STATUS"

        try_case(case, line, tally)
        for name, content in kept.items():
            Path(name).write_bytes(content)

    one()
    return tally


def main() -> None:
    """Try both, and record the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nothing").mkdir()
        os.environ["MDPU_MIRROR"] = str(Path(folder, "nothing"))  # so that nothing is downloaded
        for name, trial in (("configurations", configurations), ("command lines", commands)):
            with contextlib.chdir(folder):
                tally = trial(given.cases, given.seed)
            print(f"{name}, seed {given.seed}: " + ", ".join(f"{count} {outcome}" for outcome, count in tally.items()))
            outcomes.record("nonsense, drawn from the schema and the commands", name, tally)
            failed = failed or any(outcome != outcome.lower() for outcome in tally)
    sys.exit(failed)


if __name__ == "__main__":
    main()
