"""The steps of a training: Adam, and the running mean of the weights that some methods use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.optim.adam import adam

from mdpu.settings import Settings


class Adam:
    """Adam, or AdamW where the settings decouple the weight decay, as
    ``torch.optim.Adam(fused=True)`` computes it.

    That class imports torch's compiler, which takes 1.9 s of every process; the function that it
    calls does not.

    Parameters
    ----------
    parameters : sequence of Tensor
    settings : Settings
    rates : sequence of float, optional
        Factors of the learning rate of the first parameters; that of the others is 1.
    """

    def __init__(
        self, parameters: Sequence[Tensor], settings: Settings, rates: Sequence[float] = ()
    ) -> None:
        self.parameters = list(parameters)
        self.settings = settings
        self.groups = dict[float, list[int]]()  # places of parameters by their factor
        for place in range(len(parameters)):
            rate = rates[place] if place < len(rates) else 1.0
            self.groups.setdefault(rate, []).append(place)
        self.means = [torch.zeros_like(parameter) for parameter in parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in parameters]
        self.steps = [torch.zeros((), device=parameter.device) for parameter in parameters]
        self.state = [*self.parameters, *self.means, *self.squares, *self.steps]

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """Change the parameters by their gradients, zero where there is none, at a rate times
        `factor`.
        """
        gradients = self._take_gradients()
        for rate, places in self.groups.items():
            adam(
                [self.parameters[place] for place in places],
                [gradients[place] for place in places],
                [self.means[place] for place in places],
                [self.squares[place] for place in places],
                [],
                [self.steps[place] for place in places],
                lr=self.settings.learning_rate * factor * rate,
                weight_decay=self.settings.weight_decay,
                decoupled_weight_decay=self.settings.optimizer == "adamw",
                beta1=0.9,
                beta2=0.999,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
                fused=True,
            )

    def _take_gradients(self) -> list[Tensor]:
        """Return the gradients, and leave none."""
        gradients = list[Tensor]()
        for parameter in self.parameters:
            if parameter.grad is None:
                gradients.append(torch.zeros_like(parameter))
            else:
                gradients.append(parameter.grad)
            parameter.grad = None
        return gradients


class RunningMean:
    """The running mean of weights and of running statistics over the steps, which some methods use
    as their model.

    At step t it keeps the share min(decay, (1 + t) / (10 + t)) of its past, so it soon forgets the
    first weights. With a decay of 0 there is no mean, at no cost.
    """

    def __init__(self, state: dict[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.values = list[Tensor]()
        if decay:
            self.values = [x.detach() for x in state.values() if x.is_floating_point()]
        self.means = [value.clone() for value in self.values]
        self.steps = torch.zeros((), dtype=torch.int64)
        self.state = [*self.means, self.steps]

    def update(self) -> None:
        """Include the weights of a step."""
        if not self.decay:
            return
        new = max(1 - self.decay, 9 / (10 + int(self.steps)))
        for mean, value in zip(self.means, self.values, strict=True):
            mean.lerp_(value, new)
        self.steps += 1

    def exchange(self) -> None:
        """Exchange the mean and the weights."""
        for mean, value in zip(self.means, self.values, strict=True):
            kept = value.clone()
            value.copy_(mean)
            mean.copy_(kept)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the mean as the weights within the block."""
        self.exchange()
        yield
        self.exchange()
