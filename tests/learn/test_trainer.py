"""The trainer against an ordinary loop, and a run's history against the company it trains in."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import nn

from mdpu.data.images import ImageSet
from mdpu.data.splits import draw_split
from mdpu.errors import UserError
from mdpu.learn import trainer
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.device import choose_device, leased
from mdpu.learn.methods import load_method
from mdpu.learn.networks import StackedMLP
from mdpu.learn.risk import RiskHead
from mdpu.learn.schedule import complete
from mdpu.learn.trainer import MEASURES, TrainingData, make_stacks, minibatches, stack_epochs, train, workers_for
from mdpu.randomness import Stream
from mdpu.study.grid import AXES, Run
from mdpu.theory import risk_weights

CPU, GPU = torch.device("cpu"), torch.device("cuda")
SIDE, EPOCHS = 6, 4
SETTINGS = {
    "network": "mlp",
    "hidden": [20, 12],
    "batch_size": 25,
    "batch_counts": "tuples",
    "learning_rate": 0.002,
    "weight_decay": 0.01,
    "optimizer": "adam",
    "precision": "fp32",
    "prior_offset": 0.0,
    "epochs": EPOCHS,
}


def blobs(part: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw images of two overlapping classes: grey noise, brighter on the left or on the right, in a black frame."""
    labels = np.where(np.arange(n) % 5 < 2, 1, -1).astype(np.int8)
    noise = Stream(1, f"{part} images").uniform(n, SIDE - 2, SIDE - 2)
    columns = np.where(np.arange(SIDE - 2) < SIDE // 2 - 1, 1, -1)
    inner = (90 + 40 * columns * labels[:, None, None] + 60 * noise).astype(np.uint8)
    return np.pad(inner, ((0, 0), (1, 1), (1, 1))), labels


@pytest.fixture(scope="module")
def image_set():
    (train_images, train_labels), (test_images, test_labels) = blobs("train", 300), blobs("test", 120)
    return (
        ImageSet(
            train_images,
            (train_labels < 0).astype(np.int64),
            test_images,
            (test_labels < 0).astype(np.int64),
            ["left", "right"],
            "made here",
            "none",
        ),
        {"train": train_labels, "test": test_labels},
    )


@pytest.fixture(scope="module")
def data(image_set):
    return TrainingData.prepare(*image_set, "mlp", CPU)


def make_runs(priors=("0.4", "0.6"), methods=("ure", "abs", "relu-part"), losses=("logistic", "ramp"), seeds=(1, 2)):
    """Name runs of n = 60 pairs each."""
    points = itertools.product(priors, methods, losses, seeds)
    return [Run("blobs", "base", 2, 60, prior, method, loss, seed) for prior, method, loss, seed in points]


@pytest.fixture(scope="module")
def splits(image_set):
    labels = image_set[1]["train"]
    runs = make_runs()
    # Ragged on purpose: 60 tuples in minibatches of 25, beside 77 unlabeled images.
    return {run.split: draw_split(labels, 2, float(run.prior), 60, 77, run.seed) for run in runs}


def assert_same_history(found: pd.DataFrame, expected: pd.DataFrame, tolerance: float) -> None:
    assert list(found.columns) == list(expected.columns)
    assert found[list(AXES)].equals(expected[list(AXES)])
    numbers = found.columns.difference(list(AXES))
    np.testing.assert_allclose(
        found[numbers].to_numpy(float), expected[numbers].to_numpy(float), rtol=tolerance, atol=tolerance
    )


# -- minibatches ----------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(0, 60), st.integers(1, 45), st.integers(1, 4), st.integers(0, 3))
def test_an_epoch_sees_every_tuple_and_every_unlabeled_image_once(n, more, batch, size, epoch):
    """For no fewer unlabeled images than tuples."""
    n_unlabeled = n + more
    tuples = torch.arange(n * size).view(1, n, size)
    unlabeled = torch.arange(n_unlabeled).view(1, -1)
    batches = list(minibatches([7], tuples, unlabeled, batch, epoch))
    assert len(batches) == math.ceil(n / batch)
    members = torch.cat([of_tuples for of_tuples, _ in batches], dim=1)
    assert members.shape == (1, n * size)
    assert sorted(members.view(n, size).tolist()) == tuples[0].tolist()  # members stay together
    assert sorted(torch.cat([of_unlabeled for _, of_unlabeled in batches], dim=1)[0].tolist()) == list(
        range(n_unlabeled)
    )
    assert [of_tuples.shape[1] for of_tuples, _ in batches[:-1]] == [batch * size] * (len(batches) - 1)
    # In proportion: no minibatch is more than one image away from its share.
    for of_tuples, of_unlabeled in batches:
        assert abs(of_unlabeled.shape[1] - of_tuples.shape[1] / size * n_unlabeled / n) <= 1


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 45))
@example(11, 4, 10)
def test_every_minibatch_holds_an_unlabeled_image_also_when_they_are_fewer_than_the_tuples(n, n_unlabeled, batch):
    tuples, unlabeled = torch.arange(2 * n).view(1, n, 2), torch.arange(n_unlabeled).view(1, -1)
    batches = [of_unlabeled for _, of_unlabeled in minibatches([7], tuples, unlabeled, batch, 0)]
    assert min(of_unlabeled.shape[1] for of_unlabeled in batches) >= 1
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


