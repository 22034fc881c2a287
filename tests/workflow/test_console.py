"""`./run` as a user meets it: real processes on the tiny experiment, and what each prints."""

from __future__ import annotations

import re
import shutil

import pandas as pd
import pytest

from mdpu.pipeline.cache import RunStore
from mdpu.pipeline.files import accept

pytestmark = pytest.mark.slow

TINY = ("--configfile", "config/tiny.yaml")
CELL = "digits/base/m2/n60/prior0.5/abs/logistic"


@pytest.fixture(scope="module")
def ran(tmp_path_factory, make_clone):
    """A clone in which `./run` has made the tiny experiment, and what it printed."""
    clone = make_clone(tmp_path_factory.mktemp("ran") / "clone")
    return clone, clone.run("./run", "paper", "--cores", "2", *TINY)


def test_each_stage_is_a_line_and_the_last_is_the_report(ran):
    clone, done = ran
    stages = [line.split()[0] for line in done.stdout.splitlines() if not line.startswith("run: ")]
    assert list(dict.fromkeys(stages)) == ["images", "splits", "train", "evaluate", "report"]
    assert re.search(r"^train +2 of 2 cohorts in .*, 12 runs trained, 0 runs reused$", done.stdout, re.MULTILINE)
    assert done.stdout.splitlines()[-3:] == [
        "run: this is the first report here",
        "run: expected numbers confirmed: 4 of 4 cells within tolerance, largest difference "
        + done.stdout.splitlines()[-2].rpartition("difference ")[2],
        f"run: report: {clone.results / 'report.html'}",
    ]
    assert len(done.stdout.splitlines()) + len(done.stderr.splitlines()) < 20
    assert done.stderr == ""


def test_a_second_run_says_that_nothing_changed(ran):
    clone, _ = ran
    done = clone.run("./run", "paper", "--cores", "2", *TINY)
    assert re.match(r"run: since the report of .* UTC: nothing changed\n", done.stdout)


def test_a_dry_run_and_the_status_say_what_would_run_and_why(ran):
    clone, _ = ran
    looked = clone.run("./run", "paper", *TINY, "-n")
    assert looked.stdout == "nothing to do: everything is done and up to date\n"
    assert looked.stderr == ""
    more = clone.run("./run", "paper", *TINY, "--config", "name=tiny", "axes={seed: [1, 2, 3]}", "-n").stdout
    assert re.search(r"^split +3  Missing output files$", more, re.MULTILINE)
    assert "paper-" not in more
    told = clone.run("./run", "status").stdout
    assert told.startswith("nothing is at work in this folder\n")  # SLURM may be installed, and not run
    assert "\n\nresults/tiny\n" in told


def test_the_plan_counts_runs_to_reuse_and_to_train(ran):
    clone, _ = ran
    lines = clone.run("./run", "plan", "paper", *TINY, "--config", "name=tiny", "axes={seed: [1, 2, 3]}").stdout
    assert "train     6 runs\nreuse     12 runs\n" in lines
    assert "download  nothing" in lines


def test_a_number_is_traced_and_retrained_without_naming_a_configuration(ran):
    clone, _ = ran
    assert "made by     commit" in clone.run("./run", "trace", CELL).stdout
    assert "3 epochs equal bit for bit" in clone.run("./run", "retrain", f"{CELL}/seed1").stdout


