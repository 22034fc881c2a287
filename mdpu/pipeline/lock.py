"""One `./run` at a time in a clone, and clearing up after one that was killed.

The head process, which `./run` becomes, holds `flock` on ``.snakemake/run.lock``. The kernel frees the lock when the
process ends, however it ends, so nobody has to find out whether the holder is alive. The file's text says who holds it;
it is empty after a normal end, so text without a lock is left by a head that was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import psutil

from mdpu.errors import UserError

TOKEN = "MDPU_HEAD"  # the environment variable that marks every descendant of a head process
CHECKED = "MDPU_CHECKED"  # the one that says that ./run, which only looks, has checked the configuration
STATE = Path(".snakemake")  # of a clone
PROGRESS = STATE / "run.progress"  # how far the stages are, for `./run status`
PATIENCE = 1.0  # seconds to wait for the lock: `./run status` takes it for a moment
SECONDS_TO_END = 10.0
SECONDS_BETWEEN_LOOKS = 10.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Head:
    """Who holds a clone, as the text of its lock says."""

    command: str
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    pid: int = field(default_factory=os.getpid)
    machine: str = field(default_factory=platform.node)
    since: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M:%S"))

    @property
    def submits(self) -> bool:
        """Whether its jobs may run on other machines."""
        return any(option in self.command for option in ("--profile", "--executor"))

    def __str__(self) -> str:
        return f"{self.command} (process {self.pid} on {self.machine}, since {self.since})"


class Lock:
    """The right to work in a clone; entering raises `UserError`, with who holds it, if another process does."""

    def __init__(self, clone: Path, command: str, say: Say) -> None:
        self.clone, self.say, self.head = clone, say, Head(command)
        self.left = False  # whether jobs of a cluster are left to the next head, as by one that was killed
        (clone / STATE).mkdir(exist_ok=True)
        self._stream = (clone / STATE / "run.lock").open("a+")

    def __enter__(self) -> Lock:
        deadline = time.monotonic() + PATIENCE
        while not _acquire(self._stream.fileno(), fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                other = read_head(self.clone)
                ending = f", or end it with: kill -INT {other.pid}" if other else ""
                raise UserError(f"{other or 'another ./run'} is at work in this folder; wait for it{ending}")
            time.sleep(0.05)
        before = read_head(self.clone)
        if before is not None:  # its token is kept: if this head is killed while it clears up, the next one goes on
            self.head = replace(self.head, token=before.token)
        self._write(json.dumps(asdict(self.head)))
        if before is not None:
            self.say(f"{before} was killed; going on from what it finished")
            self.clear_up()
            if before.submits:
                self._wait_for_cluster()
        return self

    def __exit__(self, *_: object) -> None:
        if not self.left:
            self._write("")
        self._stream.close()

    def _write(self, text: str) -> None:
        self._stream.truncate(0)
        self._stream.write(text)  # at the end, which is the beginning now
        self._stream.flush()

    def clear_up(self) -> None:
        """End what Snakemake has left at work, and remove what it has left behind."""
        if ended := end_processes(self.head.token):
            self.say(f"ended what it had left at work: {ended} process{'es' if ended > 1 else ''}")
        # What `snakemake --unlock` does, without reading the workflow first.
        for lock in (self.clone / STATE / "locks").glob("*.lock"):
            lock.unlink(missing_ok=True)
        for folder in temporary_folder(self.clone).glob("snakemake*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _wait_for_cluster(self) -> None:
        """Cancel jobs that wait in SLURM's queue, and wait for those that run."""
        jobs = slurm_jobs(self.clone) or {}
        if pending := [job for job, state in jobs.items() if state == "PENDING"]:
            subprocess.run(["scancel", "--state=PENDING", *pending], capture_output=True)
            self.say(f"cancelled its jobs that were waiting in SLURM's queue: {', '.join(pending)}")
        said = None
        while (left := slurm_jobs(self.clone)) != {}:  # None: the queue could not be read this time
            if left is not None and [*left] != said:
                said = [*left]
                self.say(f"waiting for its jobs that run under SLURM: {', '.join(said)}")
            time.sleep(SECONDS_BETWEEN_LOOKS)


def _acquire(stream: int, kind: int) -> bool:
    """Take a lock, unless somebody holds it; a file system without locks does not keep simultaneous starts apart."""
    try:
        fcntl.flock(stream, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def read_head(clone: Path) -> Head | None:
    """Return the head of which a clone's lock speaks: at work, or killed. None after a normal end."""
    try:
        return Head(**json.loads((clone / STATE / "run.lock").read_text()))
    except (OSError, ValueError, TypeError):  # also where a full disk cut the text, or another version wrote it
        return None


def is_held(clone: Path) -> bool:
    """Return whether a live process holds a clone."""
    try:
        with (clone / STATE / "run.lock").open() as stream:
            return not _acquire(stream.fileno(), fcntl.LOCK_SH)
    except OSError:
        return False


def temporary_folder(clone: Path) -> Path:
    """Return the folder for temporary files: in the clone, so that what a killed Snakemake leaves is found again."""
    return clone / STATE / "tmp"


def descendants(token: str) -> list[psutil.Process]:
    """Return this machine's processes that descend from a head, without those of another SLURM job on it."""
    job = os.environ.get("SLURM_JOB_ID")
    found = []
    for process in psutil.process_iter(["environ"]):
        environment = process.info["environ"] or {}  # nothing of another user's, or of one that has ended
        if environment.get(TOKEN) == token and environment.get("SLURM_JOB_ID", job) == job:
            found.append(process)
    return [process for process in found if process.pid != os.getpid()]


def end_processes(token: str) -> int:
    """End all descendants of a head, with SIGTERM before SIGKILL, and return how many there were."""
    ended: set[psutil.Process] = set()
    deadline = time.monotonic() + SECONDS_TO_END
    while left := descendants(token):
        late = time.monotonic() > deadline
        for process in left if late else {*left} - ended:
            with contextlib.suppress(psutil.Error):  # it has ended by now
                process.send_signal(signal.SIGKILL if late else signal.SIGTERM)
        ended.update(left)
        time.sleep(0.05)
    return len(ended)


def slurm_jobs(clone: Path) -> dict[str, str] | None:
    """Return the state of every job in SLURM's queue that Snakemake submitted from a clone, by number.

    The SLURM plugin and ``profiles/cluster-generic`` name the rule in a job's comment. None means that there is a queue
    and it could not be read.
    """
    if not shutil.which("squeue"):
        return {}
    states = "--states=PENDING,CONFIGURING,RUNNING,SUSPENDED,COMPLETING"
    command = ["squeue", "--noheader", "--me", states, "--format=%i|%T|%k|%Z"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    rows = (line.split("|", 3) for line in done.stdout.splitlines())
    return {job: state for job, state, comment, folder in rows if comment.startswith("rule_") and Path(folder) == clone}


def describe(clone: Path) -> list[str]:
    """Return lines that say who works in a clone, and what of a killed head or under SLURM is still at work."""
    head, held = read_head(clone), is_held(clone)
    if head is None:
        lines = ["another ./run starts in this folder" if held else "nothing is at work in this folder"]
    elif held:
        lines = [f"{head} is at work in this folder"]
    else:
        lines = [f"{head} was killed; ./run goes on from what it finished"]
        if left := descendants(head.token):
            lines.append(f"  {len(left)} of its processes still work")
    jobs = slurm_jobs(clone)
    if jobs is None:
        return lines + ["  SLURM's queue could not be read"] * bool(head and head.submits)
    return lines + [f"  job {job}: {state}" for job, state in jobs.items()]
