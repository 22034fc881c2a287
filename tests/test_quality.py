"""The gates: style, types, layering, pins, and what must not be in the repository."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from mdpu.pipeline.code import TRAINING
from mdpu.pipeline.files import PACKAGE, REPOSITORY

LOCK = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
ENTRIES = [Requirement(line) for line in re.findall(r"^([a-z0-9._-]+==[^\\\n]+)", LOCK, re.MULTILINE)]
# The lock serves several versions of Python; the conda environment is of this one.
PYTHON = {"python_version": "3.11", "python_full_version": "3.11.0"}
PINNED = {
    entry.name: str(entry.specifier).removeprefix("==")
    for entry in ENTRIES
    if entry.marker is None or entry.marker.evaluate(PYTHON)
}

# Two floors. A module may import from its own layer and from those before it, and the library nothing of the pipeline.
LIBRARY = [
    "errors",
    "randomness",
    "law",
    "scores",
    "losses",
    "monitoring",
    "data",
    "streaming",
    "progress",
    "learners",
    "learn",
    "groups",
    "estimator",
    "model_card",
]
PIPELINE = ["lock", "files", "data", "study", "evaluate", "report", "experiments"]
PIPELINE += ["outcome", "crate", "estimate", "console", "launch", "cli"]
LAYERS = [*LIBRARY, *(f"pipeline.{name}" for name in PIPELINE)]
DOOR = ("__init__.py", "__main__.py", "pipeline/__init__.py")  # of the program, above all layers


def tool(*command: str) -> None:
    """Run a tool of the environment in the repository and insist on success."""
    path = Path(sys.executable).parent / command[0]
    done = subprocess.run([path, *command[1:]], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# -- tools ----------------------------------------------------------------------------------------


def test_ruff_finds_nothing():
    tool("ruff", "check", ".")


def test_code_is_formatted():
    tool("ruff", "format", "--check", ".")


@pytest.mark.slow
def test_types_are_right():
    tool("mypy")


def test_what_is_imported_is_declared():
    if not (Path(sys.executable).parent / "deptry").exists():
        pytest.skip("deptry is not installed; ./run test has it")
    tool("deptry", ".")


@pytest.mark.slow
def test_the_workflow_passes_snakemakes_lint():
    tool("python", "-m", "snakemake", "--lint")


def test_the_workflow_is_formatted():
    tool("snakefmt", "--check", "Snakefile", "workflow")


# -- layers ---------------------------------------------------------------------------------------


def imports_of(path: Path) -> set[str]:
    """Names of all modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def layer_of(name: str) -> str:
    """Return the layer of a module's dotted name without ``mdpu.``; the pipeline's single files are one layer."""
    first, _, rest = name.partition(".")
    if first != "pipeline":
        return first
    second = rest.partition(".")[0]
    return f"pipeline.{second if second in PIPELINE else 'study'}"


def test_imports_go_down_only():
    package = REPOSITORY / "mdpu"
    for path in package.rglob("*.py"):
        place = path.relative_to(package).as_posix()
        if place in DOOR:
            continue
        own = layer_of(place.removesuffix(".py").replace("/", "."))
        assert own in LAYERS, f"{path} is in no layer; give it one"
        for name in imports_of(path):
            top, _, rest = name.partition(".")
            if top == "mdpu" and rest and rest != "__version__":
                layer = layer_of(rest)
                assert layer in LAYERS and LAYERS.index(layer) <= LAYERS.index(own), f"{path} imports {name} from above"


def test_no_modules_of_the_pipeline_import_each_other_in_a_circle():
    """Not within functions, nor for types alone."""
    files = {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (REPOSITORY / "mdpu" / "pipeline").rglob("*.py")
    }
    graph = {}
    for module, path in files.items():
        names = imports_of(path)
        graph[module] = {name if name in files else name.rpartition(".")[0] for name in names} & files.keys() - {module}
    TopologicalSorter(graph).prepare()  # it raises an error that names a circle


