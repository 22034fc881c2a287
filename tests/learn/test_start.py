"""The start where the class share is the prior: its direction, where it acts, and that training needs it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from blobs import SETTINGS, Blobs, Trainer, assert_same_history

from mdpu.data import TupleData, draw_split
from mdpu.law import Law
from mdpu.learn import Task
from mdpu.learn.fitting import InPlace
from mdpu.learn.start import fading, is_singular, linear_score
from mdpu.learn.trainer import head_of

ONE_OF_THREE = Law.exactly(3, 1)


@pytest.mark.parametrize(
    ("law", "prior", "expected"),
    [
        (ONE_OF_THREE, 1 / 3, True),
        (ONE_OF_THREE, 0.36, True),
        (ONE_OF_THREE, 0.4, True),
        (ONE_OF_THREE, 0.1, False),
        (Law.similar(2), 0.5, True),
        (Law.similar(2).broken(0.1), 0.5, True),
        (Law.similar(2), 0.4, True),
        (Law.similar(2), 0.1, False),
        (Law.comparison(), 0.5, False),
        *(
            (Law.dominant(size).broken(e), prior, False)
            for size in (1, 2, 9)
            for prior in (0.01, 0.9)
            for e in (0, 0.1)
        ),
    ],
)
def test_it_acts_where_a_law_turns_and_single_members_say_little(law, prior, expected):
    assert is_singular(law, prior) is expected


def test_the_score_is_gone_after_a_third_of_the_epochs():
    assert [fading(epoch, 9) for epoch in range(9)] == pytest.approx([1, 2 / 3, 1 / 3, *[0] * 6])


@pytest.mark.parametrize("method", ["bag-relu", "bag-nce", "bag-count", "bag-likelihood", "bag-contrast"])
@pytest.mark.parametrize("wide", [False, True])
def test_the_score_tells_the_classes_apart(method, wide):
    """With fewer components than it seeks, and with more columns than rows."""
    generator, columns = np.random.default_rng(0), 5000 if wide else 6
    labels = np.where(generator.random(3000) < 0.5, 1, -1).astype(np.int8)
    images = generator.normal(size=(3000, columns)) * np.linspace(1, 0.1, columns) + 5
    images[:, 0] += 3 * labels
    sample = draw_split(labels, ONE_OF_THREE, 1 / 3, 800, 800, 0)
    task = Task(method, 3, 1 / 3, law=ONE_OF_THREE)
    head = head_of(task)([task], torch.device("cpu"))
    score = linear_score(head, torch.from_numpy(images).float(), sample)
    assert np.corrcoef(score, labels)[0, 1] > 0.8
    assert score[sample.unlabeled].sigmoid().mean() == pytest.approx(1 / 3, abs=1e-4)
    where_they_lie = InPlace(images.astype(np.float32), torch.from_numpy, torch.device("cpu"))
    assert linear_score(head, where_they_lie, sample).equal(score)
    ragged = TupleData(np.where(np.arange(3) < 2, sample.tuples, -1), sample.unlabeled)
    assert linear_score(head, torch.from_numpy(images).float(), ragged) is None


def test_in_a_stack_each_task_has_its_own_start(blobs):
    """Priors near and far from the share train side by side; one far from it has none."""
    named = {f"{seed}": draw_split(blobs.labels, ONE_OF_THREE, 1 / 3, 60, 77, seed) for seed in (1, 2)}
    trainer = Trainer(blobs, named)
    tasks = [
        [Task("bag-relu", 3, prior, seed=seed, sample=f"{seed}", law=ONE_OF_THREE) for seed in (1, 2)]
        for prior in (1 / 3, 0.6)
    ]
    together = trainer.histories(tuple(map(tuple, tasks)))
    for task in (*tasks[0], *tasks[1]):
        assert_same_history(together[task], trainer.alone(task))


def test_no_network_ends_swapped_or_constant():
    """From random weights the second of these three does."""
    generator = np.random.default_rng(1)
    labels = np.where(generator.random(4000) < 0.4, 1, -1).astype(np.int8)
    pattern = np.resize([8, -8], 36).reshape(6, 6) * labels[:, None, None]
    images = (90 + 40 * generator.normal(size=(4000, 6, 6)) + pattern).clip(0, 255).astype(np.uint8)
    blobs = Blobs(images[:3000], labels[:3000], images[3000:], labels[3000:])
    settings = replace(SETTINGS, epochs=30, batch_size=100, weight_decay=0.0, learning_rate=0.005)
    sample = draw_split(blobs.labels, ONE_OF_THREE, 1 / 3, 1000, 1000, 0)
    for seed in range(3):
        history = Trainer(blobs, {"": sample}).alone(Task("bag-relu", 3, 1 / 3, seed=seed, law=ONE_OF_THREE), settings)
        assert history.iloc[-1][["true_positive_rate", "true_negative_rate"]].min() > 0.78
