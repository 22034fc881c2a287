"""One's own images: npz files and folders of pictures, good and bad."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from mdpu.errors import UserError
from mdpu.pipeline.data import own
from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.data.sources import write_source
from mdpu.pipeline.files import read_json


def arrays(shape=(5, 4), train=6, test=4, classes=2):
    generator = np.random.default_rng(0)
    return {
        "train_images": generator.integers(0, 256, (train, *shape), dtype=np.uint8),
        "train_labels": np.arange(train) % classes,
        "test_images": generator.integers(0, 256, (test, *shape), dtype=np.uint8),
        "test_labels": np.arange(test) % classes,
    }


def save_picture(path, shade, mode="L", size=(4, 5)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, shade).save(path)


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    for part, count in (("train", 3), ("test", 2)):
        for value, name in enumerate(("cat", "dog")):
            for k in range(count):
                save_picture(folder / part / name / f"{k:02}.png", 100 * value + k)
    return folder


# -- npz files --------------------------------------------------------------------------------------


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)) | st.tuples(*[st.integers(1, 9)] * 3),
    kind=st.sampled_from(["int64", "uint8", "int32", ">i2"]),
    compressed=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_an_npz_of_any_shape_is_read_as_it_is(shape, kind, compressed):
    content = arrays(shape)
    for part in ("train", "test"):
        content[f"{part}_labels"] = content[f"{part}_labels"].astype(kind)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "images.npz")
        (np.savez_compressed if compressed else np.savez)(path, allow_pickle=False, **content)
        assert own.is_colour(path) == (shape[2:] == (3,))
        found = own.read(path)
    for name, array in content.items():
        np.testing.assert_array_equal(getattr(found, name), array)
    assert found.train_labels.dtype == np.int64
    assert found.classes == ["0", "1"]


def test_class_names_are_in_the_npz_or_beside_it(tmp_path):
    path = tmp_path / "animals.npz"
    np.savez(path, **arrays(), classes=np.array(["cat", "dog"]))
    assert own.read(path).classes == ["cat", "dog"]
    assert own.inputs(path) == [path]
    beside = path.with_suffix(".json")
    beside.write_text(json.dumps({"classes": ["Katze", "Hund"], "licence": "CC0"}))
    assert own.read(path).classes == ["Katze", "Hund"]
    assert own.read(path).licence == "CC0"
    assert own.inputs(path) == [path, beside]


def test_the_checksum_is_that_of_the_images(tmp_path):
    """Of the four arrays, however they are stored; one pixel or label makes another."""
    path, content, checksums = tmp_path / "own.npz", arrays(), []
    pixel, label = content["test_images"].copy(), content["train_labels"].copy()
    pixel[0, 0, 0] ^= 1
    label[0] ^= 1
    for change in ({}, {"train_labels": content["train_labels"].astype(np.uint8)}, {"test_images": pixel}):
        np.savez_compressed(path, **{**content, **change})
        checksums.append(own.read(path).checksum)
    np.savez(path, **{**content, "train_labels": label})
    checksums.append(own.read(path).checksum)
    assert checksums[0] == checksums[1]
    assert len(set(checksums)) == 3


def test_files_that_differ_from_the_declared_checksum_are_refused(tmp_path):
    path, out = tmp_path / "own.npz", tmp_path / "out" / "animals.npz"
    np.savez(path, **arrays())
    with pytest.raises(UserError, match=r"definitions\.datasets\.animals\.sha256"):
        write_source(str(path), tmp_path, None, out, "0" * 64)
    assert not out.parent.exists()
    write_source(str(path), tmp_path, None, out, own.read(path).checksum)
    assert read_images(out).origin == str(path)
    assert read_json(out.with_suffix(".json"))["checksum"] == own.read(path).checksum


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"train_images": None}, "train_images"),
        ({"train_images": np.zeros((6, 5, 4))}, "train_images"),
        ({"train_images": np.zeros((0, 5, 4), np.uint8), "train_labels": np.zeros(0, int)}, "train_images"),
        ({"train_labels": np.zeros(5, int)}, "train_labels"),
        ({"train_labels": np.zeros(6)}, "train_labels"),
        ({"test_labels": np.array([0, 1, -1, 0])}, "test_labels"),
        ({"classes": np.array(["only"])}, "train_labels"),
        ({"classes": np.array(["cat", {}], dtype=object)}, "allow_pickle"),
        ({"classes": np.array(["cat", "\x1b[31m"])}, "control"),
        ({"test_images": np.zeros((4, 9, 9), np.uint8)}, "test_images"),
    ],
)
def test_a_bad_npz_is_refused_by_the_array(tmp_path, change, key):
    path, out = tmp_path / "bad.npz", tmp_path / "out" / "own.npz"
    np.savez(path, **{name: array for name, array in {**arrays(), **change}.items() if array is not None})
    with pytest.raises(UserError, match=f"{path}.*{key}"):
        write_source(str(path), tmp_path, None, out)
    assert not out.parent.exists()


@pytest.mark.parametrize("spoil", ["truncated", "text", "empty", "an npy", "no array", "missing", "pipe"])
def test_a_file_that_is_no_npz_is_named(tmp_path, spoil):
    path = tmp_path / "own.npz"
    np.savez(path, **arrays())
    whole = path.read_bytes()
    if spoil in ("missing", "pipe"):
        path.unlink()
        if spoil == "pipe":
            os.mkfifo(path)
    elif spoil == "no array":
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, b"text" if name == "train_images.npy" else content)
    elif spoil == "an npy":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    else:
        path.write_bytes({"truncated": whole[: len(whole) // 2], "text": b"images", "empty": b""}[spoil])
    for read in (own.read, own.is_colour):
        with pytest.raises(UserError, match=str(path)):
            read(path)


@pytest.mark.parametrize(
    "content", ["[]", '{"classes": 3}', "{", r'{"classes": ["\ud800", "b"]}', r'{"licence": "\ud800"}']
)
def test_a_bad_description_is_named(tmp_path, content):
    np.savez(tmp_path / "own.npz", **arrays())
    (tmp_path / "own.json").write_text(content)
    with pytest.raises(UserError, match="own"):
        own.read(tmp_path / "own.npz")


# -- folders ----------------------------------------------------------------------------------------


def test_a_folder_of_pictures_is_read_in_the_order_of_its_names(pictures):
    (pictures / "train" / "cat" / "notes.txt").write_text("not a picture")
    (pictures / "train" / ".thumbnails").mkdir()
    found = own.read(pictures)
    assert found.classes == ["cat", "dog"]
    assert found.train_images.shape == (6, 5, 4)
    assert found.train_images[:, 0, 0].tolist() == [0, 1, 2, 100, 101, 102]
    assert found.train_labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.test_labels.tolist() == [0, 0, 1, 1]
    assert not own.is_colour(pictures)
    assert pictures / "train" / "dog" in own.inputs(pictures)


def test_the_first_picture_says_whether_all_are_in_colour(pictures):
    save_picture(pictures / "train" / "cat" / "00.png", (1, 2, 3), "RGB")
    assert own.is_colour(pictures)
    found = own.read(pictures)
    assert found.train_images[0, 0, 0].tolist() == [1, 2, 3]
    assert found.test_images[-1, 0, 0].tolist() == [101] * 3


def spoil_folder(pictures, how):
    path = pictures / "test" / "dog" / "00.png"
    if how == "size":
        save_picture(path, 0, size=(9, 9))
    elif how == "colour":
        save_picture(path, (1, 2, 3), "RGB")
    elif how == "16 bits":
        save_picture(path, 9, "I;16")
    elif how == "half":
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (5, 4), dtype=np.uint8)).save(path)
        path.write_bytes(path.read_bytes()[:-30])
    elif how == "bomb":  # it claims 60,000 x 60,000 pixels
        content = bytearray(path.read_bytes())
        content[16:24] = struct.pack(">II", 60_000, 60_000)
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
        path.write_bytes(content)
    else:
        path.unlink()
        {"pipe": os.mkfifo, "link": lambda path: path.symlink_to("nothing")}[how](path)


@pytest.mark.parametrize("how", ["size", "colour", "16 bits", "half", "bomb", "pipe", "link"])
def test_a_bad_picture_is_named(pictures, how):
    spoil_folder(pictures, how)
    with pytest.raises(UserError, match=f"{pictures}.*test/dog/00.png"):
        own.read(pictures)


def test_a_folder_that_lacks_a_part_or_a_class_is_refused(pictures):
    save_picture(pictures / "test" / "cow" / "00.png", 0)
    with pytest.raises(UserError, match="test/cow"):
        own.read(pictures)
    (pictures / "test").rename(pictures / "tests")
    with pytest.raises(UserError, match="test"):
        own.read(pictures)
