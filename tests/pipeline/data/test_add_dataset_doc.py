"""The pages on datasets, executed as they stand."""

from __future__ import annotations

import re

import pandas as pd
import pytest
import yaml

from mdpu.pipeline.config import load_config
from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.data.labels import binarize, count_sides
from mdpu.pipeline.data.sources import load_source
from mdpu.pipeline.files import REPOSITORY

BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return [match.groupdict() for match in BLOCK.finditer((REPOSITORY / "docs" / page).read_text())]


@pytest.fixture(scope="module")
def walked(make_clone, tmp_path_factory):
    """A clone in which every block of the page has been done in its order."""
    clone = make_clone(tmp_path_factory.mktemp("walk"))
    for block in blocks("how-to/add-dataset.md"):
        if block["file"]:
            (clone.folder / block["file"]).write_text(block["text"])
        elif block["language"] == "bash":
            clone.run("env", f"PYTHONPATH={clone.folder}", "bash", "-euo", "pipefail", "-c", block["text"])
    return clone.folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rings", "stripes", "points"])
def test_a_new_dataset_is_a_row_of_the_tables(walked, name):
    table = pd.read_csv(walked / "results" / name / "tables" / "quick-pairs.csv")
    assert set(table["dataset"]) == {name}
    assert set(table["method"]) == {"ure", "relu", "abs"}
    # Shapes that an eye tells apart at once, learned from 400 pairs.
    assert table["mean"].max() > 75
    assert name.capitalize() in (walked / "results" / name / "tables" / "quick-pairs.tex").read_text()


@pytest.mark.slow
def test_the_folder_of_pictures_is_the_npz_again(walked):
    pictures = read_images(walked / "results" / "datasets" / "own" / "pictures.npz")
    rings = read_images(walked / "results" / "datasets" / "own" / "rings.npz")
    assert pictures.classes == rings.classes == ["disk", "ring"]
    order = rings.train_labels.argsort(kind="stable")
    assert (pictures.train_images == rings.train_images[order]).all()
    assert (pictures.train_labels == rings.train_labels[order]).all()


def test_the_alternative_reading_of_emnist_balanced_is_whole(small_edition, tmp_path):
    (text,) = [
        block["text"] for block in blocks("reference/datasets.md") if block["language"] == "yaml" and block["file"]
    ]
    (tmp_path / "overlay.yaml").write_text(text)
    assert yaml.safe_load(text)
    config = load_config([REPOSITORY / "config.yaml", tmp_path / "overlay.yaml"])
    definition = config["definitions"]["datasets"]["emnist-balanced"]
    images, _ = load_source("emnist-balanced", small_edition[0], None)
    counts = count_sides(binarize(images, definition["positive"], definition["negative"], definition["dropped"]))
    class_size = {"train": len(images.train_labels) // 47, "test": len(images.test_labels) // 47}
    full = {"train": 2400, "test": 400}
    for part, sides in definition["counts"].items():
        for side, known in sides.items():
            assert counts[part][side] // class_size[part] * full[part] == known
