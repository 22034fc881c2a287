"""Machines that the authors do not have: parts of the tiny experiment, made in each by real
processes.

docs/explanation/faults.md lists the machines, those too that other files try.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mdpu.pipeline.config import load_config
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.store import read_runs

pytestmark = pytest.mark.slow

FIGURE = "results/tiny/figures/figure2.svg"
CELL = "digits/base/m2/n60/prior0.5/abs"
NOBODY = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]  # an id without a name
# who may read the environment
NOBODY += ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
FULL = (
    'mount -t tmpfs -o size=4k none "$TMPDIR" && ! head -c 9999 /dev/zero 2>&- > "$TMPDIR/full"; '
    'exec "$@"'
)
MOUNT = ["unshare", "--mount", "sh", "-c", FULL, "sh"]
MACHINES = {
    "started from a notebook": (
        [],
        {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "PYTHONOPTIMIZE": "2"},
    ),
    "CI with colours forced": (
        [],
        {"CI": "1", "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TERM": "dumb"},
    ),
    "ASCII": (
        [],
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
    ),
    "full TMPDIR": (MOUNT, {}),
}
ODD = "it's a [clone], 100 % ünusual; $HOME"


def start(clone, *command, status=0, **changes):
    """Run a command with changes of its environment, insist on its status, and return what it
    prints.
    """
    environment = {
        name: value for name, value in {**clone.environment, **changes}.items() if value is not None
    }
    done = subprocess.run(
        command, cwd=clone.folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


def can(*command):
    return shutil.which(command[0]) and subprocess.run(command, capture_output=True).returncode == 0


def path_without(program, folder):
    """A PATH on which everything is but one program."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for file in Path(place).glob("*"):
            if file.name != program and not (folder / file.name).is_symlink():
                (folder / file.name).symlink_to(file)
    return f"{Path(sys.executable).parent}{os.pathsep}{folder}"


@pytest.fixture(scope="module")
def clone(finished, tmp_path_factory):
    """A finished clone without the figure, which every test but the last leaves so."""
    copy = finished.copy(tmp_path_factory.mktemp("machines") / "clone")
    (copy.folder / FIGURE).unlink()
    return copy


def make_figure(clone, finished, *prefix, options=(), place=None, **changes):
    """Make the figure, which has to be that of the finished clone, and remove it."""
    said = start(clone, *prefix, "./run", "tiny", FIGURE, "--cores", "1", *options, **changes)
    made = (place or clone.folder) / FIGURE
    assert made.read_bytes() == (finished.folder / FIGURE).read_bytes()
    made.unlink()
    return said


@pytest.mark.parametrize("name", MACHINES)
def test_a_figure_is_made(clone, finished, tmp_path, name):
    prefix, changes = MACHINES[name]
    if prefix and not can("unshare", "--mount", "true"):
        pytest.skip("mounts need root")
    make_figure(
        clone, finished, *prefix, **{**changes, **({"TMPDIR": str(tmp_path)} if prefix else {})}
    )


def test_a_clone_may_have_an_odd_path_and_be_reached_by_a_link(clone, finished, tmp_path):
    odd = clone.copy(tmp_path / ODD)
    (tmp_path / "link").symlink_to(odd.folder)
    said = make_figure(type(clone)(tmp_path / "link"), finished)
    assert f"The report: {odd.results / 'report.html'}" in said


@pytest.mark.skipif(not can(*NOBODY, "true"), reason="to be another user takes root")
def test_a_user_without_a_name_and_a_home_works_in_a_clone_of_their_own_and_reads_anothers(
    clone, finished, tmp_path
):
    nobody = {"HOME": None, "USER": None, "LOGNAME": None}
    own = clone.copy(tmp_path / "clone")
    subprocess.run(["chown", "-R", "12345", own.folder], check=True)
    make_figure(own, finished, *NOBODY, **nobody)
    before = clone.digests()
    with tempfile.TemporaryDirectory() as out:  # where others may go
        os.chown(out, 12345, 12345)
        make_figure(
            clone,
            finished,
            *NOBODY,
            options=["--directory", out],
            place=Path(out),
            **{**nobody, "HOME": out},
        )
    assert clone.digests() == before


