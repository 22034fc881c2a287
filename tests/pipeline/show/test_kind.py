"""The contract of a kind of experiment, and a new kind that is one file."""

import copy
import dataclasses
import re
from functools import reduce
from operator import getitem

import pandas as pd
import pytest
import yaml
from configs import SETTING, config
from jsonschema import Draft202012Validator

from mdpu.errors import UserError
from mdpu.pipeline import show
from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.files import REPOSITORY, write_csv, write_table
from mdpu.pipeline.plan import AXES, Plan
from mdpu.pipeline.show import available_kinds, check, load_kind, outputs, settings, write


@pytest.mark.parametrize("name", available_kinds())
def test_a_kind_keeps_the_contract(name):
    kind = load_kind(name)
    assert set(kind.single) <= {*AXES} - {"seed", "dataset"}
    assert set(kind.reads) <= ({"runs", "metrics"} if kind.has_runs else {"images", "labels"})
    assert len({file.format(name="one") for file in kind.files}) == len(kind.files)
    assert all("{name}" in file for file in kind.files)
    for value in kind.options.values():
        Draft202012Validator.check_schema(value)


def test_a_kind_that_names_no_axis_is_refused(monkeypatch):
    kind = dataclasses.replace(load_kind("table"), single=("dataset",))
    monkeypatch.setattr(show, "load_kind", lambda name: kind)
    with pytest.raises(UserError, match="'dataset' in single, which is no axis; axes are"):
        check(config())


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"kind": "lossses"}, "first.kind"),
        ({"kind": "losses"}, "first.tuple_size"),
        ({"kind": "loss", "n": [5, 6]}, "first.n"),
        ({"n": {"default": 5, "deep": [6, 7]}}, "first.n"),
        ({"also": [{"n": 6}]}, "first.n"),
        ({"law": ["dominant", "similar"]}, "first.law"),
        ({"kind": "line", "loss": ["ramp", "hinge"]}, "first.loss"),
        ({"kind": "line", "options": {"along": "x"}}, "first.options.along"),
        ({"kind": "line", "options": {"agianst": "n"}}, "first.options.agianst"),
        (
            {
                "kind": "line",
                "options": {"along": "broken"},
                "variant": ["base"],
                "also": [{"variant": ["three-n"]}],
            },
            "first.variant",
        ),
        (
            {"kind": "line", "options": {"along": "broken"}, "variant": ["base", "three-n"]},
            "first.variant",
        ),
        ({"options": {"measure": "std"}}, "first.options.measure"),
    ],
)
def test_a_definition_that_its_kind_cannot_show_is_refused_by_key(changes, key):
    changed = config()
    check(changed)
    changed["definitions"]["experiments"]["first"] |= changes
    with pytest.raises(UserError, match=re.escape(f"definitions.experiments.{key}")):
        check(changed)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("first", ("definitions", "datasets", "flat", "title"), "Other"),
        ("first", ("definitions", "variants", "three-n", "sampling", "n_unlabeled"), "2n"),
        ("first", ("axes", "seed"), [1]),
        ("first", ("comparison", "level"), 0.9),
        ("setting", ("definitions", "experiments", "setting", "options", "n"), 50),
    ],
)
def test_what_changes_a_file_is_among_the_settings_of_its_experiment(name, place, value):
    changed = config(definitions__experiments__first__variant=["base", "three-n"])
    changed["definitions"]["experiments"]["setting"] = SETTING
    before = settings(Plan(copy.deepcopy(changed)), name)
    *keys, last = place
    reduce(getitem, keys, changed)[last] = value
    assert settings(Plan(changed), name) != before


OVERLAYS = sorted((REPOSITORY / "config").glob("*.yaml"))


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.stem)
def test_every_configuration_that_is_shipped_can_be_shown(overlay):
    plan = Plan(load_config([overlay]))
    assert all(plan.spec(cell)["method"] for cell in plan.cells)
    check(plan.config)
    files = [file for name in plan.experiments for file in outputs(plan, name)]
    assert len(set(files)) == len(files) > 0


def test_the_guide_to_a_kind_literally(tmp_path, monkeypatch):
    """Its file and its experiment become a figure, and a section of the report; nothing else is
    touched.
    """
    guide = (REPOSITORY / "docs" / "how-to" / "add-kind.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (overlay,) = re.findall(r"^```yaml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "spread.py").write_text(code)
    monkeypatch.setattr(show, "__path__", [*show.__path__, str(tmp_path)])
    changed = config(results_dir=str(tmp_path), experiments=["spread"], datasets=["flat"])
    changed["definitions"]["experiments"] |= yaml.safe_load(overlay)["definitions"]["experiments"]
    check(changed)
    plan = Plan(changed)
    metrics = pd.DataFrame(list(plan.runs)).assign(
        epoch=1, accuracy=[0.5 + run.seed / 10 for run in plan.runs]
    )
    write_table(metrics, plan.layout.metrics)
    write_csv(run_accuracies(metrics, plan.protocol.reporting), plan.layout.runs)
    write(plan, "spread", {"metrics": plan.layout.metrics}, outputs(plan, "spread"))
    (section,) = show.sections(plan)["paper"]
    assert (section["name"], section["title"]) == ("spread", "Spread over trials")
    assert "How much the trials of a cell vary." in section["caption"]
    assert [file["format"] for file in section["downloads"]] == []
