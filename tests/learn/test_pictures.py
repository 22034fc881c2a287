"""Networks that are modules on pictures, ResNet-34 among them, against the modules that they wrap."""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.learn import Settings, Task, evaluation, fit
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.device import choose_policy
from mdpu.learn.modules import module_architecture
from mdpu.learn.networks.resnet34 import NETWORK, Own, module
from mdpu.learn.pictures import ModuleNetwork, Pictures, module_builder, prepare
from mdpu.learn.trainer import Adam
from mdpu.randomness import Stream

CPU = torch.device("cpu")
POLICY = choose_policy(CPU, "fp32")
SETTINGS = Settings(epochs=1, batch_size=3, precision="fp32", network="resnet34")


def random_images(*shape: int) -> torch.Tensor:
    return torch.from_numpy(Stream(4, "images").integers(256, *shape).astype(np.uint8))


def resnet(seed: int, stem: str, channels: int, compiled: bool = False) -> ModuleNetwork:
    network = NETWORK.build([[seed]], Own(stem), Pictures((16, 16, channels), 255.0), 1, POLICY)
    return ModuleNetwork(network.module, 255.0, torch.float32, CPU, compiled=compiled)


@pytest.mark.parametrize(("stem", "channels"), [("cifar", 3), ("cifar", 1), ("imagenet", 1)])
def test_resnet_scores_and_gradients_are_of_the_module_it_wraps(stem, channels):
    network = resnet(1, stem, channels)
    images = random_images(1, 4, 16, 16, channels)
    found = network.forward(images)
    assert found.shape == (1, 1, 4)
    gradients = network.backward(torch.ones(1, 1, 4))
    network.module.train()
    scores = network.module(images[0].permute(0, 3, 1, 2).float() / 255)
    torch.testing.assert_close(found.flatten(), scores.detach().flatten(), rtol=1e-3, atol=1e-4)
    expected = torch.autograd.grad(scores.sum(), list(network.module.parameters()))
    for own, wanted in zip(gradients, expected, strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-2, atol=1e-3 * float(wanted.abs().max()) + 1e-6)


@pytest.mark.slow
def test_a_compiled_step_is_the_ordinary_one():
    """Compiled code may add in another order; the running statistics are updated once, as by the module itself."""
    pytest.importorskip("torch._inductor")
    if not shutil.which("g++"):
        pytest.skip("torch.compile needs a C++ compiler here")
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 1))
    images, passes = random_images(1, 4, 8, 8, 3), []
    for compiled in (False, True):
        network = ModuleNetwork(copy.deepcopy(module), 255.0, torch.float32, CPU, compiled=compiled)
        scores = network.forward(images)
        passes.append((scores, network.backward(torch.ones(1, 1, 4)), network.state()))
    (scores, gradients, state), (compiled_scores, compiled_gradients, compiled_state) = passes
    torch.testing.assert_close(compiled_scores, scores, rtol=1e-3, atol=1e-4)
    for own, wanted in zip(compiled_gradients, gradients, strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-2, atol=1e-3 * float(wanted.abs().max()) + 1e-6)
    for name, wanted in state.items():
        torch.testing.assert_close(compiled_state[name], wanted, rtol=1e-3, atol=1e-5)


def test_a_step_that_cannot_be_compiled_is_computed_as_it_is(monkeypatch, capsys):
    """Triton needs Python's headers, for example; a fault of the module itself is still the module's."""

    def compile(function, **options):
        def broken(images):
            raise ImportError("Python.h: No such file or directory\nand more")

        return broken

    monkeypatch.setattr(torch, "compile", compile)
    images = random_images(1, 4, 16, 16, 3)
    broken, expected = (resnet(1, "cifar", 3, compiled).forward(images) for compiled in (True, False))
    assert torch.equal(broken, expected)
    said = "torch.compile failed, so training is slower: Python.h: No such file or directory\n"
    assert capsys.readouterr().err == said


# -- modules of one's own ---------------------------------------------------------------------------


