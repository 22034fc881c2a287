"""Networks of a stack of runs, each a forward and a backward pass.

A stack is rectangular: S minibatch streams (one per split) and K runs on each, so every tensor has the
leading axes (K, S). A network offers ``forward``, ``backward``, ``scores`` and ``parameters``; the
trainer knows no more of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from mdpu.randomness import Stream

WIDTH_MULTIPLE = 64  # matrix products on CPUs lose up to half their speed on widths such as 300
CHUNK = 10_000  # images scored at once


class Network(Protocol):
    """What the trainer asks of a network of K x S runs."""

    parameters: list[Tensor]

    def forward(self, images: Tensor) -> Tensor:
        """Return scores (K, S, rows) of uint8 images (S, rows, ...), keeping what backward needs.

        Here and below, a network of more than one output returns and takes (K, S, rows, outputs).
        """
        ...

    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradient of each parameter, given that of the scores (K, S, rows)."""
        ...

    def scores(self, images: Tensor) -> Tensor:
        """Return scores (K, S, N) of test images (N, ...) that all runs share."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Return all that training changes, by name; the tensors are the network's own."""
        ...


class StackedMLP:
    """The paper's multilayer perceptron, d-300-300-1 with ReLU and without batch normalisation.

    Layers are padded with zero weights to a multiple of 64 units. A padded unit is zero and has zero
    gradient for ever, so the padding changes the speed and nothing else. Grey values enter the products
    as integers, exact in every precision; the factor 1/255 is carried by the first layer's weights.

    Parameters
    ----------
    seeds : sequence of sequence of int, shape (K, S)
        Trial of each run; runs of one trial start from the same weights.
    inputs : int
        Pixels d of an image.
    hidden : sequence of int
        Units of each hidden layer.
    dtype : torch.dtype
        Type of the matrix products; weights and scores stay float32.
    pixels : Tensor, int64, optional
        The pixels that images hold, if they hold not all of the `inputs`.
    outputs : int
        Units of the last layer; with more than one, scores have a further axis.
    """

    def __init__(
        self,
        seeds: Sequence[Sequence[int]],
        inputs: int,
        hidden: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
        pixels: Tensor | None = None,
        outputs: int = 1,
    ) -> None:
        self.dtype = dtype
        self.outputs = outputs
        self.parameters = []  # weight (K, S, in, out) and bias (K, S, 1, out), layer by layer
        sizes = [inputs, *hidden, outputs]
        padded = [inputs, *(math.ceil(units / WIDTH_MULTIPLE) * WIDTH_MULTIPLE for units in hidden), outputs]
        for layer in range(len(sizes) - 1):
            rows, columns = sizes[layer : layer + 2]
            initial = {seed: _linear_init(seed, layer, rows, columns) for row in seeds for seed in row}
            values = torch.stack([torch.stack([initial[seed] for seed in row]) for row in seeds])
            pad = padded[layer + 1] - columns
            weight = functional.pad(values[:, :, :rows], (0, pad, 0, padded[layer] - rows))
            if layer == 0 and pixels is not None:
                weight = weight[:, :, pixels]
            bias = functional.pad(values[:, :, rows:], (0, pad))
            self.parameters += [weight.contiguous().to(device), bias.contiguous().to(device)]
        self._activations: list[Tensor] = []
        self._weights: list[Tensor] = []

    def _layers(self) -> list[tuple[Tensor, Tensor]]:
        weights, biases = self.parameters[0::2], self.parameters[1::2]
        scaled = [weights[0] / 255, *weights[1:]]
        return [(w.to(self.dtype), b.to(self.dtype)) for w, b in zip(scaled, biases, strict=True)]

    def forward(self, images: Tensor) -> Tensor:
        """Return scores, float32 (K, S, rows), of images, uint8 (S, rows, d)."""
        layers = self._layers()
        self._weights = [weight for weight, _ in layers]
        self._activations = [images.to(self.dtype)]  # (S, rows, d), shared by the K runs of a stream
        activation = self._activations[0]
        for weight, bias in layers[:-1]:
            activation = _affine(activation, weight, bias).relu_()  # (K, S, rows, units)
            self._activations.append(activation)
        return self._shaped(_affine(activation, *layers[-1]))

    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradients of `parameters`, float32."""
        gradients: list[Tensor] = []
        signal = gradient.to(self.dtype).view(*gradient.shape[:3], self.outputs)
        ones = signal.new_ones(*signal.shape[1:3], 1)  # (S, rows, 1): a bias is the weight of a constant input
        for layer in reversed(range(len(self._weights))):
            activation = self._activations[layer]
            gradients = [_outer(activation, signal).float(), _outer(ones, signal).float(), *gradients]
            if layer:
                signal = _affine(signal, self._weights[layer].transpose(2, 3))
                torch.ops.aten.threshold_backward.grad_input(signal, activation, 0, grad_input=signal)
        gradients[0] /= 255
        return gradients

    def scores(self, images: Tensor) -> Tensor:
        """Return scores, float32 (K, S, N), of test images, uint8 (N, d)."""
        layers = self._layers()
        streams = self.parameters[0].shape[1]
        found = []
        for chunk in images.split(CHUNK):
            activation = chunk.to(self.dtype).expand(streams, -1, -1)  # (S, rows, d)
            for weight, bias in layers[:-1]:
                activation = _affine(activation, weight, bias).relu_()
            found.append(self._shaped(_affine(activation, *layers[-1])))
        return torch.cat(found, dim=2)

    def state(self) -> dict[str, Tensor]:
        """Return weights and biases by name."""
        return {str(position): parameter for position, parameter in enumerate(self.parameters)}

    def _shaped(self, last: Tensor) -> Tensor:
        """Return the last layer (K, S, rows, outputs) in float32, as (K, S, rows) if it is one score."""
        return (last.squeeze(-1) if self.outputs == 1 else last).float()


def _linear_init(seed: int, layer: int, inputs: int, units: int) -> Tensor:
    """Return weights and, as the last row, biases drawn as `torch.nn.Linear` draws them: (inputs + 1, units)."""
    bound = 1 / math.sqrt(inputs)
    uniform = Stream(seed, "initial weights", layer).uniform(inputs + 1, units)
    return torch.from_numpy((2 * uniform - 1) * bound).float()


def _affine(left: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return left @ weight + bias per run; `left` is (K, S, rows, in), or (S, rows, in) shared by the K runs."""
    K, S = weight.shape[:2]
    shape = (K, S, left.shape[-2], weight.shape[-1])
    if left.device.type == "cpu":  # one product per run: batched ones reach half the speed here
        out = left.new_empty(shape)
        for k in range(K):
            for s in range(S):
                a = left[s] if left.dim() == 3 else left[k, s]
                if bias is None:
                    torch.mm(a, weight[k, s], out=out[k, s])
                else:
                    torch.addmm(bias[k, s], a, weight[k, s], out=out[k, s])
        return out
    if left.dim() == 3:
        out = torch.stack([torch.bmm(left, weight[k]) for k in range(K)])
    else:
        out = torch.bmm(left.flatten(0, 1), weight.flatten(0, 1)).view(shape)
    return out if bias is None else out.add_(bias)


