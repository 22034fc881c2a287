"""Downloads end whole and verified, or in an error with nothing half-written taken for whole."""

import gzip
import hashlib
import resource
import threading

import pytest

from mdpu.errors import UserError
from mdpu.pipeline.data import download
from mdpu.pipeline.data.download import Archive, fetch

CONTENT = bytes(range(256)) * 2000
MD5 = hashlib.md5(CONTENT).hexdigest()
PATH = "Some/raw/file.gz"
ARCHIVE = Archive(PATH, MD5, ("http://127.0.0.1:9/nobody-listens.gz",), len(CONTENT))


@pytest.fixture
def offered(mirror, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.3)
    file = mirror.folder / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    return mirror


@pytest.mark.parametrize("before", [None, b"", CONTENT[:1000], CONTENT[:-1] + b"x"])
def test_a_file_is_fetched_unless_data_dir_has_it_whole(offered, tmp_path, before):
    path = tmp_path / PATH
    if before is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(before)
    assert fetch([ARCHIVE], tmp_path, offered.url) == [path]
    assert path.read_bytes() == CONTENT
    assert fetch([ARCHIVE], tmp_path, offered.url) == [path]
    assert offered.requests == [PATH]
    assert {file.name for file in path.parent.iterdir()} == {"file.gz", ".file.gz.lock"}


FAULTS = [
    "error",
    "closes midway",
    "stalls",
    "wrong bytes",
    "a web page",
    "never ends",
    "full disk",
]


@pytest.mark.parametrize("fault", FAULTS)
def test_trouble_names_the_file_and_the_next_run_recovers(offered, tmp_path, fault):
    offered.faults[PATH] = fault
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if fault == "full disk":
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(UserError, match=str(tmp_path / PATH)) as error:
            fetch([ARCHIVE], tmp_path, offered.url)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(error.value).isprintable()
    assert [file.name for file in (tmp_path / PATH).parent.iterdir()] == [".file.gz.lock"]
    offered.faults.clear()
    assert fetch([ARCHIVE], tmp_path, offered.url)[0].read_bytes() == CONTENT


def test_several_that_want_one_file_at_the_same_time_fetch_it_once(offered, tmp_path):
    threads = [
        threading.Thread(target=fetch, args=([ARCHIVE], tmp_path, offered.url)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert offered.requests == [PATH]
    assert (tmp_path / PATH).read_bytes() == CONTENT


def test_the_publishers_addresses_are_tried_in_order(offered, tmp_path):
    addresses = (f"{offered.url}/gone", "http://127.0.0.1:9/refused", f"{offered.url}/{PATH}")
    fetch([Archive(PATH, MD5, addresses, len(CONTENT))], tmp_path)
    assert offered.requests == ["gone", PATH]


@pytest.mark.parametrize("kind", ["server", "folder"])
def test_a_mirror_is_asked_instead_of_the_publisher_for_what_it_has(offered, tmp_path, kind):
    place = offered.url + "/" if kind == "server" else str(offered.folder)
    absent = Archive("Some/raw/absent", MD5, (f"{offered.url}/{PATH}",), 1)
    with pytest.raises(UserError, match=absent.path):
        fetch([absent, ARCHIVE], tmp_path, place)
    assert (tmp_path / PATH).exists() == (kind == "server")  # what a folder has is not copied
    if kind == "folder":
        assert fetch([ARCHIVE], tmp_path, place) == [offered.folder / PATH]
        with pytest.raises(UserError, match="mirror"):
            fetch([ARCHIVE], tmp_path, str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\n<!doctype HTML>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
        (b"", "0 bytes"),
    ],
)
def test_what_lies_in_the_place_of_a_file_is_said(offered, tmp_path, content, words):
    (offered.folder / PATH).write_bytes(content)
    with pytest.raises(UserError, match=rf"{offered.folder / PATH}[^;]*{words}"):
        fetch([ARCHIVE], tmp_path, str(offered.folder))


@pytest.mark.parametrize(
    "name", ["raw/t-idx3-ubyte", "raw/t.idx3-ubyte", "raw/t-idx3-ubyte/t-idx3-ubyte"]
)
def test_an_unpacked_file_serves_under_the_names_of_unpackers(tmp_path, name):
    sha256 = hashlib.sha256(b"images").hexdigest()
    archives = [
        Archive(f"raw/{one}-idx3-ubyte.gz", MD5, (), 7, ((f"raw/{one}-idx3-ubyte", sha256),))
        for one in "tu"
    ]
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"images")
    assert fetch(archives[:1], tmp_path) == [path]
    path.write_bytes(b"others")
    with pytest.raises(UserError, match=f"{path} lies there"):
        fetch(archives[:1], tmp_path)
    path.unlink()
    with pytest.raises(
        UserError, match=r"t-idx3-ubyte\.gz, raw/u-idx3-ubyte\.gz could not be fetched"
    ):
        fetch(archives, tmp_path)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_unpacked_files_serve_if_all_of_them_are_there_and_right(tmp_path, suffix):
    contents = {"a": b"first", "b": b"second"}
    unpacked = tuple(
        (name, hashlib.sha256(content).hexdigest()) for name, content in contents.items()
    )
    archive = Archive(PATH, MD5, (), len(CONTENT), unpacked)
    for name, content in contents.items():
        assert archive.find(tmp_path) == []
        (tmp_path / f"{name}{suffix}").write_bytes(gzip.compress(content) if suffix else content)
    assert fetch([archive], tmp_path) == [tmp_path / f"{name}{suffix}" for name in contents]
    (tmp_path / f"b{suffix}").write_bytes(b"\x1f\x8bno gzip")
    assert archive.find(tmp_path) == []
