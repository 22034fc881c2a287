"""What a network is: how it prepares images, whether it stacks, how much memory it takes, which settings it knows.

torch is not imported at the top, so that plans can read what a network's file declares.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mdpu.errors import UserError, check_choice

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

Seeds = Sequence[Sequence[int | str]]  # (K, S)


@dataclass(frozen=True)
class Policy:
    """How stacks are computed; `mdpu.learn.device.choose_policy` returns that of a device.

    On a GPU few large operations are fast. On a CPU a history must not depend on a task's company, so each task has
    products and an objective of its own.

    Attributes
    ----------
    device : torch.device
    dtype : torch.dtype
        Of the matrix products.
    shared_objective : bool
        Whether one head computes the objectives of all tasks of a stack, or one head for each task.
    batched_products : bool
        Whether the matrix products of a stack are one operation, or one for each model. Of models that are equal, a
        single one is then computed.
    stack_by : {'shape', 'stream'}
        Whether a stack holds all streams of minibatches with equally many tasks, or one.
    side_by_side : bool
        Whether stacks train in threads, with one thread each for sums.
    threads : int
        Threads of a stack, where fewer stacks than threads train; only what their number does not change uses them.
    compiled : bool
        Whether `torch.compile` compiles the training step of modules.
    """

    device: torch.device
    dtype: torch.dtype
    shared_objective: bool = False
    batched_products: bool = False
    stack_by: Literal["shape", "stream"] = "stream"
    side_by_side: bool = True
    threads: int = 1
    compiled: bool = False

    @contextmanager
    def all_threads(self) -> Iterator[None]:
        """Compute the block with all threads of the stack."""
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(max(before, self.threads))
        try:
            yield
        finally:
            torch.set_num_threads(before)


class Network(Protocol):
    """K x S models that train together: K tasks on each of S streams of minibatches.

    Attributes
    ----------
    parameters : list of Tensor, float32
        With the leading axes (K, S) if the network stacks.
    buffers : list of Tensor
        What training changes besides, and a mean of the weights includes: running statistics.
    """

    parameters: list[Tensor]
    buffers: list[Tensor]

    def forward(self, images: Tensor) -> Tensor:
        """Return scores (K, S, rows) of prepared images (S, rows, ...), and keep what `backward` needs.

        Here and below, a network with more than one output returns and takes (K, S, rows, outputs).
        """
        ...

    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradient of each parameter, given the gradient of the scores (K, S, rows)."""
        ...

    def scores(self, images: Tensor) -> Tensor:
        """Return scores (K, S, N) of prepared images (N, ...) that all models share."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Return everything that training changes, by name; the tensors are the network's own."""
        ...

    def plain(self) -> nn.Module:
        """Return the one model as a plain module on the CPU, from what is laid out, in units of 1, to (N, outputs)."""
        ...

    def take(self, k: int, s: int, device: torch.device | None = None) -> Network:
        """Return one model as a network with K = S = 1 and its own memory, on another device if one is given."""
        ...


class Preparation(Protocol):
    """Lays out images for a network; learned from the training images, applied to any images."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one image before the preparation."""
        ...

    def __call__(self, images: NDArray[Any]) -> Tensor:
        """Return images (N, *shape) in the network's layout, (N, ...), on the CPU."""
        ...


