"""How tasks are cut into stacks, and how many stacks train side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from mdpu.learn.task import Task
from mdpu.learn.trainer import Stack, network_method


def make_stacks(
    tasks: Sequence[Task],
    stacks: bool,
    device: torch.device,
    fits: Callable[[Stack], bool] = lambda stack: True,
    at_least: int = 1,
) -> list[Stack]:
    """Cut tasks into stacks: on a GPU as few rectangles as possible, on a CPU one per stream, but `at_least` so many.

    The tasks of a stack share everything that shapes its tensors or its training: head, outputs, whether labels are
    seen, and the memory of the weights' running mean.

    Parameters
    ----------
    tasks : sequence of Task
    stacks : bool
        Whether the network can train several models at once; otherwise each task is its own stack.
    device : torch.device
    fits : callable
        Whether a stack fits into memory; larger stacks are halved until they fit.
    at_least : int
        The least number of stacks, one for each thread, if there are that many tasks.
    """
    if not stacks:
        return [((task,),) for task in tasks]
    streams: dict[tuple[object, str, int | str], list[Task]] = {}
    for task in tasks:
        method = network_method(task)
        shared = method.head, method.outputs, method.sees_labels, method.memory
        streams.setdefault((shared, task.sample, task.seed), []).append(task)
    rectangles: dict[object, list[list[Task]]] = {}
    for key, stream in streams.items():
        rectangles.setdefault(key if device.type == "cpu" else (key[0], len(stream)), []).append(stream)
    uncut: list[Stack] = [tuple(zip(*group, strict=True)) for group in rectangles.values()]
    cut: list[Stack] = []
    while uncut:
        stack = uncut.pop(0)
        if fits(stack) or len(stack) == len(stack[0]) == 1:
            cut.append(stack)
        else:
            uncut = [*halves(stack), *uncut]

    def size(stack: Stack) -> int:
        return len(stack) * len(stack[0])

    while len(cut) < min(at_least, len(tasks)):
        largest = max(range(len(cut)), key=lambda place: size(cut[place]))
        cut[largest : largest + 1] = halves(cut[largest])
    return cut


def halves(stack: Stack) -> tuple[Stack, Stack]:
    """Cut a stack of more than one task in two, across its streams if it has several."""
    streams = len(stack[0])
    if streams > 1:
        return tuple(row[: streams // 2] for row in stack), tuple(row[streams // 2 :] for row in stack)
    return stack[: len(stack) // 2], stack[len(stack) // 2 :]


def workers_for(stacks: int, largest: int, memory: int | None) -> int:
    """Return how many stacks to train side by side on a CPU, each with one thread.

    This is the number of threads, limited by the number of stacks and by the memory, and at least one.

    Parameters
    ----------
    stacks : int
        Number of stacks.
    largest : int
        Bytes of the largest stack.
    memory : int or None
        Bytes that all may take together. With W workers, `side_by_side` has up to 2 W - 1 stacks in progress.
    """

    def fit(workers: int) -> bool:
        return memory is None or min(stacks, 2 * workers - 1) * largest <= memory

    possible = range(1, min(stacks, torch.get_num_threads()) + 1)
    return max((workers for workers in possible if fit(workers)), default=1)
