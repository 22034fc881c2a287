"""How tasks are cut into stacks, and how many stacks train side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from mdpu.learn.head import Head
from mdpu.learn.task import Task
from mdpu.learn.trainer import Stack, network_method


def make_stacks(
    tasks: Sequence[Task],
    stacks: bool,
    device: torch.device,
    fits: Callable[[Stack], bool] = lambda stack: True,
) -> list[Stack]:
    """Cut tasks into stacks: on a GPU as few as are rectangular, on a CPU one per stream.

    The tasks of a stack share all that shapes its tensors or its minibatches: head, outputs, whether labels are seen.

    Parameters
    ----------
    tasks : sequence of Task
    stacks : bool
        Whether the network trains several models at once; else each task is a stack of its own.
    device : torch.device
    fits : callable
        Whether a stack fits into memory; those that do not are halved until they do.
    """
    if not stacks:
        return [((task,),) for task in tasks]
    streams: dict[tuple[Callable[..., Head], int, bool, str, int | str], list[Task]] = {}
    for task in tasks:
        method = network_method(task)
        streams.setdefault((method.head, method.outputs, method.sees_labels, task.sample, task.seed), []).append(task)
    rectangles: dict[object, list[list[Task]]] = {}
    for key, stream in streams.items():
        rectangles.setdefault(key if device.type == "cpu" else (key[:3], len(stream)), []).append(stream)
    uncut: list[Stack] = [tuple(zip(*group, strict=True)) for group in rectangles.values()]
    cut: list[Stack] = []
    while uncut:
        stack = uncut.pop(0)
        if fits(stack) or len(stack) == len(stack[0]) == 1:
            cut.append(stack)
        else:
            uncut = [*halves(stack), *uncut]
    return cut


def halves(stack: Stack) -> tuple[Stack, Stack]:
    """Cut a stack of more than one task in two, across its streams if it has several."""
    streams = len(stack[0])
    if streams > 1:
        return tuple(row[: streams // 2] for row in stack), tuple(row[streams // 2 :] for row in stack)
    return stack[: len(stack) // 2], stack[len(stack) // 2 :]


def workers_for(stacks: int, largest: int, memory: int | None) -> int:
    """Return how many stacks to train side by side on a CPU.

    As many as there are threads, since products of one thread lose nothing to waiting for another: a divisor of the
    threads, so that all of them work, and no more than there are stacks or than fit into memory.

    Parameters
    ----------
    stacks : int
        How many there are.
    largest : int
        Bytes of the largest.
    memory : int or None
        Bytes that all of them may take. `side_by_side` has up to 2 W - 1 of W workers under way.
    """
    threads = torch.get_num_threads()

    def possible(workers: int) -> bool:
        fit = memory is None or (min(stacks, 2 * workers - 1)) * largest <= memory
        return threads % workers == 0 and workers <= stacks and fit

    return max((workers for workers in range(2, threads + 1) if possible(workers)), default=1)
