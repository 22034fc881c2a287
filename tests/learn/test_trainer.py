"""The fast trainer against the plain one, and a model's history against the company it trains in."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from blobs import EPOCHS, SETTINGS, assert_same_history, make_tasks
from hypothesis import example, given
from hypothesis import strategies as st

from mdpu.learn.networks.mlp import StackedMLP
from mdpu.learn.reference import plain_fit
from mdpu.learn.stacks import make_stacks
from mdpu.learn.task import Task
from mdpu.learn.trainer import Adam, RunningMean, make_history, minibatches
from mdpu.losses import LOSSES

# -- minibatches ----------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(0, 60), st.integers(1, 45), st.integers(1, 4), st.integers(0, 3))
def test_an_epoch_sees_every_tuple_and_every_unlabeled_image_once(n, more, batch, size, epoch):
    """For no fewer unlabeled images than tuples."""
    n_unlabeled = n + more
    tuples = torch.arange(n * size).view(1, n, size)
    unlabeled = torch.arange(n_unlabeled).view(1, -1)
    batches = list(minibatches([7], tuples, unlabeled, batch, epoch))
    assert len(batches) == math.ceil(n / batch)
    members = torch.cat([tuple_batch for tuple_batch, _ in batches], dim=1)
    assert members.shape == (1, n * size)
    assert sorted(members.view(n, size).tolist()) == tuples[0].tolist()  # members stay together
    assert sorted(torch.cat([unlabeled_batch for _, unlabeled_batch in batches], dim=1)[0].tolist()) == list(
        range(n_unlabeled)
    )
    assert [tuple_batch.shape[1] for tuple_batch, _ in batches[:-1]] == [batch * size] * (len(batches) - 1)
    # In proportion: no minibatch is more than one image away from its share.
    for tuple_batch, unlabeled_batch in batches:
        assert abs(unlabeled_batch.shape[1] - tuple_batch.shape[1] / size * n_unlabeled / n) <= 1


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 45))
@example(11, 4, 10)
def test_every_minibatch_holds_an_unlabeled_image_also_when_they_are_fewer_than_the_tuples(n, n_unlabeled, batch):
    tuples, unlabeled = torch.arange(2 * n).view(1, n, 2), torch.arange(n_unlabeled).view(1, -1)
    batches = [unlabeled_batch for _, unlabeled_batch in minibatches([7], tuples, unlabeled, batch, 0)]
    assert min(unlabeled_batch.shape[1] for unlabeled_batch in batches) >= 1
    assert set(torch.cat(batches, dim=1)[0].tolist()) == set(range(n_unlabeled))


def test_orders_differ_between_epochs_and_trials_and_depend_on_nothing_else():
    tuples, unlabeled = torch.arange(200).view(1, 100, 2), torch.arange(100).view(1, 100)

    def order(seeds, epoch, batch=100):
        stacked = tuples.expand(len(seeds), -1, -1), unlabeled.expand(len(seeds), -1)
        batches = list(minibatches(seeds, *stacked, batch, epoch))
        return [torch.cat(part, dim=1) for part in zip(*batches, strict=True)]

    for part in range(2):
        assert torch.equal(order([1], 0)[part], order([1], 0, batch=30)[part])
        assert not torch.equal(order([1], 0)[part], order([1], 1)[part])
        assert not torch.equal(order([1], 0)[part], order([2], 0)[part])
        together = order([2, 1, 2], 5)[part]
        for row, seed in enumerate([2, 1, 2]):
            assert torch.equal(together[row], order([seed], 5)[part][0])


# -- one model ------------------------------------------------------------------------------------


def plain_history(task, settings, blobs, sample):
    """Return the plain trainer's history, with rates and risk on the test images after each epoch."""
    images, positive = torch.from_numpy(blobs.test_images).flatten(1) / 255, torch.from_numpy(blobs.test_labels) > 0
    loss, rows = LOSSES[task.loss], []
    for epochs in range(1, settings.epochs + 1):
        module, history = plain_fit(task, blobs.images, sample, replace(settings, epochs=epochs), blobs.labels)
        scores = module(images).detach().squeeze(1)
        rates = [(answers > 0).float().mean().item() for answers in (scores[positive], ~(scores[~positive] > 0))]
        side_losses = [loss(scores[side], sign).mean().item() for side, sign in ((positive, 1), (~positive, -1))]
        rows.append([*rates, task.prior * side_losses[0] + (1 - task.prior) * side_losses[1]])
    measured = pd.DataFrame(rows, columns=["true_positive_rate", "true_negative_rate", "test_risk"])
    return pd.concat([history, measured], axis=1)


@pytest.mark.parametrize(
    ("method", "loss", "changes"),
    [
        ("ure", "logistic", {}),
        ("abs", "squared", {"optimizer": "adamw", "weight_decay": 0.3}),
        ("relu", "hinge", {"batch_size": 1000}),
        ("relu-part", "ramp", {"batch_counts": "images"}),
        ("abs-class", "logistic", {"architecture": {"hidden": []}}),
        ("supervised", "logistic", {}),
    ],
)
def test_training_is_that_of_the_plain_trainer(method, loss, changes, trainer, blobs, samples):
    settings = replace(SETTINGS, **changes)
    task = Task(method, 2, 0.4, loss, 1, "prior0.4/seed1")
    history = trainer.alone(task, settings)
    expected = plain_history(task, settings, blobs, samples[task.sample])
    assert history["epoch"].tolist() == list(range(1, EPOCHS + 1))
    assert list(history.columns) == list(expected.columns)
    # One test image in 120 may lie on the boundary within rounding; the risks may not differ so.
    for measure in expected:
        tolerance = 1e-6 + (1 / 48 if "rate" in measure else 0)
        np.testing.assert_allclose(history[measure], expected[measure], rtol=1e-3, atol=max(tolerance, 1e-4))


