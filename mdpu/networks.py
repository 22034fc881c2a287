"""Networks: what each wants as input, the module, the device, and S of them side by side.

A network is a name of `mdpu.settings.NETWORKS`, which `prepare` and `make_network` know; a PyTorch
module; or a function from the shape of a row to a module. Modules take vectors (N, d) or pictures
(N, C, H, W) in float32, uint8 values divided by 255, and return (N, outputs).
"""

from __future__ import annotations

import copy
import importlib.util
import itertools
import math
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from mdpu.components import principal_components
from mdpu.errors import UserError
from mdpu.randomness import Stream
from mdpu.settings import Settings

COMPONENTS = (
    60  # numbers per image that `components` learns from, instead of 784 pixels: a step costs less
)
FAST_ROWS = (
    500  # rows that a perceptron scores at once on a CPU, whose cache then holds its activations
)
SEEN = 10_000  # images that the components are learned from, spread over all
# Of a part that a GPU scores at once. 64 channels of so many pixels are 1 GiB, less than a training
# step of ResNet-34 holds, so that measures take no memory from jobs beside this one.
CARD_PIXELS = 2**22
CARD_ROWS = 100_000  # of vectors


@dataclass(frozen=True)
class Preparation:
    """The input of a network, prepared as learned from the training images: vectors of some pixels,
    or pictures.

    Attributes
    ----------
    shape : tuple of int
        The shape of one image.
    unit : float
        The value that represents 1: 255 for uint8 grey values, 1 for floats.
    is_picture : bool
        Whether the network takes pictures (N, C, H, W).
    channels_last : bool
        Whether the channels of a picture are neighbours in memory, which convolutions of a GPU are
        made for.
    pixels : ndarray, int64, optional
        The pixels that vectors consist of, in order; all of them unless given.
    centre, directions : ndarray, float32, shapes (d,) and (d, components), optional
        The mean image, in units of 1, and the principal components.
    """

    shape: tuple[int, ...]
    unit: float
    is_picture: bool = False
    pixels: NDArray[np.int64] | None = None
    centre: NDArray[np.float32] | None = None
    directions: NDArray[np.float32] | None = None
    channels_last: bool = False

    def rows_at_once(self, device: torch.device) -> int:
        """Return how many images a device scores at once."""
        if device.type == "cpu":
            return 1000 if self.is_picture else 10_000
        return max(1, CARD_PIXELS // math.prod(self.shape[:2])) if self.is_picture else CARD_ROWS

    def kept_type(self, device: torch.device) -> Any:
        """Return the type of the values that a device keeps: on a GPU grey values stay a byte each.

        A CPU keeps floats, as it would convert the same values anew in each epoch.
        """
        is_bytes = self.unit == 255 and self.directions is None and device.type != "cpu"
        return np.uint8 if is_bytes else np.float32

    def __call__(self, images: NDArray[Any]) -> Tensor:
        """Return images (N, *shape) as the network takes them: float32 (N, d) or (N, C, H, W), on
        the CPU.

        Raises
        ------
        UserError
            If the images have another shape or type than those of the training.
        """
        return self.lay_out(self.keep(images, torch.device("cpu")))

    def keep(self, images: NDArray[Any], device: torch.device) -> Tensor:
        """Return images (N, *shape) as a device keeps them for `lay_out`: vectors, or pictures.

        Raises
        ------
        UserError
            If the images have another shape or type than those of the training.
        """
        if images.shape[1:] != self.shape:
            raise UserError(
                f"rows of shape {images.shape[1:]} are given; the network was trained on "
                f"{self.shape}"
            )
        if (images.dtype == np.uint8) != (self.unit == 255):
            raise UserError(
                f"type is {images.dtype}, but training had "
                f"{'uint8' if self.unit == 255 else 'floats'}"
            )
        if self.directions is not None and self.centre is not None:
            projected = [
                (_in_units(part, self.unit) - self.centre) @ self.directions
                for part in in_parts(images)
            ]
            return torch.from_numpy(np.concatenate(projected).astype(np.float32)).to(device)

        if not self.is_picture:
            images = images.reshape(len(images), -1)
            images = images if self.pixels is None else np.take(images, self.pixels, axis=1)
        kept = torch.from_numpy(np.array(images, self.kept_type(device), order="C"))  # a copy
        if kept.is_floating_point() and self.unit != 1:
            kept.div_(self.unit)
        return kept.to(device)

    def lay_out(self, kept: Tensor) -> Tensor:
        """Return images that a device keeps as the network takes them, on this device."""
        if kept.dtype == torch.uint8:
            kept = kept.to(torch.float32).div_(self.unit)
        if not self.is_picture:
            return kept
        if kept.ndim == 3:
            return kept.unsqueeze(1)
        pictures = kept.permute(0, 3, 1, 2)  # in memory, the channels stay last
        return pictures if self.channels_last else pictures.contiguous()


class TestSet:
    """The test at the end of each epoch: the two rates on test images, and the method's own
    measures there.

    Parameters
    ----------
    images : ndarray, shape (N, ...)
    labels : ndarray, shape (N,)
        +1 or -1; images with label 0 are left out.
    train_images, train_labels : ndarray
        Methods without a score take prototypes from these.

    Attributes
    ----------
    share_positive : float
        Share of positives among the test images.
    rows : Tensor
        The test images as the device keeps them.
    sides : (Tensor, Tensor)
        Indices of the positive and of the negative ones.
    """

    __test__ = False  # pytest would take it for a test by its name
    rates = ("true_positive_rate", "true_negative_rate")

    def __init__(
        self,
        images: NDArray[Any],
        labels: NDArray[Any],
        train_images: NDArray[Any],
        train_labels: NDArray[Any],
    ) -> None:
        self.images = images[labels != 0]
        self.labels = labels[labels != 0]
        self.train_images = train_images
        self.train_labels = train_labels
        self.share_positive = float(np.mean(self.labels > 0))

    def place(self, preparation: Preparation, device: torch.device) -> None:
        """Put the images for a network on the device."""
        self._preparation = preparation
        self._device = device
        self.rows = preparation.keep(self.images, device)
        positive, negative = (
            torch.from_numpy(np.flatnonzero(self.labels * side > 0)).to(device) for side in (1, -1)
        )
        self.sides = positive, negative

    def train_rows(self, indices: NDArray[np.int64]) -> Tensor:
        """Return training images as the device keeps them."""
        return self._preparation.keep(self.train_images[indices], self._device)


def prepare(settings: Settings, images: NDArray[Any]) -> Preparation:
    """Return how to prepare the input of the network, given the training images (N, ...), uint8 or
    float.

    Raises
    ------
    UserError
        If images have another type or values that are not finite, or are not pictures and the
        network needs them.
    """
    if images.dtype != np.uint8 and not np.issubdtype(images.dtype, np.floating):
        raise UserError(f"rows are of type {images.dtype}; uint8 or a float type is needed")
    if images.dtype != np.uint8 and not all(np.isfinite(part).all() for part in in_parts(images)):
        raise UserError("rows hold values that are not finite; remove or replace them")
    shape = images.shape[1:]
    unit = 255.0 if images.dtype == np.uint8 else 1.0
    # a pixel that is 0 in every image, as 67 of MNIST's 784 are, teaches nothing
    if settings.network == "mlp":
        return Preparation(
            shape, unit, pixels=np.flatnonzero(images.reshape(len(images), -1).any(axis=0))
        )
    if settings.network == "components":
        centre, directions = _components(images, unit)
        return Preparation(shape, unit, centre=centre, directions=directions)
    if settings.network == "resnet34" and len(shape) not in (2, 3):
        raise UserError(
            f"rows of shape {shape} are not pictures; resnet34 needs (H, W) or (H, W, C)"
        )
    is_picture = len(shape) in (2, 3)
    channels_last = settings.network == "resnet34"
    return Preparation(shape, unit, is_picture=is_picture, channels_last=channels_last)


def in_parts(images: NDArray[Any], rows: int = 10_000) -> Iterator[NDArray[Any]]:
    """Yield images (N, ...) in parts of equal size, except a shorter last one, so that results need
    little memory.
    """
    return (images[first : first + rows] for first in range(0, max(1, len(images)), rows))


def _in_units(images: NDArray[Any], unit: float) -> NDArray[np.float64]:
    return np.asarray(images.reshape(len(images), -1), np.float64) / unit


def _components(
    images: NDArray[Any], unit: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return centre and principal components, not whitened: one scale makes their root mean square
    1.
    """
    seen = images[:: max(1, len(images) // SEEN)]
    x = _in_units(seen, unit)
    centre = x.mean(axis=0)
    count = min(COMPONENTS, *x.shape)
    variances, directions = principal_components(x - centre, count)
    scale = np.sqrt(variances.mean()) or 1.0
    scaled = directions / scale
    return centre.astype(np.float32), scaled.astype(np.float32)


def make_network(
    settings: Settings, preparation: Preparation, outputs: int, seed: int | str
) -> nn.Module:
    """Return the module with its initial weights, which the seed decides. It draws from torch's
    generator.

    Raises
    ------
    UserError
        If a function returns no module, or nothing is there to train.
    """
    network = settings.network
    if network in ("mlp", "components"):
        return _perceptron(settings.architecture["hidden"], preparation, outputs, seed)
    torch.manual_seed(int(Stream(seed, "initial weights").integers(2**31, 1)[0]))
    if network == "resnet34":
        module = _resnet34(settings.architecture["stem"], preparation.shape, outputs).float()
    elif isinstance(network, nn.Module):
        module = copy.deepcopy(network)
    else:
        module = network(preparation.shape)
    if not isinstance(module, nn.Module):
        raise UserError(f"network returns {module!r}; a PyTorch module is needed")
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise UserError("the network has no parameter to train")
    return module


def _perceptron(
    hidden: Sequence[int], preparation: Preparation, outputs: int, seed: int | str
) -> nn.Module:
    """Return the paper's perceptron, d-300-300-1 with ReLU and without batch normalisation.

    Initial weights are uniform on +-1/sqrt(inputs), as `torch.nn.Linear` draws them. They are drawn
    for all pixels.
    """
    pixels = preparation.pixels
    directions = preparation.directions
    inputs = math.prod(preparation.shape) if directions is None else directions.shape[1]
    layers: list[nn.Module] = []
    for place, (below, above) in enumerate(itertools.pairwise([inputs, *hidden, outputs])):
        drawn = (
            2 * Stream(seed, "initial weights", place).uniform(below + 1, above) - 1
        ) / math.sqrt(below)
        weight = drawn[:-1]
        bias = drawn[-1]
        weight = weight[pixels] if place == 0 and pixels is not None else weight  # (inputs, units)
        layer = nn.Linear(len(weight), above, device="meta", dtype=torch.float32).to_empty(
            device="cpu"
        )
        layer.load_state_dict(
            {"weight": torch.from_numpy(weight.T), "bias": torch.from_numpy(bias)}
        )
        layers += [layer, nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


def _resnet34(stem: str, shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Return torchvision's ResNet-34, the paper's network for colour images.

    The stem ``cifar`` is a 3x3 convolution of stride 1 without pooling, usual for 32x32 images;
    ``imagenet`` is torchvision's own 7x7.
    """
    from torchvision.models import resnet34

    network = resnet34(num_classes=outputs)
    channels = shape[2] if len(shape) == 3 else 1
    if stem == "cifar":
        network.conv1 = nn.Conv2d(channels, 64, kernel_size=3, padding=1, bias=False)
        network.maxpool = nn.Identity()
    elif channels != 3:
        network.conv1 = nn.Conv2d(channels, 64, kernel_size=7, stride=2, padding=3, bias=False)
    return network.to(memory_format=torch.channels_last)


def choose_device(requested: str) -> torch.device:
    """Return the device for ``auto``, ``cpu``, ``cuda`` or, if there are several GPUs, ``cuda:1``.

    Raises
    ------
    UserError
        If it is none of these, or the GPU is not there.
    """
    kind, colon, number = str(requested).partition(":")
    if kind not in ("auto", "cpu", "cuda") or (
        colon and (kind != "cuda" or not number.isdecimal())
    ):
        raise UserError(
            f"device is {requested!r}; it must be one of auto, cpu, cuda, or cuda:1 of several GPUs"
        )
    if kind == "cpu":
        return torch.device("cpu")
    available = torch.cuda.is_available()
    if kind == "cuda" and not available:
        raise UserError(f"device is {requested}, but torch finds no GPU; set device to auto or cpu")
    if number and int(number) >= torch.cuda.device_count():
        raise UserError(
            f"device is {requested}, but torch finds {torch.cuda.device_count()} GPUs, from cuda:0 "
            "on"
        )
    return torch.device(requested if number else "cuda" if available else "cpu")


def precision_on(device: torch.device, precision: str) -> str:
    """Return the precision of products on a device, given the one asked for.

    TF32 is for GPUs: on some CPUs torch would round products for it too.
    """
    if precision == "tf32" and device.type == "cpu":
        return "float32"
    return precision


def check_compiler(device: torch.device) -> None:
    """Raise `UserError` unless there is a C++ compiler, and Triton for a GPU, to compile with."""
    usual = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    compiler = os.environ.get("CXX", usual)
    if shutil.which(compiler) is None:
        raise UserError(
            f"compile needs a C++ compiler, and {compiler} is not there; install it, name another "
            "one in the variable CXX, or set compile to false"
        )
    if device.type == "cuda" and importlib.util.find_spec("triton") is None:
        raise UserError(
            "compile needs the package triton for a GPU; install it, or set compile to false"
        )


class Networks:
    """S modules of one kind that compute side by side: one as it is, several with their weights in
    one tensor each.

    Parameters
    ----------
    modules : sequence of Module, length S
    preparation : Preparation
    outputs : int
        What each returns for an image; with 1, there is no axis for it.
    device : torch.device
    settings : Settings
        With the precision ``bfloat16``, matrix products use it, but weights and outputs do not.
        With ``compile``, PyTorch compiles the module, which stays what it is.

    Attributes
    ----------
    parameters : list of Tensor
        What is trained, with a leading axis S if S > 1.
    rates : list of float
        The factor of the learning rate of each of `parameters`.
    state : dict from str to Tensor
        All weights and buffers, such as the running statistics of batch normalisation.

    Raises
    ------
    UserError
        If `rates` names no parameter, or the module is to be compiled and cannot be.
    """

    def __init__(
        self,
        modules: Sequence[nn.Module],
        preparation: Preparation,
        outputs: int,
        device: torch.device,
        settings: Settings,
    ) -> None:
        self.modules = [module.to(device) for module in modules]
        self.preparation = preparation
        self.outputs = outputs
        self.bfloat16 = settings.precision == "bfloat16"
        self.module = self.modules[0]
        perceptron = settings.network in ("mlp", "components")
        self.splits_rows = perceptron and device.type == "cpu"
        self.rows_at_once = preparation.rows_at_once(device)
        self.compute: Any = self.module
        if settings.compile:
            if len(modules) > 1:
                raise UserError(
                    "compile is for one seed at a time; train the seeds one after the other"
                )
            check_compiler(device)
            self.compute = torch.compile(self.module)
        if len(modules) == 1:
            self.state = {
                **dict(self.module.named_parameters()),
                **dict(self.module.named_buffers()),
            }
        else:
            parameters, buffers = stack_module_state(self.modules)
            self.state = {**parameters, **buffers}
        trained = {name: value for name, value in self.state.items() if value.requires_grad}
        for start in settings.rates:
            if not any(name.startswith(start) for name in trained):
                raise UserError(
                    f"rates names {start}, but no parameter that trains begins so: "
                    f"{', '.join(trained)}"
                )
        factors = {
            name: [rate for start, rate in settings.rates.items() if name.startswith(start)]
            for name in trained
        }
        self.parameters = list(trained.values())
        self.rates = [float(rate[0]) if rate else 1.0 for rate in factors.values()]

    def __call__(self, x: Tensor) -> Tensor:
        """Return outputs, float32 (S, B) or (S, B, outputs), of images x (S, B, ...), or (1, B,
        ...) shared by all.

        The network is in training mode or not, as `module` is.
        """
        autocast = torch.autocast(x.device.type, torch.bfloat16) if self.bfloat16 else nullcontext()
        with autocast:
            if len(self.modules) == 1:
                outputs = self._alone(x[0])[None]
            elif len(x) == 1:
                of_each = vmap(self._one, in_dims=(0, None), randomness="different")
                outputs = of_each(self.state, x[0])
            else:
                of_each = vmap(self._one, randomness="different")
                outputs = of_each(self.state, x)

        shape: tuple[int, ...] = (len(self.modules), x.shape[1])
        if self.outputs > 1:
            shape = (*shape, self.outputs)
        if outputs.numel() != math.prod(shape):
            raise UserError(
                f"network returns an array of shape {tuple(outputs.shape[1:])} for {x.shape[1]} "
                "rows"
            )
        return outputs.float().reshape(shape)

    def _alone(self, x: Tensor) -> Tensor:
        if self.splits_rows:
            return torch.cat([self.module(part) for part in x.split(FAST_ROWS)])
        return self.compute(x)

    def _one(self, state: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(self.module, state, (x,))

    def scores(self, kept: Tensor) -> Tensor:
        """Return the outputs (S, N) or (S, N, outputs) of images for all, without gradients.

        Parts that do not fit into the memory of a GPU are halved, then and from then on.

        Parameters
        ----------
        kept : Tensor, shape (N, ...)
            As `Preparation.keep` returns images.
        """
        self.module.eval()
        while True:
            try:
                return self._scores_in_parts(kept)
            except torch.OutOfMemoryError:
                if self.rows_at_once == 1:
                    raise
                self.rows_at_once = math.ceil(min(self.rows_at_once, len(kept)) / 2)

    @torch.no_grad()
    def _scores_in_parts(self, kept: Tensor) -> Tensor:
        parts = kept.split(self.rows_at_once)
        return torch.cat([self(self.preparation.lay_out(part)[None]) for part in parts], dim=1)

    def trained(self) -> list[nn.Module]:
        """Return the S modules with their current weights, ready for scoring."""
        for place, module in enumerate(self.modules):
            if len(self.modules) > 1:
                module.load_state_dict(
                    {name: value[place] for name, value in self.state.items()}, strict=False
                )
            module.eval()
        return self.modules
