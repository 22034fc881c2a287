"""Which device a process computes on, who holds a GPU, and whether training keeps its data there."""

from __future__ import annotations

import subprocess
import sys
import threading
import types
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from blobs import IMAGES, LABELS, SETTINGS, TEST_IMAGES, TEST_LABELS, draw_sample
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import mdpu
import mdpu.methods
import mdpu.train as trainer
from mdpu.device import choose_device, describe, leased, leased_device, spread
from mdpu.errors import UserError
from mdpu.methods import available_methods, load_method
from mdpu.networks import TestSet
from mdpu.settings import Task

CPU = torch.device("cpu")


def test_cuda_without_a_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for asked in ("cuda", "cuda:1", "gpu", "cuda:x", "cpu:0"):
        with pytest.raises(UserError, match=asked):
            choose_device(asked)
    assert choose_device("auto") == choose_device("cpu") == CPU


def test_auto_takes_the_gpu_and_cpu_does_not(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(UserError, match="cuda:2"):
        choose_device("cuda:2")
    assert choose_device("cpu") == spread(CPU) == CPU
    assert spread(torch.device("cuda")).index in (0, 1)


def test_a_device_is_described_with_its_threads(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert describe(CPU).endswith(f"{torch.backends.cpu.get_cpu_capability()} (2 threads)")


def test_a_lease_is_of_a_name_that_nobody_holds_and_ends_with_its_holder(tmp_path):
    taken = []

    def wait_for_a_lease():
        with leased(["a", "b"], tmp_path, poll_seconds=0.01) as third:
            taken.append(third)

    with leased(["a", "b"], tmp_path) as first, leased(["a", "b"], tmp_path) as second:
        assert (first, second) == (0, 1)
        waiting = threading.Thread(target=wait_for_a_lease)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(10)
    assert taken in ([0], [1])
    with leased_device("cpu") as device:
        assert device == CPU


def test_a_killed_holder_leaves_its_lease_to_others(tmp_path):
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom mdpu.device import leased\n"
        "with leased(['a'], Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        holder.kill()
    with leased(["a"], tmp_path) as position:
        assert position == 0


# -- a pretended GPU ---------------------------------------------------------------------------------


class DeviceError(Exception):
    """Tensors of two devices meet."""


class OneDevice(TorchDispatchMode):
    """Refuses what a GPU refuses: operations on tensors of two devices, but for copies and single numbers."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name
        if name not in ("aten::copy_", "aten::_to_copy"):
            tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            kinds = {tensor.device.type for tensor in tensors if tensor.dim() or "fused" in name}
            if len(kinds) > 1:
                raise DeviceError(name)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def pretended(monkeypatch):
    """Pretend that torch's device `meta`, whose tensors have no values, is a GPU; measures that are read are zeros."""
    real = torch.Tensor.tolist
    monkeypatch.setattr(
        torch.Tensor, "tolist", lambda self: torch.zeros(self.shape).tolist() if self.is_meta else real(self)
    )
    with OneDevice():
        yield


def changed(name, old, new):
    """Return a module of the package in which a piece of its code is another one."""
    path = Path(mdpu.__file__).parent / f"{name}.py"
    code = path.read_text(encoding="utf-8")
    assert code.count(old) == 1, (name, old)
    module = types.ModuleType(f"changed.{name.replace('/', '.')}")
    module.torch = torch
    sys.modules[module.__name__] = module  # dataclasses look there
    try:
        exec(compile(code.replace(old, new), str(path), "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module


def train_there(train, method, seeds=(3, 4), test_set=TestSet):
    samples, evaluation = [draw_sample(seed, 3) for seed in seeds], test_set(TEST_IMAGES, TEST_LABELS, IMAGES, LABELS)
    task, settings = Task(method, 3, 0.4), replace(SETTINGS, epochs=1)
    options = {"labels": LABELS, "evaluation": evaluation, "device": "meta"}
    return train(task, IMAGES, samples, list(seeds), settings, **options)


@pytest.mark.parametrize("seeds", [(3,), (3, 4)])
@pytest.mark.parametrize("method", [name for name in available_methods() if load_method(name).needs_network])
def test_training_keeps_everything_on_the_device(method, seeds, pretended):
    for trained in train_there(trainer.train, method, seeds):
        assert all(parameter.is_meta for parameter in trained.module.parameters())


PLANTED = [  # file, its code, what stands there by mistake, a method that meets it
    ("networks", "preparation(self.images).to(device)", "preparation(self.images)", "ure"),
    (
        "networks",
        "np.flatnonzero(self.labels * side > 0)).to(device)",
        "np.flatnonzero(self.labels * side > 0))",
        "ure",
    ),
    ("networks", "self.train_images[indices]).to(self._device)", "self.train_images[indices])", "siamese"),
    ("train", "torch.from_numpy(labels[used]).to(device)", "torch.from_numpy(labels[used])", "supervised"),
    ("train", "len(objective.measures), device=device)", "len(objective.measures))", "ure"),
    ("train", "else preparation(images[used]).to(device)", "else preparation(images[used])", "ure"),
    ("train", "*(torch.from_numpy(part).to(device) for part", "*(torch.from_numpy(part) for part", "ure"),
    ("train", "np.stack(known)[:, used]).float().to(device)", "np.stack(known)[:, used]).float()", "started"),
    ("train", "torch.zeros_like(parameter) for parameter", "torch.zeros(parameter.shape) for parameter", "ure"),
    ("train", "torch.zeros((), device=parameter.device)", "torch.zeros(())", "ure"),
    (
        "train",
        "torch.cat([members, others], dim=1)",
        "torch.cat([members, torch.zeros(2, 9, dtype=int)], dim=1)",
        "ure",
    ),
    ("train", "self.means = [value.clone()", "self.means = [torch.zeros(value.shape)", "bag-relu"),
    ("networks", "[module.to(device) for module in modules]", "list(modules)", "ure"),
    ("methods/risks", "tuple_size), device=self.device)", "tuple_size))", "ure"),
    ("methods/risks", "dtype=torch.float32, device=self.device)", "dtype=torch.float32)", "relu"),
    ("methods/bags", "scores.new_full((len(scores), 1), -30.0)", "torch.full((2, 1), -30.0)", "bag-em"),
    ("methods/baselines", "EMBEDDING**0.5).float().to(self.device)", "EMBEDDING**0.5).float()", "siamese"),
    ("methods/baselines", "reshape(self.drawn.shape)).to(self.device)", "reshape(self.drawn.shape))", "contrastive"),
    ("methods/baselines", "torch.full_like(predicted, expected)", "torch.full(predicted.shape, expected)", "llp"),
    ("methods/baselines", "torch.arange(len(self.drawn), device=self.device)", "torch.arange(2)", "siamese"),
]


@pytest.mark.parametrize(("file", "old", "new", "method"), PLANTED)
def test_a_tensor_that_is_left_on_the_cpu_is_noticed(file, old, new, method, pretended, monkeypatch):
    if method == "started":
        monkeypatch.setattr(mdpu.methods.Objective, "start", lambda self, sample, seed, images: LABELS * 1.0)
        method = "ure"
    train_there(trainer.train, method)
    bad = changed(file, old, new)
    if file == "networks":
        monkeypatch.setattr(trainer, "Networks", bad.Networks)
    elif file != "train":
        own = load_method(method)
        own = replace(own, objective=getattr(bad, own.objective.partition(":")[2]))
        monkeypatch.setattr(trainer, "load_method", lambda name: own)
    with pytest.raises(DeviceError):
        train_there(getattr(bad, "train", trainer.train), method, test_set=getattr(bad, "TestSet", TestSet))
