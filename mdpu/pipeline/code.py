"""Versions of the code: what decides whether something is computed again.

A version is a digest of syntax trees without docstrings, so comments, formatting and time stamps change nothing. A
*room* is the code behind some rules of the workflow, and its version is one of their parameters. The version of the
*training code* is part of a run's fingerprint.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from mdpu.errors import UserError
from mdpu.pipeline.data.sources import MODULES
from mdpu.pipeline.files import PACKAGE, atomic, digest, resource

# Folders and files of each room, as paths in the package. A source and a type of experiment count for their own rules.
ROOMS = {
    "data": ("pipeline/data", "law.py", "data.py", "randomness.py", "learners/features.py"),
    "evaluate": ("pipeline/evaluate", "pipeline/report"),
}
# What trains a run and makes its history, apart from the files of its method and its network.
TRAINING = (
    *("law.py", "losses.py", "scores.py", "data.py", "randomness.py", "learn"),
    *("pipeline/data/splits.py", "pipeline/validation.py", "pipeline/history.py"),
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# The trees of these texts were digested before: by the SHA-256 of the text. It spares a second at each start.
MEMORY = Path(".snakemake") / "code.json"


@cache
def room_version(room: str, *own: Path) -> str:
    """Return the version of the code behind a room's rules, and of further files that are a rule's own."""
    shared = [file for file in _files(ROOMS[room]) if file.parent.name != "sources" or file.stem == "__init__"]
    templates = _below(resource("report")) if room == "evaluate" else []
    return _version([*shared, *templates, *own])


def source_version(source: str) -> str:
    """Return the version of the code that makes the images of a source."""
    return room_version("data", PACKAGE.parent.joinpath(*MODULES[source].split(".")).with_suffix(".py"))


def kind_version(kind: str) -> str:
    """Return the version of the code that shows experiments of a kind."""
    stem = PACKAGE / "pipeline" / "experiments" / kind.replace("-", "_")
    return room_version("evaluate", *_below(stem), *_below(stem.with_suffix(".py")))


@cache
def training_version(method: str, network: str) -> str:
    """Return the version of the code that trains a method with a network."""
    shared = [file for file in _files(TRAINING) if file.parent.name not in ("methods", "networks")]
    return _version([*shared, *_module("methods", method), *_module("networks", network)])


def _files(places: Iterable[str]) -> list[Path]:
    return [file for place in places for file in _below(PACKAGE / place)]


def _below(place: Path) -> list[Path]:
    """Return a file, or all files of a folder; nothing if there is neither."""
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    return [file for file in files if file.is_file() and "__pycache__" not in file.parts and file.name[0] != "."]


def _module(folder: str, name: str) -> list[Path]:
    """Return the file of a method or a network and what it imports: files beside it, and learners with theirs.

    One of one's own has none here.
    """
    return sorted(_with_imports(_below(PACKAGE / "learn" / folder / f"{name.replace('-', '_')}.py"), folder, set()))


def _with_imports(files: Iterable[Path], folder: str, seen: set[Path]) -> set[Path]:
    for file in set(files) - seen:
        seen.add(file)
        text = file.read_text()
        beside = re.findall(r"\w+", " ".join(re.findall(rf"from mdpu\.learn\.{folder} import (.+)", text)))
        learners = re.findall(r"from mdpu\.learners\.(\w+) import", text)
        places = [Path("learn", folder, name) for name in beside] + [Path("learners", name) for name in learners]
        _with_imports((file for place in places for file in _below(PACKAGE / f"{place}.py")), folder, seen)
    return seen


def _version(files: Iterable[Path]) -> str:
    """Return a digest of what files do; where they lie does not matter."""
    memory = _remembered()
    before = len(memory)
    parts = []
    for file in files:
        content = file.read_bytes()
        name = sha256(content).hexdigest()
        if file.suffix == ".py":
            if name not in memory:
                memory[name] = tree_digest(content.decode())
            name = memory[name]
        parts.append(name)
    if len(memory) > before and MEMORY.parent.is_dir():
        with contextlib.suppress(UserError), atomic(MEMORY) as temporary:  # it only saves time
            temporary.write_text(json.dumps(memory))
    return digest(sorted(parts))


@cache
def _remembered() -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError):
        remembered = json.loads(MEMORY.read_text())
        if isinstance(remembered, dict):
            return remembered
    return {}


def tree_digest(text: str) -> str:
    """Return a digest of a module's syntax tree without docstrings; it is the same on every version of Python."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return digest(_plain(tree))


def _plain(node: Any) -> Any:
    """Return a syntax tree as lists of strings; unlike `ast.dump`, it is the same on every version of Python."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if name not in ("ctx", "kind", "type_comment")]
        return [type(node).__name__, *([name, _plain(value)] for name, value in fields if value not in (None, []))]
    return [_plain(child) for child in node] if isinstance(node, list) else repr(node)


def canonical(version: str, declared: Mapping[str, str]) -> str:
    """Return the first version that was declared to train the same bits as `version` (`mdpu.pipeline.equivalence`)."""
    seen = {version}
    while (version := declared.get(version, version)) not in seen:
        seen.add(version)
    return version
