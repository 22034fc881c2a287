"""How much there is to train, and how long the rest takes."""

from __future__ import annotations

import heapq
import io
import itertools
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpu.pipeline.config import select
from mdpu.pipeline.console.stages import Tracker, stage_of, words
from mdpu.pipeline.console.work import Progress, TrainingWork, images_shown, makespan, read_progress
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan
from mdpu.progress import Steps

sys.path.insert(0, str(REPOSITORY / "tests" / "study"))
from configs import config

DURATIONS = st.lists(st.integers(1, 50).map(float), max_size=6)


@given(DURATIONS, DURATIONS, st.integers(1, 4))
def test_the_makespan_is_that_of_a_simulation_second_by_second(running, waiting, slots):
    running = running[:slots]
    at_work, ahead, seconds = list(running), list(waiting), 0
    while True:
        at_work += [ahead.pop(0) for _ in range(min(slots - len(at_work), len(ahead)))]
        if not at_work:
            break
        seconds += 1
        at_work = [left - 1 for left in at_work if left > 1]
    assert makespan(running, waiting, slots) == seconds


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A plan of two cohorts of a perceptron, one of them twice as large as the other."""
    monkeypatch.chdir(tmp_path)
    return Plan(config(datasets=["flat"], experiments=["second"]))


def test_images_are_counted_as_the_trainer_shows_them(plan):
    pairs, triples = plan.cohorts.values()
    assert images_shown(plan, pairs.runs) == len(pairs.runs) * 3 * (30 * 2 + 30)
    assert images_shown(plan, triples.runs) == len(triples.runs) * 3 * (30 * 3 + 30)


class Machine:
    """A machine that trains cohorts of a plan at given rates, with a clock of its own."""

    def __init__(self, plan, seconds_for_image, start=4.0):
        self.plan, self.rates, self.start = plan, seconds_for_image, start
        self.now, self.began = 0.0, {}

    def duration(self, name):
        return self.start + images_shown(self.plan, self.plan.cohorts[name].runs) * self.rates[name]

    def read(self, path: Path):
        """What a training process would have recorded by now."""
        name = str(path.relative_to(self.plan.layout.results / "progress").with_suffix(""))
        if name not in self.began or (seconds := self.now - self.began[name] - self.start) < 0:
            return None
        runs = len(self.plan.cohorts[name].runs)
        share = min(1.0, seconds / (self.duration(name) - self.start))
        return Progress(runs, 0, int(1000 * share), 1000, min(seconds, self.duration(name) - self.start))


def split_size(cohort):
    """Return how many images the splits of a cohort hold."""
    return sum({run.split: run.n * (run.tuple_size + 1) for run in cohort.runs}.values())


def run_all(tracker, machine, slots, evaluations=6, seconds=4.0):
    """Yield the share of all work that is done, the estimate of the time left, and the true time left.

    Cohorts start as Snakemake's scheduler starts them: those with the largest splits first.
    """
    cohorts = sorted(machine.plan.cohorts, key=lambda name: split_size(machine.plan.cohorts[name]), reverse=True)
    jobs = [("train", name, machine.duration(name)) for name in cohorts]
    tracker.expect({"train": len(jobs), "compare": evaluations, "render_report": 1, "all": 1})
    later = [("compare", None, seconds)] * evaluations + [("render_report", None, seconds)]
    ends, log, number = [], [], itertools.count()

    def work(queue, slots):
        queue = list(queue)
        while queue or ends:
            while queue and len(ends) < slots:
                rule, name, duration = queue.pop(0)
                job = next(number)
                tracker.start(job, rule, name, slots if name else None)
                machine.began[name] = machine.now
                heapq.heappush(ends, (machine.now + duration, job))
            tracker.update()
            log.append((machine.now, tracker.seconds_left()))
            machine.now += 2.0
            while ends and ends[0][0] <= machine.now:
                tracker.finish(heapq.heappop(ends)[1])

    work(jobs, slots)
    work(later[:-1], tracker.slots)
    work(later[-1:], tracker.slots)
    return [(now / machine.now, left, machine.now - now) for now, left in log]


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A plan of the paper's tables on MNIST."""
    monkeypatch.chdir(tmp_path)
    return Plan(select("paper", [], ["datasets=[mnist]", "experiments=[table2, table3, table4, table5]"]))


