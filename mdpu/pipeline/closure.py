"""Which files of the package a module or a function depends on, read from syntax trees.

The rules of the workflow list these files as inputs, and finished runs have them in their fingerprints. Nothing is
imported. What counts:

- A module that is imported runs, and so do the packages around it: their imports count.
- A function counts if reached code names it, or if a decorator of the package receives it.
- A method of a class that reached code names counts if any reached code names it, or if it is special like
  ``__init__``. All methods count if the class derives from one of another package, which may call them.
- A block under ``if TYPE_CHECKING`` never runs.
- A data file counts if reached code names it: ``resource("mdpu/pipeline/config.schema.yaml")``.

Modules that are loaded by name at run time, such as methods, are not seen. The caller who knows the name adds them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mdpu.pipeline.files import PACKAGE, digest, resource
from mdpu.pipeline.seals import sha256

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_NAMED_BY_TEXT = {"resource": "resource", "getattr": "attribute"}


def closure(*entries: str, without: Iterable[str] = (), package: Path = PACKAGE) -> list[Path]:
    """Return the files that modules or functions depend on, in order of their paths.

    Parameters
    ----------
    *entries : str
        Dotted names, such as ``mdpu.learn.trainer`` (everything in it) or ``mdpu.pipeline.cli.evaluation.compare``.
    without : iterable of str
        Dotted names of modules and packages that are neither listed nor followed.
    package : Path
        Folder of the package with whose name the entries begin.

    Raises
    ------
    LookupError
        If an entry is neither a module nor a definition in one.
    """
    walk = _Walk(package, frozenset(without))
    for entry in entries:
        walk.enter(entry)
    return sorted(walk.files)


def code_digest(files: Iterable[Path]) -> str:
    """Return a digest of what files do; their order does not matter.

    A Python file counts by its syntax tree without docstrings and comments, so prose changes nothing. Any other file
    counts by its content.
    """
    return digest(sorted(_tree_digest(file) if file.suffix == ".py" else sha256(file) for file in files))


class _Walk:
    """The files reached so far, and the steps from one definition to the next."""

    def __init__(self, package: Path, without: frozenset[str]) -> None:
        self.package = package
        self.without = without
        self.files: set[Path] = set()
        self._reached: set[tuple[str, str]] = set()  # module and definition; "" is what importing the module runs
        self._attributes: set[str] = set()  # names that reached code asks any object for
        self._waiting: dict[str, list[tuple[_Module, Function]]] = {}  # methods that nobody has named yet

    def enter(self, entry: str) -> None:
        """Reach an entry: all definitions of a module, or one."""
        name, rest = self._split(entry)
        module = self._module(name)
        if module is None or len(rest) > 1 or (rest and rest[0] not in module.definitions):
            raise LookupError(f"{entry} is neither a module nor a definition of one in {self.package}")
        self._run(name)
        for definition in rest or module.definitions:
            self._define(name, definition)

    def _name(self, dotted: str) -> None:
        """Reach what a dotted name stands for, wherever it is defined."""
        name, rest = self._split(dotted)
        module = self._module(name)
        if module is None or not rest:
            return
        self.files.add(module.path)  # even if it holds only constants: one of them is named
        if rest[0] in module.definitions:
            self._define(name, rest[0])
        elif rest[0] in module.imports:
            self._name(".".join([module.imports[rest[0]], *rest[1:]]))

    def _run(self, name: str) -> None:
        """Reach what an import of a module runs; the packages around it come first."""
        if "." in name:
            self._run(name.rpartition(".")[0])
        module = self._module(name)
        if module is None or (name, "") in self._reached:
            return
        self._reached.add((name, ""))
        if not module.inert:
            self.files.add(module.path)
        self._follow(module, module.statements, at_import=True)
        for definition, nodes in module.definitions.items():
            if any(self._is_own(module, decorator) for node in nodes for decorator in node.decorator_list):
                self._define(name, definition)

    def _is_own(self, module: _Module, node: ast.expr) -> bool:
        """Return whether a decorator or a base class is defined in the package."""
        dotted = _dotted(node.func if isinstance(node, ast.Call) else node)
        return dotted in module.definitions or self._defines(module.imports.get(dotted, ""))

    def _defines(self, dotted: str) -> bool:
        name, rest = self._split(dotted)
        module = self._module(name)
        return module is not None and len(rest) == 1 and rest[0] in module.definitions

    def _define(self, name: str, definition: str) -> None:
        """Reach a function or a class of a module."""
        module = self._module(name)
        assert module is not None
        if (name, definition) not in self._reached:
            self._reached.add((name, definition))
            for node in module.definitions[definition]:
                if isinstance(node, ast.ClassDef) and all(self._is_own(module, base) for base in node.bases):
                    self._wait(module, node)
                else:
                    self._follow(module, [node], at_import=False)

    def _wait(self, module: _Module, node: ast.ClassDef) -> None:
        """Reach a class and those of its methods that are named; the others wait until they are."""
        methods = [child for child in node.body if isinstance(child, Function)]
        self._follow(module, [node], at_import=True)
        for method in methods:
            if method.name in self._attributes or method.name.startswith("__"):
                self._follow(module, [method], at_import=False)
            else:
                self._waiting.setdefault(method.name, []).append((module, method))

    def _ask(self, attribute: str) -> None:
        """Reach the waiting methods of this name."""
        self._attributes.add(attribute)
        for module, method in self._waiting.pop(attribute, []):
            self._follow(module, [method], at_import=False)

    def _follow(self, module: _Module, nodes: Sequence[ast.AST], at_import: bool) -> None:
        """Reach what nodes of a module use; see `_uses` for `at_import`."""
        names = dict(module.imports)
        if not at_import:
            names |= {name: target for node in nodes for child in ast.walk(node) for name, target in _imports(child)}
        for how, dotted in (use for node in nodes for use in _uses(node, at_import)):
            first, _, rest = dotted.partition(".")
            if how == "import":
                self._run(self._split(dotted)[0])
            elif how == "resource":
                self.files |= _data_files(dotted)
            elif how == "attribute":
                self._ask(dotted)
            elif first in names:
                self._name(f"{names[first]}.{rest}" if rest else names[first])
            elif first in module.definitions:
                self._define(module.name, first)

    def _split(self, dotted: str) -> tuple[str, list[str]]:
        """Return the longest prefix of a dotted name that is a module, and the parts after it."""
        parts = dotted.split(".")
        if any(".".join(parts[:length]) in self.without for length in range(1, len(parts) + 1)):
            return dotted, []
        for length in range(len(parts), 0, -1):
            if self._module(".".join(parts[:length])) is not None:
                return ".".join(parts[:length]), parts[length:]
        return dotted, []

    def _module(self, name: str) -> _Module | None:
        """Return a module of the package, or None if there is no such module or it is left out."""
        parts = name.split(".")
        if parts[0] != self.package.name or name in self.without:
            return None
        stem = self.package.joinpath(*parts[1:])
        for path in (stem / "__init__.py", stem.with_suffix(".py")):
            if path.is_file():
                return _parse(name, path, path.stat().st_mtime_ns)
        return None


class _Module:
    """A parsed source file.

    Attributes
    ----------
    name : str
    path : Path
    statements : list of ast.stmt
        What an import of it runs, without the blocks for type checkers.
    definitions : dict of list
        Its functions and classes by name; several where branches define one name.
    imports : dict of str
        The imported names, each with the dotted name that it stands for.
    inert : bool
        Whether it holds only a docstring and constants.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        self.statements: Sequence[ast.stmt] = list(_running(tree.body))
        self.definitions: dict[str, list[Definition]] = {}
        for node in self.statements:
            if isinstance(node, Definition):
                self.definitions.setdefault(node.name, []).append(node)
        self.imports = {name: target for node in self.statements for name, target in _imports(node)}
        self.inert = all(
            isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Constant) for node in tree.body
        )


