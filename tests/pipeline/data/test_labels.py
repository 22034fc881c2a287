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
    images = (
        np.broadcast_to(labels.reshape(-1, *[1] * len(shape)), (labels.size, *shape)).astype(
            np.uint8
        )
        * 10
    )
    return ImageSet(images, labels, images, labels, ["cat", "dog", "eel", "fox"], "nowhere", "none")


@pytest.fixture
def files(tmp_path):
    write_images(image_set([0, 0, 1, 2, 3]), tmp_path / "images.npz")
    return tmp_path / "images.npz", tmp_path / "animals.npz"


def test_sides_become_signs(files):
    counts = {"positive": 3, "negative": 1, "dropped": 1}
    write_labels(*files, SIDES, {"train": counts})
    found = load_npz(files[1], "train", "test")
    assert found["train"].tolist() == found["test"].tolist() == [1, 1, -1, 0, 1]
    assert found["train"].dtype == np.int8
    assert (
        read_json(files[1].with_suffix(".json"))["counts"]
        == count_sides(found)
        == {"train": counts, "test": counts}
    )


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
    labels = binarize(images, {"positive": ["dog", "fox"], "negative": ["cat"], "dropped": ["eel"]})
    sheet = np.asarray(contact_sheet(images, labels, 1))
    assert sheet.shape == (3, 5 * (2 + GAP) - GAP)
    assert sheet[0, :: 2 + GAP].tolist() == [10, 10, 10, 30, 30]
    assert np.asarray(contact_sheet(images, labels, -1)).tolist() == [[0, 0]] * 3
    full = image_set([1] * 100 + [3] * 30 + [0], (1, 1))
    sheet = np.asarray(contact_sheet(full, {"train": np.where(full.train_labels > 0, 1, -1)}, 1))
    assert sheet[:: 1 + GAP, :: 1 + GAP].ravel().tolist() == [10] * 24 + [30] * 24
    assert sheet[1::2].min() == sheet[:, 1::2].min() == 255


@pytest.mark.parametrize(
    ("shape", "mode"), [((3, 2), "L"), ((3, 2, 1), "L"), ((3, 2, 3), "RGB"), ((3, 2, 5), "L")]
)
def test_images_of_any_channels_are_shown(shape, mode, tmp_path):
    write_images(image_set([0, 1], shape), tmp_path / "images.npz")
    write_labels(tmp_path / "images.npz", tmp_path / "labels.npz", SIDES, {})
    write_sheets(
        tmp_path / "images.npz",
        tmp_path / "labels.npz",
        tmp_path / "positive",
        tmp_path / "negative",
    )
    with Image.open(tmp_path / "negative") as sheet:
        assert (sheet.mode, sheet.size) == (mode, (2, 3))
        assert np.asarray(sheet).max() == 10
