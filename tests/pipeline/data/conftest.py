"""Fixtures: small editions of the datasets, a server for them, and the command line."""

from __future__ import annotations

import gzip
import io
import tarfile

import numpy as np
import pytest
import yaml
from publishers import EMNIST_CLASSES, Truth, cifar_batches, expect, idx, make_emnist_zip, make_images, serving

from mdpu.pipeline.files import REPOSITORY


@pytest.fixture
def mirror(tmp_path):
    """An empty folder, served."""
    (tmp_path / "served").mkdir()
    with serving(tmp_path / "served") as served:
        yield served


@pytest.fixture
def impatient(monkeypatch):
    """Make downloads give up soon."""
    from mdpu.pipeline.data import download

    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.3)


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A folder with a small edition of every archive, in its publisher's format, and what is in them.

    The truth holds upright images, and class ids from 0 in the order of the class names.
    """
    import scipy.io

    folder = tmp_path_factory.mktemp("published")
    truth: Truth = {}

    def images_of(source, classes, shape):
        found: dict[str, np.ndarray] = {}
        for part in ("train", "test"):
            seed = sum(source.encode()) + len(part)
            found[f"{part}_images"], found[f"{part}_labels"] = make_images(classes, part, shape, seed)
        truth[source] = found
        return found

    for source, name in (("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")):
        raw = folder / name / "raw"
        raw.mkdir(parents=True)
        found = images_of(source, 10, (28, 28))
        for part, prefix in (("train", "train"), ("test", "t10k")):
            (raw / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(found[f"{part}_images"])))
            (raw / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(found[f"{part}_labels"])))

    members = {}
    for split, classes in EMNIST_CLASSES.items():
        found = images_of(f"emnist-{split}", classes, (28, 28))
        for part in ("train", "test"):
            prefix = f"gzip/emnist-{split}-{part}"
            transposed = found[f"{part}_images"].transpose(0, 2, 1)
            first = 1 if split == "letters" else 0
            members[f"{prefix}-images-idx3-ubyte.gz"] = gzip.compress(idx(transposed))
            members[f"{prefix}-labels-idx1-ubyte.gz"] = gzip.compress(idx(found[f"{part}_labels"] + first))
    make_emnist_zip(folder / "EMNIST" / "raw" / "gzip.zip", members)

    found = images_of("cifar-10", 10, (32, 32, 3))
    with tarfile.open(folder / "cifar-10-python.tar.gz", "w:gz") as archive:
        for name, content in cifar_batches(found).items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))

    found = images_of("svhn", 10, (32, 32, 3))
    for part in ("train", "test"):
        labels = found[f"{part}_labels"].astype(np.uint8)
        content = {
            "X": found[f"{part}_images"].transpose(1, 2, 3, 0),
            "y": np.where(labels == 0, 10, labels)[:, None].astype(np.uint8),
        }
        scipy.io.savemat(folder / f"{part}_32x32.mat", content, do_compression=True)
    return folder, truth


@pytest.fixture
def small_edition(published, monkeypatch):
    """The small archives, with torchvision expecting their checksums."""
    expect(monkeypatch, published[0])
    return published


@pytest.fixture
def settings(tmp_path):
    """Options that lay settings over config.yaml, with all folders in the test's own."""

    def write(**overlay):
        path = tmp_path / "overlay.yaml"
        folders = {"data_dir": str(tmp_path / "data"), "results_dir": str(tmp_path / "results")}
        path.write_text(yaml.safe_dump({**folders, **overlay}))
        return ["--config", str(REPOSITORY / "config.yaml"), "--config", str(path)]

    return write


@pytest.fixture
def mdpu(monkeypatch, capfd):
    """Run a command of the command line; return its exit status and what it said on standard error."""
    from mdpu.pipeline import cli

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["mdpu", *map(str, arguments)])
        capfd.readouterr()
        status = 0
        try:
            cli.main()
        except SystemExit as end:
            status = int(end.code or 0)
        return status, capfd.readouterr().err

    return run
