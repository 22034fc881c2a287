"""The paper's multilayer perceptron, d-300-300-1 with ReLU and without batch normalisation; many train as one."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpu.learn.network import Architecture, Seeds, check_images, unit_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mdpu.learn.perceptron import StackedMLP


CHUNK = 10_000  # images scored at once


@dataclass(frozen=True)
class Own:
    """Settings of the perceptron.

    Attributes
    ----------
    hidden : tuple of int
        Units of each hidden layer.
    """

    hidden: tuple[int, ...] = (300, 300)


@dataclass(frozen=True)
class Vectors:
    """Images as rows of those pixels that are in use in the training images.

    A pixel that is 0 in every training image (67 of MNIST's 784) teaches nothing and is left out.

    Attributes
    ----------
    shape : tuple of int
        Of one image.
    unit : float
        The value that represents 1: 255 for uint8 grey values, 1 for floats.
    pixels : ndarray, int64
        The pixels in use, in order.
    """

    shape: tuple[int, ...]
    unit: float
    pixels: NDArray[np.int64]

    def __call__(self, images: NDArray[Any]) -> Tensor:
        """Return images (N, *shape) as (N, d), of uint8 or float32."""
        import torch

        check_images(images, self.shape, self.unit)
        rows = torch.from_numpy(np.ascontiguousarray(images)).flatten(1)[:, torch.from_numpy(self.pixels)]
        return rows if self.unit == 255 else rows.float()


def padded(inputs: int) -> int:
    """Return the width of a layer's input: its units, the constant 1, and zeros up to a multiple of 16.

    On CPUs, matrix products lose up to a third of their speed at widths such as 300.
    """
    return math.ceil((inputs + 1) / 16) * 16


def prepare(images: NDArray[Any]) -> Vectors:
    """Return the layout of images, given those of the training."""
    used = images.reshape(len(images), -1).any(axis=0)
    return Vectors(images.shape[1:], unit_of(images), np.flatnonzero(used))


def build(
    seeds: Seeds, own: Own, vectors: Vectors, outputs: int, dtype: torch.dtype, device: torch.device
) -> StackedMLP:
    """Return K x S perceptrons with their initial weights."""
    from mdpu.learn.perceptron import StackedMLP

    inputs = math.prod(vectors.shape)
    return StackedMLP(seeds, inputs, own.hidden, dtype, device, vectors.pixels, outputs, vectors.unit)


def memory(own: Own, shape: tuple[int, ...], rows: int, outputs: int, K: int, S: int) -> int:
    """Return the bytes that the training of K x S perceptrons takes, all counted as float32."""
    inputs = padded(math.prod(shape))
    widths = [padded(units) for units in own.hidden]
    weights = sum(below * above for below, above in itertools.pairwise([inputs, *widths, outputs]))
    # Weights count six times: weights, copy in the type of the products, gradient, Adam's two moments, update.
    per_model = 6 * weights + 3 * max(rows, CHUNK) * (sum(widths) + outputs)
    per_stream = (2 * rows + CHUNK) * inputs
    return 4 * (K * S * per_model + S * per_stream)


NETWORK = Architecture(Own, prepare, build, memory, stacks=True)
