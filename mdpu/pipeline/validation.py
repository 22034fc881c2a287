"""Bags of test images, by which the epoch of a run can be chosen without labels.

The paper's protocol holds out nothing, and a sample that gives up tuples would train other models. So the test images
of each side are cut in two halves. Bags are drawn from one half by the law of the run's tuples. The other half says how
good a choice by these bags is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdpu.data import draw_split
from mdpu.law import Law
from mdpu.learn.evaluation import ValidationBags
from mdpu.pipeline.plan import Run
from mdpu.randomness import Stream

BAGS = 2000  # tuples, and as many unlabeled images: a fifth of the paper's n


def draw_validation_bags(labels: NDArray[np.int8], run: Run, law: Law) -> ValidationBags:
    """Draw the bags of a run's trial.

    Parameters
    ----------
    labels : ndarray, int8, shape (N_test,)
        +1, -1 or 0. The indices of the bags count only images with label +1 or -1.
    run : Run
    law : Law
        Of the tuples, as in the run's sample.

    Raises
    ------
    UserError
        If a side has no test image.
    """
    kept = labels[labels != 0]
    trial = f"{run.trial}/validation"
    order = Stream(trial, "halves").permutation(len(kept))
    sides = [order[kept[order] == sign] for sign in (1, -1)]
    first = np.concatenate([side[: (len(side) + 1) // 2] for side in sides])
    half = np.zeros_like(kept)
    half[first] = kept[first]
    split = draw_split(half, law, float(run.prior), BAGS, BAGS, trial)
    return ValidationBags(split.tuples, split.unlabeled, np.flatnonzero(half == 0))
