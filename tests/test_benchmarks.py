"""The benchmark that waits for a GPU runs, in small, on a CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mdpu.data import TupleData
from mdpu.learn import Settings, Task, fit

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_the_gpu_check_passes_in_small_on_a_cpu():
    command = [sys.executable, "benchmarks/gpu_check.py", "--device", "cpu", "--small"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["ok"] for result in results if "ok" in result] == [True] * 4
    assert {result["check"] for result in results} >= {"grey half", "ResNet-34 step, evaluation included"}


def test_another_order_of_the_pixels_changes_nothing_but_rounding(monkeypatch):
    """What benchmarks/make_quick_reference.py counts on: the weights move with their pixels."""
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    from make_quick_reference import in_order

    images = np.random.default_rng(1).integers(0, 256, (200, 8, 8), dtype=np.uint8)
    images[:, :, 0] = 0
    sample = TupleData(np.arange(100).reshape(50, 2), np.arange(100, 200))
    settings = Settings(epochs=2, batch_size=20, precision="fp32", architecture={"hidden": [30]})

    def scores(order):
        with in_order(order):
            (model,) = fit([Task("ure", 2, 0.5)], images, sample, settings, device="cpu")
            return model.decision_function(images)

    first, second, again = scores(0), scores(1), scores(0)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    np.testing.assert_allclose(second, first, rtol=1e-3, atol=1e-4)
