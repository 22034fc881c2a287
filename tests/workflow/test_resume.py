"""Killed and started again, a run gives the numbers of an undisturbed one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pandas as pd
import pytest

pytestmark = pytest.mark.slow


WHOM = ("launcher, Snakemake and jobs", "launcher and Snakemake", "Snakemake")


def test_a_run_killed_at_several_moments_ends_with_the_same_numbers(fresh_clone, finished):
    """SIGKILL in the splits, in training, and in the gathering of results; the same command each time, and no other."""
    results = fresh_clone.results
    moments = {
        "drawing splits": "splits/**/*.npz",
        "training": "runs/**/*.parquet",
        "gathering": "logs/collect.log",
    }
    command = ["./run", "paper", "--cores", "2", "--configfile", "config/tiny.yaml"]
    for whom, (moment, pattern) in zip(WHOM, moments.items(), strict=True):
        process = subprocess.Popen(
            command,
            cwd=fresh_clone.folder,
            env=fresh_clone.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while not any(results.glob(pattern)):
            assert process.poll() is None, f"ended before {moment}"
            time.sleep(0.01)
        if whom == WHOM[0]:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(json.loads((fresh_clone.folder / ".snakemake" / "run.json").read_text())["pid"], signal.SIGKILL)
            if whom == WHOM[1]:
                process.kill()
        process.wait()
        assert not (results / "report.html").exists()
    done = fresh_clone.run(*command)
    # What the last kill left at work may have ended by itself since; tests/test_hold.py has one that does not.
    assert "was killed; going on from what it finished\n" in done.stdout
    assert "\nrun: released its lock\n" in done.stdout
    assert fresh_clone.jobs() == {}
    assert not list(results.rglob("*.pt"))
    # A stack that the kill cut in two is finished as two, and a run's bits are its own all the same.
    pd.testing.assert_frame_equal(
        pd.read_parquet(results / "metrics.parquet"),
        pd.read_parquet(finished.results / "metrics.parquet"),
        check_exact=True,
    )
    assert (results / "tables/tiny-table.tex").read_bytes() == (finished.results / "tables/tiny-table.tex").read_bytes()
