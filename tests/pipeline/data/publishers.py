"""Files in the publishers' formats, and a server on the loopback address that serves them, well or
badly.
"""

import contextlib
import gzip
import hashlib
import io
import itertools
import pickle
import struct
import tarfile
import threading
import zipfile
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import scipy.io

from mdpu.pipeline.data.sources import SOURCES

CLASSES = {
    "mnist": 10,
    "fashion-mnist": 10,
    "emnist-digits": 10,
    "emnist-letters": 26,
    "emnist-balanced": 47,
    "cifar-10": 10,
    "svhn": 10,
}


@dataclass
class Mirror:
    """A folder served over HTTP; `faults` says, per path, what goes wrong with its requests."""

    folder: Path
    url: str = ""
    faults: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)


def _handler(mirror):
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format, *args):
            pass

        def do_GET(self):
            path = self.path.lstrip("/")
            mirror.requests.append(path)
            fault = mirror.faults.get(path, "")
            file = mirror.folder / path
            if fault == "error" or not file.is_file():
                self.send_error(404, "\x1b[31mred")
            else:
                with contextlib.suppress(ConnectionError):
                    self.send(file.read_bytes(), fault)

        def send(self, body, fault):
            self.send_response(200)
            self.end_headers()
            if fault == "wrong bytes":
                body = bytes(byte ^ 1 for byte in body)
            if fault == "a web page":
                body = b"\n<!DOCTYPE html><title>Sign in</title>"
            while fault == "never ends":
                self.wfile.write(body)
            self.wfile.write(
                body[: len(body) // 2] if fault in ("closes midway", "stalls") else body
            )
            if fault == "stalls":
                mirror.release.wait(20)

    return Handler


@contextlib.contextmanager
def serving(folder):
    mirror = Mirror(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(mirror))
    server.daemon_threads = True
    mirror.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield mirror
    finally:
        mirror.release.set()
        server.shutdown()
        thread.join()
        server.server_close()


def make_images(source):
    """Random images of a source, three of each class for training and two for testing; class ids
    from 0.
    """
    generator = np.random.default_rng(list(source.encode()))
    classes = np.arange(CLASSES[source])
    shape = (32, 32, 3) if source in ("cifar-10", "svhn") else (28, 28)
    images = {}
    for part, count in (("train", 3), ("test", 2)):
        labels = generator.permutation(np.repeat(classes, count))
        pixels = generator.integers(256, size=(len(labels), *shape), dtype=np.uint8)
        images[f"{part}_images"] = pixels
        images[f"{part}_labels"] = labels
    return images


def idx(array):
    """A gzipped idx file of an array of bytes."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.astype(np.uint8).tobytes())


def write_mnist(folder, images):
    folder.mkdir(parents=True)
    for part, prefix in (("train", "train"), ("test", "t10k")):
        (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(idx(images[f"{part}_images"]))
        (folder / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(idx(images[f"{part}_labels"]))


def write_emnist(folder, truth, **changes):
    """Write EMNIST's gzip.zip: transposed images, and Letters counted from 1; `changes` are other
    members.
    """
    members = {}
    sources = [source for source in truth if source.startswith("emnist")]
    for source, part in itertools.product(sources, ("train", "test")):
        transposed = truth[source][f"{part}_images"].transpose(0, 2, 1)
        labels = truth[source][f"{part}_labels"]
        if source == "emnist-letters":
            labels = labels + 1
        members[f"gzip/{source}-{part}-images-idx3-ubyte.gz"] = idx(transposed)
        members[f"gzip/{source}-{part}-labels-idx1-ubyte.gz"] = idx(labels)
    path = folder / "EMNIST" / "raw" / "gzip.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, **changes}.items():
            archive.writestr(name, content)


def cifar_batches(images):
    """CIFAR-10's eight pickles: five of training images, one of test images, and the class
    names.
    """
    classes = [f"class {k}" for k in range(10)]
    batches = {
        "test_batch": _cifar_batch(images["test_images"], images["test_labels"]),
        "batches.meta": pickle.dumps({"label_names": classes}, protocol=2),
    }
    pixels = np.array_split(images["train_images"], 5)
    labels = np.array_split(images["train_labels"], 5)
    for k in range(5):
        batches[f"data_batch_{k + 1}"] = _cifar_batch(pixels[k], labels[k])
    return batches


def write_cifar(folder, batches):
    with tarfile.open(folder / "cifar-10-python.tar.gz", "w:gz") as archive:
        for name, content in batches.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def _cifar_batch(images, labels):
    rows = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return pickle.dumps({"data": rows, "labels": labels.tolist()}, protocol=2)


def write_svhn(folder, images):
    for part in ("train", "test"):
        labels = images[f"{part}_labels"]
        ids = np.where(labels == 0, 10, labels).astype(np.uint8)
        pixels = images[f"{part}_images"].transpose(1, 2, 3, 0)
        content = {"X": pixels, "y": ids[:, None]}
        scipy.io.savemat(folder / f"{part}_32x32.mat", content, do_compression=True)


def expect(monkeypatch, folder, batches=None):
    """Let the sources expect the archives as they are in `folder`, and torchvision the pickles of
    CIFAR-10.
    """
    for name, source in SOURCES.items():
        archives = []
        for archive in source.archives:
            path = folder / archive.path
            if path.exists():
                archives.append(replace(archive, md5=_md5(path.read_bytes())))
        if archives:
            monkeypatch.setitem(SOURCES, name, replace(source, archives=archives))
    if batches:
        _expect_batches(monkeypatch, folder, batches)


def _expect_batches(monkeypatch, folder, batches):
    from torchvision.datasets import CIFAR10

    archive = folder / "cifar-10-python.tar.gz"
    meta = {**CIFAR10.meta, "md5": _md5(batches["batches.meta"])}
    monkeypatch.setattr(CIFAR10, "tgz_md5", _md5(archive.read_bytes()))
    monkeypatch.setattr(CIFAR10, "meta", meta)
    for name in ("train_list", "test_list"):
        files = [file for file, _ in getattr(CIFAR10, name)]
        monkeypatch.setattr(CIFAR10, name, [[file, _md5(batches[file])] for file in files])


def _md5(content):
    return hashlib.md5(content).hexdigest()
