"""A browser, and a report of synthetic runs that compares with the paper."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from browsing import start_browser
from synthetic import write_results

from mdpu.pipeline.config import load_config
from mdpu.pipeline.plan import Plan

HOSTILE = """<script>alert(1)</script> & "Ü" 'x' \\{} 100% #1 ~^"""
# Both families of methods, both groups of a table's head, and names that a template must not take for markup.
OPEN = {
    "kind": "table",
    "title": "An open choice",
    "part": "beyond",
    "tuple_size": [2],
    "variant": ["without"],
    "n": 10000,
}
SYNTHETIC = {
    "name": "synthetic",
    "datasets": ["mnist", "emnist-letters-a-i"],
    "experiments": ["figure1", "table1", "table2", "table4", "figure5", "extended-pairs", "bags-size", "open"],
    "definitions": {
        "datasets": {"emnist-letters-a-i": {"title": HOSTILE}},
        "variants": {"without": {"sampling": {"replacement": False}}},
        "experiments": {"open": OPEN, "table4": {"title": f"Table IV: {HOSTILE}"}},
    },
}


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory):
    """The plan of a report of synthetic runs, whose page is written."""
    folder = tmp_path_factory.mktemp("synthetic")
    (folder / "synthetic.yaml").write_text(yaml.safe_dump(SYNTHETIC, allow_unicode=True), encoding="utf-8")
    plan = Plan(load_config([folder / "synthetic.yaml"], [f"results_dir={folder / 'results'}"]))
    write_results(plan)
    return plan


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    # A drawer that slides in is not displayed at once.
    driver = start_browser(tmp_path_factory.mktemp("chromium"), "force-prefers-reduced-motion")
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def checkers(tmp_path_factory):
    """Folder with axe-core and the Nu validator, as ``package-lock.json`` pins them."""
    if not shutil.which("npm"):
        pytest.skip("npm is missing")
    folder = tmp_path_factory.mktemp("checkers")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(__file__).parent / name, folder)
    done = subprocess.run(["npm", "ci", "--silent"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm could not install the checkers: {done.stderr[-200:]}")
    return folder / "node_modules"