def test_a_clock_that_jumped_back_makes_nothing_twice(clone):
    """What was made tomorrow is newer than what was made of it today."""
    for path in (clone.folder / "results/splits").rglob("*.npz"):
        os.utime(path, (time.time() + 86400,) * 2)
    assert "Nothing to be done" in start(clone, *clone.RUN, f"results/runs/{CELL}.parquet")


def test_a_profile_for_a_cluster_that_is_not_here_is_told(clone, tmp_path):
    (tmp_path / "config.yaml").write_text("executor: slurm\njobs: 10\n")
    path = path_without("sbatch", tmp_path / "bin")
    said = start(clone, *clone.RUN, FIGURE, status=1, SNAKEMAKE_PROFILE=str(tmp_path), PATH=path)
    assert "SNAKEMAKE_PROFILE" in said
    assert not (clone.folder / FIGURE).exists()


def test_all_output_is_deleted_aloud(clone):
    page = clone.results / "report.html"
    shipped = clone.folder / "results/reference/report.html"
    assert "Would delete results/tiny/report.html" in start(
        clone, *clone.RUN, "--delete-all-output", "-n"
    )
    assert page.exists()
    assert "Deleting results/tiny/report.html" in start(clone, *clone.RUN, "--delete-all-output")
    assert shipped.exists() and not page.exists()


# -- a training job by hand -----------------------------------------------------------------------


def train(finished, out, *prefix, status=0, **changes):
    """Train a cell by the command of its rule, and return its runs and what is printed."""
    plan = Plan(load_config([finished.folder / "config/tiny.yaml"]))
    root = finished.folder / "results"
    files = ["--images", root / "datasets/digits.npz", "--labels", root / "labels/digits.npz"]
    files += [
        "--split",
        root / f"splits/{CELL.rpartition('/')[0]}.npz",
        "--spec",
        json.dumps(plan.spec(CELL)),
    ]
    command = [
        *prefix,
        sys.executable,
        "-m",
        "mdpu",
        "train",
        *map(str, files),
        "--out",
        str(out),
        "--device",
        "cpu",
    ]
    said = start(finished, *command, status=status, **changes)
    return read_runs(out) if out.exists() else {}, said


@pytest.mark.parametrize(
    ("prefix", "threads"), [(["taskset", "-c", str(min(os.sched_getaffinity(0)))], "1"), ([], "64")]
)
def test_one_core_and_many_give_the_same_bits(finished, tmp_path, prefix, threads):
    runs, _ = train(finished, tmp_path / "cell.parquet", *prefix, OMP_NUM_THREADS=threads)
    others = read_runs(finished.folder / f"results/runs/{CELL}.parquet")
    assert {key: run.about["sha256"] for key, run in runs.items()} == {
        key: run.about["sha256"] for key, run in others.items()
    }


def test_a_commit_is_known_in_a_clone_of_another_owner_and_not_without_git(finished, tmp_path):
    clone = finished.copy(tmp_path / "clone")
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c", "--allow-empty"],
    ):
        clone.run("git", *words)
    runs, _ = train(
        clone, tmp_path / "cell.parquet", GIT_TEST_ASSUME_DIFFERENT_OWNER="1", GIT_DIR="/elsewhere"
    )
    head = clone.run("git", "rev-parse", "HEAD").stdout.strip()
    assert {run.about["commit"] for run in runs.values()} == {head}
    runs, _ = train(clone, tmp_path / "another.parquet", PATH=path_without("git", tmp_path / "bin"))
    assert {run.about["commit"] for run in runs.values()} == {None}


def test_a_full_disk_ends_in_one_sentence_and_leaves_nothing(finished, tmp_path):
    limit = ["bash", "-c", 'ulimit -f 1; exec "$@"', "bash"]
    _, said = train(finished, tmp_path / "cell.parquet", *limit, status=2)
    assert "could not be written" in said.splitlines()[-1]
    assert not list(tmp_path.iterdir())
