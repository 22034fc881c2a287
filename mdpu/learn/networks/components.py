"""The perceptron on the images' principal components: 60 numbers an image instead of 784 pixels, so a step costs less.

Components are not whitened: one scale makes their root mean square 1. They see no labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpu.learn.network import Architecture, Policy, Seeds, check_images, in_parts, unit_of
from mdpu.learn.networks import mlp

if TYPE_CHECKING:
    from torch import Tensor

COMPONENTS = 60
SEEN = 10_000  # images that the components are learned from, spread over all


@dataclass(frozen=True)
class Components:
    """Images as rows of their principal components.

    Attributes
    ----------
    shape : tuple of int
        Of one image.
    unit : float
        The value that represents 1: 255 for uint8 grey values, 1 for floats.
    centre : ndarray, float32, shape (d,)
        The mean image, in units of 1.
    directions : ndarray, float32, shape (d, components)
    """

    shape: tuple[int, ...]
    unit: float
    centre: NDArray[np.float32]
    directions: NDArray[np.float32]

    def __call__(self, images: NDArray[Any]) -> Tensor:
        """Return images (N, *shape) as float32 (N, components)."""
        import torch

        check_images(images, self.shape, self.unit)
        projected = [(_rows(part, self.unit) - self.centre) @ self.directions for part in in_parts(images)]
        return torch.from_numpy(np.concatenate(projected).astype(np.float32))


def prepare(images: NDArray[Any]) -> Components:
    """Return the components of the training images."""
    unit = unit_of(images)
    x = _rows(images[:: max(1, len(images) // SEEN)], unit)
    centre = x.mean(axis=0)
    variances, directions = np.linalg.eigh(np.cov(x, rowvar=False, bias=True).reshape(2 * x.shape[1:]))
    count = min(COMPONENTS, *x.shape)
    scale = np.sqrt(variances[-count:].mean()) or 1.0
    directions = directions[:, : -count - 1 : -1] / scale
    return Components(images.shape[1:], unit, centre.astype(np.float32), directions.astype(np.float32))


def build(seeds: Seeds, own: mlp.Own, components: Components, outputs: int, policy: Policy) -> mlp.StackedMLP:
    """Return K x S perceptrons with their initial weights."""
    inputs = components.directions.shape[1]
    return mlp.StackedMLP(seeds, inputs, own.hidden, policy, outputs=outputs, unit=1.0)


def memory(own: mlp.Own, shape: tuple[int, ...], rows: int, outputs: int, K: int, S: int) -> int:
    """Return the bytes that the training of K x S perceptrons takes."""
    return mlp.memory(own, (COMPONENTS,), rows, outputs, K, S)


def _rows(images: NDArray[Any], unit: float) -> NDArray[np.float64]:
    """Return images as rows (N, d), in units of 1. Doubles make rounding the same whatever the number of threads."""
    return np.asarray(images.reshape(len(images), -1), np.float64) / unit


NETWORK = Architecture(mlp.Own, prepare, build, memory, stacks=True)
