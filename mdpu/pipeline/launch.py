"""What `./run` does once the environment stands: selects a configuration, starts Snakemake, says what came out."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from mdpu.errors import UserError
from mdpu.pipeline import experiments
from mdpu.pipeline.check import repair
from mdpu.pipeline.config import EXPERIMENTS, Config, select, shipped, unreached
from mdpu.pipeline.estimate import check_files, estimate
from mdpu.pipeline.experiments import load_kind
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.lock import (
    CHECKED,
    PROGRESS,
    TOKEN,
    Lock,
    descendants,
    describe,
    is_held,
    read_head,
    temporary_folder,
)
from mdpu.pipeline.outcome import compare_shipped, configurations, report_outcome
from mdpu.pipeline.plan import Plan

PYTHON = sys.executable
PLUGINS = REPOSITORY / "workflow" / "plugins"
REFERENCE = Path("results/reference")
# Arguments with which Snakemake changes nothing, so that another one may run at the same time.
LOOKING = re.compile(
    "-[nSDlhv]|--dry-?run|--(detailed-)?summary|--(dag|d3dag|rulegraph|filegraph|lint|report|help|version)|--list.*"
)
# As profiles/default has it. Snakemake would print the profile's name.
DEFAULTS = ["--workflow-profile", "none", "--keep-going", "--rerun-incomplete", "--scheduler", "greedy"]
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECONDS_TO_CANCEL = 60  # that Snakemake has to cancel its jobs in a cluster's queue


class StoppedError(Exception):
    """The user stops a run, by a signal."""


def launch(command: str, arguments: Sequence[str]) -> int:
    """Carry a command of `./run` out, and return its status: 128 and the signal's number if the user stops it."""

    def stop(number: int, _frame: object) -> None:
        raise StoppedError(number)

    os.chdir(REPOSITORY)
    for number in STOPPING:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, stop)
    try:
        return _carry_out(command, list(arguments))
    except StoppedError as stopped:
        return 128 + int(stopped.args[0])


def _carry_out(command: str, given: list[str]) -> int:
    if command in EXPERIMENTS:
        return _experiment(command, given)
    if command == "verify":
        return _verify(given)
    if command == "status":
        return _status()
    if command not in ("plan", "crate"):
        raise UserError(f"{command} is no command of ./run, which ./run --help lists")
    experiment = given.pop(0) if given and given[0] in EXPERIMENTS else "quick"
    out, given = take(given, "--out") if command == "crate" else ([], given)
    plan, others = _choose(experiment, given)
    if others:
        raise UserError(f"./run {command} does not take {' '.join(others)}")
    if command == "plan":
        print("\n".join(estimate(plan)))
    else:
        from mdpu.pipeline.crate import write_crate

        path = Path(out[-1]) if out else plan.layout.results.with_name(f"{plan.layout.results.name}.crate.zip")
        write_crate(plan, path)
        print(path)
    return 0


def say(message: str) -> None:
    """Print a line that is marked as ours, unlike the output of the programs below."""
    print(f"run: {message}", flush=True)


def _experiment(experiment: str, arguments: list[str]) -> int:
    """Run Snakemake on an experiment, and say what came out."""
    if any(LOOKING.fullmatch(argument.split("=")[0]) for argument in arguments):
        plan, others = _choose(experiment, arguments)
        is_new = not plan.layout.config.exists()
        configuration = plan.layout.write_config()
        if is_new:  # it is not what the results are of, so it must not be the newest
            os.utime(configuration, (0, 0))
        environment = {**_environment(), CHECKED: "yes"}
        return subprocess.run(snakemake(configuration, others), env=environment).returncode
    with Lock(REPOSITORY, " ".join(["./run", experiment, *arguments]), say) as lock:
        plan, others = _choose(experiment, arguments, current=True)
        goes_on, failed = bool({"--keep-going", "-k"} & set(arguments)), 0
        status = prepare(plan, lock, others)
        if status and not goes_on:
            return status
        command = snakemake(plan.layout.write_config(), others)
        status = work(command, lock)
        if 0 < status < 128 and goes_on:
            say("some jobs failed; making a report without the training jobs that failed")
            failed, status = status, work([*command, "--config", "without_failed=True"], lock)
            plan.layout.write_config(current=True)  # again the one whose jobs `./run status` looks for
        if status or not (plan.layout.results / "report.html").exists():  # the user named other targets
            return status
        lines, confirmed = report_outcome(plan)
        if not comparable(experiment, plan.config):
            say("not compared with the expected numbers, which are of another protocol or of other seeds")
        if experiment == "reference":
            said, same = compare_shipped(plan.layout.results, REFERENCE)
            lines, confirmed = [said, *lines], confirmed and same
    for line in lines:
        say(line)
    if failed:
        say("the report names the training jobs that failed; the next run trains them again")
    return failed or int(not confirmed)


