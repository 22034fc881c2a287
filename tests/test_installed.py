"""The package, built as an sdist and from it as a wheel, and used away from the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from tracked import list_files

from mdpu import __version__
from mdpu.pipeline.files import REPOSITORY

pytestmark = pytest.mark.slow

NAME = f"mdpu-{__version__}"

# A library in an environment without the extra `pipeline`, whose packages cannot be imported here.
ALONE = """
import sys

EXTRA = "jinja2 jsonschema latex2mathml matplotlib PIL pyarrow yaml rich rocrate snakemake torchvision typer".split()

class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in EXTRA:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing)
import numpy as np
from mdpu.estimator import MDPUClassifier

images = np.random.default_rng(0).normal(size=(60, 3))
classifier = MDPUClassifier(prior=0.5, n_epochs=1, random_state=0).fit(images[:40].reshape(20, 2, 3), images[40:])
print(classifier.predict(images).shape)
import mdpu.__main__
mdpu.__main__.main()
"""

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
        if not name.startswith("results/") or name == "results/reference/README.md":
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, source / name)
    build(source, "sdist", folder)
    with tarfile.open(folder / f"{NAME}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    shutil.rmtree(source)
    assert {"LICENSE", "Snakefile", "tests"} <= {path.name for path in (folder / NAME).iterdir()}
    assert not (folder / NAME / "results").exists()
    build(folder / NAME, "wheel", folder)
    with zipfile.ZipFile(folder / f"{NAME}-py3-none-any.whl") as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def build(source: Path, target: str, folder: Path) -> None:
    """Build what the package is distributed as."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


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


def test_its_metadata_are_of_a_version_that_tools_know(installed):
    """`twine check` asks the same."""
    (metadata,) = installed.glob("*.dist-info/METADATA")
    Metadata.from_email(metadata.read_bytes())


def test_theory_needs_nothing_else(mdpu):
    assert json.loads(mdpu("coefficients", "--tuple-size", 2, "--prior", 0.5))["a"] == pytest.approx(2 / 3)


def test_what_shows_no_data_is_rendered_down_to_the_report(mdpu, tmp_path):
    config, results = ("--config", "my.yaml"), tmp_path / "out" / "mine"
    for name in ("figure2", "table1"):
        mdpu("show", name, *config)
    mdpu("evaluate", "audit", *config)
    mdpu("report", *config)
    page = (results / "report.html").read_text(encoding="utf-8")
    assert '<section id="figure2">' in page
    assert '<section id="table1">' in page
    assert {path.suffix for path in Path(results, "tables").glob("[!.]*")} == {".csv", ".tex"}


def test_it_holds_every_data_file_that_the_repository_has(installed):
    data = {path for path in (REPOSITORY / "mdpu").rglob("*") if path.suffix in (".yaml", ".csv", ".j2")}
    assert {installed / path.relative_to(REPOSITORY) for path in data} <= set(installed.rglob("*"))
    assert len(list((installed / "mdpu" / "resources" / "report").rglob("*.j2"))) > 10


def test_the_library_needs_no_extra_and_the_commands_say_which(installed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", ALONE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "(60,)", done.stderr
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: the command line needs "), done.stderr
    assert "[pipeline]" in done.stderr