def test_shipped_runs_are_trained_again_and_a_changed_one_is_told(ran, make_clone, tmp_path):
    """The tiny runs stand for the shipped ones; no rounding was measured for them, so only equal bits agree."""
    finished, _ = ran
    clone = make_clone(tmp_path / "clone")
    shipped = clone.folder / "results" / "reference"
    ship(finished, clone)
    lines = clone.run("./run", "verify", "--cores", "2", "--runs", "2", "--seed", "7").stdout.splitlines()
    assert [line.endswith(" %, equal bit for bit") for line in lines[-3:]] == [True, True, False]
    assert lines[-1] == "2 of 2 runs came out again, 2 of them bit for bit"
    runs = pd.read_parquet(shipped / "finished.parquet")
    runs.loc[runs["method"] == "abs", "risk"] += 1e-9
    runs.loc[runs["method"] == "abs", "fingerprint"] = "another"
    runs.to_parquet(shipped / "finished.parquet")
    accept(shipped / "finished.parquet")
    rows = clone.folder / "rows.csv"
    told = clone.run("./run", "verify", "--cores", "2", "--runs", "12", "--rows", str(rows), status=1).stdout
    assert "for abs nobody has measured how far rounding moves it" in told
    assert told.splitlines()[-1] == "6 of 12 runs came out again, 6 of them bit for bit"
    assert dict(pd.read_csv(rows).groupby("method")["equal"].sum()) == {"abs": 0, "ure": 6}


def test_the_shipped_page_is_made_again_but_for_its_time(ran, make_clone, tmp_path):
    """The page of the clone that trained says for how long; that of another one, that its runs were finished before."""
    finished, _ = ran
    clone = make_clone(tmp_path / "clone")
    ship(finished, clone)
    forecast = clone.run("./run", "plan", "reference", "--config", "axes={seed: [1]}").stdout
    assert "12 finished runs unpacked into results/tiny/runs" in forecast  # all are, whatever is selected
    assert "train     0 runs\nreuse     0 runs, and 6 more if their splits are the same" in forecast
    said = clone.run("./run", "reference", "--cores", "2").stdout
    assert "12 of 12 shipped rows of these runs are the same to the third decimal; the page is the shipped one" in said
    shipped = clone.folder / "results" / "reference" / "report.html"
    shipped.write_text(shipped.read_text().replace("Digits (8x8)", "Other digits", 1))
    said = clone.run("./run", "reference", "--cores", "2").stdout
    assert "third decimal; the page is another than the shipped one" in said


def ship(finished, clone):
    """Make the runs and the page of one clone those that another ships."""
    shipped = clone.folder / "results" / "reference"
    (clone.folder / "config" / "reference.yaml").write_bytes((clone.folder / "config" / "tiny.yaml").read_bytes())
    for name in ("runs.csv", "report.html"):
        shutil.copy(finished.results / name, shipped / name)
    RunStore(finished.results / "runs").pack(shipped / "finished.parquet")


def test_what_snakemake_says_of_a_wrong_option_is_shown(ran):
    clone, _ = ran
    done = clone.run("./run", "paper", *TINY, "--coers", "2", status=2)
    assert "unrecognized arguments: --coers" in done.stderr
    assert done.stderr.startswith("usage: snakemake ")
    assert "Using workflow specific profile" not in done.stderr


def test_verbose_is_snakemakes_own_text(ran):
    clone, _ = ran
    done = clone.run("./run", "paper", *TINY, "--verbose", "-n")
    assert done.stderr.startswith("Using workflow specific profile profiles/default")


def test_a_failed_job_is_one_sentence_and_the_status_has_the_end_of_its_log(fresh_clone):
    fresh_clone.change_config(protocol__sampling={"replacement": False}, definitions__experiments__figure1={"n": 5000})
    done = fresh_clone.run("./run", "paper", "--cores", "2", *TINY, "--", "results/tiny/figures/figure1.svg", status=1)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert errors[0].startswith("error: split: sampling without replacement needs")
    assert "the largest n that fits" in errors[0]
    assert "Traceback" not in done.stderr
    assert "split did not end (results/tiny/logs/splits/" in fresh_clone.run("./run", "status").stdout


def test_missing_files_stop_it_before_any_job(fresh_clone, monkeypatch):
    """A proxy that nobody listens on stands for the missing network."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    done = fresh_clone.run("./run", "paper", "--config", "datasets=[mnist]", status=2)
    lines = done.stderr.splitlines()
    assert len([line for line in lines if "MNIST/raw/" in line and "MD5" in line]) == 4
    assert lines[-1].startswith("error: 4 files are missing and their publishers do not answer, so nothing was started")
    assert not list(fresh_clone.folder.glob("results/*/logs"))
