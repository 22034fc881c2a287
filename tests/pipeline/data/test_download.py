"""Downloads end whole and verified, or in one sentence with nothing half-written taken for whole."""

from __future__ import annotations

import gzip
import hashlib
import os
import signal
import subprocess
import sys

import pytest

from mdpu.errors import UserError
from mdpu.pipeline.data.download import Archive, fetch, find_missing
from mdpu.pipeline.files import REPOSITORY

CONTENT = bytes(range(256)) * 2000
MD5 = hashlib.md5(CONTENT).hexdigest()
PATH = "Some/raw/file.gz"
ARCHIVE = Archive(PATH, MD5, ("http://127.0.0.1:9/nobody-listens.gz",), len(CONTENT))

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture
def offered(mirror):
    file = mirror.folder / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    return mirror


def fetched(url, data_dir):
    """Return the content of the archive's file, fetched if need be."""
    (path,) = fetch([ARCHIVE], data_dir, url)
    return path.read_bytes()


def in_process(code, *arguments):
    """Start Python on `code`, with `fetch` and `ARCHIVE` in reach."""
    head = (
        "import sys; from pathlib import Path; from mdpu.pipeline.data.download import Archive, fetch\n"
        f"ARCHIVE = Archive({PATH!r}, {MD5!r}, (), {len(CONTENT)})\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", head + code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize("fault", ["", "no length", "negative"])
def test_a_file_is_fetched_once_and_then_taken_from_data_dir(offered, tmp_path, fault):
    offered.faults[PATH] = fault
    path = tmp_path / PATH
    assert fetch([ARCHIVE], tmp_path, offered.url) == {path: f"md5:{MD5}"}
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()  # users who share the folder can read it
    assert fetch([ARCHIVE], tmp_path, offered.url) == {path: f"md5:{MD5}"}
    assert offered.requests == [PATH]
    assert {file.name for file in path.parent.iterdir()} == {"file.gz", ".file.gz.lock"}


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("404", "HTTP 404"),
        ("503", "HTTP 503"),
        ("escapes", "HTTP 404 \\x1b[31mred"),
        ("hang up", "Remote end closed connection"),
        ("closes midway", f"not {MD5}"),
        ("stalls", "no byte for 0.3 s"),
        ("wrong bytes", f"not {MD5}"),
        ("half announced", f"not {MD5}"),
    ],
)
def test_trouble_ends_in_one_sentence_and_the_next_run_recovers(offered, tmp_path, fault, said):
    offered.faults[PATH] = fault
    with pytest.raises(UserError) as error:
        fetch([ARCHIVE], tmp_path, offered.url)
    sentence = str(error.value)
    assert said in sentence and sentence.isprintable()
    assert f"{offered.url}/{PATH}" in sentence
    assert sentence.endswith(f"missing: {tmp_path / PATH} (MD5 {MD5})")
    assert [file.name for file in (tmp_path / PATH).parent.iterdir()] == [".file.gz.lock"]
    offered.faults.clear()
    assert fetched(offered.url, tmp_path) == CONTENT


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_in_place_of_the_file_is_named(offered, tmp_path, make):
    (tmp_path / PATH).parent.mkdir(parents=True)
    make(tmp_path / PATH)
    with pytest.raises(UserError, match=r"file\.gz is no regular file; name another one"):
        fetch([ARCHIVE], tmp_path, offered.url)


def test_a_killed_download_leaves_nothing_that_counts(offered, tmp_path):
    offered.faults[PATH] = "stalls"
    child = in_process("fetch([ARCHIVE], Path(sys.argv[1]), sys.argv[2])", str(tmp_path), offered.url)
    assert offered.stalled.wait(30)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert not (tmp_path / PATH).exists()
    offered.faults.clear()
    assert fetched(offered.url, tmp_path) == CONTENT
    assert {file.name for file in (tmp_path / PATH).parent.iterdir()} == {"file.gz", ".file.gz.lock"}


def test_processes_that_want_one_file_at_the_same_time_fetch_it_once(offered, tmp_path):
    code = "(path,) = fetch([ARCHIVE], Path(sys.argv[1]), sys.argv[2]); print(len(path.read_bytes()))"
    children = [in_process(code, str(tmp_path), offered.url) for _ in range(3)]
    assert [child.communicate()[0].strip() for child in children] == [str(len(CONTENT))] * 3
    assert offered.requests == [PATH]


def test_a_full_disk_ends_in_one_sentence_and_the_next_run_recovers(offered, tmp_path):
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "from mdpu.errors import UserError\n"
        "try: fetch([ARCHIVE], Path(sys.argv[1]), sys.argv[2])\n"
        "except UserError as error: print(error)\n"
    )
    said, _ = in_process(code, str(tmp_path), offered.url).communicate()
    assert "could not be written (File too large); mend that and run again" in said
    assert not (tmp_path / PATH).exists()
    assert fetched(offered.url, tmp_path) == CONTENT


def test_the_publishers_addresses_are_tried_in_order(offered, tmp_path):
    addresses = (f"{offered.url}/gone", "http://127.0.0.1:9/refused", f"{offered.url}/{PATH}")
    fetch([Archive(PATH, MD5, addresses, len(CONTENT))], tmp_path)
    assert offered.requests == ["gone", PATH]


@pytest.mark.parametrize("kind", ["server", "folder"])
def test_a_mirror_is_asked_instead_of_the_publisher_for_what_it_has(offered, tmp_path, kind):
    mirror = offered.url + "/" if kind == "server" else str(offered.folder)
    absent = Archive("Some/raw/absent", MD5, (f"{offered.url}/{PATH}",), 1)
    with pytest.raises(
        UserError, match="HTTP 404" if kind == "server" else "no such file with the right content"
    ) as error:
        fetch([absent, ARCHIVE], tmp_path, mirror)
    assert str(error.value).endswith(f"missing: {tmp_path / absent.path} (MD5 {MD5})")
    assert (tmp_path / PATH).exists() == (kind == "server")  # what a folder has is not copied
    assert find_missing([absent, ARCHIVE], tmp_path / "elsewhere", str(offered.folder)) == [absent]


def test_what_a_folder_holds_is_used_where_it_lies_if_its_content_is_right(offered, tmp_path):
    (tmp_path / PATH).parent.mkdir(parents=True)
    (tmp_path / PATH).write_bytes(CONTENT[:100])  # the one in data_dir is broken
    assert fetch([ARCHIVE], tmp_path, str(offered.folder)) == {offered.folder / PATH: f"md5:{MD5}"}
    (offered.folder / PATH).write_bytes(b"spoilt")
    with pytest.raises(UserError, match="no such file with the right content"):
        fetch([ARCHIVE], tmp_path, str(offered.folder))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_unpacked_files_serve_if_all_of_them_are_there_and_right(tmp_path, suffix):
    contents = {"a": b"first", "b": b"second"}
    unpacked = tuple((name, hashlib.sha256(content).hexdigest()) for name, content in contents.items())
    archive = Archive(PATH, MD5, (), len(CONTENT), unpacked)
    for name, content in contents.items():
        assert archive.find(tmp_path) == {}
        (tmp_path / f"{name}{suffix}").write_bytes(gzip.compress(content) if suffix else content)
    expected = {tmp_path / f"{name}{suffix}": f"sha256:{sha256}" for name, sha256 in unpacked}
    assert fetch([archive], tmp_path) == expected
    (tmp_path / f"b{suffix}").write_bytes(b"\x1f\x8bno gzip")
    assert archive.find(tmp_path) == {}
