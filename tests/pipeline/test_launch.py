"""What `./run` starts, hands on and refuses, once its environment stands; Snakemake is another program here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mdpu.pipeline import launch as launcher
from mdpu.pipeline import lock as lock_module
from mdpu.pipeline.config import select
from mdpu.pipeline.launch import comparable, launch, snakemake, take, work
from mdpu.pipeline.lock import Lock, descendants, read_head


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone in which nothing is known but how to start Snakemake; signals do what they do."""
    monkeypatch.setattr(launcher, "REPOSITORY", tmp_path)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def started(clone, monkeypatch):
    """The commands of Snakemake that were started, and the statuses with which they end; 0 if there are none left."""
    layout = SimpleNamespace(
        write_config=lambda current=False: Path("chosen.yaml"), config=clone / "chosen.yaml", results=clone / "results"
    )
    plan = SimpleNamespace(layout=layout, config={}, prepared=[])
    state = SimpleNamespace(commands=[], statuses=[], plan=plan)
    (clone / "chosen.yaml").touch()
    (clone / "results").mkdir()
    (clone / "results" / "report.html").touch()

    def popen(command, **_):
        state.commands.append(command)
        return SimpleNamespace(wait=lambda: state.statuses.pop(0) if state.statuses else 0)

    monkeypatch.setattr(launcher, "_choose", lambda experiment, arguments, current=False: (plan, arguments))
    monkeypatch.setattr(launcher, "made_by_rules", lambda plan: [])
    monkeypatch.setattr(launcher, "repair", lambda plan, made: [])
    monkeypatch.setattr(launcher, "comparable", lambda experiment, config: True)
    monkeypatch.setattr(launcher, "report_outcome", lambda plan: (["it is done"], True))
    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: SimpleNamespace(returncode=popen(command).wait()))
    return state


# -- arguments ------------------------------------------------------------------------------------


YAML = r"\.(ya?ml|json)$"


@pytest.mark.parametrize(
    ("arguments", "names", "more", "values", "others"),
    [
        ("", ["--config"], "=", "", ""),
        ("--configfile a.yaml b.yaml --cores 2", ["--configfile"], YAML, "a.yaml b.yaml", "--cores 2"),
        ("--configfile a.yaml tables -n", ["--configfile"], YAML, "a.yaml", "tables -n"),
        ("--config datasets=[mnist] threads=2 tables", ["--config"], "=", "datasets=[mnist] threads=2", "tables"),
        ("--config wrong", ["--config"], "=", "wrong", ""),
        ("tables --config x=1 y=2 -n --config=z=3", ["--config", "-C"], "=", "x=1 y=2 z=3", "tables -n"),
        ("--runs 5 figures", ["--runs"], "", "5", "figures"),
        ("-c2 --config x=1", ["--cores", "-c"], "", "2", "--config x=1"),
    ],
)
def test_values_are_taken_out_of_arguments(arguments, names, more, values, others):
    assert take(arguments.split(), *names, more=more) == (values.split(), others.split())


def test_an_option_without_its_value_is_named():
    with pytest.raises(ValueError, match=r"^argument --runs: expected 1 argument$"):
        take(["--runs", "--seed", "1"], "--runs")


@pytest.mark.parametrize(
    ("arguments", "ours"),
    [
        ([], ["--resources", "gpu=1", "--logger", "mdpu", "--cores", str(os.cpu_count())]),
        (["--cores=4", "--resources", "gpu=2", "-n"], ["--logger", "mdpu"]),
        (["--profile", "profiles/slurm"], ["--logger", "mdpu"]),
        (["--verbose", "-c", "2"], ["--resources", "gpu=1"]),  # Snakemake's own text
    ],
)
def test_what_the_user_gives_is_not_given_again_and_no_option_swallows_a_target(arguments, ours):
    program, *command = snakemake(Path("chosen.yaml"), arguments)
    assert Path(program).name == "snakemake"
    given = [argument for argument in arguments if argument != "--verbose"]
    assert command == ["--configfile", "chosen.yaml", *ours, *launcher.DEFAULTS, *given]
    assert launcher.DEFAULTS[-2:] == ["--scheduler", "greedy"]  # an option that takes one value


# -- the workflow ---------------------------------------------------------------------------------


def test_it_ends_with_the_outcome_of_what_it_made(started, monkeypatch, capsys):
    assert launch("paper", ["--cores", "2"]) == 0
    assert capsys.readouterr().out == "run: it is done\n"
    monkeypatch.setattr(launcher, "report_outcome", lambda plan: ([], False))
    assert launch("paper", []) == 1
    assert len(started.commands) == 2


@pytest.mark.parametrize(("arguments", "goes_on"), [(["--cores", "2", "tables"], False), (["-k"], True)])
def test_what_tells_which_runs_are_finished_is_made_first(started, monkeypatch, arguments, goes_on):
    started.plan.prepared = [Path("labels.npz")]
    assert launch("paper", arguments) == 0
    started.statuses = [1]
    assert launch("paper", arguments) == (0 if goes_on else 1)
    first, second, *_ = started.commands
    assert first == snakemake(
        Path("chosen.yaml"), [*arguments[:2], "prepare"] if "--cores" in arguments else ["prepare"]
    )
    assert second == snakemake(Path("chosen.yaml"), arguments)
    assert len(started.commands) == (4 if goes_on else 3)


