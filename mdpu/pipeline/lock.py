"""One `./run` at a time in a clone, and clearing up after one that was killed.

`./run` uses this module before it has an environment, so it needs nothing but the standard library.
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
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

PROC = Path("/proc")
# The environment variable that marks every descendant of a head process.
TOKEN = "MDPU_HEAD"
SNAKEMAKE = ("snakemake", "snakemake_logger_plugin_mdpu")  # by itself, and as ./run starts it
SHELLS = ("bash", "sh")  # not listed: the command that they run is
SECONDS_TO_END = 10.0
SECONDS_BETWEEN_LOOKS = 10.0

Say = Callable[[str], None]


class HeldError(Exception):
    """Another process holds the clone; the message says which one, and what to do."""


@dataclass(frozen=True)
class Owner:
    """A process that holds a clone, identified among all processes of all machines.

    Attributes
    ----------
    command, since : str
        How and when it was started, as text for a reader.
    token : str
        The value of `TOKEN` in the environment of all its descendants.
    machine, boot, namespace : str
        Where its process number is valid: host with its id, boot of the host, process namespace.
    pid, start : int, str
        Process numbers are reused; the number together with the start, in ticks since the boot, is not.
    user : int
        Number of the user.
    slurm_job : str
        The SLURM job that the process belongs to, or an empty string.
    foreign_locks : list of str
        Snakemake's locks that existed before it, and so belong to another process.
    """

    command: str
    token: str
    pid: int = field(default_factory=os.getpid)
    start: str = field(default_factory=lambda: start_of(os.getpid()) or "")
    since: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M:%S"))
    machine: str = field(default_factory=lambda: _machine())
    boot: str = field(default_factory=lambda: _read(PROC / "sys/kernel/random/boot_id"))
    namespace: str = field(default_factory=lambda: _namespace())
    user: int = field(default_factory=os.getuid)
    slurm_job: str = field(default_factory=lambda: os.environ.get("SLURM_JOB_ID", ""))
    foreign_locks: list[str] = field(default_factory=list)

    def is_dead(self) -> bool:
        """Return whether the process has provably ended; on another machine only SLURM can tell."""
        if self.machine != _machine():
            return bool(self.slurm_job) and self.user == os.getuid() and _slurm_job_has_ended(self.slurm_job)
        if self.boot != _read(PROC / "sys/kernel/random/boot_id"):
            return True
        return self.namespace == _namespace() and start_of(self.pid) != self.start

    @property
    def submits(self) -> bool:
        """Whether its jobs may run on other machines."""
        return any(option in self.command for option in ("--profile", "--executor"))

    def __str__(self) -> str:
        job = f", job {self.slurm_job} of SLURM" if self.slurm_job else ""
        return f"{self.command} (process {self.pid} on {self.machine.split()[0]}{job}, since {self.since})"


def start_of(pid: int) -> str | None:
    """Return when a process started, as text to compare with another start, or None if the process has ended."""
    if PROC.exists():
        # The command's name is in parentheses and may contain any character; the state is the first field after it.
        fields = _read(PROC / str(pid) / "stat").rpartition(")")[2].split()
        return fields[19] if fields and fields[0] not in "ZX" else None
    listed = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return listed.stdout.strip() or None


def _machine() -> str:
    return f"{platform.node()} {_read(Path('/etc/machine-id'))}".strip()


def _namespace() -> str:
    try:
        return str((PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


class Hold:
    """The right to work in a clone; one process has it at a time.

    Parameters
    ----------
    clone : Path
        The clone; its folder ``.snakemake`` stores the hold.
    command : str
        The command as other processes report it.
    say : callable
        Prints a line for the user.
    """

    def __init__(self, clone: Path, command: str, say: Say) -> None:
        self.clone, self.command, self.say = clone, command, say
        self.folder = clone / ".snakemake"
        self.record = self.folder / "run.json"
        self.token = uuid.uuid4().hex

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Let one process at a time decide who holds the clone, or install its environment."""
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "run.guard").open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.say("another ./run is starting or installing; waiting for it")
                fcntl.flock(stream, fcntl.LOCK_EX)
            except OSError:  # a file system without locks: two simultaneous starts are not kept apart
                pass
            yield

    def owner(self) -> Owner | None:
        """Return the last recorded holder of the clone, or None if it ended normally."""
        try:
            return Owner(**json.loads(self.record.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):  # truncated by a full disk, or written by another version
            return None

    def take(self) -> None:
        """Hold the clone, after clearing up what a killed holder left behind.

        Raises
        ------
        HeldError
            If the process that holds it is alive, or may be.
        """
        with self.guard():
            if refusal := self.refusal():
                raise HeldError(refusal)
            owner = self.owner()
            self._write(owner.foreign_locks if owner else self._locks())
            if owner is not None:
                self.say(f"{owner} was killed; going on from what it finished")
                self._end_processes(owner)
                self._release_locks(owner)
        if owner is not None and owner.submits:
            self._wait_for_cluster()

    def hand_over(self) -> None:
        """Record the calling process as the holder; `subprocess.Popen` calls this in the child, the head process.

        So the head is on record from its first instruction, even if the process that started it dies.
        """
        with self.guard():
            owner = self.owner()
            if owner is None or owner.token != self.token:
                raise HeldError(f"{owner} has taken the folder over")
            self._write(owner.foreign_locks)

    def release(self) -> None:
        """Give up the clone."""
        owner = self.owner()
        if owner is not None and owner.token == self.token:
            self.record.unlink(missing_ok=True)

    def _write(self, foreign_locks: list[str]) -> None:
        """Record this process; the contents reach the disk before the name, so a power cut leaves no partial file."""
        temporary = self.folder / "run.new.json"
        with temporary.open("w") as stream:
            json.dump(asdict(Owner(self.command, self.token, foreign_locks=foreign_locks)), stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(self.record)

    def refusal(self) -> str | None:
        """Return why the clone is not available, or None if no live process holds it."""
        owner = self.owner()
        if owner is None or owner.is_dead():
            return None
        if owner.machine == _machine() and owner.namespace == _namespace():
            return f"{owner} is at work in this folder; wait for it, or end it with: kill -INT {owner.pid}"
        return (
            f"{owner} was at work in this folder, and from here it cannot be seen whether it still is; "
            f"if it has ended, delete {self.record} and run again"
        )

    def _locks(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "locks").glob("*.lock"))

    def _end_processes(self, owner: Owner) -> None:
        if ended := end_processes(owner.token):
            self.say(f"ended what it had left at work: {', '.join(ended)}")

    def _release_locks(self, owner: Owner) -> None:
        """Remove a dead holder's Snakemake locks, unless another Snakemake runs here, whose locks they may be."""
        stale = [name for name in self._locks() if name not in owner.foreign_locks]
        if stale and (other := snakemake_in(self.clone)):
            self.say(f"its lock is left, because another Snakemake works in this folder (process {other})")
        elif stale:
            for name in stale:
                (self.folder / "locks" / name).unlink(missing_ok=True)
            self.say("released its lock")

    def _wait_for_cluster(self) -> None:
        """Cancel a dead holder's jobs that are waiting in SLURM's queue, and wait for its running ones."""
        jobs = slurm_jobs(self.clone) or {}
        pending = [job for job, state in jobs.items() if state == "PENDING"]
        if pending:
            subprocess.run(["scancel", "--state=PENDING", *pending], capture_output=True)
            self.say(f"cancelled its jobs that were waiting in SLURM's queue: {', '.join(pending)}")
        before: dict[str, str] = {}
        while (left := slurm_jobs(self.clone)) != {}:  # None: the queue could not be read this time
            if left is not None and left.keys() != before.keys():
                self.say(f"waiting for its jobs that run under SLURM: {', '.join(left)}")
                before = left
            time.sleep(SECONDS_BETWEEN_LOOKS)


def processes(token: str) -> dict[int, str]:
    """Return, by number, the names of this machine's processes that descend from the holder of a token."""
    marked = f"{TOKEN}={token}".encode()
    return {number: _name(words) for number, words, environment in _own_processes() if marked in environment}


def _own_processes() -> Iterator[tuple[int, list[bytes], list[bytes]]]:
    """Yield number, words and environment of this user's live processes on this machine.

    Processes of another SLURM job on the same machine are left out: they are that job's.
    """
    for folder in PROC.glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # another user's, or ended by now
            continue
        job = next((entry for entry in environment if entry.startswith(b"SLURM_JOB_ID=")), b"")
        elsewhere = job.removeprefix(b"SLURM_JOB_ID=").decode() not in ("", os.environ.get("SLURM_JOB_ID", ""))
        if not elsewhere and start_of(int(folder.name)) is not None:
            yield int(folder.name), words, environment


def _name(words: list[bytes]) -> str:
    """Return a short name of a command line: the module that Python runs, with its command, or the program."""
    if b"-m" in words:
        words = words[words.index(b"-m") + 1 :]
        name = b" ".join(words[:2] if words[0] == b"mdpu" else words[:1]).decode(errors="replace")
        return SNAKEMAKE[0] if name in SNAKEMAKE else name
    return Path(os.fsdecode(words[0])).name


def end_processes(token: str) -> list[str]:
    """End all descendants of the holder of a token, with SIGTERM before SIGKILL, and return what they were."""
    ended: dict[int, str] = {}
    deadline = time.monotonic() + SECONDS_TO_END
    while left := processes(token):
        number = signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL
        for process in left.keys() if number == signal.SIGKILL else left.keys() - ended.keys():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)
        ended.update(left)
        time.sleep(0.05)
    return sorted(f"{name} (process {process})" for process, name in ended.items() if name not in SHELLS)


