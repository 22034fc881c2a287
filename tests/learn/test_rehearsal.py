"""The branch for GPUs, on a pretended one: every method, the same numbers, few waits, and planted bugs."""

from __future__ import annotations

import ast
import pickle
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
import torch
from blobs import CPU, SETTINGS, make_tasks
from rehearsal import DeviceError, Rehearsal

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier
from mdpu.learn import Settings, Task, evaluation, fit, fitting, trainer
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.device import (
    choose_device,
    choose_policy,
    describe,
    leased_device,
    memory_budget,
    resolve_precision,
    spread,
)
from mdpu.learn.evaluation import TestRates, ValidationBags
from mdpu.learn.method import FittedMethod
from mdpu.learn.methods import available_methods, load_method
from mdpu.learn.modules import module_architecture
from mdpu.learn.networks import mlp
from mdpu.learn.prior import brief_estimate, estimate_prior
from mdpu.learn.stopping import choose_epoch
from mdpu.learn.trainer import head_of
from mdpu.learn.tuning import tune
from mdpu.pipeline.files import PACKAGE

METHODS = available_methods()
ON_CPU = {name for name in METHODS if isinstance(load_method(name), FittedMethod)}  # without a network
SHORT = replace(SETTINGS, epochs=2)
TOLERANCE = 2e-5


def draw(blobs, task, bags=False):
    """Return what `fit` is given besides tasks: images, samples, labels and an evaluation."""
    rng = np.random.default_rng(0)
    size = task.tuple_size
    tuples = rng.integers(0, 300, (400, size))
    tuples = tuples[2 * (blobs.labels[tuples] > 0).sum(axis=1) >= size][:50]
    rates = blobs.rates()
    if bags:
        placed = ValidationBags(rng.integers(0, 60, (20, size)), rng.integers(0, 60, 30), np.arange(60, 120))
        rates = TestRates(blobs.test_images, blobs.test_labels, blobs.images, blobs.labels, {task.sample: placed})
    return {
        "images": blobs.images,
        "samples": {task.sample: TupleData(tuples, rng.integers(0, 300, 60))},
        "labels": blobs.labels,
        "evaluation": rates,
        "estimate_prior": brief_estimate,
    }


def differences(models, expected):
    """Return the largest difference between the histories of two sets of models."""
    pairs = zip(models, expected, strict=True)
    return max(np.abs(one.history.to_numpy(float) - other.history.to_numpy(float)).max() for one, other in pairs)


def rehearsed(tasks, settings, given, rehearsal=None, **options):
    """Return the models of a training on the pretended device."""
    with rehearsal or Rehearsal():
        return fit(tasks, settings=settings, device="cuda", **given, **options)


# -- histories --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_as_on_a_cpu(method, blobs):
    """Two tasks in one stack, with bags of test images."""
    tasks = [Task(method, 2, prior, loss) for prior, loss in ((0.4, "logistic"), (0.45, "ramp"))]
    given, rehearsal = draw(blobs, tasks[0], bags=True), Rehearsal()
    models = rehearsed(tasks, SHORT, given, rehearsal)
    assert differences(models, fit(tasks, settings=SHORT, device="cpu", **given)) < TOLERANCE
    assert bool(rehearsal.on_device) == (method not in ON_CPU)
    if load_method(method).tunable:
        with rehearsal:
            assert {len(model.predict(blobs.test_images)) for model in models} == {120}


@pytest.mark.parametrize("method", [name for name in METHODS if load_method(name).takes_ragged])
def test_tuples_of_several_sizes_train_as_on_a_cpu(method, blobs):
    task = Task(method, 3, 0.4)
    given = draw(blobs, task)
    given["samples"][""].tuples[::3, 2] = -1
    expected = fit([task], settings=SHORT, device="cpu", **given)
    assert differences(rehearsed([task], SHORT, given), expected) < TOLERANCE


class Dropping(torch.nn.Sequential):
    def __init__(self, shape):
        super().__init__(torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 1))


