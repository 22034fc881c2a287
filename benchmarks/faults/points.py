"""Kill or fail every command of a tiny workflow at each of its calls that change files, and say what came of it.

    python benchmarks/faults/points.py --out points.csv                            # SIGKILL at every call
    python benchmarks/faults/points.py --fault ENOSPC --points 10 --out full.csv   # a full disk, at ten calls each
    python benchmarks/faults/points.py --fault EIO EROFS MemoryError --only train --points 3 --out train.csv

Run in a clone; needs gcc. The commands are those that Snakemake lists for the experiment. Before each point the results
are put back to what they were before the command, or, for a second pass, after it, as when a command runs again over
its own outputs. Calls are counted, not drawn: those of the C library that change files (`calls.c`) or, for
``MemoryError``, starts of the package's own functions. With ``--reads`` calls that read results count instead. A point
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
import threading
import time
from collections import Counter
from collections.abc import Collection
from contextlib import redirect_stderr, redirect_stdout, suppress
from itertools import product
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import outcomes

if TYPE_CHECKING:
    from mdpu.pipeline.plan import Plan

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FILES = ["benchmarks/faults/tiny.yaml", "benchmarks/faults/points.yaml"]
# What the table of outcomes calls them.
FAULTS = {
    "kill": "SIGKILL",
    "ENOSPC": "disk full (ENOSPC)",
    "EDQUOT": "quota exceeded (EDQUOT)",
    "EIO": "input/output error (EIO)",
    "EROFS": "read-only results (EROFS)",
    "MemoryError": "memory runs out (MemoryError)",
}


def build_counter(folder: Path) -> Path:
    """Compile the library that counts calls."""
    library = folder / "calls.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, HERE / "calls.c", "-ldl"], check=True)
    return library


def list_commands(configfiles: list[str]) -> list[list[str]]:
    """Return the arguments of every command that Snakemake would run, in order, and let the plan write its file."""
    snakemake = [sys.executable, "-m", "snakemake", "--cores", "1", "-n", "-p", "--forceall"]
    command = [*snakemake, "--configfile", *configfiles] if configfiles else snakemake
    listed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    lines = [line for line in (listed.stdout + listed.stderr).splitlines() if "python -m mdpu" in line]
    return [shlex.split(line.partition("python -m mdpu ")[2].partition(" &> ")[0]) for line in lines]


def file_calls(reads: bool) -> Any:
    """Return the counter of `calls.c`, ``arm(n, error)`` and ``counted()``, on reads of results or on changes."""
    counter = ctypes.CDLL(None)
    counter.arm.argtypes = [ctypes.c_long, ctypes.c_int]
    counter.counted.restype = ctypes.c_long
    counter.watch(str(ROOT / "results").encode() if reads else b"")
    return counter


class FunctionStarts:
    """A counter of the starts of the package's functions, which raises `MemoryError` at a chosen one."""

    def __init__(self) -> None:
        self.calls = self.at = 0

    def arm(self, at: int, _error: int) -> None:
        """Count from now on, to fail at the start number `at`; a negative one ends the count."""
        self.calls, self.at = 0, at
        for switch in (sys.setprofile, threading.setprofile):
            switch(self._see if at >= 0 else None)

    def counted(self) -> int:
        """Return how many there were."""
        return self.calls

    def _see(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or frame.f_code.co_name == "main":  # which answers errors, but not one before its first line
            return
        if frame.f_code.co_filename.startswith(str(ROOT / "mdpu")):
            self.calls += 1
            if self.calls == self.at:
                raise MemoryError


class Trial:
    """Commands run in children of this process, which has loaded everything that they need.

    Parameters
    ----------
    plan : Plan
    config : str
        The resolved configuration.
    counter : object
        `file_calls` or `FunctionStarts`.
    results : Path
        Where the commands work.
    """

    def __init__(self, plan: Plan, config: str, counter: Any, results: Path) -> None:
        self.plan, self.config, self.counter, self.results = plan, config, counter, results

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
            status, text = self._run_here(words, at, error)
            os.write(writer, json.dumps([text[-20000:], self.calls]).encode())
            os._exit(status)
        os.close(writer)
        with open(reader, "rb") as stream:  # noqa: PTH123  a descriptor
            told = stream.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text, calls = json.loads(told) if told else ("", 0)
        return status, text, calls

    def disturb(self, words: list[str], at: int, fault: str, snapshot: Path, after: dict[str, bytes]) -> str:
        """Disturb a command at a call, run it once more, and return what came of it; ``recovered`` is what should.

        It starts from a snapshot of the results, and `after` is what an undisturbed command leaves.
        """
        put_back(snapshot, self.results)
        old = contents(self.results)
        status, text, _ = self.run(words, at, getattr(errno, fault, 0))
        if wrong := torn(contents(self.results), old, after):
            return f"torn: {', '.join(wrong)}"
        if status not in (0, -signal.SIGKILL):
            last = text.strip().splitlines()[-1:] or [""]
            if "Traceback" in text or not last[0].startswith("error: "):
                return f"no sentence: {last[0][:200]}"
        status, text, _ = self.run(words, made=sealed(self.results, after))
        if status:
            return f"fails for good: {text.strip().splitlines()[-1:]}"
        now = contents(self.results)
        if extra := sorted(now.keys() - after.keys()):
            return f"leftover: {', '.join(extra)}"
        if other := sorted(name for name in after if now.get(name) != after[name]):
            return f"other bytes: {', '.join(other)}"
        return "recovered"

    def _run_here(self, words: list[str], at: int, error: int) -> tuple[int, str]:
        from mdpu.pipeline import cli

        sys.argv = ["mdpu", *(self.config if word == "$MDPU_CONFIG" else word for word in words)]
        err = io.StringIO()
        with redirect_stderr(err), redirect_stdout(io.StringIO()):
            self.counter.arm(at if at else 2**40, error)
            try:
                cli.main()
                status = 0
            except SystemExit as end:
                status = int(end.code or 0)
            except BaseException as trouble:  # what a user would see as a traceback
                import traceback

                traceback.print_exception(trouble)
                status = 1
            self.calls = self.counter.counted()
            self.counter.arm(-1, 0)
        return status, err.getvalue()


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files, without what tells of the way: how many runs a job found finished, and so what it read.

    Records of progress tell of nothing else.
    """
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "progress" not in path.parts):
        name = str(path.relative_to(folder))
        found[name] = path.read_bytes()
        if "trained" not in path.parts:
            continue
        with suppress(ValueError):
            if path.name.endswith(".json.seal"):
                ways = ("inputs", "sha256", "seal")
            elif path.suffix == ".json":
                ways = ("reused",)
            else:
                continue
            found[name] = json.dumps({**json.loads(found[name]), **dict.fromkeys(ways)}, sort_keys=True).encode()
    return found


def put_back(snapshot: Path, results: Path) -> None:
    """Make the results those of a snapshot."""
    shutil.rmtree(results, ignore_errors=True)
    shutil.copytree(snapshot, results)


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


def sealed(results: Path, files: Collection[str]) -> list[Path]:
    """Return those files that have seals: what rules have made."""
    from mdpu.pipeline.files import is_seal, sealed_path

    return [sealed_path(results / name) for name in files if is_seal(Path(name))]


def name_of(words: list[str]) -> str:
    """Return the name of a command, that of its part for ``evaluate``."""
    return words[1] if words[0] == "evaluate" else words[0]


def main() -> None:
    """Run every point and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", nargs="*", default=["kill"], choices=FAULTS)
    parser.add_argument("--reads", action="store_true", help="count calls that read results instead")
    parser.add_argument("--points", type=int, help="calls to try of each command, evenly spread; all unless given")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="try no further call after that time")
    parser.add_argument("--configfile", nargs="*", default=FILES)
    parser.add_argument("--only", nargs="*", default=[], help="commands of these names only, e.g. verification")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    os.chdir(ROOT)
    if "LD_PRELOAD" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "LD_PRELOAD": str(build_counter(Path(folder))), "OMP_NUM_THREADS": "1"}
            sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)
    os.environ.pop("LD_PRELOAD")
    points(given)


