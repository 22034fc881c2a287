"""The package, built as an sdist and from it as a wheel, and used away from the repository."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tracked import list_files

from mdpu import __version__
from mdpu.pipeline.files import REPOSITORY

pytestmark = pytest.mark.slow

NAME = f"mdpu-{__version__}"

# What works away from the repository: the library without the packages of the extra `pipeline`, and
# a plan.
PROGRAMS = {
    "library": """
import sys
extra = "jinja2 jsonschema latex2mathml matplotlib PIL psutil yaml snakemake torchvision"
for name in extra.split():
    sys.modules[name] = None  # importing it fails
import numpy as np
from mdpu.estimator import MDPUClassifier
images = np.random.default_rng(0).normal(size=(60, 3))
classifier = MDPUClassifier(prior=0.5, random_state=0)
classifier.fit(images[:40].reshape(20, 2, 3), images[40:])
assert classifier.predict(images).shape == (60,)
""",
    "pipeline": """
from mdpu.pipeline.config import load_config
from mdpu.pipeline.plan import Plan
assert Plan(load_config()).runs
""",
}


def build(source: Path, target: str, folder: Path) -> None:
    """Build what the package is distributed as."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that holds the package as a wheel has it."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"  # hatchling would leave files beside the code
    for name in list_files("--others", "--exclude-standard"):
        if not name.startswith("results/"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, source / name)
    build(source, "sdist", folder)
    shutil.unpack_archive(folder / f"{NAME}.tar.gz", folder)
    assert {"LICENSE", "config.yaml", "tests", "workflow"} <= {
        path.name for path in (folder / NAME).iterdir()
    }
    build(folder / NAME, "wheel", folder)
    with zipfile.ZipFile(folder / f"{NAME}-py3-none-any.whl") as archive:
        archive.extractall(folder / "site")
    data = {
        path
        for path in (REPOSITORY / "mdpu").rglob("*")
        if path.suffix in (".yaml", ".csv", ".mplstyle")
    }
    assert {folder / "site" / path.relative_to(REPOSITORY) for path in data} <= set(
        (folder / "site").rglob("*")
    )
    return folder / "site"


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_works_away_from_the_repository(installed, tmp_path, name):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    subprocess.run(
        [sys.executable, "-c", PROGRAMS[name]], cwd=tmp_path, env=environment, check=True
    )
