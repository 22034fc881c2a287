"""Finished runs on disk, and packed into one file to be carried elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mdpu.errors import UserError
from mdpu.learn import Settings, Task
from mdpu.pipeline.cache import RunStore, fingerprint, group_by_origin
from mdpu.pipeline.plan import Run, run_columns

RUNS = [Run("mnist", "base", 2, 10000, prior, "relu", "logistic", seed) for prior in ("0.4", "0.5") for seed in (1, 2)]
HERE, THERE = {"commit": "abc", "device": "cpu"}, {"commit": "def", "device": "H200"}


def history(run: Run) -> pd.DataFrame:
    values = np.random.default_rng(run.seed).normal(size=(3, 2))
    values[-1] = np.nan  # as where a run diverged
    measures = {"epoch": [1, 2, 3], "risk": values[:, 0], "accuracy": values[:, 1]}
    return pd.DataFrame({**run_columns(run), **measures})


@pytest.fixture
def store(tmp_path):
    kept = RunStore(tmp_path / "runs")
    for run in RUNS:
        kept.save(run, history(run), f"print of {run.name}", HERE if run.seed == 1 else THERE)
    return kept


def test_a_run_is_found_by_its_fingerprint_alone(store):
    found = store.load(RUNS[0], ["another", f"print of {RUNS[0].name}"])
    pd.testing.assert_frame_equal(found, history(RUNS[0]), check_exact=True)
    assert found.attrs["origin"] == HERE
    assert store.load(RUNS[0], ["another"]) is None
    store.path(RUNS[0]).write_bytes(b"nonsense")
    assert store.load(RUNS[0], [f"print of {RUNS[0].name}"]) is None


def test_a_run_of_unknown_origin_is_not_taken(tmp_path):
    kept = RunStore(tmp_path)
    marked = history(RUNS[0])
    marked.attrs = {"fingerprint": "abc"}
    kept.path(RUNS[0]).parent.mkdir(parents=True)
    marked.to_parquet(kept.path(RUNS[0]))
    assert kept.load(RUNS[0], ["abc"]) is None
    with pytest.raises(UserError, match="has no finished run"):
        kept.pack(tmp_path / "packed.parquet")


def test_runs_survive_packing_bit_for_bit_with_fingerprint_and_origin(store, tmp_path):
    (store.path(RUNS[0]).parent / ".left.parquet").write_bytes(b"by a killed process")
    assert store.pack(tmp_path / "packed.parquet") == len(RUNS)
    elsewhere = RunStore(tmp_path / "elsewhere")
    assert elsewhere.unpack(tmp_path / "packed.parquet") == (len(RUNS), 0)
    for run in RUNS:
        wanted = f"print of {run.name}"
        found, original = elsewhere.load(run, wanted), store.load(run, wanted)
        pd.testing.assert_frame_equal(found, original, check_exact=True)
        assert found.attrs == original.attrs


def test_unpacking_leaves_what_is_there(store, tmp_path):
    store.pack(tmp_path / "packed.parquet")
    other = RunStore(tmp_path / "other")
    other.save(RUNS[1], history(RUNS[1]), "newer", HERE)
    assert other.unpack(tmp_path / "packed.parquet") == (len(RUNS) - 1, 1)
    assert other.load(RUNS[1], "newer") is not None


def test_what_cannot_be_packed_or_unpacked_is_refused(store, tmp_path):
    with pytest.raises(UserError, match="has no finished run"):
        RunStore(tmp_path / "nowhere").pack(tmp_path / "packed.parquet")
    with pytest.raises(UserError, match="does not exist"):
        store.unpack(tmp_path / "nowhere.parquet")
    history(RUNS[0]).to_parquet(tmp_path / "history.parquet")
    with pytest.raises(UserError, match="does not hold finished runs: it has no column fingerprint, origin"):
        store.unpack(tmp_path / "history.parquet")
    outside = history(RUNS[0]).assign(dataset="../..", fingerprint="f", origin="{}")
    outside.to_parquet(tmp_path / "outside.parquet")
    with pytest.raises(UserError, match=r"is no place in .*runs: \.\./\.\."):
        store.unpack(tmp_path / "outside.parquet")


def test_histories_are_grouped_by_who_trained_them(store):
    histories = {run: store.load(run, f"print of {run.name}") for run in RUNS}
    first, second = group_by_origin(histories)
    assert first == {**HERE, "runs": [run.name for run in RUNS if run.seed == 1]}
    assert second == {**THERE, "runs": [run.name for run in RUNS if run.seed == 2]}


TASK = Task("relu", 2, 0.4, seed=RUNS[0].trial, sample=RUNS[0].split)
SETTINGS = Settings(epochs=3, precision="fp32")
INPUTS = {"images": "a", "labels": "b", "split": "c"}


def test_a_fingerprint_follows_settings_task_and_inputs():
    usual = fingerprint(RUNS[0], TASK, SETTINGS, INPUTS)
    assert usual == fingerprint(RUNS[0], TASK, SETTINGS, dict(reversed(INPUTS.items())))
    others = [
        fingerprint(RUNS[1], TASK, SETTINGS, INPUTS),
        fingerprint(RUNS[0], replace(TASK, prior=0.5), SETTINGS, INPUTS),
        fingerprint(RUNS[0], replace(TASK, learning_rate=0.1), SETTINGS, INPUTS),
        fingerprint(RUNS[0], TASK, replace(SETTINGS, epochs=4), INPUTS),
        fingerprint(RUNS[0], TASK, replace(SETTINGS, architecture={"hidden": [300]}), INPUTS),
        fingerprint(RUNS[0], TASK, replace(SETTINGS, network="resnet34"), INPUTS),
        fingerprint(RUNS[0], TASK, SETTINGS, {**INPUTS, "split": "d"}),
    ]
    assert len({usual, *others}) == 1 + len(others)


def test_a_fingerprint_holds_the_precision_and_the_networks_defaults():
    prints = {name: fingerprint(RUNS[0], TASK, replace(SETTINGS, precision=name), INPUTS) for name in ("fp32", "bf16")}
    assert prints["fp32"] != prints["bf16"]
    named = replace(SETTINGS, architecture={"hidden": [300, 300]})
    assert fingerprint(RUNS[0], TASK, named, INPUTS) == prints["fp32"]
