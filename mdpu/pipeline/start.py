"""What `./run` does once it has an environment. When imported, this module needs the standard
library alone.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from mdpu.pipeline.environment import PYTHON, ROOT, VENV

USAGE = """\
./run [NAME] [ARGS]   run Snakemake with config/NAME.yaml: quick unless given; paper is config.yaml.
                      ARGS go to Snakemake: -n, tables, --configfile mine.yaml,
                      --profile profiles/slurm
./run trace NAME      show where a number comes from
./run retrain NAME    train it again
./run verify          train a sample of the shipped runs again
./run test [ARGS]     run every test and quality gate
./run docs            build the site
./run demo            name the shipped page
./run help            print this"""
HELP = ("help", "-h", "--help")
SHIPPED_PAGE = ROOT / "results" / "reference" / "report.html"
COMMANDS = {
    "trace": [str(PYTHON), "-m", "mdpu", "trace"],
    "retrain": [str(PYTHON), "-m", "mdpu", "retrain"],
    "verify": [str(PYTHON), "-m", "mdpu", "verify"],
    "test": ["bash", "envs/test.sh"],
    "docs": [str(PYTHON), "-m", "sphinx", "-nW", "docs", "docs/_build/html"],
}
DRY = re.compile("-[tkfFlSDpa]*n.*|--dry-?run")  # -n may stand among other letters, as in -np


def needs_no_package(arguments: Sequence[str]) -> bool:
    """Return whether a command works without the environment: help and the shipped page do."""
    return bool(arguments) and arguments[0] in (*HELP, "demo")


def main(arguments: Sequence[str]) -> int:
    """Do what `./run` was asked for, and return its exit status."""
    if needs_no_package(arguments):
        if arguments[0] == "demo" and not {*HELP} & {*arguments[1:]}:
            show_headline(SHIPPED_PAGE, sys.stdout)
        else:
            print(USAGE)
        return 0

    prepare_variables()
    command = "quick"
    rest = list(arguments)
    if rest and not rest[0].startswith("-"):
        command = rest.pop(0)
    if command in COMMANDS:
        return subprocess.call([*COMMANDS[command], *rest])

    file = "config.yaml" if command == "paper" else f"config/{command}.yaml"
    if not Path(file).exists():
        print(
            f"run: error: {command!r} is no command, and there is no {file} (./run --help)",
            file=sys.stderr,
        )
        return 1
    return run_snakemake(file, rest)


def prepare_variables() -> None:
    """Put the environment's programs first on the PATH, and give Snakemake a user and a home that
    it can write to.
    """
    os.environ["PATH"] = f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.environ["USERNAME"] = str(os.getuid())
    if not os.access(os.environ.get("HOME", ""), os.W_OK):
        os.environ["HOME"] = str(ROOT / ".snakemake")


def run_snakemake(file: str, arguments: Sequence[str]) -> int:
    """Run Snakemake with a configuration laid over config.yaml, then print the headline of the
    page.

    A dry run makes no page, so it names none. Returns Snakemake's status, or 128 and the signal
    that ended it.
    """
    configurations, options, targets = split_arguments(file, arguments)
    release_stale_lock()

    words = " ".join(options)
    is_dry = any(map(DRY.fullmatch, options))
    is_condensed = False
    if not re.search("(^| )(--core|-c|--jobs|-j|--profile)", words):
        options += ["--cores", "all"]
    if not re.search("(^| )(--logger|--verbose|--quiet|-q)", words):
        if sys.stderr.isatty():
            options += ["--logger", "rich"]
        elif is_dry:
            options += ["--quiet", "rules", "host", "reason"]
        else:
            options += ["--quiet", "host", "reason"]
            is_condensed = True

    command = [str(PYTHON), "-m", "snakemake", *options, "--configfile", *configurations, *targets]
    status = wait_for(command, is_condensed)
    if status == 0 and not is_dry:
        show_headline(page_of(configurations, options), sys.stderr)
    return status


def split_arguments(file: str, arguments: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the files of the configuration, Snakemake's other options, and its targets from ``--``
    on.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(
        "--configfile", "--configfiles", nargs="+", action="extend", default=["config.yaml", file]
    )
    known, options = parser.parse_known_args(list(arguments))
    end = options.index("--") if "--" in options else len(options)
    return known.configfile, options[:end], options[end:]


def release_stale_lock() -> None:
    """Remove the lock of a Snakemake that was killed; it stays while one works in this folder."""
    import psutil  # of the environment, which this module does without

    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = (process.info["cmdline"] or [])[:3]
        if process.info["cwd"] == str(ROOT) and "snakemake" in map(os.path.basename, words):
            return
    shutil.rmtree(ROOT / ".snakemake" / "locks", ignore_errors=True)


def wait_for(command: Sequence[str], is_condensed: bool) -> int:
    """Run Snakemake and return its status; its standard error is condensed on the way if that is
    asked for.

    SIGTERM ends it as Ctrl-C in a terminal does, and the status is 143 then.
    """
    # A script's background job ignores SIGINT, which Snakemake and its jobs would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stderr = subprocess.PIPE if is_condensed else None
    child = subprocess.Popen(command, stderr=stderr, text=True, errors="replace")

    received: list[int] = []

    def end(number: int, _: object) -> None:
        received.append(number)
        interrupt(child.pid)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to Snakemake, too
    signal.signal(signal.SIGTERM, end)

    reader = None
    if child.stderr is not None:
        reader = threading.Thread(target=_print_condensed, args=(child.stderr,), daemon=True)
        reader.start()
    status = child.wait()
    if reader is not None:
        reader.join(timeout=2)  # a job that outlives a killed Snakemake keeps the pipe open

    if received:
        return 128 + received[0]
    return 128 - status if status < 0 else status


def interrupt(snakemake: int) -> None:
    """Send SIGINT to Snakemake and to its jobs, as a terminal does.

    SIGTERM is not passed on: Snakemake's handler takes a lock that the thread which it interrupts
    may hold, while a job is being finished, and then waits for it without end.
    """
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(snakemake)
        for running in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                running.send_signal(signal.SIGINT)


def _print_condensed(lines: TextIO) -> None:
    with lines:  # where nobody reads any more, Snakemake is to learn it rather than wait
        for line in condensed(lines):
            print(line, end="", file=sys.stderr, flush=True)


# Time stamps, and what the scheduler says before each batch of jobs.
CHATTER = re.compile(r"\[\w{3} \w{3} [\d :]+\]$|Select jobs to execute|Execute \d+ jobs")


def condensed(lines: Iterable[str]) -> Iterator[str]:
    """Yield what Snakemake prints with a line for each finished step; what it says of failed jobs
    stays whole.

    The lines that announce a job, its time stamps and empty lines are left out.
    """
    rule = ""
    is_announcement = False
    for line in lines:
        if re.match(r"(local)?(rule|checkpoint) [\w-]+:$", line):
            is_announcement = True
        elif is_announcement and line.startswith(" "):
            continue
        elif finished := re.match(r"Finished jobid: \d+ \(Rule: ([\w-]+)\)", line):
            rule = finished[1]
            is_announcement = False
        elif step := re.match(r"\d+ of \d+ steps \(\S+\) done", line):
            yield f"{step[0]}: {rule}\n"
        elif line.strip() and not CHATTER.match(line):
            is_announcement = False
            yield line


def page_of(configurations: Sequence[str], options: Sequence[str]) -> Path:
    """Return where the page of a run is: the last name and folders that its files and options
    give.
    """
    files = [Path(file) for file in configurations if Path(file).is_file()]
    text = "\n".join([*(file.read_text(errors="replace") for file in files), *options])
    place = ROOT
    for key in ("(?:--directory|-d)", "results_dir", "name"):
        values = re.findall(rf"(?m)^{key}[:=\n] *[\"']?([\w./-]+)", text)
        if values:
            place /= values[-1]
    return place / "report.html"


def show_headline(page: Path, stream: TextIO) -> None:
    """Print the headline of a page, and where the page is; nothing if there is none."""
    if not page.exists():
        return
    headline = re.search('<h2 id="headline">(.*?)</h2>', page.read_text("utf-8"), re.DOTALL)
    if headline is None:
        return
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")  # a terminal may have ASCII alone
    print(f"{' '.join(headline[1].split())}\nThe report: {page}", file=stream)
