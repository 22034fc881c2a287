"""A start for laws whose class share is the prior, where a constant score is a saddle of every objective on bags.

Exactly one positive of three at 1/3 is such a law: the mean of the members says nothing, and networks from random
weights end swapped. The products of two members z, z' of a tuple, centred on the unlabeled images, still have the mean
kappa d d', with d the difference of the classes' means and kappa the covariance of two members' classes. So the leading
eigenvector is a linear score, whose sign the objective chooses. It is added to the network's scores, and fades. Its
scale is that of the whitened images: larger scores leave nothing for the network to learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mdpu.learn.bags import BagHead, shift_to
from mdpu.learn.head import Batch, Head
from mdpu.randomness import Stream

if TYPE_CHECKING:
    from mdpu.data import TupleData
    from mdpu.law import Law

FEW = 0.2  # share of a tuple's information that single members keep, up to which a law that turns takes the start
ROWS = 2000  # unlabeled images that the components are learned from
COMPONENTS = 20
FADED = 3  # the score is gone after this part of the epochs


def is_singular(law: Law, prior: float) -> bool:
    """Return whether a symmetric law rises and falls with the number of positives, and single members say little.

    They say nothing where the class share is the prior. At 0.4 some random starts still fail with exactly one of three,
    similar pairs and one or two of three, of whose information members keep 3, 6 and 8 %.
    A law that only rises, such as the dominant one, never is.
    """
    steps = np.diff(law.at(prior).weights)
    turns = not law.ordered and min(steps) < 0 < max(steps)
    return bool(turns and law.marginal_information(prior) <= FEW * law.joint_information(prior))


def fading(epoch: int, epochs: int) -> float:
    """Return the weight of the score in an epoch, from 0."""
    return max(0.0, 1 - FADED * epoch / epochs)


def linear_score(head: Head, images: Any, sample: TupleData) -> Tensor | None:
    """Return the scores (N,) of the prepared images (N, ...) for a head of one task, or None without a need."""
    task = head.tasks[0]
    if not isinstance(head, BagHead) or sample.is_ragged or not is_singular(head.law, float(head.prior[0])):
        return None
    order = Stream(task.seed, "start").permutation(len(sample.unlabeled))
    unlabeled = torch.from_numpy(sample.unlabeled[order]).to(images.device)
    tuples = torch.from_numpy(sample.tuples).to(images.device)
    chosen = images.index_select(0, unlabeled[:ROWS]).flatten(1).double()
    mean = chosen.mean(dim=0)
    values, vectors = torch.linalg.eigh((chosen - mean) @ (chosen - mean).T)
    usable = values[-COMPONENTS:] > 1e-12 * values[-1]
    whiten = (chosen - mean).T @ (vectors[:, -COMPONENTS:] / values[-COMPONENTS:])[:, usable] * len(chosen) ** 0.5
    parts = torch.arange(len(images), device=images.device).split(ROWS)
    z = torch.cat([(images.index_select(0, rows).flatten(1).double() - mean) @ whiten for rows in parts])  # (N, C)
    z -= z[unlabeled].mean(dim=0)
    members, total = z[tuples].flatten(0, 1), z[tuples].sum(dim=1)
    values, vectors = torch.linalg.eigh(total.T @ total - members.T @ members)
    line = (z @ vectors[:, values.abs().argmax()]).float()

    def objective(score: Tensor) -> float:
        return float(head.objective(Batch(score[tuples][None], score[unlabeled][None]))[0])

    at_prior = (own + shift_to(head.prior, own[unlabeled][None], halvings=29)[0] for own in (line, -line))
    return min(at_prior, key=objective)
