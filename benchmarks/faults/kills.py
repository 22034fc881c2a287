"""Kill `./run` at random moments, again and again, with nothing but `./run` after it, and say what came of it.

    python benchmarks/faults/kills.py --kills 100 --out kills.csv      # goes on from kills.csv, if it is there

Run in a clone whose results may be deleted. An undisturbed run makes the reference. Then `./run` is started, and after
a random time SIGKILL, SIGTERM or SIGINT goes to `./run`, to Snakemake, to a job, or to all of them; the next round
starts on what is left. Whenever a round gets to the end, its numbers have to be those of the reference bit for bit, and
it starts from nothing again. No round may need `--unlock`.
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

import psutil
from harness import COMMAND, ROOT, Rounds, clear, leftovers, numbers, parser_of, succeed

WHOM = ("./run", "Snakemake", "a job", "everything")
WITH = ("SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
GONE_ON, LOCKED, HANGS, SAME, OTHER = "resumed", "needs --unlock", "hangs", "same bits", "other numbers"
PATIENCE = 1800.0  # seconds until a `./run` counts as hanging


def targets(launcher: psutil.Process) -> dict[str, list[int]]:
    """Return the processes that a signal may go to."""
    children = launcher.children()
    jobs = [job.pid for child in children for job in child.children(recursive=True)]
    heads = [child.pid for child in children]
    return dict(zip(WHOM, ([launcher.pid], heads, jobs[:1], [launcher.pid, *heads, *jobs]), strict=True))


def disturb(process: psutil.Popen, chance: random.Random, within: float) -> tuple[str, ...]:
    """Signal somebody at a random moment; return the signal, to whom, and when, or nothing if it was over by then."""
    wait, whom, name = chance.uniform(0.5, within), chance.choice(WHOM), chance.choice(WITH)
    with contextlib.suppress(psutil.TimeoutExpired):
        process.wait(wait)
    if process.poll() is not None:
        return ()
    found = targets(process)
    whom = whom if found[whom] else "everything"  # e.g. no job is at work
    for number in found[whom]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.Signals[name])
    return name, whom, f"{wait:.1f}"


def end(process: psutil.Popen) -> bool:
    """Wait for the end of a `./run` and of what it left; kill one that hangs, and return whether it ended by itself."""
    try:
        process.wait(PATIENCE)
    except psutil.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return False
    # A Snakemake that lost its ./run goes on. The next ./run would find its lock and say so; wait for it here.
    for other in psutil.process_iter(["cmdline", "cwd"]):
        words = [Path(word).name for word in (other.info["cmdline"] or [])[:3]]
        if "snakemake" in words and other.info["cwd"] == str(ROOT):
            with contextlib.suppress(psutil.Error):
                other.wait(PATIENCE)
    return True


def main() -> None:
    """Run the rounds, and count them."""
    parser = parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in a background command
    rounds, log = Rounds(given.out, "signal", "to", "after s", "outcome"), given.out.with_suffix(".log")
    chance = random.Random(given.seed + len(rounds.rows))
    clear()
    started = time.monotonic()
    succeed()
    within, reference = 0.7 * (time.monotonic() - started), numbers()
    clear()
    while True:
        last = sum(bool(row["signal"]) for row in rounds.rows) >= given.kills
        with log.open("w") as stream:
            process = psutil.Popen(COMMAND, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
        told = () if last else disturb(process, chance, within)
        ended = end(process)
        if told:
            rounds.add(*told, (LOCKED if "LockException" in log.read_text() else GONE_ON) if ended else HANGS)
        if process.returncode == 0:
            rounds.add("", "", "", SAME if numbers().equals(reference) and not leftovers() else OTHER)
            clear()
        elif not told:
            rounds.add("", "", "", f"fails by itself: {log.read_text()[-300:]}")
            break
        print(f"{time.monotonic() - started:.0f} s: {dict(rounds.count('outcome'))}", flush=True)
        if last:
            break
    sys.exit(bool(rounds.count("outcome").keys() - {GONE_ON, SAME}))


if __name__ == "__main__":
    main()
