"""The command line by hand: what it prints, and how a mistake of the user's ends."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch

from mdpu.law import Law
from mdpu.pipeline import cli
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import parse_run

RULES = [
    "dataset",
    "labels",
    "split",
    "train",
    "collect",
    "show",
    "verify",
    "report",
]


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
        (RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"), "see whether nvidia-smi still lists it"),
        (RuntimeError("basic_ios::clear: iostream error"), "a checkpoint could not be written; see whether the disk"),
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


def name_of(command):
    """Return what a command is called: Typer writes its function's underscores as hyphens."""
    return command.name or command.callback.__name__.replace("_", "-")


def test_help_lists_every_command_in_its_panel():
    command = [sys.executable, "-m", "mdpu", "--help"]
    environment = {**os.environ, "COLUMNS": "120"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    registered = [name_of(command) for command in cli.app.registered_commands]
    # The rest of a line that starts with a name and a space is its description, which may go on below.
    listed = [match[1] for match in re.finditer(r"^│ ([a-z-]+) +[A-Z]", done.stdout, re.MULTILINE)]
    assert listed == registered
    assert {*RULES} <= {*listed}
    assert {"coefficients", "plan"} <= set(listed)


def test_help_of_every_command_names_its_options():
    for command in cli.app.registered_commands:
        name = name_of(command)
        found = mdpu(name, "--help")
        assert found.returncode == 0, name
        if name in RULES:
            assert "--out" in found.stdout


def test_coefficients_are_printed_as_json():
    done = mdpu("coefficients", "--tuple-size", 3, "--prior", 0.4)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    expected = Law.dominant(3).coefficients(0.4)
    assert (found["a"], found["b"], found["denominator"]) == (expected.a, expected.b, expected.denominator)
    assert found["a"] == pytest.approx((0.4**3 + 2 * 0.4**2 * 0.6) / (0.4**3 + 3 * 0.4**2 * 0.6))
    assert found["tuple_law"] == pytest.approx([0.4 / (0.4 + 3 * 0.6), 3 * 0.6 / (0.4 + 3 * 0.6)])
    assert found["risk_weights"]["tuple_positive"] == Law.dominant(3).risk_weights(0.4).tuple_positive


def test_the_plan_counts_and_lists_runs():
    config = ["--config", "config.yaml", "--config", "config/quick.yaml"]
    counts = json.loads(mdpu("plan", *config).stdout)
    names = mdpu("plan", *config, "--runs").stdout.splitlines()
    assert len(names) == counts["runs"] == sum(counts["cohorts"].values())
    assert all(parse_run(name).name == name for name in names)


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


def test_a_mistake_ends_a_process_with_status_2():
    command = [sys.executable, "-m", "mdpu", "coefficients", "--tuple-size", "0", "--prior", "0.5"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert_user_error(done, "tuple size 0 is not an integer of at least 1")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tuple-size", 0, "--prior", 0.5], "tuple size 0 is not an integer of at least 1"),
        (["--tuple-size", 2, "--prior", 0], "prior 0.0 is not strictly between 0 and 1"),
        (["--tuple-size", 2, "--prior", 1], "prior 1.0 is not strictly between 0 and 1"),
        (["--tuple-size", 2, "--prior", "nan"], "prior nan is not strictly between 0 and 1"),
        (["--tuple-size", 100_000, "--prior", 0.9], "no risk of single members exists"),
    ],
)
def test_coefficients_out_of_range_are_refused(arguments, sentence):
    assert_user_error(mdpu("coefficients", *arguments), sentence)


def test_a_wrong_configuration_is_told_with_the_keys_name(tmp_path):
    (tmp_path / "over.yaml").write_text("protocol: {training: {epoch: 3}}\n")
    for arguments in (["plan"], ["labels", "--dataset", "mnist", "--images", "no.npz", "--out", tmp_path / "out.npz"]):
        done = mdpu(*arguments, "--config", "config.yaml", "--config", tmp_path / "over.yaml")
        assert_user_error(done, "config key protocol.training.epoch is unknown; did you mean 'epochs'?")


def test_a_missing_configuration_is_named(tmp_path):
    assert_user_error(mdpu("plan", "--config", tmp_path / "no.yaml"), "no.yaml does not exist")


