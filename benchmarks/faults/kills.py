"""Kill `./run` at random moments, again and again, and say what came of it.

    python benchmarks/faults/kills.py --kills 100 --out kills.csv   # goes on from kills.csv

Run in a clone whose results may be deleted. An undisturbed run makes the reference. Then `./run` is
started, and after a random time SIGKILL, SIGTERM or SIGINT goes to `./run`, to Snakemake, to a job,
or to all of them; the next round starts on what is left, with nothing but `./run`. Whenever a round
gets to the end, its numbers have to be those of the reference bit for bit, and it starts from
nothing again. No round may need `--unlock`.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import psutil
from harness import COMMAND, ROOT, Rounds, clear, leftovers, numbers, parser_of, succeed

WHOM = ("./run", "Snakemake", "a job", "everything")
WITH = ("SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
PATIENCE = 1800.0  # seconds until a `./run` counts as hanging

# Outcomes.
GONE_ON = "resumed"
LOCKED = "needs --unlock"
HANGS = "hangs"
SAME = "same bits"
OTHER = "other numbers"


class Blow(NamedTuple):
    """A signal, who got it, and after how many seconds."""

    signal: str
    to: str
    after: str


def targets(launcher: psutil.Process) -> dict[str, list[int]]:
    """Return the processes that a signal may go to."""
    heads = []
    jobs = []
    for child in launcher.children():
        heads.append(child.pid)
        jobs += [job.pid for job in child.children(recursive=True)]
    return {
        "./run": [launcher.pid],
        "Snakemake": heads,
        "a job": jobs[:1],
        "everything": [launcher.pid, *heads, *jobs],
    }


def start(log: Path) -> psutil.Popen:
    """Start `./run`, whose output goes to a file."""
    with log.open("w") as stream:
        return psutil.Popen(
            COMMAND,
            cwd=ROOT,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def disturb(process: psutil.Popen, chance: random.Random, within: float) -> Blow | None:
    """Signal somebody at a random moment; return None if it was over by then."""
    wait = chance.uniform(0.5, within)
    whom = chance.choice(WHOM)
    name = chance.choice(WITH)
    with contextlib.suppress(psutil.TimeoutExpired):
        process.wait(wait)
    if process.poll() is not None:
        return None

    processes = targets(process)
    if not processes[whom]:  # e.g. no job is at work
        whom = "everything"
    for number in processes[whom]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.Signals[name])
    return Blow(name, whom, f"{wait:.1f}")


def end(process: psutil.Popen) -> bool:
    """Wait for the end of a `./run` and of what it left; return whether it ended by itself.

    One that hangs is killed.
    """
    try:
        process.wait(PATIENCE)
    except psutil.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return False

    # A Snakemake that lost its ./run goes on. The next ./run would find its lock and say so.
    for running in psutil.process_iter(["cmdline", "cwd"]):
        words = [Path(word).name for word in (running.info["cmdline"] or [])[:3]]
        if "snakemake" in words and running.info["cwd"] == str(ROOT):
            with contextlib.suppress(psutil.Error):
                running.wait(PATIENCE)
    return True


def kill_and_resume(
    rounds: Rounds,
    kills: int,
    chance: random.Random,
    within: float,
    reference: pd.DataFrame,
) -> None:
    """Add rounds until so many were disturbed and one more ended, or one fails by itself."""
    log = rounds.path.with_suffix(".log")
    started = time.monotonic()
    last = False
    while not last:
        last = sum(bool(row["signal"]) for row in rounds.rows) >= kills
        process = start(log)
        blow = None if last else disturb(process, chance, within)
        by_itself = end(process)

        if blow is not None:
            rounds.add(*blow, outcome_of(by_itself, log))
        if process.returncode == 0:
            same = numbers().equals(reference) and not leftovers()
            rounds.add("", "", "", SAME if same else OTHER)
            clear()
        elif blow is None:
            rounds.add("", "", "", f"fails by itself: {log.read_text()[-300:]}")
            return
        print(f"{time.monotonic() - started:.0f} s: {dict(rounds.count('outcome'))}", flush=True)


def outcome_of(by_itself: bool, log: Path) -> str:
    """Return what came of a `./run` that was disturbed."""
    if not by_itself:
        return HANGS
    if "LockException" in log.read_text():
        return LOCKED
    return GONE_ON


def main() -> None:
    """Run the rounds, and count them."""
    parser = parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
    rounds = Rounds(arguments.out, "signal", "to", "after s", "outcome")
    chance = random.Random(arguments.seed + len(rounds.rows))

    clear()
    started = time.monotonic()
    succeed()
    within = 0.7 * (time.monotonic() - started)
    reference = numbers()
    clear()

    kill_and_resume(rounds, arguments.kills, chance, within, reference)
    sys.exit(bool(rounds.count("outcome").keys() - {GONE_ON, SAME}))


if __name__ == "__main__":
    main()
