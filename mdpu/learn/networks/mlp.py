"""The paper's multilayer perceptron, d-300-300-1 with ReLU and without batch normalisation; many train as one.

A stack is rectangular: S minibatch streams and K models on each, so every tensor has the leading axes (K, S). Forward
and backward passes are written out. torch is imported in functions only, so that plans can read the settings.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mdpu.learn.network import Architecture, Policy, Seeds, check_images, in_parts, unit_of
from mdpu.randomness import Stream

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

# Per model (k, s) the model k of its stream whose products are its own too, or None where they are all zero. Without
# origins, all products are batched.
Origins = list[list[int | None]] | None
CHUNK = 10_000  # images scored at once
Result = TypeVar("Result")


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
    used = np.any([part.reshape(len(part), -1).any(axis=0) for part in in_parts(images)], axis=0)
    return Vectors(images.shape[1:], unit_of(images), np.flatnonzero(used))


def build(seeds: Seeds, own: Own, vectors: Vectors, outputs: int, policy: Policy) -> StackedMLP:
    """Return K x S perceptrons with their initial weights."""
    return StackedMLP(seeds, math.prod(vectors.shape), own.hidden, policy, vectors.pixels, outputs, vectors.unit)


def memory(own: Own, shape: tuple[int, ...], rows: int, outputs: int, K: int, S: int) -> int:
    """Return the bytes that the training of K x S perceptrons takes, all counted as float32."""
    inputs = padded(math.prod(shape))
    widths = [padded(units) for units in own.hidden]
    weights = sum(below * above for below, above in itertools.pairwise([inputs, *widths, outputs]))
    # Weights count six times: weights, copy in the type of the products, gradient, Adam's two moments, update.
    per_model = 6 * weights + 3 * max(rows, CHUNK) * (sum(widths) + outputs)
    per_stream = (2 * rows + CHUNK) * inputs
    return 4 * (K * S * per_model + S * per_stream)


def _threaded(passes: Callable[[StackedMLP, Tensor], Result]) -> Callable[[StackedMLP, Tensor], Result]:
    """Make a method of the network compute with all threads of its stack, if its products are in bf16.

    oneDNN cuts a bf16 product by rows and columns, never along a sum, and whatever else the passes do rounds each
    element by itself. So the bits are those of one thread. MKL does not promise that for float32.
    """

    @wraps(passes)
    def threaded(network: StackedMLP, values: Tensor) -> Result:
        import torch

        with network.policy.all_threads() if network.policy.dtype == torch.bfloat16 else nullcontext():
            return passes(network, values)

    return threaded


class StackedMLP:
    """The paper's multilayer perceptron, d-300-300-1 with ReLU and without batch normalisation.

    Each layer is one matrix per run: its weights and, in the next row, its biases, which a constant input
    multiplies. The matrices are padded with zeros to multiples of 16. The padding and its gradient are always
    zero, so it changes nothing but the speed. Grey values enter the products as integers, which every
    precision represents exactly; the first layer includes the factor 1/255.

    Parameters
    ----------
    seeds : sequence of sequence of int or str, shape (K, S)
        Seed of each model; models with the same seed start from the same weights.
    inputs : int
        Pixels d of an image.
    hidden : sequence of int
        Units of each hidden layer.
    policy : Policy
        How it computes; weights and scores are float32 whatever the type of the products.
    pixels : ndarray, int64, optional
        The pixels that images contain, if not all of the `inputs`.
    outputs : int
        Units of the last layer; with more than one, scores have an additional axis.
    unit : float
        The value that represents 1 in images: 255 for uint8 grey values, 1 for floats.

    Attributes
    ----------
    parameters : list of Tensor, float32, shapes (K, S, padded inputs + 1, padded units)
        Layer by layer.
    buffers : list of Tensor
        None.
    """

    def __init__(
        self,
        seeds: Seeds,
        inputs: int,
        hidden: Sequence[int],
        policy: Policy,
        pixels: NDArray[np.int64] | None = None,
        outputs: int = 1,
        unit: float = 255.0,
    ) -> None:
        import torch
        from torch.nn.functional import pad

        self.policy = policy
        self.outputs = outputs
        self.unit = unit
        self.sizes = [inputs if pixels is None else len(pixels), *hidden]  # inputs of each layer: where its bias is
        self.parameters: list[Tensor] = []
        for layer, (rows, columns) in enumerate(itertools.pairwise([inputs, *hidden, outputs])):
            initial = {seed: _linear_init(seed, layer, rows, columns) for row in seeds for seed in row}
            values = torch.stack([torch.stack([initial[seed] for seed in row]) for row in seeds])
            if layer == 0 and pixels is not None:
                values = values[:, :, [*pixels.tolist(), rows]]
            below = padded(self.sizes[layer]) - values.shape[2]
            right = padded(columns) - columns if layer < len(hidden) else 0
            self.parameters.append(pad(values, (0, right, 0, below)).contiguous().to(policy.device))
        self.buffers: list[Tensor] = []
        self._activations: list[Tensor] = []
        self._weights: list[Tensor] = []
        self._origins: Origins = None
        self._memory: dict[str, Tensor] = {}

    def _kept(self, name: str, *shape: int) -> Tensor:
        """Return a tensor in memory that is kept under `name`; the next minibatch overwrites it.

        New memory would cost a CPU one page fault per 4 KiB: half of the faults of a training on MNIST pairs, and
        4 to 10 % of its time (docs/explanation/performance.md).
        """
        import torch

        size = math.prod(shape)
        if name not in self._memory or self._memory[name].numel() < size:
            self._memory[name] = torch.empty(size, dtype=self.policy.dtype, device=self.parameters[0].device)
        return self._memory[name][:size].view(shape)

    def _weights_of_raw_values(self) -> list[Tensor]:
        first, *others = self.parameters
        return [weight.to(self.policy.dtype) for weight in (first / self.unit, *others)]

    def _equal_models(self) -> Origins:
        return None if self.policy.batched_products else _origins(self.parameters)

    def _layers(self, images: Tensor, weights: list[Tensor], origins: Origins, purpose: str) -> list[Tensor]:
        """Return the inputs of each layer, and the last one's outputs, for images (S or 1, rows, d).

        They are the images' values (S, rows, padded d), which the K runs of a stream share; then activations
        (K, S, rows, padded units), all with the constant input; and finally the outputs (K, S, rows, outputs).
        """
        K, S = weights[0].shape[:2]
        rows, d = images.shape[1:]
        values = self._kept(f"values {purpose}", len(images), rows, padded(d))
        values[..., :d] = images
        values[..., d] = self.unit
        values[..., d + 1 :] = 0
        inputs: list[Tensor] = [values.expand(S, -1, -1)]
        for layer, weight in enumerate(weights):
            out = self._kept(f"layer {layer} {purpose}", K, S, rows, weight.shape[-1])
            inputs.append(_product(inputs[-1], weight, out, origins))
            if layer < len(weights) - 1:
                out.relu_()
                out[..., self.sizes[layer + 1]] = 1
        return inputs

    @_threaded
    def forward(self, images: Tensor) -> Tensor:
        """Return scores, float32 (K, S, rows), of images (S, rows, d)."""
        self._weights = self._weights_of_raw_values()
        self._origins = self._equal_models()
        *self._activations, last = self._layers(images, self._weights, self._origins, "to train on")
        return self._shaped(last)

    @_threaded
    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradients of `parameters`, float32.

        If the scores of a run have no gradient, for example because its corrected risk is flat below zero, no
        parameter has one. Where products are not batched, those of such a run are skipped.
        """
        import torch

        gradients: list[Tensor] = []
        signal = gradient.to(self.policy.dtype).view(*gradient.shape[:3], self.outputs)
        origins = _origins_of_gradients(gradient, self._origins)
        for layer in reversed(range(len(self._weights))):
            activation = self._activations[layer]
            gradients.insert(0, _outer(activation, signal, origins).float())
            if layer:
                out = self._kept(f"signal {layer}", *activation.shape)
                signal = _product(signal, self._weights[layer].transpose(2, 3), out, origins)
                torch.ops.aten.threshold_backward.grad_input(signal, activation, 0, grad_input=signal)
                signal[..., self.sizes[layer]] = 0  # nothing changes the constant input
        gradients[0] /= self.unit
        return gradients

    @_threaded
    def scores(self, images: Tensor) -> Tensor:
        """Return scores, float32 (K, S, N), of images (N, d) that all models share."""
        import torch

        weights, origins = self._weights_of_raw_values(), self._equal_models()
        chunks = images[None].split(CHUNK, dim=1)
        return torch.cat([self._shaped(self._layers(c, weights, origins, "to score")[-1]) for c in chunks], dim=2)

    def linear(self, matrices: Sequence[Tensor], k: int, s: int) -> list[Tensor]:
        """Return weight and bias per layer of run (k, s), in the layout of `torch.nn.Linear`, cut out of padding.

        Parameters
        ----------
        matrices : sequence of Tensor
            `parameters`, or gradients of them.
        k, s : int
        """
        cut = []
        for matrix, inputs, units in zip(matrices, self.sizes, [*self.sizes[1:], self.outputs], strict=True):
            cut += [matrix[k, s, :inputs, :units].t(), matrix[k, s, inputs, :units]]
        return cut

    def plain(self) -> nn.Sequential:
        """Return the one model as torch's layers on the CPU, from rows (N, d) of the pixels in use."""
        from torch import nn

        layers: list[nn.Module] = []
        parts = iter(self.linear(self.parameters, 0, 0))
        for weight, bias in zip(parts, parts, strict=True):
            layer = nn.Linear(weight.shape[1], weight.shape[0])
            layer.load_state_dict({"weight": weight, "bias": bias})
            layers += [layer, nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def take(self, k: int, s: int, device: torch.device | None = None) -> StackedMLP:
        """Return one model as a stack of 1 x 1 with its own memory."""
        taken = copy.copy(self)
        taken.policy = replace(self.policy, device=device or self.policy.device)
        taken.parameters = [parameter[k, s][None, None].clone().to(device) for parameter in self.parameters]
        taken._activations, taken._weights, taken._origins, taken._memory = [], [], None, {}
        return taken

    def state(self) -> dict[str, Tensor]:
        """Return the matrices by name."""
        return {str(position): parameter for position, parameter in enumerate(self.parameters)}

    def _shaped(self, last: Tensor) -> Tensor:
        """Return the last layer (K, S, rows, outputs) in float32, as (K, S, rows) if it is one score."""
        import torch

        return (last.squeeze(-1) if self.outputs == 1 else last).to(torch.float32, copy=True)


def _linear_init(seed: int | str, layer: int, inputs: int, units: int) -> Tensor:
    """Return weights and, as the last row, biases drawn as `torch.nn.Linear` draws them: (inputs + 1, units)."""
    import torch

    bound = 1 / math.sqrt(inputs)
    uniform = Stream(seed, "initial weights", layer).uniform(inputs + 1, units)
    return torch.from_numpy((2 * uniform - 1) * bound).float()


def _origins(parameters: Sequence[Tensor]) -> Origins:
    """Return, for each run, the first run of its stream with the same weights.

    URE, ReLU and ABS of one trial are equal until the first minibatch with a negative risk estimate, and they are
    trained as one until then. Equality is tested, not assumed.
    """
    import torch

    K, S = parameters[0].shape[:2]

    def same(k: int, j: int, s: int) -> bool:
        return all(torch.equal(matrix[k, s], matrix[j, s]) for matrix in parameters)

    return [[next(j for j in range(k + 1) if j == k or same(k, j, s)) for s in range(S)] for k in range(K)]


def _origins_of_gradients(gradient: Tensor, origins: Origins) -> Origins:
    """Return, for each run, the run of the same weights and gradient (K, S, rows), or None for no gradient."""
    import torch

    if origins is None:
        return None
    found: list[list[int | None]] = []
    for k, row in enumerate(origins):
        found.append([])
        for s, j in enumerate(row):
            own = k if j is None or not torch.equal(gradient[k, s], gradient[j, s]) else found[j][s] if j < k else k
            found[k].append(own if gradient[k, s].any() else None)
    return found


def _product(left: Tensor, weight: Tensor, out: Tensor, origins: Origins = None) -> Tensor:
    """Return left @ weight per run in `out`; `left` is (K, S, rows, in), or (S, rows, in) shared by the K runs.

    Without origins the products are batched.
    """
    import torch

    if origins is not None:
        for k, s in _computed(out, origins):
            torch.mm(left[s] if left.dim() == 3 else left[k, s], weight[k, s], out=out[k, s])
    else:
        for k in range(len(weight)):
            torch.bmm(left if left.dim() == 3 else left[k], weight[k], out=out[k])
    return out


def _outer(left: Tensor, signal: Tensor, origins: Origins = None) -> Tensor:
    """Return left^T @ signal per run, (K, S, in, out): the gradient of a weight."""
    import torch

    K, S = signal.shape[:2]
    if origins is not None:
        out = left.new_empty(K, S, left.shape[-1], signal.shape[-1])
        for k, s in _computed(out, origins):
            torch.mm((left[s] if left.dim() == 3 else left[k, s]).t(), signal[k, s], out=out[k, s])
        return out
    if left.dim() == 3:
        return torch.stack([torch.bmm(left.transpose(1, 2), signal[k]) for k in range(K)])
    return torch.matmul(left.transpose(2, 3), signal)


def _computed(out: Tensor, origins: list[list[int | None]]) -> Iterator[tuple[int, int]]:
    """Yield the runs of `out` (K, S, ...) to compute one by one; fill in the others from them.

    This is for CPUs, where batched products reach half the speed of single ones.
    """
    for k, s in itertools.product(*map(range, out.shape[:2])):
        origin = origins[k][s]
        if origin is None:
            out[k, s].zero_()
        elif origin < k:
            out[k, s].copy_(out[origin, s])
        else:
            yield k, s


NETWORK = Architecture(Own, prepare, build, memory, stacks=True)
