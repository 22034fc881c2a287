"""The effort of a training: all of it is counted, and a model in a stack takes less than one alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mdpu.learn.fitting import fit_each
from mdpu.learn.task import Sample, Settings, Task
from mdpu.progress import Steps
from mdpu.study.effort import ANOTHER_MODEL, Effort

CPU = torch.device("cpu")
SETTINGS = Settings(epochs=3, batch_size=8)


def tasks_of(methods, trials=(1, 2)):
    return [Task(method, 2, 0.5, seed=trial, sample=str(trial)) for trial in trials for method in methods]


@pytest.mark.parametrize(
    "methods", [["relu"], ["relu", "abs", "ure"], ["relu", "abs", "supervised"], ["relu", "kmeans"], ["kmeans"]]
)
def test_a_training_says_all_of_its_effort(methods, threads):
    threads(2)
    noise = np.random.default_rng(0)
    images = noise.random((30, 4, 4), dtype=np.float32)
    samples = {trial: Sample(noise.integers(0, 30, (20, 2)), noise.integers(0, 30, 20)) for trial in "12"}
    tasks, said = tasks_of(methods), []
    labels = np.resize(np.array([1, -1], dtype=np.int8), 30)
    for _ in fit_each(tasks, images, samples, SETTINGS, labels=labels, device=CPU, advance=said.append):
        pass
    effort = Effort(tasks, SETTINGS, CPU)
    assert sum(map(effort.of, said)) == pytest.approx(effort.total)


def test_a_model_in_a_stack_takes_less_than_one_alone(threads):
    threads(1)
    effort = Effort(tasks_of(["relu", "abs", "supervised"]), SETTINGS, CPU)
    assert effort.of(1) == 1
    assert effort.of(2) == 1 + ANOTHER_MODEL
    assert effort.total == pytest.approx(2 * 3 * (2 + ANOTHER_MODEL))


def test_the_epochs_of_a_checkpoint_count_as_the_mean():
    effort = Effort(tasks_of(["relu", "abs", "supervised"]), SETTINGS, CPU)
    assert effort.of(6 * SETTINGS.epochs) == pytest.approx(effort.total)


def test_the_share_of_steps_is_that_of_their_effort():
    with Steps("training", 3, "epochs", effort=10.0) as steps:
        steps.advance(1, 6.0)
        assert steps.share == pytest.approx(0.6)
        steps.advance(2, 4.0)
        assert steps.share == 1.0
