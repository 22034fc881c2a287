"""Which device a process computes on, which GPU a job takes, and whether training keeps its data
there.
"""

import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from blobs import (
    IMAGES,
    LABELS,
    SETTINGS,
    SIDE,
    TEST_IMAGES,
    TEST_LABELS,
    assert_same,
    draw_sample,
    train_blobs,
)
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mdpu.errors import UserError
from mdpu.methods import available_methods, load_method
from mdpu.networks import (
    Networks,
    Preparation,
    TestSet,
    check_compiler,
    choose_device,
    make_network,
    precision_on,
    prepare,
)
from mdpu.pipeline.device import describe, joined, least_used_gpu
from mdpu.settings import Settings, Task
from mdpu.train import Inputs, train

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
    assert [precision_on(CPU, precision) for precision in asked] == [
        "float32",
        "float32",
        "bfloat16",
    ]
    assert [precision_on(torch.device("cuda"), precision) for precision in asked] == [*asked]


@pytest.mark.parametrize(
    ("cards", "jobs", "expected"),
    [(["a"], 4, [4]), (["a", "b"], 5, [3, 2]), (["a", "b", "c"], 2, [1, 1, 0])],
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
        "with joined(['a'], Path(sys.argv[1])):\n    print('joined', flush=True)\n    "
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, text=True
    ) as killed:
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
        monkeypatch.setattr(
            torch.cuda, "get_device_properties", lambda number: SimpleNamespace(uuid=uuids[number])
        )

    with ExitStack() as stack:
        see("GPU-b")
        assert stack.enter_context(least_used_gpu(torch.device("cuda"))) == torch.device("cuda:0")
        see("GPU-b", "GPU-a")
        assert stack.enter_context(least_used_gpu(torch.device("cuda"))) == torch.device("cuda:1")
        assert stack.enter_context(least_used_gpu(torch.device("cuda:1"))) == torch.device("cuda:1")
        assert stack.enter_context(least_used_gpu(torch.device("cuda"))) == torch.device("cuda:0")


# -- a pretended GPU -------------------------------------------------------------------------------


class DeviceError(Exception):
    """Tensors of two devices meet."""


