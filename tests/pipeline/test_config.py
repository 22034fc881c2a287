"""Configurations: how files are laid over each other, and what is refused."""

import copy

import pytest
from configs import FIRST, FLAT, config

from mdpu.errors import UserError
from mdpu.pipeline.config import (
    SCHEMA,
    as_yaml,
    check_config,
    from_snakemake,
    load_config,
    load_yaml,
    merge,
)
from mdpu.pipeline.files import resource
from mdpu.pipeline.plan import Plan


@pytest.mark.parametrize(
    ("base", "overlay", "merged"),
    [
        ({"x": 1, "y": 2}, {"y": 3}, {"x": 1, "y": 3}),
        ({"a": {"b": {"x": 1}}}, {"a": {"b": {"y": 2}}}, {"a": {"b": {"x": 1, "y": 2}}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 2}, {"a": {"new": 1}}, {"a": {"new": 1}}),
    ],
    ids=["values", "mappings", "lists", "a mapping over a value"],
)
def test_overlays_merge_mappings_and_replace_lists_and_values(base, overlay, merged):
    before = copy.deepcopy(base)
    assert merge(base, overlay) == merged
    assert base == before


def test_values_of_the_command_line_that_arrive_as_text_are_read_as_yaml():
    values = {
        "name": "mine",
        "datasets": "[mnist]",
        "protocol": "{training: {epochs: 5}}",
        "device": "cpu",
    }
    overlay = {
        "name": "mine",
        "datasets": ["mnist"],
        "protocol": {"training": {"epochs": 5}},
        "device": "cpu",
    }
    assert from_snakemake(as_yaml(values)) == merge(load_config(), overlay)
    assert from_snakemake({})["datasets"] == "all"


WRONG = {
    "a misspelt key": ({"devise": "cpu"}, "devise"),
    "an unknown network": ({FLAT + "network": "mpl"}, "mpl"),
    "an unknown dataset of an experiment": ({FIRST + "datasets": ["mnist"]}, "mnist"),
    "seeds without a default": ({FIRST + "seed": {"abs": [1]}}, "default"),
    "an unknown variant": ({FIRST + "variant": ["two-n"]}, "two-n"),
    "a grid without n": (
        {"definitions__experiments__first": {"kind": "table", "title": "T", "tuple_size": [2]}},
        "n",
    ),
    "no title": ({"definitions__experiments__first": {"kind": "losses"}}, "title"),
    "a wrong method in a further grid": ({FIRST + "also": [{"method": ["rleu"]}]}, "rleu"),
    "an unknown law": ({FIRST + "law": ["exactly-9"]}, "law"),
    "a law with the name of another": (
        {"definitions__laws": {"dominant": [0, 0, 1]}},
        "'dominant' is taken",
    ),
    "an experiment with the name of a figure": (
        {"definitions__experiments__readings": {}},
        "'readings' is taken",
    ),
    "a number with a point where an integer is due": ({"axes__seed": [1.0]}, "axes.seed"),
}


@pytest.mark.parametrize(("changes", "key"), WRONG.values(), ids=WRONG)
def test_a_wrong_configuration_is_refused_in_one_sentence_with_the_key(changes, key):
    changed = config(**changes)
    with pytest.raises(UserError) as error:
        check_config(changed)
        plan = Plan(changed)
        list(map(plan.spec, plan.cells))
    assert key in str(error.value)
    assert "\n" not in str(error.value)


def test_every_required_key_is_missed_by_name():
    for key in load_yaml(resource(SCHEMA))["required"]:
        lacking = config()
        del lacking[key]
        with pytest.raises(UserError) as error:
            check_config(lacking)
        assert repr(key) in str(error.value)


@pytest.mark.parametrize("text", ["1e-3", "2E-3", "1.5e-3", "+1e-03"])
def test_a_rate_may_be_written_with_an_exponent(tmp_path, text):
    """YAML takes 1e-3 for text, because it has no point."""
    file = tmp_path / "rate.yaml"
    rate = f"{{training: {{networks: {{mlp: {{learning_rate: {text}}}}}}}}}"
    file.write_text(f"protocol: {rate}\ndefinitions: {{variants: {{other: {rate}}}}}\n")
    config = load_config([file])
    for protocol in (config["protocol"], config["definitions"]["variants"]["other"]):
        assert protocol["training"]["networks"]["mlp"]["learning_rate"] == float(text)


def test_text_that_is_no_number_is_refused_where_a_number_belongs(tmp_path):
    file = tmp_path / "rate.yaml"
    file.write_text("protocol: {training: {networks: {mlp: {learning_rate: 1e-3x}}}}\n")
    with pytest.raises(UserError, match=r"learning_rate"):
        load_config([file])
