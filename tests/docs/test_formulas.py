"""Formulas are drawn on the site as MathML, and survive the Markdown of code hosts."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from formulas import find_formulas
from markdown_it import MarkdownIt
from tracked import list_files

from mdpu.pipeline.files import REPOSITORY

pytest.importorskip("latex2mathml")
Sphinx = pytest.importorskip("sphinx.application").Sphinx
docutils_namespace = pytest.importorskip("sphinx.util.docutils").docutils_namespace

EXTENSIONS = REPOSITORY / "docs" / "_ext"
PAGES = [name for name in list_files("--others", "--exclude-standard") if name.endswith(".md")]
PAGES = [name for name in PAGES if find_formulas(REPOSITORY / name)]


@pytest.fixture
def mathml(monkeypatch):
    """The extension of the site."""
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    yield __import__("mathml")
    sys.modules.pop("mathml")


# -- the pages --------------------------------------------------------------------------------------


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


# -- the extension ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tex", [r"\unheard{x}", "x_", r"\frac{a}{b", r"\frac{a}", "x}", r"\mathfrak A", r"\begin{cases} x"]
)
def test_what_cannot_be_converted_is_refused(mathml, tex):
    with pytest.raises(ValueError):
        mathml.to_mathml(tex, "inline")


def build(folder: Path, text: str) -> tuple[str, str]:
    """Return the page that Sphinx makes of a text, and the warnings."""
    (folder / "conf.py").write_text("extensions = ['myst_parser', 'mathml']\nmyst_enable_extensions = ['dollarmath']\n")
    (folder / "index.md").write_text(f"# Title\n\n{text}\n", encoding="utf-8")
    warnings = io.StringIO()
    places = [str(folder), str(folder), str(folder / "out"), str(folder / "trees")]
    with docutils_namespace():
        Sphinx(*places, "html", status=None, warning=warnings).build()
    return (folder / "out" / "index.html").read_text(encoding="utf-8"), warnings.getvalue()


def test_a_formula_with_a_label_can_be_linked_to(mathml, tmp_path):
    page, warnings = build(tmp_path, "$$\nx\n$$ (here)\n\nSee {eq}`here`.")
    assert warnings == ""
    assert 'id="equation-here"' in page and 'href="#equation-here"' in page
    assert '<span class="eqno">(1)' in page
    assert 'tabindex="0"' in page and 'src="http' not in page