def test_an_unknown_source_is_refused(tmp_path):
    done = mdpu("dataset", "mnits", "--config", "config.yaml", "--out", tmp_path / "out.npz")
    assert_user_error(done, "source 'mnits' is unknown")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_without_network_and_data_mnist_says_what_to_do_and_writes_nothing(tmp_path, monkeypatch):
    """A proxy that nobody listens on stands for the missing network: every connection is refused at once."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    out = tmp_path / "out" / "mnist.npz"
    (tmp_path / "over.yaml").write_text(f"data_dir: {tmp_path / 'data'}\n")
    config = ["--config", "config.yaml", "--config", tmp_path / "over.yaml"]
    done = mdpu("dataset", "mnist", *config, "--out", out)
    assert_user_error(done, "train-images-idx3-ubyte")
    assert str(tmp_path / "data") in done.stderr.splitlines()[-1]
    assert not out.parent.exists()


SPLIT = {"--tuple-size": 2, "--prior": 0.5, "--n": 10, "--n-unlabeled": 10, "--trial": "digits/m2/n60/prior0.5/seed1"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"--tuple-size": 0}, "tuple size 0 is not"),
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


@pytest.mark.parametrize("broken", ["missing", "truncated"])
def test_broken_inputs_are_named_by_every_command_and_nothing_is_written(finished, tmp_path, broken):
    """Each command in turn, with one input that is not there or cut in half."""
    results, out = finished.results, tmp_path / "out"
    config = ["--config", finished.folder / "config.yaml", "--config", finished.folder / "config/tiny.yaml"]
    images, labels = finished.folder / "results/datasets/digits.npz", results / "labels/digits.npz"
    cohort = "digits/base/m2/n60"
    training = ["train", *config, "--cohort", cohort, "--splits", results / "splits", "--store", out / "runs"]
    training += ["--checkpoints", out / "checkpoints", "--threads", 1]
    commands = {
        images: [
            ["labels", *config, "--dataset", "digits", "--images", "BAD", "--out", out / "x.npz"],
            [*training, "--images", "BAD", "--labels", labels, "--out", out / "x.parquet"],
        ],
        labels: [
            ["split", "--labels", "BAD", *(p for option in SPLIT.items() for p in option), "--out", out / "x.npz"],
            [*training, "--images", images, "--labels", "BAD", "--out", out / "x.parquet"],
        ],
        results / "summary.csv": [
            ["show", *config, "--experiment", "tiny-table", "--summary", "BAD", "--out", out],
            ["verify", "--summary", "BAD", "--expected", results / "summary.csv", "--out", out / "x.json"],
        ],
        results / "metrics.parquet": [
            ["show", *config, "--experiment", "tiny-curves", "--metrics", "BAD", "--out", out],
        ],
    }
    for source, readers in commands.items():
        bad = tmp_path / source.name
        if source == images:
            (tmp_path / "digits.json").write_bytes(source.with_suffix(".json").read_bytes())
        if broken == "truncated":
            bad.write_bytes(source.read_bytes()[:100])
        for command in readers:
            if broken == "truncated" and source.name == "summary.csv":
                bad.write_bytes(b"")  # half a CSV is a CSV; an empty one is not
            done = mdpu(*[bad if part == "BAD" else part for part in command], cwd=finished.folder)
            assert_user_error(done, str(bad))
            assert not out.exists() or not [path for path in out.rglob("*") if path.is_file()], command


def test_showing_an_experiment_names_what_it_is_not_given(tmp_path):
    config = ["--config", "config.yaml", "--config", "config/quick.yaml"]
    done = mdpu("show", *config, "--experiment", "figure1", "--images", "x.npz", "--out", tmp_path / "out")
    assert_user_error(done, "experiment figure1 is of kind setting, which needs --labels and --split")
    done = mdpu("show", *config, "--experiment", "figure9", "--out", tmp_path / "out")
    assert_user_error(done, "experiment: 'figure9' is unknown")
    assert not (tmp_path / "out").exists()


def test_collect_names_a_missing_history(finished, tmp_path):
    config = ["--config", finished.folder / "config.yaml", "--config", finished.folder / "config/tiny.yaml"]
    out = tmp_path / "out"
    tables = ["--out", out / "m.parquet", "--summary", out / "s.csv", "--runs", out / "r.csv"]
    done = mdpu("collect", *config, "--histories", tmp_path / "no", *tables)
    assert_user_error(done, "n60.parquet does not exist; run the rule that makes it")
    assert not out.exists()


def test_the_report_names_a_missing_file(finished, tmp_path):
    config = ["--config", finished.folder / "config.yaml", "--config", finished.folder / "config/tiny.yaml"]
    done = mdpu("report", *config, "--results", tmp_path / "no", "--out", tmp_path / "report.html")
    assert_user_error(done, "table1.csv does not exist; run the rule that makes it")
    assert list(tmp_path.iterdir()) == []


def test_classes_that_contradict_the_images_are_named(finished, tmp_path):
    dataset = "definitions: {datasets: {digits: {positive: [0, 2, 4, 6, 8], negative: [1, 3, 5, 7]}}}\n"
    (tmp_path / "over.yaml").write_text(dataset)
    paths = [finished.folder / "config.yaml", finished.folder / "config/tiny.yaml", tmp_path / "over.yaml"]
    done = mdpu(
        "labels",
        *(part for path in paths for part in ("--config", path)),
        *("--dataset", "digits"),
        *("--images", finished.folder / "results/datasets/digits.npz"),
        *("--out", tmp_path / "out.npz"),
    )
    assert_user_error(done, "config key definitions.datasets.digits: class 9 is on no side")
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_cuda_without_a_gpu_is_refused(finished, tmp_path):
    (tmp_path / "over.yaml").write_text("device: cuda\n")
    paths = [finished.folder / "config.yaml", finished.folder / "config/tiny.yaml", tmp_path / "over.yaml"]
    done = mdpu(
        "train",
        *(part for path in paths for part in ("--config", path)),
        *("--cohort", "digits/base/m2/n60"),
        *("--images", finished.folder / "results/datasets/digits.npz"),
        *("--labels", finished.results / "labels/digits.npz"),
        *("--splits", finished.results / "splits"),
        *("--store", tmp_path / "runs"),
        *("--checkpoints", tmp_path / "checkpoints"),
        *("--threads", 1),
        *("--out", tmp_path / "out.parquet"),
    )
    assert_user_error(done, "device is cuda, but torch finds no GPU; set device to auto or cpu")
    assert [path.name for path in tmp_path.iterdir()] == ["over.yaml"]


def test_a_split_by_hand_is_the_one_of_the_workflow(finished, tmp_path):
    """Each rule is one command with explicit paths that runs by hand."""
    options = {**SPLIT, "--n": 60, "--n-unlabeled": 60, "--labels": finished.results / "labels/digits.npz"}
    done = mdpu("split", *(part for option in options.items() for part in option), "--out", tmp_path / "split.npz")
    assert done.returncode == 0, done.stderr
    with (
        np.load(tmp_path / "split.npz") as found,
        np.load(finished.results / "splits/digits/base/m2/prior0.5/n60/seed1.npz") as expected,
    ):
        assert all(np.array_equal(found[key], expected[key]) for key in ("tuples", "unlabeled"))
