"""The rule for other papers' numbers, by examples that were worked by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from mdpu.pipeline.experiments.neighbours import FILE, compare

CELL = {"dataset": "mnist-even", "variant": "two-sets", "tuple_size": 1, "n": 10, "prior": "0.1", "law": "nine-to-one"}


def cell(method: str, mean: float, std: float = 0.2, loss: str = "sigmoid") -> dict[str, object]:
    return {**CELL, "method": method, "loss": loss, "mean": mean, "std": std, "trials": 4}


@pytest.mark.parametrize(
    ("mean", "std", "trials", "own_std", "twice", "verdict"),
    [
        (95.0, 0.3, 9, 0.2, 0.2828, "agrees"),  # 2.9 points; 2 sqrt(0.09 / 9 + 0.04 / 4)
        (94.8, 0.3, 9, 0.2, 0.2828, "open"),  # 3.1 points
        (94.8, 6.0, 9, 0.2, 4.0050, "agrees"),  # within twice the standard error
        (94.8, None, 1, 0.2, 0.2, "open"),  # a number without a deviation counts as exact
    ],
)
def test_a_number_agrees_within_three_points_or_twice_the_error(mean, std, trials, own_std, twice, verdict):
    published = {**CELL, "method": "ure", "loss": "sigmoid", "paper": "P", "error": 2.1, "std": std, "trials": trials}
    theirs = pd.DataFrame([published])[["paper", *list(CELL)[:2], "law", "method", "loss", "error", "std", "trials"]]
    ours = [cell("ure", mean, own_std), cell("bag-relu", 97), cell("supervised", 98, loss="logistic")]
    (row,) = compare(pd.DataFrame(ours), theirs.astype({"std": float})).to_dict("records")
    assert (row["verdict"], row["difference"]) == (verdict, pytest.approx(100 - mean - 2.1))
    assert row["twice"] == pytest.approx(twice, abs=1e-4)
    assert (row["our_error_bag-relu"], row["our_error_supervised"]) == (3, 2)


def test_at_least_ten_published_numbers_are_compared():
    assert len(pd.read_csv(FILE).drop_duplicates(["dataset", "variant", "law", "method", "loss"])) >= 10
