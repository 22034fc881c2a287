"""What is measured of models in training, at the end of each epoch: an evaluation is a callback with named measures."""

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

    It is given images as arrays, and told how the network lays them out and where they belong before the training.
    """

    def prepare(self, preparation: Preparation, device: torch.device) -> None:
        """Lay out the images that the measures are of."""
        ...

    def measures(self, head: Head) -> tuple[str, ...]:
        """Return the names of what is measured of a head's models."""
        ...

    def __call__(self, head: Head, outputs: Outputs) -> Tensor:
        """Return the measures of R models, (R, len(measures)), given their outputs on prepared images."""
        ...


@dataclass
class TestImages:
    """Test images on the device, with what a head may need to judge them.

    Attributes
    ----------
    images : Tensor, shape (N, ...)
        Laid out for the network.
    labels : Tensor, int8, shape (N,)
        +1 or -1.
    train_images, train_labels : Tensor
        Images that labelled prototypes are taken from, and their labels, +1, -1 or 0.
    """

    images: Tensor
    labels: Tensor
    train_images: Tensor
    train_labels: Tensor


class TestRates:
    """True-positive and true-negative rate on test images, and what a head measures there itself.

    Parameters
    ----------
    images : ndarray, shape (N, ...)
    labels : ndarray, shape (N,)
        +1 or -1; 0 leaves an image out.
    train_images, train_labels : ndarray
        Images that heads without a score take labelled prototypes from, and their labels.
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
    """Share of positive answers among the members of held-out tuples, and among held-out unlabeled images.

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
