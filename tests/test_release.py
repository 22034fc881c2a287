"""What a release says of itself, in several forms: that they say the same, and name files that are
there.
"""

import json
import re
import tomllib

import yaml

import mdpu
from mdpu.pipeline.config import SCHEMA, load_config
from mdpu.pipeline.files import REPOSITORY, resource
from mdpu.pipeline.plan import Plan

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
CODEMETA = json.loads((REPOSITORY / "codemeta.json").read_text(encoding="utf-8"))
ZENODO = json.loads((REPOSITORY / ".zenodo.json").read_text(encoding="utf-8"))


def test_the_version_is_one():
    newest = re.search(
        r"^## (\S+)", (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    told = {form["version"] for form in (PROJECT, CITATION, CODEMETA, ZENODO)}
    assert told == {mdpu.__version__} == {newest[1]}


def test_all_forms_have_the_same_title_authors_licence_and_keywords():
    assert CITATION["title"] == CODEMETA["name"] == ZENODO["title"]
    assert CITATION["abstract"] == CODEMETA["description"] == ZENODO["description"]
    for authors in (CITATION["authors"], CODEMETA["author"], ZENODO["creators"]):
        assert [author["name"] for author in authors] == [
            author["name"] for author in PROJECT["authors"]
        ]
    assert CODEMETA["license"].endswith(f"/{PROJECT['license']}")
    assert {CITATION["license"], ZENODO["license"].upper()} == {PROJECT["license"]}
    assert PROJECT["keywords"] == CITATION["keywords"] == CODEMETA["keywords"] == ZENODO["keywords"]


def test_the_catalog_finds_the_schema_and_a_small_case():
    assert (REPOSITORY / "workflow" / "schemas" / "config.schema.yaml").resolve() == resource(
        SCHEMA
    ).resolve()
    plan = Plan(load_config([REPOSITORY / ".test" / "config.yaml"]))
    assert 0 < len(plan.runs) <= 12
    assert list(plan.datasets) == ["digits"]  # no download


def test_the_licence_of_every_source_is_listed():
    page = (REPOSITORY / "docs" / "reference" / "datasets.md").read_text(encoding="utf-8")
    table = page[page.index("## Licences") :]
    texts = [
        path.read_text("utf-8")
        for path in (REPOSITORY / "mdpu/pipeline/data/sources").glob("[!_]*.py")
    ]
    licences = {licence for text in texts for licence in re.findall(r'licence="([^"]+)"', text)}
    assert len(licences) >= 3
    assert [licence for licence in licences if f"| {licence} |" not in table] == []
