"""A small sample of `benchmarks/faults/damage.py`, in a clone of its own."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from mdpu.pipeline.store import Stored, read_runs, write_runs


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_damaged_file_of_each_kind_is_named_and_made_again_as_a_target(finished_clone, tmp_path):
    harness = [sys.executable, "benchmarks/faults/damage.py", "--sample", "--out", str(tmp_path / "damage.csv")]
    finished_clone.run(*harness)
    rows = pd.read_csv(tmp_path / "damage.csv")
    assert len(rows) == 5
    assert set(rows["noticed"]) == {"named"}
    assert set(rows["afterwards"]) == {"made again with the same numbers"}


@pytest.mark.slow
def test_a_run_whose_values_are_edited_is_not_collected(finished_clone):
    """Parquet's own checksums cannot tell it: the file is whole."""
    cell = finished_clone.folder / "results/runs/digits/base/m2/n60/prior0.5/abs.parquet"
    edited = [Stored(run.key, run.history.assign(accuracy=1.0), run.about) for run in read_runs(cell).values()]
    write_runs(cell, edited)
    said = finished_clone.snakemake("--forcerun", "collect", "--until", "collect", status=1)
    assert "m2/n60/prior0.5/abs.parquet is damaged" in said
