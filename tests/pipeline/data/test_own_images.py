"""One's own images: npz files and folders of pictures, good and bad."""

import json
import os
import tempfile
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


def arrays(shape=(5, 4), **changes):
    """Six training and four test images of two classes; a change to None leaves an array out."""
    generator = np.random.default_rng(0)
    found = {}
    for part, n in (("train", 6), ("test", 4)):
        found[f"{part}_images"] = generator.integers(0, 256, (n, *shape), dtype=np.uint8)
        found[f"{part}_labels"] = np.arange(n) % 2
    return {name: array for name, array in {**found, **changes}.items() if array is not None}


def save_picture(path, shade, mode="L", size=(4, 5)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, shade).save(path)


@pytest.fixture
def npz(tmp_path):
    return tmp_path / "own.npz"


@pytest.fixture
def pictures(tmp_path):
    for part, count in (("train", 3), ("test", 2)):
        for value, name in enumerate(("cat", "dog")):
            for k in range(count):
                save_picture(tmp_path / "pictures" / part / name / f"{k:02}.png", 100 * value + k)
    return tmp_path / "pictures"


# -- npz files -------------------------------------------------------------------------------------


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)) | st.tuples(*[st.integers(1, 9)] * 3),
    kind=st.sampled_from(["int64", "uint8", "int32", ">i2"]),
    compressed=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_an_npz_of_any_shape_is_read_as_it_is(shape, kind, compressed):
    content = arrays(shape)
    content |= {
        f"{part}_labels": content[f"{part}_labels"].astype(kind) for part in ("train", "test")
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "images.npz")
        (np.savez_compressed if compressed else np.savez)(path, allow_pickle=False, **content)
        assert own.is_colour(path) == (shape[2:] == (3,))
        found = own.read(path)
    for name, array in content.items():
        np.testing.assert_array_equal(getattr(found, name), array)
    assert found.train_labels.dtype == np.int64
    assert found.classes == ["0", "1"]


def test_class_names_are_in_the_npz_or_beside_it(npz):
    np.savez(npz, **arrays(classes=np.array(["cat", "dog"])))
    assert (own.read(npz).classes, own.inputs(npz)) == (["cat", "dog"], [npz])
    beside = npz.with_suffix(".json")
    beside.write_text(json.dumps({"classes": ["Katze", "Hund"], "licence": "CC0"}))
    assert (own.read(npz).classes, own.read(npz).licence) == (["Katze", "Hund"], "CC0")
    assert own.inputs(npz) == [npz, beside]


def test_the_checksum_is_that_of_the_four_arrays(npz):
    """However they are stored; one pixel or label makes another."""
    content = arrays()
    checksums = []
    labels = content["train_labels"]
    images = content["test_images"]
    for ids, pixels in (
        (labels, images),
        (labels.astype(np.uint8), images),
        (1 - labels, images),
        (labels, images ^ 1),
    ):
        np.savez_compressed(npz, **content | {"train_labels": ids, "test_images": pixels})
        checksums.append(own.read(npz).checksum)
    assert checksums[0] == checksums[1]
    assert len(set(checksums)) == 3


def test_images_that_differ_from_the_declared_checksum_are_refused(npz, tmp_path):
    np.savez(npz, **arrays())
    out = tmp_path / "out" / "animals.npz"
    with pytest.raises(UserError, match=r"definitions\.datasets\.animals\.sha256"):
        write_source(str(npz), tmp_path, None, out, "0" * 64)
    assert not out.parent.exists()
    write_source(str(npz), tmp_path, None, out, own.read(npz).checksum)
    assert read_images(out).origin == str(npz)
    assert read_json(out.with_suffix(".json"))["checksum"] == own.read(npz).checksum


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"train_images": None}, "train_images"),
        ({"train_images": np.zeros((6, 5, 4))}, "train_images"),
        (
            {"train_images": np.zeros((0, 5, 4), np.uint8), "train_labels": np.zeros(0, int)},
            "train_images",
        ),
        ({"train_labels": np.zeros(5, int)}, "train_labels"),
        ({"train_labels": np.zeros(6)}, "train_labels"),
        ({"test_labels": np.array([0, 1, -1, 0])}, "test_labels"),
        ({"classes": np.array(["only"])}, "train_labels"),
        ({"classes": np.array(["cat", {}], dtype=object)}, "allow_pickle"),
        ({"classes": np.array(["cat", "\x1b[31m"])}, "control"),
        ({"test_images": np.zeros((4, 9, 9), np.uint8)}, "test_images"),
    ],
)
def test_a_bad_npz_is_refused_by_the_array(npz, change, key):
    np.savez(npz, **arrays(**change))
    with pytest.raises(UserError, match=f"{npz}.*{key}"):
        own.read(npz)


