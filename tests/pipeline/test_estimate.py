"""What a plan takes; and every missing file is named in one message before any job starts."""

from __future__ import annotations

import http.server
import threading
from functools import partial

import pandas as pd
import pytest

from mdpu.errors import UserError
from mdpu.pipeline.cache import Finished, cache_of, export, recipes_of
from mdpu.pipeline.config import select
from mdpu.pipeline.data.download import Archive, find_missing
from mdpu.pipeline.estimate import check_files, estimate
from mdpu.pipeline.plan import Plan


@pytest.fixture
def plan(tmp_path):
    """MNIST's part of Table II, with folders of the test's own."""
    values = ["datasets=[mnist]", "experiments=[table2]", f"data_dir={tmp_path / 'data'}", "results_dir=out"]
    return Plan(select("paper", [], values))


@pytest.fixture
def served(tmp_path):
    """A folder and the address at which it is served."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_all_missing_files_are_named_with_size_checksum_and_place(plan, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"^4 missing files, and the mirror .* lacks them, so nothing was"):
        check_files(plan, str(tmp_path / "empty"))
    lines = capsys.readouterr().err.splitlines()
    place = tmp_path / "data" / "MNIST" / "raw" / "train-images-idx3-ubyte.gz"
    assert f"  {place} (9.9 MB, MD5 f68b3c2dcbeaaa9fbdd348bbdeb94873)" in lines
    assert len(lines) == 5
    assert not (tmp_path / "data").exists()


def test_expected_numbers_that_cannot_be_read_are_named_before_anything_is_trained(tmp_path):
    (tmp_path / "expected.csv").write_text("a,b\n1,2\n")
    values = ["results_dir=elsewhere", f"expected={tmp_path / 'expected.csv'}"]
    with pytest.raises(UserError, match=r"config key expected: .* has no column dataset"):
        check_files(Plan(select("quick", [], values)), None)


def test_an_estimate_tells_finished_shipped_and_new_runs_apart(tmp_path, monkeypatch):
    """Before the images are there, a shipped run counts if all else is the same."""
    monkeypatch.chdir(tmp_path)
    values = ["datasets=[mnist]", "experiments=[table2]", "data_dir=data", f"shipped={tmp_path / 'shipped.parquet'}"]
    plan = Plan(select("paper", [], values))
    number = len(plan.runs)
    assert estimate(plan)[1:4] == [
        f"train     at most {number} runs",
        "reuse     0 runs",
        "download  11.6 MB in 4 files",
    ]
    (recipe,) = recipes_of(plan, plan.runs[0], {"images": "0" * 64, "labels": "1" * 64}, precision="fp32")
    history = pd.DataFrame({"epoch": [1], "accuracy": [0.5]})
    export([Finished.of(recipe, history, origin={})], cache_of(plan).shipped)
    assert estimate(plan) == [
        f"{number} runs in {len(plan.jobs)} training jobs, {len(plan.splits)} splits, 1 dataset",
        f"train     at most {number - 1} runs",
        "reuse     0 runs, and 1 shipped run if the images are those of the publishers",
        "download  11.6 MB in 4 files",
        estimate(plan)[4],
    ]


def test_a_server_is_asked_and_nothing_is_downloaded(served, tmp_path):
    folder, address = served
    (folder / "there").write_text("content")
    there, absent = (Archive(name, "0" * 32, (), 1) for name in ("there", "absent"))
    assert find_missing([there, absent], tmp_path / "data", address) == [absent]
    assert not (tmp_path / "data").exists()
