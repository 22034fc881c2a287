"""The workflow through a real SLURM on this machine: jobs cancelled, failing, and left behind by a killed head."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time

import loopback_slurm
import pandas as pd
import psutil
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(loopback_slurm.why_not() is not None, reason=f"no SLURM: {loopback_slurm.why_not()}"),
]
# The plugin looks at its jobs every forty seconds otherwise, and ten seconds later after each look in vain.
OFTEN = ["--slurm-init-seconds-before-status-checks=1", "--seconds-between-status-checks=1", "--latency-wait=10"]
# Python runs this file at its start, from a folder on PYTHONPATH.
EVERY_SECOND = """\
import sys
if any(word.endswith("snakemake") for word in sys.orig_argv):
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
    RemoteExecutor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)
"""
COMMAND = ["./run", "paper", "--configfile", "config/tiny.yaml", "--profile", "profiles/slurm", *OFTEN]


@pytest.fixture
def small_clone(fresh_clone, tmp_path, monkeypatch):
    """A clone whose experiment is a figure of pairs and triples: two training jobs of eight runs."""
    (tmp_path / "sitecustomize.py").write_text(EVERY_SECOND)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    fresh_clone.change_config(experiments=["tiny-curves"], expected=None)
    return fresh_clone


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    base = tmp_path_factory.mktemp("slurm")
    loopback_slurm.start(base)
    yield base
    loopback_slurm.stop(base)


def training_jobs():
    """Return the name of every training job that runs, by its number in the queue."""
    queue = subprocess.run(["squeue", "-h", "-t", "R", "-o", "%i %k"], capture_output=True, text=True, check=True)
    found = (re.fullmatch(r"(\d+) rule_train_wildcards_(.*)", line) for line in queue.stdout.splitlines())
    return {match[1]: match[2] for match in found if match}


def start_now(job):
    """Ask SLURM to start a job now, not after the two minutes that it gives itself, and return whether it runs."""
    subprocess.run(["scontrol", "update", f"JobId={job}", "StartTime=now"], capture_output=True)
    return job in training_jobs()


def wait_until(condition, process):
    for _ in range(3000):
        if value := condition():
            return value
        assert process.poll() is None, process.args
        time.sleep(0.2)
    raise AssertionError("it never came to pass")


def runs(clone):
    """Return when each finished run was written."""
    cache = clone.results.with_name("cache")
    return {str(path): path.stat().st_mtime_ns for path in sorted(cache.glob("**/[!.]*.parquet"))}


def test_jobs_that_are_cancelled_fail_are_preempted_or_lose_their_head_train_nothing_twice(slurm, small_clone):
    # A second attempt asks for twice the memory, and the node holds two of them.
    small_clone.change_config(protocol__training__epochs=300, checkpoint_seconds=1, memory_mb=3000)
    head = subprocess.Popen(
        COMMAND,
        cwd=small_clone.folder,
        env=small_clone.environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    first = wait_until(lambda: len(jobs := training_jobs()) == 2 and jobs, head)
    failing, cancelled = sorted(first)
    os.kill(wait_until(lambda: loopback_slurm.training_process(failing), head), signal.SIGKILL)
    subprocess.run(["scancel", cancelled], check=True)
    # Both are tried again. One is put back into the queue, as SLURM does with a preempted job; the other is halted.
    second = wait_until(lambda: len(jobs := training_jobs().keys() - first.keys()) == 2 and jobs, head)
    preempted = min(second)
    before, halted = (wait_until(lambda job=job: loopback_slurm.training_process(job), head) for job in sorted(second))
    os.kill(halted, signal.SIGSTOP)
    subprocess.run(["scontrol", "requeue", preempted], check=True)
    wait_until(lambda: loopback_slurm.training_process(preempted) != before, head)
    wait_until(lambda: start_now(preempted) and loopback_slurm.training_process(preempted), head)
    os.kill(halted, signal.SIGCONT)
    # While both run, the head is killed, and with it what started it.
    below = psutil.Process(head.pid).children()
    head.kill()
    head.wait()
    for process in below:
        process.kill()
    assert training_jobs().keys() == second

    again = subprocess.Popen(
        COMMAND, cwd=small_clone.folder, env=small_clone.environment, stdout=subprocess.PIPE, text=True
    )
    wait_until(lambda: not training_jobs(), again)
    trained = runs(small_clone)
    said = again.communicate()[0]
    assert again.returncode == 0, said
    assert "was killed; going on from what it finished" in said
    assert "run: waiting for its jobs that run under SLURM: " in said
    assert runs(small_clone) == trained
    assert len(trained) == 8
    # A job of many splits asks for two processors, not for one per split, which a cluster would refuse.
    known = subprocess.run(["scontrol", "--oneliner", "show", "job"], capture_output=True, text=True, check=True)
    assert set(re.findall(r"NumCPUs=(\d+) .*Comment=rule_splits_split", known.stdout)) == {"2"}
    here = pd.read_parquet(small_clone.results / "metrics.parquet")
    shutil.rmtree(small_clone.results.with_name("cache"))  # otherwise nothing would be trained
    small_clone.snakemake("--until", "collect", "--forcerun", "train")
    pd.testing.assert_frame_equal(here, pd.read_parquet(small_clone.results / "metrics.parquet"), check_exact=True)


def heads():
    """Return the state of every job of `head.sh`, by number, in order of submission."""
    known = subprocess.run(["scontrol", "--oneliner", "show", "job"], capture_output=True, text=True, check=True)
    found = re.findall(r"JobId=(\d+) JobName=mdpu-head .*JobState=(\w+)", known.stdout)
    return dict(sorted(found, key=lambda job: int(job[0])))


def running_head(*others):
    """Return the number of the head that runs, unless it is one of some others."""
    return next((job for job, state in heads().items() if state == "RUNNING" and job not in others), None)


def test_a_head_that_runs_out_of_time_is_continued_by_its_successor(slurm, small_clone):
    """Training is halted until the head that started it runs no more: its time is made to end now."""
    tiny = ["paper", "--configfile", "config/tiny.yaml"]
    with subprocess.Popen(["sleep", "1400"]) as patience:
        small_clone.run("sbatch", "--time=30", "profiles/slurm/head.sh", *tiny, *OFTEN)
        jobs = wait_until(lambda: len(jobs := training_jobs()) == 2 and jobs, patience)
        processes = [wait_until(lambda job=job: loopback_slurm.training_process(job), patience) for job in jobs]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        first = wait_until(running_head, patience)
        subprocess.run(["scontrol", "update", f"JobId={first}", "EndTime=now+1"], check=True)
        second = wait_until(lambda: running_head(first), patience)
        log = small_clone.folder / f"head-{second}.log"
        waits = "run: waiting for its jobs that run under SLURM: "
        wait_until(lambda: log.exists() and waits in log.read_text(), patience)
        for process in processes:
            os.kill(process, signal.SIGCONT)
        wait_until(lambda: not training_jobs(), patience)
        trained = runs(small_clone)
        wait_until(lambda: not {"RUNNING", "PENDING"} & {*heads().values()}, patience)
        patience.kill()
    assert "was killed; going on from what it finished" in log.read_text()
    assert [*heads().values()] == ["TIMEOUT", "COMPLETED", "CANCELLED"]
    assert (small_clone.results / "report.html").exists()
    assert runs(small_clone) == trained
    assert len(trained) == 8


def test_the_generic_profile_submits_asks_and_cancels(slurm, fresh_clone):
    scripts = "profiles/cluster-generic/"

    def submit(text):
        script = fresh_clone.folder / "job.sh"
        needs = {"rule": "train", "threads": 1, "resources": {"mem_mb": 100, "runtime": 5, "gpu": 1}}
        script.write_text(f"#!/bin/sh\n# properties = {json.dumps(needs)}\n{text}\n")
        return fresh_clone.run(f"{scripts}submit.py", str(script)).stdout.strip()

    def status(job):
        return fresh_clone.run(f"{scripts}status.sh", job).stdout.strip()

    def wait_for_end(job):
        for _ in range(300):
            if (said := status(job)) != "running":
                return said
            time.sleep(0.1)
        raise AssertionError(f"job {job} does not end")

    assert wait_for_end(submit("true")) == "success"
    assert wait_for_end(submit("false")) == "failed"
    job = submit('test -n "$CUDA_VISIBLE_DEVICES" && sleep 60')
    assert f"  job {job}: " in fresh_clone.run("./run", "status").stdout
    assert status(job) == "running"
    fresh_clone.run(f"{scripts}cancel.sh", job)
    assert wait_for_end(job) == "failed"
    assert status("999999") == "failed"
