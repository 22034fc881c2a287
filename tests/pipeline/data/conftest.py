"""Fixtures: small editions of the datasets, and a server for them."""

import publishers
import pytest


@pytest.fixture
def mirror(tmp_path):
    """An empty folder, served."""
    (tmp_path / "served").mkdir()
    with publishers.serving(tmp_path / "served") as served:
        yield served


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A folder with a small edition of every archive, in its publisher's format, and the images of
    each source.
    """
    folder = tmp_path_factory.mktemp("published")
    truth = {name: publishers.make_images(name) for name in publishers.CLASSES}
    publishers.write_mnist(folder / "MNIST" / "raw", truth["mnist"])
    publishers.write_mnist(folder / "FashionMNIST" / "raw", truth["fashion-mnist"])
    publishers.write_emnist(folder, truth)
    publishers.write_cifar(folder, publishers.cifar_batches(truth["cifar-10"]))
    publishers.write_svhn(folder, truth["svhn"])
    return folder, truth


@pytest.fixture
def small_edition(published, monkeypatch):
    """The small archives, expected as they are."""
    publishers.expect(monkeypatch, published[0], publishers.cifar_batches(published[1]["cifar-10"]))
    return published
