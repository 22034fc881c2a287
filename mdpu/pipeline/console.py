"""What `./run` shows while Snakemake works: how far each stage is, errors in a sentence, and what a dry run found."""

from __future__ import annotations

import contextlib
import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

STAGES = ("images", "splits", "tune", "train", "evaluate", "report")
TARGETS = frozenset(("all", "report", "tables", "figures", "evaluation", "datasets"))
STAGE_OF = {"labels": "splits", "sheet": "splits", "split": "splits", "tune": "tune", "train": "train"} | {
    "render_report": "report"
}
SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_BETWEEN_LINES = 60.0  # of a stage that is at work, where there is no terminal
ALMOST = 0.99  # done is a job that has recorded all its steps, and goes on to write what came out
MOST_NAMES = 3  # that a reason lists
MOST_FAILED, LINES_OF_LOG = 20, 3  # jobs of which a dry run shows the end of the log


def stage_of(rule: str) -> str | None:
    """Return the stage of a rule, or None for one that only names targets."""
    if rule in TARGETS:
        return None
    return "images" if rule.startswith("dataset") else STAGE_OF.get(rule, "evaluate")


@dataclass
class Stage:
    """A stage's jobs, and the lines about them."""

    name: str
    task: TaskID
    total: int  # jobs
    done: int = 0
    running: dict[int, Path | None] = field(default_factory=dict)  # where jobs record their progress, by number
    facts: dict[Path, Mapping[str, float]] = field(default_factory=dict)  # what was last recorded there
    said: float = 0.0  # when the last plain line was printed
    began: float = 0.0  # when it last went to work
    before: float = 0.0  # seconds that it had worked by then; in between it may wait for another stage

    def look(self) -> float:
        """Read how far the jobs at work are, and return how many jobs are done, parts included."""
        done = float(self.done)
        for place in filter(None, self.running.values()):
            with contextlib.suppress(OSError, ValueError):
                self.facts[place] = json.loads(place.read_text(encoding="utf-8"))
            facts = self.facts.get(place, {})
            done += ALMOST * facts["done"] / facts["total"] if facts.get("total") else 0.0
        return done

    def worked(self, now: float) -> float:
        """Return the seconds in which any of its jobs was at work."""
        return self.before + (now - self.began if self.running else 0.0)


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
        self.progress = Progress(
            *columns,
            console=out,
            get_time=clock,
            disable=not out.is_terminal,
            redirect_stdout=False,
            redirect_stderr=False,
        )
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
            task = self.progress.add_task(name, total=totals[name], start=False, said="")
            self.stages[name] = Stage(name, task, totals[name])
        self.progress.start()
        self._thread.start()

    def start(self, number: int, rule: str, place: Path | None = None) -> None:
        """Take note that a job starts; it may record its progress at a place."""
        with self._lock:
            if stage := self.stages.get(stage_of(rule) or ""):
                if place is not None:
                    place.unlink(missing_ok=True)  # an earlier one's
                if not stage.running:
                    stage.began = self.clock()
                if not self.progress.tasks[stage.task].started:
                    self.progress.start_task(stage.task)
                    stage.said = stage.began - SECONDS_BETWEEN_LINES / 2  # Snakemake is silent while it starts
                stage.running[number] = place

    def finish(self, number: int, well: bool = True) -> None:
        """Take note that a job has ended; one that has failed may start again."""
        with self._lock:
            for stage in self.stages.values():
                if number in stage.running:
                    stage.look()
                    stage.before, stage.began = stage.worked(self.clock()), self.clock()
                    del stage.running[number]
                    stage.done += well

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
            self.progress.stop()

    def _say(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            # On a terminal through the live display, which otherwise would be torn.
            console = self.out if self.out.is_terminal else self.err
            console.print(Text(sentence, style="red" if sentence.startswith("error") else "yellow"), soft_wrap=True)

    def _look(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            self.refresh()

    def refresh(self) -> None:
        """Bring what is shown up to date; a plain line comes once a minute, and when a stage has ended."""
        with self._lock:
            lines = []
            for stage in self.stages.values():
                task = self.progress.tasks[stage.task]
                over = task.finished
                if task.started and not over:
                    self.progress.update(stage.task, completed=stage.look())
                said = self._describe(stage)
                self.progress.update(stage.task, said=said)
                lines.append(f"{stage.name:9}  {said}")
                due = stage.running and self.clock() - stage.said >= SECONDS_BETWEEN_LINES
                if not self.out.is_terminal and ((task.finished and not over) or due):
                    stage.said = self.clock()
                    self.out.print(Text(lines[-1]), soft_wrap=True)
            if self.state is not None:
                with contextlib.suppress(OSError):
                    self.state.write_text("\n".join([*lines, ""]), encoding="utf-8")

    def _describe(self, stage: Stage) -> str:
        """Return what is to be said of a stage, such as ``3 of 24 jobs, 54 %, 45 s, about 6 min left``."""
        task = self.progress.tasks[stage.task]
        said = f"{stage.done} of {stage.total}"
        if task.finished:
            runs, reused = (int(sum(facts.get(key, 0) for facts in stage.facts.values())) for key in ("runs", "reused"))
            trained = f", {runs - reused} runs trained" if runs > reused else ""
            return f"{said} in {words(stage.before)}{trained}" + (f", {reused} reused" if reused else "")
        if not task.started:
            return said
        worked = stage.worked(self.clock())
        known = task.completed and stage.running
        about = f", about {words(worked / task.completed * (stage.total - task.completed))} left" if known else ""
        return f"{said}, {task.percentage:.0f} %, {words(worked)}{about}"


def words(seconds: float) -> str:
    """Return a duration in words: two figures are enough.

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


class DryRun:
    """Collects the jobs that would run."""

    def __init__(self) -> None:
        self._jobs: Counter[tuple[str, str]] = Counter()  # by rule and reason
        self._begun: list[tuple[str, Path]] = []  # rule and log of jobs that have started and left no output

    def add(self, rule: str, reason: str, logs: Sequence[str]) -> None:
        """Take note of a job."""
        if stage_of(rule) is not None:
            self._jobs[rule, reason_of(reason)] += 1
            if reason.startswith("Missing output files"):
                self._begun += [(rule, Path(log)) for log in logs if Path(log).exists()]

    def lines(self) -> list[str]:
        """Return a line for each rule and reason, in the order of the work, and how jobs ended that left nothing."""
        if not self._jobs:
            return ["nothing to do: everything is done and up to date"]
        width = max(len(rule) for rule, _ in self._jobs)
        jobs = sorted(self._jobs.items(), key=lambda item: STAGES.index(stage_of(item[0][0]) or STAGES[0]))
        lines = [f"{rule.ljust(width)}  {number:>5}  {reason}" for (rule, reason), number in jobs]
        number = sum(self._jobs.values())
        lines.append(f"{number} {'job' if number == 1 else 'jobs'} would run")
        for rule, log in self._begun[:MOST_FAILED]:
            lines += [f"{rule} did not end ({log}):", *(f"    {line}" for line in last_lines(log, LINES_OF_LOG))]
        more = len(self._begun) - MOST_FAILED
        return [*lines, f"and {more} more"] if more > 0 else lines


def error_of(what: str, logs: Iterable[str]) -> str:
    """Return what went wrong in a job, in a sentence: the last line of its log, which is the command's own."""
    for log in logs:
        if lines := last_lines(Path(log), 1):
            return f"{what}: {lines[-1].removeprefix('error: ')} ({log})"
    return f"{what} failed, and left no log"


def last_lines(log: Path, number: int) -> list[str]:
    """Return the last lines of a log that are not empty; none if there is no log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-number:]


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
