"""Every missing file is named in one message before any job starts."""

from __future__ import annotations

import http.server
import socket
import threading
from functools import partial

import pytest

from mdpu.errors import UserError
from mdpu.pipeline.config import select
from mdpu.pipeline.console.preflight import check_files, raw_files, size_of
from mdpu.pipeline.data.download import Archive, find_missing
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
    with pytest.raises(UserError, match=r"^4 files are missing and the mirror .* does not give them, so nothing was"):
        check_files(plan, str(tmp_path / "empty"))
    lines = capsys.readouterr().err.splitlines()
    place = tmp_path / "data" / "MNIST" / "raw" / "train-images-idx3-ubyte.gz"
    assert f"  {place} (9.9 MB, MD5 f68b3c2dcbeaaa9fbdd348bbdeb94873)" in lines
    assert len(lines) == 5
    assert not (tmp_path / "data").exists()


def test_images_that_are_made_need_no_files(plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan.layout.images("mnist").parent.mkdir(parents=True)
    plan.layout.images("mnist").touch()
    assert raw_files(plan) == []
    check_files(plan, None)


def test_the_quick_experiment_needs_no_files():
    assert raw_files(Plan(select("quick", [], ["results_dir=elsewhere"]))) == []


def test_expected_numbers_that_cannot_be_read_are_named_before_anything_is_trained(tmp_path):
    (tmp_path / "expected.csv").write_text("a,b\n1,2\n")
    values = ["results_dir=elsewhere", f"expected={tmp_path / 'expected.csv'}"]
    with pytest.raises(UserError, match=r"config key expected: .* has no column dataset"):
        check_files(Plan(select("quick", [], values)), None)


def test_a_server_is_asked_and_nothing_is_downloaded(served, tmp_path):
    folder, address = served
    (folder / "there").write_text("content")
    there, absent = (Archive(name, "0" * 32, ()) for name in ("there", "absent"))
    assert find_missing([there, absent], tmp_path / "data", address) == [absent]
    assert not (tmp_path / "data").exists()


def test_a_server_that_does_not_answer_gives_nothing(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    archive = Archive("file", "0" * 32, (f"{address}/file",))
    assert find_missing([archive], tmp_path) == [archive]


@pytest.mark.parametrize(
    ("size", "said"), [(9_912_422, "9.9 MB"), (28_881, "0.03 MB"), (561_753_746, "561.8 MB"), (2 * 10**9, "2.0 GB")]
)
def test_sizes_are_in_words(size, said):
    assert size_of(size) == said
