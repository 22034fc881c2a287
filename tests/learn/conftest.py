"""Fixtures: small images of two classes, samples of them, and trainers."""

from __future__ import annotations

import pytest
from blobs import Blobs, Trainer, draw_blobs, draw_sample, make_tasks


@pytest.fixture(scope="session")
def blobs():
    return Blobs(*draw_blobs("train", 300), *draw_blobs("test", 120))


@pytest.fixture(scope="session")
def samples(blobs):
    """Samples of the tasks of `make_tasks`, by name."""
    return {task.sample: draw_sample(blobs.labels, task.prior, task.seed) for task in make_tasks()}


@pytest.fixture(scope="session")
def trainer(blobs, samples):
    return Trainer(blobs, samples)


@pytest.fixture(scope="session")
def alone(trainer):
    """Histories of tasks that each train alone."""
    return {task: trainer.alone(task) for task in make_tasks()}
