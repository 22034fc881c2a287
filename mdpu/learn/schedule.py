"""Generators that take turns in threads; any thread may take the next step of any of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import torch

Key = TypeVar("Key")
Result = TypeVar("Result")


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


def complete(job: Generator[int, None, Result], advance: Callable[[int], None] = lambda yielded: None) -> Result:
    """Run one job to its end: call `advance` with what it yields, and return what it returns."""
    while True:
        try:
            advance(next(job))
        except StopIteration as end:
            return end.value


def _step(job: Generator[int, None, Result]) -> tuple[bool, int | Result, float]:
    """Advance a job; return whether it has ended, what it yielded or returned, and the seconds that this took."""
    started = time.perf_counter()
    try:
        ended, outcome = False, next(job)
    except StopIteration as end:
        ended, outcome = True, end.value
    return ended, outcome, time.perf_counter() - started
