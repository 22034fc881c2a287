"""Small trainings on the digits that scikit-learn carries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from mdpu.data import draw_split
from mdpu.learn import Sample, Settings, Task, fit
from mdpu.learn.evaluation import TestRates as Rates
from mdpu.learn.prior import brief_estimate
from mdpu.pipeline.config import load_config
from mdpu.pipeline.data.images import ImageSet
from mdpu.pipeline.data.labels import Labels, binarize
from mdpu.pipeline.data.sources import SOURCES
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.history import run_history
from mdpu.pipeline.plan import Plan, Run, run_columns


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def quick_settings() -> Settings:
    plan = Plan(load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"]))
    return plan.settings("base", "mlp")


@dataclass(frozen=True)
class Digits:
    """Images and labels of the digits, even ones against odd ones."""

    images: ImageSet
    labels: Labels

    def rates(self) -> Rates:
        """Return an evaluation on the test images."""
        return Rates(self.images.test_images, self.labels["test"], self.images.train_images, self.labels["train"])

    @property
    def share_positive(self) -> float:
        """Share of positives among the test images."""
        return float(np.mean(self.labels["test"] > 0))


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Digits:
    images = SOURCES["digits"].read(Path(tmp_path_factory.mktemp("downloads")))
    return Digits(images, binarize(images, list("02468"), list("13579")))


@pytest.fixture(scope="session")
def draw(digits: Digits) -> Callable[..., Sample]:
    def draw(tuple_size: int = 2, prior: float = 0.5, n: int = 400, seed: int = 1) -> Sample:
        split = draw_split(digits.labels["train"], tuple_size, prior, n, n, seed)
        return Sample(split.tuples, split.unlabeled)

    return draw


@pytest.fixture(scope="session")
def train_digits(
    digits: Digits, quick_settings: Settings, draw: Callable[..., Sample]
) -> Callable[..., dict[str, pd.DataFrame]]:
    """Return a function that trains methods on one sample and gives the histories of their runs by name."""

    def train_digits(*methods: str, epochs: int, tuple_size: int = 2, n: int = 400, **settings: Any) -> Any:
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
            method: run_history(method, model.history, digits.share_positive).assign(**run_columns(runs[method]))
            for method, model in zip(methods, models, strict=True)
        }

    return train_digits
