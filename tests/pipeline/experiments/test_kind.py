"""The contract of a kind of experiment, and a new kind that is one file."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import yaml
from jsonschema import Draft202012Validator

from mdpu.pipeline.config import load_config, schema
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.grid import AXES
from mdpu.pipeline.kind import available_kinds, load_kind
from mdpu.pipeline.plan import Plan

READS = {"runs": {"summary", "metrics"}, "split": {"images", "labels", "split"}, "nothing": set()}


@pytest.mark.parametrize("name", available_kinds())
def test_a_kind_keeps_the_contract(name):
    kind = load_kind(name)
    assert set(kind.single) <= {*AXES} - {"seed", "dataset"}
    assert set(kind.reads) <= READS[kind.shows]
    assert bool(kind.reads) == (kind.shows != "nothing")
    assert len(set(kind.outputs("one"))) == len(kind.files)
    assert not set(kind.outputs("one")) & set(kind.outputs("other"))
    assert (REPOSITORY / "report" / kind.template).is_file()
    for value in kind.keys.values():
        Draft202012Validator.check_schema(value)


def test_no_kind_writes_the_files_of_another():
    """A rule per kind makes the files of its experiments, whose names are of one kind each."""
    outputs = [path for name in available_kinds() for path in load_kind(name).outputs(f"of-{name}")]
    assert len(outputs) == len(set(outputs))


def test_kinds_are_read_without_what_computes_or_draws():
    heavy = ("torch", "pandas", "matplotlib", "scipy", "sklearn")
    program = (
        "import sys\nfrom mdpu.pipeline.kind import available_kinds, load_kind\n"
        f"[load_kind(name) for name in available_kinds()]\nprint([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_schema_has_every_kind_and_its_own_keys():
    experiment = schema()["properties"]["definitions"]["properties"]["experiments"]["additionalProperties"]
    assert experiment["properties"]["kind"]["enum"] == available_kinds()
    assert {"reporting", "base_method"} <= experiment["properties"].keys()
    Draft202012Validator.check_schema(schema())


def test_the_papers_configuration_uses_every_kind():
    config = load_config([REPOSITORY / "config.yaml"])
    plan = Plan({**config, "experiments": "all"})
    assert {experiment.kind for experiment in plan.experiments.values()} == set(available_kinds())
    for name, experiment in plan.experiments.items():
        assert set(plan.experiment_inputs(name)) == set(load_kind(experiment.kind).reads)


@pytest.mark.slow
def test_the_guide_to_a_kind_literally(finished_clone):
    """Its file and its experiment become a figure of the report; nothing else is touched, and nothing else made."""
    guide = (REPOSITORY / "docs" / "how-to" / "add-kind.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (overlay,) = re.findall(r"^```yaml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    experiment = yaml.safe_load(overlay)["definitions"]["experiments"]["spread"]
    (finished_clone.folder / "mdpu" / "kinds" / "spread.py").write_text(code)
    finished_clone.change_config(
        experiments=["figure1", "figure2", "table1", "tiny-table", "tiny-curves", "tiny-spread"],
        **{"definitions__experiments__tiny-spread": {**experiment, "n": 60}},
    )
    assert finished_clone.jobs() == {"show_spread": 1, "render_report": 1}
    finished_clone.snakemake()
    assert {path.suffix for path in (finished_clone.results / "figures").glob("tiny-spread.*")} == {".svg", ".pdf"}
    section = (finished_clone.results / "report.html").read_text().split('<section id="tiny-spread">')[1]
    assert "How far the trials of one cell lie apart." in section.split("</section>")[0]
    finished_clone.change_config(**{"definitions__experiments__tiny-table__measure": "std"})
    sentence = "tiny-table.measure: only an experiment of kind spread has a measure"
    assert sentence in finished_clone.snakemake(status=1)


def test_no_two_kinds_have_a_key_of_one_name():
    """The schema holds the keys of all kinds side by side, so one would hide the other."""
    keys = [key for name in available_kinds() for key in load_kind(name).keys]
    assert len(keys) == len(set(keys))
