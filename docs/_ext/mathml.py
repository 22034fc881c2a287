"""Formulas as MathML, which browsers draw and read aloud by themselves: no script, no network.

latex2mathml converts them when the site is built. What it does not convert is a warning, so the strict build fails.
"""

from __future__ import annotations

from html import escape
from re import sub
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import Converter
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
PARTS = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "msubsup": 3, "mover": 2, "munder": 2, "munderover": 3}


def to_mathml(tex: str, display: str) -> str:
    """Return a formula as MathML, to be displayed "inline" or as a "block".

    Raises
    ------
    ValueError
        If something of the formula would be lost, or drawn as another letter.
    """
    if tex.count("{") != tex.count("}"):
        raise ValueError("braces do not match")
    braced = sub(r"\\math(bb|cal) (\w)", r"\\math\1{\2}", tex)  # the form in which latex2mathml knows these letters
    try:
        formula = ElementTree.fromstring(Converter(xmlns="", display=display).convert(braced))
    except Exception as error:  # latex2mathml's errors have no common class and no text
        raise ValueError(type(error).__name__) from error
    for node in formula.iter():
        if "\\" in (node.text or "") or node.get("mathvariant", "normal") != "normal":
            raise ValueError(f"{node.text} cannot be converted")
        if len(node) != PARTS.get(node.tag, len(node)):
            raise ValueError(f"a part of {node.tag} is missing")
        if node.tag == "mrow":
            set_spaces(node)
    return ElementTree.tostring(formula, encoding="unicode")


def set_spaces(row: ElementTree.Element) -> None:
    """Leave the spaces that TeX leaves: thin ones around a function's name, none around a slash or after a sign."""
    for before, node, after in zip([None, *row], row, [*row[1:], None], strict=False):
        text = node.text or ""
        follows_operator = before is None or (before.tag == "mo" and before.text not in (")", "]"))
        if node.tag == "mo" and text in ("/", ".", ":"):
            node.attrib.update(lspace="0", rspace="0")
        elif node.tag == "mo" and text in ("+", "-", "−") and follows_operator:
            node.set("form", "prefix")
        elif node.tag in ("mi", "mo") and len(text) > 1 and text.isalpha():
            opens = after is not None and after.text in ("(", "[")
            node.tag = "mo"
            node.attrib.update(lspace="0" if follows_operator else "0.167em", rspace="0" if opens else "0.167em")


def convert(node: nodes.math | nodes.math_block, display: str) -> str:
    """Return the MathML of a node; where there is none, the source and a warning that names the page."""
    try:
        return to_mathml(node.astext(), display)
    except ValueError as error:
        LOGGER.warning("the formula %s is no MathML: %s", node.astext(), error, location=node)
        return f"<code>{escape(node.astext())}</code>"


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(convert(node, "inline"))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own. It can be focused, because where it is too wide, it scrolls."""
    attributes = {"tabindex": "0", "role": "group", "aria-label": "Formula"}
    self.body.append(self.starttag(node, "div", CLASS="formula", **attributes) + convert(node, "block"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this formula")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the writing of formulas; Sphinx takes it in place of its own, MathJax."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