@dataclass(frozen=True)
class Architecture:
    """What a file of ``mdpu/learn/networks`` declares as ``NETWORK``.

    Attributes
    ----------
    settings : type
        A frozen dataclass of the settings that the network knows, with their defaults.
    prepare : callable
        From the training images (N, ...), uint8 or float, to their `Preparation`.
    build : callable
        From seeds (K, S), own settings, preparation, outputs and policy to the `Network` with its initial weights.
        With more than one output, scores have a further axis.
    memory : callable
        From own settings, image shape, rows of a minibatch, outputs, K and S to the bytes that training takes, without
        the images.
    stacks : bool
        Whether it can train several models at once; otherwise K = S = 1.
    """

    settings: type[Any]
    prepare: Callable[[NDArray[Any]], Preparation]
    build: Callable[[Seeds, Any, Any, int, Policy], Network]
    memory: Callable[[Any, tuple[int, ...], int, int, int, int], int]
    stacks: bool = False

    def read(self, values: Mapping[str, Any]) -> Any:
        """Return own settings from a mapping; lists become tuples.

        Raises
        ------
        UserError
            If the network does not know a setting, or a value is of the wrong type.
        """
        hints = typing.get_type_hints(self.settings)
        for name, value in values.items():
            if name not in hints:
                raise UserError(f"{name!r} is no setting; known are {', '.join(sorted(hints))} and those of training")
            if choices := _choices(hints[name]):
                check_choice(name, value, choices)
            else:
                check_type(name, value, hints[name])
        return self.settings(
            **{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        )

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the settings that the network knows."""
        return tuple(field.name for field in fields(self.settings))


def _choices(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()


# Limits of a list of sizes: a digit too many ends in a sentence instead of exhausting the memory.
MOST_SIZES, LARGEST_SIZE = 100, 100_000


def check_type(name: str, value: object, kind: Any) -> None:
    """Raise `UserError` unless a setting is of a type: int, float, str, bool, or a tuple of sizes.

    Sizes are positive integers, at most `MOST_SIZES` of them and none above `LARGEST_SIZE`.
    """

    def integer(number: object) -> bool:
        return isinstance(number, int | np.integer) and not isinstance(number, bool)

    if kind is int:
        right, what = integer(value), "an integer"
    elif kind is float:
        right, what = integer(value) or isinstance(value, float | np.floating), "a number"
    elif typing.get_origin(kind) is tuple:
        right = isinstance(value, list | tuple) and all(integer(number) and number > 0 for number in value)
        what = "a list of positive integers"
    else:
        right, what = isinstance(value, kind), {str: "a text", bool: "true or false"}.get(kind, f"a {kind}")
    if not right:
        raise UserError(f"{name} is {value!r}; {what} is needed")
    if isinstance(value, list | tuple) and (len(value) > MOST_SIZES or max(value, default=1) > LARGEST_SIZE):
        raise UserError(
            f"{name} holds {len(value)} numbers up to {max(value)}; at most {MOST_SIZES} up to "
            f"{LARGEST_SIZE} are possible"
        )


def check_images(images: NDArray[Any], shape: tuple[int, ...], unit: float) -> None:
    """Raise `UserError` unless images have the shape and type that a network was trained on.

    Parameters
    ----------
    images : ndarray
    shape : tuple of int
        Of one image.
    unit : float
        255 for uint8 grey values, 1 for floats.
    """
    if images.shape[1:] != shape:
        raise UserError(f"rows of shape {images.shape[1:]} are given; the network was trained on shape {shape}")
    if (images.dtype == np.uint8) != (unit == 255):
        trained = "uint8 grey values" if unit == 255 else "floats"
        raise UserError(f"rows of type {images.dtype} are given; the network was trained on {trained}")


def in_parts(images: NDArray[Any], rows: int = 10_000) -> Iterator[NDArray[Any]]:
    """Yield images (N, ...) in parts of so many, the last one of fewer, so that results need little memory."""
    return (images[first : first + rows] for first in range(0, max(1, len(images)), rows))


def unit_of(images: NDArray[Any]) -> float:
    """Return the value that represents 1 in images: 255 for uint8 grey values; 1.0 for floats, which are not scaled.

    Raises
    ------
    UserError
        If the images have another type, or a float is not finite.
    """
    if images.dtype == np.uint8:
        return 255.0
    if not np.issubdtype(images.dtype, np.floating):
        raise UserError(f"rows are of type {images.dtype}; uint8 or a float type is needed")
    if not all(np.isfinite(part).all() for part in in_parts(images)):
        raise UserError("rows hold values that are not finite; remove or replace them")
    return 1.0
