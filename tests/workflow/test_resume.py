"""Killed and started again, a run gives the numbers of an undisturbed one."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pandas as pd
import pytest

pytestmark = pytest.mark.slow


def test_a_run_killed_at_several_moments_ends_with_the_same_numbers(fresh_clone, finished):
    """SIGKILL to Snakemake and all its jobs in the splits, in training, and in the gathering of results."""
    results = fresh_clone.results
    moments = {
        "drawing splits": "splits/**/*.npz",
        "training": "runs/**/*.parquet",
        "gathering": "logs/collect.log",
    }
    for moment, pattern in moments.items():
        process = subprocess.Popen(
            fresh_clone.command(),
            cwd=fresh_clone.folder,
            env=fresh_clone.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while not any(results.glob(pattern)):
            assert process.poll() is None, f"ended before {moment}"
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (results / "report.html").exists()
        fresh_clone.snakemake("--unlock")
    fresh_clone.snakemake()
    assert fresh_clone.jobs() == {}
    assert not list(results.rglob("*.pt"))
    # A stack cut in two by the kill is finished as two, and vectorised sums round by position: the last
    # digits of a single-precision risk may differ, what is printed of the accuracies may not.
    pd.testing.assert_frame_equal(
        pd.read_parquet(results / "metrics.parquet"), pd.read_parquet(finished.results / "metrics.parquet"), rtol=1e-5
    )
    assert (results / "tables/tiny-table.tex").read_bytes() == (finished.results / "tables/tiny-table.tex").read_bytes()
