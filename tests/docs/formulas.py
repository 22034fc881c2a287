"""The formulas of a page of documentation, as the site and as code hosts find them."""

from __future__ import annotations

from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

WITH_FORMULAS = MarkdownIt().enable("table").use(dollarmath_plugin, allow_space=False)


def find_formulas(page: Path) -> list[Token]:
    """Return the formulas of a page in their order: tokens of the type ``math_inline`` or ``math_block``."""
    tokens = WITH_FORMULAS.parse(page.read_text(encoding="utf-8"))
    inner = [token for outer in tokens for token in (outer, *(outer.children or []))]
    return [token for token in inner if token.type.startswith("math_")]
