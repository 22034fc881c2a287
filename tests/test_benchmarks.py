"""The benchmark that waits for a GPU runs, in small, on a CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_the_gpu_check_passes_in_small_on_a_cpu():
    command = [sys.executable, "benchmarks/gpu_check.py", "--device", "cpu", "--small"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["ok"] for result in results if "ok" in result] == [True] * 4
    assert {result["check"] for result in results} >= {"grey half", "ResNet-34 step, evaluation included"}