@pytest.mark.parametrize(
    ("network", "method", "precision"),
    [("resnet34", "siamese", "fp32"), ("own", "abs", "bf16"), ("own", "bag-relu", "fp32")],
)
def test_modules_train_as_on_a_cpu(network, method, precision, threads):
    threads(1)  # a CPU trains with one, and the rounding of convolutions depends on their number
    rng = np.random.default_rng(0)
    own = network == "own"
    images = rng.normal(size=(24, 5)).astype(np.float32) if own else rng.integers(0, 256, (24, 8, 8, 3), np.uint8)
    labels = np.array([1, -1] * 12, dtype=np.int8)
    sample, rates = TupleData(np.arange(12).reshape(6, 2), np.arange(12, 24)), TestRates(images, labels, images, labels)
    settings = Settings(
        epochs=2, batch_size=4, precision=precision, network=module_architecture(Dropping) if own else network
    )
    given = {"images": images, "samples": sample, "evaluation": rates}
    (model,), task = rehearsed([Task(method, 2, 0.5)], settings, given), Task(method, 2, 0.5)
    (expected,) = fit([task], settings=settings, device="cpu", **given)
    assert differences([model], [expected]) < 1e-3
    with Rehearsal():
        content = pickle.dumps(model)
    read = pickle.loads(content)  # where there is no GPU
    np.testing.assert_allclose(read.outputs(images), expected.outputs(images), atol=1e-3)


def test_bf16_is_computed_where_the_card_has_it(blobs):
    task = make_tasks()[0]
    given = draw(blobs, task)
    whole = fit([task], settings=SHORT, device="cpu", **given)
    auto = rehearsed([task], replace(SHORT, precision="auto"), given)
    assert 0 < differences(auto, whole) < 0.05
    with Rehearsal(capability=(7, 5)):  # a T4
        assert resolve_precision("auto", choose_device("cuda")) == "fp32"


# -- what surrounds a training ------------------------------------------------------------------------


def test_rates_epochs_and_the_prior_are_chosen_as_on_a_cpu(blobs):
    task = Task("abs", 2, 0.4, seed=1)
    given = draw(blobs, task)
    images, sample = given["images"], given["samples"][""]
    grid = {"learning_rate": [0.001, 0.01], "weight_decay": [0.0]}

    def chosen(device):
        table = tune([task], images, sample, SHORT, grid, 0.2, 1, device=device)
        epoch = choose_epoch(task, images, sample, SHORT, device=device)
        return table["estimated_error"].tolist(), epoch.history["bag_risk"].tolist()

    with Rehearsal():
        found = chosen("cuda")
        prior = estimate_prior(images, sample, SHORT, resamples=0, device="cuda").prior
    for own, expected in zip(found, chosen("cpu"), strict=True):
        assert own == pytest.approx(expected, abs=0.05)
    assert prior == pytest.approx(estimate_prior(images, sample, SHORT, resamples=0, device="cpu").prior, abs=1e-3)


@pytest.mark.parametrize("method", ["abs", "bag-relu", "siamese"])
def test_a_resumed_training_does_the_epochs_that_are_missing(method, blobs, tmp_path, monkeypatch):
    """The minibatches say which epochs were trained: a checkpoint that is not used would give the same numbers."""
    task, settings, epochs = Task(method, 2, 0.4), replace(SETTINGS, epochs=4), []
    given = draw(blobs, task)
    drawn = trainer.minibatches
    monkeypatch.setattr(trainer, "minibatches", lambda *of: epochs.append(of[-1]) or drawn(*of))
    whole = rehearsed([task], settings, given)
    assert epochs == [0, 1, 2, 3]

    def stop(done):
        if len(epochs) == 7:
            raise KeyboardInterrupt

    checkpoint = {"checkpoint_of": lambda stack: Checkpoint(tmp_path / "a.pt", "key", 0)}
    with pytest.raises(KeyboardInterrupt):
        rehearsed([task], settings, given, advance=stop, **checkpoint)
    assert epochs[4:] == [0, 1, 2]
    assert differences(rehearsed([task], settings, given, **checkpoint), whole) == 0
    assert epochs[7:] == [3]


def test_a_checkpoint_of_a_gpu_is_read_without_one_and_damage_takes_no_memory(tmp_path):
    path = tmp_path / "a.pt"
    with Rehearsal() as rehearsal:
        state, history = {"weight": torch.ones(3, device="cuda")}, torch.zeros(4, device="cuda")
        Checkpoint(path, "key", 0).save_if_due(state, history, 2)
        rehearsal.largest = 0
        path.write_bytes(path.read_bytes()[:-1])
        assert Checkpoint(path, "key", 0).restore(state, history) == 0
        rehearsal.largest = None
        Checkpoint(path, "key", 0).save_if_due(state, history, 2)
    weight = torch.zeros(3)
    assert Checkpoint(path, "key", 0).restore({"weight": weight}, torch.zeros(4)) == 2
    assert weight.tolist() == [1, 1, 1]