class OneDevice(TorchDispatchMode):
    """Refuses what a GPU refuses: operations on tensors of two devices, but for copies and single
    numbers.
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name
        if name not in ("aten::copy_", "aten::_to_copy"):
            tensors = [
                leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
            ]
            kinds = {tensor.device.type for tensor in tensors if tensor.dim() or "fused" in name}
            if len(kinds) > 1:
                raise DeviceError(name)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def pretended(monkeypatch):
    """Pretend that torch's device `meta`, whose tensors have no values, is a GPU; measures that are
    read are zeros.
    """
    real = torch.Tensor.tolist
    monkeypatch.setattr(
        torch.Tensor,
        "tolist",
        lambda self: torch.zeros(self.shape).tolist() if self.is_meta else real(self),
    )
    with OneDevice():
        yield


@pytest.mark.parametrize("seeds", [(3,), (3, 4)])
@pytest.mark.parametrize(
    "method", [name for name in available_methods() if load_method(name).trains_network]
)
def test_training_keeps_everything_on_the_device(method, seeds, pretended):
    samples = [draw_sample(seed, 3) for seed in seeds]
    evaluation = TestSet(TEST_IMAGES, TEST_LABELS, IMAGES, LABELS)
    task = Task(method, 3, 0.4)
    settings = replace(SETTINGS, epochs=1)
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
        train(
            Task("ure", 2, 0.4),
            IMAGES,
            [draw_sample()],
            [3],
            settings,
            device="meta",
            on_epoch_end=note,
        )
    assert seen == [("highest", False, True), ("high", True, True)]
    assert (torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.benchmark) == before


class HostCopies(TorchDispatchMode):
    """Counts the copies from the CPU to the device."""

    def __init__(self):
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func._schema.name
        if name == "aten::copy_":
            self.number += args[0].is_meta and args[1].is_cpu and args[1].dim() > 0
        elif name == "aten::_to_copy":
            self.number += result.is_meta and args[0].is_cpu
        elif name == "aten::lift_fresh":  # torch.tensor and Tensor.new_tensor
            self.number += result.is_meta
        return result


@pytest.mark.parametrize(
    ("method", "ragged"),
    [
        ("ure", False),
        ("ure", True),
        ("relu-part", False),
        ("bag-relu", False),
        ("siamese", False),
        ("llp", False),
    ],
)
def test_a_step_copies_nothing_from_the_host(method, ragged, pretended):
    sample = draw_sample(3, 3)
    if ragged:
        sample.tuples[::2, 2] = -1
    numbers = []
    for batch_size in (60, 10):
        with HostCopies() as copies:
            settings = replace(SETTINGS, epochs=2, batch_size=batch_size)
            train_blobs(method, [sample], [3], settings, device="meta")
        numbers.append(copies.number)
    assert numbers[0] == numbers[1] > 0


def test_the_orders_of_an_epoch_are_one_copy(pretended):
    numbers = []
    for epochs in (1, 2, 3):
        with HostCopies() as copies:
            train_blobs(
                "ure", [draw_sample()], [3], replace(SETTINGS, epochs=epochs), device="meta"
            )
        numbers.append(copies.number)
    assert np.diff(numbers).tolist() == [1, 1]


# -- what a GPU keeps ------------------------------------------------------------------------------

COLOURS = np.stack([IMAGES, IMAGES[:, ::-1], 255 - IMAGES], axis=3)
TEST_COLOURS = np.stack([TEST_IMAGES, TEST_IMAGES[:, ::-1], 255 - TEST_IMAGES], axis=3)


def small_network(shape):
    channels = shape[2] if len(shape) == 3 else 1
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * (SIDE - 2) ** 2, 1)
    )


def test_a_gpu_keeps_grey_values_as_bytes_and_a_cpu_as_floats():
    meta = torch.device("meta")
    for images, floats in ((IMAGES, np.float32(IMAGES)), (COLOURS, np.float32(COLOURS))):
        preparation = prepare(Settings(network=small_network), images)
        assert preparation.keep(images, meta).nbytes == images.nbytes
        assert preparation.keep(images, CPU).nbytes == 4 * images.nbytes
        assert (
            prepare(Settings(network=small_network), floats).keep(floats, meta).nbytes
            == floats.nbytes
        )
    perceptron = prepare(SETTINGS, IMAGES)
    assert perceptron.keep(IMAGES, meta).nbytes == len(IMAGES) * len(perceptron.pixels)


@pytest.mark.parametrize(
    ("images", "tests", "changes"),
    [
        (IMAGES, TEST_IMAGES, {}),
        (IMAGES, TEST_IMAGES, {"network": "components", "architecture": {"hidden": [8]}}),
        (IMAGES, TEST_IMAGES, {"network": small_network, "architecture": {}}),
        (COLOURS, TEST_COLOURS, {"network": small_network, "architecture": {}}),
    ],
)
def test_images_that_stay_bytes_until_the_step_give_the_same_numbers(
    images, tests, changes, monkeypatch
):
    settings = replace(SETTINGS, **changes)
    options = {"images": images, "evaluation": TestSet(tests, TEST_LABELS, images, LABELS)}
    [floats] = train_blobs("relu", [draw_sample()], [3], settings, **options)
    of_gpu = Preparation.kept_type
    monkeypatch.setattr(
        Preparation, "kept_type", lambda self, device: of_gpu(self, torch.device("cuda"))
    )
    [stored] = train_blobs("relu", [draw_sample()], [3], settings, **options)
    assert_same(stored.history, floats.history)
    assert np.array_equal(stored.outputs(tests), floats.outputs(tests))


@pytest.mark.parametrize("device", [CPU, torch.device("meta")])
@pytest.mark.parametrize("images", [COLOURS, np.float32(COLOURS)])
def test_the_channels_are_last_from_the_input_of_resnet_on(images, device):
    preparation = prepare(Settings(network="resnet34"), images)
    inputs = Inputs(images, [draw_sample()], preparation, device)
    x = inputs(inputs.unlabeled)[0]
    assert x.shape[1:] == (3, SIDE, SIDE)
    assert x.dtype == torch.float32
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert not x.is_contiguous()


class FullAbove(nn.Module):
    """A module whose activations fit into memory for so many rows."""

    def __init__(self, rows):
        super().__init__()
        self.rows = rows
        self.layer = nn.Linear(SIDE * SIDE, 1)

    def forward(self, x):
        if len(x) > self.rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self.layer(x.flatten(1))


def test_parts_that_do_not_fit_are_halved_until_they_do():
    settings = Settings(network=FullAbove(20))
    preparation = prepare(settings, IMAGES)
    networks = Networks([make_network(settings, preparation, 1, 1)], preparation, 1, CPU, settings)
    kept = preparation.keep(TEST_IMAGES, CPU)
    expected = networks.module.layer(preparation(TEST_IMAGES).flatten(1))
    torch.testing.assert_close(networks.scores(kept), expected.T)
    assert networks.rows_at_once == len(TEST_IMAGES) / 8 <= 20
    networks.module.rows = 0
    with pytest.raises(torch.OutOfMemoryError):
        networks.scores(kept)


# -- compiled networks -----------------------------------------------------------------------------


def test_compile_is_refused_without_a_compiler(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    check_compiler(CPU)
    with pytest.raises(UserError, match="triton"):
        check_compiler(torch.device("cuda"))
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setenv("CXX", "mine++")
    with pytest.raises(UserError, match=r"mine\+\+"):
        check_compiler(CPU)
    with pytest.raises(UserError, match=r"mine\+\+"):
        train_blobs("ure", [draw_sample()], [3], Settings(network=small_network, compile=True))


def test_compile_is_refused_for_perceptrons_and_for_seeds_at_once():
    for network in ("mlp", "components"):
        with pytest.raises(UserError, match=network):
            Settings(network=network, compile=True)
    with pytest.raises(UserError, match="compile"):
        Settings(network="resnet34", compile="yes")
    samples = [draw_sample(1), draw_sample(2)]
    with pytest.raises(UserError, match="one seed at a time"):
        train_blobs("ure", samples, [1, 2], Settings(network=small_network, compile=True))


def test_a_compiled_network_is_the_network(monkeypatch):
    """As torch traces it; what its compiler makes of that is torch's to test."""
    compiled = []

    def traced(module):
        compiled.append(module)
        return real(module, backend="eager")

    real = torch.compile
    monkeypatch.setattr(torch, "compile", traced)
    monkeypatch.setattr("mdpu.networks.check_compiler", lambda device: None)
    settings = replace(SETTINGS, epochs=2, network=small_network, architecture={})
    [plain] = train_blobs("relu", [draw_sample()], [3], settings)
    [trained] = train_blobs("relu", [draw_sample()], [3], replace(settings, compile=True))
    assert compiled == [trained.module]
    assert_same(trained.history, plain.history, 1e-5)
    assert type(trained.module) is nn.Sequential
