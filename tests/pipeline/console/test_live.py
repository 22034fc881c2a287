"""What `./run` prints while it works, on a terminal and elsewhere, and what a dry run says."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from mdpu.pipeline.console.dry import DryRun
from mdpu.pipeline.console.live import Display
from mdpu.pipeline.console.reasons import error_of, last_lines, reason_of, sentence_of
from mdpu.pipeline.console.stages import Tracker


class Streams:
    """Two consoles whose texts can be read."""

    def __init__(self, terminal: bool) -> None:
        self._files = io.StringIO(), io.StringIO()
        self.out, self.err = (
            Console(file=file, force_terminal=terminal, width=100, highlight=False) for file in self._files
        )

    @property
    def texts(self) -> tuple[str, str]:
        return self._files[0].getvalue(), self._files[1].getvalue()


def work(display, tracker):
    tracker.expect({"split": 2, "compare": 1, "render_report": 1, "all": 1})
    display.begin()
    for number, rule in enumerate(["split", "split", "compare", "render_report"]):
        tracker.start(number, rule)
        tracker.finish(number)
    tracker.start(9, "all")
    tracker.finish(9)
    display.end()


def test_elsewhere_each_stage_is_one_plain_line():
    tracker, streams = Tracker(), Streams(terminal=False)
    work(Display(tracker, streams.out, streams.err), tracker)
    out, err = streams.texts
    assert [line.split()[0] for line in out.splitlines()] == ["splits", "evaluate", "report"]
    assert out.splitlines()[0].startswith("splits     2 of 2 in ")
    assert "\x1b" not in out
    assert err == ""


def test_on_a_terminal_the_lines_live_and_stay():
    tracker, streams = Tracker(), Streams(terminal=True)
    work(Display(tracker, streams.out, streams.err), tracker)
    out, _ = streams.texts
    assert "\x1b[" in out
    assert "2 of 2 in " in out


def test_an_error_is_said_once_and_apart_from_progress():
    streams = Streams(terminal=False)
    display = Display(Tracker(), streams.out, streams.err)
    for _ in range(3):
        display.error("split: labels [x] do not exist")
        display.note("a file was made anew")
    assert streams.texts == ("", "error: split: labels [x] do not exist\nnote: a file was made anew\n")
    assert display.failed


def test_what_failed_is_the_last_line_of_its_log(tmp_path):
    log = tmp_path / "split.log"
    log.write_text("a line\nerror: config key n: there are too few images\n\n")
    assert error_of("split", [str(log)]) == f"split: config key n: there are too few images ({log})"
    assert error_of("split", [str(tmp_path / "none.log")]) == "split failed, and left no log"
    assert last_lines(log, 2) == ["a line", "error: config key n: there are too few images"]


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            'WorkflowError in file "/x.smk", line 4:\nconfig key name is wrong\n  File "/x.smk", line 4, in <module>',
            "config key name is wrong",
        ),
        ("Error: Directory cannot be locked.\nTry later.", "Directory cannot be locked. Try later."),
    ],
)
def test_a_message_of_snakemakes_becomes_a_sentence(message, sentence):
    assert sentence_of(message) == sentence


@pytest.mark.parametrize(
    ("reason", "short"),
    [
        ("Missing output files: a, b, c, d; Input files updated by another job: e", "Missing output files"),
        ("Input files updated by another job: e, f", "Input files updated by another job"),
        ("Updated input files: mdpu/learn/risk.py", "Updated input files: mdpu/learn/risk.py"),
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
    ]
    assert dry.failed() == [f"split did not end ({log}):", "    2", "    error: 3", "    4"]
