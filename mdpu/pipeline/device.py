"""The GPU of a training job, which no other job of the user holds, and the name of a device for provenance."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from filelock import FileLock, Timeout


@contextlib.contextmanager
def leased(names: Sequence[str], folder: Path | None = None, poll_seconds: float = 1.0) -> Iterator[int]:
    """Yield the position of a name, such as a GPU's UUID, that no other process holds; wait until there is one.

    Snakemake counts GPUs but does not assign them, so the jobs of a machine use file locks, which the system releases
    whenever a process ends. By default the locks are in a folder that all processes of the user share.
    """
    user = os.getuid() if hasattr(os, "getuid") else ""
    folder = folder or Path(tempfile.gettempdir()) / f"mdpu-leases-{user}"
    folder.mkdir(parents=True, exist_ok=True)
    waiting = False
    while True:
        for position, name in enumerate(names):
            lock = FileLock(folder / f"{name}.lock")
            try:
                lock.acquire(blocking=False)
            except Timeout:
                continue
            try:
                yield position
            finally:
                lock.release()
            return
        if not waiting:
            print(f"waiting for a GPU: other jobs hold all {len(names)}", file=sys.stderr)
        waiting = True
        time.sleep(poll_seconds)


@contextlib.contextmanager
def leased_gpu(device: torch.device) -> Iterator[torch.device]:
    """Yield a GPU that no other job of this user holds.

    ``CUDA_VISIBLE_DEVICES``, which SLURM sets, limits the choice, and so does a number in ``cuda:1``. A GPU is known by
    its UUID, so jobs that see different GPUs under one number do not wait for one another.
    """
    numbers = range(torch.cuda.device_count()) if device.index is None else [device.index]
    with leased([str(torch.cuda.get_device_properties(number).uuid) for number in numbers]) as position:
        torch.cuda.set_device(numbers[position])
        yield torch.device("cuda", numbers[position])


def describe(device: torch.device) -> str:
    """Return the device's name for provenance: the GPU's model, or the CPU's, its widest instructions and threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    threads = torch.get_num_threads()
    return f"{name}, {torch.backends.cpu.get_cpu_capability()} ({threads} thread{'s' if threads > 1 else ''})"
