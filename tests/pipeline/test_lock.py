"""One `./run` at a time in a clone; a killed one is cleared up behind, a live one never."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest

from mdpu.pipeline import lock as hold
from mdpu.pipeline.lock import (
    SNAKEMAKE,
    TOKEN,
    HeldError,
    Hold,
    Owner,
    end_processes,
    processes,
    report_status,
    snakemake_in,
    start_of,
)


@pytest.fixture
def said():
    return []


@pytest.fixture
def take(tmp_path, said):
    """What holds the clone for another `./run`, and returns the hold."""

    def take(command="./run quick"):
        taken = Hold(tmp_path, command, said.append)
        taken.take()
        return taken

    return take


@pytest.fixture
def child():
    """A process that waits until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def record(tmp_path, owner):
    folder = tmp_path / ".snakemake"
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps(asdict(owner)))


def of(process):
    return Owner("./run paper", "a token", pid=process.pid, start=start_of(process.pid))


def add_lock(tmp_path, name="0.output.lock"):
    path = tmp_path / ".snakemake" / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("results/file\n")
    return path


# -- who is alive ---------------------------------------------------------------------------------


def test_a_process_is_alive_until_it_has_ended(child):
    owner = of(child)
    assert not owner.is_dead()
    child.kill()
    while start_of(child.pid) is not None:  # a zombie, whom nobody has waited for yet, holds nothing
        time.sleep(0.01)
    assert owner.is_dead()


def test_a_process_number_that_was_given_again_is_another_process(child):
    assert replace(of(child), start="1").is_dead()


def test_a_restart_of_the_machine_ends_all_that_ran_on_it(child):
    assert replace(of(child), boot="before").is_dead()


@pytest.mark.parametrize("where", [{"machine": "elsewhere"}, {"namespace": "pid:[1]"}])
def test_what_cannot_be_seen_is_not_taken_for_dead(tmp_path, take, said, where):
    add_lock(tmp_path)
    record(tmp_path, replace(Owner("./run paper", "a token", pid=2**22 + 1, start="1"), **where))
    with pytest.raises(HeldError, match=r"cannot be seen whether it still is; if it has ended, delete .*run\.json"):
        take()
    assert add_lock(tmp_path).exists()
    assert said == []


@pytest.mark.parametrize(("queue", "dead"), [(["7"], False), ([], True), (None, False)])
def test_of_another_machine_slurm_knows(monkeypatch, queue, dead):
    monkeypatch.setattr(hold, "_squeue", lambda form: queue)
    owner = Owner("./run paper", "a token", machine="elsewhere", slurm_job="7")
    assert owner.is_dead() == dead
    assert not replace(owner, user=owner.user + 1).is_dead()  # whose jobs the queue may hide
    assert not replace(owner, slurm_job="").is_dead()


# -- holding --------------------------------------------------------------------------------------


def test_the_second_is_told_who_holds_the_folder(tmp_path, take, child, said):
    record(tmp_path, of(child))
    lock = add_lock(tmp_path)
    with pytest.raises(HeldError) as refusal:
        take()
    assert str(refusal.value).startswith(f"./run paper (process {child.pid} on {platform.node()}, since 20")
    assert str(refusal.value).endswith(f"in this folder; wait for it, or end it with: kill -INT {child.pid}")
    assert lock.exists()
    assert child.poll() is None
    assert said == []


def test_one_after_the_other_nobody_is_told_anything(tmp_path, take, said):
    take().release()
    take().release()
    assert said == []
    assert not (tmp_path / ".snakemake" / "run.json").exists()


def test_of_those_that_start_at_once_one_gets_the_folder(tmp_path):
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom mdpu.pipeline.lock import *\n"
        "try:\n    Hold(Path(sys.argv[1]), 'x', print).take()\n    print('taken', flush=True)\n    time.sleep(3)\n"
        "except HeldError:\n    pass\n"
    )
    command = [sys.executable, "-S", "-c", program, str(tmp_path)]
    several = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    assert sum("taken\n" in process.communicate()[0] for process in several) == 1


def test_a_dead_holders_lock_is_released_and_said(tmp_path, take, said, child):
    owner = of(child)
    child.kill()
    child.wait()
    record(tmp_path, owner)
    lock = add_lock(tmp_path)
    take()
    assert not lock.exists()
    assert said == [f"{owner} was killed; going on from what it finished", "released its lock"]


def test_a_lock_that_was_there_before_the_dead_holder_is_anothers(tmp_path, take):
    theirs = add_lock(tmp_path)
    take()  # and is killed: nothing releases it
    record(tmp_path, replace(Hold(tmp_path, "", print).owner(), pid=2**22 + 1))
    its_own = add_lock(tmp_path, "1.output.lock")
    take()
    assert theirs.exists()
    assert not its_own.exists()


@pytest.mark.parametrize("name", SNAKEMAKE)
def test_no_lock_is_released_while_a_snakemake_works_in_the_folder(tmp_path, take, said, name):
    record(tmp_path, Owner("./run paper", "a token", pid=2**22 + 1))
    lock = add_lock(tmp_path)
    bare = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", name], cwd=tmp_path)
    try:
        while snakemake_in(tmp_path) is None:
            time.sleep(0.01)
        take()
    finally:
        bare.kill()
        bare.wait()
    assert lock.exists()
    assert said[-1] == f"its lock is left, because another Snakemake works in this folder (process {bare.pid})"


