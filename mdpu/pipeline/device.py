"""The GPU of a training job, which is the one with the fewest jobs, and the name of a device for
provenance.
"""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import torch
from filelock import FileLock, Timeout


@contextlib.contextmanager
def joined(names: Sequence[str], folder: Path | None = None) -> Iterator[int]:
    """Yield the position of the name, such as a GPU's UUID, that the fewest processes have joined;
    of equals the first.

    Snakemake counts GPUs but does not assign them. So each job of a machine holds a lock on a file
    of its own, whose name begins with that of its GPU. The system releases the lock whenever the
    process ends. By default the files are in a folder that all processes of the user share.
    """
    user = os.getuid() if hasattr(os, "getuid") else ""
    folder = folder or Path(tempfile.gettempdir()) / f"mdpu-jobs-{user}"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "choosing.lock"):
        jobs = [_count_jobs(folder, name) for name in names]
        position = jobs.index(min(jobs))
        job = FileLock(folder / f"{names[position]}.{uuid4().hex}.job")
        job.acquire()
    try:
        yield position
    finally:
        job.release()
        Path(job.lock_file).unlink(missing_ok=True)


def _count_jobs(folder: Path, name: str) -> int:
    """Return how many processes hold a file of a name, and remove the files of those that ended."""
    held = 0
    for path in folder.glob(f"{glob.escape(name)}.*.job"):
        lock = FileLock(path)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            held += 1
        else:
            lock.release()
            path.unlink(missing_ok=True)
    return held


@contextlib.contextmanager
def least_used_gpu(device: torch.device) -> Iterator[torch.device]:
    """Yield the GPU with the fewest jobs of this user; a job never waits.

    How many jobs run at once is Snakemake's to say, by ``--resources gpu=N``.
    ``CUDA_VISIBLE_DEVICES``, which SLURM sets, limits the choice, and so does a number in
    ``cuda:1``. A GPU is known by its UUID, so jobs that see one GPU under different numbers count
    each other.
    """
    numbers = range(torch.cuda.device_count()) if device.index is None else [device.index]
    with joined(
        [str(torch.cuda.get_device_properties(number).uuid) for number in numbers]
    ) as position:
        torch.cuda.set_device(numbers[position])
        yield torch.device("cuda", numbers[position])


def describe(device: torch.device) -> str:
    """Return the device's name for provenance: the GPU's model, or the CPU's, its widest
    instructions and threads.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
            name,
        )
    threads = torch.get_num_threads()
    return (
        f"{name}, {torch.backends.cpu.get_cpu_capability()} ({threads} "
        f"thread{'s' if threads > 1 else ''})"
    )
