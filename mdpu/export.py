"""A trained network as a plain PyTorch module, which needs nothing of this package and goes
wherever torch goes.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from mdpu.networks import Preparation


class PlainModule(nn.Module):
    """A trained network that turns rows as they are into scores (N,).

    It holds a copy of the weights, on the CPU. Its state dict can be read into another such module,
    and `torch.export` and ONNX take it for any number of rows.

    Parameters
    ----------
    network : Module
        What was trained, `Trained.module`.
    preparation : Preparation
        What it wants as input, `Trained.preparation`.
    standardisation : Standardisation, optional
        For tables: ``centre`` and ``scale`` (d,), and ``bound``, beyond which values are outliers.
    sign, shift : float
        Scores are sign * g(x) + shift.
    """

    pixels: Tensor | None
    origin: Tensor
    directions: Tensor | None
    centre: Tensor
    scale: Tensor

    def __init__(
        self,
        network: nn.Module,
        preparation: Preparation,
        standardisation: Any = None,
        sign: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__()
        self.network = copy.deepcopy(network).cpu()
        self.sign = sign
        self.shift = shift
        self.is_picture = preparation.is_picture
        self.unit = preparation.unit
        self.bound = None if standardisation is None else standardisation.bound
        buffers = {
            "pixels": preparation.pixels,
            "origin": preparation.centre,
            "directions": preparation.directions,
            "centre": getattr(standardisation, "centre", None),
            "scale": getattr(standardisation, "scale", None),
        }
        for name, value in buffers.items():
            if value is None:
                setattr(self, name, None)  # export counts buffers that are None
            else:
                self.register_buffer(name, torch.tensor(value))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the scores (N,) of rows (N, ...), log-odds where the method's scores are."""
        if self.bound is not None:
            rows = torch.nan_to_num(
                ((rows - self.centre) / self.scale).clamp(-self.bound, self.bound)
            )
        x = rows.float() / self.unit
        if self.is_picture:
            x = x.permute(0, 3, 1, 2) if x.ndim == 4 else x.unsqueeze(1)  # (N, C, H, W)
        else:
            x = x.flatten(1) if self.pixels is None else x.flatten(1).index_select(1, self.pixels)
            x = x if self.directions is None else (x - self.origin) @ self.directions
        scores: Tensor = self.network(x)
        return self.sign * scores.reshape(-1) + self.shift
