"""The command line by hand: what it prints, and how a mistake of the user's ends."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from mdpu.pipeline import cli
from mdpu.pipeline.files import REPOSITORY

CONFIG = ["--config", "config.yaml", "--config", "config/tiny.yaml"]


def mdpu(*arguments: object, cwd: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which spares importing torch each time; a traceback fails the test."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    argv = ["mdpu", *map(str, arguments)]
    with (
        contextlib.chdir(cwd),
        mock.patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as end:
            status = int(end.code or 0)
    return subprocess.CompletedProcess(argv, status, out.getvalue(), err.getvalue())


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "there is not enough memory; give the job more, or ask for less"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "there is not enough memory; give"),
        (
            RuntimeError("CUDA error: unspecified launch failure\nCompile with"),
            "the GPU failed (CUDA error: unspecified",
        ),
        (
            OSError(errno.EIO, "Input/output error"),
            "a file could not be read or written (Input/output error); mend that",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "a.log"),
            "a.log could not be read or written (No space left",
        ),
        (RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed"), "a checkpoint could not"),
    ],
)
def test_what_the_machine_does_to_a_job_ends_in_one_sentence(monkeypatch, error, sentence):
    monkeypatch.setattr(cli, "app", mock.Mock(side_effect=error))
    assert_user_error(mdpu(), sentence)


def test_an_error_of_our_own_keeps_its_traceback(monkeypatch):
    for error in (RuntimeError("mat1 and mat2 cannot be multiplied"), FileNotFoundError(errno.ENOENT, "No such file")):
        monkeypatch.setattr(cli, "app", mock.Mock(side_effect=error))
        with pytest.raises(type(error)):
            mdpu()


def assert_user_error(done: subprocess.CompletedProcess[str], sentence: str) -> None:
    """One line, status 2, no traceback; progress may stand before it."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    *before, last = done.stderr.splitlines()
    assert last.startswith("error: ")
    assert sentence in last
    assert "Traceback" not in done.stderr
    assert not [line for line in before if line.startswith(("error", " "))]


# -- what it prints -------------------------------------------------------------------------------


def test_help_lists_every_command_in_its_panel():
    command = [sys.executable, "-m", "mdpu", "--help"]
    environment = {**os.environ, "COLUMNS": "120"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    registered = [command.name or command.callback.__name__ for command in cli.app.registered_commands]
    # The rest of a line that starts with a name and a space is its description, which may go on below.
    listed = [match[1] for match in re.finditer(r"^│ ([a-z-]+) +[A-Z]", done.stdout, re.MULTILINE)]
    assert listed == registered
    for name in {*registered} - {"run"}:  # which hands all options on
        assert mdpu(name, "--help").returncode == 0, name


def test_commands_load_only_what_they_need():
    """A split is drawn in thousands of jobs, and must not wait for torch."""
    program = (
        "import sys\nfrom mdpu.pipeline import cli\n"
        "sys.argv = ['mdpu', 'split', '--labels', 'no.npz', '--tuple-size', '2', "
        "'--prior', '0.5', '--n', '2', '--n-unlabeled', '2', '--trial', 'one', '--out', 'no-out.npz']\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        "import mdpu.pipeline.data.splits\n"
        "print([name for name in ('torch', 'pandas', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout == "[]\n"
    assert "no.npz does not exist" in done.stderr


# -- mistakes -------------------------------------------------------------------------------------


SPLIT = {"--tuple-size": 2, "--prior": 0.5, "--n": 10, "--n-unlabeled": 10, "--trial": "digits/m2/n60/prior0.5/seed1"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"--prior": 1.5}, "prior 1.5 is not strictly between 0 and 1"),
        ({"--n": 0}, "n is 0; at least 1 is needed"),
        ({"--n-unlabeled": -3}, "n_unlabeled is -3; at least 1 is needed"),
        ({"--n": 5000}, "the largest n that fits M = 2, prior 0.5 is"),
    ],
)
def test_splits_that_cannot_be_drawn_are_refused(finished, tmp_path, changes, sentence):
    options = {**SPLIT, **changes, "--labels": finished.results / "labels/digits.npz", "--out": tmp_path / "split.npz"}
    done = mdpu("split", "--no-replacement", *(part for option in options.items() for part in option))
    assert_user_error(done, sentence)
    assert list(tmp_path.iterdir()) == []


READERS = {
    "../datasets/digits.npz": [
        ["labels", "digits", *CONFIG],
        ["sheet", "digits", *CONFIG],
    ],
    "labels/digits.npz": [
        ["split", "--labels", "BAD", *(part for option in SPLIT.items() for part in option), "--out", "new.npz"],
        ["sheet", "digits", *CONFIG],
    ],
    "summary.csv": [
        *(["evaluate", part, *CONFIG] for part in ("verification", "comparison", "claims", "ranks")),
        ["show", "tiny-table", *CONFIG],
    ],
    "metrics.parquet": [["show", "tiny-curves", *CONFIG], ["report", *CONFIG]],
    "tables/table1.csv": [["report", *CONFIG]],
}


@pytest.mark.parametrize("broken", ["missing", "truncated"])
def test_broken_inputs_are_named_by_every_command_and_nothing_is_written(finished_clone, broken):
    for name, commands in READERS.items():
        file = (finished_clone.results / name).resolve()
        whole = file.read_bytes()
        file.unlink()
        if broken == "truncated":
            file.write_bytes(whole[: len(whole) // 2])
        before = {path: path.stat().st_mtime_ns for path in finished_clone.results.rglob("*.*")}
        for command in commands:
            done = mdpu(*[file if part == "BAD" else part for part in command], cwd=finished_clone.folder)
            assert_user_error(done, file.name)
        assert {path: path.stat().st_mtime_ns for path in finished_clone.results.rglob("*.*")} == before
        file.write_bytes(whole)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        *(
            (["coefficients", "--tuple-size", 2, "--prior", prior], "strictly between 0 and 1")
            for prior in (0, 1, "nan")
        ),
        (["dataset", "mnits", "--config", "config.yaml", "--out", "out.npz"], "source 'mnits' is unknown"),
        (["labels", "mnits", "--config", "config.yaml"], "dataset: 'mnits' is unknown; did you mean 'mnist'?"),
        (["plan", "--config", "no.yaml"], "no.yaml does not exist"),
        (["sheet", "mnits", "--config", "config.yaml"], "dataset: 'mnits' is unknown; did you mean 'mnist'?"),
        (
            ["evaluate", "verification", "--config", "config.yaml"],
            "config key expected: there are no numbers to verify",
        ),
    ],
)
def test_a_slip_ends_in_one_sentence(arguments, sentence):
    assert_user_error(mdpu(*arguments), sentence)


@pytest.mark.parametrize("out", ["", ".", "pipe", "below/a-file"])
def test_an_output_that_cannot_be_a_file_is_refused(finished, tmp_path, out):
    (tmp_path / "below").write_text("a file")
    os.mkfifo(tmp_path / "pipe")
    options = {**SPLIT, "--labels": finished.results / "labels/digits.npz", "--out": out}
    done = mdpu("split", *(part for option in options.items() for part in option), cwd=tmp_path)
    assert_user_error(done, "is no regular file" if out != "below/a-file" else "could not be written")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["below", "pipe"]