BUSY = {"start": 15.0, "seconds": 7.0}  # of a process before it trains, and of a job of the evaluation


@pytest.mark.parametrize(
    ("slots", "unlike", "busy"),
    [*itertools.product([1, 2], [1 / 1.3, 1.0, 1.3], [{}]), (2, 1.0, BUSY)],
)
def test_the_time_left_is_within_a_quarter_from_a_tenth_of_the_work_on(tables, slots, unlike, busy):
    """Cohorts of a real selection of the paper, whose rates differ by what the number of images does not explain.

    On a busy machine processes take long to start: 15 s were measured on two processors with a load of 8.
    """
    rates = {name: 4e-7 * (unlike if "/m3/" in name else 1.0) for name in tables.cohorts}
    rates |= {name: 2e-8 for name, cohort in tables.cohorts.items() if not cohort.needs_gpu}
    machine = Machine(tables, rates, busy.get("start", 4.0))
    tracker = Tracker(2, clock=lambda: machine.now)
    tracker.work = TrainingWork(tables, machine.read)
    log = run_all(tracker, machine, slots, seconds=busy.get("seconds", 4.0))
    judged = [(estimate, truth) for done, estimate, truth in log if 0.1 <= done <= 0.97]
    assert len(judged) > 50
    assert not [pair for pair in judged if pair[0] is None or abs(pair[0] / pair[1] - 1) > 0.25]


def test_the_rate_of_a_cohort_is_that_of_those_most_like_it(tables):
    records = {
        "m2/n10000": [Progress(1, 0, 0, 2, 0.0), Progress(1, 0, 1, 2, 60.0)],
        "m3/n10000": [Progress(1, 0, 0, 2, 0.0), Progress(1, 0, 1, 2, 200.0)],
        "m2/n12000": [Progress(1, 0, 0, 2, 0.0)] * 2,  # it has begun, and shows no rate
    }
    work = TrainingWork(tables, lambda path: records[f"{path.parent.name}/{path.stem}"].pop(0))
    for _ in range(2):
        work.update(dict.fromkeys([f"mnist/base/{name}" for name in records], 300.0))
    ratio = 12 / 10 * 2  # of all its images to those that the smaller cohort took a minute for
    assert work.seconds_left("mnist/base/m2/n12000") == pytest.approx(60.0 * ratio)


def test_the_first_epoch_of_a_cohort_says_little_of_its_rate(tables):
    records = {
        "m2/n10000": [Progress(1, 0, 0, 100, 0.0), Progress(1, 0, 100, 100, 100.0)],
        "m2/n12000": [Progress(1, 0, 0, 100, 0.0), Progress(1, 0, 1, 100, 12.0)],  # ten times as slow, once
    }
    work = TrainingWork(tables, lambda path: records[f"{path.parent.name}/{path.stem}"].pop(0))
    for _ in range(2):
        work.update(dict.fromkeys([f"mnist/base/{name}" for name in records], 300.0))
    assert 119 < work.seconds_left("mnist/base/m2/n12000") < 240


