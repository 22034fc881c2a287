"""Whatever a user writes into a configuration or hands over ends in one sentence, before anything is run."""

from __future__ import annotations

import os

import pytest
import yaml

from mdpu.errors import UserError
from mdpu.pipeline import experiments
from mdpu.pipeline.config import canonical, load_config, load_yaml, merge, select
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan

BASE = load_config([REPOSITORY / "config.yaml"])


def sentence(error):
    """Return the message to the user, after checking that it is one sentence."""
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


# -- text that is no configuration ----------------------------------------------------------------

NO_CONSTRUCTOR = "could not determine a constructor for the tag"
TEXTS = {
    "latin-1": (b"name: caf\xe9", "is not UTF-8 (byte 9); save it as UTF-8"),
    "utf-16": ("name: x".encode("utf-16"), "is not UTF-8 (byte 0)"),
    "null": (b"name: a\0b", "is not valid YAML"),
    "empty": (b"", "holds no mapping of keys"),
    "list": (b"- a\n- b", "holds no mapping of keys"),
    "two documents": (b"a: 1\n---\nb: 2", "is not valid YAML"),
    "tab": (b"a:\n\tb: 1", "is not valid YAML"),
    "brace": (b"a: {b: 1", "is not valid YAML"),
    "unknown alias": (b"a: *b", "undefined alias"),
    "function": (b"a: !!python/name:os.system", NO_CONSTRUCTOR),
    "call": (b"a: !!python/object/apply:os.system ['true']", NO_CONSTRUCTOR),
    "key twice": (b"a: 1\nb: 2\na: 3", "the key 'a' is given twice, line 3"),
    "key of a list": (b"[1, 2]: 3", "the key [1, 2] is no plain text, line 1"),
    "cycle": (b"a: &a\n  b: *a", "is not valid YAML"),
    "deep": (b"a: " + b"[" * 5000, "is not valid YAML"),
    "bad merge": (b"a:\n  <<: 3", "is not valid YAML"),
}


@pytest.mark.parametrize(("content", "words"), TEXTS.values(), ids=TEXTS)
def test_a_file_that_is_no_configuration_is_named(tmp_path, content, words):
    (tmp_path / "bad.yaml").write_bytes(content)
    with pytest.raises(UserError) as error:
        load_config([tmp_path / "bad.yaml"])
    assert sentence(error).startswith(f"configuration file {tmp_path / 'bad.yaml'}")
    assert words in sentence(error)


@pytest.mark.parametrize(
    ("make", "words"), [(lambda path: None, "does not exist"), (os.mkdir, "is no file"), (os.mkfifo, "is no file")]
)
def test_what_is_no_file_is_named_and_not_waited_for(tmp_path, make, words):
    make(tmp_path / "bad.yaml")
    with pytest.raises(UserError) as error:
        load_config([tmp_path / "bad.yaml"])
    assert sentence(error).endswith(words)


def test_plain_data_passes_with_anchors_and_merges(tmp_path):
    (tmp_path / "good.yaml").write_text("a: &a {x: 1, y: [1.5, null, true, text]}\nb: {<<: *a, x: 2}\nc: *a")
    assert load_yaml(tmp_path / "good.yaml") == {
        "a": {"x": 1, "y": [1.5, None, True, "text"]},
        "b": {"x": 2, "y": [1.5, None, True, "text"]},
        "c": {"x": 1, "y": [1.5, None, True, "text"]},
    }


# -- values that make no sense, by key ------------------------------------------------------------

