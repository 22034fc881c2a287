"""Cells whose accuracy fell after their best epochs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mdpu.pipeline.evaluate.overfitting import overfitting
from mdpu.pipeline.plan import AXES, Run


def history(method, accuracies, seed=1, variant="base"):
    run = Run(**dict.fromkeys(AXES, 1) | {"method": method, "seed": seed, "variant": variant, "law": "dominant"})
    rows = pd.DataFrame([run] * len(accuracies)).assign(epoch=np.arange(1, len(accuracies) + 1))
    return rows.assign(accuracy=np.array(accuracies) / 100, true_positive_rate=0.5, true_negative_rate=0.5)


def test_the_last_ten_epochs_are_compared_with_the_best_ten_in_a_row_of_the_mean_over_trials():
    steady, falls = [80.0] * 40, [70.0] * 5 + [90.0] * 10 + [84.0] * 25
    metrics = pd.concat(
        [
            *(history("relu", falls, seed) for seed in (1, 2)),
            *(history("abs", accuracies, seed) for seed, accuracies in enumerate((falls, falls[::-1]))),
            history("ure", steady),
            history("ure", [90.0] * 10 + [89.1] * 30, variant="other"),
            history("bag-relu", [90.0, 50.0]),  # too few epochs to say anything
        ]
    )
    found = overfitting(metrics, "natural").set_index("method")
    assert list(found.index) == ["relu", "abs"]
    assert found.loc["relu", ["fell", "cells", "epoch"]].tolist() == [1, 1, 15]
    assert np.isclose(found.loc["relu", "points"], 6)
    mean = pd.Series((np.array(falls) + falls[::-1]) / 2).rolling(10).mean()
    assert np.isclose(found.loc["abs", "points"], mean.max() - mean.iloc[-1])


def test_a_curve_that_diverged_is_judged_by_what_it_has():
    metrics = history("ure", [90.0] * 12 + [85.0] * 10 + [np.nan] * 8)
    assert np.isclose(overfitting(metrics, "natural")["points"].item(), 5)


def test_short_trainings_say_nothing():
    assert overfitting(history("ure", [90.0] * 3), "natural").empty
