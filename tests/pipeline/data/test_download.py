"""Downloads end whole and verified, or in one sentence with nothing half-written taken for whole."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys

import pytest

from mdpu.errors import UserError
from mdpu.pipeline.data import download
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


def in_process(code, *arguments):
    """Start Python on `code`, with `fetch` and `ARCHIVE` in reach."""
    head = (
        "import sys; from pathlib import Path; from mdpu.pipeline.data.download import Archive, fetch\n"
        f"ARCHIVE = Archive({PATH!r}, {MD5!r}, ())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", head + code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize("fault", ["", "no length", "negative"])
def test_a_file_is_fetched_once_and_then_taken_from_data_dir(offered, tmp_path, fault):
    offered.faults[PATH] = fault
    (path,) = fetch([ARCHIVE], tmp_path, offered.url)
    assert path == tmp_path / PATH
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()  # users who share the folder can read it
    assert fetch([ARCHIVE], tmp_path, offered.url) == [path]
    assert offered.requests == [PATH]
    assert [file.name for file in path.parent.iterdir() if file.suffix == ".part"] == []


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
        ("closes midway", f"closed after {len(CONTENT) // 2} of {len(CONTENT)} bytes"),
        ("stalls", "no byte for 0.3 s"),
        ("trickles", "less than 30000 bytes came in 0.3 s"),
        ("endless", f"it sends more than {len(CONTENT)} bytes"),
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
    assert fetch([ARCHIVE], tmp_path, offered.url)[0].read_bytes() == CONTENT


def test_a_planted_link_is_not_followed(offered, tmp_path, monkeypatch):
    """Whatever name another user guesses for the file while it is written."""
    precious, folder = tmp_path / "precious", (tmp_path / PATH).parent
    precious.write_text("mine")
    folder.mkdir(parents=True)
    (folder / ".file.gz.00.part").symlink_to(precious)
    (folder / "file.gz").symlink_to(precious)
    fetch([ARCHIVE], tmp_path, offered.url)
    assert precious.read_text() == "mine"
    assert (folder / "file.gz").read_bytes() == CONTENT and not (folder / "file.gz").is_symlink()
    (folder / "file.gz").unlink()

    def plant(_):
        (folder / ".file.gz.guessed.part").symlink_to(precious)
        return "guessed"

    monkeypatch.setattr(download.secrets, "token_hex", plant)
    with pytest.raises(UserError, match=r"could not be read or written .File exists"):
        fetch([ARCHIVE], tmp_path, offered.url)
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_in_place_of_the_file_is_named(offered, tmp_path, make):
    (tmp_path / PATH).parent.mkdir(parents=True)
    make(tmp_path / PATH)
    with pytest.raises(UserError, match=r"file\.gz is no file, but a folder, a pipe or a device; remove it"):
        fetch([ARCHIVE], tmp_path, offered.url)


def test_a_killed_download_leaves_nothing_that_counts(offered, tmp_path):
    offered.faults[PATH] = "stalls"
    child = in_process("fetch([ARCHIVE], Path(sys.argv[1]), sys.argv[2])", str(tmp_path), offered.url)
    assert offered.stalled.wait(30)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert not (tmp_path / PATH).exists()
    offered.faults.clear()
    assert fetch([ARCHIVE], tmp_path, offered.url)[0].read_bytes() == CONTENT
    assert {file.name for file in (tmp_path / PATH).parent.iterdir()} == {"file.gz", ".file.gz.lock"}


def test_processes_that_want_one_file_at_the_same_time_fetch_it_once(offered, tmp_path):
    code = "print(len(fetch([ARCHIVE], Path(sys.argv[1]), sys.argv[2])[0].read_bytes()))"
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
    assert "could not be read or written (File too large); make room" in said
    assert not (tmp_path / PATH).exists()
    assert fetch([ARCHIVE], tmp_path, offered.url)[0].read_bytes() == CONTENT


def test_the_publishers_addresses_are_tried_in_order(offered, tmp_path):
    addresses = (f"{offered.url}/gone", "http://127.0.0.1:9/refused", f"{offered.url}/{PATH}")
    fetch([Archive(PATH, MD5, addresses)], tmp_path)
    assert offered.requests == ["gone", PATH]


@pytest.mark.parametrize("kind", ["server", "folder"])
def test_a_mirror_is_asked_instead_of_the_publisher_for_what_it_has(offered, tmp_path, kind):
    mirror = offered.url + "/" if kind == "server" else str(offered.folder)
    absent = Archive("Some/raw/absent", MD5, (f"{offered.url}/{PATH}",))
    with pytest.raises(UserError, match="HTTP 404" if kind == "server" else "there is no such file") as error:
        fetch([absent, ARCHIVE], tmp_path, mirror)
    assert str(error.value).endswith(f"missing: {tmp_path / absent.path} (MD5 {MD5})")
    assert (tmp_path / PATH).read_bytes() == CONTENT
    assert find_missing([absent, ARCHIVE], tmp_path / "elsewhere", str(offered.folder)) == [absent]


def test_the_checksums_of_a_folder_are_verified(offered, tmp_path):
    (offered.folder / PATH).write_bytes(b"spoilt")
    with pytest.raises(UserError, match=f"its MD5 is {hashlib.md5(b'spoilt').hexdigest()}, not {MD5}"):
        fetch([ARCHIVE], tmp_path, str(offered.folder))
    assert not (tmp_path / PATH).exists()
    (tmp_path / PATH).write_bytes(CONTENT[:100])  # one in data_dir is replaced
    (offered.folder / PATH).write_bytes(CONTENT)
    assert fetch([ARCHIVE], tmp_path, str(offered.folder))[0].read_bytes() == CONTENT
