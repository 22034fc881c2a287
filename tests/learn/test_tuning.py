"""Tuning without true labels: what is estimated, and by which prior."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mdpu.learn.tuning import estimated_error
from mdpu.study.grid import Run
from mdpu.theory import coefficients


def run_of(prior: str, tuple_size: int = 2) -> Run:
    return Run("mnist", "base", tuple_size, 10, prior, "abs", "logistic", 1)


@pytest.mark.parametrize("tuple_size", [2, 3])
@pytest.mark.parametrize("prior", ["0.3", "0.5", "0.6"])
def test_from_exact_rates_the_estimate_is_the_error(tuple_size, prior):
    """A classifier with true-positive rate 0.9 and true-negative rate 0.8 has error 0.1 pi_+ + 0.2 pi_-."""
    a, pi = coefficients(tuple_size, float(prior)).a, float(prior)
    of_tuples, of_unlabeled = (pd.Series([0.9 * share + 0.2 * (1 - share)]) for share in (a, pi))
    found = estimated_error(run_of(prior, tuple_size), {"prior_offset": 0.0}, of_tuples, of_unlabeled)
    np.testing.assert_allclose(found, 0.1 * pi + 0.2 * (1 - pi))


def test_who_assumes_a_wrong_prior_tunes_by_it_too():
    rates = pd.Series([0.7]), pd.Series([0.5])
    wrong = estimated_error(run_of("0.4"), {"prior_offset": 0.1}, *rates)
    np.testing.assert_array_equal(wrong, estimated_error(run_of("0.5"), {"prior_offset": 0.0}, *rates))
    assert not np.allclose(wrong, estimated_error(run_of("0.4"), {"prior_offset": 0.0}, *rates))
