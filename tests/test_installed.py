"""The package, built as an sdist and from it as a wheel, and used away from the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tracked import list_files

from mdpu import __version__
from mdpu.pipeline.files import REPOSITORY

pytestmark = pytest.mark.slow

NAME = f"mdpu-{__version__}"

# A library in an environment without the extra `pipeline`, whose packages cannot be imported here.
ALONE = """
import sys

EXTRA = "jinja2 jsonschema latex2mathml matplotlib PIL psutil pyarrow yaml snakemake torchvision".split()

class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in EXTRA:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing)
import numpy as np
from mdpu.estimator import MDPUClassifier

images = np.random.default_rng(0).normal(size=(60, 3))
classifier = MDPUClassifier(prior=0.5, random_state=0).fit(images[:40].reshape(20, 2, 3), images[40:])
print(classifier.predict(images).shape)
"""
PLAN = """
from mdpu.pipeline.config import load_config
from mdpu.pipeline.plan import Plan
print(len(Plan(load_config()).runs))
"""


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
    with tarfile.open(folder / f"{NAME}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    assert {"LICENSE", "config.yaml", "tests", "workflow"} <= {path.name for path in (folder / NAME).iterdir()}
    build(folder / NAME, "wheel", folder)
    with zipfile.ZipFile(folder / f"{NAME}-py3-none-any.whl") as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_it_holds_every_data_file_that_the_repository_has(installed):
    data = {path for path in (REPOSITORY / "mdpu").rglob("*") if path.suffix in (".yaml", ".csv", ".mplstyle")}
    assert {installed / path.relative_to(REPOSITORY) for path in data} <= set(installed.rglob("*"))
    assert len(list((installed / "mdpu" / "resources" / "report").rglob("*.j2"))) > 5


@pytest.mark.parametrize(("program", "printed"), [(ALONE, "(60,)"), (PLAN, None)], ids=["library", "pipeline"])
def test_it_works_away_from_the_repository(installed, tmp_path, program, printed):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert printed is None or done.stdout.strip() == printed
