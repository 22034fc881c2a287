"""Which device a process computes on, who holds a GPU, and whether training keeps its data there."""

import subprocess
import sys
import threading
from dataclasses import replace

import pytest
import torch
from blobs import IMAGES, LABELS, SETTINGS, TEST_IMAGES, TEST_LABELS, draw_sample
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mdpu.errors import UserError
from mdpu.methods import available_methods, load_method
from mdpu.networks import TestSet, choose_device
from mdpu.pipeline.device import describe, leased
from mdpu.settings import Task
from mdpu.train import train

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
    assert (choose_device("cuda:1"), choose_device("cpu")) == (torch.device("cuda:1"), CPU)
    with pytest.raises(UserError, match="cuda:2"):
        choose_device("cuda:2")


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


def test_a_killed_holder_leaves_its_lease_to_others(tmp_path):
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom mdpu.pipeline.device import leased\n"
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


@pytest.mark.parametrize("seeds", [(3,), (3, 4)])
@pytest.mark.parametrize("method", [name for name in available_methods() if load_method(name).objective])
def test_training_keeps_everything_on_the_device(method, seeds, pretended):
    samples, evaluation = [draw_sample(seed, 3) for seed in seeds], TestSet(TEST_IMAGES, TEST_LABELS, IMAGES, LABELS)
    task, settings = Task(method, 3, 0.4), replace(SETTINGS, epochs=1)
    options = {"labels": LABELS, "evaluation": evaluation, "device": "meta"}
    for trained in train(task, IMAGES, samples, list(seeds), settings, **options):
        assert all(parameter.is_meta for parameter in trained.module.parameters())
