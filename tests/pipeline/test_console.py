"""What `./run` prints while it works, on a terminal and elsewhere, and what a dry run says."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from mdpu.pipeline.console import Display, DryRun, reason_of


class Shown:
    """A display on a clock of the test's own, and what it printed."""

    def __init__(self, folder, terminal=False):
        self.now, self._read = 0.0, 0
        self._files = io.StringIO(), io.StringIO()
        consoles = (Console(file=file, force_terminal=terminal, width=100, highlight=False) for file in self._files)
        self.state = folder / "progress"
        self.display = Display(*consoles, self.state, lambda: self.now)

    @property
    def texts(self):
        return self._files[0].getvalue(), self._files[1].getvalue()

    def after(self, seconds):
        """Return the plain lines that are new after this many seconds, looked at once a second."""
        for _ in range(seconds):
            self.now += 1
            self.display.refresh()
        before, self._read = self._read, len(self.texts[0])
        return self.texts[0][before:].splitlines()


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """A display without a terminal that looks when the test says so."""
    monkeypatch.setattr("mdpu.pipeline.console.SECONDS_BETWEEN_LOOKS", 3600)
    return Shown(tmp_path)


def test_a_stage_has_a_line_a_minute_and_one_at_its_end(shown, tmp_path):
    """Training goes by what its processes record; the second job finds all of its runs finished."""
    display = shown.display
    display.expect({"split": 2, "train": 2, "compare": 1, "render_report": 1, "all": 1})
    display.start(0, "split")
    assert shown.after(29) == []
    assert shown.after(60) == ["splits     0 of 2, 0 %, 30 s"]
    display.finish(0)
    display.start(1, "split")
    display.finish(1)
    assert shown.after(1) == ["splits     2 of 2 in 89 s"]
    places = [tmp_path / f"{number}.json" for number in range(2)]
    places[0].write_text("an earlier one's")
    for number, place in enumerate(places):
        display.start(2 + number, "train", place)
    assert not places[0].exists()
    places[0].write_text(json.dumps({"runs": 12, "reused": 4, "done": 25, "total": 100, "seconds": 1}))
    assert shown.after(29) == []
    places[0].write_text(json.dumps({"runs": 12, "reused": 4, "done": 50, "total": 100, "seconds": 3}))
    places[1].write_text('{"runs": 3, "reu')  # cut short
    assert shown.after(31) == ["train      0 of 2, 25 %, 30 s, about 2 min left"]
    assert shown.state.read_text().splitlines()[2:] == ["evaluate   0 of 1", "report     0 of 1"]
    places[0].write_text(json.dumps({"runs": 12, "reused": 4, "done": 100, "total": 100, "seconds": 9}))
    assert shown.after(1) == []  # it has trained, and still writes
    places[1].write_text(json.dumps({"runs": 3, "reused": 3, "done": 0, "total": 0, "seconds": 0}))
    display.finish(2)
    display.finish(3, well=False)  # and is tried again
    assert shown.after(1) == []
    display.start(3, "train", places[1])
    display.finish(3)
    assert shown.after(1) == ["train      2 of 2 in 61 s, 8 runs trained"]
    display.start(9, "all")
    display.finish(9)
    display.end()
    assert "\x1b" not in shown.texts[0]
    assert shown.texts[1] == ""


def test_a_stage_that_waits_for_another_one_does_not_count_the_wait(shown):
    """One file is evaluated at once, and the others after an hour of training."""
    shown.display.expect({"compare": 4})
    shown.display.start(0, "compare")
    assert shown.after(10) == []
    shown.display.finish(0)
    assert shown.after(3600) == []
    shown.display.start(1, "compare")
    assert shown.after(10) == ["evaluate   1 of 4, 25 %, 11 s, about 33 s left"]
    for number in (1, 2, 3):
        shown.display.start(number, "compare")
        shown.display.finish(number)
    assert shown.after(1) == ["evaluate   4 of 4 in 20 s"]


def test_on_a_terminal_the_lines_live_and_stay(tmp_path):
    shown = Shown(tmp_path, terminal=True)
    shown.display.expect({"split": 1})
    shown.display.start(0, "split")
    shown.display.error("split: it failed")
    shown.display.finish(0)
    shown.display.end()
    assert "\x1b[" in shown.texts[0]
    assert "1 of 1 in " in shown.texts[0]
    assert "error: split: it failed" in shown.texts[0]  # beside the lines on another stream, it would tear them


def test_an_error_is_said_once_and_apart_from_progress(shown):
    for _ in range(3):
        shown.display.error("split: labels [x] do not exist")
        shown.display.note("a file was made anew")
    assert shown.texts == ("", "error: split: labels [x] do not exist\nnote: a file was made anew\n")
    assert shown.display.failed


@pytest.mark.parametrize(
    ("reason", "short"),
    [
        ("Missing output files: a, b, c, d; Input files updated by another job: e", "Missing output files"),
        ("Updated input files: a, b, c, d, e", "Updated input files: a, b, c and 2 more"),
        ("Params have changed since last execution: before: x", "Params have changed since last execution"),
    ],
)
def test_reasons_are_short(reason, short):
    assert reason_of(reason) == short


def test_a_dry_run_counts_jobs_by_rule_and_reason(tmp_path):
    dry, log = DryRun(), tmp_path / "a.log"
    assert dry.lines() == ["nothing to do: everything is done and up to date"]
    log.write_text("1\n2\nerror: 3\n4\n")
    dry.add("render_report", "Input files updated by another job: x", [])
    dry.add("split", "Missing output files: a", [str(log)])
    dry.add("split", "Missing output files: b", [str(tmp_path / "b.log")])
    dry.add("all", "Input files updated by another job: x", [])
    assert dry.lines() == [
        "split              2  Missing output files",
        "render_report      1  Input files updated by another job",
        "3 jobs would run",
        f"split did not end: 3 ({log})",
    ]