def _choose(experiment: str, arguments: list[str], current: bool = False) -> tuple[Plan, list[str]]:
    """Return the plan that arguments ask for, and the other arguments.

    A plan that is to be made, the ``current`` one, has to have all files that it needs.
    """
    files, others = take(arguments, "--configfile", "--configfiles", more=r"\.(ya?ml|json)$")
    values, others = take(others, "--config", "-C", more="=")
    config = select(experiment, [Path(file) for file in files], values)
    plan = Plan(config if comparable(experiment, config) else {**config, "expected": None})
    experiments.check(plan.config)
    for axis, names in unreached(experiment, config).items():
        if training := [name for name in names if name in plan.experiments and plan.experiments[name].runs]:
            say(f"axes.{axis} does not reach {', '.join(training)}: set definitions.experiments.<name>.{axis} there")
    if current:
        check_files(plan, plan.config["mirror"] or os.environ.get("MDPU_MIRROR"))
        plan.layout.write_config(current=True)
    return plan, others


def prepare(plan: Plan, lock: Lock, arguments: list[str]) -> int:
    """Delete what is not as it was written any more, and make what tells which runs are finished; return the status.

    In this order, so that no job starts for a finished run because its images or labels had to be made anew.
    """
    for line in repair(plan, made_by_rules(plan)):
        say(line)
    if all(file.exists() for file in plan.prepared):
        return 0
    numbers, _ = take(arguments, "--cores", "-c")  # the other options may be a cluster's; this runs here
    cores = ["--cores", numbers[-1]] if numbers else []
    status = work(snakemake(plan.layout.write_config(), [*cores, "prepare"]), lock)
    if not status:  # Snakemake says nothing while it plans a large experiment
        say("images and labels are there; going on with the rest")
    return status


def made_by_rules(plan: Plan) -> list[Path]:
    """Return what the rules of the workflow make, apart from what they only log."""
    layout = plan.layout
    splits = map(layout.split, plan.splits)
    shown = [file for name, one in plan.experiments.items() for file in load_kind(one.kind).outputs(name)]
    evaluations = [layout.results / name for name in ("comparison", "claims", "ranks", "audit")]
    figures = [layout.figure(f"tuning/{tuning}") for tuning in plan.tunings]
    return [
        *(layout.page, layout.runs, layout.summary, layout.metrics),
        *(layout.results / name for name in ("verification.json", "claims_cases.csv")),
        *(path.with_suffix(suffix) for path in evaluations for suffix in (".csv", ".json", ".svg", ".pdf")),
        *(layout.results / file for file in shown),
        *(path.with_suffix(suffix) for path in figures for suffix in (".svg", ".pdf")),
        *(path.with_suffix(suffix) for path in splits for suffix in (".npz", ".json")),
        *(sheet for dataset in plan.datasets for sheet in layout.sheets(dataset)),
        *map(layout.tuned, plan.tunings),
        *plan.prepared,
    ]


