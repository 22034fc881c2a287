"""A file that is not what was written is noticed, whatever was done to it; an edit on purpose can be kept."""

from __future__ import annotations

import errno
import os
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpu.errors import UserError
from mdpu.pipeline.files import (
    Seal,
    accept,
    check,
    load_npz,
    read_csv,
    read_json,
    read_seal,
    read_table,
    recording,
    remove,
    save_npz,
    seal_path,
    sha256,
    write_csv,
    write_json,
    write_table,
    write_text,
)

TABLE = pd.DataFrame({"seed": range(50), "accuracy": np.linspace(80, 90, 50)})
FORMATS = {
    "a.npz": (lambda path: save_npz(path, a=np.arange(300)), lambda path: load_npz(path, "a")),
    "a.parquet": (lambda path: write_table(TABLE, path), read_table),
    "a.csv": (lambda path: write_csv(TABLE, path), read_csv),
    "a.json": (lambda path: write_json(path, {"accuracy": 88.3}), read_json),
}


def cut(content):
    return content[: len(content) // 2]


def flip(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def edit(content):
    return content.replace(b"8", b"9")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("damage", [cut, flip, edit])
@pytest.mark.parametrize("keep_time", [False, True])
def test_no_reader_takes_a_file_that_was_changed(tmp_path, name, damage, keep_time):
    path, (write, read) = tmp_path / name, FORMATS[name]
    write(path)
    read(path)
    times = path.stat()
    changed = damage(path.read_bytes())
    if changed == path.read_bytes():
        pytest.skip("nothing to edit in this format")
    path.write_bytes(changed)
    if keep_time:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(UserError, match=rf"{name} is not what was written: .* `python -m mdpu accept .*{name}`"):
        read(path)


@given(st.integers(0, 100), st.integers(1, 255))
def test_no_single_byte_can_change_unnoticed(tmp_path_factory, place, mask):
    path = tmp_path_factory.mktemp("flip") / "a.txt"
    write_text(path, "x" * 101)
    content = bytearray(path.read_bytes())
    content[place] ^= mask
    path.write_bytes(bytes(content))
    with pytest.raises(UserError, match="is not what was written"):
        check(path)


def test_an_edit_on_purpose_is_kept_and_marked(tmp_path):
    path = tmp_path / "a.json"
    with recording():
        write_json(tmp_path / "input.json", {})
        read_json(tmp_path / "input.json")
        write_json(path, {"a": 1})
    path.write_text('{"a": 2}')
    accept(path)
    assert read_json(path) == {"a": 2}
    seal = read_seal(path)
    assert (seal.edited, list(seal.inputs)) == (True, [str(tmp_path / "input.json")])
    write_json(path, {"a": 3})
    assert not read_seal(path).edited


def test_what_has_no_seal_is_ones_own(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    assert read_json(tmp_path / "a.json") == {}
    assert read_seal(tmp_path / "a.json") is None


@given(st.data())
def test_no_byte_of_a_seal_can_change_its_meaning_unnoticed(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("flip")
    write_text(folder / "source", "x")
    with recording():
        check(folder / "source")
        write_text(folder / "a", "y")
    seal, content = read_seal(folder / "a"), bytearray(seal_path(folder / "a").read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    seal_path(folder / "a").write_bytes(bytes(content))
    assert read_seal(folder / "a") in (seal, Seal("broken"))  # the same meaning with another space between words


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sha": "a"}'])
def test_a_broken_seal_matches_nothing(tmp_path, text):
    write_json(tmp_path / "a.json", {})
    seal_path(tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError, match="is not what was written"):
        read_json(tmp_path / "a.json")


def test_a_seal_that_the_disk_cannot_read_is_no_missing_seal(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.read_text", mock.Mock(side_effect=OSError(errno.EIO, "Input/output error")))
    with pytest.raises(UserError, match=r"\.a\.json\.seal could not be read \(Input/output error\); mend that"):
        read_seal(tmp_path / "a.json")


def test_a_seal_names_what_was_read_to_make_the_file(tmp_path):
    first, second, third = (tmp_path / name for name in ("first.json", "second.json", "third.json"))
    with recording():
        write_json(first, 1)
        read_json(first)
        write_json(second, 2)
    with recording():
        read_json(second)
        write_json(third, 3)
    assert read_seal(first).inputs == {}
    assert read_seal(second).inputs == {str(first): sha256(first)}
    assert read_seal(third).inputs == {str(second): sha256(second)}
    write_json(first, 4)  # outside of a command nothing is noted
    assert read_seal(first).inputs == {}


def test_a_file_that_is_read_and_written_anew_is_no_input_of_itself(tmp_path):
    with recording():
        write_json(tmp_path / "a.json", 1)
        read_json(tmp_path / "a.json")
        write_json(tmp_path / "a.json", 2)
    assert read_seal(tmp_path / "a.json").inputs == {}


def test_a_removed_file_takes_its_seal_along(tmp_path):
    write_text(tmp_path / "a.txt", "a")
    remove(tmp_path / "a.txt")
    remove(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []
