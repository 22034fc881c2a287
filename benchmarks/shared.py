"""What the benchmarks on real images share: images with their labels, splits, the protocol's settings, the machine."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from mdpu.data import TupleData, draw_split
from mdpu.learn import Settings
from mdpu.learn.device import choose_device, describe
from mdpu.learn.evaluation import TestRates
from mdpu.pipeline.config import load_config
from mdpu.pipeline.data.images import ImageSet, read_images
from mdpu.pipeline.data.labels import binarize
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan


@dataclass(frozen=True)
class Labelled:
    """The images of a dataset and their labels, -1 or +1, by part: ``train`` and ``test``."""

    images: ImageSet
    labels: dict[str, NDArray[np.int8]]

    @classmethod
    def read(cls, path: str | Path, positive: Sequence[str] = (), negative: Sequence[str] = ()) -> Labelled:
        """Read prepared images; unless classes are named, every other one is positive, beginning with the first."""
        images = read_images(Path(path))
        sides = list(positive) or list(images.classes[0::2]), list(negative) or list(images.classes[1::2])
        dropped = [name for name in images.classes if name not in sides[0] + sides[1]]
        return cls(images, binarize(images, *sides, dropped))

    def rates(self) -> TestRates:
        """Return what counts right answers on the test images."""
        return TestRates(self.images.test_images, self.labels["test"], self.images.train_images, self.labels["train"])

    def sample(self, tuple_size: int, prior: float, n: int, trial: int) -> TupleData:
        """Draw `n` tuples and `n` unlabeled images."""
        split = draw_split(self.labels["train"], tuple_size, prior, n, n, trial)
        return TupleData(split.tuples, split.unlabeled)

    def samples(self, tuple_size: int, prior: float, n: int, trials: Iterable[int]) -> dict[str, TupleData]:
        """Draw one sample for each trial, by the trial's number."""
        return {str(trial): self.sample(tuple_size, prior, n, trial) for trial in trials}


def training_parser(description: str | None, epochs: int = 100) -> argparse.ArgumentParser:
    """Return a parser with the arguments of everything that trains on prepared images."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", required=True)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    return parser


def begin(arguments: argparse.Namespace) -> torch.device:
    """Take the threads that were asked for, and return the device."""
    torch.set_num_threads(arguments.threads)
    return choose_device(arguments.device)


def protocol_settings(epochs: int | None = None) -> Settings:
    """Return the settings of the protocol on grey images, with another number of epochs if one is given."""
    settings = Plan(load_config([REPOSITORY / "config.yaml"])).settings("base", "mlp")
    return settings if epochs is None else replace(settings, epochs=epochs)


def machine(device: torch.device) -> dict[str, str]:
    """Return what every figure is said with."""
    return {"device": describe(device), "torch": torch.__version__, "python": platform.python_version()}
