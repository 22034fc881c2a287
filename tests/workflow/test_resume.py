"""Killed and started again, a run gives the numbers of an undisturbed one; stopped by a signal, it leaves nothing."""

from __future__ import annotations

import signal
import subprocess
import time

import pandas as pd
import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def start(fresh_clone, tmp_path):
    """What starts `./run`, and returns it with its descendants once it has made a file that a pattern matches."""
    (tmp_path / "tmp").mkdir()
    fresh_clone.change_config(experiments=["tiny-table", "tiny-curves"], expected=None)
    said = tmp_path / "said"

    def start(pattern):
        said.unlink(missing_ok=True)  # what a killed run has left still writes into the one before
        process = psutil.Popen(
            fresh_clone.RUN,
            cwd=fresh_clone.folder,
            env={**fresh_clone.environment, "TMPDIR": str(tmp_path / "tmp")},
            stdout=said.open("w"),
            stderr=subprocess.STDOUT,
        )
        fresh = False
        while not fresh or not any(fresh_clone.results.glob(pattern)):
            assert process.poll() is None, said.read_text()
            if not fresh and process.children():  # Snakemake; what a killed run has left has been ended
                for path in fresh_clone.results.glob(pattern):
                    path.unlink()
                fresh = True
            time.sleep(0.05)
        return process, process.children(recursive=True)

    return start


def test_a_run_that_is_stopped_or_killed_at_any_moment_ends_with_the_same_numbers(
    start, fresh_clone, finished, tmp_path
):
    """SIGINT, then SIGKILL to the launcher, to Snakemake and to all; the same command each time, and no other."""
    process, below = start("logs/splits/**/*.log")
    process.send_signal(signal.SIGINT)  # to the process that ./run names
    assert process.wait() == 128 + signal.SIGINT
    assert "error" not in (tmp_path / "said").read_text()
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in below)

    process, below = start("progress/**/*.json")
    process.kill()
    process.wait()
    assert below[0].is_running()  # Snakemake; a job may just have ended
    left = {one.pid for one in below}

    process, below = start("logs/**/*.log")
    below[0].kill()
    assert process.wait() == 128 + signal.SIGKILL
    said = (tmp_path / "said").read_text()
    assert "was killed; going on from what it finished\nrun: ended what it had left at work: " in said
    assert not left & {one.pid for one in below}
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in below)

    process, below = start("logs/report.log")
    for one in [process, *below]:
        one.kill()
    process.wait()
    assert not (fresh_clone.results / "report.html").exists()

    done = fresh_clone.run(*fresh_clone.RUN)
    assert "was killed; going on from what it finished\n" in done.stdout
    assert fresh_clone.jobs() == {}
    assert not list(fresh_clone.results.rglob("*.pt"))
    for folder in (tmp_path / "tmp", fresh_clone.folder / ".snakemake" / "tmp"):
        assert not list(folder.glob("snakemake*"))
    # A stack that the kill cut in two is finished as two, and a run's bits are its own all the same.
    pd.testing.assert_frame_equal(
        pd.read_parquet(fresh_clone.results / "metrics.parquet"),
        pd.read_parquet(finished.results / "metrics.parquet"),
        check_exact=True,
    )
    assert (fresh_clone.results / "tables/tiny-table.tex").read_bytes() == (
        finished.results / "tables/tiny-table.tex"
    ).read_bytes()
