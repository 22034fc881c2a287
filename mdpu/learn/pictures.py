"""Networks that are ordinary PyTorch modules on pictures: one model at a time, differentiated by autograd."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from mdpu.errors import UserError, is_out_of_memory
from mdpu.learn.network import Network, Policy, Seeds, check_images, unit_of
from mdpu.randomness import Stream

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

CHUNK = 1000  # images scored at once
DRAWING = threading.Lock()  # torch's generators belong to the process, so one thread at a time draws from them


@dataclass(frozen=True)
class Pictures:
    """Pictures as (N, H, W, C).

    Attributes
    ----------
    shape : tuple of int
        Of one image: (H, W), or (H, W, C).
    unit : float
        The value that represents 1: 255 for uint8, 1 for floats.
    """

    shape: tuple[int, ...]
    unit: float

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self.shape[2] if len(self.shape) == 3 else 1

    def __call__(self, images: NDArray[Any]) -> Tensor:
        """Return images (N, *shape) as (N, H, W, C), of uint8 or float32."""
        import torch

        check_images(images, self.shape, self.unit)
        pictures = torch.from_numpy(np.ascontiguousarray(images))
        pictures = pictures.unsqueeze(-1) if pictures.dim() == 3 else pictures
        return pictures if self.unit == 255 else pictures.float()


def prepare(images: NDArray[Any]) -> Pictures:
    """Return the layout of pictures, given those of the training; raise `UserError` if they are not pictures."""
    if images.ndim not in (3, 4):
        raise UserError(f"rows of shape {images.shape[1:]} are no pictures; this network needs (H, W) or (H, W, C)")
    return Pictures(images.shape[1:], unit_of(images))


def module_builder(module: Callable[[Any, Pictures, int], nn.Module]) -> Callable[..., Network]:
    """Return the ``build`` of an `Architecture` from a function that makes a module.

    Parameters
    ----------
    module : callable
        From own settings, `Pictures` and outputs to a module on pictures (N, C, H, W) in [0, 1], which returns
        (N, outputs). torch's random generator is seeded with the task's seed before the call.
    """

    def build(seeds: Seeds, own: Any, pictures: Pictures, outputs: int, policy: Policy) -> ModuleNetwork:
        seed = int(Stream(seeds[0][0], "initial weights").integers(2**31, 1)[0])
        with own_draws(seed):
            made = module(own, pictures, outputs)
        network = ModuleNetwork(made, pictures.unit, policy.dtype, policy.device, outputs, policy.compiled)
        network.seed = seed
        return network

    return build


@contextmanager
def own_draws(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Let the block alone draw from torch's generators, seeded for it; then they are as before."""
    import torch

    gpu = device if device and device.type == "cuda" else None
    with DRAWING, torch.random.fork_rng([gpu] if gpu else [], device_type="cuda"):
        torch.default_generator.manual_seed(seed)
        if gpu:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
        yield


def states_of_generators(device: torch.device) -> list[Tensor]:
    """Return the states of the generators that a module on a device draws from."""
    import torch

    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]


