"""Send the quick experiment through a real SLURM while jobs are cancelled, fail and run out of time and the head dies.

    python benchmarks/faults/cluster.py             # six training jobs of 54 runs
    python benchmarks/faults/cluster.py --small     # three of nine runs

Run in a clone whose results may be deleted; needs what `tests/workflow/loopback_slurm.py` needs. Of the training jobs,
one is cancelled, the process of one is killed, and that of one is stopped until its time is over. Then SIGKILL goes to
Snakemake and to the launcher, and `./run` starts once more. It has to complete, to write every finished run once, and
to give the very bits of a `./run` without a cluster.
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
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import outcomes
import pandas as pd
import psutil

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "workflow"))
import loopback_slurm  # noqa: E402

# A cohort for each prior and tuple size. The first attempt of a job has one minute, the next one two.
CONFIG = ["--config", "cohort={'mlp': ['method', 'loss', 'seed']}", "device=cpu", "checkpoint_seconds=2"]
OFTEN = ["--slurm-init-seconds-before-status-checks=1", "--seconds-between-status-checks=1", "--latency-wait=20"]
LIMIT = ["--set-resources", "train:runtime=attempt", "--retries=9"]
SLURM = ["--profile", "profiles/slurm", *CONFIG, *LIMIT, *OFTEN]
LOG = ROOT / "head.log"
Found = TypeVar("Found")


def training_jobs() -> dict[str, str]:
    """Return the state of every training job that SLURM knows of, by number."""
    known = subprocess.run(["scontrol", "--oneliner", "show", "job"], capture_output=True, text=True).stdout
    found = (re.search(r"JobId=(\d+) .*JobState=(\w+) .*Comment=rule_train", line) for line in known.splitlines())
    return {match[1]: match[2] for match in found if match}


def running() -> list[str]:
    """Return the training jobs that run."""
    return [job for job, state in training_jobs().items() if state == "RUNNING"]


def at_work(*others: str) -> tuple[str, int] | None:
    """Return a job that trains, and its process; none of some other jobs."""
    processes = {job: loopback_slurm.training_process(job) for job in running() if job not in others}
    return next(((job, process) for job, process in processes.items() if process is not None), None)


def wait_for(what: Callable[[], Found | None], head: subprocess.Popen[bytes]) -> Found:
    """Return what comes to pass, which has to be while the head works."""
    while not (found := what()):
        assert head.poll() is None, f"the head ended too early; {LOG} says why"
        time.sleep(0.2)
    return found


class Writes(threading.Thread):
    """Notes every version of every finished run, by its time stamp, until `done` is set."""

    def __init__(self, results: Path) -> None:
        super().__init__(daemon=True)
        self.results = results
        self.seen: set[tuple[Path, int]] = set()
        self.done = threading.Event()

    def run(self) -> None:
        """Look five times a second."""
        while not self.done.wait(0.2):
            self.look()

    def look(self) -> None:
        """Note what is there."""
        for path in self.results.glob("runs/**/[!.]*.parquet"):
            with contextlib.suppress(OSError):
                self.seen.add((path, path.stat().st_mtime_ns))


def disturb(command: list[str]) -> None:
    """Start the experiment, do everything to it, and kill the head."""
    stream = LOG.open("w")
    head = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=stream, stderr=stream)
    late, process = wait_for(at_work, head)
    os.kill(process, signal.SIGSTOP)
    failing, process = wait_for(lambda: at_work(late), head)
    os.kill(process, signal.SIGKILL)
    cancelled, _ = wait_for(lambda: at_work(late, failing), head)
    subprocess.run(["scancel", cancelled], check=True)
    wait_for(lambda: training_jobs()[late] == "TIMEOUT", head)
    wait_for(lambda: at_work(late, failing, cancelled), head)
    below = psutil.Process(head.pid).children()
    head.kill()
    head.wait()
    for process in below:
        process.kill()
    print(f"head killed; training jobs so far: {dict(Counter(training_jobs().values()))}", flush=True)


def main() -> None:
    """Do it and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a table of pairs with one trial")
    small = parser.parse_args().small
    files = ["config/quick.yaml", *(["benchmarks/faults/small.yaml"] if small else [])]
    here, results = ["./run", "paper", "--configfile", *files], ROOT / "results" / ("small" if small else "quick")
    if reason := loopback_slurm.why_not():
        sys.exit(f"no SLURM: {reason}")
    shutil.rmtree(results, ignore_errors=True)
    base = Path(tempfile.mkdtemp(prefix="slurm-"))
    writes = Writes(results)
    started = time.monotonic()
    loopback_slurm.start(base)
    try:
        writes.start()
        disturb([*here, *SLURM])
        again = subprocess.run([*here, *SLURM], cwd=ROOT, capture_output=True, text=True)
        writes.done.set()
        writes.join()
        writes.look()
        states = Counter(training_jobs().values())
    finally:
        loopback_slurm.stop(base)
        shutil.rmtree(base, ignore_errors=True)
    versions = Counter(path for path, _ in writes.seen)
    through_slurm = pd.read_parquet(results / "metrics.parquet") if again.returncode == 0 else None
    print(f"training jobs: {dict(states)}; {len(versions)} runs; {time.monotonic() - started:.0f} s", flush=True)
    print("\n".join(line for line in again.stdout.splitlines() if line.startswith("run: ")), flush=True)
    shutil.rmtree(results)
    subprocess.run(here, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    checks = {
        "the second head completes": again.returncode == 0,
        "a job was cancelled, one failed, one ran out of time": {"CANCELLED", "FAILED", "TIMEOUT"} <= states.keys(),
        "no run was written twice": set(versions.values()) == {1},
        "the bits are those of a run without a cluster": through_slurm is not None
        and through_slurm.equals(pd.read_parquet(results / "metrics.parquet")),
    }
    for name, holds in checks.items():
        print(f"{'yes' if holds else 'NO':>3}  {name}")
    outcomes.record(
        "a job cancelled, one killed, one out of time, then SIGKILL to the head",
        f"{'a part of ' if small else ''}the quick experiment through SLURM, {len(versions)} runs",
        {"completed, no run trained twice, same bits" if all(checks.values()) else "NOT passed": 1},
    )
    sys.exit(not all(checks.values()))


if __name__ == "__main__":
    main()
