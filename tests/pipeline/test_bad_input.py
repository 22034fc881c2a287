"""Whatever a user writes into a configuration ends in one sentence that names file or key, before
anything is run.
"""

import os

import pytest
import yaml

from mdpu.errors import UserError
from mdpu.pipeline import show
from mdpu.pipeline.config import as_yaml, check_config, from_snakemake, load_config, merge
from mdpu.pipeline.plan import Plan

BASE = load_config()


def sentence(error):
    """Return the message to the user, after checking that it is one sentence."""
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


# -- text that is no configuration ----------------------------------------------------------------

TEXTS = {
    "latin-1": b"name: caf\xe9",
    "utf-16": "name: x".encode("utf-16"),
    "null": b"name: a\0b",
    "empty": b"",
    "list": b"- a\n- b",
    "two documents": b"a: 1\n---\nb: 2",
    "tab": b"a:\n\tb: 1",
    "brace": b"a: {b: 1",
    "unknown alias": b"a: *b",
    "function": b"a: !!python/name:os.system",
    "call": b"a: !!python/object/apply:os.system ['true']",
    "key twice": b"a: 1\nb: 2\na: 3",
    "key of a list": b"[1, 2]: 3",
    "cycle": b"a: &a\n  b: *a",
    "deep": b"a: " + b"[" * 5000,
    "bad merge": b"a:\n  <<: 3",
}


@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
def test_a_file_that_is_no_configuration_is_named(tmp_path, content):
    (tmp_path / "bad.yaml").write_bytes(content)
    with pytest.raises(UserError) as error:
        load_config([tmp_path / "bad.yaml"])
    assert str(tmp_path / "bad.yaml") in sentence(error)


@pytest.mark.parametrize("make", [lambda path: None, os.mkdir], ids=["missing", "a folder"])
def test_what_is_no_file_is_named(tmp_path, make):
    make(tmp_path / "bad.yaml")
    with pytest.raises(UserError) as error:
        load_config([tmp_path / "bad.yaml"])
    assert str(tmp_path / "bad.yaml") in sentence(error)


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
    "protocol.sampling.n_unlabeled": [
        "0",
        "-1",
        "m",
        "0n",
        "99999n",
        "10000000000000",
        "1.5",
        ('"3n\\n"'),
    ],
    "protocol.sampling.replacement": ["maybe", "1"],
    "axes.seed": [
        "[]",
        "[-1]",
        "[1.5]",
        "[1, 1]",
        "1",
        "[100000000000000000000]",
        "[a]",
        ("{default: [1], 5: [1]}"),
    ],
    "axes.prior": ["[0]", "[1]", "[1.5]", "[.nan]", "[]", "0.5", "[half]"],
    "axes.method": ["[]", "[urr]", "ure", "[1]"],
    "axes.loss": ["[]", "[log]", "logistic"],
    f"{EXPERIMENT}.n": [
        "0",
        "-5",
        "1.5",
        "10000000000000",
        "[]",
        "{default: 0}",
        ("{default: 5, mnits: 5}"),
    ],
    f"{EXPERIMENT}.tuple_size": ["[0]", "[-2]", "[1000000]", "2", "[2.5]", "[2, 3]"],
    EXPERIMENT: ["null", "[]", "{5: 1}"],
    "name": [
        "reference",
        "datasets",
        "Paper",
        "a/b",
        "../up",
        "'a b'",
        "'$(id)'",
        "''",
        "-a",
        "null",
        '"mini\\n"',
        f"{'a' * 101}",
        "[a]",
        "3",
        '"a\\0b"',
    ],
    "results_dir": ["'a b'", "'$(touch x)'", '"a\\nb"', '"out\\n"', "-r", "''", "3", "null"],
    "data_dir": ["null", "''", '"a\\0b"', "[a]"],
    "shipped": ["3", "[a]", "''"],
    "expected": ["3", "[a]", "'{a}.csv'"],
    "checkpoint_seconds": ["-1", ".inf", "soon"],
    "device": ["gpu"],
    "datasets": ["[mnits]", "null", "some", "[[a]]", "[{a: 1}]"],
    "experiments": ["[table9]", "null"],
    "unknown": ["1", "null"],
    "definitions": [
        "null",
        "[]",
        "{datasets: null}",
        "{variants: null}",
        "{variants: [base]}",
        "{experiments: null}",
        "{5: 1, zzz: 2}",
        f"{{variants: {{{'a' * 300}: {{}}}}}}",
    ],
    "definitions.datasets.mnist": [
        "{source: mnits}",
        "{source: 'br{a}ce.npz'}",
        "{positive: [0, 1], negative: [1, 2]}",
        "{positive: [0.5]}",
        "{source: null}",
        "null",
        "[]",
    ],
    "definitions.datasets.mnist.counts": [
        "{train: {positve: 3}}",
        "{train: {positive: 0}}",
        ("{dev: {}}"),
    ],
    "definitions.datasets.UPPER": ["{title: a, source: mnist, positive: [0], negative: [1]}"],
    "definitions.variants.x": [
        "{reporting: {average_last: 1}}",
        "[]",
        "{training: null}",
        ("{training: {networks: 3}}"),
    ],
    "comparison": ["{margin: 5, wider_margin: 1}", "{level: 1}", "null"],
}


@pytest.mark.parametrize("key", BAD)
def test_a_value_that_makes_no_sense_is_named_with_its_key(key):
    for value in BAD[key]:
        text = value
        for part in reversed(key.split(".")):
            text = f"{{{part}: {text}}}"
        with pytest.raises(UserError) as error:
            config = merge(BASE, yaml.safe_load(text))
            check_config(config)
            show.check(config)
            Plan(config)
        assert "key" in sentence(error), value
        assert key.split(".")[-1] in sentence(error) or key.split(".")[0] in sentence(error), value


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"datasets": "[mnits]"}, "datasets"),
        ({"datasets": "!!python/name:os.system"}, "os.system"),
        ({"results_dir": ""}, "results_dir"),
        ({"a\nb": "1"}, "a"),
    ],
)
def test_values_laid_over_the_files_are_checked_alike(values, named):
    with pytest.raises(UserError) as error:
        from_snakemake(as_yaml(values))
    assert named in sentence(error)
