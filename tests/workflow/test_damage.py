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
    harness = [sys.executable, "benchmarks/faults/nonsense.py", "--share", "0.02", "--out", str(tmp_path / "said.csv")]
    done = subprocess.run(harness, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(pd.read_csv(tmp_path / "said.csv")["kind"]) == {"configuration", "command", "damaged"}


@pytest.mark.slow
def test_a_run_whose_values_are_edited_is_not_collected(finished_clone):
    """Parquet's own checksums cannot tell it: the file is whole."""
    cell = finished_clone.folder / "results/runs/digits/base/m2/n60/prior0.5/abs.parquet"
    edited = [Stored(run.key, run.history.assign(accuracy=1.0), run.about) for run in read_runs(cell).values()]
    write_runs(cell, edited)
    said = finished_clone.snakemake("--forcerun", "collect", "--until", "collect", status=1)
    assert "m2/n60/prior0.5/abs.parquet is damaged" in said
