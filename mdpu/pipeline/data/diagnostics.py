"""Does a drawn split follow the law that it was drawn from?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import chdtrc

from mdpu.data import Signs, TupleData
from mdpu.law import Law, as_law, named_law
from mdpu.pipeline.data.labels import read_labels
from mdpu.pipeline.data.splits import draw, write_split
from mdpu.pipeline.files import write_json

# Bins with a smaller expected count are pooled, because the chi-square approximation is poor there.
LEAST_EXPECTED = 5.0


def diagnose(split: TupleData, labels: Signs, law: Law | int, prior: float, unlabeled: str = "pool") -> dict[str, Any]:
    """Compare a split with the law that it was drawn from, by the labels that the learner never sees.

    ``tuple_members`` and ``unlabeled`` hold the fraction of positives, expected by the law (a of Lemma 6, and pi_+),
    and the difference in standard errors, ``z``; ``tuple_types`` the numbers of tuples with 0, 1, ... negatives;
    ``distinct`` the numbers of different images among the members, among the unlabeled, and in both.
    """
    law = as_law(law)
    chances = np.trim_zeros(law.counts(prior)[::-1], "b")  # of 0, 1, ... negatives
    hidden = labels[split.tuples]  # (n, M)
    negatives = (hidden < 0).sum(axis=1)
    n = len(split.tuples)
    kinds = np.arange(chances.size)
    member_error = math.sqrt((chances @ kinds**2 - (chances @ kinds) ** 2) / n) / law.size
    unlabeled_share, drawn = prior, split.unlabeled.size
    if unlabeled == "remainder":  # of a pool at the prior, which lacks the members
        drawn += hidden.size
        unlabeled_share += (prior - float((hidden > 0).mean())) * hidden.size / split.unlabeled.size
    unlabeled_error = math.sqrt(prior * (1 - prior) * drawn) / split.unlabeled.size
    observed = np.bincount(negatives, minlength=chances.size)
    chi_square, degrees = _chi_square(observed, chances * n)
    return {
        "tuple_members": _compare(float((hidden > 0).mean()), 1 - float(chances @ kinds) / law.size, member_error),
        "unlabeled": _compare(float((labels[split.unlabeled] > 0).mean()), unlabeled_share, unlabeled_error),
        "tuple_types": {
            "observed": observed.tolist(),
            "expected": (chances * n).tolist(),
            "chi_square": chi_square,
            "degrees": degrees,
            "p_value": float(chdtrc(degrees, chi_square)) if degrees else 1.0,
        },
        "distinct": {
            "tuple_members": np.unique(split.tuples).size,
            "unlabeled": np.unique(split.unlabeled).size,
            "both": np.intersect1d(split.tuples, split.unlabeled).size,
        },
    }


def _compare(observed: float, law: float, standard_error: float) -> dict[str, float]:
    return {"observed": observed, "law": law, "z": (observed - law) / standard_error if standard_error else 0.0}


def _chi_square(observed: np.ndarray, expected: np.ndarray) -> tuple[float, int]:
    """Return Pearson's statistic and its degrees of freedom, bins of small expectation pooled with the next."""
    pooled: list[list[float]] = [[0.0, 0.0]]
    for pair in sorted(zip(expected.tolist(), observed.tolist(), strict=True)):
        if pooled[-1][0] >= LEAST_EXPECTED:
            pooled.append([0.0, 0.0])
        pooled[-1][0] += pair[0]
        pooled[-1][1] += pair[1]
    return sum((o - e) ** 2 / e for e, o in pooled), len(pooled) - 1


def summarize(diagnostics: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the worst of several splits' diagnostics; the smallest p-value also after Bonferroni's correction."""
    smallest = min(diagnosis["tuple_types"]["p_value"] for diagnosis in diagnostics)
    parts = {
        part: {
            "difference": max(abs(diagnosis[part]["observed"] - diagnosis[part]["law"]) for diagnosis in diagnostics),
            "z": max(abs(diagnosis[part]["z"]) for diagnosis in diagnostics),
        }
        for part in ("tuple_members", "unlabeled")
    }
    return {"splits": len(diagnostics), **parts, "p_value": smallest, "adjusted": min(1.0, smallest * len(diagnostics))}


def write_diagnosed_split(
    labels: Path, path: Path, tuple_size: int, prior: float, broken: float = 0.0, law: str = "dominant", **drawing: Any
) -> None:
    """Draw a split and write it, with its diagnostics (.json) beside it.

    `law` is a name of `mdpu.law.named_law`, `broken` the share of tuples that break it; `drawing` are the other
    parameters of `mdpu.pipeline.data.splits.draw`.
    """
    train = read_labels(labels)["train"]
    drawn_law = named_law(law, tuple_size).broken(broken)
    split = draw(train, drawn_law, prior, **drawing)
    write_split(split, path)
    drawn = {"tuple_size": tuple_size, "prior": prior, "broken": broken, **drawing}
    drawn |= {} if law == "dominant" else {"law": law}
    facts = {**diagnose(split, train, drawn_law, prior, drawing.get("unlabeled", "pool")), "drawing": drawn}
    write_json(path.with_suffix(".json"), facts)