def _outer(left: Tensor, signal: Tensor) -> Tensor:
    """Return left^T @ signal per run, (K, S, in, out): the gradient of a weight."""
    K, S = signal.shape[:2]
    if left.device.type == "cpu":
        out = left.new_empty(K, S, left.shape[-1], signal.shape[-1])
        for k in range(K):
            for s in range(S):
                a = left[s] if left.dim() == 3 else left[k, s]
                torch.mm(a.t(), signal[k, s], out=out[k, s])
        return out
    if left.dim() == 3:
        return torch.stack([torch.bmm(left.transpose(1, 2), signal[k]) for k in range(K)])
    return torch.matmul(left.transpose(2, 3), signal)


class ResNet34:
    """torchvision's ResNet-34, one run at a time (K = S = 1).

    Parameters
    ----------
    seed : int
        Trial; it decides the initial weights.
    stem : {'cifar', 'imagenet'}
        A 3x3 convolution of stride 1 without pooling, usual for 32x32 images, or torchvision's own 7x7.
    outputs : int
        Units of the last layer; with more than one, scores have a further axis.
    """

    def __init__(
        self, seed: int, stem: str, channels: int, dtype: torch.dtype, device: torch.device, outputs: int = 1
    ) -> None:
        from torchvision.models import resnet34

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(Stream(seed, "initial weights").integers(2**31, 1)[0]))
            module = resnet34(num_classes=outputs)
            if stem == "cifar":
                module.conv1 = nn.Conv2d(channels, 64, kernel_size=3, padding=1, bias=False)
                module.maxpool = nn.Identity()
            elif channels != 3:
                module.conv1 = nn.Conv2d(channels, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.module = module.to(device, memory_format=torch.channels_last)
        self.dtype, self.device, self.outputs = dtype, device, outputs
        self.parameters = [parameter.detach() for parameter in self.module.parameters()]
        self._scores: Tensor | None = None

    def _run(self, images: Tensor) -> Tensor:
        x = images.permute(0, 3, 1, 2).float().div(127.5).sub(1)  # (rows, C, H, W), channels last in memory
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            last = self.module(x).float()  # (rows, outputs)
        return last.view(1, 1, -1) if self.outputs == 1 else last[None, None]

    def forward(self, images: Tensor) -> Tensor:
        """Return scores, float32 (1, 1, rows), of images, uint8 (1, rows, H, W, C)."""
        self.module.train()
        with torch.enable_grad():
            self._scores = self._run(images[0])
        return self._scores.detach()

    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradients of `parameters`, float32."""
        assert self._scores is not None
        return list(torch.autograd.grad(self._scores, list(self.module.parameters()), gradient))

    def scores(self, images: Tensor) -> Tensor:
        """Return scores, float32 (1, 1, N), of test images, uint8 (N, H, W, C)."""
        self.module.eval()
        return torch.cat([self._run(chunk) for chunk in images.split(1000)], dim=2)

    def state(self) -> dict[str, Tensor]:
        """Return weights, and running statistics of the batch normalisation, by name."""
        return {name: value.detach() for name, value in self.module.state_dict().items()}
