"""One's own images: npz files, folders of pictures and tables, good and bad."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from mdpu.errors import UserError
from mdpu.learners.features import Standardisation
from mdpu.pipeline.config import load_config
from mdpu.pipeline.data import own
from mdpu.pipeline.data.images import read_images, write_images
from mdpu.pipeline.files import sha256
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.sheet import contact_sheet


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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"train_images": None}, "no array train_images; it holds train_labels, test_images, test_labels"),
        ({"train_images": np.zeros((6, 5, 4))}, "train_images is float64"),
        ({"train_labels": np.zeros(5, int)}, "6 images but labels of shape (5,)"),
        ({"train_labels": np.zeros(6)}, "train_labels is float64; class ids must be integers"),
        ({"test_labels": np.array([0, 1, -1, 0])}, "test_labels run from -1 to 1"),
        ({"classes": np.array(["only"])}, "train_labels run from 0 to 1, outside the 1 named classes"),
        ({"classes": np.array(["cat", {}], dtype=object)}, "pickled objects"),
        ({"classes": np.array(["cat", "\x1b[31m"])}, "holds control characters"),
        ({"test_images": np.zeros((4, 9, 9), np.uint8)}, "training images are (5, 4) but test images (9, 9)"),
    ],
)
def test_a_bad_npz_ends_in_one_sentence(mdpu, settings, tmp_path, change, said):
    path, out = tmp_path / "bad.npz", tmp_path / "out" / "own.npz"
    np.savez(path, **{name: array for name, array in {**arrays(), **change}.items() if array is not None})
    status, error = mdpu("dataset", path, *settings(), "--out", out)
    assert status == 2
    assert error.startswith(f"error: source {path}: ")
    assert said in error
    assert error.count("\n") == 1
    assert not out.exists()
    np.savez(path, **arrays())
    assert mdpu("dataset", path, *settings(), "--out", out)[0] == 0
    assert read_images(out).origin == str(path)
    assert json.loads(out.with_suffix(".json").read_text())["checksums"] == {"bad.npz": f"sha256:{sha256(path)}"}


@pytest.mark.parametrize("spoil", ["truncated", "text", "empty", "an npy", "no array", "missing"])
def test_a_file_that_is_no_npz_ends_in_one_sentence(tmp_path, spoil):
    path = tmp_path / "own.npz"
    np.savez(path, **arrays())
    whole = path.read_bytes()
    if spoil == "missing":
        path.unlink()
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
    with pytest.raises(UserError, match=r"there is no such file|not a whole npz|pickled|train_images is \\|S4"):
        own.read(path)
    with pytest.raises(UserError, match=f"source {path}: "):
        own.is_colour(path)


@pytest.mark.parametrize(
    "content", ["[]", '{"classes": 3}', "{", r'{"classes": ["\ud800", "b"]}', r'{"licence": "\ud800"}']
)
def test_a_bad_description_ends_in_one_sentence(tmp_path, content):
    np.savez(tmp_path / "own.npz", **arrays())
    (tmp_path / "own.json").write_text(content)
    with pytest.raises(UserError, match=r"own\.json|holds control characters"):
        own.read(tmp_path / "own.npz")


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


def spoil_folder(pictures, how):
    path = pictures / "test" / "dog" / "00.png"
    if how == "size":
        save_picture(path, 0, size=(9, 9))
    elif how == "half":
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (5, 4), dtype=np.uint8)).save(path)
        path.write_bytes(path.read_bytes()[:-30])
    elif how == "bomb":  # it claims 60,000 x 60,000 pixels
        content = bytearray(path.read_bytes())
        content[16:24] = struct.pack(">II", 60_000, 60_000)
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
        path.write_bytes(content)
    elif how == "class":
        save_picture(pictures / "test" / "cow" / "00.png", 0)
    elif how == "part":
        (pictures / "test").rename(pictures / "tests")
    else:
        path.unlink()
        {"pipe": os.mkfifo, "link": lambda path: path.symlink_to("nothing")}[how](path)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("size", "is 9x9 but"),
        ("half", "00.png is no whole picture"),
        ("bomb", "00.png is no whole picture (Image size (3600000000 pixels) exceeds limit"),
        ("class", "test/cow has no counterpart in train"),
        ("part", "it has no folder test"),
        ("pipe", "00.png is no file, but a folder, a pipe or a link to nothing"),
        ("link", "00.png is no file, but a folder, a pipe or a link to nothing"),
    ],
)
def test_a_bad_folder_ends_in_one_sentence(pictures, how, said):
    spoil_folder(pictures, how)
    with pytest.raises(UserError) as error:
        own.read(pictures)
    assert str(error.value).startswith(f"source {pictures}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("shape", "network"), [((8, 8), "mlp"), ((8, 8, 1), "mlp"), ((8, 8, 3), "resnet34"), ((16, 8, 3), "resnet34")]
)
def test_the_network_follows_the_images_unless_it_is_named(settings, tmp_path, shape, network):
    path = tmp_path / "own.npz"
    np.savez(path, **arrays(shape))
    definition = {"title": "Own", "source": str(path), "positive": [0], "negative": [1]}
    for named in ({}, {"network": "mlp"}, {"network": "resnet34"}):
        overlay = settings(definitions={"datasets": {"own": {**definition, **named}}}, datasets=["own"])
        plan = Plan(load_config([Path(option) for option in overlay[1::2]]))
        assert plan.network("own") == named.get("network", network)
        assert plan.layout.images("own") == tmp_path / "results" / "datasets" / "own" / "own.npz"
        assert plan.source_of("own/own") == str(path)
        assert plan.own_files == {"own/own": [path]}


# -- tables -----------------------------------------------------------------------------------------


def frames():
    """Two columns of numbers, one of them with other units and a gap, and the class."""
    generator = np.random.default_rng(0)
    return {
        part: pd.DataFrame(
            {
                "a": generator.standard_normal(n),
                "b": np.where(np.arange(n) == 3, np.nan, 1000 * generator.standard_normal(n) + 7),
                "kind": np.resize(["x", "y"], n),
            }
        )
        for part, n in (("train", 60), ("test", 20))
    }


def save_table(folder, parts, form="csv"):
    for part, frame in parts.items():
        path = folder / f"own_{part}.{form}"
        frame.to_parquet(path) if form == "parquet" else frame.to_csv(path, index=False)
    return folder / f"own_train.{form}"


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "npz"])
def test_a_table_is_standardised_on_its_training_part(tmp_path, form):
    parts = frames()
    if form == "npz":
        path, content = tmp_path / "own.npz", {"classes": np.array(["x", "y"])}
        for part, frame in parts.items():
            content |= {f"{part}_images": frame[["a", "b"]].to_numpy(), f"{part}_labels": np.arange(len(frame)) % 2}
        np.savez(path, **content)
    else:
        path = save_table(tmp_path, parts, form)
        assert own.inputs(path) == [path, path.with_name(f"own_test.{form}")]
    found = own.read(path)
    assert found.classes == ["x", "y"]
    assert found.train_labels.tolist() == [0, 1] * 30
    learned = Standardisation.learn(parts["train"][["a", "b"]].to_numpy(), components=None)
    for part, frame in parts.items():
        images = getattr(found, f"{part}_images")
        assert images.dtype == np.float32
        np.testing.assert_allclose(images, learned(frame[["a", "b"]].to_numpy()), rtol=1e-6, atol=1e-7)
    assert not own.is_colour(path)
    write_images(found, tmp_path / "out.npz")
    assert np.array_equal(read_images(tmp_path / "out.npz").train_images, found.train_images)
    assert contact_sheet(found, {"train": np.where(found.train_labels, 1, -1)}, 1).size == (3 * 12 - 1, 3 * 3 - 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda parts: parts | {"test": parts["test"][["b", "a", "kind"]]},
            "of the training and of the test file differ",
        ),
        (
            lambda parts: {part: frame[["kind", "a"]] for part, frame in parts.items()},
            "column kind of the train file hol",
        ),
        (
            lambda parts: {part: frame[["kind"]] for part, frame in parts.items()},
            "the last column is the class, and all",
        ),
        (lambda parts: {part: frame[["a", "b"]] for part, frame in parts.items()}, "the class, has missing values"),
        (lambda parts: {part: frame.replace(np.nan, np.inf) for part, frame in parts.items()}, "holds infinite values"),
        (lambda parts: {"train": parts["train"]}, "own_test.csv is no file; a table has a training and a test part"),
    ],
)
def test_a_bad_table_ends_in_one_sentence(tmp_path, change, said):
    path = save_table(tmp_path, change(frames()))
    with pytest.raises(UserError) as error:
        own.read(path)
    assert str(error.value).startswith(f"source {path}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_table_needs_a_name_that_tells_its_part(tmp_path):
    path = tmp_path / "own.csv"
    frames()["train"].to_csv(path)
    with pytest.raises(UserError, match=r"a table's file is called ...train.csv, so that"):
        own.inputs(path)
