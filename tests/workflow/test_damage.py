"""A sample of `benchmarks/faults/nonsense.py`, and a file that is edited in a clone."""

import subprocess
import sys

import pandas as pd
import pytest

from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.store import Stored, read_runs, write_runs


@pytest.mark.slow
def test_nonsense_is_refused_or_works(tmp_path):
    """A fiftieth of what the harness tries."""
    harness = [
        sys.executable,
        "benchmarks/faults/nonsense.py",
        "--share",
        "0.02",
        "--out",
        str(tmp_path / "said.csv"),
    ]
    done = subprocess.run(harness, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(pd.read_csv(tmp_path / "said.csv")["kind"]) == {
        "configuration",
        "command",
        "damaged",
    }


@pytest.mark.slow
def test_a_run_whose_values_are_edited_is_not_collected(finished_clone):
    """Parquet's own checksums cannot tell it: the file is whole."""
    cell = finished_clone.folder / "results/runs/digits/base/m2/n60/prior0.5/abs.parquet"
    edited = [
        Stored(run.key, run.history.assign(accuracy=1.0), run.about)
        for run in read_runs(cell).values()
    ]
    write_runs(cell, edited)
    said = finished_clone.snakemake("--forcerun", "collect", "--until", "collect", status=1)
    assert "m2/n60/prior0.5/abs.parquet is damaged" in said


@pytest.mark.slow
def test_a_damaged_file_of_an_ended_job_is_set_aside(finished_clone):
    """It is hidden and only an aid to resume, so nobody could be asked to delete it."""
    cell = finished_clone.folder / "results/runs/digits/base/m2/n60/prior0.5/abs.parquet"
    part = cell.with_name(".abs.part.parquet")
    part.write_bytes(cell.read_bytes()[:3000])
    finished_clone.snakemake("--forcerun", "train", "--until", "train")
    assert not part.exists()


@pytest.mark.slow
def test_all_jobs_start_the_python_that_snakemake_runs_in(finished_clone):
    """Also where another one is first on the PATH, as in a cron job that names
    .venv/bin/snakemake.
    """
    other = finished_clone.folder / "other"
    other.mkdir()
    python = other / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    environment = {**finished_clone.environment, "PATH": f"{other}:/usr/bin:/bin"}
    command = finished_clone.command("--forcerun", "labels", "--until", "labels")
    done = subprocess.run(
        command, cwd=finished_clone.folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
