"""Which learner a classifier takes, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdpu.errors import check_choice
from mdpu.learners import EndEpoch, Learner
from mdpu.learners.joint import held_out_loss
from mdpu.learners.linear import split_folds
from mdpu.learners.network import Network
from mdpu.learners.student import Linear, Student, check_student
from mdpu.sample import Sample

NAMES = ("auto", "student", "linear", "network")
COMPARED_FROM = 100  # tuples; a quarter of fewer does not say which learner is better
COMPARED = 3000  # at most so many tuples train the learners that are compared
STUDENT_UP_TO = 20_000  # tuples; beyond it the kernel teacher takes minutes

# Begins the training of a learner, which has so many epochs.
Begin = Callable[[str, int], AbstractContextManager[EndEpoch]]


@dataclass(frozen=True)
class Choice:
    """Which learner was trained, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        """Return both."""
        return f"{self.name} ({self.reason})"


def named_learner(parameter: Any) -> Learner | None:
    """Return the learner that the parameter of a classifier names, or None for "auto".

    Raises
    ------
    UserError
        If it names none, or is a classifier that cannot learn from soft labels.
    """
    if isinstance(parameter, Network):
        return parameter
    if isinstance(parameter, str):
        check_choice("learner", parameter, NAMES)
        return {"student": Student(), "linear": Linear(), "network": Network()}.get(parameter)
    return Student(check_student(parameter))


def candidates(sample: Sample) -> tuple[list[Learner], str]:
    """Return the learners that "auto" compares on a sample; where it is one, the reason as well."""
    n = sample.bags.n
    network_fits = _suits_networks(sample)
    if n < COMPARED_FROM:
        reason = f"{n} tuples, too few to compare learners"
        return [Linear() if sample.is_sparse else Student()], reason
    if n > STUDENT_UP_TO and (network_fits or sample.is_sparse):
        reason = f"{n} tuples, more than {STUDENT_UP_TO}"
        return [Network() if network_fits else Linear()], reason
    learners: list[Learner] = [Student(), Linear()]
    if network_fits:
        learners.append(Network())
    return learners, ""


def _suits_networks(sample: Sample) -> bool:
    """Whether networks can learn from a sample: rows are dense and finite, tuples of one size and
    law.
    """
    if sample.is_sparse or sample.bags.complete or len(sample.bags.parts) > 1:
        return False
    return sample.rows.ndim == 2 or bool(np.isfinite(sample.rows).all())


def least_loss(
    learners: Sequence[Learner], sample: Sample, prior: float, seed: int | str, begin: Begin
) -> tuple[Learner, str]:
    """Return the learner that best tells tuples from groups of unlabeled rows, and its reason.

    All are trained on three quarters of the sample and judged by the last one.
    ``benchmarks/learners.py`` has the figures.
    """
    kept, held = split_folds(sample.bags, seed, 4, COMPARED)[0][0]
    train = replace(sample, bags=kept)
    places = np.unique(np.append(held.members, held.unlabeled))
    scores = np.zeros(sample.rows.shape[0])
    losses = []
    for learner in learners:
        with begin(learner.name, learner.epochs(train)) as end_epoch:
            scorer = learner.learn(train, prior, seed, end_epoch)
        scores[places] = scorer(sample.rows[places])
        losses.append(held_out_loss(scores, held, prior, seed))

    best = int(np.argmin(losses))
    pairs = zip(learners, losses, strict=True)
    shown = ", ".join(f"{learner.name} {loss:.3f}" for learner, loss in pairs)
    return learners[best], f"least held-out loss: {shown}"
