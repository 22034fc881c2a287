"""Kinds that show what bags give: estimated priors, epochs chosen without labels, broken tuples."""

from __future__ import annotations

import pandas as pd
import pytest

from mdpu.errors import UserError
from mdpu.pipeline.config import load_config
from mdpu.pipeline.experiments import choice, misspecification, priors
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan, Run

PLAN = Plan(load_config([REPOSITORY / "config.yaml"]))


def estimates(*intervals: tuple[float, float, float], known: float = 1.0) -> pd.DataFrame:
    rows = []
    for seed, (prior, low, high) in enumerate(intervals, start=1):
        run = Run("mnist", "base", 2, 10_000, "0.5", "bag-free", "logistic", seed)
        values = {"estimated_prior": prior, "estimated_prior_low": low, "estimated_prior_high": high}
        rows.append({**vars(run), **values, "estimated_prior_known": known})
    return pd.DataFrame(rows)


def test_estimates_of_a_cell_are_counted_in_one_row():
    """The first interval leaves out 0.4, 0.45, 0.55 and 0.6, the second holds 0.4 and 0.45 and not the true 0.5."""
    table = priors.table_rows(PLAN, None, estimates((0.51, 0.46, 0.54), (0.43, 0.36, 0.49)))
    assert table == [
        ["MNIST", "Pairs", "10,000", "0.5", "2", "-0.030 (-0.070)", "1 of 2", "3 of 4", "3 of 4", "0"],
    ]


def test_only_methods_that_estimate_the_prior_show_estimates():
    with pytest.raises(UserError, match="relu estimates no prior; bag-free does"):
        priors.check({"method": ["bag-free", "relu"]}, {}, "experiment")


def test_a_figure_along_one_key_takes_no_variant_of_another():
    variants = {"base": None, "broken-05": {"sampling": {"broken": 0.05}}, "wide": {"sampling": {"n_unlabeled": "3n"}}}
    config = {"definitions": {"variants": variants}}
    definition = {"options": {"along": "broken"}, "variant": ["base", "broken-05"]}
    misspecification.check(definition, config, "experiment")
    for wrong in ({**definition, "variant": ["base", "wide"]}, {"variant": ["base", "broken-05"]}):
        with pytest.raises(UserError, match="departs from the protocol in something else"):
            misspecification.check(wrong, config, "experiment")


def test_hyper_parameters_are_chosen_among_variants_with_the_base():
    choice.check({"options": {"among": "variants"}, "variant": ["base", "rate-2e-3"]}, {}, "experiment")
    choice.check({"variant": ["rate-2e-3"]}, {}, "experiment")
    with pytest.raises(UserError, match=r"experiment\.variant: base is what the others are compared with"):
        choice.check({"options": {"among": "variants"}, "variant": ["rate-2e-3"]}, {}, "experiment")
