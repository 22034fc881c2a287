"""Bags of test images: drawn from one half by the law of the tuples, and judged on the other."""

from __future__ import annotations

import numpy as np
import pytest

from mdpu.law import Law
from mdpu.pipeline.plan import Run
from mdpu.pipeline.validation import BAGS, draw_validation_bags

LABELS = np.tile(np.array([1, -1, 0, -1], dtype=np.int8), 300)
KEPT = LABELS[LABELS != 0]


def bags(broken: float = 0.0, **changes):
    values = {"dataset": "mnist", "variant": "base", "tuple_size": 3, "n": 10, "prior": "0.4", "method": "relu"}
    run = Run(**{**values, "loss": "logistic", "seed": 1, **changes})
    return draw_validation_bags(LABELS, run, Law.dominant(run.tuple_size).broken(broken))


def test_no_bag_holds_an_image_that_judges_the_choice():
    drawn = bags()
    members = np.union1d(drawn.tuples, drawn.unlabeled)
    assert not np.isin(members, drawn.others).any()
    assert len(drawn.others) == len(KEPT) // 2
    assert [np.sum(KEPT[drawn.others] == sign) for sign in (1, -1)] == [150, 300]


def test_bags_follow_the_law_of_the_run():
    drawn = bags()
    assert drawn.tuples.shape == (BAGS, 3) and drawn.unlabeled.shape == (BAGS,)
    positives = (KEPT[drawn.tuples] > 0).sum(axis=1)
    assert positives.min() >= 2
    assert positives.mean() / 3 == pytest.approx(Law.dominant(3).coefficients(0.4).a, abs=0.02)
    assert (KEPT[drawn.unlabeled] > 0).mean() == pytest.approx(0.4, abs=0.04)


def test_methods_of_a_trial_share_their_bags_and_trials_do_not():
    same, other = bags(method="bag-relu"), bags(seed=2)
    assert np.array_equal(same.tuples, bags().tuples)
    assert not np.array_equal(other.tuples, same.tuples)