class Strided(nn.Module):
    """Weights whose gradients have other strides than they: of an einsum, a transposed one, a part, a kernel."""

    def __init__(self):
        super().__init__()
        self.mixed = nn.Parameter(torch.randn(8, 6) / 3)
        self.turned = nn.Parameter(torch.randn(6, 7).t() / 3)
        self.part = nn.Parameter(torch.randn(6, 10)[:, ::2] / 3)
        self.kernel = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, pictures):
        x = self.norm(self.kernel(pictures)).relu().mean(dim=(2, 3))  # (N, 8)
        x = torch.einsum("nk,kj->nj", x, self.mixed)
        return (x @ self.turned.t()).relu().sum(dim=1, keepdim=True) + (x @ self.part).sum(dim=1, keepdim=True)


def test_weights_of_any_strides_are_trained_as_by_torchs_adam():
    """Fused Adam pairs values by their place in memory, so that half of an einsum's weights went the wrong way."""
    torch.manual_seed(1)
    module = Strided()
    plain = copy.deepcopy(module).to(memory_format=torch.channels_last)
    network = ModuleNetwork(module, 255.0, torch.float32, CPU)
    adam, theirs = (
        Adam([(network.parameters, 0.01, 0.1)], False),
        torch.optim.Adam(plain.parameters(), 0.01, foreach=False, weight_decay=0.1),
    )
    for _ in range(5):
        images, gradient = random_images(1, 6, 5, 5, 3), torch.randn(1, 1, 6)
        network.forward(images)
        adam.step([network.backward(gradient)])
        theirs.zero_grad()
        plain(images[0].permute(0, 3, 1, 2).float().div(255)).squeeze(1).backward(gradient[0, 0])
        theirs.step()
    for own, expected in zip(network.parameters, plain.parameters(), strict=True):
        torch.testing.assert_close(own, expected.detach(), rtol=1e-4, atol=1e-5)


def dropping(shape):
    return nn.Sequential(nn.Flatten(), nn.Linear(27, 40), nn.ReLU(), nn.Dropout(0.5), nn.Linear(40, 1))


@pytest.mark.parametrize("count", [1, 2])
def test_networks_that_draw_are_their_own_whatever_trains_beside_them(count, threads):
    """Initial weights, and dropout at each step, come from generators that the process shares."""
    images = Stream(3, "tiny").integers(256, 60, 3, 3, 3).astype(np.uint8)
    sample = TupleData(np.arange(40).reshape(20, 2), np.arange(40, 60))
    settings = replace(SETTINGS, epochs=4, batch_size=6, network=module_architecture(dropping))
    tasks = [Task(method, 2, 0.5, seed=seed) for seed in (1, 2) for method in ("abs", "bag-relu")]
    threads(count)
    before = torch.get_rng_state()
    together = fit(tasks, images, sample, settings, device="cpu")
    assert torch.get_rng_state().equal(before)
    threads(1)
    for model, task in zip(together, tasks, strict=True):
        (alone,) = fit([task], images, sample, settings, device="cpu")
        assert model.history.equals(alone.history)
        assert np.array_equal(model.decision_function(images), alone.decision_function(images))
    assert not np.allclose(*(model.history["objective"] for model in together[::2]))


def test_a_network_that_draws_resumes_with_the_draws_of_its_step(tmp_path):
    images = Stream(3, "tiny").integers(256, 60, 3, 3, 3).astype(np.uint8)
    sample = TupleData(np.arange(40).reshape(20, 2), np.arange(40, 60))
    settings = replace(SETTINGS, epochs=4, batch_size=6, network=module_architecture(dropping))

    def stop(done):
        if (tmp_path / "a.pt").exists():
            raise KeyboardInterrupt

    def trained(**options):
        return fit([Task("abs", 2, 0.5)], images, sample, settings, device="cpu", **options)[0].history

    checkpoint = {"checkpoint_of": lambda stack: Checkpoint(tmp_path / "a.pt", "key", 0)}
    with pytest.raises(KeyboardInterrupt):
        trained(advance=stop, **checkpoint)
    assert trained(**checkpoint).equals(trained())


