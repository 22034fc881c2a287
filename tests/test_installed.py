"""The package, built as a wheel and installed away from the repository, with the packages that are there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tracked import list_files

from mdpu.pipeline.files import REPOSITORY

pytestmark = pytest.mark.slow

MINE = """
name: mine
results_dir: out
experiments: [figure2, table1]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that holds the package as a wheel has it."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"  # hatchling would leave files beside the code
    for name in list_files("--others", "--exclude-standard"):
        if not name.startswith(("tests/", "results/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, source / name)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    shutil.rmtree(source)
    return folder / "site"


@pytest.fixture
def mdpu(installed, tmp_path):
    """Return what runs a command of the installed package in an empty folder."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}

    def run(*arguments: object) -> str:
        command = [sys.executable, "-m", "mdpu", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    program = [
        sys.executable,
        "-c",
        "from mdpu.pipeline.files import PACKAGE, git_commit; print(PACKAGE, git_commit())",
    ]
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == [str(installed / "mdpu"), "unknown"]
    (tmp_path / "my.yaml").write_text(MINE)
    return run


def test_theory_needs_nothing_else(mdpu):
    assert json.loads(mdpu("coefficients", "--tuple-size", 2, "--prior", 0.5))["a"] == pytest.approx(2 / 3)


def test_a_configuration_of_ones_own_is_laid_over_the_papers(mdpu):
    assert json.loads(mdpu("plan", "--config", "my.yaml"))["experiments"] == {"figure2": 0, "table1": 0}


def test_what_shows_no_data_is_rendered_down_to_the_report(mdpu, tmp_path):
    config, results = ("--config", "my.yaml"), tmp_path / "out" / "mine"
    for name in ("figure2", "table1"):
        mdpu("show", *config, "--experiment", name, "--out", results)
    mdpu("audit", *config, "--labels", results / "labels", "--out", results / "audit.csv")
    mdpu("report", *config, "--results", results, "--out", results / "report.html")
    page = (results / "report.html").read_text(encoding="utf-8")
    assert '<section id="figure2">' in page
    assert '<section id="table1">' in page
    assert {path.suffix for path in Path(results, "tables").glob("[!.]*")} == {".csv", ".md", ".tex"}


def test_it_holds_every_data_file_that_the_repository_has(installed):
    data = {path for path in (REPOSITORY / "mdpu").rglob("*") if path.suffix in (".yaml", ".csv", ".j2")}
    assert {installed / path.relative_to(REPOSITORY) for path in data} <= set(installed.rglob("*"))
    assert len(list((installed / "mdpu" / "resources" / "report").rglob("*.j2"))) > 10
