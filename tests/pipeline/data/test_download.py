"""Downloads end whole and verified, or in one sentence with nothing half-written taken for whole."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from publishers import Mirror, serving

from mdpu.errors import UserError
from mdpu.pipeline.data.download import Archive, fetch
from mdpu.pipeline.files import REPOSITORY

CONTENT = bytes(range(256)) * 2000
MD5 = hashlib.md5(CONTENT).hexdigest()
ARCHIVE = Archive("Some/raw/file.gz", MD5, ("http://127.0.0.1:9/nobody-listens.gz",))

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture
def offered(mirror: Mirror) -> Mirror:
    file = mirror.folder / ARCHIVE.path
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    return mirror


def in_process(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start Python on `code`, with `fetch` and `ARCHIVE` in reach."""
    head = (
        "import sys; from pathlib import Path; from mdpu.pipeline.data.download import Archive, fetch\n"
        f"ARCHIVE = Archive({ARCHIVE.path!r}, {MD5!r}, ())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", head + code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_a_file_is_fetched_once_and_then_taken_from_data_dir(offered: Mirror, tmp_path: Path) -> None:
    (path,) = fetch([ARCHIVE], tmp_path, offered.url)
    assert path == tmp_path / ARCHIVE.path
    assert path.read_bytes() == CONTENT
    assert fetch([ARCHIVE], tmp_path, offered.url) == [path]
    assert len(offered.requests) == 1
    assert [file.name for file in path.parent.iterdir() if file.suffix == ".part"] == []


@pytest.mark.parametrize("fault", ["500", "503", "429", "hang up", "closes midway", "stalls", "no length", "no ranges"])
def test_passing_trouble_is_overcome(offered: Mirror, tmp_path: Path, fault: str) -> None:
    offered.faults[ARCHIVE.path] = [fault]
    (path,) = fetch([ARCHIVE], tmp_path, offered.url)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("fault", ["closes midway", "stalls"])
def test_an_interrupted_download_goes_on_where_it_stopped(offered: Mirror, tmp_path: Path, fault: str) -> None:
    offered.faults[ARCHIVE.path] = [fault]
    fetch([ARCHIVE], tmp_path, offered.url)
    assert offered.requests == [(ARCHIVE.path, None), (ARCHIVE.path, f"bytes={len(CONTENT) // 2}-")]


@pytest.mark.parametrize(
    ("fault", "said", "requests"),
    [
        ("404", "HTTP 404", 1),
        ("403", "HTTP 403", 1),
        ("500", "HTTP 500", 3),
        ("hang up", "after 3 attempts", 3),
        ("closes midway", "closed after", 3),
        ("stalls", "no byte for 0.3 s", 3),
        ("wrong bytes", "has MD5", 1),
        ("half announced", "has MD5", 1),
    ],
)
def test_lasting_trouble_ends_in_one_sentence_and_the_next_run_recovers(
    offered: Mirror, tmp_path: Path, fault: str, said: str, requests: int
) -> None:
    offered.faults[ARCHIVE.path] = [fault] * 3
    with pytest.raises(UserError) as error:
        fetch([ARCHIVE], tmp_path, offered.url)
    sentence = str(error.value)
    assert said in sentence
    assert f"{offered.url}/{ARCHIVE.path}" in sentence
    assert f"{tmp_path / ARCHIVE.path} (MD5 {MD5})" in sentence
    assert "\n" not in sentence
    assert len(offered.requests) == requests
    assert not (tmp_path / ARCHIVE.path).exists()
    offered.faults.clear()
    assert fetch([ARCHIVE], tmp_path, offered.url)[0].read_bytes() == CONTENT


@given(
    content=st.binary(max_size=3000),
    faults=st.lists(st.sampled_from(["500", "hang up", "closes midway", "no length", "no ranges"]), max_size=2),
)
@settings(max_examples=40, deadline=None)
def test_any_two_passing_faults_leave_the_right_bytes(content: bytes, faults: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder, "served")) as mirror:
        mirror.folder.mkdir()
        (mirror.folder / "file").write_bytes(content)
        mirror.faults["file"] = list(faults)
        archive = Archive("file", hashlib.md5(content).hexdigest(), (f"{mirror.url}/file",))
        assert fetch([archive], Path(folder, "data"))[0].read_bytes() == content


def test_bytes_that_do_not_continue_an_earlier_part_are_fetched_anew(offered: Mirror, tmp_path: Path) -> None:
    part = tmp_path / "Some/raw/.file.gz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"of another edition")
    assert fetch([ARCHIVE], tmp_path, offered.url)[0].read_bytes() == CONTENT
    assert [wanted for _, wanted in offered.requests] == ["bytes=18-", None]


@pytest.mark.parametrize("extra", [b"", b"and more than there is"])
def test_a_part_as_long_as_the_file_is_taken_or_thrown_away(offered: Mirror, tmp_path: Path, extra: bytes) -> None:
    part = tmp_path / "Some/raw/.file.gz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT + extra)
    assert fetch([ARCHIVE], tmp_path, offered.url)[0].read_bytes() == CONTENT
    assert len(offered.requests) == (2 if extra else 0)


