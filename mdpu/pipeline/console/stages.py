"""Which jobs of a workflow are done, stage by stage, and when the rest will be."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mdpu.pipeline.console.work import START_SECONDS, TrainingWork, makespan

STAGES = ("images", "splits", "tune", "train", "evaluate", "report")
TARGETS = frozenset(("all", "report", "tables", "figures", "evaluation", "datasets"))
COLLECT = "collect"
_STAGE_OF = {"labels": "splits", "sheet": "splits", "split": "splits", "tune": "tune", "train": "train"} | {
    "render_report": "report"
}
# Seconds of a job before one of its stage has been seen to end, on a machine that draws a split in the time given here
# and starts to train after `START_SECONDS`.
USUAL_SECONDS = {"images": 5.0, "splits": 1.5, "tune": 60.0, "evaluate": 4.0, "report": 4.0}


def stage_of(rule: str) -> str | None:
    """Return the stage of a rule, or None for one that only names targets."""
    if rule in TARGETS:
        return None
    return "images" if rule.startswith("dataset") else _STAGE_OF.get(rule, "evaluate")


@dataclass(frozen=True)
class Job:
    """A job at work.

    Attributes
    ----------
    rule : str
    cohort : str, optional
        What it trains.
    started : float
        By the tracker's clock, in seconds.
    """

    rule: str
    cohort: str | None
    started: float


@dataclass
class Stage:
    """A stage's jobs: how many there are, those at work by number, and the durations of those that have ended.

    ``began`` is when the first of those at work began, by the tracker's clock; it is None if there are none. ``worked``
    are the seconds before in which any worked.
    """

    name: str
    total: int = 0
    done: int = 0
    running: dict[int, Job] = field(default_factory=dict)
    durations: list[float] = field(default_factory=list)
    began: float | None = None
    worked: float = 0.0

    @property
    def waiting(self) -> int:
        """Jobs that have not started."""
        return max(0, self.total - self.done - len(self.running))

    @property
    def mean(self) -> float | None:
        """Seconds of a job that has ended, on average."""
        return sum(self.durations) / len(self.durations) if self.durations else None

    def seconds_left(self, now: float, slowness: float) -> tuple[list[float], list[float]]:
        """Return the seconds left of the jobs at work, and those of the others.

        They follow from the jobs that have ended. Before there are any, the usual seconds are multiplied by `slowness`.
        """
        each = self.mean or USUAL_SECONDS[self.name] * slowness
        return [max(0.0, each - (now - job.started)) for job in self.running.values()], [each] * self.waiting


class Tracker:
    """Follows the jobs of a workflow.

    Its methods may be called from several threads.

    Parameters
    ----------
    slots : int
        How many jobs work at a time.
    clock : callable
        Returns seconds.
    """

    def __init__(self, slots: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self.slots = slots
        self.training_slots = slots
        self.stages = {name: Stage(name) for name in STAGES}
        self.work: TrainingWork | None = None
        self.lock = threading.RLock()
        self._clock = clock
        self._cohorts: list[str] = []  # that have started, in this order
        self._collected = True  # unless a job is to collect the numbers, for which most of the evaluation waits

    def expect(self, jobs: Mapping[str, int]) -> None:
        """Take note of how many jobs of each rule will run."""
        with self.lock:
            self._collected = not jobs.get(COLLECT)
            totals = Counter[str]()
            for rule, number in jobs.items():
                if name := stage_of(rule):
                    totals[name] += number
            for name, stage in self.stages.items():
                stage.total = totals[name]

    def start(self, number: int, rule: str, cohort: str | None = None, slots: int | None = None) -> None:
        """Take note that a job starts; `slots` is how many like it fit side by side."""
        name = stage_of(rule)
        if name is None:
            return
        with self.lock:
            stage, now = self.stages[name], self._clock()
            if not stage.running:
                stage.began = now
            stage.running[number] = Job(rule, cohort, now)
            if cohort is not None and self.work is not None:
                self.training_slots = slots or self.slots
                self.work.forget(cohort)
                self._cohorts = [*(name for name in self._cohorts if name != cohort), cohort]

    def finish(self, number: int) -> None:
        """Take note that a job has ended well."""
        with self.lock:
            if ended := self._end(number):
                stage, job = ended
                stage.done += 1
                stage.durations.append(self._clock() - job.started)
                self._collected |= job.rule == COLLECT
                if job.cohort is not None and self.work is not None:
                    self.work.finish(job.cohort, self._clock() - job.started)

    def fail(self, number: int) -> None:
        """Take note that a job has failed; it may start again."""
        with self.lock:
            self._end(number)

    def _end(self, number: int) -> tuple[Stage, Job] | None:
        """Return a job that works no longer, with its stage; None if it was not at work."""
        for stage in self.stages.values():
            if job := stage.running.pop(number, None):
                if not stage.running and stage.began is not None:
                    stage.worked += self._clock() - stage.began
                    stage.began = None
                return stage, job
        return None

    def update(self) -> None:
        """Read how far the cohorts are that train now."""
        with self.lock:
            if self.work is not None:
                self.work.update(self._training)

    @property
    def _training(self) -> dict[str, float]:
        """The cohorts that train now, each with the seconds since its process began."""
        jobs, now = self.stages["train"].running.values(), self._clock()
        return {job.cohort: now - job.started for job in jobs if job.cohort is not None}

    @property
    def reused(self) -> int:
        """How many runs the cohorts that have started took from the store."""
        return self.work.reused(self._cohorts) if self.work else 0

    @property
    def trained(self) -> int:
        """How many runs the cohorts that have started train."""
        return self.work.trained(self._cohorts) if self.work else 0

    def training_share(self) -> float:
        """Return which share of the training is done, by the number of images shown to networks."""
        with self.lock:
            if self.work is None:
                return 0.0
            ahead = self.work.likely(self.stages["train"].waiting, self._cohorts)
            size = sum(map(self.work.size, [*self._cohorts, *ahead]))
            done = sum(self.work.size(name) * self.work.share(name) for name in self._cohorts)
            return done / size if size else 0.0

    def seconds_left(self) -> float | None:
        """Return the seconds until the report, or None before a rate is known."""
        with self.lock:
            now = self._clock()
            training = self._training_left(now)
            if training is None:
                return None
            before = [self._stage_left(self.stages[name], now) for name in ("images", "splits", "tune")]
            after = [self._stage_left(self.stages[name], now) for name in ("evaluate", "report")]
            return sum(before) + training + sum(after)

    @property
    def _slowness(self) -> float:
        """How many times as long as usual the jobs take that have been seen: splits, and what precedes training."""
        seen = []
        if splits := self.stages["splits"].mean:
            seen.append(splits / USUAL_SECONDS["splits"])
        if self.work is not None and (start := self.work.start_seconds):
            seen.append(math.sqrt(start / START_SECONDS))  # the other jobs read less, and so wait less
        return sum(seen) / len(seen) if seen else 1.0

    def _stage_left(self, stage: Stage, now: float) -> float:
        running, waiting = stage.seconds_left(now, self._slowness)
        if stage.name == "evaluate" and not self._collected and waiting:
            return waiting[0] + makespan(running, waiting[1:], self.slots)  # the collection goes alone
        return makespan(running, waiting, self.slots)

    def _training_left(self, now: float) -> float | None:
        stage = self.stages["train"]
        if stage.total == 0 or self.work is None:
            return 0.0
        running = [self.work.seconds_left(name, elapsed) for name, elapsed in self._training.items()]
        waiting = [self.work.seconds_left(name) for name in self.work.likely(stage.waiting, self._cohorts)]
        known = [seconds for seconds in [*running, *waiting] if seconds is not None]
        if len(known) < len(running) + len(waiting):
            return None
        return makespan(known[: len(running)], known[len(running) :], self.training_slots)


def words(seconds: float) -> str:
    """Return a duration in words: two figures are enough for an estimate.

    >>> words(8), words(75), words(4000), words(200000)
    ('8 s', '1 min 15 s', '1 h 7 min', '56 h')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 600 else f"{round(minutes / 60)} h"
