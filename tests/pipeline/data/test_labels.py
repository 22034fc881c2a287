"""Sides, their counts, and the contact sheets that show them."""

import numpy as np
import pytest
from PIL import Image

from mdpu.errors import UserError
from mdpu.pipeline.data.images import ImageSet, read_images, write_images
from mdpu.pipeline.data.labels import binarize, count_sides, write_labels
from mdpu.pipeline.data.sheets import GAP, contact_sheet, write_sheets
from mdpu.pipeline.files import load_npz, read_json

SIDES = {"positive": ["cat", "fox"], "negative": ["dog"], "dropped": ["eel"]}


def image_set(train, shape=(3, 2)):
    """Images whose pixels are ten times their class."""
    labels = np.array(train)
    pixels = np.multiply.outer(10 * labels, np.ones(shape, int))
    images = pixels.astype(np.uint8)
    return ImageSet(images, labels, images, labels, ["cat", "dog", "eel", "fox"], "nowhere", "none")


@pytest.fixture
def files(tmp_path):
    write_images(image_set([0, 0, 1, 2, 3]), tmp_path / "images.npz")
    return tmp_path / "images.npz", tmp_path / "animals.npz"


def test_sides_become_signs(files):
    images, path = files
    sides = {"positive": 3, "negative": 1, "dropped": 1}
    write_labels(images, path, SIDES, {"train": sides})

    labels = load_npz(path, "train", "test")
    assert labels["train"].dtype == np.int8
    assert labels["train"].tolist() == [1, 1, -1, 0, 1]
    assert labels["test"].tolist() == [1, 1, -1, 0, 1]
    counts = {"train": sides, "test": sides}
    assert count_sides(labels) == counts
    assert read_json(path.with_suffix(".json"))["counts"] == counts


@pytest.mark.parametrize(
    ("sides", "counts", "key"),
    [
        ({"positive": ["cat"], "negative": ["dog"]}, {}, "eel"),
        ({**SIDES, "negative": ["dog", "eel"]}, {}, "dropped.*eel"),
        ({**SIDES, "negative": ["dog", "cow"]}, {}, "negative.*cow"),
        ({**SIDES, "negative": [], "dropped": ["dog", "eel"]}, {}, "negative"),
        (SIDES, {"train": {"positive": 3}, "test": {"positive": 4}}, r"counts\.test\.positive"),
    ],
)
def test_sides_that_contradict_the_images_are_refused_by_their_key(files, sides, counts, key):
    with pytest.raises(UserError, match=rf"definitions\.datasets\.animals.*{key}"):
        write_labels(*files, sides, counts)
    assert not files[1].exists()


def test_a_description_of_something_else_is_named(files):
    files[0].with_suffix(".json").write_text("{}")
    with pytest.raises(UserError, match=r"images\.json"):
        read_images(files[0])


def test_a_contact_sheet_shows_the_classes_of_a_side_in_turn():
    images = image_set([3, 1, 0, 1, 3, 1, 2, 2])
    sides = {"positive": ["dog", "fox"], "negative": ["cat"], "dropped": ["eel"]}
    labels = binarize(images, sides)

    positive = contact_sheet(images, labels, 1)
    assert positive.size == (5 * (2 + GAP) - GAP, 3)
    pixels = np.asarray(positive)
    shown = pixels[0, :: 2 + GAP]
    assert shown.tolist() == [10, 10, 10, 30, 30]

    negative = contact_sheet(images, labels, -1)
    assert negative.size == (2, 3)
    assert not np.asarray(negative).any()


def test_a_contact_sheet_shows_as_many_of_each_class_if_not_all_fit():
    images = image_set([1] * 100 + [3] * 30 + [0], (1, 1))
    signs = np.where(images.train_labels > 0, 1, -1)
    sheet = contact_sheet(images, {"train": signs}, 1)

    pixels = np.asarray(sheet)
    step = 1 + GAP
    shown = pixels[::step, ::step].ravel()
    assert set(shown[:24]) == {10}
    assert set(shown[24:]) == {30}
    assert len(shown) == 48
    for gaps in (pixels[1::2], pixels[:, 1::2]):
        assert (gaps == 255).all()


@pytest.mark.parametrize(
    ("shape", "mode"), [((3, 2), "L"), ((3, 2, 1), "L"), ((3, 2, 3), "RGB"), ((3, 2, 5), "L")]
)
def test_images_of_any_channels_are_shown(shape, mode, tmp_path):
    images = tmp_path / "images.npz"
    labels = tmp_path / "labels.npz"
    negative = tmp_path / "negative"
    write_images(image_set([0, 1], shape), images)
    write_labels(images, labels, SIDES, {})
    write_sheets(images, labels, tmp_path / "positive", negative)
    with Image.open(negative) as sheet:
        assert sheet.mode == mode
        assert sheet.size == (2, 3)
        assert np.asarray(sheet).max() == 10
