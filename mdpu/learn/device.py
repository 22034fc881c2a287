"""The device that a process computes on, its precision, and how stacks are computed there."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from mdpu.errors import UserError
from mdpu.learn.network import Policy
from mdpu.learn.task import Precision


def choose_device(requested: str) -> torch.device:
    """Return the device for ``auto``, ``cpu``, ``cuda`` or, of several GPUs, ``cuda:1``.

    Raises
    ------
    UserError
        If it is none of these, or the GPU is not there.
    """
    kind, colon, number = str(requested).partition(":")
    if kind not in ("auto", "cpu", "cuda") or (colon and (kind != "cuda" or not number.isdecimal())):
        raise UserError(f"device is {requested!r}; it must be one of auto, cpu, cuda, or cuda:1 of several GPUs")
    available = torch.cuda.is_available()
    if kind == "cuda" and not available:
        raise UserError(f"device is {requested}, but torch finds no GPU; set device to auto or cpu")
    if number and int(number) >= torch.cuda.device_count():
        raise UserError(f"device is {requested}, but torch finds {torch.cuda.device_count()} GPUs, from cuda:0 on")
    return torch.device(requested if number else "cuda" if available and kind != "cpu" else "cpu")


def spread(device: torch.device) -> torch.device:
    """Return a GPU by number: where there are several and none is named, processes side by side take different ones.

    Workers of a grid search have consecutive process numbers, so they do not all take the first GPU.
    """
    several = str(device) == "cuda" and torch.cuda.device_count() > 1
    return torch.device("cuda", os.getpid() % torch.cuda.device_count()) if several else device


def choose_policy(device: torch.device, precision: Precision) -> Policy:
    """Return how stacks are computed on a device, in a precision of the settings."""
    dtype = torch.bfloat16 if resolve_precision(precision, device) == "bf16" else torch.float32
    if device.type == "cpu":
        return Policy(device, dtype)
    return Policy(
        device,
        dtype,
        shared_objective=True,
        batched_products=True,
        stack_by="shape",
        side_by_side=False,
        compiled=True,
    )


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
        Where the locks are; by default one that all processes of the user on this machine share.
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
def leased_device(requested: str) -> Iterator[torch.device]:
    """Yield the device to compute on: the CPU, or a GPU that no other job of this user holds.

    ``CUDA_VISIBLE_DEVICES``, which SLURM sets, limits the choice, and so does a number in ``cuda:1``. A GPU is known by
    its UUID, so jobs that see different GPUs under one number do not wait for one another. Errors are those of
    `choose_device`.
    """
    device = choose_device(requested)
    if device.type == "cpu":
        yield device
        return
    numbers = range(torch.cuda.device_count()) if str(device) == "cuda" else [device.index]
    names = [str(torch.cuda.get_device_properties(number).uuid) for number in numbers]
    with leased(names) as position:
        torch.cuda.set_device(numbers[position])
        yield torch.device("cuda", numbers[position])


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
        return "bf16" if _has_bf16(device) else "fp32"
    return precision


@contextlib.contextmanager
def float32_products(precision: Precision) -> Iterator[None]:
    """Compute the float32 products within the block in TF32 or exactly, then as before.

    This covers matrix products and convolutions; cuDNN's TF32 is on by default. The setting is the process's.
    """
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def _has_bf16(device: torch.device) -> bool:
    """Return whether a device multiplies bf16 matrices in hardware; GPUs do since compute capability 8 (A100)."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def describe(device: torch.device) -> str:
    """Return the device's name for provenance: the model of the GPU, or of the CPU with the number of threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{cpu_model()} ({threads} thread{'s' if threads > 1 else ''})"


@cache
def cpu_model() -> str:
    """Return the model of this machine's CPU, with the widest instructions that torch uses on it."""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"