MLP = "protocol.training.networks.mlp"
EXPERIMENT = "definitions.experiments.table2"
BAD = {
    f"{MLP}.learning_rate": [".nan", ".inf", "0", "-1", "1.0e9", "fast", "[1]", "null"],
    f"{MLP}.weight_decay": [".nan", "-0.1", "1.0e9", "some"],
    f"{MLP}.hidden": ["[0]", "[-1]", "[10000000000]", "[1.5]", "300", "[a]"],
    f"{MLP}.batch_size": ["0", "1.5", "100000000000", "all"],
    "protocol.training.epochs": ["0", "-1", "1.5", "100000000000000", "many", "null", "2024-01-01"],
    "protocol.training.optimizer": ["sgd"],
    "protocol.training.precision": ["fp8"],
    "protocol.training.prior_offset": ["1"],
    "protocol.training.target_prior": ["0", "1", "half"],
    "protocol.training.shares_factor": ["0", "null"],
    "protocol.sampling.n_unlabeled": ["0", "-1", "m", "0n", "99999n", "10000000000000", "1.5", '"3n\\n"'],
    "protocol.sampling.replacement": ["maybe", "1"],
    "axes.seed": ["[]", "[-1]", "[1.5]", "[1, 1]", "1", "[100000000000000000000]", "[a]", "{default: [1], 5: [1]}"],
    "axes.prior": ["[0]", "[1]", "[1.5]", "[.nan]", "[]", "0.5", "[half]"],
    "axes.method": ["[]", "[urr]", "ure", "[1]"],
    "axes.loss": ["[]", "[log]", "logistic"],
    f"{EXPERIMENT}.n": ["0", "-5", "1.5", "10000000000000", "[]", "{default: 0}", "{default: 5, mnits: 5}"],
    f"{EXPERIMENT}.tuple_size": ["[0]", "[-2]", "[1000000]", "2", "[2.5]", "[2, 3]"],
    EXPERIMENT: ["null", "[]", "{5: 1}"],
    "name": ["reference", "datasets", "Paper", "a/b", "../up", "'a b'", "'$(id)'", "''", "-a", "null", '"mini\\n"',
             f"{'a' * 101}", "[a]", "3", '"a\\0b"',],
    "results_dir": ["'a b'", "'$(touch x)'", '"a\\nb"', '"out\\n"', "-r", "''", "3", "null"],
    "data_dir": ["null", "''", '"a\\0b"', "[a]"],
    "shipped": ["3", "[a]", "''"],
    "expected": ["3", "[a]", "'{a}.csv'"],
    "threads": ["0", "-1", "100000", "two", "99999999999999999999"],
    "memory_mb": ["0", "100", "1.0e30"],
    "checkpoint_seconds": ["-1", ".inf", "soon"],
    "device": ["gpu"],
    "datasets": ["[mnits]", "null", "some", "[[a]]", "[{a: 1}]"],
    "experiments": ["[table9]", "null"],
    "unknown": ["1", "null"],
    "definitions": ["null", "[]", "{datasets: null}", "{variants: null}", "{variants: [base]}", "{experiments: null}",
                    "{5: 1, zzz: 2}", f"{{variants: {{{'a' * 300}: {{}}}}}}"],
    "definitions.datasets.mnist": ["{source: mnits}", "{source: 'br{a}ce.npz'}", "{positive: [0, 1], negative: [1, 2]}",
                                   "{positive: [0.5]}", "{source: null}", "null", "[]"],
    "definitions.datasets.mnist.counts": ["{train: {positve: 3}}", "{train: {positive: 0}}", "{dev: {}}"],
    "definitions.datasets.UPPER": ["{title: a, source: mnist, positive: [0], negative: [1]}"],
    "definitions.variants.x": ["{reporting: {average_last: 1}}", "[]", "{training: null}", "{training: {networks: 3}}"],
    "comparison": ["{margin: 5, wider_margin: 1}", "{level: 1}", "null"],
    "tuning": ["{held_out: 0}", "{held_out: 1}", "{grid: {learning_rate: [.nan]}}", "{grid: null}", "{prior: 2}"],
    "training_jobs": ["null", "{mlp: prior}", "{mlp: [n]}", "{5: []}"],
}  # fmt: skip


@pytest.mark.parametrize("key", BAD)
def test_a_value_that_makes_no_sense_is_named_with_its_key(tmp_path, key):
    for value in BAD[key]:
        text = value
        for part in reversed(key.split(".")):
            text = f"{{{part}: {text}}}"
        overlay = yaml.safe_load(text)
        readers = [lambda over: merge(BASE, over)]
        if "." not in key:  # whatever reads it first
            (tmp_path / "bad.yaml").write_text(text)
            readers += [canonical, lambda over: select("paper", [tmp_path / "bad.yaml"], [])]
        for read in readers:
            with pytest.raises(UserError) as error:
                experiments.check(Plan(read(overlay)).config)
            assert "key" in sentence(error), value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("seed", "--config 'seed' is not of the form KEY=VALUE"),
        ("datasets=[mnits]", "config key datasets: 'mnits' is unknown; did you mean 'mnist'?"),
        ("datasets=!!python/name:os.system", "could not determine a constructor"),
        ("results_dir=", "config key results_dir is empty; give it a value or delete it"),
        ("a\nb=1", "is not valid YAML"),
    ],
)
def test_values_laid_over_the_files_are_checked_alike(value, words):
    for read in (lambda: load_config([REPOSITORY / "config.yaml"], [value]), lambda: select("paper", [], [value])):
        with pytest.raises(UserError) as error:
            read()
        assert words in sentence(error)
