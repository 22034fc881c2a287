"""Small trainings on the digits that scikit-learn carries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from mdpu.data import TupleData, draw_split
from mdpu.learn import Task, fit
from mdpu.learn.evaluation import TestRates as Rates
from mdpu.learn.prior import brief_estimate
from mdpu.pipeline.config import load_config
from mdpu.pipeline.data.images import ImageSet
from mdpu.pipeline.data.labels import Labels, binarize
from mdpu.pipeline.data.sources import SOURCES
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.history import run_history
from mdpu.pipeline.plan import Plan, Run


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def quick_settings():
    plan = Plan(load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"]))
    return plan.settings("base", "mlp")


@dataclass(frozen=True)
class Digits:
    """Images and labels of the digits, even ones against odd ones."""

    images: ImageSet
    labels: Labels

    def rates(self):
        """Return an evaluation on the test images."""
        return Rates(self.images.test_images, self.labels["test"], self.images.train_images, self.labels["train"])

    @property
    def share_positive(self):
        """Share of positives among the test images."""
        return float(np.mean(self.labels["test"] > 0))


@pytest.fixture(scope="session")
def digits():
    images = SOURCES["digits"].read([])
    return Digits(images, binarize(images, list("02468"), list("13579")))


@pytest.fixture(scope="session")
def draw(digits):
    def draw(tuple_size=2, prior=0.5, n=400, seed=1):
        split = draw_split(digits.labels["train"], tuple_size, prior, n, n, seed)
        return TupleData(split.tuples, split.unlabeled)

    return draw


@pytest.fixture(scope="session")
def train_digits(digits, quick_settings, draw):
    """Return a function that trains methods on one sample and gives the histories of their runs by name."""

    def train_digits(*methods, epochs, tuple_size=2, n=400, **settings):
        models = fit(
            [Task(method, tuple_size, 0.5, seed=1) for method in methods],
            digits.images.train_images,
            draw(tuple_size, n=n),
            replace(quick_settings, epochs=epochs, batch_size=100, **settings),
            labels=digits.labels["train"],
            evaluation=digits.rates(),
            device="cpu",
            estimate_prior=brief_estimate,
        )
        runs = {method: Run("digits", "base", tuple_size, n, "0.5", method, "logistic", 1) for method in methods}
        return {
            method: run_history(method, model.history, digits.share_positive).assign(**vars(runs[method]))
            for method, model in zip(methods, models, strict=True)
        }

    return train_digits
