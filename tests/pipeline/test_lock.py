"""One `./run` at a time in a clone; a killed one is cleared up behind, a live one never."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict

import pytest

from mdpu.errors import UserError
from mdpu.pipeline import lock
from mdpu.pipeline.lock import TOKEN, Head, Lock, descendants, describe, end_processes, is_held

SLEEP = "import time; time.sleep(60)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); {SLEEP}"
HOLD = f"""\
import sys
from pathlib import Path
from mdpu.pipeline.lock import Lock
with Lock(Path(sys.argv[1]), "./run paper", print):
    print("taken", flush=True)
    {SLEEP}
"""


@pytest.fixture
def said():
    return []


@pytest.fixture
def take(tmp_path, said):
    """The lock of another `./run`."""
    return lambda command="./run quick": Lock(tmp_path, command, said.append)


@pytest.fixture
def start():
    """What starts a process with a token and further variables; all are killed at the end."""
    processes = []

    def start(token, *command, **environment):
        process = subprocess.Popen(command, env={**os.environ, TOKEN: token, **environment}, stdout=subprocess.PIPE)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def killed(tmp_path):
    """What leaves the text of a head that was killed, and returns the head."""

    def leave(command="./run paper"):
        head = Head(command, "a token")
        (tmp_path / ".snakemake").mkdir()
        (tmp_path / ".snakemake" / "run.lock").write_text(json.dumps(asdict(head)))
        return head

    return leave


def add_lock(tmp_path):
    path = tmp_path / ".snakemake" / "locks" / "0.output.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("results/file\n")
    return path


# -- holding --------------------------------------------------------------------------------------


def test_the_second_is_told_who_holds_the_folder(tmp_path, take, said):
    left = add_lock(tmp_path)
    with take("./run paper"), pytest.raises(UserError) as refusal, take():
        pass
    assert str(refusal.value).startswith(f"./run paper (process {os.getpid()} on {platform.node()}, since 20")
    assert str(refusal.value).endswith(f"in this folder; wait for it, or end it with: kill -INT {os.getpid()}")
    assert left.exists()
    assert said == []


def test_a_lock_is_held_until_its_holder_leaves_it(tmp_path, take):
    with take():
        assert is_held(tmp_path)
    assert not is_held(tmp_path)


def test_a_look_at_the_lock_refuses_nobody(tmp_path, take):
    """`./run status` takes it for a moment."""
    with take():
        pass
    with (tmp_path / ".snakemake" / "run.lock").open() as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        threading.Timer(0.2, fcntl.flock, (look, fcntl.LOCK_UN)).start()
        with take():
            assert is_held(tmp_path)


def test_of_those_that_start_at_once_one_gets_the_folder_until_it_is_killed(tmp_path, take, said):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    several = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(4)
    ]
    while sum(process.poll() is None for process in several) > 1:
        time.sleep(0.05)
    (holder,) = [process for process in several if process.poll() is None]
    assert holder.stdout.readline() == "taken\n"
    assert {process.returncode for process in several} == {None, 1}
    holder.kill()
    holder.wait()
    with take():
        assert said == [f"{said[0].partition(' was killed')[0]} was killed; going on from what it finished"]
        assert f"(process {holder.pid} on " in said[0]


def test_what_a_dead_head_left_is_ended_and_removed(tmp_path, take, said, start, killed):
    head = killed()
    orphan = start("a token", sys.executable, "-c", SLEEP)
    left = add_lock(tmp_path)
    folder = lock.temporary_folder(tmp_path) / "snakemake1"
    folder.mkdir(parents=True)
    with take():
        assert orphan.wait() == -signal.SIGTERM
        assert not left.exists()
        assert not folder.exists()
    assert said[0] == f"{head} was killed; going on from what it finished"
    assert said[1:] == ["ended what it had left at work: 1 process"]


# -- what is left at work -------------------------------------------------------------------------


def test_all_that_descends_from_a_head_is_ended_and_nothing_else(start, monkeypatch):
    monkeypatch.setattr(lock, "SECONDS_TO_END", 0.5)
    shell = start("ours", "bash", "-c", f"{sys.executable} -c '{SLEEP}' -m mdpu train; true")
    deaf = start("ours", sys.executable, "-c", DEAF)
    others = [
        start("theirs", sys.executable, "-c", SLEEP),
        start("ours", sys.executable, "-c", SLEEP, SLURM_JOB_ID="12"),  # another job's of a cluster
    ]
    assert deaf.stdout.readline() == b"deaf\n"
    while len(descendants("ours")) < 3 or not descendants("theirs"):
        time.sleep(0.01)
    assert end_processes("ours") == 3
    assert deaf.wait() == -signal.SIGKILL
    assert shell.wait() is not None
    assert all(process.poll() is None for process in others)


# -- jobs of a cluster ----------------------------------------------------------------------------


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """SLURM's queue: what each look at it gives; and the other commands that were given to SLURM."""
    looks, commands = [], []

    def run(command, **_):
        if command[0] != "squeue":
            return commands.append(command)
        lines = looks.pop(0)
        if lines is None:
            raise subprocess.CalledProcessError(1, command)
        return subprocess.CompletedProcess(command, 0, "\n".join(lines), "")

    monkeypatch.setattr(lock.shutil, "which", lambda name: name)
    monkeypatch.setattr(lock, "SECONDS_BETWEEN_LOOKS", 0)
    monkeypatch.setattr(lock.subprocess, "run", run)
    return looks, commands


def test_jobs_of_a_dead_head_are_waited_for_or_cancelled_while_they_wait(tmp_path, take, said, queue, killed):
    looks, commands = queue
    killed("./run paper --profile profiles/slurm")
    running, waiting = f"7|RUNNING|rule_train|{tmp_path}", f"8|PENDING|rule_train_wildcards_a|{tmp_path}"
    others = ["9|RUNNING|(null)|" + str(tmp_path), "10|RUNNING|rule_train|/elsewhere"]
    looks += [[running, waiting, *others], [running, *others], None, [running, *others], others]
    with take():
        pass
    assert commands == [["scancel", "--state=PENDING", "8"]]
    assert said[1:] == [
        "cancelled its jobs that were waiting in SLURM's queue: 8",
        "waiting for its jobs that run under SLURM: 7",
    ]
    assert looks == []


def test_the_state_of_a_folder_is_told(tmp_path, take, queue, killed):
    looks, _ = queue
    looks += [None, [f"7|RUNNING|rule_train|{tmp_path}"], [], None]
    assert describe(tmp_path) == ["nothing is at work in this folder"]  # SLURM may be installed, and not run
    with take() as taken:
        assert describe(tmp_path) == [f"{taken.head} is at work in this folder", "  job 7: RUNNING"]
    (tmp_path / ".snakemake" / "run.lock").unlink()
    (tmp_path / ".snakemake").rmdir()
    head = killed("./run paper --profile profiles/slurm")
    killed_line = f"{head} was killed; ./run goes on from what it finished"
    assert describe(tmp_path) == [killed_line]
    assert describe(tmp_path) == [killed_line, "  SLURM's queue could not be read"]
