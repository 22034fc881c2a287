"""`./run`: what it refuses, when it installs, what it starts, and what it says at the end."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.scheduling.job_scheduler import JobRateLimiter
from snakemake.settings.types import MaxJobsPerTimespan

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
    (tmp_path / "requirements.lock").write_text(
        "numpy==1\nuv==0.1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nzzz==2\n"
    )
    return module


@pytest.fixture
def started(run, monkeypatch):
    """Commands that would have been started, with the configuration unread and the signal handlers left alone."""
    commands = []
    monkeypatch.setattr(run, "configure", lambda name, arguments, *options: (Path("chosen.yaml"), arguments))
    monkeypatch.setattr(
        run, "mdpu", lambda *arguments, **_: commands.append(arguments) or SimpleNamespace(returncode=0)
    )

    def popen(command, **_):
        commands.append(command)
        return SimpleNamespace(wait=lambda: 0, send_signal=lambda number: None)

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    return commands


# -- commands -------------------------------------------------------------------------------------


def test_an_unknown_command_is_refused_in_one_sentence_before_anything_is_installed():
    done = subprocess.run([REPOSITORY / "run", "papre"], capture_output=True, text=True)
    assert done.returncode == 1
    assert (
        done.stderr
        == "run: error: 'papre' is no command; known are quick, paper, reference, verify, plan, status, trace, "
        "retrain, diff, crate, check, docs, test (./run --help)\n"
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


def test_an_old_python_is_refused(run, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 2))
    with pytest.raises(SystemExit, match=r"error: Python 3\.11 or newer is needed"):
        run.main()


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
    ("arguments", "expected"),
    [
        ([], ["quick", []]),
        (["-n"], ["quick", ["-n"]]),
        (["quick", "--cores", "4"], ["quick", ["--cores", "4"]]),
        (["paper", "-n"], ["paper", ["-n"]]),
    ],
)
def test_quick_is_the_default_and_arguments_go_to_snakemake(run, monkeypatch, arguments, expected):
    calls = []
    monkeypatch.setattr(sys, "argv", ["run", *arguments])
    monkeypatch.setattr(run, "make_environment", lambda: None)
    monkeypatch.setattr(run, "enter_environment", lambda: None)
    monkeypatch.setattr(run, "workflow", lambda *given: calls.append(list(given)) or 7)
    with pytest.raises(SystemExit) as end:
        run.main()
    assert end.value.code == 7
    assert calls == [expected]


# -- the environment ------------------------------------------------------------------------------


def test_an_environment_of_this_very_lock_is_kept(run, monkeypatch):
    run.VENV.mkdir()
    (run.VENV / "made-from").write_text(hashlib.sha256(run.LOCK.read_bytes()).hexdigest())
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("something was installed"))
    run.make_environment()


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


def test_the_environment_is_entered_as_activating_it_does(run, monkeypatch, tmp_path):
    monkeypatch.chdir("/")
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("VIRTUAL_ENV", "other")
    run.enter_environment()
    assert Path.cwd() == tmp_path
    assert os.environ["PATH"] == f"{tmp_path / '.venv' / 'bin'}{os.pathsep}/usr/bin"
    assert os.environ["VIRTUAL_ENV"] == str(tmp_path / ".venv")


# -- the programs that tests drive ----------------------------------------------------------------

SLURM = ("slurmctld", "slurmd", "sbatch", "munged")


@pytest.fixture
def apt(monkeypatch):
    """Commands of the package manager that would have been run, as root and with ``found`` alone on the path."""
    state = SimpleNamespace(commands=[], found={"apt-get"}, returncode=0)

    def run(command, **_):
        state.commands.append(command)
        return SimpleNamespace(returncode=state.returncode)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("shutil.which", lambda name: name if name in state.found else None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return state


def test_programs_that_are_there_are_not_installed(run, apt, capsys):
    apt.found |= {"chromium", "chromedriver", "npm", "java", "pdflatex", "shellcheck", *SLURM}
    run.find_tools()
    assert (apt.commands, capsys.readouterr().out) == ([], "")


def test_what_is_missing_is_installed_at_once(run, apt, capsys):
    apt.found |= {"chromium", "npm", "java", "shellcheck", *SLURM}  # a browser without its driver is none
    run.find_tools()
    update, install = apt.commands
    assert update[:2] == ["apt-get", "update"]
    assert install[-7:-5] == ["chromium", "chromium-driver"]
    assert all(package.startswith("texlive-") for package in install[-5:])
    assert "will be skipped" not in capsys.readouterr().out


@pytest.mark.parametrize("why", ["not root", "no apt-get", "apt-get fails"])
def test_what_cannot_be_installed_is_skipped_and_said(run, apt, monkeypatch, capsys, why):
    apt.found |= {"chromium", "chromedriver", "npm", "java", "shellcheck", *SLURM}
    if why == "not root":
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    elif why == "no apt-get":
        apt.found.remove("apt-get")
    else:
        apt.returncode = 100
    run.find_tools()
    assert len(apt.commands) == (why == "apt-get fails")
    assert capsys.readouterr().out.endswith("tests of the LaTeX tables will be skipped\n")


# -- the workflow ---------------------------------------------------------------------------------


def test_cores_and_one_gpu_are_given_unless_the_user_does(run):
    file = Path("chosen.yaml")
    quick, paper, cluster = (
        run.snakemake(file, arguments)[3:]
        for arguments in ([], ["--cores=4", "--resources", "gpu=2", "-n"], ["--profile", "profiles/slurm"])
    )
    ours = ["--configfile", "chosen.yaml"]
    cores, gpu, logger = ["--cores", str(os.cpu_count())], ["--resources", "gpu=1"], ["--logger", "mdpu"]
    assert quick == [*ours, *cores, *gpu, *logger]
    assert paper == [*ours, *logger, "--cores=4", "--resources", "gpu=2", "-n"]
    assert cluster == [*ours, *logger, "--profile", "profiles/slurm"]


def test_verbose_gives_snakemakes_own_text(run):
    command = run.snakemake(Path("chosen.yaml"), ["--verbose", "--cores", "2", "-n"])
    assert "--logger" not in command
    assert "--verbose" not in command
    assert command[-3:] == ["--cores", "2", "-n"]


def test_snakemake_is_asked_to_end_while_its_main_thread_holds_the_lock(run, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "workflow" / "plugins")
    starter = importlib.import_module(f"{run.SNAKEMAKE}.__main__")
    scheduler = SimpleNamespace(_lock=threading.Lock(), _open_jobs=threading.Semaphore(0), _user_kill=None)
    with scheduler._lock:  # as when the signal comes
        starter.exit_in_a_thread(scheduler, signal.SIGTERM, None)
        assert scheduler._user_kill is None
    assert scheduler._open_jobs.acquire(timeout=10)
    assert scheduler._user_kill == "graceful"


def test_the_scheduler_selects_again_by_itself_only_if_the_limit_held_jobs_back(run, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "workflow" / "plugins")
    starter = importlib.import_module(f"{run.SNAKEMAKE}.__main__")
    later = []
    monkeypatch.setattr(starter, "select_later", lambda _, delay: later.append(delay))
    scheduler = SimpleNamespace(job_rate_limiter=JobRateLimiter(MaxJobsPerTimespan(2, "1h")))
    starter.select_later_if_held_back(scheduler, 3600)  # nothing was started yet
    starter.register_and_look(scheduler.job_rate_limiter, 1)
    starter.select_later_if_held_back(scheduler, 3600)
    assert later == []
    starter.register_and_look(scheduler.job_rate_limiter, 1)
    starter.select_later_if_held_back(scheduler, 3600)
    assert later == [3600]


def test_jobs_that_the_limit_held_back_are_started_later(run, tmp_path):
    """The two that may be started at once have ended when the others may, so that nothing else wakes the scheduler."""
    (tmp_path / "Snakefile").write_text(
        "rule all:\n    input: [f'{name}.txt' for name in 'abcde']\n"
        "rule one:\n    output: '{name}.txt'\n    shell: 'touch {output}'\n"
    )
    command = [sys.executable, "-m", run.SNAKEMAKE, "--cores", "2", "--max-jobs-per-timespan", "2/2s"]
    plugins = {**os.environ, "PYTHONPATH": str(REPOSITORY / "workflow" / "plugins")}
    done = subprocess.run(command, cwd=tmp_path, env=plugins, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "6 of 6 steps (100%) done" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "files", "values", "others"),
    [
        ([], [], [], []),
        (["--configfile", "a.yaml", "b.yaml", "--cores", "2"], ["a.yaml", "b.yaml"], [], ["--cores", "2"]),
        (["--configfile=a.yaml", "-n"], ["a.yaml"], [], ["-n"]),
        (["--config", "datasets=[mnist]", "threads=2", "-n"], [], ["datasets=[mnist]", "threads=2"], ["-n"]),
        (["-C", "a=b", "--config", "c=d=e", "--", "target"], [], ["a=b", "c=d=e"], ["--", "target"]),
    ],
)
def test_what_selects_is_resolved_before_snakemake_reads_it(run, monkeypatch, arguments, files, values, others):
    commands = []

    def mdpu(*command, **_):
        commands.append(command)
        return SimpleNamespace(returncode=0, stdout="results/quick/config/1.yaml\n")

    monkeypatch.setattr(run, "mdpu", mdpu)
    assert run.configure("quick", arguments, "--files") == (Path("results/quick/config/1.yaml"), others)
    chosen = [*(f"--file={file}" for file in files), *(f"--set={value}" for value in values)]
    assert commands == [("select", "quick", *chosen, "--files")]


def test_a_wrong_configuration_ends_with_the_status_of_what_read_it(run, monkeypatch):
    monkeypatch.setattr(run, "mdpu", lambda *_, **__: SimpleNamespace(returncode=2, stdout=""))
    with pytest.raises(SystemExit) as end:
        run.workflow("quick", [])
    assert end.value.code == 2


def test_it_ends_with_the_outcome_of_what_it_made(run, started):
    assert run.workflow("paper", ["--cores", "2"]) == 0
    assert started[0][:3] == [str(run.VENV / "bin" / "python"), "-m", run.SNAKEMAKE]
    assert started[1] == ("outcome", "--config=chosen.yaml")


def test_a_dry_run_claims_nothing(run, started):
    for option in ("-n", "--dry-run", "--dryrun"):
        assert run.workflow("quick", [option]) == 0
    assert len(started) == 3
    assert all(run.SNAKEMAKE in command for command in started)


def test_one_that_works_in_the_folder_stops_all_but_looks(run, started, tmp_path):
    run.Hold(tmp_path, "./run paper", print).take()
    with pytest.raises(SystemExit, match=r"^run: error: \./run paper \(process .*\) is at work in this folder; wait"):
        run.workflow("quick", [])
    assert started == []
    for option in ("-n", "--summary", "--dag", "--list-rules"):
        run.workflow("quick", [option])
    assert len(started) == 4


def test_a_failed_workflow_claims_nothing_and_hands_its_status_on(run, monkeypatch, started):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: SimpleNamespace(wait=lambda: 3))
    assert run.workflow("quick", []) == 3
    assert started == []


# Shells let their background commands ignore SIGINT, and these tests may be one.
STOPPED = """\
def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)
"""


@pytest.mark.parametrize(("second", "outcomes"), [(0, 1), (1, 0)])
def test_keep_going_reports_what_was_trained_and_still_fails(run, monkeypatch, started, second, outcomes):
    commands = []
    statuses = iter([1, second])  # of the workflow, and of the report on the rest

    def start(command, **_):
        commands.append(command)
        return SimpleNamespace(wait=lambda: next(statuses))

    monkeypatch.setattr(subprocess, "Popen", start)
    assert run.workflow("quick", ["--keep-going"]) == 1
    first, rest = commands
    assert rest == [*first, "--config", "without_failed=True"]
    assert [command[0] for command in started] == ["outcome"] * outcomes


def test_a_signal_before_the_workflow_has_started_is_handed_on(run, monkeypatch, started):
    sent, handlers = [], {}

    def start(command, **_):
        handlers[signal.SIGINT](signal.SIGINT, None)
        return SimpleNamespace(wait=lambda: 1, send_signal=sent.append)

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr("signal.signal", handlers.__setitem__)
    assert run.workflow("quick", []) == 128 + signal.SIGINT
    assert sent == [signal.SIGINT]


def test_a_workflow_in_the_background_can_be_interrupted(run):
    """Shells start background commands with SIGINT ignored, which a child would inherit."""
    ask = "import signal, sys; sys.exit(signal.getsignal(signal.SIGINT) is not signal.default_int_handler)"
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run.work([sys.executable, "-c", ask], "./run") == 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_run_that_is_interrupted_before_its_workflow_ends_without_a_traceback(tmp_path):
    script = tmp_path / "run"
    script.write_text((REPOSITORY / "run").read_text().replace("def main() -> None:\n", STOPPED))
    (tmp_path / "mdpu").symlink_to(REPOSITORY / "mdpu")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == ""


def test_who_stops_a_run_gets_no_report_on_the_rest(run, monkeypatch, started):
    sent, handlers = [], {}

    def wait():
        handlers[signal.SIGINT](signal.SIGINT, None)
        return 1

    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: SimpleNamespace(wait=wait, send_signal=sent.append))
    monkeypatch.setattr("signal.signal", handlers.__setitem__)
    assert run.workflow("quick", ["-k"]) == 128 + signal.SIGINT
    assert sent == [signal.SIGINT]
    assert started == []
