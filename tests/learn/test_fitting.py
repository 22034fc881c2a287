"""The library's face: models that predict, arrays of any type, memory, threads, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from blobs import CPU, EPOCHS, SETTINGS, assert_same_history, make_tasks
from torch import nn

from mdpu.data import Joined, TupleData
from mdpu.errors import UserError
from mdpu.learn import Task, fit, fitting, trainer
from mdpu.learn.fitting import stack_bytes
from mdpu.learn.modules import module_architecture
from mdpu.learn.networks import load_network, mlp
from mdpu.learn.reference import plain_fit

TASK = make_tasks()[0]
LINEAR = module_architecture(lambda shape: nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 1)))


@pytest.fixture
def fit_blobs(blobs, samples):
    """Return a function that fits tasks on the blobs and gives the models by task."""

    def fit_blobs(tasks, settings=SETTINGS, device=CPU, evaluation=True, **options):
        rates = blobs.rates() if evaluation else None
        models = fit(tasks, blobs.images, samples, settings, evaluation=rates, device=device, **options)
        assert [model.task for model in models] == list(tasks)
        return {model.task: model for model in models}

    return fit_blobs


# -- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ure", "abs", "relu-part", "llp", "supervised"])
def test_a_fitted_model_scores_and_predicts_as_the_plain_trainers_module(method, fit_blobs, blobs, samples):
    """Images that it was not trained on; the models of a stack are taken out of it one by one."""
    tasks = make_tasks(methods=(method,), losses=("logistic",))
    models = fit_blobs(tasks, labels=blobs.labels)
    for task in tasks:
        module, _ = plain_fit(task, blobs.images, samples[task.sample], SETTINGS, blobs.labels)
        with torch.no_grad():
            expected = module(torch.from_numpy(blobs.test_images).flatten(1) / 255)[:, 0].numpy()
        scores = models[task].decision_function(blobs.test_images)
        assert (scores.shape, scores.dtype) == (expected.shape, np.float32)
        np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-4)
        clear = np.abs(expected) > 1e-3
        assert clear.mean() > 0.9
        answers = models[task].predict(blobs.test_images)
        assert answers.dtype == np.int8
        assert np.array_equal(answers, np.where(scores > 0, 1, -1))
        assert np.array_equal(answers[clear], np.where(expected[clear] > 0, 1, -1))


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_a_single_run_has_the_same_bits_on_any_number_of_threads(precision, threads, monkeypatch, blobs, samples):
    """It has all threads for its products in bf16, and always one for its sums."""
    settings, found, used = replace(SETTINGS, precision=precision), [], []

    def spy(module, name):
        original = getattr(module, name)

        def spied(*arguments):
            used.append((name, torch.get_num_threads()))
            return original(*arguments)

        monkeypatch.setattr(module, name, spied)

    spy(mlp, "_product")
    spy(trainer, "cut_batch")
    for number in (1, 2, 3, 8):
        threads(number)
        used.clear()
        (model,) = fit([TASK], blobs.images, samples, settings, evaluation=blobs.rates(), device=CPU)
        found.append((model.history, model.network.parameters))
        of_products = number if precision == "bf16" else 1
        assert set(used) == {("_product", of_products), ("cut_batch", 1)}
    history, parameters = found[0]
    for other, others in found[1:]:
        pd.testing.assert_frame_equal(other, history, check_exact=True)
        assert all(map(torch.equal, others, parameters))


def test_a_schedule_changes_the_rate_of_every_step_alike(blobs, samples):
    settings = replace(SETTINGS, schedule="one-cycle", learning_rate=0.01)
    (model,) = fit([TASK], blobs.images, samples, settings, device=CPU)
    module, history = plain_fit(TASK, blobs.images, samples[TASK.sample], settings)
    np.testing.assert_allclose(model.history["objective"], history["objective"], rtol=1e-4)
    expected = module(torch.from_numpy(blobs.test_images).flatten(1) / 255).detach()[:, 0]
    np.testing.assert_allclose(model.decision_function(blobs.test_images), expected, rtol=1e-3, atol=1e-4)


def test_an_embedding_gives_outputs_and_no_score(fit_blobs, blobs, samples):
    task = replace(TASK, method="contrastive")
    model = fit_blobs([task])[task]
    module, _ = plain_fit(task, blobs.images, samples[task.sample], SETTINGS)
    expected = module(torch.from_numpy(blobs.test_images).flatten(1) / 255).detach()
    np.testing.assert_allclose(model.outputs(blobs.test_images), expected, rtol=1e-3, atol=1e-4)
    with pytest.raises(UserError, match="method contrastive embeds rows and gives no score"):
        model.predict(blobs.test_images)


# -- without evaluation ---------------------------------------------------------------------------


def test_without_an_evaluation_the_same_models_are_trained_and_nothing_is_measured(fit_blobs, blobs):
    tasks = [*make_tasks(seeds=(1,)), *(replace(TASK, method=method) for method in ("kmeans", "llp"))]
    measured, bare = fit_blobs(tasks), fit_blobs(tasks, evaluation=False)
    for task in tasks:
        history = bare[task].history
        assert not {"true_positive_rate", "true_negative_rate", "test_risk"} & set(history.columns)
        pd.testing.assert_frame_equal(history, measured[task].history[history.columns], check_exact=True)
        assert np.array_equal(bare[task].predict(blobs.test_images), measured[task].predict(blobs.test_images))


# -- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["abs", "kmeans"])
def test_floats_between_0_and_1_train_as_grey_values(method, dtype, blobs, samples):
    """255 in integers is 1 in floats, for networks and for methods without one."""
    task, few = replace(TASK, method=method), replace(SETTINGS, epochs=2)
    (grey,) = fit([task], blobs.images, samples, few, device=CPU)
    floats = [(images / 255).astype(dtype) for images in (blobs.images, blobs.test_images)]
    (scaled,) = fit([task], floats[0], samples, few, device=CPU)
    assert_same_history(scaled.history, grey.history, 1e-4)
    assert np.mean(scaled.predict(floats[1]) == grey.predict(blobs.test_images)) > 0.99


def test_floats_are_taken_as_they_are(blobs, samples):
    """Negative values too: feature vectors, and not images, as the plain trainer takes them."""
    vectors = (blobs.images.reshape(len(blobs.images), -1) / 100 - 1).astype(np.float32)
    vectors[:, 0] = 0  # a feature that is always 0 teaches nothing
    (model,) = fit([TASK], vectors, samples, SETTINGS, device=CPU)
    module, history = plain_fit(TASK, vectors, samples[TASK.sample], SETTINGS)
    np.testing.assert_allclose(model.history, history, rtol=1e-3, atol=1e-4)
    scores = module(torch.from_numpy(vectors)).detach()[:, 0]
    np.testing.assert_allclose(model.decision_function(vectors), scores, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("where", ["memory map", "two arrays"])
@pytest.mark.parametrize("network", ["mlp", LINEAR])
def test_images_in_place_train_as_a_copy_of_them(where, network, blobs, samples, tmp_path, monkeypatch):
    settings = replace(SETTINGS, network=network, architecture={}, epochs=2)
    (expected,) = fit([TASK], blobs.images, samples, settings, device=CPU)
    monkeypatch.setattr(fitting, "LARGE", 0)
    blobs.images.tofile(tmp_path / "images")
    images = np.memmap(tmp_path / "images", blobs.images.dtype, "r", shape=blobs.images.shape)
    if where == "two arrays":
        images = Joined(images[:7], images[7:])
    (found,) = fit([TASK], images, samples, settings, device=CPU)
    assert_same_history(found.history, expected.history)
    assert np.array_equal(found.outputs(blobs.test_images), expected.outputs(blobs.test_images))


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (lambda images: images.astype(np.int64), "rows are of type int64; uint8 or a float type is needed"),
        (lambda images: np.where(images > 150, np.nan, images), "rows hold values that are not finite"),
        (lambda images: images[:100], "the sample's tuples name rows that are not there; there are 100"),
    ],
)
@pytest.mark.parametrize("method", ["abs", "kmeans"])
def test_images_that_cannot_be_trained_on_are_refused(method, images, sentence, blobs, samples):
    with pytest.raises(UserError, match=sentence):
        fit([replace(TASK, method=method)], images(blobs.images), samples, SETTINGS, device=CPU)


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (
            np.zeros((2, 5, 5), np.uint8),
            r"rows of shape \(5, 5\) are given; the network was trained on shape \(6, 6\)",
        ),
        (np.zeros((2, 6, 6)), "rows of type float64 are given; the network was trained on uint8 grey values"),
    ],
)
def test_images_unlike_those_of_the_training_are_not_predicted(images, sentence, fit_blobs):
    model = fit_blobs([TASK], replace(SETTINGS, epochs=1))[TASK]
    with pytest.raises(UserError, match=sentence):
        model.predict(images)


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "sentence"),
    [
        ([TASK, TASK], "two tasks are equal; they would be one model"),
        ([replace(TASK, sample="zzz")], "no sample is called 'zzz'; there are 'prior0.4/seed1', "),
        ([replace(TASK, tuple_size=3)], "method ure: the sample's tuples hold 2 rows, not 3"),
        ([replace(TASK, method="supervised")], "method supervised is a control that sees true labels; give it labels"),
    ],
)
def test_tasks_that_do_not_go_with_the_rest_are_refused_in_one_sentence(tasks, sentence, fit_blobs):
    with pytest.raises(UserError, match=sentence) as error:
        fit_blobs(tasks)
    assert "\n" not in str(error.value)


# -- company, memory, threads ---------------------------------------------------------------------


def bytes_of_one(samples, settings=SETTINGS, shape=(6, 6)):
    return stack_bytes(((TASK,),), settings, load_network(settings.network), shape, samples)


def test_tasks_too_many_for_the_memory_give_the_same_histories_in_parts(alone, samples, fit_blobs, monkeypatch):
    trained, whole = [], fitting.train_stack
    monkeypatch.setattr(fitting, "train_stack", lambda stack, *others: trained.append(stack) or whole(stack, *others))
    models = fit_blobs(make_tasks(), memory=bytes_of_one(samples))
    assert all(len(stack) == len(stack[0]) == 1 for stack in trained)
    assert len(trained) == len(alone)
    for task, model in models.items():
        assert_same_history(model.history, alone[task])


@pytest.mark.parametrize(
    ("network", "images", "architecture"),
    [("mlp", (6, 6), {"hidden": [20, 12]}), ("resnet34", (32, 32, 3), {})],
)
def test_a_network_that_does_not_fit_into_the_memory_is_refused_in_one_sentence(network, images, architecture):
    """The sentence names the figure, and what can be done."""
    settings = replace(SETTINGS, network=network, architecture=architecture, batch_size=3000)
    sample = TupleData(np.arange(20).reshape(10, 2), np.arange(20, 30))
    task = Task("abs", 2, 0.5)
    needed = stack_bytes(((task,),), settings, load_network(network), images, {"": sample})
    arrays = np.zeros((30, *images), np.uint8)
    arrays[:, 0] = 1
    with pytest.raises(UserError) as error:
        fit([task], arrays, sample, settings, device=CPU, memory=needed - 1)
    assert str(error.value) == (
        f"training abs with the network {network} takes about {needed / 2**20:.0f} MB, but "
        f"{(needed - 1) / 2**20:.0f} MB are allowed; raise memory_mb or lower batch_size"
    )


@pytest.mark.parametrize(
    ("count", "error"),
    [(1, torch.OutOfMemoryError()), (2, RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"))],
)
def test_a_stack_whose_allocation_fails_is_halved_until_it_fits(count, error, alone, fit_blobs, monkeypatch, threads):
    threads(count)
    failed, steps, whole = [], [], fitting.train_stack

    def train_stack(stack, *others):
        if len(stack) * len(stack[0]) > 1:
            failed.append(stack)
            raise error
        return (yield from whole(stack, *others))

    monkeypatch.setattr(fitting, "train_stack", train_stack)
    models = fit_blobs(make_tasks(), advance=steps.append)
    assert failed
    assert sum(steps) == len(alone) * EPOCHS
    for task, history in alone.items():
        assert_same_history(models[task].history, history)
