"""The seven datasets of the paper, through torchvision's classes, from small editions."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from publishers import cifar_batches, expect, idx, make_emnist_zip, serving

from mdpu.errors import UserError
from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.data.sources import SOURCES, load_source
from mdpu.pipeline.files import read_json

SEVEN = ("mnist", "fashion-mnist", "emnist-digits", "emnist-letters", "emnist-balanced", "cifar-10", "svhn")


def assert_images(images, truth):
    for name, array in truth.items():
        np.testing.assert_array_equal(getattr(images, name), array)


@pytest.mark.parametrize("source", SEVEN)
def test_a_source_comes_from_a_mirror_through_torchvision(source, small_edition, mdpu, settings, tmp_path):
    folder, truth = small_edition
    out = tmp_path / f"{source}.npz"
    with serving(folder) as mirror:
        status, said = mdpu("dataset", source, *settings(mirror=mirror.url), "--out", out)
    assert status == 0, said
    images = read_images(out)
    assert_images(images, truth[source])
    assert images.train_images.dtype == np.uint8
    assert images.train_labels.dtype == np.int64
    description = read_json(out.with_suffix(".json"))
    archives = SOURCES[source].archives()
    assert description["checksums"] == {Path(archive.path).name: f"md5:{archive.md5}" for archive in archives}
    assert description["licence"] and description["origin"]
    assert sorted(mirror.requests) == sorted(archive.path for archive in archives)
    assert not [entry.name for entry in tmp_path.glob(".*") if entry.suffix != ".seal"]


def test_fetch_gets_everything_that_can_be_had_and_names_the_rest(small_edition, mdpu, settings, tmp_path, mirror):
    partial = tmp_path / "partial"
    shutil.copytree(small_edition[0], partial)
    (partial / "cifar-10-python.tar.gz").unlink()
    (partial / "test_32x32.mat").write_bytes(b"spoilt")
    with serving(partial) as served:
        status, said = mdpu("fetch", *settings(mirror=served.url))
    assert status == 2
    assert "cifar-10: cifar-10-python.tar.gz could not be fetched" in said
    assert "svhn: test_32x32.mat could not be fetched" in said
    assert f"{tmp_path / 'data' / 'test_32x32.mat'} (MD5 " in said
    assert not (tmp_path / "data" / "test_32x32.mat").exists()
    # The mirror, empty, is what a node without network sees.
    status, said = mdpu("dataset", "mnist", *settings(mirror=mirror.url), "--out", tmp_path / "mnist.npz")
    assert status == 0, said
    assert mirror.requests == []
    assert_images(read_images(tmp_path / "mnist.npz"), small_edition[1]["mnist"])


def test_a_half_unpacked_file_in_data_dir_is_not_taken_for_whole(small_edition, tmp_path):
    folder, truth = small_edition
    shutil.copytree(folder, tmp_path / "data")
    (tmp_path / "data" / "MNIST" / "raw" / "train-images-idx3-ubyte").write_bytes(b"half")
    images, _ = load_source("mnist", tmp_path / "data", None)
    np.testing.assert_array_equal(images.train_images, truth["mnist"]["train_images"])


# -- archives with the right checksum and the wrong content -------------------------------------------


def _emnist_with(published, folder, **changes):
    with zipfile.ZipFile(published / "EMNIST" / "raw" / "gzip.zip") as archive:
        members: dict[str, bytes | None] = {name: archive.read(name) for name in archive.namelist()}
    members.update(changes)
    make_emnist_zip(
        folder / "EMNIST" / "raw" / "gzip.zip",
        {name: content for name, content in members.items() if content is not None},
    )


IMAGES = "gzip/emnist-letters-train-images-idx3-ubyte.gz"
LABELS = "gzip/emnist-letters-train-labels-idx1-ubyte.gz"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({IMAGES: None}, f"There is no item named '{IMAGES}' in the archive"),
        ({IMAGES: b"no gzip"}, "could not be read"),
        ({IMAGES: gzip.compress(idx(np.zeros((78, 28, 28)))[:-9])}, "cannot reshape array of size 61143 into shape"),
        ({LABELS: gzip.compress(idx(np.ones(77)))}, "78 images but labels of shape (77,)"),
        ({LABELS: gzip.compress(idx(np.full(78, 27)))}, "train_labels run from 26 to 26, outside the 26 named classes"),
    ],
)
def test_a_broken_emnist_ends_in_one_sentence(published, monkeypatch, mdpu, settings, tmp_path, change, said):
    _emnist_with(published[0], tmp_path / "mirror", **change)
    expect(monkeypatch, tmp_path / "mirror")
    out = tmp_path / "out" / "letters.npz"
    status, error = mdpu("dataset", "emnist-letters", *settings(mirror=str(tmp_path / "mirror")), "--out", out)
    assert status == 2
    assert error.splitlines()[-1].startswith("error: source emnist-letters: ")
    assert said in error
    assert not out.parent.exists()
    # The next run, with the right archive, recovers.
    monkeypatch.undo()
    expect(monkeypatch, published[0])
    load_source("emnist-letters", tmp_path / "data", str(published[0]))


def test_a_cifar_batch_with_another_checksum_is_not_unpickled(small_edition, monkeypatch, tmp_path):
    from torchvision.datasets import CIFAR10

    batches = cifar_batches(small_edition[1]["cifar-10"])
    batches["test_batch"] = batches["data_batch_1"]
    path = tmp_path / "data" / "cifar-10-python.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        for name, content in batches.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(CIFAR10, "tgz_md5", hashlib.md5(path.read_bytes()).hexdigest())
    with pytest.raises(UserError, match=r"source cifar-10: .* could not be read .*corrupted"):
        load_source("cifar-10", tmp_path / "data", None)
