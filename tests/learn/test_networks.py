"""The networks against ordinary PyTorch modules with the same weights."""

from __future__ import annotations

import itertools
import shutil

import numpy as np
import pytest
import torch
from torch import nn

from mdpu.learn import networks
from mdpu.learn.networks import ResNet34, StackedMLP
from mdpu.randomness import Stream

CPU = torch.device("cpu")
INPUTS, ROWS = 20, 33
SEEDS = [[1, 2, 1], [1, 2, 3]]  # K = 2 runs on each of S = 3 streams


def random_images(*shape: int) -> torch.Tensor:
    return torch.from_numpy(Stream(4, "images").integers(256, *shape).astype(np.uint8))


def ordinary_mlp(network: StackedMLP, k: int, s: int, hidden: list[int]) -> nn.Sequential:
    """Return `nn.Sequential` with the weights of one run of the stack; its inputs are grey values in [0, 1]."""
    sizes = [INPUTS, *hidden, 1]
    layers = [layer for pair in itertools.pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())][:-1]
    module = nn.Sequential(*layers)
    with torch.no_grad():
        for own, given in zip(module.parameters(), network.linear(network.parameters, k, s), strict=True):
            own.copy_(given)
    return module


@pytest.fixture(params=[[], [16], [30, 10], [64, 70, 5]], ids=str)
def hidden(request):
    return request.param


@pytest.fixture
def network(hidden):
    return StackedMLP(SEEDS, INPUTS, hidden, torch.float32, CPU)


def test_forward_is_that_of_an_ordinary_mlp(network, hidden):
    images = random_images(3, ROWS, INPUTS)
    found = network.forward(images)
    assert found.shape == (2, 3, ROWS)
    for k, s in itertools.product(range(2), range(3)):
        expected = ordinary_mlp(network, k, s, hidden)(images[s] / 255).squeeze(1)
        torch.testing.assert_close(found[k, s], expected.detach(), rtol=1e-4, atol=1e-5)


def test_backward_is_autograd_through_an_ordinary_mlp(network, hidden):
    images = random_images(3, ROWS, INPUTS)
    gradient = torch.from_numpy(Stream(5, "gradient").uniform(2, 3, ROWS) - 0.5).float()
    network.forward(images)
    found = network.backward(gradient)
    assert [g.shape for g in found] == [p.shape for p in network.parameters]
    for k, s in itertools.product(range(2), range(3)):
        module = ordinary_mlp(network, k, s, hidden)
        module(images[s] / 255).squeeze(1).backward(gradient[k, s])
        for own, expected in zip(network.linear(found, k, s), module.parameters(), strict=True):
            torch.testing.assert_close(own, expected.grad, rtol=1e-3, atol=1e-5)


def test_scores_of_shared_test_images_are_those_of_forward(network):
    images = random_images(ROWS, INPUTS)
    torch.testing.assert_close(network.scores(images), network.forward(images.expand(3, -1, -1)), rtol=1e-4, atol=1e-5)


