"""What the training of runs takes beside each other: an epoch of a stack costs less than those of its models."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mdpu.learn.method import FittedMethod
from mdpu.learn.methods import load_method
from mdpu.learn.networks import load_network
from mdpu.learn.stacks import make_stacks
from mdpu.learn.task import Settings, Task

# Of an epoch of the first model of a stack, what another model adds: the images of a minibatch are gathered and moved
# once. On MNIST and a CPU it is 0.37 on pairs and 0.39 on triples.
ANOTHER_MODEL = 0.38


class Effort:
    """The effort of a training, in epochs of a model that trains alone.

    It follows the stacks as they train, of which no one says which of them has moved: only how many models it has.

    Parameters
    ----------
    tasks : sequence of Task
    settings : Settings
    device : torch.device

    Attributes
    ----------
    total : float
        Of all epochs of all tasks.
    """

    def __init__(self, tasks: Sequence[Task], settings: Settings, device: torch.device) -> None:
        trained = [task for task in tasks if not isinstance(load_method(task.method), FittedMethod)]
        threads = torch.get_num_threads() if device.type == "cpu" else 1
        stacks = make_stacks(trained, load_network(settings.network).stacks, device, at_least=threads)
        sizes = [len(stack) * len(stack[0]) for stack in stacks]
        self._costs = {size: 1 + ANOTHER_MODEL * (size - 1) for size in sizes}
        of_epoch = sum(self._costs[size] for size in sizes) + len(tasks) - len(trained)
        self._mean = of_epoch / len(tasks) if tasks else 1.0
        self.total = of_epoch * settings.epochs

    def of(self, task_epochs: int) -> float:
        """Return the effort of so many task-epochs, done since training last said what is done.

        They are an epoch of a stack of as many models. If there is none, they are the epochs of a checkpoint, or all
        those of a method that trains no network; of these the mean effort counts.
        """
        return self._costs.get(task_epochs, task_epochs * self._mean)
