"""The workflow through a real SLURM on this machine: jobs cancelled, failing, and left behind by a
killed head.
"""

import json
import os
import re
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
    pytest.mark.skipif(
        loopback_slurm.why_not() is not None, reason=f"no SLURM: {loopback_slurm.why_not()}"
    ),
]
# The plugin looks at its jobs every forty seconds otherwise, and ten seconds later after each look
# in vain.
OFTEN = [
    "--slurm-init-seconds-before-status-checks=1",
    "--seconds-between-status-checks=1",
    "--latency-wait=10",
]
# Python runs this file at its start, from a folder on PYTHONPATH.
EVERY_SECOND = """\
import sys
if any(word.endswith("snakemake") for word in sys.orig_argv):
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
    every_second = property(lambda self: 1, lambda self, seconds: None)
    RemoteExecutor.next_seconds_between_status_checks = every_second
"""
COMMAND = ["./run", "tiny", "--profile", "profiles/slurm", *OFTEN]


@pytest.fixture
def small_clone(fresh_clone):
    """A clone whose experiment is a figure of pairs and triples: two cells of two runs."""
    (fresh_clone.folder / "sitecustomize.py").write_text(EVERY_SECOND)
    fresh_clone.change_config(
        experiments=["tiny-curves"], axes__method=["abs"], checkpoint_seconds=1
    )
    return fresh_clone


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    base = tmp_path_factory.mktemp("slurm")
    loopback_slurm.start(base)
    yield base
    loopback_slurm.stop(base)


def training_jobs():
    """Return the numbers of the training jobs that run."""
    queue = subprocess.run(
        ["squeue", "-h", "-t", "R", "-o", "%i %k"], capture_output=True, text=True, check=True
    )
    return {line.split()[0] for line in queue.stdout.splitlines() if "rule_train" in line}


def wait_until(condition, process):
    for _ in range(3000):
        if value := condition():
            return value
        assert process.poll() is None, process.args
        time.sleep(0.2)
    raise AssertionError("it never came to pass")


def test_jobs_that_are_cancelled_fail_or_lose_their_head_end_with_the_numbers_of_this_machine(
    slurm, small_clone
):
    small_clone.change_config(protocol__training__epochs=300)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    head = subprocess.Popen(COMMAND, cwd=small_clone.folder, env=small_clone.environment, **quiet)
    first = wait_until(lambda: len(jobs := training_jobs()) == 2 and jobs, head)
    failing, cancelled = sorted(first)
    os.kill(wait_until(lambda: loopback_slurm.training_process(failing), head), signal.SIGKILL)
    subprocess.run(["scancel", cancelled], check=True)
    second = wait_until(lambda: len(jobs := training_jobs() - first) == 2 and jobs, head)
    # Both are tried again. While they run, the head is killed; its jobs live on, and the next head
    # submits them again.
    for process in [*psutil.Process(head.pid).children(recursive=True), head]:
        process.kill()
    head.wait()
    assert training_jobs() <= second
    small_clone.run(*COMMAND)
    here = pd.read_parquet(small_clone.results / "metrics.parquet")
    for path in (small_clone.folder / "results" / "runs").rglob("*.parquet"):
        path.unlink()
    small_clone.snakemake("--until", "collect")
    pd.testing.assert_frame_equal(
        here, pd.read_parquet(small_clone.results / "metrics.parquet"), check_exact=True
    )


def heads():
    """Return the state of every job of `head.sh`, in order of submission."""
    known = subprocess.run(
        ["scontrol", "--oneliner", "show", "job"], capture_output=True, text=True, check=True
    )
    found = re.findall(r"JobId=(\d+) JobName=mdpu-head .*JobState=(\w+)", known.stdout)
    return dict(sorted(found, key=lambda job: int(job[0])))


def test_a_head_that_runs_out_of_time_is_continued_by_its_successor(slurm, small_clone):
    """Its training jobs are halted until its time, which is made to end now, is over."""
    with subprocess.Popen(["sleep", "1400"]) as patience:
        small_clone.run("sbatch", "--time=30", "profiles/slurm/head.sh", "tiny", *OFTEN)
        jobs = wait_until(lambda: len(jobs := training_jobs()) == 2 and jobs, patience)
        for job in jobs:
            os.kill(
                wait_until(lambda job=job: loopback_slurm.training_process(job), patience),
                signal.SIGSTOP,
            )
        first = next(iter(heads()))
        subprocess.run(["scontrol", "update", f"JobId={first}", "EndTime=now+1"], check=True)
        wait_until(lambda: not {"RUNNING", "PENDING"} & {*heads().values()}, patience)
        patience.kill()
    assert [*heads().values()] == ["TIMEOUT", "COMPLETED", "CANCELLED"]
    assert (small_clone.results / "report.html").exists()
    assert not training_jobs()


def test_the_generic_profile_submits_asks_and_cancels(slurm, fresh_clone):
    scripts = "profiles/cluster-generic/"

    def submit(text):
        script = fresh_clone.folder / "job.sh"
        needs = {
            "rule": "train",
            "threads": 1,
            "resources": {"mem_mb": 100, "runtime": 5, "gpu": 1},
        }
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
    assert status(job) == "running"
    fresh_clone.run(f"{scripts}cancel.sh", job)
    assert wait_for_end(job) == "failed"
    assert status("999999") == "failed"
