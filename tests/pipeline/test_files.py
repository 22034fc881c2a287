"""Files are whole or absent, and a damaged one is named."""

import os
import platform
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mdpu.errors import UserError
from mdpu.files import atomic
from mdpu.pipeline import files

TABLE = pd.DataFrame(
    {"prior": ["0.4", "0.5"] * 50, "n": np.arange(100), "words": ['a, "b"', "c"] * 50}
)
ARRAY = np.arange(1000)
KINDS = {  # how each kind of file is written, and how it is read and found to be what was written
    "x.json": (
        lambda path: files.write_json(path, {"a": "é"}),
        lambda path: files.read_json(path) == {"a": "é"},
    ),
    "x.csv": (
        lambda path: files.write_csv(TABLE, path),
        lambda path: files.read_csv(path).equals(TABLE),
    ),
    "x.parquet": (
        lambda path: files.write_table(TABLE, path),
        lambda path: files.read_table(path).equals(TABLE),
    ),
    "x.npz": (
        lambda path: files.save_npz(path, a=ARRAY),
        lambda path: np.array_equal(files.load_npz(path, "a")["a"], ARRAY),
    ),
}


def test_names_stay_text_and_empty_fields_alone_are_missing(tmp_path):
    names = ["2024", "nan", "null"]
    table = pd.DataFrame({"dataset": names, "variant": names, "mean": [1.0, np.nan, 3.0]})
    path = tmp_path / "table.csv"
    files.write_csv(table, path)
    pd.testing.assert_frame_equal(files.read_csv(path), table)


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with atomic(path) as temporary:
        temporary.write_text("half")
        assert not path.exists()
        temporary.write_text("whole")
    assert path.read_text() == "whole"
    with pytest.raises(RuntimeError), atomic(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "file[1].txt"  # with characters that a pattern would take for its own
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom mdpu.files import atomic\n"
        "with atomic(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half')\n    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)]).returncode == -9
    assert len(list(tmp_path.iterdir())) == 1 and not path.exists()
    # Of a process that is alive, and of another machine, whose processes are not known.
    kept = [
        tmp_path / f".file[1].{node}-{os.getppid()}.txt" for node in (platform.node(), "elsewhere")
    ]
    for other in kept:
        other.touch()
    files.write_text(path, "new")
    assert set(tmp_path.iterdir()) == {path, *kept}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_is_neither_written_nor_read(tmp_path, make):
    make(tmp_path / "x")
    for use in (lambda path: files.write_text(path, ""), files.read_json, files.sha256):
        with pytest.raises(UserError, match=str(tmp_path / "x")):
            use(tmp_path / "x")


@pytest.mark.parametrize("name", KINDS)
def test_a_file_is_read_as_written_and_one_that_is_missing_or_damaged_is_named(tmp_path, name):
    (write, is_read), path = KINDS[name], tmp_path / name
    with pytest.raises(UserError, match=name):
        is_read(path)
    write(path)
    assert is_read(path)
    assert name != "x.parquet" or files.read_table(path, ["n", "prior", "another"]).equals(
        TABLE[["prior", "n"]]
    )
    whole = path.read_bytes()
    for content in (b"", b'\xff"{', whole[: len(whole) // 2] if name != "x.csv" else b'"'):
        path.write_bytes(content)
        with pytest.raises(UserError, match=name):
            is_read(path)


@pytest.mark.parametrize("name", ["x.npz", "x.parquet"])
def test_no_turned_bit_among_values_is_read(tmp_path, name):
    path = tmp_path / name
    values = np.random.default_rng(0).random(10_000)
    files.save_npz(path, a=values) if name == "x.npz" else files.write_table(
        pd.DataFrame({"a": values}), path
    )
    whole = path.read_bytes()
    for place in range(1000, 80_000, 13_000):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(UserError, match=name):
            files.load_npz(path, "a") if name == "x.npz" else files.read_table(path)


def test_a_pickle_within_an_npz_is_never_loaded(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.array([{}], dtype=object))
    with pytest.raises(UserError, match="allow_pickle"):
        files.load_npz(tmp_path / "x.npz", "a")


def test_digests_are_the_standards(tmp_path):
    files.write_text(tmp_path / "x", "abc")  # FIPS 180-2
    assert (
        files.sha256(tmp_path / "x")
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
    assert (
        files.digest({"b": 1, "a": 2})
        == files.digest({"a": 2, "b": 1})
        != files.digest({"a": 2, "b": "1"})
    )
