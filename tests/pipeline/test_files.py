"""Files are whole or absent, and a broken one is named."""

from __future__ import annotations

import errno
import os
import platform
import signal
import subprocess
import sys
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from mdpu.errors import UserError
from mdpu.pipeline.data.images import ImageSet
from mdpu.pipeline.data.labels import binarize
from mdpu.pipeline.files import (
    check,
    load_npz,
    note,
    read_csv,
    read_json,
    read_seal,
    read_table,
    recording,
    replacing,
    save_npz,
    seal_path,
    write_csv,
    write_table,
    write_text,
)

# -- writing --------------------------------------------------------------------------------------


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with replacing(path) as temporary:
        temporary.write_text("half")
        assert not path.exists()
        temporary.write_text("whole")
    assert path.read_text() == "whole"
    assert set(path.parent.iterdir()) == {path, seal_path(path)}


def test_an_exception_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_sigkill_leaves_the_old_file_and_the_next_writer_cleans_up(tmp_path):
    path = tmp_path / "file[1].txt"  # with characters that a pattern would take for its own
    path.write_text("old")
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom mdpu.pipeline.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half')\n    print('written', flush=True)\n    time.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "written\n"
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    assert path.read_text() == "old"
    # What is left is hidden, and says whose it was.
    orphan = tmp_path / f".file[1].{platform.node()}-{child.pid}.txt"
    assert {other for other in tmp_path.iterdir() if other != path} == {orphan}
    kept = {
        tmp_path / f".file[1].{platform.node()}-{os.getppid()}.txt",  # of a process that is alive
        tmp_path / f".file[1].elsewhere-{child.pid}.txt",  # of another machine, whose processes are not known
        tmp_path / f".file[1].{platform.node()}-note.txt",
        tmp_path / f".other.{platform.node()}-{child.pid}.txt",
    }
    for other in kept:
        other.touch()
    write_text(path, "new")
    assert set(tmp_path.iterdir()) == {path, seal_path(path), *kept}


# -- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 1, 50, 0.5, 0.99, -1])
def test_a_truncated_npz_is_named(tmp_path, keep):
    path = tmp_path / "x.npz"
    save_npz(path, a=np.arange(1000), b=np.arange(1000))
    seal_path(path).unlink()  # of a file without one, its format tells
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(UserError, match=r"x\.npz is not a whole npz file .*delete it and run again") as error:
        load_npz(path, "a", "b")
    assert "\n" not in str(error.value)


def test_a_pickle_within_an_npz_is_never_loaded(tmp_path):
    ran = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(ran),))

    np.savez(tmp_path / "x.npz", a=np.array([Trap()], dtype=object))
    with pytest.raises(UserError, match=r"is not a whole npz file .*allow_pickle"):
        load_npz(tmp_path / "x.npz", "a")
    assert not ran.exists()


@pytest.mark.parametrize(
    ("read", "call"),
    [
        (read_json, "json.loads"),
        (read_table, "pandas.read_parquet"),
        (read_csv, "pandas.read_csv"),
        (load_npz, "numpy.load"),
    ],
)
def test_a_failing_disk_is_not_taken_for_a_broken_file_nor_is_missing_memory(tmp_path, monkeypatch, read, call):
    path = tmp_path / "x"
    path.write_text("{}")
    monkeypatch.setattr(call, mock.Mock(side_effect=OSError(errno.EIO, "Input/output error")))
    with pytest.raises(UserError, match=r"x could not be read \(Input/output error\); mend that and run again"):
        read(path)
    monkeypatch.setattr(call, mock.Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        read(path)


@pytest.mark.parametrize(("read", "name"), [(read_json, "x.json"), (read_table, "x.parquet"), (read_csv, "x.csv")])
def test_other_files_that_are_missing_or_broken_are_named(tmp_path, read, name):
    with pytest.raises(UserError, match=rf"{name} does not exist; run the rule that makes it"):
        read(tmp_path / name)
    for content in (b"", b'\xff"{'):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=rf"{name} is not .*; delete it and run again") as error:
            read(tmp_path / name)
        assert "\n" not in str(error.value)


def test_a_csv_is_read_as_it_was_written(tmp_path):
    table = pd.DataFrame({"prior": ["0.4", "0.5"], "n": [1, 2], "x": [1 / 3, None], "words": ['a, "b"', "c"]})
    write_csv(table, tmp_path / "a.csv")
    found = read_csv(tmp_path / "a.csv")
    assert found.drop(columns="x").equals(table.drop(columns="x"))
    assert found["x"].isna().tolist() == [False, True]
    assert found["x"][0] == pytest.approx(1 / 3, rel=1e-9)


def test_a_part_of_a_table_is_read(tmp_path):
    table = pd.DataFrame({"method": ["ure", "relu", "abs"], "seed": [1, 2, 1], "risk": [0.1, 0.2, 0.3]})
    write_table(table, tmp_path / "x.parquet")
    some = read_table(tmp_path / "x.parquet", ["risk", "method", "another"], {"method": {"abs", "relu"}, "seed": {1}})
    assert some.to_dict("list") == {"method": ["abs"], "risk": [0.3]}


# -- digests and provenance -----------------------------------------------------------------------


def test_a_seal_says_what_went_in_and_what_worked(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"abc")
    with recording(command="split"):
        check(path)
        note(device="cpu")
        write_text(tmp_path / "a", "made")
    seal = read_seal(tmp_path / "a")
    # The digest of "abc" is the standard's own example, FIPS 180-2.
    assert seal.inputs == {str(path): "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
    assert (seal.made["command"], seal.made["device"]) == ("split", "cpu")
    assert {"commit", "python", "machine"} <= set(seal.made)
    assert {"numpy", "torch"} <= set(seal.made["packages"])


# -- images and labels ----------------------------------------------------------------------------


def images(**changes):
    arrays = {
        "train_images": np.zeros((4, 2, 2), np.uint8),
        "train_labels": np.array([0, 1, 2, 1]),
        "test_images": np.zeros((3, 2, 2), np.uint8),
        "test_labels": np.array([0, 1, 2]),
    }
    return ImageSet(**{**arrays, **changes}, classes=["cat", "dog", "eel"], origin="made here", licence="none")


def test_sides_become_signs():
    found = binarize(images(), ["cat"], ["dog"], ["eel"])
    assert {part: signs.tolist() for part, signs in found.items()} == {"train": [1, -1, 0, -1], "test": [1, -1, 0]}
    assert all(signs.dtype == np.int8 for signs in found.values())


@pytest.mark.parametrize(
    ("sides", "sentence"),
    [
        ((["cat"], ["dog"]), "here: class eel is on no side; list it as positive, negative or dropped"),
        ((["cat", "eel"], ["dog", "eel"]), "here: class 'eel' is listed twice; give it one side"),
        ((["cat"], ["dog"], ["eel", "cat"]), "here: class 'cat' is listed twice"),
        ((["cow"], ["dog"]), r"here\.positive: the source has no class 'cow'; it has cat, dog, eel"),
        ((["cat", "dog", "eel"], []), "here: the train images hold no negative one; both sides are needed"),
    ],
)
def test_sides_that_contradict_the_classes_are_refused(sides, sentence):
    with pytest.raises(UserError, match=sentence):
        binarize(images(), *sides, where="here")
