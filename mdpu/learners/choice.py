"""Which learner a classifier takes, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpu.errors import check_choice
from mdpu.learners import Learner
from mdpu.learners.network import Network
from mdpu.learners.student import Linear, Student, check_student
from mdpu.sample import Sample

NAMES = ("auto", "student", "linear", "network")
PICTURES_FROM = 1000  # tuples of pictures, from which on a network is better than the student
STUDENT_UP_TO = 20_000  # tuples; beyond it the kernel teacher takes minutes


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


def default_learner(sample: Sample) -> tuple[Learner, str]:
    """Return the learner that "auto" takes, and why.

    Rows and their number decide. No learner is compared with another on the sample: its loss on a
    part of a few hundred tuples is noisier than the differences between learners.
    ``benchmarks/default_rules.py`` has the figures.
    """
    n = sample.bags.n
    network_fits = _suits_networks(sample)
    is_pictures = not sample.is_sparse and sample.rows.ndim > 2
    if is_pictures and network_fits and n >= PICTURES_FROM:
        return Network(), f"{n} tuples of pictures, at least {PICTURES_FROM}"
    if n > STUDENT_UP_TO and network_fits:
        return Network(), f"{n} tuples, more than {STUDENT_UP_TO}"
    if n > STUDENT_UP_TO and sample.is_sparse:
        return Linear(), f"{n} tuples, more than {STUDENT_UP_TO}"
    return Student(), "the default"


def _suits_networks(sample: Sample) -> bool:
    """Whether networks can learn from a sample: rows are dense and finite, tuples of one size and
    law.
    """
    if sample.is_sparse or sample.bags.complete or len(sample.bags.parts) > 1:
        return False
    return sample.rows.ndim == 2 or bool(np.isfinite(sample.rows).all())
