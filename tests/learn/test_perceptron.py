"""The stacked perceptron against ordinary PyTorch modules with the same weights, and its images and memory."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from mdpu.learn.device import choose_policy
from mdpu.learn.network import Policy
from mdpu.learn.networks import mlp as perceptron
from mdpu.learn.networks.mlp import NETWORK, Own, StackedMLP
from mdpu.randomness import Stream

CPU = torch.device("cpu")
PLAIN = Policy(CPU, torch.float32)
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
    return StackedMLP(SEEDS, INPUTS, hidden, PLAIN)


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
    assert perceptron._origins(network.parameters) == [[0, 0, 0], [0, 0, 1]]
    monkeypatch.setattr(perceptron, "_origins", lambda parameters: [[0] * 3, [1] * 3])
    alone, count_alone = passes()
    assert count == count_alone * 4 / 6
    assert all(map(torch.equal, shared, alone))


def test_batched_products_are_those_of_each_model(network, hidden):
    """As on a GPU: one operation for all models of a stream."""
    batched = StackedMLP(SEEDS, INPUTS, hidden, replace(PLAIN, batched_products=True))
    images, gradient = random_images(3, ROWS, INPUTS), torch.ones(2, 3, ROWS)
    gradient[0, 1] = 0
    for one, other in (
        ([network.forward(images)], [batched.forward(images)]),
        (network.backward(gradient), batched.backward(gradient)),
        ([network.scores(images[0])], [batched.scores(images[0])]),
    ):
        for value, expected in zip(one, other, strict=True):
            torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)


def test_initial_weights_are_drawn_as_linear_layers_draw_them():
    """Uniform on +-1/sqrt(inputs), the law of `nn.Linear`: bounds, and the deviation within five standard errors."""
    network = StackedMLP([[1]], 400, [300], PLAIN)
    weight = network.parameters[0][0, 0, :400, :300]
    bound = 1 / 400**0.5
    assert bound * 0.999 < weight.abs().max() <= bound
    # The variance of the square of a uniform number on +-b is 4 b^4 / 45.
    error = (4 / 45 / weight.numel()) ** 0.5
    assert abs(weight.square().mean() / bound**2 - 1 / 3) < 5 * error


def test_a_model_taken_out_of_the_stack_is_that_model_with_memory_of_its_own(network):
    images = random_images(ROWS, INPUTS)
    together = network.scores(images).clone()
    for k, s in itertools.product(range(2), range(3)):
        taken = network.take(k, s)
        torch.testing.assert_close(taken.scores(images)[0, 0], together[k, s], rtol=1e-4, atol=1e-5)
        for parameter in taken.parameters:
            parameter.zero_()
    assert torch.equal(network.scores(images), together)


# -- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_pixels_that_are_0_in_every_training_image_are_left_out(dtype):
    """The scores are those of a network on all pixels, whose weights at the others meet zeros."""
    images = random_images(ROWS, 4, 5).numpy().astype(dtype)
    images[:, 1:3, 2] = 0
    vectors = NETWORK.prepare(images)
    rows = vectors(images)
    assert rows.shape == (ROWS, INPUTS - 2)
    assert rows.dtype == (torch.uint8 if dtype == np.uint8 else torch.float32)
    network = NETWORK.build([[1]], Own((30,)), vectors, 1, choose_policy(CPU, "fp32"))
    whole = StackedMLP([[1]], INPUTS, [30], PLAIN, unit=vectors.unit)
    flat = torch.from_numpy(images).flatten(1)
    torch.testing.assert_close(network.scores(rows), whole.scores(flat), rtol=1e-4, atol=1e-4)


# -- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("K", "S", "outputs"), [(1, 1, 1), (3, 2, 1), (2, 1, 64)])
def test_the_stated_memory_holds_what_training_keeps(K, S, outputs):
    """Weights, gradients, Adam's moments and activations, as torch counts their bytes."""
    side, rows, own = 12, 500, Own((60, 40))
    seeds = [list(range(S)) for _ in range(K)]
    vectors = NETWORK.prepare(np.ones((2, side, side), np.uint8))
    network = NETWORK.build(seeds, own, vectors, outputs, choose_policy(CPU, "fp32"))
    scores = network.forward(random_images(S, rows, side * side))
    gradients = network.backward(torch.ones_like(scores))
    network.scores(random_images(rows, side * side))
    weights = sum(parameter.nbytes for parameter in network.parameters)
    kept = 3 * weights + sum(gradient.nbytes for gradient in gradients)
    kept += sum(tensor.nbytes for tensor in network._memory.values())
    stated = NETWORK.memory(own, (side, side), rows, outputs, K, S)
    assert kept <= stated
