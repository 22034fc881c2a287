"""Which device and precision a process computes in, and who holds a GPU."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch
from blobs import CPU, GPU

from mdpu.errors import UserError
from mdpu.learn import device as module
from mdpu.learn.device import choose_device, cpu_model, describe, float32_products, leased, resolve_precision

# -- devices --------------------------------------------------------------------------------------


def test_cuda_without_a_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="device is cuda, but torch finds no GPU; set device to auto or cpu"):
        choose_device("cuda")
    assert choose_device("auto") == choose_device("cpu") == CPU


def test_auto_takes_the_gpu_and_cpu_does_not(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == choose_device("cuda") == GPU
    assert choose_device("cpu") == CPU


@pytest.mark.parametrize(("count", "words"), [(1, "(1 thread)"), (2, "(2 threads)")])
def test_a_device_is_described_with_its_threads(count, words, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: count)
    assert describe(CPU) == f"{cpu_model()} {words}"


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


# -- precision ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "tf32"), [("fp32", False), ("tf32", True), ("bf16", False)])
def test_tf32_is_on_where_it_is_asked_for_alone(precision, tf32):
    """In products and in convolutions, where cuDNN's is on unless it is switched off; then all is as before."""

    def switches():
        return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32

    before = switches()
    with pytest.raises(KeyboardInterrupt), float32_products(precision):
        assert switches() == (("high" if tf32 else "highest"), tf32)
        raise KeyboardInterrupt
    assert switches() == before


def test_auto_is_bf16_where_the_hardware_has_it(monkeypatch):
    for has_it, resolved in ((True, "bf16"), (False, "fp32")):
        monkeypatch.setattr(module, "_has_bf16", lambda device, has_it=has_it: has_it)
        assert resolve_precision("auto", CPU) == resolved
        assert [resolve_precision(named, CPU) for named in ("fp32", "tf32", "bf16")] == ["fp32", "tf32", "bf16"]