def test_a_record_cut_short_is_no_holder(tmp_path, take):
    (tmp_path / ".snakemake").mkdir()
    (tmp_path / ".snakemake" / "run.json").write_text('{"command": "./ru')
    take()


def test_the_head_is_recorded_by_itself_before_it_starts(tmp_path, take):
    taken = take()
    head = subprocess.Popen(["sleep", "60"], preexec_fn=taken.hand_over)
    try:
        assert taken.owner().pid == head.pid
        assert not taken.owner().is_dead()
    finally:
        head.kill()
        head.wait()
    assert taken.owner().is_dead()


def test_a_head_whose_folder_was_taken_over_meanwhile_does_not_start(tmp_path, take):
    taken = take()
    record(tmp_path, replace(taken.owner(), pid=2**22 + 1))
    other = take("./run paper")
    with pytest.raises(subprocess.SubprocessError):
        subprocess.Popen(["touch", str(tmp_path / "ran")], preexec_fn=taken.hand_over)
    assert not (tmp_path / "ran").exists()
    taken.release()
    assert other.owner().token == other.token


# -- what is left at work -------------------------------------------------------------------------


def start(token, *command, **environment):
    return subprocess.Popen(command, env={**os.environ, TOKEN: token, **environment})


@pytest.fixture
def orphans():
    """A shell with a command below it, and one that ignores to be asked, of one token; and two of others."""
    sleep = "import time; time.sleep(60)"
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(end='', flush=True); {sleep}"
    ours = [
        start("ours", "bash", "-c", f"{sys.executable} -c '{sleep}' -m mdpu train; true"),
        start("ours", sys.executable, "-c", deaf),
    ]
    others = [
        start("theirs", sys.executable, "-c", sleep),
        start("ours", sys.executable, "-c", sleep, SLURM_JOB_ID="12"),
    ]
    while len(processes("ours")) < 3 or len(processes("theirs")) < 1:
        time.sleep(0.01)
    time.sleep(0.3)  # until the deaf one is deaf
    yield ours, others
    for process in ours + others:
        process.kill()
        process.wait()


def test_all_that_descends_from_a_holder_is_ended_and_nothing_else(orphans, monkeypatch):
    monkeypatch.setattr(hold, "SECONDS_TO_END", 0.5)
    ours, others = orphans
    ended = end_processes("ours")
    assert len(ended) == 2  # the shell is not worth a word
    assert ended[0].startswith("mdpu train (process ")
    assert ours[1].wait() == -signal.SIGKILL
    assert ours[0].wait() is not None
    assert all(process.poll() is None for process in others)


def test_the_next_run_ends_what_a_dead_one_left_at_work(tmp_path, take, said):
    orphan = start("a token", sys.executable, "-c", "import time; time.sleep(60)")
    record(tmp_path, Owner("./run paper", "a token", pid=2**22 + 1))
    take()
    assert said[1].startswith("ended what it had left at work: ")
    assert orphan.wait() == -signal.SIGTERM


# -- jobs of a cluster ----------------------------------------------------------------------------


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """SLURM's queue: what each look at it gives; and the commands that were given to SLURM."""
    looks, commands = [], []
    monkeypatch.setattr(hold.shutil, "which", lambda name: name)
    monkeypatch.setattr(hold, "_squeue", lambda form: looks.pop(0))
    monkeypatch.setattr(hold, "SECONDS_BETWEEN_LOOKS", 0)
    monkeypatch.setattr(hold.subprocess, "run", lambda command, **_: commands.append(command))
    return looks, commands


def test_jobs_of_a_dead_head_are_waited_for_or_cancelled_while_they_wait(tmp_path, take, said, queue):
    looks, commands = queue
    record(tmp_path, Owner("./run paper --profile profiles/slurm", "a token", pid=2**22 + 1))
    running, waiting = f"7|RUNNING|rule_train|{tmp_path}", f"8|PENDING|rule_train_wildcards_a|{tmp_path}"
    others = ["9|RUNNING|(null)|" + str(tmp_path), "10|RUNNING|rule_train|/elsewhere"]
    looks += [[running, waiting, *others], [running, *others], None, [running, *others], others]
    take()
    assert commands == [["scancel", "--state=PENDING", "8"]]
    assert said[1:] == [
        "cancelled its jobs that were waiting in SLURM's queue: 8",
        "waiting for its jobs that run under SLURM: 7",
    ]
    assert looks == []


def test_nobody_waits_for_slurm_behind_one_that_worked_here(tmp_path, take, queue):
    record(tmp_path, Owner("./run paper", "a token", pid=2**22 + 1))
    take()


def test_the_state_of_a_folder_is_told(tmp_path, child, queue):
    looks, _ = queue
    looks += [[], [f"7|RUNNING|rule_train|{tmp_path}"], [], None]
    assert report_status(tmp_path) == ["nothing is at work in this folder"]
    record(tmp_path, of(child))
    assert report_status(tmp_path) == [f"{of(child)} is at work in this folder", "  job 7: RUNNING"]
    record(tmp_path, replace(of(child), start="1"))
    assert report_status(tmp_path)[0].endswith("was killed; ./run goes on from what it finished")
    assert report_status(tmp_path)[1:] == ["  SLURM's queue could not be read"]
