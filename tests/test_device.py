"""Which device a process computes on, which GPU a job takes, and whether training keeps its data there."""

import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from blobs import IMAGES, LABELS, SETTINGS, TEST_IMAGES, TEST_LABELS, draw_sample
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mdpu.errors import UserError
from mdpu.methods import available_methods, load_method
from mdpu.networks import TestSet, choose_device
from mdpu.pipeline.device import describe, joined, least_used_gpu, precision_on
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


def test_a_cpu_computes_tf32_in_float32():
    asked = ("float32", "tf32", "bfloat16")
    assert [precision_on(CPU, precision) for precision in asked] == ["float32", "float32", "bfloat16"]
    assert [precision_on(torch.device("cuda"), precision) for precision in asked] == [*asked]


@pytest.mark.parametrize(
    ("cards", "jobs", "expected"), [(["a"], 4, [4]), (["a", "b"], 5, [3, 2]), (["a", "b", "c"], 2, [1, 1, 0])]
)
def test_jobs_spread_over_cards_and_never_wait(tmp_path, cards, jobs, expected):
    with ExitStack() as stack:
        taken = [stack.enter_context(joined(cards, tmp_path)) for _ in range(jobs)]
    assert [taken.count(position) for position in range(len(cards))] == expected
    assert not [*tmp_path.glob("*.job")]


def test_a_job_takes_the_card_that_another_has_left(tmp_path):
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        assert first.enter_context(joined(["a", "b"], tmp_path)) == 0
        assert stack.enter_context(joined(["a", "b"], tmp_path)) == 1
        assert stack.enter_context(joined(["a", "b"], tmp_path)) == 0
        first.close()
        assert stack.enter_context(joined(["b", "a"], tmp_path)) == 0
        assert stack.enter_context(joined(["b", "a"], tmp_path)) == 1


def test_a_killed_job_no_longer_counts(tmp_path):
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom mdpu.pipeline.device import joined\n"
        "with joined(['a'], Path(sys.argv[1])):\n    print('joined', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout.readline() == "joined\n"
        with joined(["a", "b"], tmp_path) as beside:
            assert beside == 1
        killed.kill()
    with joined(["a", "b"], tmp_path) as afterwards:
        assert afterwards == 0


def test_a_job_chooses_among_the_cards_that_it_may_see(tmp_path, monkeypatch):
    """CUDA_VISIBLE_DEVICES renumbers cards, so torch's numbers mean others; their UUIDs stay."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(torch.cuda, "set_device", lambda number: None)

    def see(*uuids):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(uuids))
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(uuid=uuids[number]))

    with ExitStack() as stack:
        see("GPU-b")
        assert stack.enter_context(least_used_gpu(torch.device("cuda"))) == torch.device("cuda:0")
        see("GPU-b", "GPU-a")
        assert stack.enter_context(least_used_gpu(torch.device("cuda"))) == torch.device("cuda:1")
        assert stack.enter_context(least_used_gpu(torch.device("cuda:1"))) == torch.device("cuda:1")
        assert stack.enter_context(least_used_gpu(torch.device("cuda"))) == torch.device("cuda:0")


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


def test_a_card_has_tf32_if_it_is_asked_for_and_times_its_convolutions(pretended):
    cudnn = torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.benchmark
    seen = []

    def note(epoch, rows):
        seen.append((torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.benchmark))

    for precision in ("float32", "tf32"):
        settings = replace(SETTINGS, epochs=1, precision=precision)
        train(Task("ure", 2, 0.4), IMAGES, [draw_sample()], [3], settings, device="meta", on_epoch_end=note)
    assert seen == [("highest", False, True), ("high", True, True)]
    assert (torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.benchmark) == before
