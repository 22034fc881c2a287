"""What `./run` shows while Snakemake works: how far each stage is, errors in a sentence, and what a dry run found."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from mdpu.pipeline.failed import reason_in
from mdpu.pipeline.report.training import duration

STAGES = ("images", "splits", "tune", "train", "evaluate", "report")
TARGETS = frozenset(("all", "report", "tables", "figures", "evaluation", "datasets"))
STAGE_OF = {"labels": "splits", "sheet": "splits", "split": "splits", "tune": "tune", "train": "train"} | {
    "render_report": "report"
}
SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_BETWEEN_LINES = 60.0  # of a stage that is at work, where there is no terminal
ALMOST = 0.99  # done is a job that has recorded all its steps, and goes on to write what came out
MOST_NAMES = 3  # that a reason lists
MOST_FAILED = 20  # jobs of which a dry run says how they ended


def stage_of(rule: str) -> str | None:
    """Return the stage of a rule, or None for one that only names targets."""
    if rule in TARGETS:
        return None
    return "images" if rule.startswith("dataset") else STAGE_OF.get(rule, "evaluate")


@dataclass
class Stage:
    """A stage's jobs, and how long any of them has been at work."""

    name: str
    task: TaskID  # its live line
    total: int  # jobs
    done: int = 0
    running: dict[int, Path | None] = field(default_factory=dict)  # where jobs record their progress, by number
    facts: dict[Path, Mapping[str, float]] = field(default_factory=dict)  # what was last recorded there
    worked: float = 0.0  # seconds; a stage may wait for another one in between
    said: float | None = None  # when the last plain line was printed, or the first job started

    def look(self) -> None:
        """Read how far the jobs at work are."""
        for place in filter(None, self.running.values()):
            with contextlib.suppress(OSError, ValueError):
                self.facts[place] = json.loads(place.read_text(encoding="utf-8"))

    @property
    def completed(self) -> float:
        """How many jobs are done, parts included."""
        parts = (self.facts.get(place, {}) for place in self.running.values() if place)
        return self.done + sum(ALMOST * facts["done"] / facts["total"] for facts in parts if facts.get("total"))

    def __str__(self) -> str:
        """Say how far it is, such as ``3 of 24, 54 %, 45 s, about 6 min left``."""
        said, worked = f"{self.done} of {self.total}", duration(self.worked)
        if self.done == self.total:
            trained = sum(facts["runs"] - facts["reused"] for facts in self.facts.values())
            return f"{said} in {worked}" + (f", {trained} runs trained" if trained else "")
        if self.said is None:
            return said
        completed = self.completed
        left = f", about {duration(self.worked / completed * (self.total - completed))} left" if completed else ""
        return f"{said}, {100 * completed / self.total:.0f} %, {worked}" + (left if self.running else "")