def test_scoring_keeps_what_backward_needs(network):
    """An epoch ends with scores; a backward pass after it must still be of the last forward pass."""
    images, gradient = random_images(3, ROWS, INPUTS), torch.ones(2, 3, ROWS)
    network.forward(images)
    expected = [g.clone() for g in network.backward(gradient)]
    network.forward(images)
    network.scores(random_images(7, INPUTS))
    for found, wanted in zip(network.backward(gradient), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_a_run_without_gradient_at_its_scores_has_none_anywhere(network):
    images = random_images(3, ROWS, INPUTS)
    gradient = torch.ones(2, 3, ROWS)
    network.forward(images)
    expected = [g.clone() for g in network.backward(gradient)]
    gradient[0, 1] = 0
    network.forward(images)
    for found, wanted in zip(network.backward(gradient), expected, strict=True):
        wanted[0, 1] = 0
        assert torch.equal(found, wanted)


def test_runs_that_are_equal_are_computed_once(network, monkeypatch):
    """Runs of one trial share their products while weights and gradients are equal, to the same last bit."""
    images, gradient = random_images(3, ROWS, INPUTS), torch.ones(2, 3, ROWS)
    products = []
    monkeypatch.setattr(torch, "mm", lambda *of, mm=torch.mm, **out: products.append(1) or mm(*of, **out))

    def passes():
        products.clear()
        scores = network.forward(images)
        return [scores, *network.backward(gradient), network.scores(images[0])], len(products)

    shared, count = passes()
    # Streams 0 and 1 have one trial in both rows, stream 2 has two.
    assert networks._origins(network.parameters) == [[0, 0, 0], [0, 0, 1]]
    monkeypatch.setattr(networks, "_origins", lambda parameters: None)
    alone, count_alone = passes()
    assert count == count_alone * 4 / 6
    assert all(map(torch.equal, shared, alone))


def test_equal_runs_part_where_their_gradients_do(network):
    gradient = torch.ones(2, 3, ROWS)
    gradient[1, 1, 0] = 2
    gradient[:, 2] = 0
    origins = networks._origins(network.parameters)
    assert networks._origins_of_gradients(gradient, origins) == [[0, 0, None], [0, 1, None]]


def test_padding_is_zero_and_has_zero_gradient(network):
    network.forward(random_images(3, ROWS, INPUTS))
    for stack in (network.parameters, network.backward(torch.ones(2, 3, ROWS))):
        inside = sum(value.abs().sum() for k in range(2) for s in range(3) for value in network.linear(stack, k, s))
        torch.testing.assert_close(sum(value.abs().sum() for value in stack), inside)


def test_runs_of_one_trial_start_alike_and_of_two_trials_apart(network):
    first = network.linear(network.parameters, 0, 0)
    for k, s in itertools.product(range(2), range(3)):
        same = all(map(torch.equal, first, network.linear(network.parameters, k, s)))
        assert same == (SEEDS[k][s] == 1)


def test_initial_weights_are_drawn_as_linear_layers_draw_them():
    """Uniform on +-1/sqrt(inputs), the law of `nn.Linear`: bounds, and the deviation within five standard errors."""
    network = StackedMLP([[1]], 400, [300], torch.float32, CPU)
    weight = network.parameters[0][0, 0, :400, :300]
    bound = 1 / 400**0.5
    assert bound * 0.999 < weight.abs().max() <= bound
    # The variance of the square of a uniform number on +-b is 4 b^4 / 45.
    error = (4 / 45 / weight.numel()) ** 0.5
    assert abs(weight.square().mean() / bound**2 - 1 / 3) < 5 * error


def test_bf16_products_change_scores_by_a_few_thousandths():
    """The bound is ten times the rounding unit 2**-8 of bf16, relative to the spread of the scores."""
    images = random_images(3, ROWS, INPUTS)
    exact = StackedMLP(SEEDS, INPUTS, [30, 10], torch.float32, CPU).forward(images)
    rounded = StackedMLP(SEEDS, INPUTS, [30, 10], torch.bfloat16, CPU).forward(images)
    assert rounded.dtype == torch.float32
    assert (rounded - exact).abs().max() < 10 * 2**-8 * exact.abs().max()


@pytest.mark.parametrize(("stem", "channels"), [("cifar", 3), ("cifar", 1), ("imagenet", 1)])
def test_resnet_scores_and_gradients_are_of_the_module_it_wraps(stem, channels):
    network = ResNet34(1, stem, channels, torch.float32, CPU)
    images = random_images(1, 4, 16, 16, channels)
    found = network.forward(images)
    assert found.shape == (1, 1, 4)
    gradients = network.backward(torch.ones(1, 1, 4))
    network.module.train()
    scores = network.module(images[0].permute(0, 3, 1, 2).float() / 127.5 - 1)
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
    images = random_images(1, 4, 8, 8, 3)
    passes = []
    for compiled in (False, True):
        network = ResNet34(1, "cifar", 3, torch.float32, CPU, compiled=compiled)
        scores = network.forward(images)
        passes.append((scores, network.backward(torch.ones(1, 1, 4)), network.state()))
    (scores, gradients, state), (compiled_scores, compiled_gradients, compiled_state) = passes
    torch.testing.assert_close(compiled_scores, scores, rtol=1e-3, atol=1e-4)
    for own, wanted in zip(compiled_gradients, gradients, strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-2, atol=1e-3 * float(wanted.abs().max()) + 1e-6)
    for name, wanted in state.items():
        torch.testing.assert_close(compiled_state[name], wanted, rtol=1e-3, atol=1e-5)


def test_resnets_of_one_trial_start_alike_whatever_the_global_seed():
    torch.manual_seed(0)
    first = ResNet34(3, "cifar", 3, torch.float32, CPU)
    torch.manual_seed(1)
    second, third = (ResNet34(seed, "cifar", 3, torch.float32, CPU) for seed in (3, 4))
    assert all(map(torch.equal, first.parameters, second.parameters))
    assert not all(map(torch.equal, first.parameters, third.parameters))
