"""The network of ``docs/how-to/add-network.md`` is one, and trains."""

from __future__ import annotations

import re
import sys
import types

import numpy as np
import torch
import yaml

from mdpu.data import TupleData
from mdpu.learn import Settings, Task, fit, networks
from mdpu.learn.network import Architecture
from mdpu.pipeline.config import load_config
from mdpu.pipeline.experiments import check
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan

GUIDE = (REPOSITORY / "docs" / "how-to" / "add-network.md").read_text(encoding="utf-8")


def guide_network(monkeypatch) -> Architecture:
    (text,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    module = types.ModuleType("small_cnn")
    monkeypatch.setitem(sys.modules, "small_cnn", module)  # a dataclass looks its module up
    exec(text, module.__dict__)
    return module.NETWORK


def test_the_guides_network_trains(monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8), dtype=np.uint8)
    data = TupleData(np.arange(40).reshape(20, 2), np.arange(40, 60))
    (overlay,) = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    ((name, values),) = yaml.safe_load(overlay)["protocol"]["training"]["networks"].items()
    assert f"mdpu/learn/networks/{name.replace('-', '_')}.py" in GUIDE
    network = guide_network(monkeypatch)
    settings = Settings(network=network, epochs=2, batch_size=values["batch_size"], architecture={"width": 4})
    (model,) = fit([Task("ure", 2, 0.5)], images, data, settings, device="cpu")
    assert model.decision_function(images).shape == (60,)


def test_the_guides_configuration_names_it(monkeypatch, tmp_path):
    (path,) = re.findall(r"^`mdpu/learn/networks/(\w+\.py)`:", GUIDE, re.MULTILINE)
    for name, language in ((path, "python"), ("overlay.yaml", "yaml")):
        (text,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(networks, "__path__", [*networks.__path__, str(tmp_path)])
    files = [REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml", tmp_path / "overlay.yaml"]
    plan = Plan(load_config(files))
    check(plan.config)
    assert plan.network("digits") == "small-cnn"
    assert plan.protocol.training("base", "small-cnn")["width"] == 16
    sys.modules.pop("mdpu.learn.networks.small_cnn")


def test_its_memory_is_an_estimate_from_above_of_its_weights(monkeypatch):
    network = guide_network(monkeypatch)
    own = network.read({"width": 8})
    pictures = network.prepare(np.zeros((5, 8, 8, 3), np.uint8))
    module = sys.modules["small_cnn"].module(own, pictures, 1)
    weights = sum(parameter.numel() for parameter in module.parameters())
    assert module(torch.zeros(2, 3, 8, 8)).shape == (2, 1)
    assert network.memory(own, (8, 8, 3), 100, 1, 1, 1) > 4 * 5 * weights
