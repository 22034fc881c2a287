"""Small images of two overlapping classes, and trainings on them."""

import numpy as np

from mdpu.data import draw_split
from mdpu.networks import TestSet
from mdpu.randomness import Stream
from mdpu.settings import Settings, Task
from mdpu.train import train

SIDE = 6
SETTINGS = Settings(
    epochs=4,
    batch_size=25,
    learning_rate=0.002,
    weight_decay=0.01,
    architecture={"hidden": [20, 12]},
)


def draw_blobs(part, n, noise=60):
    """Draw grey noise in a black frame, brighter on the left for one class and on the right for the
    other.

    Returns images (n, SIDE, SIDE), uint8, and labels (n,), +1 or -1.
    """
    labels = np.where(np.arange(n) % 5 < 2, 1, -1).astype(np.int8)
    grey = Stream(1, f"{part} images").uniform(n, SIDE - 2, SIDE - 2)
    columns = np.where(np.arange(SIDE - 2) < SIDE // 2 - 1, 1, -1)
    inner = (90 + 40 * columns * labels[:, None, None] + noise * grey).astype(np.uint8)
    return np.pad(inner, ((0, 0), (1, 1), (1, 1))), labels


IMAGES, LABELS = draw_blobs("train", 300)
TEST_IMAGES, TEST_LABELS = draw_blobs("test", 120)


def draw_sample(seed=1, size=2, n=60, unlabeled=77, law=None, prior=0.4):
    """Draw dominant tuples; with these numbers the last minibatch is smaller, and unlabeled images
    are no multiple.
    """
    return draw_split(LABELS, law or size, prior, n, unlabeled, seed)


def rates():
    """Return an evaluation on the test images."""
    return TestSet(TEST_IMAGES, TEST_LABELS, IMAGES, LABELS)


def train_blobs(
    method, samples, seeds, settings=SETTINGS, images=IMAGES, evaluation=None, **others
):
    """Train a method on samples of the blobs."""
    options = {name: others.pop(name) for name in ("loss", "law", "target_prior") if name in others}
    task = Task(method, samples[0].tuples.shape[1], others.pop("prior", 0.4), **options)
    given = {"labels": LABELS, "evaluation": evaluation or rates(), **others}
    return train(task, images, samples, seeds, settings, **given)


def assert_same(history, expected, tolerance=0.0):
    """Compare two histories, number by number: bit for bit, unless a tolerance is given."""
    assert list(history.columns) == list(expected.columns)
    np.testing.assert_allclose(
        history.to_numpy(float), expected.to_numpy(float), rtol=tolerance, atol=tolerance
    )
