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


INNER = SIDE - 2  # within the frame
COLUMNS = np.where(np.arange(INNER) < INNER // 2, 1, -1)


def draw_blobs(part, n, noise=60):
    """Draw grey noise in a black frame, brighter on the left for one class and on the right for the
    other.

    Returns images (n, SIDE, SIDE), uint8, and labels (n,), +1 or -1.
    """
    is_positive = np.arange(n) % 5 < 2
    labels = np.where(is_positive, 1, -1)
    grey = Stream(1, f"{part} images").uniform(n, INNER, INNER)
    inner = 90 + 40 * labels[:, None, None] * COLUMNS + noise * grey
    images = np.zeros((n, SIDE, SIDE), np.uint8)
    images[:, 1:-1, 1:-1] = inner
    return images, labels.astype(np.int8)


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


OPTIONS = ("loss", "law")


def train_blobs(
    method,
    samples,
    seeds,
    settings=SETTINGS,
    images=IMAGES,
    evaluation=None,
    prior=0.4,
    **others,
):
    """Train a method on samples of the blobs."""
    options = {name: others.pop(name) for name in OPTIONS if name in others}
    tuple_size = samples[0].tuples.shape[1]
    task = Task(method, tuple_size, prior, **options)
    others.setdefault("labels", LABELS)
    others["evaluation"] = evaluation or rates()
    return train(task, images, samples, seeds, settings, **others)


def assert_same(history, expected, tolerance=0.0):
    """Compare two histories, number by number: bit for bit, unless a tolerance is given."""
    assert list(history.columns) == list(expected.columns)
    np.testing.assert_allclose(
        history.to_numpy(float), expected.to_numpy(float), rtol=tolerance, atol=tolerance
    )
