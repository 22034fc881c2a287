"""One thread for small matrices, also where several threads of a process ask for it at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import threadpoolctl
from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_blas: list[threadpool_limits] = []  # the limit of the process, once for each of those inside


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold the numerical libraries to one thread: on small matrices, waiting for others takes most
    of the time.

    OpenMP counts threads for each thread that asks, BLAS for the whole process. So whoever comes
    first limits BLAS, and whoever leaves last gives it back.
    """
    with _lock:
        _blas.append(_blas[0] if _blas else threadpool_limits(1, user_api="blas"))
    try:
        with threadpool_limits(1, user_api="openmp"):
            yield
    finally:
        with _lock:
            limit = _blas.pop()
            if not _blas:
                _let_go()
                limit.restore_original_limits()
                _let_go()


def _let_go() -> None:
    """Let a thread change OpenBLAS's limit that another one has set, which new versions of
    threadpoolctl refuse.
    """
    if clear := getattr(
        getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None
    ):
        clear(force=True)