class ModuleNetwork:
    """A PyTorch module as a `Network` of one model (K = S = 1).

    A module that draws random numbers, as dropout does, draws the same ones whatever trains beside it: each training
    step has a seed of its own. Such modules take turns with their forward passes.

    Parameters
    ----------
    module : Module
        From pictures (N, C, H, W) in [0, 1] to (N, outputs).
    unit : float
        The value that represents 1 in images.
    dtype : torch.dtype
        Type of the products: bfloat16 by autocast, or float32.
    device : torch.device
    outputs : int
        Units of the last layer; with more than one, scores have an additional axis.
    compiled : bool
        Whether `torch.compile` compiles a training step, which fuses batch normalisation, ReLU and casts. Compilation
        takes a minute; later processes take most of it from torch's cache. It needs a C compiler and Python's headers.
        Where it fails, the step is not compiled, and a message says why.

    Attributes
    ----------
    parameters, buffers : list of Tensor
        As in `Network`; the buffers are those of floating point.
    seed : int
        Of what the module draws at each training step.
    """

    def __init__(
        self,
        module: nn.Module,
        unit: float,
        dtype: torch.dtype,
        device: torch.device,
        outputs: int = 1,
        compiled: bool = False,
    ) -> None:
        import torch

        for parameter in module.parameters():
            if parameter.stride() != torch.empty_like(parameter).stride():  # a part of another tensor
                parameter.data = parameter.data.clone()
        self.module = module.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.unit, self.dtype, self.device, self.outputs = unit, dtype, device, outputs
        self.parameters = [parameter.detach() for parameter in self.module.parameters()]
        self.buffers = [buffer for buffer in self.module.buffers() if buffer.is_floating_point()]
        self.seed = 0
        self._steps = torch.zeros((), dtype=torch.int64)  # training steps done
        self._draws: bool | None = None  # whether a training step draws random numbers, once that is known
        self._scores: Tensor | None = None
        # The last minibatch of an epoch has another size, so it gets a second program instead of one for all sizes.
        self._compiled = torch.compile(self._pass, dynamic=False) if compiled else None

    def _pass(self, images: Tensor) -> Tensor:
        import torch

        x = images.permute(0, 3, 1, 2).float().div(self.unit)  # (rows, C, H, W), channels last in memory
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            return cast("Tensor", self.module(x)).float()  # (rows, outputs)

    def _train_pass(self, images: Tensor) -> Tensor:
        if self._compiled:
            try:
                return self._compiled(images)
            except Exception as error:  # of many types; a fault of the module itself comes again without compilation
                if isinstance(error, UserError) or is_out_of_memory(error):
                    raise
                reason = next(iter(str(error).splitlines()), type(error).__name__)
                print(f"torch.compile failed, so training is slower: {reason}", file=sys.stderr)
                self._compiled = None
        return self._pass(images)

    def _drawn_pass(self, images: Tensor) -> Tensor:
        if self._draws is False:
            return self._train_pass(images)
        with own_draws(int(Stream(self.seed, "dropout", int(self._steps)).integers(2**31, 1)[0]), self.device):
            before = None if self._draws else states_of_generators(self.device)
            scores = self._train_pass(images)
            if before is not None:
                after = states_of_generators(self.device)
                self._draws = any(not one.equal(other) for one, other in zip(before, after, strict=True))
        return scores

    def _shaped(self, last: Tensor) -> Tensor:
        return last.view(1, 1, -1) if self.outputs == 1 else last[None, None]

    def forward(self, images: Tensor) -> Tensor:
        """Return scores, float32 (1, 1, rows), of images (1, rows, H, W, C)."""
        import torch

        self.module.train()
        with torch.enable_grad():
            self._scores = self._shaped(self._drawn_pass(images[0]))
        self._steps += 1
        return self._scores.detach()

    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradients of `parameters`, float32."""
        import torch

        assert self._scores is not None
        return list(torch.autograd.grad(self._scores, list(self.module.parameters()), gradient))

    def scores(self, images: Tensor) -> Tensor:
        """Return scores, float32 (1, 1, N), of images (N, H, W, C)."""
        import torch

        self.module.eval()
        with torch.no_grad():
            return torch.cat([self._shaped(self._pass(chunk)) for chunk in images.split(CHUNK)], dim=2)

    def state(self) -> dict[str, Tensor]:
        """Return the weights and the running statistics of the batch normalisation, by name, and the step."""
        return {name: value.detach() for name, value in self.module.state_dict().items()} | {"steps": self._steps}

    def plain(self) -> nn.Module:
        """Return a copy of the module on the CPU, from pictures (N, C, H, W)."""
        import torch

        return copy.deepcopy(self.module).to("cpu", memory_format=torch.contiguous_format)

    def take(self, k: int, s: int, device: torch.device | None = None) -> ModuleNetwork:
        """Return a copy of the model."""
        module = copy.deepcopy(self.module)
        return ModuleNetwork(module, self.unit, self.dtype, device or self.device, self.outputs)
