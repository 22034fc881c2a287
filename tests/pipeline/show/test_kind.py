"""The contract of a kind of experiment, and a new kind that is one file."""

from __future__ import annotations

import copy
import re
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
import yaml
from configs import SETTING, config, study
from jsonschema import Draft202012Validator
from tracked import list_files

from mdpu.errors import UserError
from mdpu.pipeline.config import load_config
from mdpu.pipeline.experiments import available_kinds, check, inputs, load_kind, settings
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import AXES, Plan

READS = {"runs": {"summary", "metrics"}, "split": {"images", "labels", "split"}, "nothing": set()}


@pytest.mark.parametrize("name", available_kinds())
def test_a_kind_keeps_the_contract(name):
    kind = load_kind(name)
    assert set(kind.single) <= {*AXES} - {"seed", "dataset"}
    assert set(kind.reads) <= READS[kind.uses]
    assert len(set(kind.outputs("one"))) == len(kind.files)
    assert not set(kind.outputs("one")) & set(kind.outputs("other"))
    for value in kind.keys.values():
        Draft202012Validator.check_schema(value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"kind": "lossses"}, "first.kind: 'lossses' is unknown; did you mean 'losses'?"),
        ({"uses": "nothing"}, "first.uses: an experiment of kind table uses runs; write uses: runs"),
        ({"kind": "losses"}, "first.uses: an experiment of kind losses uses nothing; write uses: nothing"),
        ({"kind": "size", "loss": ["ramp", "hinge"]}, "first.loss: an experiment of kind size shows one loss, but"),
        ({"kind": "loss", "n": [5, 6]}, "first.n: an experiment of kind loss shows one n, but several are given"),
        ({"n": {"default": 5, "deep": [6, 7]}}, "first.n: an experiment of kind table shows one n, but several"),
        ({"options": {"measure": "std"}}, "first.options.measure is unknown; known are"),
        ({"kind": "size", "options": {"against": "x"}}, "first.options.against: 'x' is not one of ['n', 'tuple_size']"),
        ({"kind": "size", "options": {"agianst": "n"}}, "first.options.agianst is unknown; did you mean 'against'?"),
        ({"kind": "sensitivity", "options": {"reporting": ["x"]}}, "first.options.reporting: 'x' is unknown"),
        ({"kind": "sensitivity", "variant": ["three-n"]}, "first.variant: base is what the others are compared with"),
        ({"kind": "priors", "method": ["ure"]}, "first.method: ure estimates no prior; bag-free does"),
    ],
)
def test_a_definition_that_its_kind_cannot_show_is_refused_by_key(changes, sentence):
    changed = config()
    changed["definitions"]["experiments"]["first"] |= changes
    with pytest.raises(UserError, match=re.escape(f"config key definitions.experiments.{sentence}")):
        check(Plan(changed).config)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("study", ("reportings", "last", "average_last"), 2),
        ("study", ("variants", "three-n", "sampling", "n_unlabeled"), "2n"),
        ("setting", ("datasets", "flat", "negative"), [2]),
        ("first", ("datasets", "flat", "title"), "Other"),
    ],
)
def test_what_changes_a_file_is_among_the_settings_of_its_experiment(name, place, value):
    changed = study(variant=["base", "three-n"], reporting=["last"])
    changed["definitions"]["experiments"] |= {
        "setting": SETTING,
        "first": config()["definitions"]["experiments"]["first"],
    }
    before = settings(Plan(copy.deepcopy(changed)), name)
    *keys, last = place
    reduce(getitem, keys, changed["definitions"])[last] = value
    assert settings(Plan(changed), name) != before


def test_the_papers_configuration_with_the_neighbours_uses_every_kind_that_is_shipped():
    paths = [REPOSITORY / "config.yaml", REPOSITORY / "config" / "neighbours.yaml"]
    plan = Plan({**load_config(paths), "datasets": "all", "experiments": "all"})
    check(plan.config)
    tracked = {Path(name).stem.replace("_", "-") for name in list_files("mdpu/pipeline/experiments")}
    assert {experiment.kind for experiment in plan.experiments.values()} == set(available_kinds()) & tracked
    for name, experiment in plan.experiments.items():
        assert set(inputs(plan, name)) == set(load_kind(experiment.kind).reads)


@pytest.mark.parametrize("overlay", sorted((REPOSITORY / "config").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_configuration_that_is_shipped_can_be_run(overlay):
    plan = Plan(load_config([REPOSITORY / "config.yaml", overlay]))
    check(plan.config)
    assert plan.runs


@pytest.mark.slow
def test_the_guide_to_a_kind_literally(finished_clone):
    """Its file and its experiment become a figure of the report; nothing else is touched, and nothing else made."""
    guide = (REPOSITORY / "docs" / "how-to" / "add-kind.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (overlay,) = re.findall(r"^```yaml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    experiment = yaml.safe_load(overlay)["definitions"]["experiments"]["spread"]
    (finished_clone.folder / "mdpu" / "pipeline" / "experiments" / "spread.py").write_text(code)
    finished_clone.change_config(
        experiments=["figure1", "figure2", "table1", "tiny-table", "tiny-curves", "tiny-spread"],
        **{"definitions__experiments__tiny-spread": {**experiment, "n": 60}},
    )
    assert finished_clone.jobs() == {"show_spread": 1, "render_report": 1}
    finished_clone.snakemake()
    assert {path.suffix for path in (finished_clone.results / "figures").glob("tiny-spread.*")} == {".svg", ".pdf"}
    section = (finished_clone.results / "report.html").read_text().split('<section id="tiny-spread">')[1]
    assert "How much the trials of a cell vary." in section.split("</section>")[0]
    finished_clone.change_config(**{"definitions__experiments__tiny-table__options": {"measure": "std"}})
    sentence = "tiny-table.options.measure is unknown"
    assert sentence in finished_clone.snakemake(status=1)
