"""Settings and networks: what a network wants as input, its initial weights, several side by
side.
"""

import itertools
import json
import math

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
]
OF_RESNET += [({"network": "resnet99"}, "resnet99")]


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
    assert Settings().flat()["hidden"] == (300, 300) and Settings().flat()["schedule"] == "constant"
    assert Settings(network="resnet34").flat()["stem"] == "cifar"
    assert Settings(network=nn.Linear(3, 1)).architecture == {}


@given(st.integers(1, 2000))
def test_a_one_cycle_schedule_rises_over_the_first_fifth_and_falls_to_almost_zero(steps):
    constant = Settings()
    one_cycle = Settings(schedule="one-cycle")
    factors = [rate_factor(one_cycle, step, steps) for step in range(steps)]
    top = int(np.argmax(factors))
    assert abs(top + 1 - max(1, steps / 5)) <= 1
    assert 0 < min(factors) <= max(factors) <= 1
    assert np.all(np.diff(factors[: top + 1]) > 0) and np.all(np.diff(factors[top + 1 :]) < 0)
    assert factors[-1] == pytest.approx(min(1.25 / steps, 1))
    assert {rate_factor(constant, step, steps) for step in range(steps)} == {1.0}


# -- the perceptron --------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 64])
def test_the_perceptron_is_drawn_for_all_pixels_and_computes_with_those_in_use(outputs):
    """Grey values between 0 and 1; weights uniform on +-1/sqrt(inputs), as torch.nn.Linear draws
    them.
    """
    preparation = prepare(SMALL, IMAGES)
    assert (
        preparation.pixels.tolist() == np.flatnonzero(IMAGES.reshape(300, -1).any(axis=0)).tolist()
    )
    assert len(preparation.pixels) < SIDE * SIDE
    module = make_network(SMALL, preparation, outputs, "a seed")
    x = IMAGES.reshape(300, -1) / 255
    for layer, (inputs, units) in enumerate(itertools.pairwise([SIDE * SIDE, 20, 12, outputs])):
        drawn = (
            2 * Stream("a seed", "initial weights", layer).uniform(inputs + 1, units) - 1
        ) / inputs**0.5
        x = (np.maximum(x, 0) if layer else x) @ drawn[:-1] + drawn[-1]
    with torch.no_grad():
        np.testing.assert_allclose(module(preparation(IMAGES)), x, rtol=1e-4, atol=1e-6)
    assert x.std() > 1e-3


@pytest.mark.parametrize(("images", "unit"), [(IMAGES, 255), (np.float32(IMAGES) / 40, 1)])
def test_components_are_the_principal_ones_with_one_scale(images, unit):
    settings = Settings(network="components", architecture={"hidden": [8]})
    preparation = prepare(settings, images)
    projected = preparation(images).numpy()
    x = images.reshape(300, -1) / unit
    values = np.linalg.eigvalsh(np.cov(x, rowvar=False, bias=True))[::-1][
        : min(COMPONENTS, x.shape[1])
    ]
    np.testing.assert_allclose(projected.var(axis=0), values / values.mean(), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(projected.mean(axis=0), 0, atol=1e-4)
    assert make_network(settings, preparation, 1, 1)(preparation(images)).shape == (300, 1)


def test_equal_images_and_few_pixels_do_no_harm():
    settings = Settings(network="components", architecture={"hidden": [8]})
    for images in (np.full((5, 4), 7, np.uint8), np.arange(6, dtype=np.float32).reshape(6, 1)):
        assert torch.isfinite(prepare(settings, images)(images)).all()


# -- pictures and modules --------------------------------------------------------------------------


@pytest.mark.parametrize(("stem", "shape"), [("cifar", (8, 8, 3)), ("imagenet", (28, 28))])
def test_resnet_takes_pictures_of_any_channels_and_its_stem(stem, shape):
    settings = Settings(network="resnet34", architecture={"stem": stem})
    images = np.zeros((2, *shape), np.uint8)
    preparation = prepare(settings, images)
    module = make_network(settings, preparation, 1, 3)
    assert module(preparation(images)).shape == (2, 1)
    assert module.conv1.stride == ((1, 1) if stem == "cifar" else (2, 2))
    assert 21e6 < sum(parameter.numel() for parameter in module.parameters()) < 22e6
    again = make_network(settings, preparation, 1, 3)
    assert all(a.equal(b) for a, b in zip(module.parameters(), again.parameters(), strict=True))


def test_modules_take_vectors_or_pictures_with_the_channels_first():
    colours = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    seen = []

    def network(shape):
        seen.append(shape)
        return nn.LazyLinear(1)

    for images in (
        colours,
        colours[..., 0],
        colours.reshape(2, -1),
        np.float64(colours.reshape(2, -1)),
    ):
        settings = Settings(network=network)
        preparation = prepare(settings, images)
        make_network(settings, preparation, 1, 1)
        x = preparation(images)
        expected = images[:, None] if images.ndim == 3 else np.moveaxis(images, -1, 1)
        assert x.dtype == torch.float32 and x.is_contiguous()
        np.testing.assert_allclose(
            x, expected / (255 if images.dtype == np.uint8 else 1), rtol=1e-6
        )
    assert seen == [(4, 5, 3), (4, 5), (60,), (60,)]


@pytest.mark.parametrize("given", [TEST_IMAGES[:, :5], np.float32(TEST_IMAGES)])
def test_images_unlike_those_of_the_training_are_refused(given):
    preparation = prepare(SMALL, IMAGES)
    with pytest.raises(UserError, match=r"shape|type"):
        preparation(given)
