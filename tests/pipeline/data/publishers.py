"""Files in the publishers' formats, and a server on the loopback address that serves them, well or badly."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import struct
import tarfile
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

EMNIST_CLASSES = {"digits": 10, "letters": 26, "balanced": 47}
PER_CLASS = {"train": 3, "test": 2}


@dataclass
class Mirror:
    """A folder served over HTTP; `faults` says, per path, what goes wrong with its requests."""

    folder: Path
    url: str = ""
    faults: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    stalled: threading.Event = field(default_factory=threading.Event)


def _handler(mirror):
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format, *args):
            pass

        def do_GET(self):
            path = self.path.lstrip("/")
            mirror.requests.append(path)
            fault, file = mirror.faults.get(path, ""), mirror.folder / path
            if fault == "escapes":
                self.send_error(404, "\x1b[31mred")
            elif fault.isdigit() or not file.is_file():
                self.send_error(int(fault) if fault.isdigit() else 404)
            elif fault == "hang up":
                self.close_connection = True
            else:
                with contextlib.suppress(ConnectionError):
                    self.send(file.read_bytes(), fault)

        def send(self, body, fault):
            length = {"half announced": len(body) // 2, "negative": -1}.get(fault, len(body))
            self.send_response(200)
            if fault != "no length":
                self.send_header("Content-Length", str(length))
            self.end_headers()
            if fault == "wrong bytes":
                body = bytes(byte ^ 1 for byte in body)
            half = fault in ("closes midway", "half announced", "stalls")
            self.wfile.write(body[: len(body) // 2] if half else body)
            if fault == "stalls":
                mirror.stalled.set()
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


def idx(array):
    """An array of bytes in the idx format."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def make_images(classes, part, shape, seed):
    """Random images, `PER_CLASS` of each class, shuffled."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.repeat(np.arange(classes), PER_CLASS[part]))
    return generator.integers(0, 256, (labels.size, *shape), dtype=np.uint8), labels


Truth = dict[str, dict[str, np.ndarray]]


def make_emnist_zip(path, members):
    """Write members, which are gzipped idx files, as EMNIST's gzip.zip."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def cifar_batches(found):
    """CIFAR-10's eight pickles: five of training images, one of test images, and the class names."""

    def batch(images, labels):
        rows = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        return pickle.dumps({"data": rows, "labels": labels.tolist()}, protocol=2)

    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    images, labels = np.array_split(found["train_images"], 5), np.array_split(found["train_labels"], 5)
    batches = {f"data_batch_{k + 1}": batch(images[k], labels[k]) for k in range(5)}
    return {
        **batches,
        "test_batch": batch(found["test_images"], found["test_labels"]),
        "batches.meta": pickle.dumps({"label_names": names}, protocol=2),
    }


def expect(monkeypatch, folder):
    """Let torchvision expect the checksums of the files in `folder`, where they are."""
    from torchvision import datasets

    def md5(path):
        return hashlib.md5(path.read_bytes()).hexdigest()

    for dataset in (datasets.MNIST, datasets.FashionMNIST):
        raw = folder / dataset.__name__ / "raw"
        if raw.exists():
            monkeypatch.setattr(dataset, "resources", [(file, md5(raw / file)) for file, _ in dataset.resources])
    if (zipped := folder / "EMNIST" / "raw" / "gzip.zip").exists():
        monkeypatch.setattr(datasets.EMNIST, "md5", md5(zipped))
    if (cifar := folder / "cifar-10-python.tar.gz").exists():
        monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", md5(cifar))
        with tarfile.open(cifar) as archive:
            sums = {
                Path(member.name).name: hashlib.md5(archive.extractfile(member).read()).hexdigest()
                for member in archive.getmembers()
            }
        for attribute in ("train_list", "test_list"):
            batches = [[file, sums[file]] for file, _ in getattr(datasets.CIFAR10, attribute)]
            monkeypatch.setattr(datasets.CIFAR10, attribute, batches)
        monkeypatch.setattr(datasets.CIFAR10, "meta", {**datasets.CIFAR10.meta, "md5": sums["batches.meta"]})
    if (folder / "train_32x32.mat").exists():
        parts = {
            part: [url, file, md5(folder / file) if (folder / file).exists() else known]
            for part, (url, file, known) in datasets.SVHN.split_list.items()
        }
        monkeypatch.setattr(datasets.SVHN, "split_list", parts)