def load_everything() -> None:
    """Load what any command loads, and read the training code, here and once, instead of in each child."""
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
    from mdpu.pipeline.code import training_version
    from mdpu.pipeline.config import available_methods

    for method in available_methods():
        training_version(method, "mlp")


def points(given: argparse.Namespace) -> None:
    """Go through the workflow command by command, and through each command call by call."""
    sys.path.insert(0, str(ROOT))
    commands = list_commands(given.configfile)
    if unknown := set(given.only) - set(map(name_of, commands)):
        sys.exit(f"no command of the workflow is called {', '.join(sorted(unknown))}")
    while given.only and name_of(commands[-1]) not in given.only:
        commands.pop()
    # The same bytes whenever a command runs: no times, and no commit that an edit beside would change.
    time.perf_counter = lambda: 0.0
    import mdpu.pipeline.files
    import mdpu.pipeline.train

    mdpu.pipeline.files.git_commit = lambda: "commit"
    mdpu.pipeline.train.now = lambda: "now"
    load_everything()
    from mdpu.pipeline.config import load_config
    from mdpu.pipeline.plan import Plan

    plan = Plan(load_config([Path("config.yaml"), *map(Path, given.configfile)]))
    results = plan.layout.results.parent
    work = Path(tempfile.mkdtemp(prefix="points-"))
    if results.exists():
        shutil.move(results, work / "yours")
    config = str(plan.layout.write_config())
    undisturbed = Trial(plan, config, file_calls(given.reads), results)
    memory = Trial(plan, config, FunctionStarts(), results)
    trials = {fault: memory if fault == "MemoryError" else undisturbed for fault in given.fault}
    rounds = outcomes.Rounds(given.out, "fault", "command", "outputs before", "call", "of", "outcome")
    started = time.monotonic()
    try:
        for number, words in enumerate(commands):
            before, after = work / f"before{number}", work / f"after{number}"
            shutil.copytree(results, before)
            status, text, _ = undisturbed.run(words)
            assert status == 0, f"{words}: {text}"
            shutil.copytree(results, after)
            expected = contents(results)
            if given.only and name_of(words) not in given.only:
                continue
            for (state, snapshot), fault in product((("absent", before), ("there", after)), given.fault):
                trial, command = trials[fault], (fault, " ".join(words), state)
                put_back(snapshot, results)
                calls = trial.run(words)[2]
                for at in range(1, calls + 1, max(1, calls // (given.points or calls))):
                    if rounds.has(*command, at) or time.monotonic() - started > 60 * given.minutes:
                        continue
                    outcome = trial.disturb(words, at, fault, snapshot, expected)
                    rounds.add(*command, at, calls, outcome)
                    if outcome != "recovered":
                        print(f"{name_of(words)} at call {at} of {calls}, outputs {state}: {outcome}", flush=True)
                record(rounds, fault, given)
            put_back(after, results)
            print(f"{time.monotonic() - started:.0f} s, {number + 1}/{len(commands)} {name_of(words)}: ", end="")
            print(dict(rounds.count("outcome")), flush=True)
    finally:
        shutil.rmtree(results, ignore_errors=True)
        if (work / "yours").exists():
            shutil.move(work / "yours", results)
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(bool(rounds.count("outcome").keys() - {"recovered"}))


def record(rounds: outcomes.Rounds, fault: str, given: argparse.Namespace) -> None:
    """Write a fault's row of the table."""
    kind = "a call that reads results" if given.reads else "a call that changes files"
    where = "the start of one of our functions" if fault == "MemoryError" else kind
    tried = [row for row in rounds.rows if row["fault"] == fault]
    chosen = [row for row in tried if not given.only or name_of(row["command"].split()) in given.only]
    tally = Counter(row["outcome"].split(":")[0] for row in chosen)
    outcomes.record(FAULTS[fault], f"{where}, in {', '.join(given.only) or 'every command'}", tally)


if __name__ == "__main__":
    main()