def test_damage_is_mended_before_it_is_asked_what_is_there(started, clone, monkeypatch, capsys):
    """Images that only look whole would lead to a job for each finished training."""
    images = clone / "images.npz"
    images.touch()
    started.plan.prepared = [images]

    def mend(plan, made):
        images.unlink()
        return ["the images are made anew"]

    monkeypatch.setattr(launcher, "repair", mend)
    assert launch("paper", []) == 0
    assert capsys.readouterr().out.startswith("run: the images are made anew\n")
    assert [command[-1] == "prepare" for command in started.commands] == [True, False]


def test_one_that_works_in_the_folder_stops_all_but_looks(started, clone):
    with Lock(clone, "./run paper", print):
        with pytest.raises(ValueError, match=r"^\./run paper \(process .*\) is at work in this folder; wait"):
            launch("quick", [])
        assert started.commands == []
        for option in ("-n", "--dry-run", "--dryrun", "--summary", "--dag", "--list-rules"):
            assert launch("quick", [option]) == 0
    assert len(started.commands) == 6


@pytest.mark.parametrize(("second", "said"), [(0, True), (1, False)])
def test_keep_going_reports_what_was_trained_and_still_fails(started, capsys, second, said):
    started.statuses = [3]
    assert launch("quick", []) == 3
    assert "it is done" not in capsys.readouterr().out
    started.statuses = [1, second]
    assert launch("quick", ["--keep-going"]) == 1
    _, first, rest = started.commands
    assert rest == [*first, "--config", "without_failed=True"]
    assert ("it is done" in capsys.readouterr().out) == said


@pytest.mark.parametrize(
    ("values", "agree"),
    [
        ([], True),
        (["name=mine", "threads=2", "axes={method: [ure]}"], True),
        (["protocol={training: {epochs: 5}}"], False),
        (["axes={seed: [1]}"], False),
        (["protocol={training: {epochs: 5}}", "expected=mine.csv"], True),
    ],
)
def test_numbers_of_another_protocol_or_of_other_seeds_are_not_compared(values, agree):
    assert comparable("quick", select("quick", [], values)) == agree


# -- the end --------------------------------------------------------------------------------------

HEAD = """\
import signal, sys
from pathlib import Path
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the suite itself may run under nohup
from mdpu.pipeline import launch, lock
from mdpu.pipeline.lock import Lock
lock.SECONDS_TO_END = 0.5
launch.REPOSITORY = Path(sys.argv[1])
def carry_out(command, given):
    with Lock(launch.REPOSITORY, "./run quick", launch.say) as lock:
        return launch.work(["bash", "-c", sys.argv[2]], lock)
launch._carry_out = carry_out
sys.exit(launch.launch("quick", []))
"""


@pytest.fixture
def head(tmp_path):
    """What starts a head with another program for Snakemake, once that is at work."""

    def start(program):
        command = [sys.executable, "-c", HEAD, str(tmp_path), program]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout.readline() == "ready\n"
        return process

    return start


@pytest.mark.parametrize("asked", ["", "trap '' INT TERM; "])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_head_ends_all_that_works(head, tmp_path, number, asked):
    """Also what does not end when it is asked to."""
    process = head(f"{asked}sleep 60 & echo ready; wait; wait; sleep 60")
    token = read_head(tmp_path).token
    process.send_signal(number)
    said = process.communicate()[0]
    assert process.returncode == 128 + number
    assert "Traceback" not in said
    assert said.endswith("run: what was finished is kept, and the same command goes on from there\n")
    assert not descendants(token)
    with Lock(tmp_path, "./run quick", pytest.fail):
        pass


def test_a_killed_snakemake_is_cleared_up_behind(clone):
    with Lock(clone, "./run quick", print) as lock:
        assert work(["bash", "-c", "sleep 60 & kill -9 $$"], lock) == 128 + signal.SIGKILL
        assert not descendants(lock.head.token)
    with Lock(clone, "./run quick", pytest.fail):
        pass


def test_jobs_of_a_cluster_outlive_sigterm_and_are_left_to_the_next_head(clone, monkeypatch):
    """SIGINT lets Snakemake cancel them."""
    monkeypatch.setattr(lock_module, "slurm_jobs", lambda _: {})
    for number, sent, left in ((signal.SIGTERM, signal.SIGKILL, True), (signal.SIGINT, signal.SIGINT, False)):
        child = SimpleNamespace(signals=[])

        def wait(seconds=None, child=child, number=number):
            if not child.signals:
                raise launcher.StoppedError(number)
            return -9 if child.signals == [signal.SIGKILL] else 1

        child.wait, child.send_signal = wait, child.signals.append
        monkeypatch.setattr(subprocess, "Popen", lambda *_, child=child, **__: child)
        lock = Lock(clone, "./run paper --profile profiles/slurm", print)
        with lock, pytest.raises(launcher.StoppedError):
            work([], lock)
        assert child.signals == [sent]
        assert lock.left == left
