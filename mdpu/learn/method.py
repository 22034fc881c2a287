"""What a method is. No torch here, so that plans and reports can read titles at no cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scope = Literal["whole", "class", "part"]

# Which of the four terms T+, T-, U+, U- each corrected part holds.
SCOPES: dict[Scope, tuple[tuple[int, int, int, int], tuple[int, int, int, int]]] = {
    "whole": ((1, 1, 1, 1), (0, 0, 0, 0)),
    "class": ((1, 0, 1, 0), (0, 1, 0, 1)),
    "part": ((1, 1, 0, 0), (0, 0, 1, 1)),
}


@dataclass(frozen=True)
class CorrectedRisk:
    """A method that minimises f applied to the estimated risk or to its two parts.

    Attributes
    ----------
    title : str
        Name in tables and figures.
    k : float
        Slope of f below zero, see `mdpu.learn.risk.correction`.
    scope : {'whole', 'class', 'part'}
        What f is applied to: the whole risk (Eqs. 15-16); the positive and the negative partial risk,
        as the related literature does (Kiryo et al. 2017; Lu et al. 2020); or the tuple part and the
        unlabeled part, as the proof of Theorem 3 does.
    """

    title: str
    k: float = -1.0
    scope: Scope = "whole"
