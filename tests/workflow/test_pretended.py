"""The rules that train, on a pretended GPU: what a job asks for, which device it leases, and what it trains."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from mdpu.pipeline.history import RATES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# Python runs this file at its start, from a folder on PYTHONPATH.
PRETENDED = """\
import sys
if {"mdpu", "train"} <= set(sys.orig_argv):
    import rehearsal
    rehearsal.Rehearsal(devices=2).__enter__()
"""


def test_the_workflow_trains_on_a_gpu_what_it_trains_on_a_cpu(finished, finished_clone, tmp_path, monkeypatch, request):
    """With the images, labels and splits that are there, and no run."""
    shutil.rmtree(finished_clone.results.with_name("cache"))
    (tmp_path / "sitecustomize.py").write_text(PRETENDED)
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{request.config.rootpath / 'tests'}")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    finished_clone.change_config(device="auto")
    said = finished_clone.snakemake("--until", "train", "--forcerun", "train", "--resources", "gpu=2")
    assert said.count("gpu=1") == 2
    expected = {path.name: path for path in finished.folder.glob("results/cache/*/*.parquet")}
    trained = {path.name: path for path in finished_clone.folder.glob("results/cache/*/*.parquet")}
    assert trained.keys() == expected.keys()
    for name, path in trained.items():
        ours, theirs = pd.read_parquet(path), pd.read_parquet(expected[name])
        assert np.allclose(ours[RATES], theirs[RATES], atol=1e-6)
    manifests = [json.loads(path.read_text()) for path in finished_clone.results.glob("trained/**/n60.*.json")]
    assert {origin["device"] for one in manifests for origin in one["trained"]} == {"a pretended GPU"}