# -- one run --------------------------------------------------------------------------------------


def ordinary_history(run, settings, image_set, split):
    """Train one run as one would by hand: `nn.Sequential`, autograd, `torch.optim`, all pixels."""
    images, labels = image_set
    train_images, test_images = (
        torch.from_numpy(array).flatten(1) / 255 for array in (images.train_images, images.test_images)
    )
    positive = torch.from_numpy(labels["test"]) > 0
    sizes = [SIDE * SIDE, *settings["hidden"], 1]
    layers = [layer for pair in itertools.pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())][:-1]
    module = nn.Sequential(*layers)
    initial = StackedMLP([[run.seed]], sizes[0], settings["hidden"], torch.float32, CPU)
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), initial.linear(initial.parameters, 0, 0), strict=True):
            parameter.copy_(value)
    ordinary = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[settings["optimizer"]]
    optimizer = ordinary(module.parameters(), lr=settings["learning_rate"], weight_decay=settings["weight_decay"])
    head = RiskHead([load_method(run.method)], [risk_weights(run.tuple_size, float(run.prior))], [run.loss], CPU)
    tuples, unlabeled = torch.from_numpy(split.tuples)[None], torch.from_numpy(split.unlabeled)[None]
    batch = settings["batch_size"]
    if settings["batch_counts"] == "images":
        batch //= run.tuple_size
    rows = []
    for epoch in range(settings["epochs"]):
        sums = np.zeros(5)
        for of_tuples, of_unlabeled in minibatches([run.seed], tuples, unlabeled, batch, epoch):
            scores = [module(train_images[part[0]]).view(1, -1) for part in (of_tuples, of_unlabeled)]
            objective, terms = head(*scores)
            optimizer.zero_grad()
            objective.sum().backward()
            optimizer.step()
            sums += of_tuples.numel() / split.tuples.size * np.array([objective.item(), *terms[0].tolist()])
        with torch.no_grad():
            says_positive = module(test_images).squeeze(1) > 0
        rates = [
            (says_positive[side] == value).float().mean().item() for side, value in ((positive, 1), (~positive, 0))
        ]
        correct = (says_positive == positive).float().mean().item()
        rows.append([*sums, *rates, sums[1:].sum(), correct])
    return pd.DataFrame(rows, columns=[*MEASURES, "risk", "accuracy"])


@pytest.mark.parametrize(
    ("method", "loss", "changes"),
    [
        ("ure", "logistic", {}),
        ("abs", "squared", {"optimizer": "adamw", "weight_decay": 0.3}),
        ("relu", "hinge", {"batch_size": 1000}),
        ("relu-part", "ramp", {"batch_counts": "images"}),
        ("abs-class", "logistic", {"hidden": []}),
    ],
)
def test_training_is_the_ordinary_loop(method, loss, changes, data, image_set, splits):
    settings = {**SETTINGS, **changes}
    run = Run("blobs", "base", 2, 60, "0.4", method, loss, 1)
    found = complete(stack_epochs(((run,),), settings, data, splits, CPU))[run]
    expected = ordinary_history(run, settings, image_set, splits[run.split])
    assert found["epoch"].tolist() == list(range(1, EPOCHS + 1))
    assert found[list(AXES)].drop_duplicates().values.tolist() == [list(astuple(run))]
    # One test image in 120 may lie on the boundary within rounding; the risks may not differ so.
    for measure in expected:
        tolerance = 1e-6 + (1 / 48 if "rate" in measure or measure == "accuracy" else 0)
        np.testing.assert_allclose(found[measure], expected[measure], rtol=1e-3, atol=max(tolerance, 1e-4))


