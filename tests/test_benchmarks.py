"""The benchmarks run, in small."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.store import Stored, pack, read_runs


def run(*command: str) -> str:
    """Run a script of the repository and return what it printed."""
    done = subprocess.run(
        [sys.executable, *command], cwd=REPOSITORY, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_gpu_check_passes_on_a_cpu():
    assert (
        json.loads(run("benchmarks/gpu_check.py", "--device", "cpu", "--without-speed"))["failed"]
        == []
    )


def test_pairs_of_runs_are_compared_by_what_was_asked(tmp_path):
    """The second side is a point better in each of three trials, and a run without a partner does
    not count.
    """
    sampling = {"tuple_size": 2, "prior": "0.5", "n": 10}
    for side, precision, seeds, level in (
        ("a", "bfloat16", (1, 2, 3, 4), 0.80),
        ("b", "float32", (1, 2, 3), 0.81),
    ):
        runs = []
        for seed in seeds:
            asked = {
                "recipe": 1,
                "trial": f"mnist/m2/n10/prior0.5/seed{seed}",
                "sampling": sampling,
            }
            asked |= {
                "method": "relu",
                "loss": "logistic",
                "settings": {"precision": precision, "epochs": 2},
            }
            history = pd.DataFrame(
                {"epoch": [1, 2], "objective": 0.5, "accuracy": np.array([0.1, level + seed / 100])}
            )
            runs.append(Stored.of(asked, history))
        pack(tmp_path / f"{side}.parquet", runs)
    printed = run(
        "benchmarks/paired.py",
        str(tmp_path / "a.parquet"),
        str(tmp_path / "b.parquet"),
        "--last",
        "1",
    )
    (line,) = (line for line in printed.splitlines() if line.startswith("| relu"))
    assert re.findall(r"[-+]?[\d.]+", line)[:4] == ["3", "82.00", "83.00", "+1.00"]


def test_shipped_runs_of_a_gpu_are_compared_with_those_of_a_cpu(tmp_path):
    """Trials from a GPU give their rows of the file again; runs.csv has both sides of the pairs."""
    reference = REPOSITORY / "results" / "reference"
    kept = pd.read_csv(reference / "gpu" / "mnist.csv").set_index("key")
    runs = read_runs(reference / "runs" / "mnist-2.parquet")
    on_gpu = [run for run in runs.values() if run.about["device"].startswith("NVIDIA")]
    pack(tmp_path / "gpu.parquet", on_gpu)
    run("benchmarks/devices.py", str(tmp_path / "gpu.parquet"), "--out", str(tmp_path / "gpu.csv"))
    again = pd.read_csv(tmp_path / "gpu.csv").set_index("key").drop(columns=["commit", "command"])
    assert sorted(again.index) == sorted(run.key for run in on_gpu)
    pd.testing.assert_frame_equal(again, kept.loc[again.index, again.columns])

    shipped = (
        pd.read_csv(reference / "runs.csv").drop_duplicates("key").set_index("key").loc[kept.index]
    )
    is_gpu = shipped["device"].str.startswith("NVIDIA")
    for device, rows in (("gpu", is_gpu), ("cpu", ~is_gpu)):
        accuracy = kept.loc[rows, f"{device}_accuracy"].to_numpy()
        assert accuracy == pytest.approx(shipped.loc[rows, "accuracy"].to_numpy(), abs=1e-4)
        assert (kept.loc[rows, f"{device}_precision"] == shipped.loc[rows, "precision"]).all()
    assert kept["difference"].to_numpy() == pytest.approx(
        kept["gpu_accuracy"] - kept["cpu_accuracy"], abs=1e-3
    )


@pytest.mark.slow
def test_readings_are_inferred_from_the_shipped_runs(tmp_path):
    run("benchmarks/readings.py", "--papers", "40", "--out", str(tmp_path))
    shipped = REPOSITORY / "results" / "reference" / "readings"
    made = {path.name: pd.read_csv(path) for path in tmp_path.iterdir()}
    assert made.keys() == {path.name for path in shipped.iterdir()}

    for name in ("sets.csv", "runs.csv", "single.csv", "outside.csv"):
        pd.testing.assert_frame_equal(made[name], pd.read_csv(shipped / name), rtol=1e-3)
    best = made["joint.csv"].drop_duplicates("numbers")
    kept = pd.read_csv(shipped / "joint.csv").drop_duplicates("numbers")
    np.testing.assert_allclose(best["posterior"], kept["posterior"], atol=0.01)

    known = made["known.csv"]
    held = known.loc[known["choice"].isin(["epochs", "scope"]), "held"]
    assert len(held) > 10
    assert held.min() >= 0.85


@pytest.mark.slow
def test_choices_of_colour_are_trained_one_by_one_and_tests_do_not_change_a_training(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(60) % 10
    np.savez(
        tmp_path / "images.npz",
        train_images=images[:40],
        train_labels=labels[:40],
        test_images=images[40:],
        test_labels=labels[40:],
    )
    small = ["--methods", "abs", "--n", "8", "--batch", "4", "--epochs", "1", "--tests", "20"]
    files = [str(tmp_path / "images.npz"), "--out", str(tmp_path / "choices.csv")]
    run("benchmarks/colour_choices.py", *files, *small)

    lines = pd.read_csv(tmp_path / "choices.csv").set_index("choice")
    objective = lines["objective"]
    assert objective["statistics of tests"] == pytest.approx(objective["as it is"], rel=1e-4)
    assert objective["as it is"] != pytest.approx(objective["normalised"], rel=1e-4)
    assert objective["as it is"] != pytest.approx(objective["augmented"], rel=1e-4)
