"""The paper's seven datasets from small editions, scikit-learn's digits, and real data where they
are at hand.
"""

import os
from pathlib import Path

import numpy as np
import publishers
import pytest
from torchvision import datasets

from mdpu.errors import UserError
from mdpu.pipeline.data.images import ARRAYS, read_images
from mdpu.pipeline.data.sources import SOURCES, load_source, write_source
from mdpu.pipeline.data.sources.idx import CLASSES
from mdpu.pipeline.files import REPOSITORY, read_json

REAL = Path(os.environ.get("MDPU_DATASETS", REPOSITORY.parent / "shared" / "datasets"))


@pytest.mark.parametrize("name", publishers.CLASSES)
def test_a_source_comes_whole_from_a_mirror(name, small_edition, tmp_path):
    folder, truth = small_edition
    out = tmp_path / f"{name}.npz"
    with publishers.serving(folder) as mirror:
        write_source(name, tmp_path / "data", mirror.url, out)
    images = read_images(out)
    for array in ARRAYS:
        np.testing.assert_array_equal(getattr(images, array), truth[name][array])
    assert (images.train_images.dtype, images.train_labels.dtype) == (np.uint8, np.int64)
    assert sorted(mirror.requests) == sorted(archive.path for archive in SOURCES[name].archives)
    description = read_json(out.with_suffix(".json"))
    assert (
        description["checksum"] == images.checksum
        and description["licence"]
        and description["origin"]
    )


def test_checksums_are_known_beforehand_and_never_change():
    """They are in the keys of runs, so another text would train all of them anew."""
    assert {name: source.checksum for name, source in SOURCES.items()} == {
        "mnist": "MNIST 13892946d4fb3b78",
        "fashion-mnist": "Fashion-MNIST 4d9a2030dd36faea",
        "emnist-digits": "EMNIST digits 58c8d27c78d21e728a6bc7b3cc06412e",
        "emnist-letters": "EMNIST letters 58c8d27c78d21e728a6bc7b3cc06412e",
        "emnist-balanced": "EMNIST balanced 58c8d27c78d21e728a6bc7b3cc06412e",
        "cifar-10": "CIFAR-10 c58f30108f718f92721af3b95e74349a",
        "svhn": "SVHN e26dedcc434d2e4c54c9b2d4a06d8373 eb5a983be6a315427106f1b164d9cef3",
        "digits": (
            "scikit-learn digits 16d04ced2e5d1d3be214d879ea4358f2fc4c5ccb84693882b64f32888959de25"
        ),
    }


def test_the_files_are_those_that_torchvision_knows():
    def known(name):
        return [(Path(archive.path).name, archive.md5) for archive in SOURCES[name].archives]

    assert known("mnist") == datasets.MNIST.resources
    assert known("fashion-mnist") == datasets.FashionMNIST.resources
    assert known("cifar-10") == [(datasets.CIFAR10.filename, datasets.CIFAR10.tgz_md5)]
    assert known("svhn") == [
        tuple(datasets.SVHN.split_list[part][1:]) for part in ("train", "test")
    ]
    for split, classes in CLASSES.items():
        assert known(f"emnist-{split}") == [("gzip.zip", datasets.EMNIST.md5)]
        names = [name for name in datasets.EMNIST.classes_split_dict[split] if name != "N/A"]
        assert list(classes) == [name.upper() if split == "letters" else name for name in names]


@pytest.mark.parametrize("name", publishers.CLASSES)
def test_the_metadata_name_the_files_of_the_source(name):
    metadata = read_json(REPOSITORY / "docs" / "croissant" / f"{name}.json")
    files = {(file["contentUrl"], file["md5"]) for file in metadata["distribution"]}
    assert files == {(archive.urls[0], archive.md5) for archive in SOURCES[name].archives}


IMAGES = "gzip/emnist-letters-train-images-idx3-ubyte.gz"
LABELS = "gzip/emnist-letters-train-labels-idx1-ubyte.gz"


@pytest.mark.parametrize(
    "change",
    [
        {IMAGES: b"no gzip"},
        {IMAGES: publishers.idx(np.zeros((78, 28, 28)))[:-9]},
        {LABELS: publishers.idx(np.ones(77))},
        {LABELS: publishers.idx(np.full(78, 27))},
    ],
)
def test_an_archive_of_wrong_content_is_named_and_nothing_is_written(
    published, monkeypatch, tmp_path, change
):
    publishers.write_emnist(tmp_path / "mirror", published[1], **change)
    publishers.expect(monkeypatch, tmp_path / "mirror")
    out = tmp_path / "out" / "letters.npz"
    with pytest.raises(UserError, match="emnist-letters"):
        write_source("emnist-letters", tmp_path / "data", str(tmp_path / "mirror"), out)
    assert not out.parent.exists()


def test_a_cifar_batch_with_another_checksum_is_not_unpickled(small_edition, monkeypatch, tmp_path):
    batches = publishers.cifar_batches(small_edition[1]["cifar-10"])
    publishers.write_cifar(tmp_path, batches | {"test_batch": batches["data_batch_1"]})
    publishers.expect(monkeypatch, tmp_path, batches)
    with pytest.raises(UserError, match="cifar-10"):
        load_source("cifar-10", tmp_path)


@pytest.mark.skipif(not REAL.is_dir(), reason="real data are not at hand")
@pytest.mark.parametrize(
    ("name", "counts", "checksum"),
    [
        (
            "mnist",
            (60_000, 10_000),
            "a72360dc13ab8f8fbbe0f6f8eac8bbf2848c895fff204e8c5698807a59390a63",
        ),
        (
            "fashion-mnist",
            (60_000, 10_000),
            "d829f425b7cd1e1931e680ae77175e33d43fd92161b3cac276b729442d72cd00",
        ),
        (
            "emnist-letters",
            (124_800, 20_800),
            "6f6985f6eb632368338628151968d99df0ded25a081e48d56dbb23bcb743b7f9",
        ),
    ],
)
def test_the_publishers_own_files_are_read(name, counts, checksum, tmp_path):
    images = load_source(name, tmp_path, str(REAL))
    assert (len(images.train_labels), len(images.test_labels)) == counts
    assert images.checksum == checksum
