"""Kill `./run` at random moments, again and again, with nothing but `./run` after it, and say what came of it.

    python benchmarks/faults/kills.py --kills 100 --out kills.csv      # goes on from kills.csv, if it is there

Run in a clone whose results may be deleted. An undisturbed run makes the reference. Then `./run` is started, and after
a random time SIGKILL, SIGTERM or SIGINT goes to the launcher, to Snakemake, to a job, or to all of them; the next round
starts on what is left. Whenever a round gets to the end its results have to be those of the reference, and it starts
from nothing again. No round may need `--unlock`, and no file may be other than its seal says.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
from harness import CONTAINED, ROOT, Rounds, Workflow, parser_of, record

from mdpu.pipeline.lock import descendants, read_head

WHOM = ("launcher", "Snakemake", "launcher and Snakemake", "a job", "everything")
WITH = ("SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
GONE_ON, LOCKED, HANGS, SAME = "resumed", "needs --unlock", "hangs", "same bits"
PATIENCE = 1800.0  # seconds until a `./run` counts as hanging


def start(flow: Workflow, log: Path) -> subprocess.Popen[str]:
    """Start `./run` in a session of its own, with a new log: what outlived an earlier one may still write into that."""
    log.unlink(missing_ok=True)
    with log.open("w") as stream:
        return subprocess.Popen(flow.command, cwd=ROOT, stdout=stream, stderr=stream, start_new_session=True, text=True)


def end(process: subprocess.Popen[str]) -> bool:
    """Wait for the end of a `./run`, and kill one that hangs; return whether it ended by itself."""
    try:
        process.wait(PATIENCE)
        return True
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False


def targets(launcher: int) -> dict[str, list[int]]:
    """Return the processes that a signal may go to: the launcher, Snakemake, and the jobs that work in this clone."""
    head = read_head(ROOT)
    snakemake = (
        [process.pid for process in descendants(head.token) if process.name() == "snakemake"][:1] if head else []
    )
    jobs = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[1:3] == ["-m", "mdpu"] and process.cwd() == str(ROOT):
                jobs.append(process.pid)
    both = [launcher, *snakemake]
    return dict(zip(WHOM, ([launcher], snakemake, both, jobs[:1], [*both, *jobs]), strict=True))


def disturb(process: subprocess.Popen[str], chance: random.Random, within: float) -> tuple[str, ...]:
    """Signal somebody at a random moment; return the signal, to whom, and when, or nothing if it was over by then.

    With the launcher alone dead, Snakemake goes on, and the next `./run` ends it.
    """
    wait, whom, name = chance.uniform(0.5, within), chance.choice(WHOM), chance.choice(WITH)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(wait)
    if process.poll() is not None:
        return ()
    found = targets(process.pid)
    whom = whom if found[whom] else "everything"  # e.g. no job is at work
    for number in found[whom]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, getattr(signal, name))
    return name, whom, f"{wait:.1f}"


def write_rows(rounds: Rounds) -> None:
    """Write the two rows of the table."""
    tally = rounds.count("outcome")
    of_kills = Counter({name: tally.pop(name) for name in (GONE_ON, LOCKED, HANGS) if name in tally})
    fault = "SIGKILL, SIGTERM or SIGINT to launcher, Snakemake, a job or all"
    record(fault, "a random moment of ./run", of_kills)
    record("the same, then ./run to its end", "all numbers", tally)


def main() -> None:
    """Run the rounds and write the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no further round after that time")
    parser.add_argument("--within", type=float, help="longest time until a kill, in seconds; half a run unless given")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in a background command
    flow, log = Workflow("contained", CONTAINED, "--cores", "2"), given.out.with_suffix(".log")
    rounds = Rounds(given.out, "signal", "to", "after s", "outcome")
    chance = random.Random(given.seed + len(rounds.rows))
    flow.clear()
    started = time.monotonic()
    flow.succeed()
    within = given.within or 0.5 * (time.monotonic() - started)
    flow.reference = flow.numbers()
    flow.clear()
    last = False
    while not last:
        kills = sum(bool(row["signal"]) for row in rounds.rows)
        last = kills >= given.kills or time.monotonic() - started > 60 * given.minutes
        process = start(flow, log)
        told = () if last else disturb(process, chance, within)
        ended = end(process)
        if told:
            rounds.add(*told, (LOCKED if "LockException" in log.read_text() else GONE_ON) if ended else HANGS)
        if process.returncode == 0:
            rounds.add("", "", "", flow.wrong() or SAME)
            flow.clear()
        elif not told:
            rounds.add("", "", "", f"fails by itself: {log.read_text()[-300:]}")
            last = True
        write_rows(rounds)
        print(f"{time.monotonic() - started:.0f} s: {kills} kills, {dict(rounds.count('outcome'))}", flush=True)
    sys.exit(bool(rounds.count("outcome").keys() - {GONE_ON, SAME}))


if __name__ == "__main__":
    main()