def snakemake_in(clone: Path) -> int | None:
    """Return the number of a process that runs Snakemake in the clone on this machine, or None."""
    for number, words, _ in _own_processes():
        with contextlib.suppress(OSError):  # ended by now
            named = any(Path(os.fsdecode(word)).name in SNAKEMAKE for word in words[:4])
            if named and (PROC / str(number) / "cwd").readlink() == clone:
                return number
    return None


def slurm_jobs(clone: Path) -> dict[str, str] | None:
    """Return the state of every job in SLURM's queue that Snakemake submitted from the clone, by number.

    The SLURM plugin and ``profiles/cluster-generic`` name the rule in a job's comment. Without SLURM there are no jobs;
    None means that the queue could not be read.
    """
    if not shutil.which("squeue"):
        return {}
    lines = _squeue("--format=%i|%T|%k|%Z")
    if lines is None:
        return None
    rows = (line.split("|", 3) for line in lines)
    return {job: state for job, state, comment, folder in rows if comment.startswith("rule_") and Path(folder) == clone}


def _slurm_job_has_ended(job: str) -> bool:
    """Return whether the queue could be read and no longer contains a job of this user."""
    lines = _squeue("--format=%i")
    return lines is not None and job not in lines


def _squeue(form: str) -> list[str] | None:
    """Return a line for each unfinished job of this user, or None if the queue could not be read."""
    states = "--states=PENDING,CONFIGURING,RUNNING,SUSPENDED,COMPLETING"
    try:
        done = subprocess.run(
            ["squeue", "--noheader", "--me", states, form], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.splitlines() if done.returncode == 0 else None


def report_status(clone: Path) -> list[str]:
    """Return lines that say who holds a clone, and which of its jobs are running, here and under SLURM."""
    owner = Hold(clone, "", print).owner()
    if owner is None:
        lines = ["nothing is at work in this folder"]
    elif owner.is_dead():
        lines = [f"{owner} was killed; ./run goes on from what it finished"]
    else:
        lines = [f"{owner} is at work in this folder"]
    if owner is not None:
        running = processes(owner.token)
        lines += [f"  process {number}: {name}" for number, name in running.items() if name not in SHELLS]
    jobs = slurm_jobs(clone)
    lines += ["  SLURM's queue could not be read"] if jobs is None else [f"  job {job}: {jobs[job]}" for job in jobs]
    return lines
