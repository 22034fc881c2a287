"""What `./run` does between its arguments and Snakemake, without starting it."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from mdpu.pipeline import environment, start

PRINTED = """\
Select jobs to execute...
Execute 1 jobs...

[Fri Nov 27 19:51:15 2026]
localrule split:
    input: labels.npz
    output: split.npz
    jobid: 6

[Fri Nov 27 19:51:16 2026]
Finished jobid: 6 (Rule: split)
1 of 3 steps (33%) done
[Fri Nov 27 19:51:17 2026]
rule train:
    jobid: 4

[Fri Nov 27 19:51:18 2026]
Error in rule train:
    jobid: 4
    log: train.log (check log file(s) for error details)
Logfile train.log:
error: labels.npz is damaged; delete it and run again
"""


def test_a_step_is_a_line_and_an_error_stays_whole():
    assert list(start.condensed(PRINTED.splitlines(keepends=True))) == [
        "1 of 3 steps (33%) done: split\n",
        "Error in rule train:\n",
        "    jobid: 4\n",
        "    log: train.log (check log file(s) for error details)\n",
        "Logfile train.log:\n",
        "error: labels.npz is damaged; delete it and run again\n",
    ]


@pytest.mark.parametrize("word", start.HELP)
def test_help_is_a_command_and_an_option(word, capsys):
    assert start.main([word]) == 0
    assert capsys.readouterr().out.strip() == start.USAGE


def test_configurations_are_apart_from_options_and_targets():
    arguments = ["-n", "--configfile", "a.yaml", "b.yaml", "--configfiles=c.yaml", "--", "tables"]
    files, options, targets = start.split_arguments("config/quick.yaml", arguments)
    assert files == ["config.yaml", "config/quick.yaml", "a.yaml", "b.yaml", "c.yaml"]
    assert options == ["-n"]
    assert targets == ["--", "tables"]


def test_the_last_name_and_folder_say_where_the_page_is(tmp_path):
    (tmp_path / "first.yaml").write_text("name: one\nresults_dir: results\n")
    (tmp_path / "second.yaml").write_text("name: 'two'\n")
    files = [str(tmp_path / "first.yaml"), str(tmp_path / "second.yaml")]
    assert start.page_of(files, []) == start.ROOT / "results/two/report.html"
    for option in ("--directory", "-d"):
        elsewhere = start.page_of(files, [option, "/tmp/x", "--config", "name=three"])
        assert str(elsewhere) == "/tmp/x/results/three/report.html"


@pytest.mark.parametrize(
    ("options", "pages"),
    [
        *((dry, 0) for dry in (["-n"], ["-np"], ["-pn"], ["-nq"], ["-nj2"], ["--dry-run"])),
        *((real, 1) for real in ([], ["-p"], ["-d", "new"], ["--nolock"])),
    ],
)
def test_a_dry_run_names_no_page(monkeypatch, options, pages):
    shown = []
    monkeypatch.setattr(start, "wait_for", lambda command, is_condensed: 0)
    monkeypatch.setattr(start, "release_stale_lock", lambda: None)
    monkeypatch.setattr(start, "show_headline", lambda page, stream: shown.append(page))
    assert start.run_snakemake("config/quick.yaml", options) == 0
    assert len(shown) == pages


def test_the_lock_names_uv_with_its_hashes():
    entry = environment.entry_of_uv(environment.LOCK.read_bytes())
    assert entry.startswith(b"uv==")
    assert b"--hash=sha256:" in entry
    assert not entry.endswith(b"\\")


def test_start_needs_the_standard_library_alone():
    program = "import mdpu.pipeline.environment, mdpu.pipeline.start"
    subprocess.run([sys.executable, "-S", "-c", program], cwd=start.ROOT, check=True)


def test_sigterm_ends_snakemake_and_its_jobs_as_a_terminal_does(tmp_path):
    """Also where SIGINT is ignored at the start, as in a script's background."""
    waits = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"
    starts = "import subprocess, sys; subprocess.call([sys.executable, '-c', *sys.argv[1:]])"
    runs = (
        "import sys; from mdpu.pipeline import start; sys.exit(start.wait_for(sys.argv[1:], True))"
    )
    ready = tmp_path / "ready"
    process = psutil.Popen(
        [sys.executable, "-c", runs, sys.executable, "-c", starts, waits, str(ready)],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        stderr=subprocess.DEVNULL,
    )
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.05)

    below = process.children(recursive=True)
    assert len(below) == 2
    process.terminate()
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    _, alive = psutil.wait_procs(below, timeout=60)
    assert not alive
