"""Whatever a user writes into a configuration or hands over as images ends in one sentence, before anything is run."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mdpu.errors import UserError
from mdpu.pipeline.config import load_config
from mdpu.pipeline.data import own
from mdpu.pipeline.evaluate.verify import verify
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.grid import CELL
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.strict_yaml import parse_yaml

BASE = REPOSITORY / "config.yaml"


def sentence(error):
    """Return the message to the user, after checking that it is one sentence."""
    text = str(error.value)
    assert "\n" not in text
    assert "Traceback" not in text
    assert len(text) < 400
    return text


# -- text that is no configuration ----------------------------------------------------------------

TEXTS = {
    "latin-1": (b"name: caf\xe9", "is not UTF-8 (byte 9); save it as UTF-8"),
    "utf-16": ("name: x".encode("utf-16"), "is not UTF-8 (byte 0)"),
    "bytes": (bytes(range(256)), "is not"),
    "null": (b"name: a\0b", "is not valid YAML"),
    "empty": (b"", "holds no mapping of keys"),
    "comment": (b"# nothing", "holds no mapping of keys"),
    "list": (b"- a\n- b", "holds no mapping of keys"),
    "number": (b"3", "holds no mapping of keys"),
    "text": (b"hello", "holds no mapping of keys"),
    "two documents": (b"a: 1\n---\nb: 2", "is not valid YAML"),
    "tab": (b"a:\n\tb: 1", "is not valid YAML"),
    "brace": (b"a: {b: 1", "is not valid YAML"),
    "quote": (b'a: "b', "is not valid YAML"),
    "indent": (b"a:\n  b: 1\n c: 2", "is not valid YAML"),
    "unknown alias": (b"a: *b", "undefined alias"),
    "function": (b"a: !!python/name:os.system", "could not determine a constructor for the tag"),
    "call": (b"a: !!python/object/apply:os.system ['true']", "could not determine a constructor"),
    "module": (b"a: !!python/module:os", "could not determine a constructor"),
    "tuple": (b"a: !!python/tuple [1]", "could not determine a constructor"),
    "own tag": (b"a: !mine 3", "could not determine a constructor"),
    "key twice": (b"a: 1\nb: 2\na: 3", "the key 'a' is given twice, line 3"),
    "inner key twice": (b"a:\n  b: 1\n  b: 1", "the key 'b' is given twice, line 3"),
    "key of a list": (b"[1, 2]: 3", "a key is no text and no number, line 1"),
    "cycle": (b"a: &a\n  b: *a", "is not valid YAML"),
    "cycle of a list": (b"a: &a [1, *a]", "is not valid YAML"),
    "laughs": (
        b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + b"\n".join(b"%c: &%c [%s]" % (c, c, b",".join([b"*%c" % (c - 1)] * 10)) for c in b"bcdefgh"),
        "stands for more than 100000 values",
    ),
    "deep": (b"a: " + b"[" * 5000, "is not valid YAML"),
    "nan": (b"a: {b: [1, .nan]}", "key a.b.1: nan is no number to work with"),
    "infinite": (b"a: .inf", "key a: inf is no number"),
    "minus infinite": (b"a: -.inf", "key a: -inf is no number"),
    "bad date": (b"a: 2024-99-99", "is not valid YAML"),
    "bad merge": (b"a:\n  <<: 3", "is not valid YAML"),
}


@pytest.mark.bad_input
@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_is_no_configuration_is_named(tmp_path, name):
    content, words = TEXTS[name]
    (tmp_path / "bad.yaml").write_bytes(content)
    with pytest.raises(UserError) as error:
        load_config([tmp_path / "bad.yaml"])
    assert sentence(error).startswith(f"configuration file {tmp_path / 'bad.yaml'}")
    assert words in sentence(error)


@pytest.mark.bad_input
@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "huge", "forbidden"])
def test_what_is_no_readable_file_is_named_and_not_waited_for(tmp_path, kind):
    path = tmp_path / "bad.yaml"
    words = "is no file"
    if kind == "missing":
        words = "does not exist"
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "huge":
        path.write_text("#" * 5 * 2**20)
        words = "is larger than 4 MiB"
    else:
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        path.touch(mode=0)
        words = "could not be read (Permission denied)"
    with pytest.raises(UserError) as error:
        load_config([path])
    assert sentence(error).endswith(words)


def test_plain_data_passes_with_anchors_and_merges():
    text = "a: &a {x: 1, y: [1.5, null, true, text]}\nb: {<<: *a, x: 2}\nc: *a"
    assert parse_yaml(text, "") == {
        "a": {"x": 1, "y": [1.5, None, True, "text"]},
        "b": {"x": 2, "y": [1.5, None, True, "text"]},
        "c": {"x": 1, "y": [1.5, None, True, "text"]},
    }


# -- values that make no sense --------------------------------------------------------------------

MLP = "protocol: {training: {networks: {mlp: {%s}}}}"
TRAINING = "protocol: {training: {%s}}"
SAMPLING = "protocol: {sampling: {%s}}"
VALUES = [
    *(
        MLP % f"learning_rate: {value}"
        for value in (".nan", ".inf", "-.inf", "0", "-1", "1.0e9", "fast", "[1]", "null")
    ),
    *(MLP % f"weight_decay: {value}" for value in (".nan", ".inf", "-0.1", "1.0e9", "some", "null")),
    *(MLP % f"hidden: {value}" for value in ("[0]", "[-1]", "[10000000000]", "[1.5]", "300", "[a]")),
    MLP % f"hidden: [{', '.join(['10'] * 101)}]",
    *(MLP % f"batch_size: {value}" for value in ("0", "-1", "1.5", "100000000000", "all")),
    *(TRAINING % f"epochs: {value}" for value in ("0", "-1", "1.5", "100000000000000", "many", "null")),
    *(TRAINING % text for text in ("optimizer: sgd", "precision: fp8", "prior_offset: 1", "hyperparameters: best")),
    *(SAMPLING % f"n_unlabeled: {value}" for value in ("0", "-1", "m", "0n", "99999n", "10000000000000", "1.5")),
    *(SAMPLING % text for text in ("replacement: maybe", "overlap: 1", "n_counts: pairs", "unknown: 1")),
    *(f"axes: {{seed: {value}}}" for value in ("[]", "[-1]", "[1.5]", "[1, 1]", "1", "[100000000000000000000]", "[a]")),
    *(f"axes: {{prior: {value}}}" for value in ("[0]", "[1]", "[-0.5]", "[1.5]", "[.nan]", "[]", "0.5", "[half]")),
    *(f"axes: {{method: {value}}}" for value in ("[]", "[urr]", "ure", "[1]")),
    *(f"axes: {{loss: {value}}}" for value in ("[]", "[log]", "logistic")),
    "axes: {n: 10000000000000}",
    *(
        f"definitions: {{experiments: {{table2: {{n: {value}}}}}}}"
        for value in ("0", "-5", "1.5", "10000000000000", "[]", "{default: 0}", "{default: 5, mnits: 5}")
    ),
    *(
        f"definitions: {{experiments: {{table2: {{tuple_size: {value}}}}}}}"
        for value in ("[0]", "[-2]", "[1000000]", "2", "[2.5]", "[2, 3]")
    ),
    f"axes: {{seed: [{', '.join(map(str, range(2000)))}], prior: [{', '.join(f'0.{i:03}' for i in range(1, 999))}]}}",
    *(
        f"name: {value}"
        for value in ("reference", "datasets", "Paper", "a/b", "../up", "'a b'", "'~'", "'$(id)'", "''", "-a")
    ),
    *(
        f"results_dir: {value}"
        for value in ("'a b'", "'~/results'", "'$(touch x)'", '"a\\nb"', '"it\'s"', "-r", "''", "3")
    ),
    *(f"threads: {value}" for value in ("0", "-1", "100000", "two")),
    *(f"memory_mb: {value}" for value in ("0", "100", "1.0e30")),
    *(f"checkpoint_seconds: {value}" for value in ("-1", ".inf", "soon")),
    "device: gpu",
    "datasets: [mnits]",
    "experiments: [table9]",
    "unknown: 1",
    "definitions: {datasets: {mnist: {source: mnits}}}",
    "definitions: {datasets: {mnist: {positive: [0, 1], negative: [1, 2]}}}",
    "definitions: {datasets: {UPPER: {title: a, source: mnist, positive: [0], negative: [1]}}}",
    "definitions: {variants: {x: {reporting: {average_last: 1}}}}",
    "comparison: {margin: 5, wider_margin: 1}",
    "comparison: {level: 1}",
    "tuning: {held_out: 0}",
    "tuning: {held_out: 1}",
    "tuning: {grid: {learning_rate: [.nan]}}",
    "tuning: {grid: {weight_decay: []}}",
    "tuning: {prior: 2}",
]


@pytest.mark.bad_input
@pytest.mark.parametrize("text", VALUES)
def test_a_value_that_makes_no_sense_is_named_with_its_key(tmp_path, text):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        Plan(load_config([BASE, tmp_path / "bad.yaml"]))
    assert "key" in sentence(error) or "prior" in sentence(error)


def test_more_than_a_hundred_bad_inputs_are_tried():
    assert len(TEXTS) + len(VALUES) > 100


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("seed", "--config 'seed' is not of the form KEY=VALUE"),
        ("datasets=[mnits]", "config key datasets: 'mnits' is unknown; did you mean 'mnist'?"),
        ("datasets=!!python/name:os.system", "could not determine a constructor"),
        ("a\nb=1", "is not valid YAML"),
    ],
)
def test_values_laid_over_the_files_are_checked_alike(value, words):
    with pytest.raises(UserError) as error:
        load_config([BASE], [value])
    assert words in sentence(error)


def test_values_are_laid_over_the_files():
    assert load_config([BASE], ["datasets=[mnist, svhn]", "threads=3"])["datasets"] == ["mnist", "svhn"]


def test_the_whole_goes_through_the_command_line_in_one_sentence(tmp_path):
    (tmp_path / "bad.yaml").write_bytes(b"a: !!python/name:os.system")
    command = [sys.executable, "-m", "mdpu", "plan", "--config", str(BASE), "--config", str(tmp_path / "bad.yaml")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: configuration file ")
    assert done.stderr.count("\n") == 1


# -- images and expected numbers of one's own -----------------------------------------------------


@pytest.mark.bad_input
def test_a_pipe_of_images_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    for read in (own.read, own.inputs):
        with pytest.raises(UserError) as error:
            read(tmp_path / "pipe.npz")
        assert sentence(error).endswith("it is a pipe or a device, not a file")


@pytest.mark.bad_input
@pytest.mark.parametrize("shape", [(4, 0, 2), (4, 2, 0), (4, 2, 2, 0), (0, 2, 2)])
def test_images_without_pixel_or_channel_are_refused(tmp_path, shape):
    images, labels = np.zeros(shape, np.uint8), np.arange(shape[0]) % 2
    np.savez(tmp_path / "a.npz", train_images=images, train_labels=labels, test_images=images, test_labels=labels)
    with pytest.raises(UserError) as error:
        own.read(tmp_path / "a.npz")
    assert "an image needs a pixel and a channel" in sentence(error) or "has 0 images" in sentence(error)


SUMMARY = pd.DataFrame([["digits", "base", 2, 60, "0.5", "ure", "logistic", 80.0]], columns=[*CELL, "mean"])


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "kind", ["missing", "folder", "pipe", "binary", "empty", "other columns", "words for numbers", "no rows"]
)
def test_expected_numbers_of_another_shape_are_refused(tmp_path, kind):
    path = tmp_path / "expected.csv"
    header = ",".join([*CELL, "mean", "tolerance"]) + "\n"
    contents = {
        "binary": b"\xff\xfe\x00",
        "empty": b"",
        "other columns": b"a,b\n1,2\n",
        "words for numbers": (header + "digits,base,two,60,0.5,ure,logistic,80,1\n").encode(),
        "no rows": header.encode(),
    }
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind != "missing":
        path.write_bytes(contents[kind])
    with pytest.raises(UserError) as error:
        verify(SUMMARY, path)
    assert sentence(error).startswith("config key expected: ")
