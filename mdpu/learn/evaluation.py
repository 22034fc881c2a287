"""Measures of models at the end of each epoch of their training: an evaluation is a callback with named measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mdpu.learn.head import Head
from mdpu.learn.network import Preparation

Outputs = Callable[[Tensor], Tensor]


class Evaluation(Protocol):
    """Measures the models of a head.

    It holds images as arrays. Before the training, `prepare` lays them out for the network, on the device.
    """

    def prepare(self, preparation: Preparation, device: torch.device) -> None:
        """Lay out the images to measure on."""
        ...

    def measures(self, head: Head) -> tuple[str, ...]:
        """Return the names of the measures of a head's models."""
        ...

    def __call__(self, head: Head, outputs: Outputs) -> Tensor:
        """Return the measures of R models, (R, len(measures)), given their outputs on prepared images."""
        ...


@dataclass
class TestImages:
    """Test images on the device, with everything that a head may need to classify them.

    Attributes
    ----------
    images : Tensor, shape (N, ...)
        Laid out for the network.
    labels : Tensor, int8, shape (N,)
        +1 or -1.
    train_images, train_labels : Tensor
        The source of labelled prototypes: images, and their labels +1, -1 or 0.
    """

    images: Tensor
    labels: Tensor
    train_images: Tensor
    train_labels: Tensor


class TestRates:
    """True-positive and true-negative rate on test images, and the head's own measures there.

    Parameters
    ----------
    images : ndarray, shape (N, ...)
    labels : ndarray, shape (N,)
        +1 or -1; images with label 0 are left out.
    train_images, train_labels : ndarray
        Images, with their labels, from which heads without a score take prototypes.
    """

    def __init__(
        self, images: NDArray[Any], labels: NDArray[Any], train_images: NDArray[Any], train_labels: NDArray[Any]
    ) -> None:
        kept = labels != 0
        self._arrays = images[kept], labels[kept], train_images, train_labels
        self.share_positive = float(np.mean(labels[kept] > 0))
        self.images: TestImages

    def prepare(self, preparation: Preparation, device: torch.device) -> None:
        """Lay out the images."""
        images, labels, train_images, train_labels = self._arrays
        self.images = TestImages(
            preparation(images).to(device),
            torch.from_numpy(labels).to(device),
            preparation(train_images).to(device),
            torch.from_numpy(train_labels).to(device),
        )

    def measures(self, head: Head) -> tuple[str, ...]:
        """Return the names of the two rates and of the head's own measures."""
        return ("true_positive_rate", "true_negative_rate", *head.test_measures)

    def __call__(self, head: Head, outputs: Outputs) -> Tensor:
        """Return the measures, (R, len(measures))."""
        return torch.stack([*head.rates(outputs, self.images), *head.test(outputs, self.images)], dim=1)


class HeldOutRates:
    """Shares of positive answers among the members of held-out tuples, and among held-out unlabeled images.

    Parameters
    ----------
    members, unlabeled : ndarray, shapes (N, ...) and (N_U, ...)
    """

    def __init__(self, members: NDArray[Any], unlabeled: NDArray[Any]) -> None:
        self._arrays = members, unlabeled
        self._images: list[Tensor]

    def prepare(self, preparation: Preparation, device: torch.device) -> None:
        """Lay out the images."""
        self._images = [preparation(images).to(device) for images in self._arrays]

    def measures(self, head: Head) -> tuple[str, ...]:
        """Return the names of the two shares."""
        return ("tuple_rate", "unlabeled_rate")

    def __call__(self, head: Head, outputs: Outputs) -> Tensor:
        """Return the shares, (R, 2)."""
        return torch.stack([(outputs(images) > 0).float().mean(dim=1) for images in self._images], dim=1)
