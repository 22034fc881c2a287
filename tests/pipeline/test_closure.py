"""Which files a function depends on, and what a digest of code takes for the same."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpu.learn.methods import load_method
from mdpu.pipeline.closure import closure, code_digest
from mdpu.pipeline.config import available_methods
from mdpu.pipeline.files import PACKAGE, REPOSITORY

# -- a small package ------------------------------------------------------------------------------

FILES = {
    "__init__.py": '"""A package."""\nVERSION = "1"\n',
    "used.py": (
        "def one():\n    from small import deep\n    return deep.thing()\n\ndef two():\n    from small import rare\n"
    ),
    "deep.py": "def thing(): ...\n",
    "rare.py": "VALUES = [1]\n",
    "types.py": "class Only: ...\n",
    "constants.py": "WORD = 'word'\n",
    "front/__init__.py": "from small.front.back import answer\n",
    "front/back.py": "def answer():\n    import small.deep\n",
    "registry.py": (
        "import functools\nKNOWN = []\ndef register(f):\n    KNOWN.append(f)\n\n"
        "@register\ndef first():\n    from small import deep\n\n"
        "@functools.cache\ndef cached():\n    from small import rare\n"
    ),
    "shape.py": (
        "from small import constants\nimport json\n\n"
        "class Base:\n    def way(self):\n        from small import deep\n\n"
        "class Derived(Base):\n    word = constants.WORD\n\n"
        "class Encoder(json.JSONEncoder):\n    def default(self, value):\n        from small import rare\n\n"
        "class Built:\n    def __init__(self):\n        from small import rare\n"
    ),
}


@pytest.fixture
def small(tmp_path):
    """A package in which entries of the tests are written as modules ``entry``."""
    package = tmp_path / "small"
    for name, text in FILES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    return package


def names(package, *entries, **options):
    return {str(path.relative_to(package)) for path in closure(*entries, package=package, **options)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def run():\n    from small.used import one\n    one()", {"used.py", "deep.py"}),
        ("def run():\n    from small.used import two\n    two()", {"used.py", "rare.py"}),
        ("def run():\n    from small import used\n    used.one", {"used.py", "deep.py"}),
        ("from small.used import one\ndef run(): ...", {"used.py"}),
        ("from small.used import one as other\ndef run():\n    return list(map(other, []))", {"used.py", "deep.py"}),
        ("def helper():\n    import small.rare\ndef run():\n    helper()", {"rare.py"}),
        ("def helper():\n    import small.rare\ndef run(): ...", set()),
        ("def helper():\n    import small.rare\ndef run(helper):\n    return helper", set()),
        ("def helper():\n    import small.rare\ndef run():\n    return [helper for helper in 'ab']", set()),
        ("def helper():\n    import small.rare\ndef run():\n    return [x for x in 'ab' if helper]", {"rare.py"}),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from small.types import Only\ndef run(): ...",
            set(),
        ),
        ("from small.types import Only\ndef run(only: Only) -> Only: ...", {"types.py"}),
        ("from small import front\ndef run():\n    front.answer()", {"front/__init__.py", "front/back.py", "deep.py"}),
        ("from small.front import back\ndef run(): ...", {"front/__init__.py", "front/back.py"}),
        ("from small import registry\ndef run(): ...", {"registry.py", "deep.py"}),
        ("from small.shape import Derived\ndef run(): ...", {"shape.py", "constants.py"}),
        ("from small.shape import Derived\ndef run():\n    Derived()", {"shape.py", "constants.py"}),
        ("from small.shape import Derived\ndef run(x):\n    x.way(Derived)", {"shape.py", "constants.py", "deep.py"}),
        ("from small.shape import Base\ndef run(x):\n    Base, x()[0].way", {"shape.py", "constants.py", "deep.py"}),
        ("from small.shape import Base\ndef run(x):\n    x.way()\n    Base", {"shape.py", "constants.py", "deep.py"}),
        (
            "from small.shape import Base\ndef run():\n    getattr(Base(), 'way')",
            {"shape.py", "constants.py", "deep.py"},
        ),
        ("from small.shape import Encoder\ndef run():\n    Encoder()", {"shape.py", "constants.py", "rare.py"}),
        ("from small.shape import Built\ndef run():\n    Built()", {"shape.py", "constants.py", "rare.py"}),
        ("import small\ndef run():\n    return small.VERSION", {"__init__.py"}),
        ("import numpy, small.rare\ndef run(): ...", {"rare.py"}),
        (
            "try:\n    import small.rare\nexcept ImportError:\n    import small.deep\ndef run(): ...",
            {"rare.py", "deep.py"},
        ),
    ],
)
def test_a_function_depends_on_what_it_reaches(small, text, expected):
    (small / "entry.py").write_text(text)
    assert names(small, "small.entry.run") == {"entry.py", *expected}


def test_all_of_a_module_counts_where_it_is_the_entry(small):
    assert names(small, "small.used") == {"used.py", "deep.py", "rare.py"}


def test_what_is_left_out_is_neither_listed_nor_followed(small):
    assert names(small, "small.used", without=["small.deep"]) == {"used.py", "rare.py"}
    assert names(small, "small.front", without=["small.front.back"]) == {"front/__init__.py"}


@pytest.mark.parametrize("entry", ["small.nothing", "small.used.three", "other.used", "small.used.one.two"])
def test_an_entry_that_is_not_there_is_refused(small, entry):
    with pytest.raises(LookupError, match=entry):
        closure(entry, package=small)


def test_data_files_count_where_they_are_named():
    assert PACKAGE / "pipeline" / "config.schema.yaml" in closure("mdpu.pipeline.config.check_config")
    assert PACKAGE / "pipeline" / "evaluate" / "published_tables.csv" in closure("mdpu.pipeline.evaluate.published")
    assert {path for path in (REPOSITORY / "report").rglob("*") if path.is_file()} <= set(
        closure("mdpu.pipeline.report.page")
    )
    assert PACKAGE / "pipeline" / "evaluate" / "published_tables.csv" not in closure("mdpu.learn.trainer")


# -- the package ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module",
    [
        "mdpu.pipeline.cli",
        "mdpu.pipeline.data.splits",
        "mdpu.pipeline.plan",
        "mdpu.learn.trainer",
        "mdpu.pipeline.evaluate.claims",
        "mdpu.pipeline.report.page",
    ],
)
def test_it_holds_whatever_an_import_loads(module):
    """Python itself is the oracle; packages of nothing but a docstring apart."""
    program = f"import sys, {module}\nprint(*(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'mdpu'))"
    run = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = {Path(file) for file in run.stdout.split()}
    assert len(loaded) > 3
    assert {path for path in loaded - set(closure(module)) if not is_inert(path)} == set()


def is_inert(path: Path) -> bool:
    body = ast.parse(path.read_text()).body
    return all(isinstance(getattr(node, "value", None), ast.Constant) for node in body)


# -- digests --------------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, to edit."""
    return shutil.copytree(PACKAGE, tmp_path / "mdpu", ignore=shutil.ignore_patterns("__pycache__"))


