"""Configurations: how files are laid over each other, and what is said about one that is wrong."""

from __future__ import annotations

import copy
import json

import pytest
import yaml
from configs import FIRST, FLAT, SETTING, config
from snakemake.utils import update_config

from mdpu.errors import UserError
from mdpu.pipeline.config import SCHEMA, canonical, load_config, merge
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan


def test_overlays_merge_mappings_and_replace_lists_and_values():
    base = {"a": {"x": 1, "y": [1, 2]}, "b": 2, "c": {"d": {"e": 1}}}
    overlay = {"a": {"y": [3]}, "b": {"new": 1}, "c": {"d": {"f": 2}}}
    assert merge(base, overlay) == {"a": {"x": 1, "y": [3]}, "b": {"new": 1}, "c": {"d": {"e": 1, "f": 2}}}
    assert base == {"a": {"x": 1, "y": [1, 2]}, "b": 2, "c": {"d": {"e": 1}}}


@pytest.mark.parametrize("name", ["quick", "reference", "methods", "bags"])
def test_keys_come_in_one_order_whoever_merged_the_files(name):
    """Snakemake compares params as text. It lays the paper's file over those of --configfile, and these over it."""
    files = [REPOSITORY / "config.yaml", REPOSITORY / "config" / f"{name}.yaml"]
    paper, on_top = (yaml.safe_load(path.read_text()) for path in files)
    merged = copy.deepcopy(on_top)
    update_config(merged, paper)
    update_config(merged, on_top)
    ours = load_config(files)
    assert json.dumps(merged) != json.dumps(ours)
    assert json.dumps(canonical(merged)) == json.dumps(ours)


WRONG = {
    "a misspelt key": ({"devise": "cpu"}, r"config key devise is unknown; did you mean 'device'\?"),
    "a misspelt key of a network, in a variant": (
        {"definitions__variants__three-n": {"training": {"networks": {"resnet34": {"stm": "cifar"}}}}},
        r"config key definitions\.variants\.three-n\.training\.networks\.resnet34\.stm is unknown; did you mean 'stem'",
    ),
    "a wrong value of a network": (
        {"protocol__training__networks__resnet34__stem": "cfar"},
        r"config key protocol\.training\.networks\.resnet34: stem is 'cfar'; it must be one of cifar, imagenet",
    ),
    "an unknown network": (
        {FLAT + "network": "mpl"},
        r"config key definitions\.datasets\.flat\.network: 'mpl' is unknown; did you mean 'mlp'\?",
    ),
    "a key like no other": ({"zzz": 1}, "config key zzz is unknown; known are apart, axes, "),
    "an unknown method": (
        {"axes__method": ["asb"]},
        r"config key definitions\.experiments\.first\.method: 'asb' is unknown; did you mean 'abs'\?",
    ),
    "an unknown dataset of an experiment": (
        {FIRST + "datasets": ["mnist"]},
        r"definitions\.experiments\.first\.datasets: 'mnist' is unknown; known are deep, flat",
    ),
    "a missing key": ({"definitions": {"datasets": {}, "variants": {"base": None}}}, r"definitions: 'experiments'"),
    "reporting in a variant": (
        {"definitions__variants__three-n": {"reporting": {"average_last": 1}}},
        r"config key definitions\.variants\.three-n\.reporting: .*put it under definitions\.reportings",
    ),
    "a reporting called base": (
        {"definitions__reportings": {"base": {"average_last": 1}}},
        r"config key definitions\.reportings\.base: base is protocol\.reporting itself",
    ),
}


@pytest.mark.parametrize(("changes", "sentence"), WRONG.values(), ids=WRONG)
def test_a_wrong_configuration_is_refused_in_one_sentence_with_the_keys_name(changes, sentence):
    with pytest.raises(UserError, match=sentence) as error:
        Plan(config(**changes))
    assert "\n" not in str(error.value)


def test_every_required_key_is_missed_by_name():
    for key in yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))["required"]:
        lacking = config()
        del lacking[key]
        with pytest.raises(UserError, match=rf"config key \(top level\): '{key}' is a required property"):
            Plan(lacking)


@pytest.mark.parametrize(
    ("axis", "values", "sentence"),
    [
        ("n", {"default": 10, "mnits": 10}, "table2.n: 'mnits' is unknown; did you mean 'mnist'?"),
        ("method", {"default": ["abs"], "mnits": ["abs"]}, "table2.method: 'mnits' is unknown; did you mean 'mnist'?"),
        ("method", {"default": ["abs"], "mnist": ["asb"]}, "table2.method: 'asb' is unknown; did you mean 'abs'?"),
        ("seed", {"kmeans": [1]}, "table2.seed: 'default' is a required property"),
        ("seed", {"default": [1], "kmeans": [-1]}, "table2.seed.kmeans.0: -1 is less than the minimum of 0"),
    ],
)
def test_what_is_wrong_with_the_values_of_a_dataset_or_a_method_is_named(axis, values, sentence):
    changed = load_config([REPOSITORY / "config.yaml"])
    changed["definitions"]["experiments"]["table2"][axis] = values
    with pytest.raises(UserError) as error:
        Plan(changed)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("experiment", "sentence"),
    [
        ({"kind": "losses", "uses": "nothing"}, "definitions.experiments.first: 'title' is a required property"),
        ({"kind": "setting", "title": "S", "tuple_size": [3]}, "first: 'n' is a required property"),
        (
            {"kind": "losses", "title": "L", "tuple_size": [2], "n": 5, "uses": "data"},
            "first.uses: 'data' is not one",
        ),
        ({**SETTING, "also": [{"method": ["rleu"]}]}, "first.also.method: 'rleu' is unknown; did you mean 'relu'?"),
    ],
)
def test_a_wrong_experiment_is_refused(experiment, sentence):
    with pytest.raises(UserError) as error:
        Plan(config(definitions__experiments__first=experiment))
    assert sentence in str(error.value)
