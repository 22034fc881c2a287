"""Kill or fail every command of a tiny workflow at each of its calls that change files, and say what came of it.

    python benchmarks/faults/points.py --out points.csv                            # SIGKILL at every call
    python benchmarks/faults/points.py --fault ENOSPC --points 10 --out full.csv   # a full disk, at ten calls each
    python benchmarks/faults/points.py --fault EIO EROFS --only train --points 3 --out train.csv

Run in a clone; needs gcc. The commands are those that Snakemake lists for the experiment. Before each point the results
are put back to what they were before the command, or, for a second pass, after it, as when a command runs again over
its own outputs. Calls are counted, not drawn: those of the C library that change files (`calls.c`). A point
passes if

- nothing that is there afterwards is torn: every file and every seal is absent or whole, the old contents or the new;
- a call that failed gave one sentence, and a status other than 0;
- the same command, run once more, leaves the very bytes of an undisturbed one, and not one file besides. Before it,
  what does not match its seal is deleted, as `./run` does: a file is there before its seal.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import importlib
import io
import json
import os
import pkgutil
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Collection
from contextlib import redirect_stderr, redirect_stdout, suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from harness import ERRORS, ROOT, TINY, Rounds, build_counter, parser_of, put_back, record

if TYPE_CHECKING:
    from mdpu.pipeline.plan import Plan

FILES = [TINY, "benchmarks/faults/points.yaml"]
# What the table of outcomes calls them.
FAULTS = {"kill": "SIGKILL", **ERRORS}


def list_commands() -> list[list[str]]:
    """Return the arguments of every command that Snakemake would run, in order."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "-n", "-p", "--forceall", "--configfile", *FILES]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line for line in (listed.stdout + listed.stderr).splitlines() if "python -m mdpu" in line]
    return [shlex.split(line.partition("python -m mdpu ")[2].partition(" &> ")[0]) for line in lines]