@pytest.mark.parametrize("method", ["siamese", "contrastive", "llp", "nnpu"])
def test_what_other_heads_learn_is_what_the_plain_trainer_learns(method, trainer, blobs, samples):
    """Embeddings, and parameters beside the network's."""
    task = Task(method, 2, 0.4, seed=1, sample="prior0.4/seed1")
    _, expected = plain_fit(task, blobs.images, samples[task.sample], SETTINGS)
    history = trainer.alone(task)
    assert expected["objective"].nunique() == EPOCHS
    np.testing.assert_allclose(history[expected.columns], expected, rtol=1e-3, atol=1e-4)


def test_a_task_may_have_a_rate_and_a_decay_of_its_own(trainer, blobs, samples):
    """In one stack with a task of the usual ones."""
    usual = Task("abs", 2, 0.4, seed=1, sample="prior0.4/seed1")
    own = replace(usual, learning_rate=0.05, weight_decay=0.5)
    settings = replace(SETTINGS, learning_rate=0.05, weight_decay=0.5)
    histories = trainer.histories(((usual,), (own,)))
    assert_same_history(histories[usual], trainer.alone(usual))
    assert_same_history(histories[own], trainer.alone(usual, settings))
    assert not np.allclose(histories[own]["objective"], histories[usual]["objective"], rtol=1e-2)
    task_history, settings_history = (
        plain_fit(*case)[1]
        for case in (
            (own, blobs.images, samples[own.sample], SETTINGS),
            (usual, blobs.images, samples[usual.sample], settings),
        )
    )
    pd.testing.assert_frame_equal(task_history, settings_history, check_exact=True)


# -- steps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_steps_are_those_of_torchs_adam_to_the_last_bit(decoupled, decay):
    """Of matrices, of a transposed one, and of a kernel with channels last, whatever the strides of the gradients."""
    torch.manual_seed(1)
    values = [torch.randn(3), torch.randn(7, 5), torch.randn(5, 7).t(), torch.randn(4, 3, 2, 2)]
    values[3] = values[3].contiguous(memory_format=torch.channels_last)
    own, theirs = ([value.clone() for value in values] for _ in range(2))
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    fused, plain = kind(theirs, 0.01, weight_decay=decay, fused=True), [value.clone() for value in values]
    unfused = kind(plain, 0.01, weight_decay=decay, foreach=False)
    adam = Adam([(own, 0.01, decay)], decoupled)
    for _ in range(4):
        gradients = [torch.randn(value.shape) for value in values]
        adam.step([gradients])
        for parameter, other, gradient in zip(theirs, plain, gradients, strict=True):
            parameter.grad = torch.empty_like(parameter).copy_(gradient)
            other.grad = gradient
        fused.step()
        unfused.step()
    assert all(map(torch.equal, own, theirs))
    for value, expected in zip(own, plain, strict=True):
        torch.testing.assert_close(value, expected)


def test_a_running_mean_gives_the_weights_back_whatever_happens():
    weight = torch.tensor([1.0])
    mean = RunningMean([weight], 0.5)
    weight.fill_(3.0)
    mean.update()
    with pytest.raises(KeyboardInterrupt), mean.in_place():
        assert weight.item() == pytest.approx(0.1 * 1 + 0.9 * 3)  # the first step keeps a tenth
        raise KeyboardInterrupt
    assert weight.item() == 3.0


# -- company --------------------------------------------------------------------------------------


def test_test_images_are_scored_once_an_epoch_for_all_models_and_measures(trainer, monkeypatch):
    stack, scored = make_stacks(make_tasks(), True, "stream")[0], []
    scores = StackedMLP.scores
    monkeypatch.setattr(StackedMLP, "scores", lambda self, images: scored.append(len(images)) or scores(self, images))
    trainer.histories(stack)
    assert scored == [120] * EPOCHS


def test_a_diverging_model_is_missing_from_there_on_and_leaves_the_others_alone(trainer):
    """At a learning rate of a million the squared loss overflows single precision and the ramp loss cannot."""
    settings = replace(SETTINGS, learning_rate=1e6, weight_decay=0.0)
    calm, wild = make_tasks(priors=(0.4,), methods=("ure",), losses=("ramp", "squared"), seeds=(1,))
    together = trainer.histories(((calm,), (wild,)), settings)
    missing = together[wild].drop(columns="epoch").isna()
    assert missing.any().all()
    assert (missing.all(axis=1) == missing.any(axis=1)).all()  # a row is missing whole or not at all
    assert missing["objective"].is_monotonic_increasing  # and once missing, missing to the end
    assert together[wild]["epoch"].tolist() == list(range(1, EPOCHS + 1))
    assert together[calm].notna().all().all()
    assert_same_history(together[calm], trainer.alone(calm, settings))


@given(st.lists(st.floats(width=32), min_size=1, max_size=6))
def test_a_history_is_missing_from_its_first_objective_that_is_not_finite(objectives):
    measures = np.column_stack([objectives, np.arange(len(objectives))])
    history = make_history(("objective", "rate"), measures)
    whole = next((i for i, value in enumerate(objectives) if not math.isfinite(value)), len(objectives))
    assert history["epoch"].tolist() == list(range(1, len(objectives) + 1))
    assert history["objective"].tolist()[:whole] == objectives[:whole]
    assert history["rate"].tolist()[:whole] == list(range(whole))
    assert history.drop(columns="epoch").iloc[whole:].isna().all(axis=None)
