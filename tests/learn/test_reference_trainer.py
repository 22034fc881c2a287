"""The plain trainer itself, against numpy: the weights it starts from, what it minimises, the step it takes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from blobs import SETTINGS, SIDE, draw_sample

from mdpu.law import Law
from mdpu.learn.reference import plain_fit, plain_module
from mdpu.learn.task import Task
from mdpu.randomness import Stream

TASK = Task("ure", 2, 0.4, "squared", seed=3)
SIZES = [SIDE * SIDE, 20, 12, 1]


def drawn_weights(seed):
    """Return weight and bias per layer, uniform on +-1/sqrt(inputs) as `nn.Linear` draws them, (inputs, units)."""
    layers = []
    for layer, (inputs, units) in enumerate(itertools.pairwise(SIZES)):
        drawn = (2 * Stream(seed, "initial weights", layer).uniform(inputs + 1, units) - 1) / inputs**0.5
        layers.append((drawn[:-1], drawn[-1]))
    return layers


def score(layers, images):
    """Return the scores (N,) of a perceptron, and the inputs of each layer."""
    inputs = [images.reshape(len(images), -1) / 255]
    for weight, bias in layers:
        inputs.append(np.maximum(inputs[-1] @ weight + bias, 0))
    weight, bias = layers[-1]
    return (inputs[-2] @ weight + bias)[:, 0], inputs[:-1]


def gradients(layers, inputs, signal):
    """Return the gradients of weights and biases, given that of the scores (N,)."""
    signal, found = signal[:, None], []
    for (weight, _), below in zip(reversed(layers), reversed(inputs), strict=True):
        found.insert(0, (below.T @ signal, signal.sum(axis=0)))
        signal = (signal @ weight.T) * (below > 0)
    return found


def test_the_module_is_a_perceptron_on_grey_values_between_0_and_1(blobs):
    module = plain_module(TASK, SETTINGS, SIDE * SIDE)
    scores = module(torch.from_numpy(blobs.images).flatten(1) / 255)[:, 0]
    expected, _ = score(drawn_weights(TASK.seed), blobs.images)
    assert expected.std() > 1e-3
    np.testing.assert_allclose(scores.detach(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_two_epochs_of_one_minibatch_are_two_steps_of_adam_on_eq_11(optimizer, blobs):
    """With the squared loss of Table I; Adam's first step moves every weight by the rate, against its gradient."""
    settings = replace(SETTINGS, optimizer=optimizer, batch_size=100, epochs=2, weight_decay=0.1)
    sample = draw_sample(blobs.labels, 0.4, 1)
    _, history = plain_fit(TASK, blobs.images, sample, settings)

    weights, layers = Law.dominant(2).risk_weights(0.4), drawn_weights(TASK.seed)
    members = sample.tuples.ravel()
    rows = np.concatenate([members, sample.unlabeled])

    def risk_and_gradients():
        scores, inputs = score(layers, blobs.images[rows])
        risk, signal = 0.0, np.zeros(len(rows))
        tuple_rows, unlabeled_rows = slice(len(members)), slice(len(members), None)
        terms = ((tuple_rows, 1), (tuple_rows, -1), (unlabeled_rows, 1), (unlabeled_rows, -1))
        for weight, (part, sign) in zip(weights, terms, strict=True):
            margins = sign * scores[part]
            risk += weight * np.mean((margins - 1) ** 2 / 4)
            signal[part] += weight * sign * (margins - 1) / 2 / len(margins)
        return risk, gradients(layers, inputs, signal)

    risk, layer_gradients = risk_and_gradients()
    assert history["objective"][0] == pytest.approx(risk, rel=1e-5)
    rate, decay = settings.learning_rate, settings.weight_decay
    for pair, pair_gradients in zip(layers, layer_gradients, strict=True):
        for values, gradient in zip(pair, pair_gradients, strict=True):
            if optimizer == "adamw":
                values *= 1 - rate * decay
            else:
                gradient += decay * values
            values -= rate * gradient / (np.abs(gradient) + 1e-8)
    after, _ = risk_and_gradients()
    assert abs(after - risk) > 1e-3
    assert history["objective"][1] == pytest.approx(after, rel=1e-4)


def test_an_epoch_is_the_mean_over_its_minibatches_by_their_tuples(blobs):
    """At a rate of almost zero the terms of the tuples are those of all tuples at once, in ragged minibatches too."""
    sample = draw_sample(blobs.labels, 0.4, 1)
    still = replace(SETTINGS, learning_rate=1e-30, weight_decay=0.0, epochs=2)
    terms = ["risk_tuple_positive", "risk_tuple_negative"]
    _, ragged = plain_fit(TASK, blobs.images, sample, still)
    _, whole = plain_fit(TASK, blobs.images, sample, replace(still, batch_size=100))
    np.testing.assert_allclose(ragged[terms], whole[terms], rtol=1e-5)
    assert (ragged["objective"] - whole["objective"]).abs().max() > 1e-6  # unlabeled images weigh by their minibatch
