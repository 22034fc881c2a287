"""One's own images: npz files and folders of pictures, good and bad."""

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
    content = {
        "train_images": generator.integers(256, size=(6, *shape), dtype=np.uint8),
        "train_labels": np.arange(6) % 2,
        "test_images": generator.integers(256, size=(4, *shape), dtype=np.uint8),
        "test_labels": np.arange(4) % 2,
    }
    content |= changes
    return {name: array for name, array in content.items() if array is not None}


def save_picture(path, shade, mode="L", size=(4, 5)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, shade).save(path)


@pytest.fixture
def npz(tmp_path):
    return tmp_path / "own.npz"


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    for part, count in (("train", 3), ("test", 2)):
        for shade in range(count):
            save_picture(folder / part / "cat" / f"{shade:02}.png", shade)
            save_picture(folder / part / "dog" / f"{shade:02}.png", 100 + shade)
    return folder


# -- npz files -------------------------------------------------------------------------------------


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)) | st.tuples(*[st.integers(1, 9)] * 3),
    kind=st.sampled_from(["int64", "uint8", "int32", ">i2"]),
    save=st.sampled_from([np.savez, np.savez_compressed]),
)
@settings(max_examples=30, deadline=None)
def test_an_npz_of_any_shape_is_read_as_it_is(shape, kind, save):
    content = arrays(shape)
    for name in ("train_labels", "test_labels"):
        content[name] = content[name].astype(kind)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "images.npz")
        save(path, allow_pickle=False, **content)
        is_colour = own.is_colour(path)
        images = own.read(path)

    assert is_colour == (shape[2:] == (3,))
    for name, array in content.items():
        np.testing.assert_array_equal(getattr(images, name), array)
    assert images.train_labels.dtype == np.int64
    assert images.classes == ["0", "1"]


def test_class_names_are_in_the_npz(npz):
    np.savez(npz, **arrays(classes=np.array(["cat", "dog"])))
    assert own.read(npz).classes == ["cat", "dog"]
    assert own.inputs(npz) == [npz]


def test_class_names_beside_the_npz_take_the_place_of_those_in_it(npz):
    np.savez(npz, **arrays(classes=np.array(["cat", "dog"])))
    beside = npz.with_suffix(".json")
    beside.write_text('{"classes": ["Katze", "Hund"], "licence": "CC0"}')

    images = own.read(npz)

    assert images.classes == ["Katze", "Hund"]
    assert images.licence == "CC0"
    assert own.inputs(npz) == [npz, beside]


def test_the_checksum_is_that_of_the_four_arrays(npz):
    """However they are stored; one pixel or label makes another."""

    def checksum(**changes):
        np.savez_compressed(npz, **arrays(**changes))
        return own.read(npz).checksum

    content = arrays()
    labels = content["train_labels"]
    expected = checksum()
    of_bytes = checksum(train_labels=labels.astype(np.uint8))
    of_swapped_labels = checksum(train_labels=1 - labels)
    of_changed_pixels = checksum(test_images=content["test_images"] ^ 1)
    assert of_bytes == expected
    assert len({expected, of_swapped_labels, of_changed_pixels}) == 3


def test_images_that_differ_from_the_declared_checksum_are_refused(npz, tmp_path):
    np.savez(npz, **arrays())
    out = tmp_path / "out" / "animals.npz"
    with pytest.raises(UserError, match=r"definitions\.datasets\.animals\.sha256"):
        write_source(str(npz), tmp_path, None, out, "0" * 64)
    assert not out.parent.exists()

    checksum = own.read(npz).checksum
    write_source(str(npz), tmp_path, None, out, checksum)
    assert read_images(out).origin == str(npz)
    assert read_json(out.with_suffix(".json"))["checksum"] == checksum


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
    elif content == "half":
        np.savez(npz, **arrays())
        npz.write_bytes(npz.read_bytes()[:500])
    elif content is not None:
        npz.write_bytes(content)
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

    images = own.read(pictures)

    assert images.classes == ["cat", "dog"]
    assert images.train_images.shape == (6, 5, 4)
    assert images.train_images[:, 0, 0].tolist() == [0, 1, 2, 100, 101, 102]
    assert images.train_labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert images.test_labels.tolist() == [0, 0, 1, 1]
    assert not own.is_colour(pictures)
    assert pictures / "train" / "dog" in own.inputs(pictures)


def test_the_first_picture_says_whether_all_are_in_colour(pictures):
    first = pictures / "train" / "cat" / "00.png"
    save_picture(first, (1, 2, 3), "RGB")
    assert own.is_colour(pictures)
    images = own.read(pictures)
    assert {*map(tuple, images.train_images[0].reshape(-1, 3))} == {(1, 2, 3)}
    assert (images.test_images[-1] == 101).all()


def test_a_picture_that_is_upright_by_its_orientation_alone_is_turned(pictures):
    pixels = np.arange(20, dtype=np.uint8).reshape(4, 5)
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    first = pictures / "train" / "cat" / "00.png"
    Image.fromarray(pixels).save(first, exif=exif)

    image = own.read(pictures).train_images[0]

    assert np.array_equal(image, np.rot90(pixels, -1))


def test_a_folder_that_lacks_a_part_or_a_class_is_refused(pictures):
    save_picture(pictures / "test" / "cow" / "00.png", 0)
    with pytest.raises(UserError, match="test/cow"):
        own.read(pictures)
    (pictures / "test").rename(pictures / "tests")
    with pytest.raises(UserError, match="test"):
        own.read(pictures)


@pytest.mark.parametrize(
    ("mode", "size"),
    [
        ("L", (9, 9)),
        ("RGB", (4, 5)),
        ("I;16", (4, 5)),
    ],
)
def test_a_picture_unlike_the_others_is_named(pictures, mode, size):
    save_picture(pictures / "test" / "dog" / "00.png", 0, mode, size)
    with pytest.raises(UserError, match=f"{pictures}.*test/dog/00.png"):
        own.read(pictures)


@pytest.mark.parametrize("content", ["half", "pipe"])
def test_a_file_that_is_no_picture_is_named(pictures, content):
    path = pictures / "test" / "dog" / "00.png"
    whole = path.read_bytes()
    path.unlink()
    if content == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(whole[:-30])
    with pytest.raises(UserError, match=f"{pictures}.*test/dog/00.png"):
        own.read(pictures)
