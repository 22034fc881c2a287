"""The gates: style, types, layers, pins, and what must not be in the repository."""

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from tracked import list_files

from mdpu.pipeline.files import REPOSITORY

LOCK = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
ENTRIES = [
    Requirement(line) for line in re.findall(r"^([a-z0-9._-]+==[^\\\n]+)", LOCK, re.MULTILINE)
]
# The lock serves several versions of Python; the conda environment is of this one.
PYTHON = {"python_version": "3.11", "python_full_version": "3.11.0"}
PINNED = {
    entry.name: str(entry.specifier).removeprefix("==")
    for entry in ENTRIES
    if entry.marker is None or entry.marker.evaluate(PYTHON)
}
FILES = [
    name for name in list_files("--others", "--exclude-standard") if (REPOSITORY / name).is_file()
]
MODULES = {
    name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): REPOSITORY / name
    for name in FILES
    if name.startswith("mdpu/") and name.endswith(".py")
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
PROSE = (
    "proselint check README.md ARTIFACT.md CHANGELOG.md CONTRIBUTING.md docs/explanation "
    "docs/how-to docs/reference"
)
SLOW = ("mypy", "python -m snakemake --lint")
QUICK = (
    "ruff check .",
    "ruff format --check .",
    "snakefmt --check workflow",
    "deptry .",
    "codespell",
    PROSE,
)


@pytest.mark.parametrize(
    "command", [*QUICK, *(pytest.param(command, marks=pytest.mark.slow) for command in SLOW)]
)
def test_a_tool_finds_nothing(command):
    name, *arguments = command.split()
    tool = [Path(sys.executable).parent / name, *arguments]
    done = subprocess.run(tool, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def imports(tree: ast.AST) -> list[str]:
    """Return the names of all modules that a piece of code imports, and of what it imports from
    them.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import is relative"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def test_the_library_imports_nothing_of_the_pipeline_and_nothing_imports_snakemake():
    for name, tree in TREES.items():
        above = ["snakemake"]
        if name != "mdpu" and not name.startswith(("mdpu.pipeline", "mdpu.own", "mdpu.__main__")):
            above += ["mdpu.pipeline", "mdpu.own"]
        assert not [other for other in imports(tree) if other.startswith(tuple(above))], name


def test_a_classifier_from_files_needs_no_more_than_its_extra():
    """Neither the paper's side of the pipeline nor its packages are loaded by the commands `fit`
    and `predict`.
    """
    needless = [
        "snakemake",
        "torchvision",
        "filelock",
        "jsonschema",
        "yaml",
        "latex2mathml",
        "mdpu.pipeline.plan",
    ]
    program = "import sys, mdpu.pipeline.cli, mdpu.own.page; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert not {*needless} & {*done.stdout.split()}


def test_no_modules_import_each_other_in_a_circle():
    """Imports within functions and for types alone close no circle when a module is loaded."""
    graph = {}
    for name, tree in TREES.items():
        loaded = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = imports(ast.Module(loaded, []))
        graph[name] = {
            one if one in MODULES else one.rpartition(".")[0] for one in names
        } & MODULES.keys() - {name}
    TopologicalSorter(graph).prepare()  # it raises an error that names a circle


def test_what_does_not_compute_loads_no_torch():
    names = (
        "mdpu.data, mdpu.law, mdpu.methods, mdpu.settings, mdpu.pipeline.plan, mdpu.pipeline.show"
    )
    titles = "[mdpu.methods.load_method(name).title for name in mdpu.methods.available_methods()]"
    program = f"import sys, {names}; {titles}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY).returncode == 0


def pyproject():
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))


def conda_pins():
    """Return the versions of the conda environment by name; the package itself has none."""
    text = (REPOSITORY / "envs" / "mdpu.yaml").read_text(encoding="utf-8")
    dependencies = yaml.safe_load(text)["dependencies"]
    (pip,) = [part["pip"] for part in dependencies if isinstance(part, dict)]
    return dict(pin.split("==") for pin in pip if "==" in pin)


def test_the_conda_environment_has_the_versions_of_the_lock():
    assert conda_pins().items() <= PINNED.items()


def test_the_conda_environment_has_what_the_package_and_its_pipeline_need():
    project = pyproject()["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["pipeline"]]
    direct = {Requirement(entry).name for entry in wanted}
    # Snakemake is what reads this file, so it cannot come from it.
    assert set(conda_pins()) == {name for name in direct if not name.startswith("snakemake")}


def test_the_lock_holds_every_dependency_with_a_hash_and_names_no_place():
    settings = pyproject()
    project = settings["project"]
    others = settings["dependency-groups"].values()
    groups = [project["dependencies"], *project["optional-dependencies"].values(), *others]
    # a group may include another
    direct = [entry for entry in itertools.chain(*groups) if isinstance(entry, str)]
    assert {Requirement(entry).name for entry in direct} <= set(PINNED)
    assert settings["build-system"]["requires"] == [f"hatchling=={PINNED['hatchling']}"]

    blocks = re.split(r"^(?=[a-z0-9._-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(ENTRIES)
    assert all("--hash=sha256:" in block for block in blocks)
    assert not re.findall(r"https?://|--index-url|--extra-index-url|--find-links| @ ", LOCK)


def test_no_file_names_a_folder_of_the_machine_that_made_it(texts):
    # in two parts, so that this file does not hold them
    forbidden = ["/wo" + "rk/", "opt/" + "pypi", "/ro" + "ot/"]
    for name, text in texts.items():
        assert not [place for place in forbidden if place in text], name
