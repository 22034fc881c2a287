"""What is asked of the trainer: tasks, samples and settings, and what is said about wrong ones."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.learn import Settings, Task
from mdpu.learn.task import check_sample, rate_factor, tuples_per_batch

# -- settings -------------------------------------------------------------------------------------

WRONG = {
    "epochs of none": ({"epochs": 0}, "epochs is 0; at least 1 is needed"),
    "epochs in halves": ({"epochs": 2.5}, "epochs is 2.5; an integer is needed"),
    "epochs as a text": ({"epochs": "3"}, "epochs is '3'; an integer is needed"),
    "an unknown count": ({"batch_counts": "pairs"}, "batch_counts is 'pairs'; it must be one of tuples, images"),
    "an unknown optimizer": ({"optimizer": "sgd"}, "optimizer is 'sgd'; it must be one of adam, adamw"),
    "a rate of none": ({"learning_rate": 0}, "learning_rate is 0; a positive number is needed"),
    "a rate as a text": ({"learning_rate": "1e-3"}, "learning_rate is '1e-3'; a number is needed"),
    "a decay below": ({"weight_decay": -1.0}, "weight_decay is -1.0; 0 or a positive number is needed"),
    "an unknown precision": (
        {"precision": "fp16"},
        "precision is 'fp16'; it must be one of auto, fp32, tf32, bf16",
    ),
    "an unknown network": ({"network": "resnet99"}, "network 'resnet99' is unknown; known are components, mlp,"),
    "an unknown setting": ({"hiden": [3]}, "'hiden' is no setting; known are hidden and those of training"),
    "a number for layers": ({"hidden": 30}, "hidden is 30; a list of positive integers is needed"),
    "an unknown stem": (
        {"network": "resnet34", "stem": "cifr"},
        "stem is 'cifr'; it must be one of cifar, imagenet",
    ),
}


@pytest.mark.parametrize(("values", "sentence"), WRONG.values(), ids=WRONG)
def test_wrong_settings_are_refused_in_one_sentence(values, sentence):
    with pytest.raises(UserError) as error:
        Settings.parse(values)
    assert str(error.value).startswith(sentence)
    assert "\n" not in str(error.value)


def test_settings_take_numbers_of_numpy_and_whole_rates():
    settings = Settings(epochs=np.int64(3), learning_rate=1, weight_decay=np.float32(0.5))
    assert (settings.epochs, settings.learning_rate, settings.weight_decay) == (3, 1, 0.5)


@given(
    st.builds(
        dict,
        epochs=st.integers(1, 1000),
        batch_size=st.integers(1, 10_000),
        batch_counts=st.sampled_from(["tuples", "images"]),
        optimizer=st.sampled_from(["adam", "adamw"]),
        schedule=st.sampled_from(["constant", "one-cycle"]),
        learning_rate=st.floats(1e-9, 1e3),
        weight_decay=st.floats(0, 1e3),
        precision=st.sampled_from(["auto", "fp32", "tf32", "bf16"]),
        hidden=st.lists(st.integers(1, 500), max_size=4),
    )
)
def test_settings_are_read_back_from_what_is_written_of_them(values):
    settings = Settings.parse(values)
    flat = json.loads(json.dumps(settings.flat()))
    named = {key: value for key, value in values.items() if (key, value) != ("schedule", "constant")}
    assert flat == {**named, "network": "mlp"}
    assert Settings.parse(flat) == settings


@given(st.integers(1, 2000))
def test_a_one_cycle_schedule_rises_over_the_first_fifth_and_falls_to_almost_zero(steps):
    constant, one_cycle = Settings(), Settings(schedule="one-cycle")
    factors = [rate_factor(one_cycle, step, steps) for step in range(steps)]
    top = int(np.argmax(factors))
    assert abs(top + 1 - max(1, steps / 5)) <= 1
    assert 0 < min(factors) <= max(factors) <= 1
    assert np.all(np.diff(factors[: top + 1]) > 0) and np.all(np.diff(factors[top + 1 :]) < 0)
    assert factors[-1] == pytest.approx(min(1.25 / steps, 1))
    assert {rate_factor(constant, step, steps) for step in range(steps)} == {1.0}


@pytest.mark.parametrize(("counts", "size", "expected"), [("tuples", 3, 100), ("images", 3, 33), ("images", 200, 1)])
def test_a_minibatch_counts_tuples_or_their_members(counts, size, expected):
    assert tuples_per_batch(Settings(batch_size=100, batch_counts=counts), size) == expected


# -- tasks and samples ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "sentence"),
    [((0, 0.5), "tuple size"), ((2, 0.0), "prior"), ((2, 1.0), "prior"), ((2, math.nan), "prior")],
)
def test_a_task_out_of_range_is_refused(values, sentence):
    with pytest.raises(UserError, match=sentence):
        Task("abs", *values)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 7))
def test_gathered_images_are_those_of_the_tuples_and_the_unlabeled_ones(n, size, n_unlabeled):
    tuples = np.arange(n * size * 3).reshape(n, size, 3).astype(np.float32)
    unlabeled = -np.arange(n_unlabeled * 3).reshape(n_unlabeled, 3).astype(np.float32)
    images, sample = TupleData.gather(tuples, unlabeled)
    assert np.array_equal(images[sample.tuples], tuples)
    assert np.array_equal(images[sample.unlabeled], unlabeled)
    assert len(images) == n * size + n_unlabeled


@pytest.mark.parametrize(
    ("tuples", "unlabeled", "sentence"),
    [
        (np.zeros((3, 2, 4)), np.zeros((5, 3)), r"tuples hold rows of shape \(4,\) and type float64, but .*\(3,\)"),
        (np.zeros((3, 2, 4)), np.zeros((5, 4), np.uint8), "type float64, but the unlabeled ones have .* uint8"),
        (np.zeros((0, 2, 4)), np.zeros((5, 4)), "both needed, but there are none, or a tuple has no member"),
        (np.zeros((3, 2, 4)), np.zeros((0, 4)), "both needed, but there are none, or a tuple has no member"),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(tuples, unlabeled, sentence):
    with pytest.raises(UserError, match=sentence):
        TupleData.gather(tuples, unlabeled)


def test_tuples_of_several_sizes_are_gathered_with_minus_one_where_there_is_no_member():
    tuples = [np.full((size, 3), size, dtype=np.float32) for size in (2, 4, 1)]
    images, sample = TupleData.gather(tuples, np.zeros((5, 3), dtype=np.float32))
    assert sample.is_ragged
    assert sample.tuples.tolist() == [[0, 1, -1, -1], [2, 3, 4, 5], [6, -1, -1, -1]]
    assert images[:, 0].tolist() == [2, 2, 4, 4, 4, 4, 1, 0, 0, 0, 0, 0]
    assert sample.unlabeled.tolist() == [7, 8, 9, 10, 11]
    check_sample(sample, len(images), [Task("ure", 4, 0.5)])


@pytest.mark.parametrize("row", [[-1, -1], [-1, 0]])
def test_a_tuple_without_members_or_with_a_gap_is_refused(row):
    sample = TupleData(np.array([[0, 1], row]), np.array([0]))
    with pytest.raises(UserError, match="has no member, or has -1 before its last member"):
        check_sample(sample, 2, [Task("ure", 2, 0.5)])
