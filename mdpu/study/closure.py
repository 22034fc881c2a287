"""Which files of the package a module or a function depends on, read from syntax trees.

Rules of the workflow take from here the files that rerun them, and finished runs the fingerprint of their code. Nothing
is imported to find out. What counts:

- A module that is imported runs, and so do the packages around it: their imports count.
- Of the functions of a module, those count that reached code names, and those that a decorator of the package receives.
- Of the methods of a class that reached code names, those count that any reached code names too, ``__init__`` and its
  like, and all where another package may call them, because the class derives from one of its own.
- A block under ``if TYPE_CHECKING`` never runs.
- A data file counts where reached code names it: ``resource("mdpu/study/config.schema.yaml")``.

What is found by name at run time, such as a method, is not seen. Whoever knows the name adds its module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mdpu.files import PACKAGE, digest, resource
from mdpu.seals import sha256

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
        Dotted names, such as ``mdpu.learn.trainer`` (all that is in it) or ``mdpu.cli.evaluation.compare``.
    without : iterable of str
        Dotted names of modules and packages that are neither listed nor followed.
    package : Path
        Folder of the package that the names begin with.

    Raises
    ------
    LookupError
        If an entry is neither a module nor a definition of one.
    """
    walk = _Walk(package, frozenset(without))
    for entry in entries:
        walk.enter(entry)
    return sorted(walk.files)


def code_digest(files: Iterable[Path]) -> str:
    """Return a digest of what files do, whatever their order.

    Of a Python file that is its syntax tree without docstrings and comments, so that prose changes nothing; of any
    other file it is the content.
    """
    return digest(sorted(_tree_digest(file) if file.suffix == ".py" else sha256(file) for file in files))


class _Walk:
    """The files reached so far, and the way on from one definition to the next."""

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
        """Reach what code means that names something by its dotted name, wherever it is defined."""
        name, rest = self._split(dotted)
        module = self._module(name)
        if module is None or not rest:
            return
        self.files.add(module.path)  # even if it holds constants alone: one of them is named
        if rest[0] in module.definitions:
            self._define(name, rest[0])
        elif rest[0] in module.imports:
            self._name(".".join([module.imports[rest[0]], *rest[1:]]))

    def _run(self, name: str) -> None:
        """Reach what importing a module runs, the packages around it first."""
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
        """Return whether a decorator or a base class, written so, is defined in the package."""
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
        """Reach a class, of its methods those that are named; the others wait until they are."""
        methods = [child for child in node.body if isinstance(child, Function)]
        self._follow(module, [node], at_import=True)
        for method in methods:
            if method.name in self._attributes or method.name.startswith("__"):
                self._follow(module, [method], at_import=False)
            else:
                self._waiting.setdefault(method.name, []).append((module, method))

    def _ask(self, attribute: str) -> None:
        """Reach the methods of that name which wait."""
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
        """Return the longest part of a dotted name that is a module, and the parts after it."""
        parts = dotted.split(".")
        if any(".".join(parts[:length]) in self.without for length in range(1, len(parts) + 1)):
            return dotted, []
        for length in range(len(parts), 0, -1):
            if self._module(".".join(parts[:length])) is not None:
                return ".".join(parts[:length]), parts[length:]
        return dotted, []

    def _module(self, name: str) -> _Module | None:
        """Return a module of the package, or None if the name is none or is left out."""
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
        What importing it runs, as far as types are not being checked.
    definitions : dict of list
        Its functions and classes by name; several where branches define one name.
    imports : dict of str
        What names stand for that it imports, by dotted name.
    inert : bool
        Whether it holds nothing but a docstring and constants.
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
    """Yield the statements of a module that run; of one with branches, their statements."""
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
    """Yield what a node uses when it runs, each after what it is: ``import``, ``name``, ``attribute`` or ``resource``.

    Parameters
    ----------
    node : ast.AST
    at_import : bool
        Whether it runs because its module is imported: of functions, the decorators and defaults alone.
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
    """Return the parameters and the variables of a scope, which hide what the module calls so; its imports do not."""
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
    """Yield the children of a node that run: no annotation, and at import no body of a function."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns") or (at_import and field == "body" and isinstance(node, Function)):
            continue
        children = value if isinstance(value, list) else [value]
        yield from (child for child in children if isinstance(child, ast.AST))


def _dotted(node: ast.AST) -> str:
    """Return a chain of attributes of a name, such as ``theory.coefficients``; empty if it is none."""
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
    """Return a syntax tree as lists of strings, alike on every version of Python: `ast.dump` is not."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if name not in ("ctx", "kind", "type_comment")]
        return [type(node).__name__, *([name, _plain(value)] for name, value in fields if value not in (None, []))]
    return [_plain(child) for child in node] if isinstance(node, list) else repr(node)
