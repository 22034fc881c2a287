"""Small samples of the fault harnesses; `benchmarks/faults` has the whole."""

from __future__ import annotations

import csv
import importlib.util
import shutil
import sys

import pytest

from mdpu.files import REPOSITORY


def load(name):
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "benchmarks" / "faults" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_power_cut_tears_a_file():
    count, wrong = load("replay").replay([b"first" * 100, b"second" * 200, b"third"])
    assert count > 30
    assert wrong == []


def test_the_replay_finds_what_is_not_synced():
    _, wrong = load("replay").replay([b"first" * 100, b"second" * 200], sync=False)
    assert wrong


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcc"), reason="counting calls needs gcc")
@pytest.mark.parametrize(("fault", "command"), [("kill", "split"), ("ENOSPC", "labels"), ("EIO", "verify")])
def test_a_command_that_is_disturbed_at_any_call_can_be_run_again(fresh_clone, tmp_path, fault, command):
    harness = [sys.executable, "benchmarks/faults/points.py", "--fault", fault, "--only", command, "--points", "10"]
    fresh_clone.run(*harness, "--out", str(tmp_path / "points.csv"))
    rows = list(csv.DictReader((tmp_path / "points.csv").open()))
    assert len(rows) >= 8
    assert {row["outcome"] for row in rows} == {"recovered"}
