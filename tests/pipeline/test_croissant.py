"""Croissant metadata: what it says of files is so, and MLCommons' own reader takes it."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from mdpu.pipeline.croissant import describe_source, describe_splits
from mdpu.pipeline.data.diagnostics import write_diagnosed_split
from mdpu.pipeline.data.images import ImageSet, write_images
from mdpu.pipeline.data.labels import write_binarized
from mdpu.pipeline.data.sources import SOURCES
from mdpu.pipeline.files import write_json

SIDES = {"source": "mnist", "positive": ["zero"], "negative": ["one"]}
LICENCES = ("MIT", "CC BY-SA 3.0", "none stated; for research, with citation")


@pytest.fixture
def results(tmp_path):
    """Images, labels and two splits; returns the paths of the images and, by name, of the splits."""
    images = np.arange(40 * 4, dtype=np.uint8).reshape(40, 2, 2)
    labels = np.arange(40) % 2
    for number, licence in enumerate(LICENCES):
        image_set = ImageSet(images, labels, images[:10], labels[:10], ["zero", "one"], "Somewhere", licence)
        write_images(image_set, tmp_path / "datasets" / f"{number}.npz")
    path = tmp_path / "datasets" / "0.npz"
    write_binarized(path, "some", SIDES, tmp_path / "labels.npz")
    splits = {}
    for seed in (1, 2):
        name = f"some/base/m3/prior0.4/n5/seed{seed}"
        splits[name] = tmp_path / "splits" / f"{name}.npz"
        write_diagnosed_split(tmp_path / "labels.npz", splits[name], 3, 0.4, n=5, n_unlabeled=4, trial=name)
    return path, splits


def test_a_file_of_the_results_has_its_checksum_size_and_address(results, tmp_path):
    images, splits = results
    folder = tmp_path / "croissant"
    for node in (describe_source("own-some", images, folder), describe_splits("some", SIDES, splits, images, folder)):
        for file in node["distribution"]:
            content = (folder / file["contentUrl"]).resolve().read_bytes()
            assert file["sha256"] == hashlib.sha256(content).hexdigest()
            assert file["contentSize"] == f"{len(content)} B"


def test_records_say_what_the_files_hold(results, tmp_path):
    images, splits = results
    parts, classes = describe_source("own-some", images, tmp_path)["recordSet"]
    assert [row["parts/images"] for row in parts["data"]] == [40, 10]
    assert [row["classes/name"] for row in classes["data"]] == ["zero", "one"]
    trials, sides = describe_splits("some", SIDES, splits, images, tmp_path)["recordSet"]
    assert [tuple(row.values()) for row in trials["data"]] == [
        (name, "dominant", 3, 0.4, 5, seed) for seed, name in enumerate(splits, start=1)
    ]
    assert [tuple(row.values()) for row in sides["data"]] == [("zero", 1), ("one", -1)]


def test_mlcommons_reader_loads_it(results, tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant")
    images, splits = results
    nodes = [describe_source(name, images.with_name(f"{i % 3}.npz"), tmp_path) for i, name in enumerate(SOURCES)]
    for node in (*nodes, describe_splits("some", SIDES, splits, images, tmp_path)):
        write_json(tmp_path / "one.json", node)
        loaded = mlcroissant.Dataset(tmp_path / "one.json")
        assert loaded.metadata.ctx.conforms_to.value == node["conformsTo"]
        assert not loaded.metadata.ctx.issues.errors | loaded.metadata.ctx.issues.warnings, node["name"]
        for table in node["recordSet"]:
            assert len(list(loaded.records(table["@id"]))) == len(table["data"])
