"""Small samples of the fault harnesses; `benchmarks/faults` has the whole."""

from __future__ import annotations

import csv
import errno
import importlib
import os
import shutil
import signal
import subprocess
import sys

import pytest

from mdpu.pipeline.files import REPOSITORY

FAULTS = REPOSITORY / "benchmarks" / "faults"


@pytest.fixture
def load(monkeypatch):
    """What imports a harness, which finds the others beside it, as a script does."""
    monkeypatch.syspath_prepend(FAULTS)
    return importlib.import_module


def test_no_power_cut_tears_a_file(load):
    count, wrong = load("replay").replay([b"first" * 100, b"second" * 200, b"third"])
    assert count > 20
    assert wrong == []


def test_the_replay_finds_what_is_not_synced(load):
    _, wrong = load("replay").replay([b"first" * 100, b"second" * 200], sync=False)
    assert wrong


def test_the_page_shows_the_table_that_the_harnesses_wrote(load):
    harness = load("harness")
    assert f"{harness.BEGIN}\n{harness.render()}\n{harness.END}" in harness.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "before", "after", "outcome"),
    [
        ("a.csv", "1", "1", "SAME"),
        ("a.csv", "1", "2", "OTHER"),
        ("a.json", '{"x": 1, "made": {"commit": "a"}}', '{"x": 1, "made": {"commit": "b"}}', "DATED"),
        ("a.json", '{"x": 1, "commit": "a"}', '{"x": 2, "commit": "a"}', "OTHER"),
        ("a.html", "2026-01-01: 80.1", "2026-01-02: 80.1", "DATED"),
        ("a.html", "80.1<i data-varies> in 50 s</i>", "80.1<i data-varies> in 1 min 7 s</i>", "DATED"),
        ("a.html", "80.1<i data-varies> in 5 s</i>", "80.2<i data-varies> in 5 s</i>", "OTHER"),
    ],
)
def test_what_is_made_anew_may_differ_in_its_date_alone(load, tmp_path, name, before, after, outcome):
    damage = load("damage")
    (tmp_path / name).write_text(after)
    assert damage.comparison(tmp_path / name, before.encode()) == getattr(damage, outcome)


WRITE = "import sys, time; start = time.time(); open(sys.argv[2], 'w').write('x'); print(time.time() - start > 86399)"


@pytest.mark.skipif(not shutil.which("gcc"), reason="counting calls needs gcc")
@pytest.mark.parametrize(
    ("name", "error", "status", "said"),
    [
        ("here", 0, -signal.SIGKILL, ""),
        ("here", errno.ENOSPC, 1, "No space left on device"),
        ("here", -1, 0, "True"),  # the clock jumps
        ("elsewhere", 0, 0, "False"),
    ],
)
def test_the_process_that_is_named_meets_a_fault_and_no_other(load, tmp_path, name, error, status, said):
    facts = {"FAULT_IN": "here", "FAULT_AT": "1", "FAULT_ERROR": str(error), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {**os.environ, **facts, "LD_PRELOAD": str(load("harness").build_counter(tmp_path))}
    command = [sys.executable, "-c", WRITE, name, str(tmp_path / "written")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == status
    assert said in done.stdout + done.stderr
    assert (tmp_path / "written").exists() == (status == 0)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcc"), reason="counting calls needs gcc")
def test_a_command_that_is_disturbed_at_any_call_can_be_run_again(fresh_clone, tmp_path):
    harness = [sys.executable, "benchmarks/faults/points.py", "--fault", "kill", "ENOSPC", "EIO", "--only", "split"]
    fresh_clone.run(*harness, "--points", "6", "--out", str(tmp_path / "points.csv"))
    rows = list(csv.DictReader((tmp_path / "points.csv").open()))
    assert len(rows) >= 30
    assert {row["outcome"] for row in rows} == {"recovered"}