@cache
def _parse(name: str, path: Path, _stamp: int) -> _Module:
    return _Module(name, path)


def _running(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module that run; of a branching one, the statements of its branches."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _running(node.orelse if _checks_types(node) else [*node.body, *node.orelse])
        elif isinstance(node, ast.Try | ast.With):
            handlers = [statement for handler in getattr(node, "handlers", []) for statement in handler.body]
            rest = [*getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
            yield from _running([*node.body, *handlers, *rest])
        else:
            yield node


def _checks_types(node: ast.If) -> bool:
    return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that an import statement binds, each with the dotted name that it stands for."""
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute here"
        yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)


def _uses(node: ast.AST, at_import: bool) -> Iterator[tuple[str, str]]:
    """Yield what a node uses when it runs: pairs of ``import``, ``name``, ``attribute`` or ``resource``, and a name.

    Parameters
    ----------
    node : ast.AST
    at_import : bool
        Whether it runs because its module is imported; then only decorators and defaults of functions run.
    """
    if isinstance(node, ast.Import):
        yield from (("import", alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (("import", f"{node.module}.{alias.name}") for alias in node.names)
    elif isinstance(node, ast.If) and _checks_types(node):
        yield from (use for child in node.orelse for use in _uses(child, at_import))
    elif isinstance(node, ast.Name | ast.Attribute) and (dotted := _dotted(node)):
        yield "name", dotted
        yield from (("attribute", part) for part in dotted.split(".")[1:])
    else:
        if isinstance(node, ast.Attribute):
            yield "attribute", node.attr
        if isinstance(node, ast.Call) and (how := _NAMED_BY_TEXT.get(_dotted(node.func))):
            yield from ((how, str(value.value)) for value in node.args if isinstance(value, ast.Constant))
        own = _own_names(node) if isinstance(node, Scope) else frozenset()
        for child in _running_children(node, at_import):
            for how, dotted in _uses(child, at_import):
                if how != "name" or dotted.partition(".")[0] not in own:
                    yield how, dotted


def _own_names(scope: ast.AST) -> frozenset[str]:
    """Return the parameters and variables of a scope, which hide names of the module; its imports do not."""
    names: set[str] = set()
    inside = list(ast.iter_child_nodes(scope))
    while inside:
        node = inside.pop()
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, Definition):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif not isinstance(node, Scope):
            inside += ast.iter_child_nodes(node)
    return frozenset(names)


def _running_children(node: ast.AST, at_import: bool) -> Iterator[ast.AST]:
    """Yield the children of a node that run: no annotations and, at import, no bodies of functions."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns") or (at_import and field == "body" and isinstance(node, Function)):
            continue
        children = value if isinstance(value, list) else [value]
        yield from (child for child in children if isinstance(child, ast.AST))


def _dotted(node: ast.AST) -> str:
    """Return a chain of attributes of a name, such as ``theory.coefficients``, or an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _data_files(name: str) -> set[Path]:
    """Return a data file, or all files of a folder of data."""
    path = resource(name)
    if path.is_dir():
        return {file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".")}
    return {path}


def _tree_digest(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | Definition) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return digest(_plain(tree))


def _plain(node: Any) -> Any:
    """Return a syntax tree as lists of strings; unlike `ast.dump`, it is the same on every version of Python."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if name not in ("ctx", "kind", "type_comment")]
        return [type(node).__name__, *([name, _plain(value)] for name, value in fields if value not in (None, []))]
    return [_plain(child) for child in node] if isinstance(node, list) else repr(node)
