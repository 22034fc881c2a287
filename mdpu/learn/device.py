"""The device that a process computes on, and its precision."""

from __future__ import annotations

import contextlib
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from mdpu.errors import UserError
from mdpu.learn.task import Precision


def choose_device(requested: str) -> torch.device:
    """Return the device for ``auto``, ``cpu`` or ``cuda``.

    Raises
    ------
    UserError
        If ``cuda`` is requested and there is no GPU.
    """
    available = torch.cuda.is_available()
    if requested == "cuda" and not available:
        raise UserError("device is cuda, but torch finds no GPU; set device to auto or cpu")
    return torch.device("cuda" if available and requested != "cpu" else "cpu")


@contextlib.contextmanager
def leased(names: Sequence[str], folder: Path | None = None, poll_seconds: float = 1.0) -> Iterator[int]:
    """Yield the position of a name that no other process holds; wait until there is one.

    Snakemake counts GPUs but does not assign them, so the jobs of a machine use file locks, which the
    system releases whenever a process ends.

    Parameters
    ----------
    names : sequence of str
        What to choose from, e.g. the UUIDs of the visible GPUs.
    folder : Path, optional
        Where the locks are; by default one shared by all processes of the machine.
    """
    folder = folder or Path(tempfile.gettempdir()) / "mdpu-leases"
    folder.mkdir(parents=True, exist_ok=True)
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
        time.sleep(poll_seconds)


@contextlib.contextmanager
def leased_device(requested: str) -> Iterator[torch.device]:
    """Yield the device to compute on; if several GPUs are visible, one that no other job holds.

    ``CUDA_VISIBLE_DEVICES``, which SLURM sets, limits the choice. Errors are those of `choose_device`.
    """
    device = choose_device(requested)
    if device.type == "cpu" or torch.cuda.device_count() == 1:
        yield device
        return
    names = [str(torch.cuda.get_device_properties(i).uuid) for i in range(torch.cuda.device_count())]
    with leased(names) as position:
        torch.cuda.set_device(position)
        yield torch.device("cuda", position)


def memory_budget(device: torch.device, memory_mb: int) -> int:
    """Return how many bytes a stack may take.

    On a GPU this is its free memory. Otherwise it is the job's memory without what Python, torch and the images take.
    """
    if device.type == "cuda":
        return int(0.85 * torch.cuda.mem_get_info(device)[0])
    return max(0, memory_mb - 1500) * 2**20


def resolve_precision(precision: Precision, device: torch.device) -> Precision:
    """Return ``fp32``, ``tf32`` or ``bf16``: a precision of the settings, with ``auto`` resolved for a device."""
    if precision == "auto":
        return "bf16" if device.type == "cuda" or _cpu_has_bf16() else "fp32"
    return precision


def choose_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """Return the type of matrix products for a precision of the settings, and switch TF32 on or off.

    The switch covers matrix products and convolutions; cuDNN's TF32 is on by default.
    """
    precision = resolve_precision(precision, device)
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    return torch.bfloat16 if precision == "bf16" else torch.float32


def _cpu_has_bf16() -> bool:
    """Return whether this CPU multiplies bf16 matrices in hardware."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def describe(device: torch.device) -> str:
    """Return the device's name for provenance: the model of the GPU, or of the CPU with the number of threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{cpu_model()} ({torch.get_num_threads()} threads)"


@cache
def cpu_model() -> str:
    """Return the model of this machine's CPU, with the widest instructions that torch uses on it."""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"
