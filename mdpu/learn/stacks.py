"""How tasks are cut into stacks, and how stacks take turns in threads."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Literal, TypeVar

import torch

from mdpu.learn.task import Task
from mdpu.learn.trainer import Stack, head_of, network_method

Key = TypeVar("Key")
Result = TypeVar("Result")


def make_stacks(
    tasks: Sequence[Task],
    stacks: bool,
    stack_by: Literal["shape", "stream"],
    fits: Callable[[Stack], bool] = lambda stack: True,
    at_least: int = 1,
) -> list[Stack]:
    """Cut tasks into stacks: as few rectangles as possible, or one per stream, but `at_least` so many.

    The tasks of a stack share everything that shapes its tensors or its training: head, outputs, whether labels are
    seen, the decay of the weights' running mean, and the law.

    Parameters
    ----------
    tasks : sequence of Task
    stacks : bool
        Whether the network can train several models at once; otherwise each task is its own stack.
    stack_by : {'shape', 'stream'}
        See `mdpu.learn.network.Policy`.
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
        shared = head_of(task), method.outputs, method.sees_labels, method.ema_decay, task.law
        streams.setdefault((shared, task.sample, task.seed), []).append(task)
    rectangles: dict[object, list[list[Task]]] = {}
    for key, stream in streams.items():
        rectangles.setdefault(key if stack_by == "stream" else (key[0], len(stream)), []).append(stream)
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


def side_by_side(
    jobs: Mapping[Key, Generator[int, None, Result]], workers: int = 0
) -> Generator[tuple[Key, int | Result], None, None]:
    """Advance jobs side by side, and yield what each one yields and finally returns, in order of arrival.

    While many jobs are left, the most advanced ones continue, so that only `workers` of them are in progress. Of the
    last jobs, fewer than twice as many, those continue that will take longest, so that all end together and no thread
    is idle: two workers do three equal jobs in the time of one and a half. How long a job will take follows from the
    seconds of its steps, as if all jobs had as many steps.

    Parameters
    ----------
    jobs : mapping from key to generator
        The steps of a generator run one after the other, each in whichever thread is free.
    workers : int
        Number of steps that run at once, each in its own thread, where torch computes with one thread. With 0, the
        calling thread does one job after the other, and torch computes with all threads.

    Yields
    ------
    key : Key
    outcome : int or Result
        What the job of this key yielded or returned.

    Raises
    ------
    BaseException
        Any exception of a job. The steps that are running at that time are completed; no further ones start.
    """
    if not workers:
        for key, job in jobs.items():
            ended = False
            while not ended:
                ended, outcome, _ = _step(job)
                yield key, outcome
        return

    threads = torch.get_num_threads()
    steps = dict.fromkeys(jobs, 0)  # of the jobs that have not ended
    seconds = dict.fromkeys(jobs, 0.0)  # that these steps took
    length = 0  # the most steps that a job had that has ended
    running: dict[Future[tuple[bool, int | Result, float]], Key] = {}

    def left(key: Key) -> float:
        done, most = steps[key], max(steps.values())
        all_steps = length if length > most else 2 * most  # of a job like none that has ended, half may be done
        return (all_steps - done) * seconds[key] / done if done else math.inf

    def fill(pool: ThreadPoolExecutor) -> None:
        while waiting := [key for key in steps if key not in running.values()]:
            if len(running) == workers:
                return
            chosen = max(waiting, key=left if len(steps) < 2 * workers else steps.__getitem__)
            running[pool.submit(_step, jobs[chosen])] = chosen

    try:
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            fill(pool)
            while running:
                outcomes = []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    key = running.pop(future)
                    ended, outcome, taken = future.result()
                    outcomes.append((key, outcome))
                    if ended:
                        length = max(length, steps.pop(key))
                    else:
                        steps[key] += 1
                        seconds[key] += taken
                fill(pool)
                yield from outcomes
    finally:
        torch.set_num_threads(threads)  # part of this setting belongs to the process, not to a thread


def _step(job: Generator[int, None, Result]) -> tuple[bool, int | Result, float]:
    """Advance a job; return whether it has ended, what it yielded or returned, and the seconds that this took."""
    started = time.perf_counter()
    try:
        ended, outcome = False, next(job)
    except StopIteration as end:
        ended, outcome = True, end.value
    return ended, outcome, time.perf_counter() - started
