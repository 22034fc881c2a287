"""Preparing as many images as EMNIST-Digits has."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from publishers import idx, make_emnist_zip

from mdpu.files import REPOSITORY, read_json

COMMAND = """
import json, re, sys, time
from pathlib import Path
import torchvision.datasets
torchvision.datasets.EMNIST.md5 = sys.argv.pop(1)
from mdpu.cli import app
started = time.perf_counter()
app(sys.argv[1:], standalone_mode=False)
print(json.dumps({
    "preparing_seconds": time.perf_counter() - started,
    "cpu_seconds": time.process_time(),
    # Not ru_maxrss, which a child inherits from the process that forked it.
    "peak_mib": int(re.search("VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024,
}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from Linux's /proc")
def test_240_000_images_take_less_than_20_seconds_and_1_gib(settings: Callable[..., list[str]], tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    members = {}
    for part, count in (("train", 240_000), ("test", 40_000)):
        # Strokes on an empty ground, so that the files are compressed about as well as handwriting.
        images = np.zeros((1000, 28, 28), np.uint8)
        images[:, 6:22, 10:18] = generator.integers(0, 256, (1000, 16, 8))
        prefix = f"gzip/emnist-digits-{part}"
        content = idx(np.tile(images, (count // 1000, 1, 1)))
        members[f"{prefix}-images-idx3-ubyte.gz"] = gzip.compress(content, compresslevel=1)
        members[f"{prefix}-labels-idx1-ubyte.gz"] = gzip.compress(idx(np.arange(count) % 10))
    archive = tmp_path / "mirror" / "EMNIST" / "raw" / "gzip.zip"
    make_emnist_zip(archive, members)
    md5 = hashlib.md5(archive.read_bytes()).hexdigest()
    out = tmp_path / "emnist-digits.npz"
    options = settings(mirror=str(tmp_path / "mirror"))
    child = subprocess.run(
        [sys.executable, "-c", COMMAND, md5, "dataset", "emnist-digits", *options, "--out", str(out)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert child.returncode == 0, child.stderr
    measured = json.loads(child.stdout)
    print(measured)
    assert measured["cpu_seconds"] < 20
    assert measured["peak_mib"] < 1024
    assert read_json(out.with_suffix(".json"))["train"] == 240_000
