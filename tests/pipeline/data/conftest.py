"""Fixtures: small editions of the datasets, and a server for them."""

from __future__ import annotations

import publishers
import pytest


@pytest.fixture
def mirror(tmp_path):
    """An empty folder, served."""
    (tmp_path / "served").mkdir()
    with publishers.serving(tmp_path / "served") as served:
        yield served


@pytest.fixture
def impatient(monkeypatch):
    """Make downloads give up soon."""
    from mdpu.pipeline.data import download

    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.3)


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A folder with a small edition of every archive, in its publisher's format, and the images of each source."""
    folder = tmp_path_factory.mktemp("published")
    truth = {
        "mnist": publishers.make_images(10, (28, 28), 1),
        "fashion-mnist": publishers.make_images(10, (28, 28), 2),
        "cifar-10": publishers.make_images(10, (32, 32, 3), 3),
        "svhn": publishers.make_images(10, (32, 32, 3), 4),
    }
    for split, classes in publishers.EMNIST_CLASSES.items():
        truth[f"emnist-{split}"] = publishers.make_images(classes, (28, 28), classes)
    publishers.write_mnist(folder / "MNIST" / "raw", truth["mnist"])
    publishers.write_mnist(folder / "FashionMNIST" / "raw", truth["fashion-mnist"])
    publishers.write_emnist(folder, publishers.emnist_members(truth))
    publishers.write_cifar(folder / "cifar-10-python.tar.gz", publishers.cifar_batches(truth["cifar-10"]))
    publishers.write_svhn(folder, truth["svhn"])
    return folder, truth


@pytest.fixture
def small_edition(published, monkeypatch):
    """The small archives, expected as they are."""
    folder, truth = published
    publishers.expect(monkeypatch, folder, publishers.cifar_batches(truth["cifar-10"]))
    return published
