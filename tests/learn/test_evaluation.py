"""What is measured at the end of each epoch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from blobs import CPU

from mdpu.data import TupleData
from mdpu.learn import Task, evaluation
from mdpu.learn.head import Head
from mdpu.learn.networks import load_network
from mdpu.learn.risk import CorrectedRiskHead

TASKS = [Task("ure", 2, 0.4, "logistic", seed=1), Task("abs", 2, 0.6, "ramp", seed=2)]


@pytest.fixture
def outputs():
    """Scores of two models, opposite to one another, which note the images that they are asked for."""
    asked = []

    def scores(images):
        asked.append(images)
        means = images.float().mean(dim=1) / 255 - 0.5
        return torch.stack([means, -means])

    scores.asked = asked
    return scores


@pytest.fixture
def preparation(blobs):
    return load_network("mlp").prepare(blobs.images)


def test_left_out_images_are_not_tested(blobs, preparation):
    labels = blobs.test_labels.copy()
    labels[:50] = 0
    rates = evaluation.TestRates(blobs.test_images, labels, blobs.images, blobs.labels)
    rates.prepare(preparation, CPU)
    assert len(rates.images.images) == len(rates.images.labels) == 70
    assert rates.images.labels.tolist() == labels[50:].tolist()
    assert sorted(rates.images.images[0].tolist())[-16:] == sorted(blobs.test_images[50].ravel().tolist())[-16:]
    assert rates.share_positive == np.mean(labels[50:] > 0)


def test_rates_and_risk_by_hand(blobs, preparation, outputs):
    """With scores between -1/2 and 1/2; the second model's are those of the first with the opposite sign."""
    rates = blobs.rates()
    rates.prepare(preparation, CPU)
    head = CorrectedRiskHead(TASKS, CPU)
    assert rates.measures(head) == ("true_positive_rate", "true_negative_rate", "test_risk")
    table = rates(head, outputs)
    assert table.shape == (2, 3)
    score = preparation(blobs.test_images).numpy().mean(axis=1) / 255 - 0.5
    positive = blobs.test_labels > 0
    losses = (lambda z: np.log1p(np.exp(-z)), lambda z: np.clip(1 - z, 0, 1))
    for row, task, sign, loss in zip(table.tolist(), TASKS, (1, -1), losses, strict=True):
        g = sign * score
        expected = [np.mean(g[positive] > 0), np.mean(g[~positive] <= 0)]
        risk = task.prior * loss(g[positive]).mean() + (1 - task.prior) * loss(-g[~positive]).mean()
        assert row == pytest.approx([*expected, risk], rel=1e-5)


def test_rates_of_held_out_images_are_shares_of_positive_answers(blobs, preparation, outputs):
    sample = TupleData(np.append(np.arange(29), [-1, 29, -1]).reshape(16, 2)[:, :2], np.arange(30, 50))
    held = evaluation.HeldOut(blobs.images, sample, ("tuple_rate", "unlabeled_rate"), evaluation.positive_shares)
    held.prepare(preparation, CPU)
    head = Head(TASKS, CPU)
    assert held.measures(head) == ("tuple_rate", "unlabeled_rate")
    score = preparation(blobs.images).numpy().mean(axis=1) / 255 - 0.5
    expected = [[np.mean(sign * part > 0) for part in (score[:30], score[30:50])] for sign in (1, -1)]
    np.testing.assert_allclose(held(head, outputs), expected, rtol=1e-6)
