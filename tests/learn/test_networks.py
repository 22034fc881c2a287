"""Networks are found by being there, and each knows its own settings."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from blobs import CPU, make_tasks
from tracked import list_files

from mdpu.errors import UserError
from mdpu.learn import Settings, fit
from mdpu.learn.device import choose_policy
from mdpu.learn.methods import load_method
from mdpu.learn.networks import available_networks, load_network


def test_a_network_added_by_one_file_is_listed_and_trains(all_pixels, blobs, samples):
    tracked = {Path(name).stem.replace("_", "-") for name in list_files("mdpu/learn/networks")}
    listed = [name for name in available_networks() if name in {all_pixels, *tracked}]  # without one of a user's own
    assert listed == ["all-pixels", "components", "mlp", "mlp-norm", "resnet34"]
    assert load_network(all_pixels).known == ("bias",)
    tasks = make_tasks(methods=("supervised",), losses=("logistic",))
    settings = Settings(network=all_pixels, epochs=30, batch_size=60, learning_rate=0.01, precision="fp32")
    models = fit(tasks, blobs.images, samples, settings, labels=blobs.labels, evaluation=blobs.rates(), device=CPU)
    for model in models:
        scores = model.decision_function(blobs.test_images)
        layer = model.network.module[1]
        by_hand = blobs.test_images.reshape(120, -1) / 255 @ layer.weight.detach().numpy()[0] + layer.bias.item()
        np.testing.assert_allclose(scores, by_hand, rtol=1e-4, atol=1e-5)
        assert np.mean(model.predict(blobs.test_images) == blobs.test_labels) > 0.9
        assert model.history["true_positive_rate"].iloc[-1] > 0.8
    assert len({model.history["objective"].iloc[-1] for model in models}) == len(tasks)


def test_its_settings_are_its_own(all_pixels, blobs, samples):
    settings = Settings.parse({"network": all_pixels, "bias": False, "epochs": 1})
    assert settings.flat()["bias"] is False
    (model,) = fit(make_tasks()[:1], blobs.images, samples, settings, device=CPU)
    assert model.network.module[1].bias is None
    for values, sentence in (
        ({"bias": 1}, "bias is 1; true or false is needed"),
        ({"hidden": [3]}, "'hidden' is no setting; known are bias and those of training"),
    ):
        with pytest.raises(UserError, match=sentence):
            Settings.parse({"network": all_pixels, **values})
    known = ", ".join(available_networks())
    with pytest.raises(UserError, match=f"network 'all-pixls' is unknown; known are {known}"):
        Settings(network="all-pixls")


def test_it_starts_from_weights_that_its_seed_names(all_pixels):
    def weights(seed):
        preparation = load_network(all_pixels).prepare(np.ones((3, 4, 4), np.uint8))
        own = load_network(all_pixels).read({})
        return load_network(all_pixels).build([[seed]], own, preparation, 1, choose_policy(CPU, "fp32")).parameters[0]

    torch.manual_seed(0)
    first = weights(1)
    assert torch.equal(first, weights(1))
    assert not torch.equal(first, weights(2))
    assert torch.equal(weights("a"), weights("a"))


@pytest.mark.parametrize(("load", "what"), [(load_method, "METHOD"), (load_network, "NETWORK")])
def test_a_file_that_declares_nothing_is_named(load, what, tmp_path, monkeypatch):
    package = importlib.import_module(load.__module__)
    (tmp_path / "empty_file.py").write_text("")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{package.__name__}.empty_file", raising=False)
    with pytest.raises(UserError, match=f"{tmp_path / 'empty_file.py'} declares no {what}: a"):
        load("empty-file")


def test_an_unknown_method_is_refused_with_those_that_are_known(blobs, samples):
    with pytest.raises(UserError, match="method 'nope' is unknown; known are abs, abs-class, abs-part, bag-abs,"):
        fit([replace(make_tasks()[0], method="nope")], blobs.images, samples, Settings(epochs=1), device=CPU)
