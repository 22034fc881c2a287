"""Any PyTorch module as a network: what somebody brings along, beside the files of ``mdpu/learn/networks``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mdpu.errors import UserError
from mdpu.learn import pictures
from mdpu.learn.network import Architecture, check_images, unit_of
from mdpu.learn.pictures import Pictures, module_builder

MakeModule = Callable[[tuple[int, ...]], nn.Module]


@dataclass(frozen=True)
class NoSettings:
    """A module has been given its settings."""


@dataclass(frozen=True)
class OnePixel(Pictures):
    """Vectors as pictures of one pixel, which has a channel for each feature."""

    def __call__(self, images: NDArray[Any]) -> Tensor:
        """Return vectors (N, d) as (N, 1, 1, d), of uint8 or float32."""
        check_images(images, self.shape, self.unit)
        vectors = torch.from_numpy(np.ascontiguousarray(images))[:, None, None]
        return vectors if self.unit == 255 else vectors.float()


class PlainModule(nn.Module):
    """A trained network as a plain module, from rows as they are to scores (N,).

    Parameters
    ----------
    network : Module
        What was trained. Its own state dict fits the module that was brought along.
    preparation : Preparation
    standardisation : object, optional
        With ``centre`` and ``scale`` (d,), and ``bound``, beyond which values are outliers.
    sign, shift : float
        Scores are sign * g(x) + shift.
    """

    pixels: Tensor | None
    origin: Tensor
    directions: Tensor | None
    centre: Tensor
    scale: Tensor

    def __init__(
        self, network: nn.Module, preparation: Any, standardisation: Any = None, sign: float = 1.0, shift: float = 0.0
    ) -> None:
        super().__init__()
        self.network = network.module if isinstance(network, Checked) else network
        laid_out = {name: getattr(preparation, name, None) for name in ("pixels", "directions")}
        self.is_picture = len(preparation.shape) > 1 and all(part is None for part in laid_out.values())
        self.unit, self.sign, self.shift = preparation.unit, sign, shift
        self.bound = None if standardisation is None else standardisation.bound
        buffers = laid_out | {
            "origin": getattr(preparation, "centre", None),
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
            rows = torch.nan_to_num(((rows - self.centre) / self.scale).clamp(-self.bound, self.bound))
        x = rows.float() / self.unit
        if self.is_picture:
            x = x.permute(0, 3, 1, 2) if x.ndim == 4 else x.unsqueeze(1)
        else:
            x = x.flatten(1) if self.pixels is None else x.flatten(1).index_select(1, self.pixels)
            x = x if self.directions is None else (x - self.origin) @ self.directions
        scores: Tensor = self.network(x)
        return self.sign * scores.reshape(-1) + self.shift


class Checked(nn.Module):
    """A module that is held to its number of outputs.

    Parameters
    ----------
    module : Module
        From vectors (N, d) or pictures (N, C, H, W) to (N, outputs), or (N,) for one output.
    takes_vectors : bool
    outputs : int
    """

    def __init__(self, module: nn.Module, takes_vectors: bool, outputs: int) -> None:
        super().__init__()
        self.module, self.takes_vectors, self.outputs = module, takes_vectors, outputs

    def forward(self, images: Tensor) -> Tensor:
        """Return (N, outputs) for pictures (N, C, H, W)."""
        given: Tensor = self.module(images.flatten(1) if self.takes_vectors else images)
        if given.numel() != len(images) * self.outputs:
            raise UserError(
                f"the network returns an array of shape {tuple(given.shape)} for {len(images)} rows; "
                f"({len(images)}, {self.outputs}) is needed"
            )
        return given.reshape(-1, self.outputs)


def module_architecture(network: nn.Module | MakeModule) -> Architecture:
    """Return a module as a network that trains by itself.

    Parameters
    ----------
    network : Module or callable
        A module, which is copied with the weights that it has; or a function from the shape of an image to a module.
        torch's generator is seeded by the task before it is called. The module takes vectors (N, d) or pictures
        (N, C, H, W), uint8 values divided by 255.

    Raises
    ------
    UserError
        If it is neither; when the module is made, if it has a parameter that is not trained; and when it computes, if
        it returns another number of outputs.
    """
    if not callable(network):
        raise UserError(f"network is {network!r}; a name, a PyTorch module or a function that makes one is needed")

    def make(own: NoSettings, prepared: Pictures, outputs: int) -> nn.Module:
        module = copy.deepcopy(network) if isinstance(network, nn.Module) else network(prepared.shape)
        if not isinstance(module, nn.Module):
            raise UserError(f"network returns {module!r}; a PyTorch module is needed")
        parameters = dict(module.named_parameters())
        if not parameters:
            raise UserError("the network has no parameter to train")
        if frozen := [name for name, parameter in parameters.items() if not parameter.requires_grad]:
            raise UserError(f"the network's parameter {frozen[0]} is frozen; every parameter is trained here")
        return Checked(module, isinstance(prepared, OnePixel), outputs)

    # Nobody limits the memory where a module is brought along, and what it takes is not known before it is made.
    return Architecture(NoSettings, prepare, module_builder(make), memory=lambda *_: 0)


def prepare(images: NDArray[Any]) -> Pictures:
    """Return how vectors or pictures are laid out, given those of the training."""
    return OnePixel(images.shape[1:], unit_of(images)) if images.ndim == 2 else pictures.prepare(images)
