"""How long does it take, and how much memory, to prepare as many images as EMNIST-Digits has?

    python benchmarks/preparing.py

Writes an archive of EMNIST's form with 240,000 training and 40,000 test images, strokes on an empty ground, which are
compressed about as well as handwriting, and has `mdpu dataset emnist-digits` verify, unpack, read and write it. Prints
wall and processor seconds and the peak of memory in MiB, which Linux alone tells.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from mdpu.pipeline.files import REPOSITORY

COUNTS = {"train": 240_000, "test": 40_000}
# In a process of its own, whose peak is not that of what made the archive; its argument is the archive's checksum.
COMMAND = """
import json, re, sys, time
from pathlib import Path
import torchvision.datasets
torchvision.datasets.EMNIST.md5 = sys.argv.pop(1)
from mdpu.pipeline.cli import app
started = time.perf_counter()
app(sys.argv[1:], standalone_mode=False)
print(json.dumps({
    "wall_seconds": round(time.perf_counter() - started, 2),
    "processor_seconds": round(time.process_time(), 2),
    # Not ru_maxrss, which a child inherits from the process that forked it.
    "peak_mib": int(re.search("VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024,
}))
"""


def idx(array: np.ndarray) -> bytes:
    """Return an array of bytes in the format of MNIST's files."""
    content = array.astype(np.uint8)
    return bytes([0, 0, 8, content.ndim]) + np.array(content.shape, ">i4").tobytes() + content.tobytes()


def write_archive(path: Path) -> None:
    """Write an archive as EMNIST's publishers offer it, with the split Digits alone."""
    generator = np.random.default_rng(0)
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for part, count in COUNTS.items():
            images = np.zeros((1000, 28, 28), np.uint8)
            images[:, 6:22, 10:18] = generator.integers(0, 256, (1000, 16, 8))
            files = {"images-idx3": np.tile(images, (count // 1000, 1, 1)), "labels-idx1": np.arange(count) % 10}
            for name, content in files.items():
                packed = gzip.compress(idx(content), compresslevel=1)
                archive.writestr(f"gzip/emnist-digits-{part}-{name}-ubyte.gz", packed)


def main() -> None:
    """Print the figures of one preparation."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = folder / "mirror" / "EMNIST" / "raw" / "gzip.zip"
        write_archive(archive)
        overlay = folder / "overlay.yaml"
        overlay.write_text(json.dumps({"data_dir": f"{folder}/data", "mirror": f"{folder}/mirror"}))
        md5 = hashlib.md5(archive.read_bytes()).hexdigest()
        command = [sys.executable, "-c", COMMAND, md5, "dataset", "emnist-digits", "--config", str(overlay)]
        subprocess.run([*command, "--out", str(folder / "emnist-digits.npz")], cwd=REPOSITORY, check=True)


if __name__ == "__main__":
    main()
