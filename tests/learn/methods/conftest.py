"""Small trainings on the digits that scikit-learn carries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from mdpu.data.images import ImageSet
from mdpu.data.labels import Labels, binarize
from mdpu.data.sources import SOURCES
from mdpu.data.splits import Split, draw_split
from mdpu.files import REPOSITORY
from mdpu.learn.trainer import TrainingData, train
from mdpu.study.config import load_config
from mdpu.study.grid import Run
from mdpu.study.plan import Plan


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def quick_settings() -> dict[str, Any]:
    plan = Plan(load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"]))
    return plan.protocol.training("base", "mlp")


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[ImageSet, Labels]:
    images = SOURCES["digits"].read(Path(tmp_path_factory.mktemp("downloads")))
    return images, binarize(images, list("02468"), list("13579"))


@pytest.fixture(scope="session")
def digits_data(digits: tuple[ImageSet, Labels]) -> TrainingData:
    return TrainingData.prepare(*digits, "mlp", torch.device("cpu"))


@pytest.fixture(scope="session")
def draw(digits: tuple[ImageSet, Labels]) -> Callable[..., Split]:
    def draw(tuple_size: int = 2, prior: float = 0.5, n: int = 400, seed: int = 1) -> Split:
        return draw_split(digits[1]["train"], tuple_size, prior, n, n, seed)

    return draw


@pytest.fixture(scope="session")
def train_digits(
    digits_data: TrainingData, quick_settings: dict[str, Any], draw: Callable[..., Split]
) -> Callable[..., dict[str, pd.DataFrame]]:
    """Return a function that trains methods on one split and gives their histories by name."""

    def train_digits(*methods: str, epochs: int, tuple_size: int = 2, n: int = 400, **settings: Any) -> Any:
        runs = [Run("digits", "base", tuple_size, n, "0.5", method, "logistic", 1) for method in methods]
        histories: dict[str, pd.DataFrame] = {}
        train(
            runs,
            {**quick_settings, "epochs": epochs, "batch_size": 100, **settings},
            digits_data,
            {runs[0].split: draw(tuple_size, n=n)},
            torch.device("cpu"),
            lambda run, history: histories.__setitem__(run.method, history),
        )
        return histories

    return train_digits