def test_memory_that_is_full_within_and_outside_of_a_stack_is_told(blobs):
    task = Task("abs", 2, 0.4)
    given = draw(blobs, task)
    for largest, sentence in ((100, "the rows do not fit into the GPU's free memory"), (20_000, None)):
        rehearsal = Rehearsal()
        rehearsal.largest = largest
        if sentence:
            with pytest.raises(UserError, match=sentence):
                rehearsed([task], SHORT, given, rehearsal)
        else:
            rehearsed([task], SHORT, given, rehearsal)
    rehearsal.largest = 10_000  # the images, 300 of 36 pixels, but not the activations of so wide a network
    with pytest.raises(UserError, match="the GPU has too little memory for one model of method abs"):
        rehearsed([task], replace(SHORT, architecture={"hidden": [400]}), given, rehearsal)


def test_each_of_two_gpus_is_leased_to_one_job(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    with Rehearsal(devices=2):
        with leased_device("auto") as first, leased_device("cuda") as second:
            assert [str(first), str(second)] == ["cuda:0", "cuda:1"]
            assert torch.cuda.current_device() == 1
        with leased_device("cuda:1") as chosen:
            assert str(chosen) == "cuda:1"
        with leased_device("cpu") as device:
            assert device == CPU
        monkeypatch.setattr("os.getpid", lambda: 7)
        assert [str(spread(torch.device(name))) for name in ("cuda", "cuda:0", "cpu")] == ["cuda:1", "cuda:0", "cpu"]
    (folder,) = tmp_path.iterdir()  # one of this user, so that nobody meets another's locks
    assert sorted(path.name for path in folder.iterdir()) == ["pretended-0.lock", "pretended-1.lock"]
    with Rehearsal(devices=1), leased_device("auto"):
        assert (folder / "pretended-0.lock").exists()  # the only GPU has a holder too
        with pytest.raises(UserError, match="device is cuda:1, but torch finds 1 GPUs"):
            choose_device("cuda:1")


def test_a_classifier_of_a_gpu_is_read_and_goes_on_without_one():
    rng = np.random.default_rng(0)
    tuples, unlabeled = rng.normal(size=(60, 2, 4)) + 0.5, rng.normal(size=(80, 4))
    few = {"prior": 0.4, "hidden": (8,), "batch_size": 20, "precision": "fp32", "random_state": 0, "warm_start": True}
    with Rehearsal():
        classifier = MDPUClassifier(n_epochs=2, device="cuda", **few).fit(tuples, unlabeled)
        content = pickle.dumps(classifier)
    read = pickle.loads(content)
    expected = MDPUClassifier(n_epochs=2, device="cpu", **few).fit(tuples, unlabeled)
    np.testing.assert_allclose(read.decision_function(unlabeled), expected.decision_function(unlabeled), atol=1e-4)
    read.set_params(device="cpu", n_epochs=3).fit(tuples, unlabeled)
    expected.set_params(n_epochs=3).fit(tuples, unlabeled)
    np.testing.assert_allclose(read.decision_function(unlabeled), expected.decision_function(unlabeled), atol=1e-4)


# -- policy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["relu", "bag-relu", "siamese"])
def test_stacks_of_a_gpu_train_on_a_cpu_too(method, blobs, samples):
    """Batched products, one objective for all tasks and stacks of several streams, without a pretended device."""
    with Rehearsal():
        policy = replace(choose_policy(torch.device("cuda"), "fp32"), device=CPU, compiled=False)
    tasks = make_tasks(methods=(method,), losses=("logistic",))
    models = fit(tasks, blobs.images, samples, SHORT, evaluation=blobs.rates(), policy=policy)
    expected = fit(tasks, blobs.images, samples, SHORT, evaluation=blobs.rates(), device=CPU)
    assert differences(models, expected) < TOLERANCE


# -- waits ------------------------------------------------------------------------------------------


def waits_per_epoch(task, given, **options):
    """Return how often one epoch of six minibatches with its evaluation waits for the device, by kind."""
    counted = []
    for epochs in (1, 2):
        rehearsal = Rehearsal()
        rehearsed([task], replace(SETTINGS, epochs=epochs, batch_size=9), given, rehearsal, **options)
        counted.append(rehearsal.waits)
    few, many = counted
    return {kind: many[kind] - few[kind] for kind in many if many[kind] > few[kind]}


# The orders of tuples and of unlabeled images are drawn by the processor, which does not wait while it copies them.
ORDERS = {"copy to the device": 2}


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ON_CPU | {"bag-free"}])
def test_an_epoch_waits_for_nothing_but_its_orders(method, blobs):
    task = Task(method, 2, 0.4)
    of_prototypes = {"copy to the device": 4} if load_method(method).outputs > 1 else ORDERS
    assert waits_per_epoch(task, draw(blobs, task, bags=True)) == of_prototypes