def comparable(experiment: str, config: Config) -> bool:
    """Return whether the numbers that an experiment expects are of a configuration's protocol and seeds.

    Numbers of another protocol, or of other seeds, are neither confirmed nor refuted.
    """
    whole = shipped(experiment)
    if not whole.get("expected") or config.get("expected") not in (None, whole["expected"]):
        return True
    pairs = [(config[key], whole[key]) for key in ("protocol", "tuning")]
    pairs += [(config["axes"]["seed"], whole["axes"]["seed"])]
    for kind in ("datasets", "variants", "experiments"):
        ours, theirs = config["definitions"][kind], whole["definitions"][kind]
        pairs += [(ours[name], theirs[name]) for name in ours.keys() & theirs.keys()]
    return all(ours == theirs for ours, theirs in pairs)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with arguments in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def take(arguments: Sequence[str], *names: str, more: str = "") -> tuple[list[str], list[str]]:
    """Take an option out of arguments; return its values, and the other arguments, targets behind the values first.

    A word behind the option is its value. With ``more``, further words are values as long as they match it.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument(*names, dest="given", action="append", nargs="+" if more else 1, default=[])
    parsed, others = parser.parse_known_args(arguments)
    values, targets = [], []
    for first, *words in parsed.given:
        further = list(itertools.takewhile(re.compile(more).search, words))
        values += [first, *further]
        targets += words[len(further) :]
    return values, [*targets, *others]


def snakemake(configuration: Path, arguments: list[str]) -> list[str]:
    """Return the command of Snakemake on a configuration; what the user gives is not given again.

    Options that take several values come first, so that none swallows the user's targets.
    """
    options = ["--configfile", str(configuration)]
    if not any(argument.startswith(("--resources", "--res", "--profile")) for argument in arguments):
        options += ["--resources", "gpu=1"]
    if "--verbose" not in arguments:
        options += ["--logger", "mdpu"]
    if not any(argument.split("=")[0] in ("--cores", "-c", "--jobs", "-j", "--profile") for argument in arguments):
        options += ["--cores", str(os.cpu_count() or 1)]
    # Snakemake's own --verbose would be for its developers.
    others = [argument for argument in arguments if argument != "--verbose"]
    return [str(Path(PYTHON).with_name("snakemake")), *options, *DEFAULTS, *others]


def _environment(token: str | None = None) -> dict[str, str]:
    """Return the environment of Snakemake, which plans by this folder's code; a token marks it and its jobs as ours."""
    code = os.pathsep.join(filter(None, [str(PLUGINS), str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    folder = temporary_folder(REPOSITORY)
    folder.mkdir(parents=True, exist_ok=True)
    return {**os.environ, "PYTHONPATH": code, "TMPDIR": str(folder), **({TOKEN: token} if token else {})}


def work(command: list[str], lock: Lock) -> int:
    """Run Snakemake and return its status; if the user stops it, all its jobs end too.

    SIGINT cancels a cluster's jobs. SIGTERM, which a head in a cluster's queue gets at its time limit, leaves them to
    the next `./run`.
    """
    child, status = None, -1
    try:
        # In a group of its own: Ctrl-C on a terminal would reach it twice, and cut its cancelling short.
        child = subprocess.Popen(command, env=_environment(lock.head.token), process_group=0)
        status = child.wait()
    except StoppedError as stopped:
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        if child is not None:
            cancels = lock.head.submits and stopped.args[0] == signal.SIGINT
            child.send_signal(signal.SIGINT if cancels else signal.SIGKILL)  # it would report the ends of its jobs
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = child.wait(SECONDS_TO_CANCEL)
        raise
    finally:
        PROGRESS.unlink(missing_ok=True)
        if status < 0:
            Console().show_cursor()  # the live lines hid it
            lock.clear_up()
            lock.left = lock.head.submits
            say("what was finished is kept, and the same command goes on from there")
    return status if status >= 0 else 128 - status


def _verify(arguments: list[str]) -> int:
    """Train a sample of the shipped runs again, and say whether they came out the same."""
    numbers, others = take(arguments, "--runs")
    seeds, others = take(others, "--seed")
    rows, others = take(others, "--rows")
    with Lock(REPOSITORY, " ".join(["./run verify", *arguments]), say) as lock:
        plan, others = _choose("reference", others, current=True)
        configuration = plan.layout.write_config()
        if status := prepare(plan, lock, others):
            return status
        sample = [f"--sample={(numbers or ['5'])[-1]}", f"--seed={(seeds or ['0'])[-1]}"]
        command = [PYTHON, "-m", "mdpu", "retrain", f"--config={configuration}", *sample]
        return subprocess.run([*command, *(f"--rows={file}" for file in rows)]).returncode


def _status() -> int:
    """Print who works here; for each result what would run and why, and how its failed jobs ended."""
    head, held = read_head(REPOSITORY), is_held(REPOSITORY)
    print("\n".join(describe(REPOSITORY)), flush=True)
    if held or (head and descendants(head.token)):  # what is being written could not be read
        with contextlib.suppress(OSError):
            print(PROGRESS.read_text(encoding="utf-8"), end="")
        return 0
    newest = {file.parent.parent: file for file in reversed(configurations())}
    for folder, file in sorted(newest.items()):
        print(f"\n{folder}", flush=True)
        subprocess.run(snakemake(file, ["--dry-run"]), env=_environment())
    return 0
