"""What a dry run found: how many jobs of each rule would run, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mdpu.pipeline.console.reasons import last_lines, reason_of
from mdpu.pipeline.console.stages import STAGES, stage_of

MOST_FAILED = 20  # jobs of which the end of the log is shown
LINES_OF_LOG = 3


class DryRun:
    """Collects the jobs that would run."""

    def __init__(self) -> None:
        self._jobs: Counter[tuple[str, str]] = Counter()  # by rule and reason
        self._missing: list[tuple[str, Path]] = []  # rule and log of jobs that have left no output

    def add(self, rule: str, reason: str, logs: Sequence[str]) -> None:
        """Take note of a job."""
        if stage_of(rule) is None:
            return
        self._jobs[rule, reason_of(reason)] += 1
        if reason.startswith("Missing output files"):
            self._missing += [(rule, Path(log)) for log in logs]

    def lines(self) -> list[str]:
        """Return a line for each rule and reason, in the order of the work."""
        if not self._jobs:
            return ["nothing to do: everything is done and up to date"]
        width = max(len(rule) for rule, _ in self._jobs)
        jobs = sorted(self._jobs.items(), key=lambda item: STAGES.index(stage_of(item[0][0]) or STAGES[0]))
        lines = [f"{rule.ljust(width)}  {number:>5}  {reason}" for (rule, reason), number in jobs]
        return [*lines, f"{sum(self._jobs.values())} jobs would run"]

    def failed(self) -> list[str]:
        """Return the jobs that started and left nothing, each with the last lines of its log."""
        started = [(rule, log) for rule, log in self._missing if log.exists()]
        lines = []
        for rule, log in started[:MOST_FAILED]:
            lines += [f"{rule} did not end ({log}):", *(f"    {line}" for line in last_lines(log, LINES_OF_LOG))]
        if len(started) > MOST_FAILED:
            lines.append(f"and {len(started) - MOST_FAILED} more")
        return lines

    def show(self, failed: bool) -> None:
        """Print the lines; with `failed`, also those of jobs that did not end."""
        print("\n".join([*self.lines(), *(self.failed() if failed else [])]), flush=True)
