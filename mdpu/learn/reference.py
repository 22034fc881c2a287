"""The plain trainer: one task, an ordinary module, autograd, torch's Adam. It is short and obvious, and slow.

A test compares the fast trainer (`mdpu.learn.trainer`) with this one. Initial weights, minibatches and objective are
the same, so the histories are equal up to rounding.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import nn

from mdpu.data import TupleData
from mdpu.learn.network import Policy
from mdpu.learn.networks.mlp import StackedMLP
from mdpu.learn.task import Settings, Task, rate_factor, tuples_per_batch
from mdpu.learn.trainer import RunningMean, count_members, cut_batch, head_of, make_history, minibatches, network_method


def plain_module(task: Task, settings: Settings, inputs: int) -> nn.Sequential:
    """Return the perceptron of a task as `torch.nn` layers, with its initial weights."""
    hidden = settings.architecture.get("hidden", (300, 300))
    outputs = network_method(task).outputs
    sizes = [inputs, *hidden, outputs]
    layers = [layer for pair in itertools.pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())][:-1]
    module = nn.Sequential(*layers)
    policy = Policy(torch.device("cpu"), torch.float32)
    stack = StackedMLP([[task.seed]], inputs, hidden, policy, outputs=outputs)
    with torch.no_grad():
        for own, initial in zip(module.parameters(), stack.linear(stack.parameters, 0, 0), strict=True):
            own.copy_(initial)
    return module


def plain_fit(
    task: Task, images: NDArray[Any], sample: TupleData, settings: Settings, labels: NDArray[np.int8] | None = None
) -> tuple[nn.Sequential, pd.DataFrame]:
    """Train a perceptron on one task in float32.

    Parameters
    ----------
    task, images, sample, settings, labels
        As for `mdpu.learn.fitting.fit`.

    Returns
    -------
    module : nn.Sequential
        From images (N, d), grey values scaled to [0, 1], to outputs (N, outputs).
    history : DataFrame
        ``epoch``, ``objective`` and the measures of the head.
    """
    scale = 255 if images.dtype == np.uint8 else 1
    x = torch.from_numpy(images).flatten(1).float() / scale  # (N, d)
    y = torch.from_numpy(labels) if labels is not None else None
    module = plain_module(task, settings, x.shape[1])
    head = head_of(task)([task], x.device)
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    rate, decay = task.rates(settings)
    optimizer = kind([*module.parameters(), *head.parameters], lr=rate, weight_decay=decay)
    tuples, unlabeled = torch.from_numpy(sample.tuples)[None], torch.from_numpy(sample.unlabeled)[None]
    batch = tuples_per_batch(settings, task.tuple_size)
    mean = RunningMean(list(module.parameters()), network_method(task).ema_decay)
    history = np.zeros((settings.epochs, 1 + len(head.measures)))
    steps = math.ceil(len(sample.tuples) / batch)
    for epoch in range(settings.epochs):
        for step, (members, others) in enumerate(minibatches([task.seed], tuples, unlabeled, batch, epoch)):
            sizes = count_members(members, task.tuple_size) if sample.is_ragged else None
            rows = torch.cat([members.clamp(min=0), others], dim=1)  # (1, rows)
            outputs = module(x[rows])  # (1, rows, outputs)
            outputs = outputs.squeeze(2) if outputs.shape[2] == 1 else outputs
            seen = y[rows] if y is not None and network_method(task).sees_labels else None
            objective, extra = head.objective(cut_batch(outputs, seen, members.shape[1], task.tuple_size, sizes))
            optimizer.zero_grad()
            objective.sum().backward()
            factor = rate_factor(settings, epoch * steps + step, settings.epochs * steps)
            optimizer.param_groups[0]["lr"] = rate * factor
            optimizer.step()
            with torch.no_grad():
                mean.update()
            share = members.numel() / sample.tuples.size
            history[epoch, 0] += share * objective.item()
            history[epoch, 1:] += share * np.array([] if extra is None else extra[0].tolist())
    with torch.no_grad():
        mean.exchange()
    return module, make_history(("objective", *head.measures), history)
