"""`./run` as a user meets it: real processes on the tiny experiment, and what each prints."""

from __future__ import annotations

import importlib
import re
import shutil
from types import SimpleNamespace

import pytest
from snakemake.scheduling.job_scheduler import JobRateLimiter
from snakemake.settings.types import MaxJobsPerTimespan

from mdpu.pipeline.files import REPOSITORY

slow = pytest.mark.slow
TINY = ("--configfile", "config/tiny.yaml")
CELL = "digits/base/m2/n60/prior0.5/abs/logistic"


@pytest.fixture(scope="module")
def ran(tmp_path_factory, finished):
    """A finished clone, which these tests run again."""
    return finished.copy(tmp_path_factory.mktemp("ran") / "clone")


@slow
def test_each_stage_has_its_lines_and_the_last_is_the_report(finished):
    said = finished.folder.with_name("finished.log").read_text()
    lines = said.splitlines()
    stages = [line.split()[0] for line in lines if not line.startswith("run: ")]
    assert set(stages) == {"images", "splits", "train", "evaluate", "report"}
    assert stages[-1] == "report"
    assert re.search(r"^train +2 of 2 in .*, 12 runs trained$", said, re.MULTILINE)
    assert lines[-3] == "run: this is the first report here"
    assert lines[-2].startswith("run: expected numbers confirmed: 4 of 4 cells within tolerance, largest difference ")
    assert lines[-1] == f"run: report: {finished.results / 'report.html'}"


@slow
def test_a_second_run_says_that_nothing_changed(ran):
    done = ran.run(*ran.RUN)
    assert re.match(r"run: since the report of .* UTC: nothing changed\n", done.stdout)


@slow
def test_a_dry_run_and_the_status_say_what_would_run_and_why(ran):
    """A target of Snakemake is one here, too."""
    more = ran.run("./run", "paper", *TINY, "--config", "name=tiny", "axes={seed: [1, 2, 3]}", "tables", "-n")
    assert re.search(r"^train +2  Missing output files$", more.stdout, re.MULTILINE)
    assert "render_report" not in more.stdout
    assert more.stderr == ""
    told = ran.run("./run", "status").stdout
    up_to_date = "results/tiny\nnothing to do: everything is done and up to date\n"
    assert told == f"nothing is at work in this folder\n\n{up_to_date}"


@slow
def test_a_number_is_traced_and_retrained_without_naming_a_configuration(ran):
    assert "made by     commit" in ran.run("./run", "trace", CELL).stdout
    assert "equal bit for bit" in ran.run("./run", "retrain", f"{CELL}/seed1").stdout


@slow
def test_shipped_runs_are_verified_and_their_page_is_made_again_but_for_its_time(finished, make_clone, tmp_path):
    """The tiny runs stand for the shipped ones; no rounding was measured for them, so only equal bits agree."""
    clone = make_clone(tmp_path / "clone")
    shipped = clone.folder / "results" / "reference"
    (clone.folder / "config" / "reference.yaml").write_bytes((clone.folder / "config" / "tiny.yaml").read_bytes())
    for name in ("runs.csv", "report.html"):
        shutil.copy(finished.results / name, shipped / name)
    packed = str(shipped / "finished.parquet")
    finished.run("python", "-m", "mdpu", "export", "--config", "config/tiny.yaml", "--out", packed)
    lines = clone.run("./run", "plan", "reference").stdout
    assert "train     0 runs\nreuse     0 runs, and 12 shipped runs if the images are those" in lines
    lines = clone.run("./run", "verify", "--cores", "2", "--runs", "2", "--seed", "7").stdout.splitlines()
    assert [line.endswith(" %, equal bit for bit") for line in lines[-3:]] == [True, True, False]
    assert lines[-1] == "2 of 2 runs came out again, 2 of them bit for bit"
    said = clone.run("./run", "reference", "--cores", "2").stdout
    assert "12 of 12 shipped rows of these runs are the same to the third decimal; the page is the shipped one" in said
    assert "train " not in said


@slow
def test_what_snakemake_says_is_shown(ran):
    assert "Building DAG of jobs..." in ran.run("./run", "paper", *TINY, "--verbose", "-n").stdout
    done = ran.run("./run", "paper", *TINY, "--coers", "2", status=2)
    assert "unrecognized arguments: --coers" in done.stderr
    assert done.stderr.startswith("usage: snakemake ")


@slow
def test_missing_files_stop_it_before_any_job(fresh_clone, monkeypatch):
    """A proxy that nobody listens on stands for the missing network."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    done = fresh_clone.run("./run", "paper", "--config", "datasets=[mnist]", status=2)
    lines = done.stderr.splitlines()
    assert len([line for line in lines if "MNIST/raw/" in line and "MD5" in line]) == 4
    assert lines[-1].startswith("error: 4 missing files, and their publishers do not answer, so nothing was started")
    assert not list(fresh_clone.folder.glob("results/*/logs"))


def test_the_scheduler_selects_again_by_itself_only_if_the_limit_held_jobs_back(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "workflow" / "plugins")
    plugin = importlib.import_module("snakemake_logger_plugin_mdpu")
    later = []
    monkeypatch.setattr(plugin, "_select_later", lambda _, delay: later.append(delay))
    scheduler = SimpleNamespace(job_rate_limiter=JobRateLimiter(MaxJobsPerTimespan(2, "1h")))
    plugin.select_later(scheduler, 3600)  # nothing was started yet
    plugin.register_jobs(scheduler.job_rate_limiter, 1)
    plugin.select_later(scheduler, 3600)
    assert later == []
    plugin.register_jobs(scheduler.job_rate_limiter, 1)
    plugin.select_later(scheduler, 3600)
    assert later == [3600]