def test_training_learns_from_tuples_alone(data, image_set):
    """The classes are well apart: 600 pairs at prior 0.4 must give far more than the 60 % of the larger class."""
    split = draw_split(image_set[1]["train"], 2, 0.4, 600, 600, 1)
    run = Run("blobs", "base", 2, 600, "0.4", "abs", "logistic", 1)
    settings = {**SETTINGS, "epochs": 25, "batch_size": 100, "learning_rate": 0.005}
    history = complete(stack_epochs(((run,),), settings, data, {run.split: split}, CPU))[run]
    assert history["accuracy"].iloc[-1] > 0.9


def test_left_out_images_are_not_tested(image_set):
    images, labels = image_set
    dropped = {"train": labels["train"], "test": labels["test"].copy()}
    dropped["test"][:50] = 0
    data = TrainingData.prepare(images, dropped, "mlp", CPU)
    assert len(data.test_images) == len(data.test_labels) == 70
    assert set(data.test_labels.tolist()) == {1, -1}
    assert sorted(data.test_images[0].tolist())[-16:] == sorted(images.test_images[50].ravel().tolist())[-16:]


# -- cohorts --------------------------------------------------------------------------------------


def test_stacks_hold_every_run_once_and_a_stack_column_is_one_stream():
    runs = [*make_runs(), *make_runs(priors=("0.5",), methods=("ure",))]
    for device in (CPU, GPU):
        stacks = make_stacks(runs, "mlp", device)
        assert Counter(run for stack in stacks for row in stack for run in row) == Counter(runs)
        for stack in stacks:
            assert len({len(row) for row in stack}) == 1
            for column in zip(*stack, strict=True):
                assert len({run.split for run in column}) == 1
    assert max(len(stack[0]) for stack in make_stacks(runs, "mlp", GPU)) > 1
    assert [len(stack) * len(stack[0]) for stack in make_stacks(runs, "resnet34", GPU)] == [1] * len(runs)


@pytest.fixture(scope="module")
def alone(data, splits):
    """Histories of runs that each train alone."""
    return {run: complete(stack_epochs(((run,),), SETTINGS, data, splits, CPU))[run] for run in make_runs()}


@pytest.mark.parametrize("device", [CPU, GPU], ids=["stacks of a CPU", "stacks of a GPU, on this CPU"])
def test_a_run_has_the_same_history_alone_and_in_a_cohort(device, alone, data, splits):
    runs = make_runs()
    histories = {}
    for stack in make_stacks(runs, "mlp", device):
        histories |= complete(stack_epochs(stack, SETTINGS, data, splits, CPU))
    assert set(histories) == set(runs)
    for run in runs:
        assert_same_history(histories[run], alone[run], 2e-4)


def test_half_a_cohort_gives_the_same_histories(alone, data, splits):
    half = make_runs()[1::2]
    found = {}
    train(half, SETTINGS, data, splits, CPU, finished=found.__setitem__)
    assert set(found) == set(half)
    for run in half:
        assert_same_history(found[run], alone[run], 2e-4)


def test_training_again_gives_the_same_bits(alone, data, splits):
    run = make_runs()[3]
    pd.testing.assert_frame_equal(complete(stack_epochs(((run,),), SETTINGS, data, splits, CPU))[run], alone[run])


def test_a_cohort_too_large_for_the_memory_gives_the_same_histories_in_parts(alone, data, splits):
    found = {}
    train(make_runs(), SETTINGS, data, splits, CPU, finished=found.__setitem__, memory=1)
    assert set(found) == set(alone)
    for run, history in found.items():
        assert_same_history(history, alone[run], 2e-4)


def of_small_memory(monkeypatch, most):
    """Let the allocation of a stack of more than `most` runs fail in its first epoch, as on a GPU; count those."""
    failed, whole = [], trainer.stack_epochs

    def stack_epochs(stack, *others):
        if len(stack) * len(stack[0]) > most:
            failed.append(stack)
            raise torch.OutOfMemoryError
        return (yield from whole(stack, *others))

    monkeypatch.setattr(trainer, "stack_epochs", stack_epochs)
    return failed