def test_mdpu_never_imports_snakemake():
    for path in (REPOSITORY / "mdpu").rglob("*.py"):
        assert not [name for name in imports_of(path) if name.split(".")[0].startswith("snakemake")], path


@pytest.mark.parametrize(
    "program",
    [
        "import mdpu.data",
        "import mdpu.pipeline.cli",
        "from mdpu.learn.methods import available_methods, load_method;"
        "titles = [load_method(name).title for name in available_methods()]; assert len(titles) > 12",
        "from mdpu.learn import Settings; from mdpu.learn.networks import available_networks;"
        "[Settings(network=name) for name in available_networks()]",
    ],
)
def test_what_does_not_compute_loads_no_torch(program):
    program += "; import sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY).returncode == 0


def test_all_code_that_training_loads_counts_as_training_code():
    """Otherwise an edit of it would retrain nothing."""
    program = (
        "import sys, mdpu.learn.fitting\n"
        "from mdpu.learn.networks import load_network\nfrom mdpu.learn.trainer import head_of\n"
        "from mdpu.learn.task import Task\nimport torch\n"
        "for name in ('siamese', 'abs'):\n"
        "    head_of(Task(name, 2, 0.5))([Task(name, 2, 0.5)], torch.device('cpu'))\n"
        "import mdpu.learn.networks.mlp\n"
        "print('\\n'.join(m.__file__ for n, m in sys.modules.items() if n.startswith('mdpu.') and m.__file__))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = {Path(line).resolve() for line in done.stdout.split()}
    harmless = {PACKAGE / "errors.py", PACKAGE / "progress.py"}  # they speak, and compute nothing
    places = [PACKAGE / place for place in TRAINING]
    others = {path for path in loaded - harmless if not any(path.is_relative_to(place) for place in places)}
    assert {path for path in others if path.name != "__init__.py"} == set()


# -- pins -----------------------------------------------------------------------------------------


def test_the_conda_environment_has_the_versions_of_the_lock():
    environment = yaml.safe_load((REPOSITORY / "envs" / "mdpu.yaml").read_text(encoding="utf-8"))
    pins = dict(
        pin.split("==") for part in environment["dependencies"] if isinstance(part, dict) for pin in part["pip"]
    )
    assert pins == {name: PINNED[name] for name in pins}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["pipeline"]]
    direct = {re.split(r"[<>=]", dependency)[0] for dependency in wanted}
    # Snakemake is what reads this file, so it cannot come from it.
    assert set(pins) == {name for name in direct if not name.startswith("snakemake")}


def test_the_lock_holds_every_dependency_with_a_hash():
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    groups = [
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *settings["dependency-groups"].values(),
    ]
    direct = [entry for group in groups for entry in group if isinstance(entry, str)]  # a group may include another
    assert {Requirement(entry).name for entry in direct} <= set(PINNED)
    assert settings["build-system"]["requires"] == [f"hatchling=={PINNED['hatchling']}"]
    blocks = re.split(r"^(?=[a-z0-9._-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(ENTRIES)
    assert all("--hash=sha256:" in block for block in blocks)


def test_the_lock_names_no_place_to_download_from():
    assert not re.findall(r"https?://|--index-url|--extra-index-url|--find-links| @ ", LOCK)


# -- what must not be there -----------------------------------------------------------------------


def test_no_file_names_a_folder_of_the_machine_that_made_it(texts):
    # Written in two parts, so that this file does not hold them.
    forbidden = ["/wo" + "rk/", "opt/" + "pypi", "/ro" + "ot/"]
    for name, text in texts.items():
        assert not [place for place in forbidden if place in text], name


def test_shell_scripts_pass_shellcheck(texts):
    scripts = [name for name, text in texts.items() if re.match(r"#!.*\b(ba)?sh\b", text)]
    if not scripts or not shutil.which("shellcheck"):
        pytest.skip("no shell script, or no shellcheck")
    tool(shutil.which("shellcheck"), *scripts)
