"""How much there is to train, how far it is, and how long the rest takes."""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import eq
from pathlib import Path
from statistics import fmean

from mdpu.pipeline.plan import Cohort, Plan, Run

FITTED = "no network"  # the rate of methods that train none
START_SECONDS = 5.0  # of a training process before it trains, imports and images, until one has been seen
OWN = 0.1  # share of a cohort's work that counts for its rate as others have it, until it has more of its own
RECENT_SECONDS = 120.0  # of training, over which the rate is measured: a machine does not stay as busy as it was


@dataclass(frozen=True)
class Progress:
    """How far a cohort's training is, as `mdpu.progress.Steps` records it.

    Attributes
    ----------
    runs, reused : int
        All runs of the cohort, and those that came from the store.
    done, total : int
        Epochs of runs.
    seconds : float
        Since training began.
    """

    runs: int
    reused: int
    done: int
    total: int
    seconds: float

    @property
    def share(self) -> float:
        """Share of the training that is done."""
        return self.done / self.total if self.total else 1.0


def read_progress(path: Path) -> Progress | None:
    """Return what a training process has recorded, or None if there is nothing."""
    try:
        return Progress(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


class TrainingWork:
    """The training of a plan: its size by cohort, what is done of it, and at which rate.

    Sizes are numbers of images that are shown to a network. The rate is measured while cohorts train: a cohort's own
    and, as long as it has little of one, that of the cohorts most like it. What a process takes before and after its
    training is measured too: on a busy machine it is longer than the training of a small cohort. A run that lies in the
    store counts as finished until cohorts begin and say that they do not reuse what lies there.

    Parameters
    ----------
    plan : Plan
    read : callable
        From a path to what is recorded there.
    """

    def __init__(self, plan: Plan, read: Callable[[Path], Progress | None] = read_progress) -> None:
        self._plan, self._read = plan, read
        self._recent: dict[str, deque[Progress]] = {}
        self._last: dict[str, Progress] = {}
        self._starts: dict[str, float] = {}  # seconds of a process before it trains
        self._ends: dict[str, float] = {}  # and after it has trained
        self._whole = {name: images_shown(plan, cohort.runs) for name, cohort in plan.cohorts.items()}
        self._missing = self._whole

    def forget(self, cohort: str) -> None:
        """Delete what an earlier training of a cohort recorded."""
        self._plan.layout.progress(cohort).unlink(missing_ok=True)

    def update(self, cohorts: Mapping[str, float]) -> None:
        """Read how far cohorts are that train now; each comes with the seconds since its process began."""
        for name, elapsed in cohorts.items():
            progress = self._read(self._plan.layout.progress(name))
            if progress is not None and progress != self._last.get(name):
                self._last[name] = progress
                recent = self._recent.setdefault(name, deque())
                recent.append(progress)
                while len(recent) > 2 and recent[1].seconds < progress.seconds - RECENT_SECONDS:
                    recent.popleft()
                # What is recorded is a little old, by an epoch at most; the least difference is the truest.
                self._starts[name] = min(self._starts.get(name, elapsed), elapsed - progress.seconds)

    def finish(self, name: str, elapsed: float) -> None:
        """Take note that the process of a cohort has ended, `elapsed` seconds after it began."""
        self.update({name: elapsed})
        if name in self._last:
            self._ends[name] = max(0.0, elapsed - self._starts[name] - self._last[name].seconds)

    def size(self, name: str) -> float:
        """Return the images that a cohort's training shows to networks, in all its epochs."""
        progress = self._last.get(name)
        if progress is None:
            return self._whole[name] - self._trust * (self._whole[name] - self._missing[name])
        return self._whole[name] * (progress.runs - progress.reused) / progress.runs

    @property
    def _trust(self) -> float:
        """Share of what the store holds that cohorts reused when they began; after an edit of the protocol it is 0."""
        stored = sum(self._whole[name] - self._missing[name] for name in self._last)
        reused = sum(self._whole[name] * last.reused / last.runs for name, last in self._last.items())
        return min(1.0, reused / stored) if stored else 1.0

    def share(self, name: str) -> float:
        """Return which share of a cohort's training is done."""
        return self._last[name].share if name in self._last else 0.0

    def reused(self, names: Iterable[str]) -> int:
        """Return how many runs of cohorts came from the store."""
        return sum(self._last[name].reused for name in names if name in self._last)

    def trained(self, names: Iterable[str]) -> int:
        """Return how many runs of cohorts were trained."""
        return sum(self._last[name].runs - self._last[name].reused for name in names if name in self._last)

    def likely(self, number: int, started: Iterable[str]) -> list[str]:
        """Return the `number` cohorts whose jobs probably come next: those with most to train that have not started.

        Snakemake's greedy scheduler starts the job with the largest input first, and a cohort's splits are its input.
        """
        rest = set(self._plan.cohorts) - set(started)
        return sorted(sorted(rest), key=self.size, reverse=True)[:number]

    @property
    def start_seconds(self) -> float | None:
        """Seconds of a process before it trains, on average; None before one has been seen."""
        return fmean(self._starts.values()) if self._starts else None

    def seconds_left(self, name: str, elapsed: float = 0.0) -> float | None:
        """Return the seconds that a cohort's process still takes, or None if its rate is unknown.

        Parameters
        ----------
        name : str
        elapsed : float
            Seconds since it began.
        """
        size, share = self.size(name), self.share(name)
        start = 0.0 if name in self._last else max(0.0, (self.start_seconds or START_SECONDS) - elapsed)
        aside = start + (fmean(self._ends.values()) if self._ends else 0.0)
        if size == 0 or share == 1:
            return aside
        cohort = self._plan.cohorts[name]
        rate = self._rate(name)
        if rate is None and kind_of(cohort) == FITTED:
            return aside  # it takes seconds
        return None if rate is None else aside + rate * size * (1 - share)

    def _alike(self, cohort: Cohort) -> Iterator[list[str]]:
        """Yield the cohorts of the same network whose progress has been seen, those that share most axes first."""
        shared: dict[int, list[str]] = {}
        for name in self._last:
            other = self._plan.cohorts[name]
            if kind_of(other) == kind_of(cohort):
                shared.setdefault(sum(map(eq, _axes(other), _axes(cohort))), []).append(name)
        for count in sorted(shared, reverse=True):
            yield shared[count]

    def _rate(self, name: str) -> float | None:
        """Return the seconds that a cohort needs for an image; None before there is anything to measure.

        The first epochs of a cohort say little, so the rate of those most like it counts as if it had been measured
        over the share `OWN` of the cohort itself.
        """
        alike = (self._measured(names) for names in self._alike(self._plan.cohorts[name]))
        seconds, images = self._measured([name])
        others = next(((time, shown) for time, shown in alike if shown > 0), None)
        if others is not None:
            weight = OWN * self.size(name)
            seconds, images = seconds + others[0] / others[1] * weight, images + weight
        return seconds / images if images > 0 else None

    def _measured(self, names: Iterable[str]) -> tuple[float, float]:
        """Return the seconds that cohorts trained of late, and the images that they showed in them."""
        seconds = images = 0.0
        for name in names:
            if name in self._last:
                first, last = self._recent[name][0], self._last[name]
                seconds += last.seconds - first.seconds
                images += self.size(name) * (last.share - first.share)
        return seconds, images


def _axes(cohort: Cohort) -> tuple[str, int]:
    """Return what a cohort's rate may depend on, beside its network: variant and tuple size."""
    return cohort.variant, cohort.runs[0].tuple_size


def kind_of(cohort: Cohort) -> str:
    """Return what a cohort's rate depends on: its network, if it trains one."""
    return cohort.network if cohort.needs_gpu else FITTED


def images_shown(plan: Plan, runs: Iterable[Run]) -> float:
    """Return how many images the training of runs shows to networks, in all epochs."""
    return float(sum(plan.images_of(run) * plan.epochs_of(run) for run in runs))


def makespan(running: Sequence[float], waiting: Sequence[float], slots: int) -> float:
    """Return the seconds until all jobs are done, if each waiting one starts as soon as a slot is free.

    Parameters
    ----------
    running : sequence of float
        Seconds left of the jobs at work.
    waiting : sequence of float
        Seconds of the others, in their order.
    slots : int
        How many work at a time.
    """
    free = list(running) + [0.0] * max(0, slots - len(running))
    heapq.heapify(free)
    for seconds in waiting:
        heapq.heappush(free, heapq.heappop(free) + seconds)
    return max(free, default=0.0)
