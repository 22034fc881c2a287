"""The command line by hand: its commands on files, and how a mistake of the user's ends."""

import errno
import json
import os
import subprocess
import sys
from unittest import mock

import pytest

from mdpu.__main__ import main as command_line
from mdpu.pipeline import cli
from mdpu.pipeline.files import REPOSITORY, load_npz

COMMANDS = (
    "dataset",
    "labels",
    "sheet",
    "split",
    "train",
    "trace",
    "retrain",
    "verify",
    "fit",
    "predict",
)
SIDES = {"positive": [0, 2, 4, 6, 8], "negative": [1, 3, 5, 7, 9]}
DRAWING = {
    "tuple_size": 2,
    "prior": "0.5",
    "n": 20,
    "n_unlabeled": 30,
    "trials": {"1": "digits/m2/n20/prior0.5/seed1"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with images and labels, made by the commands of these names."""
    folder = tmp_path_factory.mktemp("made")
    assert cli.main(["dataset", "digits", "--out", f"{folder}/images.npz"]) == 0
    sides = ["--sides", json.dumps(SIDES), "--counts", json.dumps({"train": {"positive": 669}})]
    assert (
        cli.main(
            ["labels", "--images", f"{folder}/images.npz", *sides, "--out", f"{folder}/labels.npz"]
        )
        == 0
    )
    return folder


def split(labels, out, **changes):
    return [
        "split",
        "--labels",
        str(labels),
        "--spec",
        json.dumps({**DRAWING, **changes}),
        "--out",
        str(out),
    ]


def assert_one_sentence(status, capsys, *words):
    """Status 2, and one line that has some words; no traceback."""
    assert status == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("error: ")
    assert all(word in line for word in words)


# -- what it makes --------------------------------------------------------------------------------


def test_every_command_has_help(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    said = capsys.readouterr().out
    for name in COMMANDS:
        assert f"\n    {name} " in said
        with pytest.raises(SystemExit) as end:
            cli.main([name, "--help"])
        assert end.value.code == 0


def test_labels_are_made_from_images_and_sides(made):
    labels = load_npz(made / "labels.npz", "train")["train"]
    assert (labels > 0).sum() == 669


def test_a_split_is_made_from_labels_and_json(made, tmp_path):
    out = tmp_path / "split.npz"
    assert cli.main(split(made / "labels.npz", out)) == 0
    tuples, unlabeled = load_npz(out, "tuples_1", "unlabeled_1").values()
    assert tuples.shape == (20, 2)
    assert unlabeled.shape == (30,)


def test_contact_sheets_are_made_from_images_and_labels(made, tmp_path):
    sheets = [tmp_path / "positive.png", tmp_path / "negative.png"]
    files = ["--images", f"{made}/images.npz", "--labels", f"{made}/labels.npz"]
    assert cli.main(["sheet", *files, "--out", *map(str, sheets)]) == 0
    for sheet in sheets:
        assert sheet.stat().st_size > 1000


def test_a_split_is_drawn_without_torch(made, tmp_path):
    """Hundreds of jobs draw one, and none may wait for it."""
    program = (
        "import sys; from mdpu.pipeline import cli; status = cli.main(sys.argv[1:]); "
        "print(status, {'torch', 'pandas', 'matplotlib', 'sklearn'} & sys.modules.keys())"
    )
    command = [sys.executable, "-c", program, *split(made / "labels.npz", tmp_path / "split.npz")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout == "0 set()\n", done.stderr


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["dataset", "mnits", "--out", "out.npz"], "mnits"),
        (["dataset", "./none.npz", "--out", "out.npz"], "none.npz"),
        (
            ["split", "--labels", "none.npz", "--spec", json.dumps(DRAWING), "--out", "out.npz"],
            "none.npz",
        ),
        (["split", "--labels", "none.npz", "--spec", "{", "--out", "out.npz"], "--spec"),
        (
            ["split", "--labels", f"{__file__}", "--spec", json.dumps(DRAWING), "--out", "out.npz"],
            "test_cli.py",
        ),
        (["train"], "--images"),
        (["trian"], "trian"),
        (["trace", "relu"], "relu"),
        (
            [
                "trace",
                "digits/base/m2/n77/prior0.5/relu",
                "--config",
                str(REPOSITORY / "config/quick.yaml"),
            ],
            "n77",
        ),
        (["trace", "mnist/base/m2/n10000/prior0.5/relu", "--config", "none.yaml"], "none.yaml"),
    ],
)
def test_a_slip_ends_in_one_sentence(tmp_path, capsys, monkeypatch, arguments, word):
    monkeypatch.chdir(tmp_path)
    assert_one_sentence(cli.main(arguments), capsys, word)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("out", [".", "pipe", "below/a-file"])
def test_an_output_that_cannot_be_a_file_is_refused(made, tmp_path, capsys, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").write_text("a file")
    os.mkfifo(tmp_path / "pipe")
    assert_one_sentence(cli.main(split(made / "labels.npz", out)), capsys, out.partition("/")[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["below", "pipe"]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA error: unspecified launch failure\nCompile with"),
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed"),
        OSError(errno.ENOSPC, "No space left on device", "a.log"),
    ],
)
def test_what_the_machine_does_to_a_job_ends_in_one_sentence(monkeypatch, capsys, error):
    monkeypatch.setattr(cli, "_parser", mock.Mock(side_effect=error))
    assert_one_sentence(cli.main([]), capsys)


def test_an_error_of_our_own_keeps_its_traceback(monkeypatch):
    for error in (
        RuntimeError("mat1 and mat2 cannot be multiplied"),
        FileNotFoundError(errno.ENOENT, "No such file"),
    ):
        monkeypatch.setattr(cli, "_parser", mock.Mock(side_effect=error))
        with pytest.raises(type(error)):
            cli.main([])


def test_an_interrupted_command_says_so_in_a_word(monkeypatch, capsys):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("mdpu.pipeline.cli.main", interrupt)
    with pytest.raises(SystemExit) as ended:
        command_line()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
