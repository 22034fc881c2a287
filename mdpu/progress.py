"""Progress of long work: a bar on a terminal, an occasional plain line in a log, a small file for who watches."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_RECORDS = 1.0


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
    record : Path, optional
        JSON file to keep up to date, once a second at most, with ``done``, ``total`` and ``seconds`` since the start.
    **facts
        What else is recorded.
    """

    def __init__(self, what: str, total: int, unit: str, record: Path | None = None, **facts: object) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.record, self.facts = record, facts
        self.done = 0
        self._recorded = 0.0
        self._started = self._last = time.monotonic()
        self._bar: tqdm[NoReturn] | None = None

    def __enter__(self) -> Steps:
        if sys.stderr.isatty():
            self._bar = tqdm(desc=self.what, total=self.total, unit=f" {self.unit}", leave=False)
        self._write_record()
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
        if now - self._recorded >= SECONDS_BETWEEN_RECORDS or self.done == self.total:
            self._write_record()
        if self._bar is not None:
            self._bar.update(steps)
        elif now - self._last >= SECONDS_BETWEEN_LINES or self.done == self.total:
            self._last = now
            left = (now - self._started) / self.done * (self.total - self.done)
            print(f"{self.what}: {self.done}/{self.total} {self.unit}, about {left:.0f} s left", file=sys.stderr)

    def _write_record(self) -> None:
        """Bring the record up to date; work goes on if that fails."""
        if self.record is None:
            return
        self._recorded = time.monotonic()
        facts = {"done": self.done, "total": self.total, "seconds": round(self._recorded - self._started, 3)}
        temporary = self.record.with_suffix(".new")
        with contextlib.suppress(OSError):
            self.record.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps({**facts, **self.facts}), encoding="utf-8")
            temporary.replace(self.record)
