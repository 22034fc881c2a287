"""The configured datasets: sides, counts, selection, and the report's contact sheets."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from mdpu.pipeline.config import load_config
from mdpu.pipeline.data.images import ImageSet, write_images
from mdpu.pipeline.data.labels import binarize, count_sides
from mdpu.pipeline.data.sources import load_source
from mdpu.pipeline.files import REPOSITORY, save_npz
from mdpu.pipeline.report.sheet import GAP, contact_sheet, write_sheets

CONFIG = load_config([REPOSITORY / "config.yaml"])
DATASETS = CONFIG["definitions"]["datasets"]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
EVEN, ODD = set("02468"), set("13579")

# The paper's Datasets section, and for the extra readings what its numbers imply.
SIDES: dict[str, tuple[set[str], set[str]]] = {
    "mnist": (EVEN, ODD),
    "fashion-mnist": (
        {"T-shirt/top", "Pullover", "Shirt", "Bag", "Coat"},
        {"Dress", "Trouser", "Sandal", "Sneaker", "Ankle boot"},
    ),
    "emnist-digits": (EVEN, ODD),
    "emnist-letters": (set(LETTERS[::2]), set(LETTERS[1::2])),
    "emnist-letters-a-i": (set("BDFH"), set("ACEGI")),
    "emnist-balanced": (EVEN | set(LETTERS[::2]) | set("aegq"), ODD | set(LETTERS[1::2]) | set("bdfhnrt")),
    "emnist-balanced-digits": (EVEN, ODD),
    "cifar-10": ({"bird", "cat", "deer", "dog", "frog", "horse"}, {"airplane", "automobile", "ship", "truck"}),
    "svhn": (set("234567"), set("0189")),
}


@pytest.mark.parametrize("dataset", list(DATASETS))
def test_the_sides_are_the_papers(dataset, small_edition, tmp_path):
    definition = DATASETS[dataset]
    assert tuple({str(name) for name in definition[side]} for side in ("positive", "negative")) == SIDES[dataset]
    images, _ = load_source(definition["source"], small_edition[0], None)
    labels = binarize(images, definition["positive"], definition["negative"], definition.get("dropped", ()))
    found, per_class = count_sides(labels)["train"], len(images.train_labels) // len(images.classes)
    assert [found["positive"], found["negative"]] == [per_class * len(side) for side in SIDES[dataset]]


def image_set(train, shape=(3, 2), classes=4):
    labels = np.array(train)
    images = np.broadcast_to(labels.reshape(-1, *[1] * len(shape)), (labels.size, *shape)).astype(np.uint8) * 10
    names = [f"class {k}" for k in range(classes)]
    return ImageSet(images, labels, images, labels, names, "nowhere", "none")


def test_counts_that_differ_are_named_and_nothing_is_written(mdpu, settings, tmp_path):
    results = tmp_path / "results"
    (results / "datasets" / "own").mkdir(parents=True)
    write_images(image_set([0, 0, 1, 2, 3]), results / "datasets" / "own" / "own.npz")
    definition = {
        "title": "Own",
        "source": "own.npz",
        "positive": ["class 0"],
        "negative": ["class 1"],
        "dropped": ["class 2", "class 3"],
        "counts": {"train": {"positive": 2, "negative": 1, "dropped": 2}, "test": {"positive": 3}},
    }
    options = settings(definitions={"datasets": {"own": definition}})
    status, said = mdpu("labels", "own", *options)
    assert status == 2
    assert said == (
        "error: config key definitions.datasets.own.counts.test.positive: 3 images are expected "
        "but the source has 2; correct the sides or the count\n"
    )
    assert not list(results.rglob("labels/*"))
    definition["counts"] = {"train": {"positive": 2, "negative": 1, "dropped": 2}}
    options = settings(definitions={"datasets": {"own": definition}})
    assert mdpu("labels", "own", *options)[0] == 0
    assert list(results.rglob("labels/*"))


def test_a_contact_sheet_shows_the_classes_of_a_side_in_turn():
    images = image_set([3, 1, 0, 1, 3, 1, 2, 2])
    labels = binarize(images, ["class 1", "class 3"], ["class 0"], ["class 2"])
    sheet = np.asarray(contact_sheet(images, labels, 1))
    assert sheet.shape == (3, 5 * (2 + GAP) - GAP)
    assert sheet[0, :: 2 + GAP].tolist() == [10, 10, 10, 30, 30]
    assert np.asarray(contact_sheet(images, labels, -1)).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize(("shape", "mode"), [((3, 2), "L"), ((3, 2, 1), "L"), ((3, 2, 3), "RGB"), ((3, 2, 5), "L")])
def test_images_of_any_channels_are_shown(shape, mode, tmp_path):
    images = image_set([0, 1], shape, 2)
    write_images(images, tmp_path / "images.npz")
    save_npz(tmp_path / "labels.npz", **binarize(images, ["class 0"], ["class 1"]))
    write_sheets(tmp_path / "images.npz", tmp_path / "labels.npz", tmp_path / "positive", tmp_path / "negative")
    with Image.open(tmp_path / "negative") as sheet:
        assert (sheet.mode, sheet.size) == (mode, (2, 3))
        assert np.asarray(sheet).max() == 10
