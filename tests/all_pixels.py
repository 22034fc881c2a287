"""A network that tests add by this one file: a linear score of all pixels."""

import math
from dataclasses import dataclass

from mdpu.learn.network import Architecture
from mdpu.learn.pictures import module_builder, prepare


@dataclass(frozen=True)
class Own:
    bias: bool = True


def module(own, pictures, outputs):
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(pictures.shape), outputs, bias=own.bias))


def memory(own, shape, rows, outputs, K, S):
    return 4 * 6 * math.prod(shape) * outputs


NETWORK = Architecture(Own, prepare, module_builder(module), memory)
