"""Files in the publishers' formats, and a server on the loopback address that serves them, well or
badly.
"""

import contextlib
import gzip
import hashlib
import io
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
}
CLASSES |= {"cifar-10": 10, "svhn": 10}


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
    found = {}
    shape = (32, 32, 3) if source in ("cifar-10", "svhn") else (28, 28)
    for part, count in (("train", 3), ("test", 2)):
        labels = generator.permutation(np.repeat(np.arange(CLASSES[source]), count))
        found[f"{part}_images"] = generator.integers(0, 256, (labels.size, *shape), dtype=np.uint8)
        found[f"{part}_labels"] = labels
    return found


def idx(array):
    """A gzipped idx file of an array of bytes."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.astype(np.uint8).tobytes())


def write_mnist(folder, found):
    folder.mkdir(parents=True)
    for part, prefix in (("train", "train"), ("test", "t10k")):
        (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(idx(found[f"{part}_images"]))
        (folder / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(idx(found[f"{part}_labels"]))


def write_emnist(folder, truth, **changes):
    """Write EMNIST's gzip.zip: transposed images, and Letters counted from 1; `changes` are other
    members.
    """
    members = {}
    for source, found in truth.items():
        for part in ("train", "test") if source.startswith("emnist") else ():
            transposed = found[f"{part}_images"].transpose(0, 2, 1)
            labels = found[f"{part}_labels"]
            members[f"gzip/{source}-{part}-images-idx3-ubyte.gz"] = idx(transposed)
            members[f"gzip/{source}-{part}-labels-idx1-ubyte.gz"] = idx(
                labels + source.endswith("letters")
            )
    path = folder / "EMNIST" / "raw" / "gzip.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, **changes}.items():
            archive.writestr(name, content)


def cifar_batches(found):
    """CIFAR-10's eight pickles: five of training images, one of test images, and the class
    names.
    """

    def batch(images, labels):
        rows = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        return pickle.dumps({"data": rows, "labels": labels.tolist()}, protocol=2)

    images = np.array_split(found["train_images"], 5)
    labels = np.array_split(found["train_labels"], 5)
    batches = {f"data_batch_{k + 1}": batch(images[k], labels[k]) for k in range(5)}
    meta = pickle.dumps({"label_names": [f"class {k}" for k in range(10)]}, protocol=2)
    return batches | {
        "test_batch": batch(found["test_images"], found["test_labels"]),
        "batches.meta": meta,
    }


def write_cifar(folder, batches):
    with tarfile.open(folder / "cifar-10-python.tar.gz", "w:gz") as archive:
        for name, content in batches.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def write_svhn(folder, found):
    for part in ("train", "test"):
        images = found[f"{part}_images"].transpose(1, 2, 3, 0)
        labels = found[f"{part}_labels"]
        content = {"X": images, "y": np.where(labels == 0, 10, labels)[:, None].astype(np.uint8)}
        scipy.io.savemat(folder / f"{part}_32x32.mat", content, do_compression=True)


def expect(monkeypatch, folder, batches=None):
    """Let the sources expect the archives as they are in `folder`, and torchvision the pickles of
    CIFAR-10.
    """
    from torchvision.datasets import CIFAR10

    def md5(content):
        return hashlib.md5(content).hexdigest()

    for name, source in SOURCES.items():
        there = [
            (archive, folder / archive.path)
            for archive in source.archives
            if (folder / archive.path).exists()
        ]
        if there:
            archives = [replace(archive, md5=md5(path.read_bytes())) for archive, path in there]
            monkeypatch.setitem(SOURCES, name, replace(source, archives=archives))
    if batches:
        monkeypatch.setattr(
            CIFAR10, "tgz_md5", md5((folder / "cifar-10-python.tar.gz").read_bytes())
        )
        monkeypatch.setattr(CIFAR10, "meta", {**CIFAR10.meta, "md5": md5(batches["batches.meta"])})
        for listed in ("train_list", "test_list"):
            monkeypatch.setattr(
                CIFAR10,
                listed,
                [[file, md5(batches[file])] for file, _ in getattr(CIFAR10, listed)],
            )
