"""Formulas survive the Markdown of code hosts; `test_site.py` sees them drawn."""

from __future__ import annotations

import pytest
from formulas import find_formulas
from markdown_it import MarkdownIt
from tracked import list_files

from mdpu.pipeline.files import REPOSITORY

PAGES = [name for name in list_files("--others", "--exclude-standard") if name.endswith(".md")]
PAGES = [name for name in PAGES if find_formulas(REPOSITORY / name)]


@pytest.mark.parametrize("page", PAGES)
def test_code_hosts_see_a_formula_whole(page):
    """They may look for formulas after Markdown has, so nothing in a formula may be emphasis, an escape or a list."""
    tokens = MarkdownIt().enable("table").parse((REPOSITORY / page).read_text(encoding="utf-8"))
    texts = [inner.content for token in tokens for inner in token.children or [] if inner.type == "text"]
    for formula in find_formulas(REPOSITORY / page):
        written = f"${formula.content}$" if formula.type == "math_inline" else formula.content.strip()
        for line in written.splitlines():
            holding = [text for text in texts if line in text]
            assert holding, f"{line} is not whole: look for _ after a brace, \\\\, \\, and a line that begins with -"
            if formula.type == "math_inline":
                before = {text[: text.index(line)][-1:] for text in holding}
                assert before & {"", " ", "("}, f"{line} needs a space or a parenthesis before it"
