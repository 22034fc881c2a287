"""Which device a process computes on, and in which precision."""

from __future__ import annotations

import torch

from mdpu.errors import UserError


def choose_device(wanted: str) -> torch.device:
    """Return the device for ``auto``, ``cpu`` or ``cuda``.

    Raises
    ------
    UserError
        If ``cuda`` is asked for and there is none.
    """
    available = torch.cuda.is_available()
    if wanted == "cuda" and not available:
        raise UserError("config key device: cuda is asked for, but torch finds no GPU; set device to auto or cpu")
    return torch.device("cuda" if available and wanted != "cpu" else "cpu")


def choose_dtype(precision: str, device: torch.device) -> torch.dtype:
    """Return the type of matrix products for a precision of the configuration, and set TF32 by it."""
    if precision == "auto":
        precision = "bf16" if device.type == "cuda" or _cpu_has_bf16() else "fp32"
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    return torch.bfloat16 if precision == "bf16" else torch.float32


def _cpu_has_bf16() -> bool:
    """Return whether this CPU multiplies bf16 matrices in hardware."""
    return torch.backends.mkldnn.is_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def describe(device: torch.device) -> str:
    """Return the device's name for provenance."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({torch.get_num_threads()} threads)"
