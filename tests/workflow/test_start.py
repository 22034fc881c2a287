"""`./run` as a user meets it: real processes on the tiny experiment, and what each prints."""

import re
import subprocess
import time

import psutil
import pytest

slow = pytest.mark.slow
SHIPPED = "results/reference/report.html"


def test_without_an_environment_it_shows_the_shipped_report_and_its_help(fresh_clone):
    (fresh_clone.folder / ".venv").unlink()
    assert str(fresh_clone.folder / SHIPPED) in fresh_clone.run("./run", "demo").stdout
    assert "demo" in fresh_clone.run("env", "PYTHONOPTIMIZE=2", "./run", "--help").stdout
    assert not (fresh_clone.folder / ".venv").exists()


def test_an_environment_whose_python_cannot_be_started_is_told(fresh_clone):
    """It may be in another user's home, or gone."""
    venv = fresh_clone.folder / ".venv"
    stamp = (venv / "made-from").read_bytes()
    venv.unlink()
    (venv / "bin").mkdir(parents=True)
    (venv / "made-from").write_bytes(stamp)
    (venv / "bin" / "python").symlink_to("/nowhere/python")
    (line,) = fresh_clone.run("./run", "tiny", status=1).stderr.splitlines()
    assert str(venv / "bin" / "python") in line


def test_a_name_without_a_configuration_is_refused(fresh_clone):
    assert "config/quik.yaml" in fresh_clone.run("./run", "quik", status=1).stderr


@slow
def test_arguments_go_to_snakemake_and_configurations_are_laid_over_one_another(finished):
    """Another page is named; a dry run makes none of it."""
    (finished.folder.with_name("more.yaml")).write_text(
        "name: more\nprotocol: {reporting: {average_last: 1}}\n"
    )
    done = finished.run(
        *finished.RUN,
        "-n",
        "--configfile",
        "../more.yaml",
        "--configfiles=../more.yaml",
        "--",
        "tables",
    )
    listed = dict(re.findall(r"^ *(\w+) +(\d+) *$", done.stdout + done.stderr, re.MULTILINE))
    assert listed == {"collect": "1", "table": "1", "formulas": "1", "tables": "1", "total": "4"}
    assert not (finished.folder / "results" / "more").exists()
    (finished.folder.with_name("twice.yaml")).write_text("name: once\nname: twice\n")
    assert (
        "is given twice"
        in finished.run(*finished.RUN, "-n", "--configfile", "../twice.yaml", status=1).stdout
    )
    assert (
        "unrecognized arguments: --coers"
        in finished.run(*finished.RUN, "--coers", "2", status=2).stderr
    )


@slow
def test_a_lock_that_a_killed_run_left_is_released_and_a_working_one_is_not(fresh_clone):
    locks = fresh_clone.folder / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    for number in ("0.input.lock", "0.output.lock"):
        (locks / number).write_text("results/datasets/digits.npz\n")
    first = psutil.Popen(
        [*fresh_clone.RUN, "results/runs/digits/base/m2/n60/prior0.5/abs.parquet"],
        cwd=fresh_clone.folder,
        env=fresh_clone.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    log = fresh_clone.folder / "results" / "logs" / "train"
    while not list(log.rglob("*.log")):
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.05)
    training = [
        one for one in first.children(recursive=True) if "mdpu train" in " ".join(one.cmdline())
    ]
    for one in training:
        one.suspend()
    second = fresh_clone.run(*fresh_clone.RUN, status=1)
    assert "LockException" in second.stdout + second.stderr
    for one in training:
        one.resume()
    said, _ = first.communicate()
    assert first.returncode == 0, said
    assert not list(locks.glob("*"))


@slow
def test_without_a_terminal_a_step_is_a_line_and_a_failure_says_why(finished_clone):
    """As in CI, or under nohup and tee."""
    results = finished_clone.folder / "results"
    (results / "labels" / "digits.npz").write_bytes(b"damaged")
    for file in (results / "runs").rglob("*.parquet"):
        file.unlink()
    said = finished_clone.run(*finished_clone.RUN, status=1).stderr
    assert "Error in rule" in said
    assert re.search(r"(?m)^error: .*digits\.npz", said)