def test_a_mean_of_weights_has_a_mean_of_running_statistics():
    """Batch normalisation's buffers belong to the weights that they were counted for."""
    images = random_images(12, 8, 8, 3).numpy()
    sample = TupleData(np.arange(6).reshape(3, 2), np.arange(6, 12))
    last, mean = (
        fit(
            [Task(method, 2, 0.5, seed=1)],
            images,
            sample,
            replace(SETTINGS, epochs=2, network=module_architecture(lambda shape: Strided())),
            device="cpu",
        )[0]
        for method in ("bag-relu-last", "bag-relu")
    )
    one, other = (model.network.module.module.norm.running_mean for model in (last, mean))
    assert not torch.allclose(one, other)


# -- images ---------------------------------------------------------------------------------------


class Seen(nn.Module):
    """Keeps what it is given; its scores are the means over pixels and channels."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x):
        self.images = x.detach().clone()
        return self.weight * x.mean(dim=(1, 2, 3))[:, None]


@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 1), (5, 4, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_a_module_sees_pictures_between_0_and_1(shape, dtype):
    """As docs/explanation/protocol.md says; and floats as they are."""
    grey = random_images(6, *shape).numpy()
    grey[0], grey[1] = 0, 255
    images = grey if dtype == np.uint8 else grey / 255
    pictures = prepare(images)
    network = module_builder(lambda own, pictures, outputs: Seen())([[1]], None, pictures, 1, POLICY)
    scores = network.scores(pictures(images))
    seen = network.module.images
    channels = shape[2] if len(shape) == 3 else 1
    assert seen.shape == (6, channels, 5, 4)
    assert (seen.min(), seen.max()) == (0, 1)
    expected = np.moveaxis(grey.reshape(6, 5, 4, channels) / 255, -1, 1)
    np.testing.assert_allclose(seen, expected, rtol=1e-6)
    np.testing.assert_allclose(scores[0, 0], expected.mean(axis=(1, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(network.forward(pictures(images)[None])[0, 0], scores[0, 0], rtol=1e-6)


def test_vectors_are_no_pictures():
    with pytest.raises(UserError, match=r"rows of shape \(12,\) are no pictures; this network needs \(H, W\)"):
        prepare(np.zeros((3, 12), np.uint8))


# -- training -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "dtype"), [("abs", np.uint8), ("siamese", np.float32)])
def test_a_resnet_trains_an_epoch_on_tiny_images_and_predicts(method, dtype):
    labels = np.array([1, -1] * 6, dtype=np.int8)
    images = Stream(3, "tiny").integers(256, 12, 8, 8, 3).astype(np.uint8)
    images = images if dtype == np.uint8 else (images / 255).astype(dtype)
    sample = TupleData(np.array([[0, 1], [2, 3], [4, 2], [0, 5], [6, 7], [8, 8]]), np.arange(6, 12))
    rates = evaluation.TestRates(images, labels, images, labels)
    (model,) = fit([Task(method, 2, 0.5)], images, sample, SETTINGS, evaluation=rates, device="cpu")
    assert len(model.history) == 1
    assert model.history.notna().all(axis=None)
    if method == "abs":
        answers = model.predict(images)
        assert np.mean(answers[labels > 0] > 0) == pytest.approx(model.history["true_positive_rate"][0])
    else:
        assert model.outputs(images).shape == (12, 64)


def kept_for_backward(network, rows, side):
    """Return the bytes that autograd keeps of a forward pass, as torch counts them, the weights among them."""
    saved = {}

    def keep(tensor):
        saved[tensor] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(torch.zeros(rows, 3, side, side))
    return sum({storage.data_ptr(): storage.nbytes() for storage in saved.values()}.values())


@pytest.mark.parametrize(("stem", "side"), [("cifar", 32), ("imagenet", 64)])
def test_the_stated_memory_grows_with_the_minibatch_as_what_a_backward_pass_needs(stem, side):
    network = module(Own(stem), Pictures((side, side, 3), 255.0), 1)
    per_row = (kept_for_backward(network, 4, side) - kept_for_backward(network, 2, side)) / 2
    stated = [NETWORK.memory(Own(stem), (side, side, 3), rows, 1, 1, 1) for rows in (1000, 2000)]
    assert per_row <= (stated[1] - stated[0]) / 1000 <= 1.1 * per_row
    weights = sum(parameter.nbytes for parameter in network.parameters())
    # Beside the activations: weights, gradients, and Adam's two moments.
    assert 4 * weights <= 2 * stated[0] - stated[1] <= 6 * weights
