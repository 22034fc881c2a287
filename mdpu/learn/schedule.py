"""Generators that take turns in threads; any thread may take the next step of any of them."""

from __future__ import annotations

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

    While many jobs are left, the most advanced ones continue, so that only `workers` of them are in progress. The last
    jobs, fewer than twice as many, take turns, so that they end together and no thread is idle: two workers do three
    equal jobs in the time of one and a half.

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
                ended, outcome = _step(job)
                yield key, outcome
        return

    threads = torch.get_num_threads()
    steps = dict.fromkeys(jobs, 0)  # of the jobs that have not ended
    running: dict[Future[tuple[bool, int | Result]], Key] = {}

    def fill(pool: ThreadPoolExecutor) -> None:
        while waiting := [key for key in steps if key not in running.values()]:
            if len(running) == workers:
                return
            choose = min if len(steps) < 2 * workers else max
            chosen = choose(waiting, key=steps.__getitem__)
            running[pool.submit(_step, jobs[chosen])] = chosen

    try:
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            fill(pool)
            while running:
                outcomes = []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    key = running.pop(future)
                    ended, outcome = future.result()
                    outcomes.append((key, outcome))
                    if ended:
                        del steps[key]
                    else:
                        steps[key] += 1
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


def _step(job: Generator[int, None, Result]) -> tuple[bool, int | Result]:
    """Advance a job; return whether it has ended, and what it yielded or returned."""
    try:
        return False, next(job)
    except StopIteration as end:
        return True, end.value
