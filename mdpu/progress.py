"""Progress of long work: a bar on a terminal, an occasional plain line in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import NoReturn

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 10.0


class Steps:
    """Counts steps towards a known total and shows the progress.

    Parameters
    ----------
    what : str
        What is being done.
    total : int
        Number of steps.
    unit : str
        Name of the steps, plural.
    """

    def __init__(self, what: str, total: int, unit: str) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done = 0
        self._started = self._last = time.monotonic()
        self._bar: tqdm[NoReturn] | None = None

    def __enter__(self) -> Steps:
        if sys.stderr.isatty():
            self._bar = tqdm(desc=self.what, total=self.total, unit=f" {self.unit}", leave=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, steps: int = 1) -> None:
        """Count `steps` as done."""
        self.done += steps
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(steps)
        elif now - self._last >= SECONDS_BETWEEN_LINES or self.done == self.total:
            self._last = now
            left = (now - self._started) / self.done * (self.total - self.done)
            print(f"{self.what}: {self.done}/{self.total} {self.unit}, about {left:.0f} s left", file=sys.stderr)