class Trial:
    """Commands of a plan, run in children of this process, which has loaded everything that they need."""

    def __init__(self, plan: Plan, results: Path) -> None:
        self.plan, self.results, self.config = plan, results, str(plan.layout.config)
        self.counter = ctypes.CDLL(None)  # `calls.c`, which was loaded before the C library
        self.counter.arm.argtypes = [ctypes.c_long, ctypes.c_int]
        self.counter.counted.restype = ctypes.c_long
        self.counter.watch(b"")

    def run(self, words: list[str], at: int = 0, error: int = 0, made: Collection[Path] = ()) -> tuple[int, str, int]:
        """Run a command that is disturbed at a call, or at none; return its status, standard error and calls.

        If it is said what rules have `made`, the results are repaired before.
        """
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            if made:
                from mdpu.pipeline.check import repair

                repair(self.plan, made)
            status, text, calls = self._run_here(words, at, error)
            os.write(writer, json.dumps([text[-20000:], calls]).encode())
            os._exit(status)
        os.close(writer)
        with open(reader, "rb") as stream:  # noqa: PTH123  a descriptor
            told = stream.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text, calls = json.loads(told) if told else ("", 0)
        return status, text, calls

    def _run_here(self, words: list[str], at: int, error: int) -> tuple[int, str, int]:
        from mdpu.pipeline import cli

        sys.argv = ["mdpu", *(self.config if word == "$MDPU_CONFIG" else word for word in words)]
        err, status = io.StringIO(), 0
        with redirect_stderr(err), redirect_stdout(io.StringIO()):
            self.counter.arm(at if at else 2**40, error)
            try:
                cli.main()
            except SystemExit as end:
                status = int(end.code or 0)
            except BaseException as trouble:  # what a user would see as a traceback
                traceback.print_exception(trouble)
                status = 1
            calls = self.counter.counted()
            self.counter.arm(-1, 0)
        return status, err.getvalue(), calls

    def disturb(self, words: list[str], at: int, fault: str, snapshot: Path, after: dict[str, bytes]) -> str:
        """Disturb a command at a call, run it once more, and return what came of it; ``recovered`` is what should.

        It starts from a snapshot of the results, and `after` is what an undisturbed command leaves.
        """
        from mdpu.pipeline.files import is_seal, sealed_path

        put_back(snapshot, self.results)
        old = contents(self.results)
        status, text, _ = self.run(words, at, getattr(errno, fault, 0))
        if wrong := torn(contents(self.results), old, after):
            return f"torn: {', '.join(wrong)}"
        if status not in (0, -signal.SIGKILL):
            last = text.strip().splitlines()[-1:] or [""]
            if "Traceback" in text or not last[0].startswith("error: "):
                return f"no sentence: {last[0][:200]}"
        made = [sealed_path(self.results / name) for name in after if is_seal(Path(name))]
        status, text, _ = self.run(words, made=made)
        if status:
            return f"fails for good: {text.strip().splitlines()[-1:]}"
        now = contents(self.results)
        other = sorted(name for name in now.keys() | after if now.get(name) != after.get(name))
        return f"other bytes: {', '.join(other)}" if other else "recovered"


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files, without what tells of the way: how many runs a job found finished, and so what it read.

    Records of progress tell of nothing else.
    """
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "progress" not in path.parts):
        name = str(path.relative_to(folder))
        found[name] = path.read_bytes()
        seal, facts = path.name.endswith(".json.seal"), path.suffix == ".json"
        if "trained" in path.parts and (seal or facts):
            ways = ("inputs", "sha256", "seal") if seal else ("reused",)
            with suppress(ValueError):
                known = {**json.loads(found[name]), **dict.fromkeys(ways)}
                found[name] = json.dumps(known, sort_keys=True).encode()
    return found


def torn(now: dict[str, bytes], old: dict[str, bytes], new: dict[str, bytes]) -> list[str]:
    """Return the files, seals among them, that are neither the old ones nor the new.

    Temporary files are hidden, those of seals with a second dot, and checkpoints are of many moments.
    """
    from mdpu.pipeline.check import BESIDE
    from mdpu.pipeline.files import is_seal

    wrong = []
    for name, content in now.items():
        path = Path(name)
        temporary = path.name.startswith("..") or (path.name.startswith(".") and not is_seal(path))
        if not temporary and BESIDE.isdisjoint(path.parts) and content not in (old.get(name), new.get(name)):
            wrong.append(name)
    return wrong


def name_of(words: list[str]) -> str:
    """Return the name of a command, that of its part for ``evaluate``."""
    return words[1] if words[0] == "evaluate" else words[0]


def load_everything() -> None:
    """Load what any command loads, and read the training code, here and once, instead of in each child.

    Times and the commit get fixed values, so that a command leaves the same bytes whenever it runs.
    """
    import jsonschema  # noqa: F401
    import sklearn.datasets  # noqa: F401
    from matplotlib import pyplot as plt
    from PIL import Image

    import mdpu

    for module in pkgutil.walk_packages(mdpu.__path__, "mdpu."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    Image.init()
    figure, axes = plt.subplots()
    axes.set_title("$x$ fonts")
    for suffix in ("svg", "pdf"):
        figure.savefig(io.BytesIO(), format=suffix)
    plt.close(figure)
    for method in mdpu.learn.methods.available_methods():
        mdpu.pipeline.code.training_version(method, "mlp")
    time.perf_counter = lambda: 0.0
    mdpu.pipeline.files.git_commit = lambda: "commit"
    mdpu.pipeline.train.now = lambda: "now"


def points(given: argparse.Namespace) -> None:
    """Go through the workflow command by command, and through each command call by call."""
    commands = list_commands()
    if unknown := set(given.only) - set(map(name_of, commands)):
        sys.exit(f"no command of the workflow is called {', '.join(sorted(unknown))}")
    while given.only and name_of(commands[-1]) not in given.only:
        commands.pop()
    load_everything()
    from mdpu.pipeline.config import load_config
    from mdpu.pipeline.plan import Plan

    plan = Plan(load_config([Path("config.yaml"), *map(Path, FILES)]))
    results = plan.layout.results.parent
    work = Path(tempfile.mkdtemp(prefix="points-"))
    if results.exists():
        shutil.move(results, work / "yours")
    plan.layout.write_config()
    trial = Trial(plan, results)
    rounds = Rounds(given.out, "fault", "command", "outputs before", "call", "of", "outcome")
    started = time.monotonic()
    try:
        for number, words in enumerate(commands):
            before, after = work / f"before{number}", work / f"after{number}"
            shutil.copytree(results, before)
            status, text, _ = trial.run(words)
            assert status == 0, f"{words}: {text}"
            shutil.copytree(results, after)
            expected = contents(results)
            if given.only and name_of(words) not in given.only:
                continue
            for (state, snapshot), fault in product((("absent", before), ("there", after)), given.fault):
                command = (fault, " ".join(words), state)
                put_back(snapshot, results)
                calls = trial.run(words)[2]
                for at in range(1, calls + 1, max(1, calls // (given.points or calls))):
                    if rounds.has(*command, at):
                        continue
                    outcome = trial.disturb(words, at, fault, snapshot, expected)
                    rounds.add(*command, at, calls, outcome)
                    if outcome != "recovered":
                        print(f"{name_of(words)} at call {at} of {calls}, outputs {state}: {outcome}", flush=True)
                tried = [row for row in rounds.rows if row["fault"] == fault]
                chosen = [row for row in tried if not given.only or name_of(row["command"].split()) in given.only]
                tally = Counter(row["outcome"].split(":")[0] for row in chosen)
                where = f"a call that changes files, in {', '.join(given.only) or 'every command'}"
                record(FAULTS[fault], where, tally)
            put_back(after, results)
            print(f"{time.monotonic() - started:.0f} s, {number + 1}/{len(commands)} {name_of(words)}: ", end="")
            print(dict(rounds.count("outcome")), flush=True)
    finally:
        shutil.rmtree(results, ignore_errors=True)
        if (work / "yours").exists():
            shutil.move(work / "yours", results)
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(bool(rounds.count("outcome").keys() - {"recovered"}))


def main() -> None:
    """Run every point and write the table, in a process that has loaded the counter."""
    parser = parser_of(__doc__)
    parser.add_argument("--fault", nargs="*", default=["kill"], choices=FAULTS)
    parser.add_argument("--points", type=int, help="calls to try of each command, evenly spread; all unless given")
    parser.add_argument("--only", nargs="*", default=[], help="commands of these names only, e.g. verification")
    given = parser.parse_args()
    given.out = given.out.resolve()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    if os.environ.pop("LD_PRELOAD", None):
        points(given)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_PRELOAD": str(build_counter(Path(folder))), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, *sys.argv[1:], "--out", str(given.out)]
        sys.exit(subprocess.run(command, env=environment).returncode)


if __name__ == "__main__":
    main()
