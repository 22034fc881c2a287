"""Which runs a sample holds, and how far rounding may move their numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mdpu.pipeline.evaluate.retrained import (
    ROUNDED_OTHERWISE,
    rounding_tolerances,
    tolerance_of,
)
from mdpu.pipeline.plan import AXES, Run

RUN = Run("digits", "base", 2, 800, "0.5", "ure", "logistic", 1)


def rows_of(differences, method="ure", dataset="digits"):
    """Return the rows of trials that were trained twice."""
    rows = []
    for seed, difference in enumerate(differences, 1):
        for variant, accuracy in (("base", 90.0), (ROUNDED_OTHERWISE, 90.0 + difference)):
            run = replace(RUN, dataset=dataset, variant=variant, method=method, seed=seed)
            rows.append({**{axis: getattr(run, axis) for axis in AXES}, "accuracy": accuracy})
    return pd.DataFrame(rows)


@pytest.mark.parametrize("trials", [2, 6, 30])
def test_the_next_difference_lies_within_the_tolerance_as_often_as_it_says(trials):
    """Differences are normal with mean zero; 400 studies, each with a difference that it has not seen."""
    rng = np.random.default_rng(trials)
    inside = [
        abs(rng.normal(scale=0.3)) <= rounding_tolerances(rows_of(rng.normal(scale=0.3, size=trials)), 0.9).item()
        for _ in range(400)
    ]
    low, high = stats.binom.interval(0.9999, 400, 0.9)
    assert low <= sum(inside) <= high


def test_each_method_has_its_own_tolerance_and_one_that_was_not_measured_has_none():
    rows = pd.concat([rows_of([0.1, -0.1]), rows_of([1.0, -1.0], "abs"), rows_of([], "relu")])
    alone = rows_of([0.0], "bag-relu").query("variant == 'base'")
    tolerances = rounding_tolerances(pd.concat([rows, alone]))
    ure, other = (tolerance_of(replace(RUN, method=method), tolerances) for method in ("ure", "abs"))
    assert other == pytest.approx(10 * ure)
    assert all(np.isnan(tolerance_of(replace(RUN, method=method), tolerances)) for method in ("relu", "bag-relu"))


def test_a_dataset_has_its_own_tolerances_and_one_that_was_not_measured_the_largest():
    tolerances = rounding_tolerances(pd.concat([rows_of([0.1, -0.1]), rows_of([0.5, 0.5], dataset="letters")]))
    digits, letters, clothes = (
        tolerance_of(replace(RUN, dataset=dataset), tolerances) for dataset in ("digits", "letters", "clothes")
    )
    assert clothes == letters == pytest.approx(5 * digits)
