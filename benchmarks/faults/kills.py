"""Kill `./run` at random moments, again and again, with nothing but `./run` after it, and say what came of it.

    python benchmarks/faults/kills.py --kills 100 --out kills.csv      # goes on from kills.csv, if it is there

Run in a clone whose results may be deleted. An undisturbed run makes the reference. Then `./run` is started, and after
a random time SIGKILL, SIGTERM or SIGINT goes to the launcher, to Snakemake, to a job, or to all of them; the next round
starts on what is left. Whenever a round gets to the end its results have to be those of the reference, and it starts
from nothing again. No round may need `--unlock`, and no file may be other than its seal says.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import outcomes
import pandas as pd

from mdpu.pipeline.lock import descendants, name_of, read_head

ROOT = Path(__file__).resolve().parent.parent.parent
WHOM = ("launcher", "Snakemake", "launcher and Snakemake", "a job", "everything")
GONE_ON, LOCKED, SAME = "resumed", "needs --unlock", "same bits"
PATIENCE, HANGS = 1800.0, -1000  # seconds until a `./run` counts as hanging, and what its status then is
WITH = ("SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
# Pairs and triples at one prior: two cohorts, and each of the other commands.
FILES = ["benchmarks/faults/tiny.yaml", "benchmarks/faults/contained.yaml"]


def start(configfiles: list[str], log: Path) -> subprocess.Popen[str]:
    """Start `./run` in a session of its own, with a new log: what outlived an earlier one may still write into that."""
    log.unlink(missing_ok=True)
    command = ["./run", "paper", "--cores", "2", "--configfile", *configfiles]
    stream = log.open("w")
    return subprocess.Popen(command, cwd=ROOT, stdout=stream, stderr=stream, start_new_session=True, text=True)


def head() -> int | None:
    """Return the process of Snakemake, if one is at work."""
    launcher = read_head(ROOT)
    names = {process.pid: name_of(process) for process in descendants(launcher.token)} if launcher else {}
    return next((number for number, name in names.items() if name.startswith("snakemake ")), None)


def jobs() -> list[int]:
    """Return the processes of jobs that work in this clone."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[1:3] == [b"-m", b"mdpu"] and (folder / "cwd").readlink() == ROOT:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def send(process: subprocess.Popen[str], whom: str, number: int) -> bool:
    """Send a signal and return whether there was somebody to send it to."""
    targets = {
        "launcher": [process.pid],
        "Snakemake": [head()],
        "launcher and Snakemake": [process.pid, head()],
        "a job": jobs()[:1],
    }
    if whom == "everything":
        targets[whom] = [process.pid, head(), *jobs()]
    sent = False
    for target in targets[whom]:
        if target is not None:
            try:
                os.kill(target, number)
                sent = True
            except ProcessLookupError:
                pass
    return sent


def result(results: Path) -> dict[str, bytes]:
    """Return the tables of numbers."""
    return {name: (results / name).read_bytes() for name in ("summary.csv", "comparison.csv")}


def compare(results: Path, expected: dict[str, bytes], metrics: pd.DataFrame) -> str:
    """Return ``same bits`` if all numbers are those of the reference, every seal holds and nothing is left over."""
    if result(results) != expected or not metrics.equals(pd.read_parquet(results / "metrics.parquet")):
        return "other numbers"
    checked = subprocess.run([sys.executable, "-m", "mdpu", "check", results], cwd=ROOT, capture_output=True, text=True)
    if checked.returncode:
        return f"other than sealed: {checked.stdout[-300:]}"
    places = (results, results.parent / "cache")
    hidden = [path for place in places for path in place.rglob(".*") if path.suffix != ".seal"]
    left = sorted(str(path) for path in [*hidden, *results.rglob("*.pt")])
    return f"left over: {', '.join(left)}" if left else SAME


def clear(results: Path) -> None:
    """Delete the results, and the finished runs beside them, which would be taken instead of trained."""
    for folder in (results, results.parent / "cache"):
        shutil.rmtree(folder, ignore_errors=True)


def disturb(process: subprocess.Popen[str], chance: random.Random, within: float) -> tuple[str, ...]:
    """Signal somebody at a random moment and wait for the end; return the signal, to whom, and when, if it got there.

    With the launcher alone dead, Snakemake goes on, and the next `./run` ends it.
    """
    wait, whom, name = chance.uniform(0.5, within), chance.choice(WHOM), chance.choice(WITH)
    sent = False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(wait)
    if process.poll() is None:
        sent = send(process, whom, getattr(signal, name))
        if not sent:  # e.g. no job is at work
            whom = "everything"
            sent = send(process, whom, getattr(signal, name))
    end(process)
    return (name, whom, f"{wait:.1f}") if sent else ()


def end(process: subprocess.Popen[str]) -> None:
    """Wait for the end of a `./run`; one that hangs is killed, and its status says so."""
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.returncode = HANGS


def record(rounds: outcomes.Rounds) -> None:
    """Write the two rows of the table."""
    tally = rounds.count("outcome")
    of_kills = Counter({name: tally.pop(name) for name in (GONE_ON, LOCKED) if name in tally})
    fault = "SIGKILL, SIGTERM or SIGINT to launcher, Snakemake, a job or all"
    outcomes.record(fault, "a random moment of ./run", of_kills)
    outcomes.record("the same, then ./run to its end", "all numbers", tally)


def main() -> None:
    """Run the rounds and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no further round after that time")
    parser.add_argument("--within", type=float, help="longest time until a kill, in seconds; half a run unless given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--configfile", nargs="*", default=FILES)
    parser.add_argument("--name", default="contained", help="name of the configuration, i.e. folder of its results")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in a background command
    results, log = ROOT / "results" / given.name, given.out.with_suffix(".log")
    rounds = outcomes.Rounds(given.out, "signal", "to", "after s", "outcome")
    chance = random.Random(given.seed + len(rounds.rows))
    clear(results)
    started = time.monotonic()
    assert start(given.configfile, log).wait() == 0, log.read_text()
    within = given.within or 0.5 * (time.monotonic() - started)
    expected, metrics = result(results), pd.read_parquet(results / "metrics.parquet")
    clear(results)
    last = False
    while not last:
        kills = sum(bool(row["signal"]) for row in rounds.rows)
        last = kills >= given.kills or time.monotonic() - started > 60 * given.minutes
        process = start(given.configfile, log)
        told = () if last else disturb(process, chance, within)
        end(process)
        if told:
            ended = LOCKED if "LockException" in log.read_text() else GONE_ON
            rounds.add(*told, "hangs" if process.returncode == HANGS else ended)
        if process.returncode == 0:
            rounds.add("", "", "", compare(results, expected, metrics))
            clear(results)
        elif last or not told:
            rounds.add("", "", "", f"fails by itself: {log.read_text()[-300:]}")
            last = True
        record(rounds)
        print(f"{time.monotonic() - started:.0f} s: {kills} kills, {dict(rounds.count('outcome'))}", flush=True)
    sys.exit(bool(rounds.count("outcome").keys() - {GONE_ON, SAME}))


if __name__ == "__main__":
    main()