@pytest.mark.parametrize("count", [1, 2])
def test_a_stack_whose_allocation_fails_is_halved_until_it_fits(count, alone, data, splits, monkeypatch, threads):
    threads(count)
    failed, found, steps = of_small_memory(monkeypatch, 1), {}, []
    train(make_runs(), SETTINGS, data, splits, CPU, finished=found.__setitem__, advance=steps.append)
    assert failed
    assert sum(steps) == len(alone) * EPOCHS
    for run, history in alone.items():
        assert_same_history(found[run], history, 2e-4)


def test_a_run_that_does_not_fit_alone_is_told(data, splits, monkeypatch):
    of_small_memory(monkeypatch, 0)
    with pytest.raises(UserError, match="the GPU has too little memory for one run of blobs/base/m2/n60/"):
        train(make_runs(), SETTINGS, data, splits, CPU, finished=lambda run, history: None)


def test_stacks_side_by_side_give_the_same_bits(threads, data, splits):
    """As many threads as stacks and more, and fewer: what trains beside what, and where, changes no number."""
    runs, found = make_runs(), {}
    for count in (1, 2, 3, 8):
        threads(count)
        histories = {}
        train(runs, SETTINGS, data, splits, CPU, finished=histories.__setitem__)
        found[count] = [histories[run] for run in runs]
        assert torch.get_num_threads() == count
    for others in found.values():
        for history, expected in zip(others, found[1], strict=True):
            pd.testing.assert_frame_equal(history, expected, check_exact=True)


@pytest.mark.parametrize(
    ("count", "stacks", "memory", "expected"),
    [
        (1, 9, None, 1),
        (2, 1, None, 1),  # nothing to stand beside it
        (2, 3, None, 2),
        (8, 3, None, 2),  # 3 would leave two threads idle
        (6, 5, None, 3),
        (8, 100, None, 8),
        (8, 100, 70, 4),  # 15 stacks under way are 150 bytes, 7 are 70
        (8, 100, 69, 2),
        (8, 2, 20, 2),
        (8, 100, 1, 1),
    ],
)
def test_as_many_stacks_side_by_side_as_threads_and_memory_allow(threads, count, stacks, memory, expected):
    threads(count)
    assert workers_for(stacks, 10, memory) == expected


def test_progress_counts_every_run_and_epoch(data, splits):
    runs, steps = make_runs(), []
    train(runs, SETTINGS, data, splits, CPU, finished=lambda run, history: None, advance=steps.append)
    assert sum(steps) == len(runs) * EPOCHS


# -- checkpoints ----------------------------------------------------------------------------------


class Interrupted(Exception):
    """Stands for whatever ends a job."""


def interrupt(stack, data, splits, path, epochs):
    """Train a stack until `epochs` are done, saving after each but the last, and end."""
    left = iter(range(epochs - 1))

    def advance(_):
        if next(left, None) is None:
            raise Interrupted

    with pytest.raises(Interrupted):
        complete(stack_epochs(stack, SETTINGS, data, splits, CPU, Checkpoint(path, "key", 0)), advance)


@pytest.mark.parametrize("epochs", range(1, EPOCHS + 1))
def test_interrupted_training_is_taken_up_to_the_same_bits(epochs, data, splits, tmp_path):
    stack = make_stacks(make_runs(), "mlp", CPU)[0]
    expected = complete(stack_epochs(stack, SETTINGS, data, splits, CPU))
    interrupt(stack, data, splits, tmp_path / "c.pt", epochs)
    saved = min(epochs, EPOCHS - 1)
    steps = []
    resumed = stack_epochs(stack, SETTINGS, data, splits, CPU, Checkpoint(tmp_path / "c.pt", "key", 0))
    found = complete(resumed, steps.append)
    for run, history in expected.items():
        pd.testing.assert_frame_equal(found[run], history, check_exact=True)
    # The epochs that were saved are counted at once, and not trained again.
    assert steps == [len(expected) * saved] + [len(expected)] * (EPOCHS - saved)