def test_a_killed_download_is_resumed_by_the_next_run(offered: Mirror, tmp_path: Path) -> None:
    offered.faults[ARCHIVE.path] = ["stalls"]
    child = in_process("fetch([ARCHIVE], Path(sys.argv[1]), sys.argv[2])", str(tmp_path), offered.url)
    assert offered.stalled.wait(30)
    part = tmp_path / "Some/raw/.file.gz.part"
    deadline = time.monotonic() + 30
    while not part.exists() and time.monotonic() < deadline:  # the server stalls before the client has opened it
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert not (tmp_path / ARCHIVE.path).exists()
    arrived = part.stat().st_size
    assert fetch([ARCHIVE], tmp_path, offered.url)[0].read_bytes() == CONTENT
    assert offered.requests[-1][1] == (f"bytes={arrived}-" if arrived else None)


def test_processes_that_want_one_file_at_the_same_time_fetch_it_once(offered: Mirror, tmp_path: Path) -> None:
    code = "print(len(fetch([ARCHIVE], Path(sys.argv[1]), sys.argv[2])[0].read_bytes()))"
    children = [in_process(code, str(tmp_path), offered.url) for _ in range(3)]
    assert [child.communicate()[0].strip() for child in children] == [str(len(CONTENT))] * 3
    assert len(offered.requests) == 1


def test_a_full_disk_ends_in_one_sentence_and_the_next_run_recovers(offered: Mirror, tmp_path: Path) -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "from mdpu.errors import UserError\n"
        "try: fetch([ARCHIVE], Path(sys.argv[1]), sys.argv[2])\n"
        "except UserError as error: print(error)\n"
    )
    said, _ = in_process(code, str(tmp_path), offered.url).communicate()
    assert "could not be written (File too large); make room" in said
    assert not (tmp_path / ARCHIVE.path).exists()
    assert fetch([ARCHIVE], tmp_path, offered.url)[0].read_bytes() == CONTENT


def test_the_publishers_addresses_are_tried_in_order(offered: Mirror, tmp_path: Path) -> None:
    addresses = (f"{offered.url}/gone", "http://127.0.0.1:9/refused", f"{offered.url}/{ARCHIVE.path}")
    fetch([Archive(ARCHIVE.path, MD5, addresses)], tmp_path)
    assert [path for path, _ in offered.requests] == ["gone", ARCHIVE.path]


def test_a_mirror_is_asked_instead_of_the_publisher(offered: Mirror, tmp_path: Path) -> None:
    archive = Archive("Some/raw/missing", MD5, (f"{offered.url}/{ARCHIVE.path}",))
    with pytest.raises(UserError, match="HTTP 404"):
        fetch([archive], tmp_path, offered.url + "/")
    assert [path for path, _ in offered.requests] == ["Some/raw/missing"]


def test_a_folder_is_a_mirror_and_its_checksums_are_verified(offered: Mirror, tmp_path: Path) -> None:
    assert fetch([ARCHIVE], tmp_path, str(offered.folder))[0].read_bytes() == CONTENT
    (offered.folder / ARCHIVE.path).write_bytes(b"spoilt")
    with pytest.raises(UserError, match=f"its MD5 is {hashlib.md5(b'spoilt').hexdigest()}, not {MD5}"):
        fetch([ARCHIVE], tmp_path / "other", str(offered.folder))
    (offered.folder / ARCHIVE.path).unlink()
    with pytest.raises(UserError, match="there is no such file"):
        fetch([ARCHIVE], tmp_path / "other", str(offered.folder))
    assert not (tmp_path / "other" / ARCHIVE.path).exists()


def test_a_mirror_that_is_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither an http"):
        fetch([ARCHIVE], tmp_path, str(tmp_path / "nowhere"))


def test_a_spoilt_file_in_data_dir_is_replaced(offered: Mirror, tmp_path: Path) -> None:
    path = tmp_path / ARCHIVE.path
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT[:100])
    assert fetch([ARCHIVE], tmp_path, offered.url)[0].read_bytes() == CONTENT


def test_without_a_network_every_missing_file_is_named_with_its_place_and_checksum(tmp_path: Path) -> None:
    there = Archive("there", hashlib.md5(b"x").hexdigest(), ())
    (tmp_path / "there").write_bytes(b"x")
    absent = [Archive(f"Some/{k}", f"{k}" * 32, ("http://127.0.0.1:9/",)) for k in (1, 2)]
    with pytest.raises(UserError) as error:
        fetch([there, *absent], tmp_path)
    missing = str(error.value).partition("missing: ")[2]
    assert missing == "; ".join(f"{tmp_path / archive.path} (MD5 {archive.md5})" for archive in absent)


def test_a_data_dir_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UserError, match=r"config key data_dir: .* cannot be written to"):
        fetch([ARCHIVE], tmp_path / "file")
