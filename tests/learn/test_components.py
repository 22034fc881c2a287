"""Images as principal components, as scikit-learn finds them, and the perceptron on them as one on their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from blobs import CPU, SETTINGS, make_tasks
from sklearn.decomposition import PCA

from mdpu.learn import fit
from mdpu.learn.networks import load_network
from mdpu.learn.networks.components import COMPONENTS, prepare

IMAGES = np.random.default_rng(0).integers(0, 256, (300, 12, 12)).astype(np.uint8) // np.arange(1, 13, dtype=np.uint8)


@pytest.mark.parametrize(("images", "unit"), [(IMAGES, 255), (IMAGES.reshape(300, -1) / 7.0, 1), (IMAGES[:20], 255)])
def test_they_are_the_principal_ones_with_one_scale(images, unit):
    found = prepare(images)(images).numpy()
    count = min(COMPONENTS, len(images))
    expected = PCA(count).fit_transform(images.reshape(len(images), -1) / unit)
    assert found.shape == (len(images), count)
    assert np.sqrt((found**2).mean()) == pytest.approx(1, rel=1e-4)
    own = np.linalg.norm(expected[:, 0]) / np.linalg.norm(found[:, 0])
    shown = np.abs(expected[:, : count - 1]), np.abs(own * found[:, : count - 1])  # signs are free
    np.testing.assert_allclose(*shown, atol=1e-3 * np.abs(expected).max())


def test_equal_images_and_few_pixels_do_no_harm():
    same = np.full((5, 4, 4), 9, np.uint8)
    assert np.abs(prepare(same)(same).numpy()).max() < 1e-6
    assert prepare(np.eye(3, dtype=np.float32))(np.eye(3, dtype=np.float32)).shape == (3, 3)


def test_the_network_is_the_perceptron_on_their_numbers(blobs, samples):
    tasks = make_tasks(methods=("bag-relu",), losses=("logistic",))
    numbers = load_network("components").prepare(blobs.images)(blobs.images).numpy()
    settings = SETTINGS.flat() | {"schedule": "one-cycle"}
    on_images, on_numbers = (
        fit(tasks, images, samples, type(SETTINGS).parse(settings | {"network": network}), device=CPU)
        for network, images in (("components", blobs.images), ("mlp", numbers))
    )
    for one, other in zip(on_images, on_numbers, strict=True):
        np.testing.assert_allclose(
            one.decision_function(blobs.images), other.decision_function(numbers), rtol=1e-4, atol=1e-5
        )
