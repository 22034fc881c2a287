"""Which jobs count as failed, and what is said of them."""

from __future__ import annotations

import pytest
from configs import config

from mdpu.errors import UserError
from mdpu.pipeline.cache import identity
from mdpu.pipeline.failed import error_of, reason_in, without_failed
from mdpu.pipeline.files import write_text
from mdpu.pipeline.plan import Plan


@pytest.fixture
def study(tmp_path):
    """A configuration of two training jobs, the first of which was trained."""
    changed = config(datasets=["flat"], results_dir=str(tmp_path))
    plan = Plan(changed)
    first, second = plan.jobs
    write_text(manifest(plan, first), "{}")
    return changed, plan, first, second


def manifest(plan, job):
    return plan.layout.manifest(job, identity(plan, job))


def log_of(plan, job):
    return plan.layout.training_log(job, identity(plan, job))


def test_a_job_that_was_not_trained_is_left_out_with_the_last_error_of_its_log(study):
    changed, plan, first, second = study
    log = log_of(plan, second)
    write_text(log, "flat: 8 runs\nerror: an earlier one\nerror: the disk is full\nflat: 3/8 run-epochs\n")
    failed = without_failed(changed)
    assert failed == {**changed, "failed": {second: f"the disk is full ({log})"}}
    assert list(Plan(failed).jobs) == [first]


def test_a_failure_lasts_no_longer_than_the_gap(study):
    changed, plan, _, second = study
    failed = without_failed(changed)
    assert failed["failed"]
    write_text(manifest(plan, second), "{}")
    assert without_failed(failed)["failed"] == {}


def test_where_nothing_was_trained_there_is_nothing_to_report(study):
    changed, plan, first, _ = study
    manifest(plan, first).unlink()
    write_text(log_of(plan, first), "error: no space\n")
    with pytest.raises(UserError, match=r"^no training job ended well, so there is nothing to report; no space \("):
        without_failed(changed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8 runs\nTraceback (most recent call last):\n  line 3\nValueError: a\n", "ValueError: a ("),
        ("8 runs\ntorch.AcceleratorError: CUDA error\nSearch for it\n", "torch.AcceleratorError: CUDA error ("),
        ("8 runs\n3/8 run-epochs\n", "it was killed, for example because memory or time ran out ("),
        ("", "it was killed, for example because memory or time ran out ("),
        ("error: " + "x" * 1000, "x" * 300 + " ... ("),
        (None, "it did not begin, because something that it needs failed"),
    ],
)
def test_the_reason_is_one_sentence_that_names_the_log(tmp_path, text, expected):
    log = tmp_path / "a.log"
    if text is not None:
        log.write_text(text)
    assert reason_in(log) == expected + (f"{log})" if text is not None else "")


def test_what_failed_is_said_by_the_first_log_that_is_there(tmp_path):
    log = tmp_path / "split.log"
    log.write_text("a line\nerror: config key n: there are too few images\n\n")
    logs = [str(tmp_path / "none.log"), str(log)]
    assert error_of("split", logs) == f"split: config key n: there are too few images ({log})"
    assert error_of("split", logs[:1]) == "split failed, and left no log"