def test_what_surrounds_the_training_of_a_cohort_is_measured(tables):
    """It takes 20 s until a process trains, and 3 s to end; the record is up to 2 s old."""
    seconds = iter([0.0, 4.0, 6.0, 8.0])
    first, second = "mnist/base/m2/n10000", "mnist/base/m2/n12000"
    work = TrainingWork(tables, lambda path: Progress(1, 0, int(time), 8, time) if (time := next(seconds)) else None)
    for elapsed in (10.0, 25.0, 26.0):
        work.update({first: elapsed})
    assert work.start_seconds == pytest.approx(20.0)
    work.finish(first, 31.0)
    training = 8.0 * 12 / 10
    assert work.seconds_left(second) == pytest.approx(20.0 + training + 3.0)
    assert work.seconds_left(second, elapsed=15.0) == pytest.approx(5.0 + training + 3.0)
    assert work.seconds_left(second, elapsed=40.0) == pytest.approx(training + 3.0)


def test_there_is_no_estimate_before_there_is_a_rate(plan):
    machine = Machine(plan, dict.fromkeys(plan.cohorts, 0.01))
    tracker = Tracker(1, clock=lambda: machine.now)
    tracker.work = TrainingWork(plan, machine.read)
    log = run_all(tracker, machine, 1)
    assert log[0][1] is None
    assert log[-1][1] is not None


def test_a_cohort_that_reuses_its_runs_counts_for_nothing(plan):
    whole, half = (
        TrainingWork(plan, lambda path, reused=reused: Progress(8, reused, 0, 100, 1.0)) for reused in (0, 4)
    )
    (name, *_) = plan.cohorts
    for work in (whole, half):
        work.update({name: 6.0})
    assert half.size(name) == whole.size(name) / 2
    assert (half.reused([name]), half.trained([name])) == (4, 4)


@pytest.mark.parametrize(("reused", "share"), [(0, 1.0), (2, 0.5), (4, 0.0)])
def test_stored_runs_count_as_finished_as_far_as_cohorts_reuse_them(plan, monkeypatch, reused, share):
    """All runs lie in the store; an edit of the protocol makes them worthless."""
    monkeypatch.setattr("pathlib.Path.exists", lambda path: True)
    work = TrainingWork(plan, lambda path: Progress(4, reused, 0, 100, 1.0))
    first, second = plan.cohorts
    assert work.size(second) == 0
    work.update({first: 6.0})
    assert work.size(second) == pytest.approx(share * images_shown(plan, plan.cohorts[second].runs))


def test_what_a_training_process_records_is_read(tmp_path):
    path = tmp_path / "m2" / "n30.json"
    assert read_progress(path) is None
    with Steps("training", 20, "run-epochs", path, runs=3, reused=1) as steps:
        first = read_progress(path)
        for _ in range(20):
            steps.advance()
    last = read_progress(path)
    assert (first.done, first.total, first.runs, first.reused) == (0, 20, 3, 1)
    assert (last.done, last.share) == (20, 1.0)
    assert last.seconds >= first.seconds
    path.write_text("{")
    assert read_progress(path) is None


def test_progress_that_cannot_be_recorded_does_not_stop_the_work(tmp_path):
    (tmp_path / "file").touch()
    with Steps("training", 2, "run-epochs", tmp_path / "file" / "n30.json") as steps:
        steps.advance(2)


def test_a_terminal_shows_a_bar_that_goes_when_the_work_is_done(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    with Steps("training", 20, "epochs") as steps:
        for _ in range(20):
            steps.advance()
    drawn = shown.getvalue().split("\r")
    assert any(re.match(r"training:\s+0%.* 0/20 ", line) for line in drawn)
    assert drawn[-2].strip() == ""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_every_rule_has_a_stage():
    assert stage_of("dataset_mnist") == stage_of("dataset") == "images"
    assert stage_of("split") == "splits"
    assert stage_of("show_table") == stage_of("compare") == "evaluate"
    assert stage_of("all") is None


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "1 s"),
        (59, "59 s"),
        (75, "1 min 15 s"),
        (120, "2 min"),
        (1500, "25 min"),
        (4000, "1 h 7 min"),
        (2e5, "56 h"),
    ],
)
def test_durations_have_two_figures(seconds, said):
    assert words(seconds) == said
