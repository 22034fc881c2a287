"""The page of error messages has every message that the code can give, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from mdpu.pipeline.files import REPOSITORY

PAGE = REPOSITORY / "docs" / "reference" / "errors.md"
TERM = re.compile(r"^(`+)(?P<message>.+)\1$", re.MULTILINE)
# A message, its cause, and what to do.
ENTRY = re.compile(TERM.pattern + r"\n: (?P<cause>.+(?:\n  .+)*)\n: (?P<remedy>.+(?:\n  .+)*)\n(?:\n|\Z)", re.MULTILINE)
NAME = re.compile(r"(?:<[^<>]+>|…)+")
GAP = "…"
# These errors join messages that stand on the page by themselves.
JOINS = {"'\\n'.join(failures)"}


def template(node: ast.expr, functions: dict[str, ast.FunctionDef]) -> Iterator[str]:
    """Yield the texts that an expression may give, with a gap for everything that is known at run time alone."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(part.value if isinstance(part, ast.Constant) else GAP for part in parts)
        case ast.Call(func=ast.Name(id=name)) if name in functions:
            for inner in ast.walk(functions[name]):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    yield from template(inner.value, functions)
        case _:
            assert ast.unparse(node) in JOINS, f"a message is made by {ast.unparse(node)}; the page cannot have it"


def messages(path: Path) -> Iterator[str]:
    """Yield the messages of the errors that a file raises."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "UserError":
            yield from template(node.args[0], functions)


def in_code() -> set[str]:
    """Return all messages of the package, with gaps."""
    return {NAME.sub(GAP, text) for path in (REPOSITORY / "mdpu").rglob("*.py") for text in messages(path)}


def in_page() -> list[str]:
    """Return all messages of the page, with gaps where it has names in angle brackets."""
    return [NAME.sub(GAP, match["message"]) for match in TERM.finditer(PAGE.read_text(encoding="utf-8"))]


def test_every_message_of_the_code_stands_on_the_page():
    assert sorted(in_code() - set(in_page())) == []


def test_every_message_of_the_page_stands_in_the_code_and_once_on_the_page():
    assert sorted(set(in_page()) - in_code()) == []
    assert len(in_page()) == len(set(in_page()))


def test_every_message_has_a_cause_and_a_remedy():
    page = PAGE.read_text(encoding="utf-8")
    whole = {match["message"] for match in ENTRY.finditer(page)}
    assert [match["message"] for match in TERM.finditer(page) if match["message"] not in whole] == []


def test_a_message_that_is_new_would_be_found():
    (code,) = ast.parse('raise UserError(f"no {thing} is left; make {more}")').body
    assert isinstance(code, ast.Raise) and isinstance(code.exc, ast.Call)
    assert list(template(code.exc.args[0], {})) == ["no … is left; make …"]
