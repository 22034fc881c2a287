"""Tuning without true labels: what is estimated, by which prior, on what, and what is chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from blobs import CPU, SETTINGS, draw_sample
from hypothesis import assume, given
from hypothesis import strategies as st

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.learn import Task
from mdpu.learn.reference import plain_fit
from mdpu.learn.tuning import chosen_rates, hold_out, tune

# -- what is held out -----------------------------------------------------------------------------


@st.composite
def drawn_samples(draw):
    """Draw a sample with replacement from few images, so that many recur."""
    images, size = draw(st.integers(3, 200)), draw(st.integers(1, 4))
    n, n_unlabeled = draw(st.integers(2, 60)), draw(st.integers(2, 60))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    return TupleData(rng.integers(images, size=(n, size)), rng.integers(images, size=n_unlabeled))


@given(drawn_samples(), st.floats(0.05, 0.95))
def test_no_image_that_is_held_out_is_trained_on(sample, share):
    try:
        kept, held = hold_out(sample, share)
    except UserError:
        assume(False)
    images = set(held.tuples.ravel()) | set(held.unlabeled)
    assert not images & (set(kept.tuples.ravel()) | set(kept.unlabeled))
    # Held out are the last ones, and what is left to train on is all that shares no image with them, in order.
    assert np.array_equal(held.tuples, sample.tuples[len(sample.tuples) - len(held.tuples) :])
    assert abs(len(held.tuples) - share * len(sample.tuples)) <= 0.5 + 1e-9
    assert abs(len(held.unlabeled) - share * len(sample.unlabeled)) <= 0.5 + 1e-9
    first = sample.tuples[: len(sample.tuples) - len(held.tuples)]
    assert kept.tuples.tolist() == [row for row in first.tolist() if not images & set(row)]
    first = sample.unlabeled[: len(sample.unlabeled) - len(held.unlabeled)]
    assert kept.unlabeled.tolist() == [image for image in first.tolist() if image not in images]


@pytest.mark.parametrize(
    ("sample", "share", "sentence"),
    [
        (TupleData(np.zeros((9, 2), int), np.ones(9, int)), 0.5, "0 tuples and 0 unlabeled rows are to train on"),
        (TupleData(np.arange(18).reshape(9, 2), np.arange(20, 29)), 0.01, "0 tuples and 0 unlabeled rows are held out"),
    ],
)
def test_a_part_without_images_is_told_in_one_sentence(sample, share, sentence):
    with pytest.raises(UserError, match=sentence) as error:
        hold_out(sample, share)
    assert "change that share (validation_fraction, tuning.held_out) or take more" in str(error.value)
    assert "\n" not in str(error.value)


# -- the choice -----------------------------------------------------------------------------------

GRID = {"learning_rate": [0.002, 0.02], "weight_decay": [0.0, 0.01]}
FEW = replace(SETTINGS, epochs=3)


@pytest.fixture(scope="module")
def many(blobs):
    """Pairs drawn with replacement, as the paper does."""
    return draw_sample(blobs.labels, 0.4, 1, 150, 150)


def test_every_point_of_the_grid_is_judged_on_what_was_held_out(blobs, many):
    """By hand, with the plain trainer."""
    tasks = [Task(method, 2, 0.4, seed=1) for method in ("abs", "ure")]
    table = tune(tasks, blobs.images, many, FEW, GRID, 0.2, 2, device=CPU)
    assert list(table.columns) == ["method", "learning_rate", "weight_decay", "estimated_error", "chosen"]
    points = [(rate, decay) for rate in GRID["learning_rate"] for decay in GRID["weight_decay"]]
    assert list(table[["method", "learning_rate", "weight_decay"]].itertuples(index=False, name=None)) == [
        (task.method, *point) for task in tasks for point in points
    ]
    kept, held = hold_out(many, 0.2)
    images = blobs.images.reshape(len(blobs.images), -1) / np.float32(255)
    for task in tasks:
        method_rows = table[table["method"] == task.method]
        assert method_rows["chosen"].sum() == 1
        assert method_rows["estimated_error"][method_rows["chosen"]].item() == method_rows["estimated_error"].min()
        for row in method_rows.to_dict("records"):
            settings = replace(FEW, learning_rate=row["learning_rate"], weight_decay=row["weight_decay"])
            errors = []
            for epochs in (2, 3):
                module, _ = plain_fit(task, blobs.images, kept, replace(settings, epochs=epochs))
                rates = [
                    pd.Series([(module(torch.from_numpy(images[part])) > 0).float().mean().item()])
                    for part in (held.tuples.ravel(), held.unlabeled)
                ]
                errors.append(Law.dominant(2).error(*rates, 0.4)[0])
            # A few of the 90 held-out images may lie on the boundary within rounding.
            assert row["estimated_error"] == pytest.approx(np.mean(errors), abs=0.05)


def test_who_is_told_a_wrong_prior_tunes_by_it_too(blobs, many):
    """The rates come from its own training, and the weights from the prior that it assumes."""
    wrong = tune([Task("ure", 2, 0.5, seed=1)], blobs.images, many, FEW, GRID, 0.2, 2, device=CPU)
    right = tune([Task("ure", 2, 0.4, seed=1)], blobs.images, many, FEW, GRID, 0.2, 2, device=CPU)
    assert not np.allclose(wrong["estimated_error"], right["estimated_error"])
    rates = pd.Series([0.7]), pd.Series([0.5])
    assert not np.allclose(Law.dominant(2).error(*rates, 0.4), Law.dominant(2).error(*rates, 0.5))


def test_a_method_that_diverged_everywhere_is_told_and_leaves_the_others_theirs(blobs, many):
    """The squared loss overflows at a rate of a million, and the ramp loss cannot."""
    tasks = [Task("ure", 2, 0.4, "squared", seed=1), Task("abs", 2, 0.4, "ramp", seed=1)]
    grid = {"learning_rate": [1e6, 1e7], "weight_decay": [0.0]}
    table = tune(tasks, blobs.images, many, replace(FEW, epochs=5), grid, 0.2, 2, device=CPU)
    assert table.groupby("method")["estimated_error"].count().to_dict() == {"abs": 2, "ure": 0}
    assert table.groupby("method")["chosen"].sum().to_dict() == {"abs": 1, "ure": 0}
    ((method, (rate, decay)),) = chosen_rates(table, ["abs", "kmeans"]).items()
    assert (method, decay) == ("abs", 0.0)
    assert rate in grid["learning_rate"]
    with pytest.raises(UserError) as error:
        chosen_rates(table, ["abs", "ure"])
    assert str(error.value) == "method ure diverged at every point of tuning.grid; add smaller learning rates"