# -- branches -----------------------------------------------------------------------------------------


def device_branches():
    """Return what is compared with a type of device, by file and line of the library."""
    branches = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Compare(left=ast.Attribute(attr="type"), comparators=[ast.Constant("cpu" | "cuda")]):
                    branches[str(path), node.lineno] = compile(ast.unparse(node.left), str(path), "eval")
    return branches


def test_each_branch_on_the_type_of_the_device_is_taken_on_both(blobs, tmp_path, monkeypatch):
    """A new branch fails here until something runs it, on the pretended GPU and on a CPU."""
    branches, taken = device_branches(), set()
    files = {file for file, _ in branches}

    def line(frame, event, _):
        if event == "line" and (place := (frame.f_code.co_filename, frame.f_lineno)) in branches:
            with suppress(AttributeError):  # no device was given
                taken.add((*place, eval(branches[place], frame.f_globals, frame.f_locals)))
        return line

    def call(frame, *_):
        return line if frame.f_code.co_filename in files else None

    def work(name):
        with leased_device(name) as device:
            bytes_free = memory_budget(device, 2000)
            assert describe(device)
        task, settings = Task("abs", 2, 0.5), replace(SHORT, precision="auto")
        fit([task], settings=settings, device=name, memory=bytes_free, **draw(blobs, task))
        images = np.ones((24, 5), np.float32)
        sample = TupleData(np.arange(12).reshape(6, 2), np.arange(12, 24))
        module = Settings(epochs=1, batch_size=4, network=module_architecture(Dropping))
        fit([task], images, sample, settings=module, device=name)

    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    before = threading.gettrace(), sys.gettrace()
    threading.settrace(call)
    sys.settrace(call)
    try:
        work("cpu")
        with Rehearsal():
            work("cuda")
    finally:
        threading.settrace(before[0])
        sys.settrace(before[1])
    assert len(branches) > 5
    assert taken == {(*place, kind) for place in branches for kind in ("cpu", "cuda")}


# -- planted bugs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bug:
    """A patch of the code, which the rehearsal has to notice by an error, a wait or another history."""

    owner: object
    name: str
    change: Callable
    method: str = "abs"


def after(action):
    """Return a change of a function: its result goes through `action`."""
    return lambda old: lambda *given, **named: action(old(*given, **named))


def before(action):
    """Return a change of a function: `action` sees its arguments first."""
    return lambda old: lambda *given, **named: (action(*given, **named), old(*given, **named))[1]


def moved(attribute):
    """Return a change of a head: one of its tensors stays on the CPU."""

    def change(old):
        def made(self, tasks, device):
            old(self, tasks, device)
            owner = self.risk if hasattr(self, "risk") else self
            setattr(owner, attribute, getattr(owner, attribute).cpu())

        return made

    return change


