"""What a method does with a network's outputs: objectives to minimise and predictions to count.

torch is not imported until a head is made, so that a method's file can contain its head and plans and
reports can still read it fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    from mdpu.learn.task import Task


@dataclass(frozen=True)
class Batch:
    """Network outputs of one minibatch of R tasks; an axis E is added if a method has more than one output.

    Attributes
    ----------
    tuples : Tensor, shape (R, B, M) or (R, B, M, E)
        Outputs of the members of the minibatch's tuples, in order.
    unlabeled : Tensor, shape (R, B_U) or (R, B_U, E)
        Outputs of its unlabeled images, in random order.
    tuple_labels, unlabeled_labels : Tensor of +1 and -1, shapes (R, B, M) and (R, B_U), or None
        True labels, for methods that see them.
    sizes : Tensor, int64, shape (R, B), or None
        Number of members of each tuple, if tuples have several sizes; the remaining places of `tuples` are
        meaningless.
    """

    tuples: Tensor
    unlabeled: Tensor
    tuple_labels: Tensor | None = None
    unlabeled_labels: Tensor | None = None
    sizes: Tensor | None = None

    @property
    def present(self) -> Tensor:
        """Whether each place of `tuples` holds a member, bool (R, B, M)."""
        import torch

        if self.sizes is None:
            return torch.ones(self.tuples.shape[:3], dtype=torch.bool, device=self.tuples.device)
        return torch.arange(self.tuples.shape[2], device=self.tuples.device) < self.sizes[..., None]


@dataclass
class TestImages:
    """Test images on the device, with everything that a head may need to classify them.

    Attributes
    ----------
    images : Tensor, shape (N, ...)
        Laid out for the network.
    labels : Tensor, int8, shape (N,)
        +1 or -1.
    train_images : callable
        From indices (n,) to training images, laid out for the network. Heads without a score take prototypes there.
    train_labels : ndarray, int8, shape (N_train,)
        Labels of the training images, +1, -1 or 0.
    sides : (Tensor, Tensor), int64
        Indices of the positive and of the negative images; they are found once, because a GPU must be waited for.
    """

    images: Tensor
    labels: Tensor
    train_images: Callable[[NDArray[np.int64]], Tensor]
    train_labels: NDArray[np.int8]

    def __post_init__(self) -> None:
        self.sides = sides(self.labels)


class Head:
    """Base of heads; by default the network has one output, the score g(x), and g(x) > 0 means positive.

    Parameters
    ----------
    tasks : sequence of Task, length R
        Tasks that share this head; rows are in this order.
    device : torch.device

    Attributes
    ----------
    parameters : list of Tensor, each with leading axis R
        What is learned in addition to the network.
    measures : tuple of str
        Names of what `objective` records in addition to the objective.
    test_measures : tuple of str
        Names of what `test` returns.
    has_score : bool
        Whether an output above zero means positive; if not, `rates` says what an output means.
    is_log_odds : bool
        Whether the score is log p(+1 | x) / p(-1 | x) at the prior of the unlabeled images, whatever the target's.
    """

    measures: tuple[str, ...] = ()
    test_measures: tuple[str, ...] = ()
    has_score = True
    is_log_odds = False

    def __init__(self, tasks: Sequence[Task], device: torch.device) -> None:
        self.tasks = tasks
        self.device = device
        self.parameters: list[Tensor] = []

    def state(self) -> dict[str, Tensor]:
        """Return what is learned in addition to the network, by name; the tensors are the head's own."""
        return {f"head {position}": parameter.detach() for position, parameter in enumerate(self.parameters)}

    def objective(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return what each task minimises on a minibatch.

        Returns
        -------
        objective : Tensor, shape (R,)
        recorded : Tensor, shape (R, len(measures)), or None
            For the history, which has their means over the minibatches of an epoch.
        """
        raise NotImplementedError

    def rates(self, outputs: Callable[[Tensor], Tensor], images: TestImages) -> tuple[Tensor, Tensor]:
        """Return the true-positive and the true-negative rate on test images, each of shape (R,).

        Parameters
        ----------
        outputs : callable
            From N prepared images to the outputs of the trained networks, (R, N) or (R, N, E).
        images : TestImages
        """
        return rates(outputs(images.images) > self.thresholds(), images.sides)

    def thresholds(self) -> Tensor | float:
        """Return the score above which an image is positive: 0, or (R, 1) where log-odds are at another prior."""
        import torch

        if not self.is_log_odds or all(task.target_prior is None for task in self.tasks):
            return 0
        priors = torch.tensor([[task.prior, task.target_prior or task.prior] for task in self.tasks])
        return (priors[:, :1].logit() - priors[:, 1:].logit()).to(self.device)

    def test(self, outputs: Callable[[Tensor], Tensor], images: TestImages) -> list[Tensor]:
        """Return the head's own measures on test images, named in `test_measures`, each of shape (R,).

        Parameters are those of `rates`. The networks' outputs on a set of images are computed only once.
        """
        return []


def sides(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the indices of positive and of negative labels (N,)."""
    positive = labels > 0
    return positive.nonzero().squeeze(1), (~positive).nonzero().squeeze(1)


def rates(says_positive: Tensor, sides: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the true-positive and the true-negative rate of answers (R, N), given the indices of the two classes."""
    positive, negative = sides
    return says_positive[:, positive].float().mean(dim=1), (~says_positive[:, negative]).float().mean(dim=1)
