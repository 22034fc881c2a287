"""`./run`: what it refuses, when it installs, and what it becomes; `mdpu.pipeline.launch` does the rest."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import signal
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace

import pytest

from mdpu.pipeline.files import REPOSITORY


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The launcher as a module whose repository is an empty folder."""
    loader = SourceFileLoader("run_script", str(REPOSITORY / "run"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_script", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "LOCK", tmp_path / "requirements.lock")
    monkeypatch.setattr(module, "STATE", tmp_path / ".snakemake")
    monkeypatch.setattr(module, "PYTHON", "python")
    (tmp_path / "requirements.lock").write_text(
        "numpy==1\nuv==0.1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nzzz==2\n"
    )
    return module


# -- commands -------------------------------------------------------------------------------------


def test_an_unknown_command_is_refused_in_one_sentence_before_anything_is_installed():
    done = subprocess.run([REPOSITORY / "run", "papre"], capture_output=True, text=True)
    assert done.returncode == 1
    assert (
        done.stderr
        == "run: error: 'papre' is no command; known are quick, paper, reference, laws, verify, plan, status, crate, "
        "trace, retrain, diff, demo, check, docs, test (./run --help)\n"
    )
    assert done.stdout == ""


def test_help_says_what_the_commands_do():
    done = subprocess.run([REPOSITORY / "run", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    listed = [line.split()[1].strip("[]") for line in done.stdout.splitlines() if line.startswith("  ./run ")]
    known = subprocess.run([REPOSITORY / "run", "papre"], capture_output=True, text=True).stderr
    commands = known.partition("known are ")[2].partition(" (")[0].split(", ")
    assert set(listed) == set(commands)
    readme = (REPOSITORY / "README.md").read_text()
    assert not [command for command in commands if f"`./run {command}" not in readme.replace("./run [", "./run ")]


@pytest.mark.parametrize("brace", "{}")
def test_a_clone_with_a_brace_in_its_name_is_refused(run, monkeypatch, tmp_path, brace):
    monkeypatch.setattr(run, "ROOT", tmp_path / f"a{brace}")
    with pytest.raises(SystemExit, match="has a brace in its name, which Snakemake reads as a wildcard"):
        run.main()


def test_it_needs_nothing_but_the_standard_library():
    """Isolated from every installed package, the launcher still starts."""
    command = [sys.executable, "-I", "-S", str(REPOSITORY / "run"), "--help"]
    assert subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "becomes"),
    [
        ([], ["mdpu", "run", "quick"]),
        (["-n"], ["mdpu", "run", "quick", "-n"]),
        (["paper", "--cores", "4"], ["mdpu", "run", "paper", "--cores", "4"]),
        (["status"], ["mdpu", "run", "status"]),
        (["trace", "a"], ["mdpu", "trace", "a"]),
        (["check"], ["mdpu", "check", "results/quick"]),
        (["check", "b", "a"], ["mdpu", "check", "results/a", "results/b"]),
        (["test", "-k", "a"], ["pytest", "-k", "a"]),
        (["docs"], ["sphinx", "-W"]),
    ],
)
def test_it_becomes_the_process_that_does_the_work(run, monkeypatch, tmp_path, arguments, becomes):
    """In the environment, which it enters as activating it does."""
    (tmp_path / "results" / "quick" / "config").mkdir(parents=True)
    run.VENV.mkdir()
    (run.VENV / "made-from").touch()
    calls = []
    monkeypatch.chdir("/")
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("VIRTUAL_ENV", "other")
    monkeypatch.setattr(sys, "argv", ["run", *arguments])
    for name in ("make_environment", "find_tools", "find_axe"):
        monkeypatch.setattr(run, name, lambda: None)
    monkeypatch.setattr(os, "execv", lambda *given: calls.append(given))
    run.main()
    ((program, command),) = calls
    assert (program, command[: 2 + len(becomes)]) == ("python", ["python", "-m", *becomes])
    assert Path.cwd() == tmp_path
    assert os.environ["PATH"] == f"{run.VENV / 'bin'}{os.pathsep}/usr/bin"
    assert os.environ["VIRTUAL_ENV"] == str(run.VENV)


# -- the environment ------------------------------------------------------------------------------


@pytest.mark.parametrize("stamp", [None, "of another lock"])
def test_an_environment_is_made_anew_when_the_lock_changed_or_an_installation_was_cut_short(run, monkeypatch, stamp):
    commands, locks = [], []
    run.VENV.mkdir()
    (run.VENV / "old").touch()
    if stamp:
        (run.VENV / "made-from").write_text(stamp)

    def install(command, **_):
        commands.append(command)
        if "-m" in command:
            locks.append(Path(command[-1]).read_text())
        run.VENV.mkdir(exist_ok=True)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", install)
    run.make_environment()
    assert not (run.VENV / "old").exists()
    assert (run.VENV / "made-from").read_text() == hashlib.sha256(run.LOCK.read_bytes()).hexdigest()
    assert all("--require-hashes" in command for command in commands if str(run.LOCK) in command or "-r" in command)
    # The tests run in an environment, and so may its user: the Python of neither outlives the old .venv.
    installer, maker = commands[0][0], next(c for c in commands if "venv" in c)[-2]
    assert installer == maker
    assert Path(installer).resolve().is_relative_to(Path(sys.base_prefix).resolve())
    assert not Path(installer).is_relative_to(sys.prefix)
    assert locks == ["uv==0.1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"]
    commands.clear()
    run.make_environment()
    assert commands == []


def test_an_environment_of_another_clone_is_left_as_it_is(run, monkeypatch, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "made-from").write_text("another lock")
    run.VENV.symlink_to(other)
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: run.VENV.mkdir(exist_ok=True) or SimpleNamespace(returncode=0)
    )
    run.make_environment()
    assert not run.VENV.is_symlink()
    assert (other / "made-from").read_text() == "another lock"


def test_a_failed_installation_ends_in_one_sentence_and_is_tried_again(run, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1))
    for _ in range(2):
        with pytest.raises(SystemExit, match="run: error: the environment could not be installed; see above"):
            run.make_environment()
    assert not (run.VENV / "made-from").exists()


def test_who_works_keeps_its_environment(run):
    run.STATE.mkdir()
    run.VENV.mkdir()
    with (run.STATE / "run.lock").open("a") as head:
        fcntl.flock(head, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match=r"run: error: requirements\.lock has changed, and another \./run works"):
            run.make_environment()
    assert run.VENV.exists()


def test_an_installation_that_is_interrupted_ends_without_a_traceback(tmp_path):
    """Shells let their background commands ignore SIGINT, and this test may be one."""
    script = tmp_path / "run"
    stop = "    signal.signal(signal.SIGINT, signal.default_int_handler)\n    signal.raise_signal(signal.SIGINT)\n"
    text = (
        (REPOSITORY / "run").read_text().replace("def main() -> None:\n", f"import signal\ndef main() -> None:\n{stop}")
    )
    script.write_text(text)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "")