@pytest.mark.parametrize("content", [None, "half", b"images", b"", "pipe"])
def test_a_file_that_is_no_npz_is_named(npz, content):
    if content == "pipe":
        os.mkfifo(npz)
    elif content is not None:
        np.savez(npz, **arrays())
        npz.write_bytes(npz.read_bytes()[:500] if content == "half" else content)
    for read in (own.read, own.is_colour):
        with pytest.raises(UserError, match=str(npz)):
            read(npz)


def test_a_bad_description_is_named(npz):
    np.savez(npz, **arrays())
    for content in ("[]", '{"classes": 3}', "{", r'{"classes": ["\ud800", "b"]}'):
        npz.with_suffix(".json").write_text(content)
        with pytest.raises(UserError, match="own"):
            own.read(npz)


# -- folders ---------------------------------------------------------------------------------------


def test_a_folder_of_pictures_is_read_in_the_order_of_its_names(pictures):
    (pictures / "train" / "cat" / "notes.txt").write_text("not a picture")
    (pictures / "train" / ".thumbnails").mkdir()
    found = own.read(pictures)
    assert found.classes == ["cat", "dog"]
    assert found.train_images.shape == (6, 5, 4)
    assert found.train_images[:, 0, 0].tolist() == [0, 1, 2, 100, 101, 102]
    assert (found.train_labels.tolist(), found.test_labels.tolist()) == (
        [0, 0, 0, 1, 1, 1],
        [0, 0, 1, 1],
    )
    assert not own.is_colour(pictures)
    assert pictures / "train" / "dog" in own.inputs(pictures)


def test_the_first_picture_says_whether_all_are_in_colour(pictures):
    save_picture(pictures / "train" / "cat" / "00.png", (1, 2, 3), "RGB")
    assert own.is_colour(pictures)
    found = own.read(pictures)
    assert found.train_images[0, 0, 0].tolist() == [1, 2, 3]
    assert found.test_images[-1, 0, 0].tolist() == [101] * 3


def test_a_picture_that_is_upright_by_its_orientation_alone_is_turned(pictures):
    path = pictures / "train" / "cat" / "00.png"
    turned = Image.fromarray(np.arange(20, dtype=np.uint8).reshape(4, 5))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    turned.save(path, exif=exif)
    assert own.read(pictures).train_images[0].tolist() == np.rot90(np.asarray(turned), -1).tolist()


@pytest.mark.parametrize("how", ["size", "RGB", "I;16", "half", "pipe"])
def test_a_bad_picture_is_named(pictures, how):
    path = pictures / "test" / "dog" / "00.png"
    if how == "half":
        path.write_bytes(path.read_bytes()[:-30])
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        save_picture(path, 0, "L" if how == "size" else how, (9, 9) if how == "size" else (4, 5))
    with pytest.raises(UserError, match=f"{pictures}.*test/dog/00.png"):
        own.read(pictures)


def test_a_folder_that_lacks_a_part_or_a_class_is_refused(pictures):
    save_picture(pictures / "test" / "cow" / "00.png", 0)
    with pytest.raises(UserError, match="test/cow"):
        own.read(pictures)
    (pictures / "test").rename(pictures / "tests")
    with pytest.raises(UserError, match="test"):
        own.read(pictures)
