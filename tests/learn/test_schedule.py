"""Jobs side by side: every step once, in order, in whichever thread, and nothing left running."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpu.learn.stacks import side_by_side


class Log:
    """Steps that jobs took, and whether two threads were ever in one job."""

    def __init__(self):
        self.steps = []
        self.threads = set()
        self.inside = set()

    def job(self, key, length, seconds=0.0, fails_at=None):
        for step in range(length):
            assert key not in self.inside
            self.inside.add(key)
            self.threads.add(threading.get_ident())
            time.sleep(seconds)
            if step == fails_at:
                raise LookupError(key)
            self.steps.append((key, step))
            self.inside.remove(key)
            yield step
        return f"end of {key}"


@settings(deadline=None, max_examples=50)
@given(lengths=st.lists(st.integers(0, 6), max_size=7), workers=st.integers(1, 4))
def test_every_job_is_taken_to_its_end_in_order(lengths, workers):
    log = Log()
    outcomes = list(side_by_side({key: log.job(key, length) for key, length in enumerate(lengths)}, workers))
    for key, length in enumerate(lengths):
        assert [outcome for of, outcome in outcomes if of == key] == [*range(length), f"end of {key}"]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_comes_out_and_nothing_goes_on(workers, threads):
    threads(2)
    log = Log()
    jobs = {"good": log.job("good", 1000, 0.001), "bad": log.job("bad", 5, 0.001, fails_at=2)}
    if workers == 1:
        jobs = dict(reversed(jobs.items()))
    with pytest.raises(LookupError, match="bad"):
        list(side_by_side(jobs, workers))
    steps = len(log.steps)
    assert steps < 100
    time.sleep(0.02)
    assert len(log.steps) == steps
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_caller_that_stops_stops_the_jobs(workers, threads):
    threads(2)
    log = Log()
    with closing(side_by_side({key: log.job(key, 1000, 0.001) for key in "abc"}, workers)) as outcomes:
        next(outcomes)
    steps = len(log.steps)
    assert steps <= 2 * workers
    time.sleep(0.02)
    assert len(log.steps) == steps
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(("workers", "expected"), [(0, 4), (1, 1), (3, 1)])
def test_a_worker_computes_with_one_thread_and_the_calling_thread_with_all(threads, workers, expected):
    threads(4)
    found = {}

    def job(key):
        found[key] = torch.get_num_threads()
        yield 1

    list(side_by_side({key: job(key) for key in range(4)}, workers))
    assert set(found.values()) == {expected}
    assert torch.get_num_threads() == 4
