"""Measures of models at the end of each epoch of their training: an evaluation is a callback with named measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mdpu.data import TupleData
from mdpu.learn.head import Head, TestImages, rates, sides
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


@dataclass(frozen=True)
class ValidationBags:
    """Bags of test images for a choice without labels, and the test images on which the choice is judged.

    Attributes
    ----------
    tuples : ndarray, int64, shape (n, M)
        Dominant tuples of test images.
    unlabeled : ndarray, int64, shape (n_unlabeled,)
        Test images drawn at the class prior.
    others : ndarray, int64, shape (N_others,)
        Test images that no bag can hold.
    """

    tuples: NDArray[np.int64]
    unlabeled: NDArray[np.int64]
    others: NDArray[np.int64]


class TestRates:
    """True-positive and true-negative rate on test images, the head's own measures there, and counts in bags of them.

    Parameters
    ----------
    images : ndarray, shape (N, ...)
    labels : ndarray, shape (N,)
        +1 or -1; images with label 0 are left out.
    train_images, train_labels : ndarray
        Images, with their labels, from which heads without a score take prototypes.
    bags : mapping from str to ValidationBags, optional
        By the name of the task's sample: indices of the test images that are not left out. Models without a score are
        not measured on them.
    """

    def __init__(
        self,
        images: NDArray[Any],
        labels: NDArray[Any],
        train_images: NDArray[Any],
        train_labels: NDArray[Any],
        bags: Mapping[str, ValidationBags] | None = None,
    ) -> None:
        kept = labels != 0
        self._arrays = images[kept], labels[kept], train_images, train_labels
        self._bags = bags
        self.share_positive = float(np.mean(labels[kept] > 0))
        self.images: TestImages

    def prepare(self, preparation: Preparation, device: torch.device) -> None:
        """Lay out the images."""
        images, labels, train_images, train_labels = self._arrays
        self.images = TestImages(
            preparation(images).to(device),
            torch.from_numpy(labels).to(device),
            lambda indices: preparation(train_images[indices]).to(device),
            train_labels,
        )
        self._placed = {name: PlacedBags.of(bags, self.images.labels) for name, bags in (self._bags or {}).items()}

    def measures(self, head: Head) -> tuple[str, ...]:
        """Return the names of the two rates, of the head's own measures, and of `bag_measures`."""
        own = bag_measures(head.tasks[0].tuple_size) if self._bags and head.has_score else ()
        return ("true_positive_rate", "true_negative_rate", *head.test_measures, *own)

    def __call__(self, head: Head, outputs: Outputs) -> Tensor:
        """Return the measures, (R, len(measures))."""
        measured = torch.stack([*head.rates(outputs, self.images), *head.test(outputs, self.images)], dim=1)
        if not (self._bags and head.has_score):
            return measured
        answers = outputs(self.images.images) > 0  # (R, N)
        counted = [count_answers(row, self._placed[task.sample]) for task, row in zip(head.tasks, answers, strict=True)]
        return torch.cat([measured, torch.stack(counted)], dim=1)


def bag_measures(tuple_size: int) -> tuple[str, ...]:
    """Return the names of what `count_answers` returns for tuples of M members."""
    return (
        *(f"validation_tuples_{positives}" for positives in range(tuple_size + 1)),
        "validation_unlabeled",
        "others_true_positive_rate",
        "others_true_negative_rate",
    )


@dataclass(frozen=True)
class PlacedBags:
    """`ValidationBags` on the device, the other images by their side."""

    tuples: Tensor
    unlabeled: Tensor
    others: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, bags: ValidationBags, labels: Tensor) -> PlacedBags:
        """Return bags on the device of the labels (N,) of the test images."""
        tuples, unlabeled, others = (
            torch.from_numpy(indices).to(labels.device) for indices in (bags.tuples, bags.unlabeled, bags.others)
        )
        positive, negative = sides(labels[others])
        return cls(tuples, unlabeled, (others[positive], others[negative]))


def count_answers(says_positive: Tensor, bags: PlacedBags) -> Tensor:
    """Return what a model's answers on test images say in bags, and how good they are on the other images.

    Parameters
    ----------
    says_positive : Tensor, bool, shape (N,)
    bags : PlacedBags

    Returns
    -------
    Tensor, shape (M + 4,)
        Shares of the tuples with 0 .. M positive answers, the share of positive answers among the unlabeled, and the
        true-positive and true-negative rate on the other images.
    """
    answers = says_positive[bags.tuples].sum(dim=1, keepdim=True)  # (n, 1)
    counts = (answers == torch.arange(bags.tuples.shape[1] + 1, device=answers.device)).sum(dim=0)  # (M + 1,)
    shares = [*(counts / len(bags.tuples)), says_positive[bags.unlabeled].float().mean()]
    return torch.stack([*shares, *(rate[0] for rate in rates(says_positive[None], bags.others))])


class HeldOut:
    """Measures on held-out members of tuples and unlabeled images, from the outputs on both.

    Parameters
    ----------
    images : ndarray, shape (N, ...)
    held : TupleData
        Held-out tuples and unlabeled images among them.
    names : sequence of str
        Of the measures.
    measure : callable
        From outputs on the members of all tuples, in order, (R, members), and on the unlabeled images, (R, n_U), to the
        measures (R, len(names)).
    """

    def __init__(
        self, images: NDArray[Any], held: TupleData, names: Sequence[str], measure: Callable[[Tensor, Tensor], Tensor]
    ) -> None:
        self._arrays = images[held.tuples[held.tuples >= 0]], images[held.unlabeled]
        self._names, self._measure = tuple(names), measure
        self._images: list[Tensor]

    def prepare(self, preparation: Preparation, device: torch.device) -> None:
        """Lay out the images."""
        self._images = [preparation(images).to(device) for images in self._arrays]

    def measures(self, head: Head) -> tuple[str, ...]:
        """Return the names of the measures."""
        return self._names

    def __call__(self, head: Head, outputs: Outputs) -> Tensor:
        """Return the measures, (R, len(names))."""
        return self._measure(*(outputs(images) for images in self._images))


def positive_shares(members: Tensor, unlabeled: Tensor) -> Tensor:
    """Return the shares of positive scores among members (R, N) and unlabeled images (R, n_U), (R, 2)."""
    return torch.stack([(scores > 0).float().mean(dim=1) for scores in (members, unlabeled)], dim=1)