def training_digest(package: Path) -> str:
    methods = [f"mdpu.learn.methods.{name.replace('-', '_')}" for name in available_methods()]
    return code_digest(closure("mdpu.learn.trainer", *methods, package=package))


def test_prose_changes_no_digest_of_the_training_code_and_code_does(copied):
    before = training_digest(copied)
    risk = copied / "learn" / "risk.py"
    text = risk.read_text()
    docstring = ast.get_docstring(ast.parse(text), clean=False)
    risk.write_text(text.replace(docstring, "Other words.\n\nIn several lines.") + "\n\n# A remark.\n")
    assert training_digest(copied) == before
    risk.write_text(text + "\nANSWER = 42\n")
    assert training_digest(copied) != before


def test_every_method_has_a_digest_of_its_own():
    trainer = closure("mdpu.learn.trainer")
    for name in available_methods():
        load_method(name)
        file = PACKAGE / "learn" / "methods" / f"{name.replace('-', '_')}.py"
        assert file in closure(f"mdpu.learn.methods.{file.stem}")
        assert file not in trainer


@given(st.lists(st.sampled_from(["# why", "", "    # deeper"]), min_size=1, max_size=4))
def test_comments_and_empty_lines_are_no_code(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("code")
    (folder / "plain.py").write_text("def f(x):\n    return x + 1\n")
    (folder / "wordy.py").write_text(
        '"""What it is."""\n' + "def f(x):\n    '''Return more.'''\n" + "\n".join(lines) + "\n    return x + 1\n"
    )
    assert code_digest([folder / "plain.py"]) == code_digest([folder / "wordy.py"])


@pytest.mark.parametrize(
    "other",
    [
        "def f(x):\n    return x + 2\n",
        "def f(x):\n    return x - 1\n",
        "def f(y):\n    return y + 1\n",
        "def f(x):\n    return x + 1.0\n",
    ],
)
def test_other_code_has_another_digest(tmp_path, other):
    (tmp_path / "one.py").write_text("def f(x):\n    return x + 1\n")
    (tmp_path / "other.py").write_text(other)
    assert code_digest([tmp_path / "one.py"]) != code_digest([tmp_path / "other.py"])


def test_a_data_file_counts_by_its_bytes(tmp_path):
    (tmp_path / "a.csv").write_text("1\n")
    (tmp_path / "b.csv").write_text("1 \n")
    assert code_digest([tmp_path / "a.csv"]) != code_digest([tmp_path / "b.csv"])


# -- the rules ------------------------------------------------------------------------------------

# When its process ends, this writes the files of the package whose functions ran. What runs during imports does not
# count: discovered modules are imported only to be read.
PROFILER = """
import atexit, json, os, sys, threading
ran = set()

def note(frame, event, argument):
    file = frame.f_code.co_filename
    if event != "call" or file in ran or "/mdpu/" not in file or "site-packages" in file:
        return
    outer = frame
    while outer is not None:
        if outer.f_code.co_name == "<module>" and not outer.f_code.co_filename.endswith("__main__.py"):
            return
        outer = outer.f_back
    ran.add(file)

sys.setprofile(note)
threading.setprofile(note)
atexit.register(lambda: open(os.environ["RAN"], "w").write(json.dumps(sorted(ran))))
"""


@pytest.mark.slow
def test_the_inputs_of_each_rule_hold_the_code_that_its_command_runs(finished_clone, tmp_path):
    """Each rule's command is run again with its functions noted: their files are among the inputs."""
    (tmp_path / "sitecustomize.py").write_text(PROFILER)
    jobs = {}
    for record in (finished_clone.folder / ".snakemake" / "metadata").iterdir():
        job = json.loads(record.read_text())
        jobs.setdefault(job["rule"], job)
    assert {"train", "collect", "labels", "split", "render_report"} <= set(jobs)
    (config,) = (finished_clone.results / "config").glob("*.yaml")
    for rule, job in jobs.items():
        environment = {**finished_clone.environment, "MDPU_CONFIG": str(config), "RAN": str(tmp_path / "ran.json")}
        environment["PYTHONPATH"] = str(tmp_path)
        if rule == "train":
            shutil.rmtree(finished_clone.results / "runs")
        subprocess.run(
            job["shellcmd"], shell=True, executable="/bin/bash", cwd=finished_clone.folder, env=environment, check=True
        )
        ran = {Path(file) for file in json.loads((tmp_path / "ran.json").read_text())}
        inputs = {(finished_clone.folder / file).resolve() for file in job["input"]}
        package = finished_clone.folder / "mdpu"
        # The command line passes on what stands in the rule; what a plan asks of kinds stands in its params.
        apart = {package / "__main__.py", *(package / "cli").iterdir(), *(package / "kinds").rglob("*.py")}
        apart.add(package / "learn" / "methods" / "__init__.py")  # by which a kind checks methods
        code = {path for path in ran - apart if package in path.parents}
        assert code, rule
        assert code - inputs == set(), rule
        kind = rule.removeprefix("show_")
        assert rule == kind or package / "kinds" / f"{kind}.py" in ran & inputs
