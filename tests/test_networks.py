"""Settings and networks: what a network wants as input, its initial weights, several side by
side.
"""

import itertools
import json
import math
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from blobs import IMAGES, SIDE, TEST_IMAGES
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from mdpu.errors import UserError
from mdpu.networks import COMPONENTS, make_network, prepare
from mdpu.randomness import Stream
from mdpu.settings import Settings, rate_factor

CPU = torch.device("cpu")
SMALL = Settings(architecture={"hidden": [20, 12]})

# -- settings --------------------------------------------------------------------------------------


WRONG = {
    "epochs": [0, 2.5, "3"],
    "batch_size": [True],
    "batch_counts": ["pairs"],
    "optimizer": ["sgd"],
    "schedule": ["cosine"],
    "learning_rate": [0, math.nan, "1e-3"],
    "weight_decay": [-1.0, math.inf],
    "precision": ["auto"],
    "network": [3],
    "hiden": [[3]],
    "hidden": [30, [30, 0], [30, 2.5], [10**9], [1] * 1000],
}
OF_RESNET = [
    ({"network": "resnet34", "stem": "cifr"}, "stem"),
    ({"network": "resnet34", "hidden": [3]}, "hidden"),
    ({"network": "resnet99"}, "resnet99"),
]


@pytest.mark.parametrize(
    ("values", "key"),
    [*(({key: value}, key) for key, values in WRONG.items() for value in values), *OF_RESNET],
)
def test_wrong_settings_are_refused(values, key):
    with pytest.raises(UserError, match=key) as error:
        Settings.parse(values)
    assert "\n" not in str(error.value)


def test_settings_take_numbers_of_numpy_and_whole_rates():
    settings = Settings(epochs=np.int64(3), learning_rate=1, weight_decay=np.float32(0.5))
    assert settings.epochs == 3
    assert settings.learning_rate == 1
    assert settings.weight_decay == 0.5


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
        precision=st.sampled_from(["float32", "bfloat16", "tf32"]),
        hidden=st.lists(st.integers(1, 500), max_size=4),
    )
)
def test_settings_are_read_back_from_what_is_written_of_them(values):
    settings = Settings.parse(values)
    flat = json.loads(json.dumps(settings.flat()))
    assert flat == {**values, "network": "mlp"}
    assert Settings.parse(flat) == settings


def test_what_is_left_out_has_the_defaults_of_the_network():
    perceptron = Settings().flat()
    assert perceptron["hidden"] == (300, 300)
    assert perceptron["schedule"] == "constant"
    assert Settings(network="resnet34").flat()["stem"] == "cifar"
    assert Settings(network=nn.Linear(3, 1)).architecture == {}


@given(st.integers(1, 2000))
def test_a_one_cycle_schedule_rises_over_the_first_fifth_and_falls_to_almost_zero(steps):
    settings = Settings(schedule="one-cycle")
    factors = np.array([rate_factor(settings, step, steps) for step in range(steps)])
    assert factors.min() > 0
    assert factors.max() <= 1
    assert factors[-1] == pytest.approx(min(1.25 / steps, 1))

    top = factors.argmax()
    assert abs(top + 1 - max(1, steps / 5)) <= 1
    changes = np.diff(factors)
    assert (changes[:top] > 0).all()
    assert (changes[top + 1 :] < 0).all()


# -- the perceptron --------------------------------------------------------------------------------


@given(st.integers(1, 2000))
def test_a_constant_schedule_changes_no_rate(steps):
    for step in range(steps):
        assert rate_factor(Settings(), step, steps) == 1.0


