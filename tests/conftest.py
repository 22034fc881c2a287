"""What the tests share: a copy of the repository in which a tiny experiment has run, and a
browser.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from filelock import FileLock
from hypothesis import settings
from tracked import list_files

# Several workers share few cores, and the networks here are so small that threads only wait for one
# another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples on every machine, so that a test fails for everyone or for nobody.
settings.register_profile("mdpu", derandomize=True, deadline=None)
settings.load_profile("mdpu")

REPOSITORY = Path(__file__).resolve().parent.parent

TINY = REPOSITORY / "benchmarks" / "faults" / "tiny.yaml"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files first that take longest, so that no worker is alone with one of them at the
    end.
    """
    seconds: Counter[Path] = Counter()
    for item in items:
        limit = item.get_closest_marker("timeout")
        seconds[item.path] += (
            limit.args[0] if limit else 60 if item.get_closest_marker("slow") else 1
        )
    items.sort(key=lambda item: -seconds[item.path])


class Clone:
    """A copy of the repository, apart from the one under test."""

    # The command of the tiny experiment.
    RUN = ("./run", "tiny", "--cores", "2")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results" / "tiny"

    def copy(self, folder: Path) -> "Clone":
        """Copy it with the times of its files, by which Snakemake goes."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Clone(folder)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a user who has activated the virtual environment, with the code of
        this clone.
        """
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "PYTHONPATH": str(self.folder), "COLUMNS": "1000"}

    def command(self, *arguments: str) -> list[str]:
        """Return the Snakemake command of the tiny experiment."""
        options = ["--cores", "2", "--configfile", "config/tiny.yaml"]
        return [sys.executable, "-m", "snakemake", *arguments, *options]

    def run(self, *command: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command in the clone and insist on its exit status."""
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == status, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done

    def snakemake(self, *arguments: str, status: int = 0) -> str:
        """Run Snakemake on the tiny experiment and return all that it printed."""
        done = self.run(*self.command(*arguments), status=status)
        return done.stdout + done.stderr

    def digests(self) -> dict[str, str]:
        """Return digests of all files in the folder of results, by path."""
        files = [path for path in (self.folder / "results").rglob("*") if path.is_file()]
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        }

    def jobs(self, *arguments: str) -> dict[str, int]:
        """Return how many jobs of each rule a dry run announces."""
        lines = self.snakemake("--dry-run", *arguments).splitlines()
        if "Job stats:" not in lines:
            assert any(line.startswith("Nothing to be done") for line in lines)
            return {}
        start = lines.index("Job stats:") + 3
        table = [line.split() for line in lines[start : lines.index("", start)]]
        return {rule: int(count) for rule, count in table if rule not in ("all", "total")}

    def change_config(self, **changes: object) -> None:
        """Lay values over the tiny configuration at dotted keys, written with double
        underscores.
        """
        path = self.folder / "config" / "tiny.yaml"
        config = yaml.safe_load(path.read_text())
        for dotted, value in changes.items():
            *parents, last = dotted.split("__")
            place = config
            for key in parents:
                place = place.setdefault(key, {})
            place[last] = value
        path.write_text(yaml.safe_dump(config, sort_keys=False))


@pytest.fixture(scope="session")
def texts() -> dict[str, str]:
    """Texts of all files that git tracks, by name; what else lies in the clone is none of the
    project's.
    """
    contents = {name: (REPOSITORY / name).read_bytes() for name in list_files()}
    return {
        name: content.decode("utf-8") for name, content in contents.items() if b"\0" not in content
    }


def clone_repository(folder: Path) -> Clone:
    """Copy the project's files, link the environment, and add the tiny configuration."""
    for name in list_files("--others", "--exclude-standard"):  # what is being written counts too
        if not name.startswith("tests/"):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, target)
    (folder / ".venv").symlink_to(sys.prefix)
    shutil.copy(TINY, folder / "config" / "tiny.yaml")
    return Clone(folder)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Clone:
    """A clone in which `./run` has made the tiny experiment once, for all workers; nobody may
    change it.
    """
    base = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        base = base.parent  # shared by the workers of one session
    clone = Clone(base / "finished")
    with FileLock(base / "finished.lock"):
        if not (clone.results / "report.html").exists():
            shutil.rmtree(clone.folder, ignore_errors=True)
            clone_repository(clone.folder).run(*Clone.RUN)
    return clone


@pytest.fixture
def fresh_clone(tmp_path: Path) -> Clone:
    """A clone in which nothing has run."""
    return clone_repository(tmp_path / "clone")


@pytest.fixture
def finished_clone(finished: Clone, tmp_path: Path) -> Clone:
    """A finished clone of one's own, to change."""
    return finished.copy(tmp_path / "clone")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from browsing import start_browser

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
        shutil.copy(REPOSITORY / "tests" / "pipeline" / "report" / name, folder)
    done = subprocess.run(["npm", "ci", "--silent"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm could not install the checkers: {done.stderr[-200:]}")
    return folder / "node_modules"