def test_a_checkpoint_of_other_settings_or_a_broken_one_is_refused(data, splits, tmp_path):
    stack, path = make_stacks(make_runs(), "mlp", CPU)[0], tmp_path / "c.pt"
    interrupt(stack, data, splits, path, 2)
    with pytest.raises(UserError, match=r"checkpoint .*c\.pt is of another configuration; delete it and run again"):
        complete(stack_epochs(stack, SETTINGS, data, splits, CPU, checkpoint=Checkpoint(path, "other", 0)))
    for content in (b"", path.read_bytes()[:1000], b"nonsense"):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"checkpoint .*c\.pt is not whole; delete it and run again"):
            complete(stack_epochs(stack, SETTINGS, data, splits, CPU, checkpoint=Checkpoint(path, "key", 0)))


def test_a_finished_stack_leaves_no_checkpoint(data, splits, tmp_path):
    written = []

    def checkpoint_of(stack):
        written.append(tmp_path / f"{len(written)}.pt")
        return Checkpoint(written[-1], "key", 0)

    train(make_runs(), SETTINGS, data, splits, CPU, lambda run, history: None, checkpoint_of=checkpoint_of)
    assert len(written) == 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_histories_of_a_cpu(alone, image_set, splits):
    runs, found = make_runs(), {}
    train(runs, SETTINGS, TrainingData.prepare(*image_set, "mlp", GPU), splits, GPU, finished=found.__setitem__)
    for run in runs:
        assert_same_history(found[run], alone[run], 2e-2)


def test_a_diverging_run_is_missing_from_there_on_and_leaves_the_others_alone(data, splits):
    """At a learning rate of a million the squared loss overflows single precision and the ramp loss cannot."""
    settings = {**SETTINGS, "learning_rate": 1e6, "weight_decay": 0.0}
    calm, wild = make_runs(priors=("0.4",), methods=("ure",), losses=("ramp", "squared"), seeds=(1,))
    together = complete(stack_epochs(((calm,), (wild,)), settings, data, splits, CPU))
    measures = [*MEASURES, "risk", "accuracy"]
    missing = together[wild][measures].isna()
    assert missing.any().all()
    assert (missing.all(axis=1) == missing.any(axis=1)).all()  # a row is missing whole or not at all
    assert missing["objective"].is_monotonic_increasing  # and once missing, missing to the end
    assert len(together[wild]) == EPOCHS
    assert together[calm][measures].notna().all().all()
    assert_same_history(together[calm], complete(stack_epochs(((calm,),), settings, data, splits, CPU))[calm], 1e-5)


def test_a_resnet_trains_an_epoch_on_tiny_images():
    labels = np.array([1, -1] * 6, dtype=np.int8)
    images = Stream(3, "tiny").integers(256, 12, 8, 8, 3).astype(np.uint8)
    classes = (labels < 0).astype(np.int64)
    image_set = ImageSet(images, classes, images, classes, ["a", "b"], "made here", "none")
    data = TrainingData.prepare(image_set, {"train": labels, "test": labels}, "resnet34", CPU)
    run = Run("tiny", "base", 2, 6, "0.5", "abs", "logistic", 1)
    settings = {**SETTINGS, "network": "resnet34", "stem": "cifar", "batch_size": 3, "epochs": 1}
    split = draw_split(labels, 2, 0.5, 6, 6, 1)
    histories = {}
    train([run], settings, data, {run.split: split}, CPU, finished=histories.__setitem__)
    assert len(histories[run]) == 1
    assert histories[run][list(MEASURES)].notna().all().all()


# -- devices --------------------------------------------------------------------------------------


def test_cuda_without_a_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="config key device: cuda is asked for, but torch finds no GPU"):
        choose_device("cuda")
    assert choose_device("auto") == choose_device("cpu") == CPU


def test_auto_takes_the_gpu_and_cpu_does_not(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == choose_device("cuda") == GPU
    assert choose_device("cpu") == CPU


def test_a_lease_is_of_a_name_that_nobody_holds_and_ends_with_its_holder(tmp_path):
    with leased(["a", "b"], tmp_path) as first, leased(["a", "b"], tmp_path) as second:
        assert (first, second) == (0, 1)
        waiting = threading.Thread(target=lambda: taken.append(wait_for_a_lease()))
        taken = []

        def wait_for_a_lease():
            with leased(["a", "b"], tmp_path, poll_seconds=0.01) as third:
                return third

        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(10)
    assert taken == [0] or taken == [1]


def test_a_killed_holder_leaves_its_lease_to_others(tmp_path):
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom mdpu.learn.device import leased\n"
        "with leased(['a'], Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        holder.kill()
    with leased(["a"], tmp_path) as position:
        assert position == 0