BUGS = {
    "images stay on the CPU": Bug(fitting, "TrainingData", lambda old: lambda images, *of: old(images.cpu(), *of)),
    "labels stay on the CPU": Bug(
        fitting, "TrainingData", lambda old: lambda images, p, s, y, t: old(images, p, s, y.cpu(), t), "supervised"
    ),
    "test images stay on the CPU": Bug(TestRates, "prepare", lambda old: lambda self, p, device: old(self, p, CPU)),
    "test labels stay on the CPU": Bug(evaluation, "TestImages", lambda old: lambda x, y, *of: old(x, y.cpu(), *of)),
    "bags stay on the CPU": Bug(
        evaluation.PlacedBags, "of", lambda old: staticmethod(lambda bags, labels: old(bags, labels.cpu()))
    ),
    "weights of the risk stay on the CPU": Bug(head_of(Task("abs", 2, 0.5)), "__init__", moved("weights")),
    "the prior of bags stays on the CPU": Bug(
        head_of(Task("bag-relu", 2, 0.5)), "__init__", moved("bag_prior"), "bag-relu"
    ),
    "the network stays on the CPU": Bug(
        mlp.StackedMLP,
        "__init__",
        lambda old: lambda self, s, i, h, dtype, device, *of: old(self, s, i, h, dtype, CPU, *of),
    ),
    "the head is on the CPU": Bug(
        trainer, "make_heads", lambda old: lambda tasks, policy: old(tasks, replace(policy, device=CPU)), "bag-relu"
    ),
    "gradients come from the CPU": Bug(mlp.StackedMLP, "backward", after(lambda found: [g.cpu() for g in found])),
    "scores go to the CPU": Bug(mlp.StackedMLP, "forward", after(torch.Tensor.cpu)),
    "steps of Adam are counted on the CPU": Bug(
        trainer.Adam,
        "__init__",
        lambda old: (
            lambda self, *of: (
                old(self, *of),
                setattr(self, "_steps", [[step.cpu() for step in steps] for steps in self._steps]),
            )[0]
        ),
    ),
    "the objective is printed": Bug(
        head_of(Task("abs", 2, 0.5)), "objective", after(lambda found: (found[0].sum().item(), found)[1])
    ),
    "a flat risk is asked for": Bug(
        head_of(Task("abs", 2, 0.5)), "objective", after(lambda found: (bool((found[0] > 0).all()), found)[1])
    ),
    "scores are looked at as a list": Bug(mlp.StackedMLP, "forward", after(lambda found: (found.tolist(), found)[1])),
    "rates count by a mask": Bug(
        evaluation, "rates", lambda old: lambda answers, sides: old(answers[:, answers[0] | ~answers[0]], sides)
    ),
    "answers are counted by bincount": Bug(
        evaluation, "count_answers", before(lambda answers, bags: torch.bincount(answers.long()))
    ),
    "rows are unique": Bug(trainer, "cut_batch", before(lambda outputs, *of: outputs.unique())),
    "minibatches are drawn on the CPU": Bug(
        trainer,
        "minibatches",
        lambda old: lambda seeds, tuples, unlabeled, *of: old(seeds, tuples.cpu(), unlabeled.cpu(), *of),
    ),
    "a row is picked by a list": Bug(mlp.StackedMLP, "forward", after(lambda found: found[[0]])),
    "noise from a generator of the CPU": Bug(
        mlp.StackedMLP,
        "forward",
        after(lambda found: found + 0 * torch.rand(found.shape, device=found.device, generator=torch.Generator())),
    ),
    "a constant is made on the CPU": Bug(
        mlp.StackedMLP, "forward", after(lambda found: found + torch.zeros(found.shape[2]))
    ),
    "weights are compared one by one": Bug(
        mlp.StackedMLP,
        "forward",
        lambda old: lambda self, images: (mlp._origins(self.parameters), old(self, images))[1],
    ),
    "the mean is on the CPU": Bug(
        trainer.RunningMean,
        "__init__",
        lambda old: lambda self, *of: (old(self, *of), setattr(self, "means", [mean.cpu() for mean in self.means]))[0],
        "bag-relu",
    ),
    "one objective is left out": Bug(
        trainer, "rows_by_head", lambda old: lambda heads, count: [slice(0, 1)] * len(heads)
    ),
    "the history is kept on the CPU": Bug(trainer, "train_stack", lambda old: on_the_cpu(old)),
}


def on_the_cpu(train):
    """Return the training with a history in the computer's memory."""

    def trained(*given):
        zeros = torch.zeros
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "zeros", lambda *size, device=None, **of: zeros(*size, **of))
            return (yield from train(*given))

    return trained


@pytest.fixture(scope="module")
def sound(blobs):
    """Return what gives the tasks of a method, what they train on, their models on a CPU, and the waits on a GPU."""

    @cache
    def sound(method):
        tasks = [Task(method, 2, 0.4, loss) for loss in ("logistic", "ramp")]
        given, rehearsal = draw(blobs, tasks[0], bags=True), Rehearsal()
        expected = fit(tasks, settings=replace(SHORT, epochs=1), device="cpu", **given)
        assert differences(rehearsed(tasks, replace(SHORT, epochs=1), given, rehearsal), expected) < TOLERANCE
        return tasks, given, expected, rehearsal.waits

    return sound


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name, sound, monkeypatch):
    bug, rehearsal, settings = BUGS[name], Rehearsal(), replace(SHORT, epochs=1)
    tasks, given, expected, waits = sound(bug.method)
    old = getattr(bug.owner, bug.name)
    monkeypatch.setattr(bug.owner, bug.name, bug.change(old))
    if bug.owner is trainer and bug.name == "train_stack":
        monkeypatch.setattr(fitting, bug.name, bug.change(old))
    try:
        models = rehearsed(tasks, settings, given, rehearsal)
    except (DeviceError, RuntimeError, TypeError, IndexError):
        return
    assert rehearsal.waits != waits or differences(models, expected) > TOLERANCE