class Display:
    """Shows how far the stages are: live lines on a terminal, plain lines elsewhere.

    Errors and warnings go to ``err``; ``state`` is a file that keeps the present lines, for `./run status`.
    """

    def __init__(
        self, out: Console, err: Console, state: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.out, self.err, self.state, self.clock = out, err, state, clock
        self.failed = False
        self.stages: dict[str, Stage] = {}
        self._said: set[str] = set()
        columns = (TextColumn("{task.description:9}"), BarColumn(20), TextColumn("{task.fields[said]}"))
        self._live = Progress(
            *columns, console=out, disable=not out.is_terminal, redirect_stdout=False, redirect_stderr=False
        )
        self._counted = clock()
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def expect(self, jobs: Mapping[str, int]) -> None:
        """Take note of how many jobs of each rule will run, and begin to show them."""
        totals = Counter[str]()
        for rule, number in jobs.items():
            if name := stage_of(rule):
                totals[name] += number
        for name in (name for name in STAGES if totals[name]):
            self.stages[name] = Stage(name, self._live.add_task(name, total=totals[name], said=""), totals[name])
        self._live.start()
        self._thread.start()

    def start(self, number: int, rule: str, place: Path | None = None) -> None:
        """Take note that a job starts; it may record its progress at a place."""
        with self._lock:
            self._count()
            if stage := self.stages.get(stage_of(rule) or ""):
                if place is not None:
                    place.unlink(missing_ok=True)  # an earlier one's
                if stage.said is None:
                    stage.said = self.clock() - SECONDS_BETWEEN_LINES / 2  # Snakemake is silent while it starts
                stage.running[number] = place

    def finish(self, number: int, well: bool = True) -> None:
        """Take note that a job has ended; one that has failed may start again."""
        with self._lock:
            self._count()
            for stage in self.stages.values():
                if number in stage.running:
                    stage.look()
                    del stage.running[number]
                    stage.done += well
                    if stage.done == stage.total:
                        self._print(stage)

    def note(self, sentence: str) -> None:
        """Print a warning, once."""
        self._say(f"note: {sentence}")

    def error(self, sentence: str) -> None:
        """Print an error, once."""
        self.failed = True
        self._say(f"error: {sentence}")

    def end(self) -> None:
        """Show the last state, and nothing after it."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
            self.refresh()
            self._live.stop()

    def _say(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            # On a terminal through the live display, which otherwise would be torn.
            console = self.out if self.out.is_terminal else self.err
            console.print(Text(sentence, style="red" if sentence.startswith("error") else "yellow"), soft_wrap=True)

    def _look(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            self.refresh()

    def _count(self) -> None:
        """Count the time since the last event for the stages at work."""
        now, before = self.clock(), self._counted
        self._counted = now
        for stage in self.stages.values():
            stage.worked += now - before if stage.running else 0.0

    def refresh(self) -> None:
        """Bring what is shown up to date; a stage at work has a plain line once a minute."""
        with self._lock:
            self._count()
            for stage in self.stages.values():
                stage.look()
                self._live.update(stage.task, completed=stage.completed, said=str(stage))
                if stage.running and stage.said is not None and self.clock() - stage.said >= SECONDS_BETWEEN_LINES:
                    self._print(stage)
            if self.state is not None:
                with contextlib.suppress(OSError):
                    self.state.write_text("".join(f"{one.name:9}  {one}\n" for one in self.stages.values()), "utf-8")

    def _print(self, stage: Stage) -> None:
        """Print a stage's plain line, where there are no live ones."""
        stage.said = self.clock()
        if not self.out.is_terminal:
            self.out.print(Text(f"{stage.name:9}  {stage}"), soft_wrap=True)


class DryRun:
    """Collects the jobs that would run."""

    def __init__(self) -> None:
        self._jobs: Counter[tuple[str, str]] = Counter()  # by rule and reason
        self._ended: list[str] = []  # how jobs ended that have left a log and no output

    def add(self, rule: str, reason: str, logs: Sequence[str]) -> None:
        """Take note of a job."""
        if stage_of(rule) is not None:
            self._jobs[rule, reason_of(reason)] += 1
            if reason.startswith("Missing output files"):
                self._ended += [f"{rule} did not end: {reason_in(Path(log))}" for log in logs if Path(log).exists()]

    def lines(self) -> list[str]:
        """Return a line for each rule and reason, in the order of the work, and how jobs ended that left nothing."""
        if not self._jobs:
            return ["nothing to do: everything is done and up to date"]
        width = max(len(rule) for rule, _ in self._jobs)
        jobs = sorted(self._jobs.items(), key=lambda item: STAGES.index(stage_of(item[0][0]) or STAGES[0]))
        lines = [f"{rule.ljust(width)}  {number:>5}  {reason}" for (rule, reason), number in jobs]
        number = sum(self._jobs.values())
        lines.append(f"{number} {'job' if number == 1 else 'jobs'} would run")
        more = len(self._ended) - MOST_FAILED
        return [*lines, *self._ended[:MOST_FAILED], *([f"and {more} more"] if more > 0 else [])]


def sentence_of(message: str) -> str:
    """Return an error message of Snakemake's as a sentence, without the places in the workflow's files."""
    lines = [line for line in message.splitlines() if not re.match(r'\s*File ".*", line \d+', line)]
    if lines and re.match(r"\w+(Error|Exception) in (file|rule) .*:$", lines[0]):
        lines = lines[1:]
    return " ".join(" ".join(lines).split()).removeprefix("Error: ")


def reason_of(reason: str) -> str:
    """Return why Snakemake runs a job, with a few file names instead of all.

    >>> reason_of("Missing output files: a, b, c, d; Input files updated by another job: e")
    'Missing output files'
    >>> reason_of("Updated input files: a, b, c, d, e")
    'Updated input files: a, b, c and 2 more'
    """
    parts = [part.partition(": ") for part in reason.split("; ")]
    own = [part for part in parts if part[0] != "Input files updated by another job"] or parts
    return "; ".join(_short(name, names.split(", ")) for name, _, names in own)


def _short(name: str, names: Sequence[str]) -> str:
    if name not in ("Updated input files", "Set of input files has changed since last execution") or names == [""]:
        return name
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{name}: {', '.join(names[:MOST_NAMES])}{more}"
