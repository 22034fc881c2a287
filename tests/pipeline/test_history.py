"""A run's history as a table."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpu.learn.risk import TERMS
from mdpu.pipeline.history import MEASURES, run_history

SHARE = 0.4


def trained(positive, negative, **others):
    """Return what training gives: rates and other measures, epoch by epoch."""
    epochs = range(1, len(positive) + 1)
    rates = {"true_positive_rate": positive, "true_negative_rate": negative}
    return pd.DataFrame({"epoch": epochs, "objective": 1.0, **others, **rates})


def test_a_history_holds_what_every_history_has_and_further_measures_behind():
    terms = {f"risk_{term}": [value, 2 * value] for term, value in zip(TERMS, (0.5, -0.1, -0.2, 0.4), strict=True)}
    history = run_history("abs", trained([0.9, 0.8], [0.7, 0.6], **terms, test_risk=[0.3, 0.4]), SHARE)
    assert list(history.columns) == ["epoch", *MEASURES, "risk", "raw_accuracy", "accuracy", "test_risk"]
    assert history["epoch"].tolist() == [1, 2]
    assert history["risk"].tolist() == pytest.approx([0.6, 1.2])
    assert history["accuracy"].tolist() == pytest.approx([0.4 * 0.9 + 0.6 * 0.7, 0.4 * 0.8 + 0.6 * 0.6])
    assert history["raw_accuracy"].equals(history["accuracy"])
    assert history["test_risk"].tolist() == [0.3, 0.4]


@given(st.floats(0, 1), st.floats(0, 1))
def test_an_unnamed_method_takes_the_better_assignment_and_swaps_its_rates_with_it(positive, negative):
    row = run_history("kmeans", trained([positive], [negative]), SHARE).iloc[0]
    raw = SHARE * positive + (1 - SHARE) * negative
    assert row["raw_accuracy"] == pytest.approx(raw)
    assert row["accuracy"] == pytest.approx(max(raw, 1 - raw))
    rates = row[["true_positive_rate", "true_negative_rate"]].tolist()
    assert rates == pytest.approx([positive, negative] if raw >= 0.5 else [1 - positive, 1 - negative])
    assert row["accuracy"] == pytest.approx(SHARE * rates[0] + (1 - SHARE) * rates[1])
