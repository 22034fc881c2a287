"""Configurations: how files are laid over each other, and what is refused."""

from __future__ import annotations

import pytest
from configs import CONFIG, FIRST, FLAT, SETTING, config

from mdpu.errors import UserError
from mdpu.pipeline.config import SCHEMA, as_yaml, check_config, from_snakemake, load_config, load_yaml, merge
from mdpu.pipeline.files import REPOSITORY, resource
from mdpu.pipeline.plan import Plan


def test_overlays_merge_mappings_and_replace_lists_and_values():
    base = {"a": {"x": 1, "y": [1, 2]}, "b": 2, "c": {"d": {"e": 1}}}
    overlay = {"a": {"y": [3]}, "b": {"new": 1}, "c": {"d": {"f": 2}}}
    assert merge(base, overlay) == {"a": {"x": 1, "y": [3]}, "b": {"new": 1}, "c": {"d": {"e": 1, "f": 2}}}
    assert base == {"a": {"x": 1, "y": [1, 2]}, "b": 2, "c": {"d": {"e": 1}}}


@pytest.mark.parametrize("path", sorted((REPOSITORY / "config").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_overlay_gives_a_plan(path):
    plan = Plan(load_config([path]))
    assert all(plan.spec(cell)["method"] for cell in plan.cells)


def test_values_of_the_command_line_that_arrive_as_text_are_read_as_yaml():
    values = {"name": "mine", "datasets": "[mnist]", "protocol": "{training: {epochs: 5}}", "device": "cpu"}
    assert from_snakemake(as_yaml(values)) == load_config(values=[f"{key}={value}" for key, value in values.items()])
    assert from_snakemake({})["datasets"] == "all"


WRONG = {
    "a misspelt key": ({"devise": "cpu"}, "devise"),
    "a wrong value of a network": ({"protocol__training__networks__mlp__hidden": "wide"}, "hidden"),
    "an unknown network": ({FLAT + "network": "mpl"}, "mpl"),
    "a key like no other": ({"zzz": 1}, "zzz"),
    "an unknown method": ({"axes__method": ["asb"]}, "asb"),
    "an unknown source": ({FLAT + "source": "mnits"}, "mnits"),
    "a class on both sides": ({FLAT + "negative": [0]}, "definitions.datasets.flat"),
    "an unknown dataset of an experiment": ({FIRST + "datasets": ["mnist"]}, "mnist"),
    "an unknown dataset of n": ({FIRST + "n": {"default": 1, "mnits": 1}}, "mnits"),
    "an unknown method of seeds": ({FIRST + "seed": {"default": [1], "asb": [1]}}, "asb"),
    "seeds without a default": ({FIRST + "seed": {"abs": [1]}}, "default"),
    "a negative seed": ({FIRST + "seed": [-1]}, "seed"),
    "an unknown variant": ({FIRST + "variant": ["two-n"]}, "two-n"),
    "a grid without n": ({"definitions__experiments__first": {"kind": "table", "title": "T", "tuple_size": [2]}}, "n"),
    "no title": ({"definitions__experiments__first": {"kind": "losses"}}, "title"),
    "a wrong method in a further grid": ({FIRST + "also": [{"method": ["rleu"]}]}, "rleu"),
    "reporting in a variant": (
        {"definitions__variants__three-n": {"reporting": {"average_last": 1}}},
        "definitions.variants.three-n.reporting",
    ),
    "margins that cross": ({"comparison__wider_margin": 0.5}, "comparison.wider_margin"),
    "a name that is taken": ({"name": "runs"}, "name"),
    "an unknown law": ({FIRST + "law": ["exactly-9"]}, "law"),
    "a prior of one": ({"axes__prior": [1]}, "axes.prior"),
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


@pytest.mark.parametrize("text", ["- a", "a: [", "a: 1\na: 2", "1: 2", "a: !!python/name:os.system", "\x00"])
def test_a_file_that_is_no_mapping_of_plain_keys_is_refused(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        load_yaml(path)
    assert str(path) in str(error.value)
    for missing in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(UserError):
            load_yaml(missing)


def test_the_schema_describes_every_key_of_the_small_configuration():
    check_config(config())
    check_config(config(definitions__experiments__setting=SETTING))
    assert config() == CONFIG