@pytest.mark.parametrize("outputs", [1, 64])
def test_the_perceptron_is_drawn_for_all_pixels_and_computes_with_those_in_use(outputs):
    """Grey values between 0 and 1; weights uniform on +-1/sqrt(inputs), as torch.nn.Linear draws
    them.
    """
    x = IMAGES.reshape(300, -1) / 255
    preparation = prepare(SMALL, IMAGES)
    assert preparation.pixels.tolist() == np.flatnonzero(x.any(axis=0)).tolist()
    assert len(preparation.pixels) < SIDE * SIDE
    module = make_network(SMALL, preparation, outputs, "a seed")

    widths = [SIDE * SIDE, 20, 12, outputs]
    for layer, (inputs, units) in enumerate(itertools.pairwise(widths)):
        stream = Stream("a seed", "initial weights", layer)
        drawn = (2 * stream.uniform(inputs + 1, units) - 1) / inputs**0.5
        if layer > 0:
            x = np.maximum(x, 0)
        x = x @ drawn[:-1] + drawn[-1]
    with torch.no_grad():
        np.testing.assert_allclose(module(preparation(IMAGES)), x, rtol=1e-4, atol=1e-6)
    assert x.std() > 1e-3


@pytest.mark.parametrize(("images", "unit"), [(IMAGES, 255), (np.float32(IMAGES) / 40, 1)])
def test_components_are_the_principal_ones_with_one_scale(images, unit):
    settings = Settings(network="components", architecture={"hidden": [8]})
    preparation = prepare(settings, images)
    projected = preparation(images)

    x = images.reshape(300, -1) / unit
    covariance = np.cov(x, rowvar=False, bias=True)
    ascending = np.linalg.eigvalsh(covariance)
    variances = ascending[::-1][:COMPONENTS]
    expected = variances / variances.mean()
    found = projected.var(dim=0, correction=0)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(projected.mean(dim=0), 0, atol=1e-4)
    assert make_network(settings, preparation, 1, 1)(projected).shape == (300, 1)


@pytest.mark.parametrize(
    "images", [np.full((5, 4), 7, np.uint8), np.arange(6, dtype=np.float32).reshape(6, 1)]
)
def test_equal_images_and_few_pixels_do_no_harm(images):
    settings = Settings(network="components", architecture={"hidden": [8]})
    assert torch.isfinite(prepare(settings, images)(images)).all()


# -- pictures and modules --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stem", "shape", "stride"),
    [
        ("cifar", (8, 8, 3), (1, 1)),
        ("imagenet", (28, 28), (2, 2)),
    ],
)
def test_resnet_takes_pictures_of_any_channels_and_its_stem(stem, shape, stride):
    settings = Settings(network="resnet34", architecture={"stem": stem})
    images = np.zeros((2, *shape), np.uint8)
    preparation = prepare(settings, images)
    module = make_network(settings, preparation, 1, 3)
    assert module(preparation(images)).shape == (2, 1)
    assert module.conv1.stride == stride
    assert 21e6 < sum(weights.numel() for weights in module.parameters()) < 22e6

    again = make_network(settings, preparation, 1, 3)
    for weights, expected in zip(again.parameters(), module.parameters(), strict=True):
        assert weights.equal(expected)


COLOURS = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)


CHANNELS_FIRST = np.moveaxis(COLOURS, -1, 1)


VECTORS = COLOURS.reshape(2, -1)


@pytest.mark.parametrize(
    ("images", "shape", "expected"),
    [
        (COLOURS, (4, 5, 3), CHANNELS_FIRST / 255),
        (COLOURS[..., 0], (4, 5), CHANNELS_FIRST[:, :1] / 255),
        (VECTORS, (60,), VECTORS / 255),
        (np.float64(VECTORS), (60,), VECTORS),
    ],
    ids=["colour", "grey", "bytes", "numbers"],
)
def test_modules_take_vectors_or_pictures_with_the_channels_first(images, shape, expected):
    network = Mock(return_value=nn.LazyLinear(1))
    settings = Settings(network=network)
    preparation = prepare(settings, images)
    make_network(settings, preparation, 1, 1)
    network.assert_called_once_with(shape)

    x = preparation(images)
    assert x.dtype == torch.float32
    assert x.is_contiguous()
    np.testing.assert_allclose(x, expected, rtol=1e-6)


@pytest.mark.parametrize("given", [TEST_IMAGES[:, :5], np.float32(TEST_IMAGES)])
def test_images_unlike_those_of_the_training_are_refused(given):
    preparation = prepare(SMALL, IMAGES)
    with pytest.raises(UserError, match=r"shape|type"):
        preparation(given)
