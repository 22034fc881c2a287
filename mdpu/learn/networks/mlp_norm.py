"""A perceptron with batch normalisation before each ReLU, as UU learning was published with (Lu et al., 2019)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mdpu.learn.network import Architecture
from mdpu.learn.pictures import CHUNK, Pictures, module_builder, prepare

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Own:
    """Settings of the perceptron.

    Attributes
    ----------
    hidden : tuple of int
        Units of each hidden layer.
    """

    hidden: tuple[int, ...] = (300, 300, 300, 300)


def module(own: Own, pictures: Pictures, outputs: int) -> nn.Module:
    """Return the module, from pictures (N, C, H, W) in [0, 1] to (N, outputs)."""
    from torch import nn

    layers: list[nn.Module] = [nn.Flatten()]
    widths = [math.prod(pictures.shape), *own.hidden]
    for below, above in itertools.pairwise(widths):
        layers += [nn.Linear(below, above, bias=False), nn.BatchNorm1d(above), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))


def memory(own: Own, shape: tuple[int, ...], rows: int, outputs: int, K: int, S: int) -> int:
    """Return the bytes that training takes: five times the weights, and three values of each unit for each image."""
    widths = [math.prod(shape), *own.hidden, outputs]
    weights = sum(below * above for below, above in itertools.pairwise(widths))
    return 4 * (5 * weights + 3 * max(rows, CHUNK) * sum(widths))


NETWORK = Architecture(Own, prepare, module_builder(module), memory)
