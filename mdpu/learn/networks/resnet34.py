"""torchvision's ResNet-34, the paper's network for colour images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mdpu.learn.network import Architecture
from mdpu.learn.pictures import CHUNK, Pictures, module_builder, prepare

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Own:
    """Settings of the ResNet.

    Attributes
    ----------
    stem : {'cifar', 'imagenet'}
        A 3x3 convolution of stride 1 without pooling, usual for 32x32 images, or torchvision's own 7x7.
    """

    stem: Literal["cifar", "imagenet"] = "cifar"


def module(own: Own, pictures: Pictures, outputs: int) -> nn.Module:
    """Return the module, from pictures (N, C, H, W) in [0, 1] to (N, outputs)."""
    from torch import nn
    from torchvision.models import resnet34

    network = resnet34(num_classes=outputs)
    if own.stem == "cifar":
        network.conv1 = nn.Conv2d(pictures.channels, 64, kernel_size=3, padding=1, bias=False)
        network.maxpool = nn.Identity()
    elif pictures.channels != 3:
        network.conv1 = nn.Conv2d(pictures.channels, 64, kernel_size=7, stride=2, padding=3, bias=False)
    return network


def memory(own: Own, shape: tuple[int, ...], rows: int, outputs: int, K: int, S: int) -> int:
    """Return the bytes that training takes: five times 21 million weights, and the activations of a minibatch.

    With the CIFAR stem, a 32x32 image keeps 8.0 MB of float32 activations for the backward pass. Other sizes need
    memory in proportion to their pixels, and torchvision's stem needs a twelfth. Scoring takes a seventh of that for
    each of the `CHUNK` images that are scored at once.
    """
    pixels = shape[0] * shape[1] / 32**2
    activations = 8.0e6 * pixels / (1 if own.stem == "cifar" else 12)
    return int(5 * 4 * 21.3e6 + max(rows, CHUNK / 7) * activations)


NETWORK = Architecture(Own, prepare, module_builder(module), memory)
