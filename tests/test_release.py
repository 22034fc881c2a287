"""What a release says of itself, in several forms: that they say the same, and name files that are there."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import mdpu
from mdpu.pipeline.config import SCHEMA, load_config
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
CODEMETA = json.loads((REPOSITORY / "codemeta.json").read_text(encoding="utf-8"))
ZENODO = json.loads((REPOSITORY / ".zenodo.json").read_text(encoding="utf-8"))


def test_the_version_is_one():
    newest = re.search(r"^## (\S+)", (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    told = {
        mdpu.__version__,
        PROJECT["version"],
        CITATION["version"],
        CODEMETA["version"],
        ZENODO["version"],
        newest[1],
    }
    assert told == {mdpu.__version__}


def test_all_forms_have_the_same_title_authors_licence_and_keywords():
    assert CITATION["title"] == CODEMETA["name"] == ZENODO["title"]
    assert CITATION["abstract"] == CODEMETA["description"] == ZENODO["description"]
    names = [author["name"] for author in PROJECT["authors"]]
    for authors in (CITATION["authors"], CODEMETA["author"], ZENODO["creators"]):
        assert [author["name"] for author in authors] == names
    assert CODEMETA["license"].endswith(f"/{PROJECT['license']}")
    assert {CITATION["license"], ZENODO["license"].upper()} == {PROJECT["license"]}
    assert PROJECT["keywords"] == CITATION["keywords"] == CODEMETA["keywords"] == ZENODO["keywords"]


def test_the_catalog_finds_the_schema_and_a_small_case():
    assert (REPOSITORY / "workflow" / "schemas" / "config.schema.yaml").resolve() == SCHEMA.resolve()
    plan = Plan(load_config([REPOSITORY / "config.yaml", REPOSITORY / ".test" / "config.yaml"]))
    assert 0 < len(plan.runs) <= 12
    assert list(plan.datasets) == ["digits"]  # no download


def missing_targets(page: Path, text: str) -> list[str]:
    """Return what links of a page name, and scripts of its commands, that is not there."""
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if not target.startswith(("https://", "http://"))]
    paths = [page.parent / target for target in targets]
    paths += [REPOSITORY / script for script in re.findall(r"python (\S+\.py)", text)]
    return [str(path) for path in paths if not path.exists()]


@pytest.mark.parametrize("name", ["ARTIFACT.md", "CHANGELOG.md", "SECURITY.md", "docs/CHECKLIST.md"])
def test_links_lead_to_files(name):
    assert missing_targets(REPOSITORY / name, (REPOSITORY / name).read_text(encoding="utf-8")) == []


def test_the_licence_of_every_source_is_listed():
    page = (REPOSITORY / "docs" / "reference" / "datasets.md").read_text(encoding="utf-8")
    table = page[page.index("## Licences") :]
    for file in (REPOSITORY / "mdpu" / "pipeline" / "data" / "sources").glob("[!_]*.py"):
        licences = re.findall(r'licence="([^"]+)"', file.read_text(encoding="utf-8"))
        assert licences, file
        assert all(f"| {licence} |" in table for licence in licences), licences
