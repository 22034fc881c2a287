"""Versions of the code: what an edit makes be computed again, and what it does not."""

from __future__ import annotations

import shutil

import pytest

from mdpu.pipeline import code
from mdpu.pipeline.code import canonical, kind_version, room_version, source_version, training_version, tree_digest

BARE = "def f(x):\n    return x + 1\n"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("# why\n\n\ndef f(x):  # what\n    return (x\n            + 1)\n", True),
        ('"""A module."""\n\n\ndef f(x):\n    """A function."""\n    return x + 1\n', True),
        ("def f(x):\n    return x + 2\n", False),
        ("def f(y):\n    return y + 1\n", False),
        ("def f(x):\n    'no docstring' + ''\n    return x + 1\n", False),
    ],
)
def test_a_digest_follows_the_syntax_tree_without_docstrings(text, same):
    assert (tree_digest(text) == tree_digest(BARE)) == same


@pytest.fixture
def versions(tmp_path, monkeypatch):
    """Return what computes all versions of a copy of the package after an edit of a file."""
    copy = shutil.copytree(code.PACKAGE, tmp_path / "mdpu", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code, "PACKAGE", copy)

    def after(file=None, added=""):
        if file is not None:
            path = copy / file
            path.write_text(path.read_text() + added)
        for function in (room_version, training_version):
            function.cache_clear()
        return {
            "data": room_version("data"),
            "mnist": source_version("mnist"),
            "svhn": source_version("svhn"),
            "evaluate": room_version("evaluate"),
            "curves": kind_version("curves"),
            "table": kind_version("table"),
            "relu": training_version("relu", "mlp"),
            "bag-relu": training_version("bag-relu", "mlp"),
            "relu by resnet34": training_version("relu", "resnet34"),
            "relu by components": training_version("relu", "components"),
        }

    yield after
    monkeypatch.undo()
    for function in (room_version, training_version):
        function.cache_clear()


TRAINED = {"relu", "bag-relu", "relu by resnet34", "relu by components"}
EVERYTHING_OF_DATA = {"data", "mnist", "svhn"}
EVERYTHING_SHOWN = {"evaluate", "curves", "table"}
EDITS = {
    "errors.py": set(),
    "pipeline/plan.py": set(),
    "pipeline/cache.py": set(),
    "learn/trainer.py": TRAINED,
    "learn/methods/relu.py": {"relu", "relu by resnet34", "relu by components"},
    "learn/networks/components.py": {"relu by components"},
    "learn/networks/mlp.py": {"relu", "bag-relu", "relu by components"},
    "learn/networks/resnet34.py": {"relu by resnet34"},
    "pipeline/data/labels.py": EVERYTHING_OF_DATA,
    "pipeline/data/sources/svhn.py": {"svhn"},
    "pipeline/data/splits.py": EVERYTHING_OF_DATA | TRAINED,
    "pipeline/evaluate/published_tables.csv": EVERYTHING_SHOWN,
    "pipeline/experiments/curves.py": {"curves"},
    "pipeline/report/page.py": EVERYTHING_SHOWN,
}


@pytest.mark.parametrize("file", EDITS)
def test_an_edit_changes_the_versions_of_its_room_and_a_comment_changes_none(versions, file):
    before = versions()
    if file.endswith(".py"):
        assert versions(file, "\n# a comment\n") == before
    after = versions(file, "\nedited = 1\n")
    assert {name for name in before if after[name] != before[name]} == EDITS[file]


def test_no_method_or_network_imports_from_another_by_name():
    """So its own file, the modules beside it that it imports whole, and what all share, are all that trains it."""
    for folder in ("methods", "networks"):
        for file in (code.PACKAGE / "learn" / folder).glob("[!_]*.py"):
            assert f"mdpu.learn.{folder}." not in file.read_text()


def test_a_chain_of_declarations_ends_at_its_first_version():
    declared = {"c": "b", "b": "a"}
    assert [canonical(name, declared) for name in "abcd"] == ["a", "a", "a", "d"]
    assert canonical("a", {"a": "b", "b": "a"}) in "ab"  # a circle ends
