"""Killed at any moment and started again by the same command, a run gives the numbers of an
undisturbed one.
"""

import signal
import subprocess
import time

import pandas as pd
import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def ignore_interrupts():
    """Do as a script's shell does for what it starts in its background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.fixture
def start(fresh_clone, tmp_path):
    """What starts `./run`, and returns it with its descendants once a file that a pattern matches
    is new.
    """
    said = tmp_path / "said"

    def start(pattern):
        results = fresh_clone.folder / "results"
        before = {path: path.stat().st_mtime_ns for path in results.glob(pattern)}
        with said.open("w") as stream:
            process = psutil.Popen(
                fresh_clone.RUN,
                cwd=fresh_clone.folder,
                env=fresh_clone.environment,
                preexec_fn=ignore_interrupts,
                stdout=stream,
                stderr=stream,
            )
        while all(path.stat().st_mtime_ns == before.get(path) for path in results.glob(pattern)):
            assert process.poll() is None, said.read_text()
            time.sleep(0.05)
        return process, process.children(recursive=True)

    return start


def wait_for_the_end_of(processes):
    _, alive = psutil.wait_procs(processes, timeout=120)
    assert not alive


def test_it_goes_on_after_any_signal_to_the_same_numbers(start, fresh_clone, finished):
    """SIGINT as from a terminal; SIGTERM to `./run`; SIGKILL to Snakemake, then to everything,
    twice.
    """
    process, below = start("logs/splits/**/*.log")
    for one in [process, *below]:
        one.send_signal(signal.SIGINT)
    assert process.wait() != 0
    wait_for_the_end_of(below)

    process, below = start("logs/train/**/*.log")
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 128 + signal.SIGTERM
    wait_for_the_end_of(below)

    process, below = start("logs/train/**/*.log")
    below[0].kill()  # Snakemake; its jobs notice it within an epoch, and end
    assert process.wait() == 128 + signal.SIGKILL
    wait_for_the_end_of(below)

    for pattern in ("runs/**/.*.part.parquet", "tiny/logs/**/*.log"):
        process, below = start(pattern)
        for one in [process, *below]:
            one.kill()
        process.wait()
    assert not (fresh_clone.results / "report.html").exists()

    fresh_clone.run(*fresh_clone.RUN)
    assert fresh_clone.jobs() == {}
    left = [
        path for path in (fresh_clone.folder / "results").rglob("*") if path.name.startswith(".")
    ]
    assert not [*left, *(fresh_clone.folder / "results").rglob("*.checkpoint")]
    pd.testing.assert_frame_equal(
        pd.read_parquet(fresh_clone.results / "metrics.parquet"),
        pd.read_parquet(finished.results / "metrics.parquet"),
        check_exact=True,
    )
    for name in ("tables/tiny-table.tex", "claims.csv"):
        assert (fresh_clone.results / name).read_bytes() == (finished.results / name).read_bytes()


def test_runs_that_a_failed_job_had_finished_are_kept(fresh_clone):
    """Snakemake removes the cell's file when its job fails; a job that is killed in its second run
    had finished one.
    """
    cell = "results/runs/digits/base/m2/n60/prior0.5/abs.parquet"
    fresh_clone.change_config(protocol__training__epochs=200)
    process = subprocess.Popen(
        fresh_clone.command(cell),
        cwd=fresh_clone.folder,
        env=fresh_clone.environment,
        stderr=subprocess.DEVNULL,
    )
    part = (fresh_clone.folder / cell).with_name(".abs.part.parquet")
    while not part.exists():
        assert process.poll() is None
        time.sleep(0.05)
    for job in psutil.Process(process.pid).children(recursive=True):
        job.kill()
    assert process.wait() == 1
    assert not (fresh_clone.folder / cell).exists()
    fresh_clone.snakemake(cell)
    log = fresh_clone.folder / "results/logs/train/digits/base/m2/n60/prior0.5/abs.log"
    assert "2 runs, 1 of them finished" in log.read_text()
    assert not part.exists()
